"""What it costs to start: the import, the command line and the generator, each a process of its own beside the bare interpreter.

python -m benchmarks.startup [--runs 5]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_USED = "ctrl.Object, ctrl.new_manager, ctrl.new_controller_managed_by, ctrl.get_config"
_CTRL = (sys.executable, "-m", "ctrlruntime")
COMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "floor": {"import": (sys.executable, "-c", "import asyncio, ssl")},
    "ctrlruntime": {
        "import": (sys.executable, "-c", "import ctrlruntime"),
        "operator": (sys.executable, "-c", f"import ctrlruntime as ctrl; {_USED}"),
        "help": (*_CTRL, "--help"),
        "manifests": (*_CTRL, "manifests", "--check", "--project", "examples/memcached"),
    },
}
"""What is started, by program; all of it ends with 0."""

TITLES = {
    "import": "import ctrlruntime (floor: asyncio and ssl)",
    "operator": "what an operator uses of it",
    "help": "ctrl --help",
    "manifests": "ctrl manifests, a small operator",
}


def taken(command: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of one process, from start to end. Raises: CalledProcessError."""
    before, began = children_cpu(), time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, children_cpu() - before


def children_cpu() -> float:
    """CPU seconds of the processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(program: str) -> dict[str, float]:
    """Return `<name>` (milliseconds) and `<name>_cpu` (milliseconds of CPU) of each command of a program, once."""
    found: dict[str, float] = {}
    for name, command in COMMANDS[program].items():
        wall, cpu = taken(command)
        found |= {name: wall * 1e3, f"{name}_cpu": cpu * 1e3}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = range(parser.parse_args().runs)
    found = {program: [measure(program) for _ in runs] for program in COMMANDS}
    for program, measured in found.items():
        for name in COMMANDS[program]:
            wall, cpu = (statistics.median(run[figure] for run in measured) for figure in (name, f"{name}_cpu"))
            print(f"{program:12} {TITLES[name]:46} {wall:7.0f} ms   CPU {cpu:7.0f} ms")


if __name__ == "__main__":
    main()
