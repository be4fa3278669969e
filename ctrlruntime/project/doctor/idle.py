"""`python -m ctrlruntime.project.doctor.idle PACKAGE`: the memory of an idle operator, in bytes."""

from __future__ import annotations

import sys
from pathlib import Path

from ctrlruntime.manager.manager import new_manager
from ctrlruntime.project.package import load
from ctrlruntime.rest.config import Config
from ctrlruntime.scheme import Scheme

__all__ = ["measured"]


def measured(package: str) -> int:
    """Return the bytes that are resident after the package was imported and its manager built."""
    loaded = load(package)
    manager = new_manager(
        Config(host="https://no-cluster.invalid"), scheme=Scheme(*loaded.kinds), metrics_bind_address="0"
    )
    if loaded.setup is not None:
        loaded.setup(manager)
    return _resident()


def _resident() -> int:
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    import resource

    # Only the highest value so far, and in bytes on macOS.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    sys.stdout.write(f"{measured(sys.argv[1])}\n")
