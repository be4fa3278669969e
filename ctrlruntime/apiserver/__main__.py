"""`python -m ctrlruntime.apiserver`, see `command`."""

from __future__ import annotations

import sys

from ctrlruntime.apiserver.command import main

if __name__ == "__main__":
    sys.exit(main())
