"""Run the benchmarks of single parts: `python -m benchmarks [NAME …]`; without names, all of them, one after the other.

Each is a module of its own, most with options of their own (`python -m benchmarks.client --help`). Those that need a real API server start
the one that `tests/controlplane/build` has built. The table against Go, Rust and kopf is `python -m benchmarks.peers`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    names: list[str] = parser.parse_args().names
    if unknown := set(names) - set(NAMES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    failed = 0
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
