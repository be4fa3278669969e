"""Writing into a project: first all texts, then all moves, and everything taken back when something fails."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.project import staging

__all__ = ["Written", "existing", "refresh", "refuse_existing", "staged"]

_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a file."""

    path: str
    is_new: bool


def existing(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return those of the paths at which something is."""
    return [path for path in paths if os.path.lexists(folder / path)]


def refuse_existing(folder: Path, paths: Iterable[str]) -> None:
    """Raises: ConfigError that lists what would be overwritten."""
    found = existing(folder, paths)
    if found:
        more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise ConfigError(f"cannot overwrite {', '.join(found[:_LISTED])}{more}. Move them, or add --force")


@contextlib.contextmanager
def staged(folder: Path, files: Mapping[str, str]) -> Generator[list[Written]]:
    """Write files (path below the folder → text). When the block raises they are as they were before, and so is what was not there.

    Raises: ConfigError for a place that cannot be written.
    """
    with staging.staged({folder / path: text for path, text in files.items()}) as new:
        yield [Written(path, folder / path in new) for path in files]


def refresh(folder: Path, warn: Callable[[str], None]) -> list[str]:
    """Bring `config/` of a project up to date and return a line for each file; `warn` takes the text of each warning.

    It is `ctrl manifests`, in a process of its own: the package is imported there as it is now. Raises: ConfigError with its error.
    """
    command = [sys.executable, "-m", "ctrlruntime", "manifests"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # what is taken back leaves nothing
    done = subprocess.run(  # noqa: S603 - it is ourselves
        command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    for line in lines:
        if line.startswith("warning: "):
            warn(line.removeprefix("warning: "))
    if done.returncode:
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        raise ConfigError(
            f"nothing was written, because `ctrl manifests` would fail: {(errors or lines or ['no reason given'])[-1]}"
        )
    return done.stdout.splitlines()
