"""`python -m ctrlruntime`, and the console script `ctrl`: one program."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Run the command line."""
    # Asked for here, so that a missing extra is one line.
    if importlib.util.find_spec("click") is None:
        sys.stderr.write("error: the command line needs an extra: pip install 'ctrlruntime[cli]'\n")
        sys.exit(1)
    from ctrlruntime.cli import ctrl

    ctrl(prog_name="ctrl")


if __name__ == "__main__":
    main()
