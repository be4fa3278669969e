"""Generated files in a folder: what would change, and the change itself.

A generated file says so in its first line, the mark. It is rewritten, and deleted when it is no longer generated. Remove the first line to
keep your own version: a file without the mark belongs to the user. It is created if it is missing, and never changed.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.staging import staged

__all__ = ["Change", "Refresh", "apply", "changes", "folder_for", "marked", "refreshed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A file whose text is not the generated one. `before` is None if the file does not exist, `after` if it is deleted."""

    path: Path
    before: str | None
    after: str | None

    def line(self) -> str:
        """Return what was done, or would be."""
        word = "created" if self.before is None else "removed" if self.after is None else "changed"
        return f"{word} {self.path}"

    def diff(self) -> str:
        """Return the change as a unified diff."""
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            fromfile="/dev/null" if self.before is None else f"{self.path}",
            tofile="/dev/null" if self.after is None else f"{self.path} (generated)",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """The differences between a folder and its generated files."""

    folder: Path
    files: int
    """How many files are generated."""

    changes: Sequence[Change]
    kept: Sequence[Path] = ()
    """Files of the user that are not changed, although another text is generated for them."""

    replaced: Sequence[Path] = ()
    """Files of the user that are changed, because that was forced."""

    @property
    def stale(self) -> list[Path]:
        return sorted(change.path for change in self.changes)

    @property
    def removed(self) -> list[Path]:
        """Files that were generated earlier and no longer are."""
        return [change.path for change in self.changes if change.after is None]

    def diffs(self) -> Iterator[str]:
        """Yield a unified diff for each change."""
        return (change.diff() for change in self.changes)

    def lines(self) -> Iterator[str]:
        """Yield what was done, or would be, a line for each change."""
        return (change.line() for change in self.changes)

    def notes(self) -> Iterator[str]:
        """Yield a warning for each file that is kept."""
        reason = "not changed, because its first line does not say that it is generated"
        return (f"{path}: {reason}. Delete it to get the generated one" for path in self.kept)

    def report(self) -> Iterator[str]:
        """Yield the lines, or one for a folder without changes."""
        if self.files and not self.changes:
            yield f"{self.files} file{'s' if self.files > 1 else ''} in {self.folder}: up to date"
        yield from self.lines()

    def apply(self) -> None:
        """Make the changes. Raises: ConfigError for a file that cannot be written or deleted; then no file is changed."""
        apply(self.changes)


def refreshed(folder: Path, files: Mapping[Path, str], *, mark: str, within: str = "", force: bool = False) -> Refresh:
    """Return the differences between a folder and its generated files, a text by path; nothing is written.

    A text without the mark is for a file of the user. Files with the mark that are not among `files` are deleted, in the subfolder `within`
    of the folder. With `force`, generated files replace files of the user. Raises: ConfigError for a file that cannot be read.
    """
    found = changes({path: text for path, text in files.items() if text.startswith(mark) or not path.exists()})
    foreign = [each for each in found if each.before is not None and not each.before.startswith(mark)]
    suffixes = {path.suffix for path in files}  # a copy that an editor makes has another one
    left = [
        path
        for path in marked(folder, mark)
        if path not in files and path.suffix in suffixes and path.is_relative_to(folder / within)
    ]
    paths = [each.path for each in foreign]
    return Refresh(
        folder=folder,
        files=len(files),
        changes=[
            *(each for each in found if force or each not in foreign),
            *(Change(path, _read(path), None) for path in left),
        ],
        kept=[] if force else paths,
        replaced=paths if force else [],
    )


def changes(files: Mapping[Path, str]) -> list[Change]:
    """Return the files that are missing or have another text, by path. Raises: ConfigError for one that cannot be read."""
    return [Change(path, before, text) for path, text in sorted(files.items()) if (before := _read(path)) != text]


def apply(changes: Iterable[Change]) -> None:
    """Make the changes. Raises: ConfigError for a file that cannot be written or deleted; then no file is changed."""
    texts = {change.path: change.after for change in changes}
    with staged(texts):
        pass
    for path in (path for path, text in texts.items() if text is None):
        with contextlib.suppress(OSError):  # the first parent that is not empty
            for parent in path.parents:
                parent.rmdir()


def marked(folder: Path, mark: str) -> Iterator[Path]:
    """Yield the files below a folder whose first line is the mark, without links. Raises: ConfigError for one that cannot be read."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                if file.readline(len(mark)) == mark:
                    yield path
        except OSError as error:
            raise ConfigError.unreadable(path, error) from error


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
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(path, error) from error
