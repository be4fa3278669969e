"""The command line: `ctrl`, and `python -m ctrlruntime`. It parses arguments and prints; the work is done by the rooms below."""

from ctrlruntime.cli.main import ctrl

__all__ = ["ctrl"]
