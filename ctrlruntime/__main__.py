"""`python -m ctrlruntime`, and the console script `ctrl`: one program."""

from __future__ import annotations

import errno
import importlib.util
import os
import sys


def main() -> None:
    """Run the command line."""
    # Asked for here, so that a missing extra is one line.
    if importlib.util.find_spec("click") is None:
        sys.stderr.write("error: the command line needs an extra: pip install 'ctrlruntime[cli]'\n")
        sys.exit(1)
    from ctrlruntime.cli import ctrl

    try:
        ctrl(prog_name="ctrl")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}\n")
        # What is still in the buffer would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)


if __name__ == "__main__":
    main()
