"""Generated files in a folder: what would change, and the change itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.staging import write

__all__ = ["Change", "Tree", "folder_for"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file whose text is not the generated one. `before` is None when the file does not exist."""

    path: Path
    before: str | None
    after: str

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            fromfile="/dev/null" if self.before is None else f"{self.path}",
            tofile=f"{self.path} (generated)",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Tree:
    """The folder that generated files are written to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def changes(self, files: Mapping[str, str]) -> list[Change]:
        """Return the files that are missing or differ. Raises: ConfigError for one that cannot be read."""
        found = ((self.folder / name, text) for name, text in sorted(files.items()))
        return [Change(path, before, text) for path, text in found if (before := _read(path)) != text]

    def leftovers(self, files: Iterable[str], folders: Iterable[str]) -> list[Path]:
        """Return the YAML files in these folders of the tree that are not among the generated ones."""
        return [path for path in self._yaml(folders) if str(path.relative_to(self.folder)) not in set(files)]

    def write(self, changes: Iterable[Change]) -> None:
        """Make the changes. Raises: ConfigError for a file that cannot be written; then no file is changed."""
        write({change.path: change.after for change in changes})

    def _yaml(self, folders: Iterable[str]) -> Iterator[Path]:
        for folder in folders:
            yield from sorted((self.folder / folder).glob("*.yaml"))


def folder_for(what: str, root: Path, folder: Path) -> Path:
    """Return a folder for generated files, which is given from `root`. Raises: ConfigError when it is a file or holds the project `root`."""
    found = root / folder
    if found.is_file():
        raise ConfigError(f"cannot write the {what} to {found}: it is a file. Use a folder")
    if root.resolve().is_relative_to(found.resolve()):
        raise ConfigError(f"cannot write the {what} to {folder}: it contains the project. Use another folder")
    return found


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(path, error) from error
