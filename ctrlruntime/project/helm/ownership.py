"""Whose files a folder of generated ones holds: a file of checksums tells what we wrote from what a person made of it.

A file is ours as long as it has the checksum we noted. What a person edited, added or deleted stays so, and is reported; our files that
are generated no more go. The checksums are lines as `sha256sum` prints them, so `sha256sum --check` lists the edits.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.staging import staged

__all__ = ["CHECKSUMS", "Plan", "planned"]

CHECKSUMS: Final = ".checksums"

_LINE: Final = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done to a folder. Paths are relative to it, and sorted."""

    folder: Path
    created: Mapping[str, str]
    changed: Mapping[str, str]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    """Generated files that a person edited, and that would change now."""

    deleted: tuple[str, ...]
    """Generated files that a person deleted."""

    left: tuple[str, ...]
    """Files that are no longer generated, and that a person edited."""

    sums: Mapping[str, str]
    """The checksums to note."""

    @property
    def is_empty(self) -> bool:
        return not (self.created or self.changed or self.removed)

    def apply(self) -> None:
        """Write and remove. Everything is written next to the folder first. Raises: ConfigError for what cannot be written."""
        files = {**self.created, **self.changed, CHECKSUMS: _written(self.sums)}
        with staged({self.folder / name: text for name, text in files.items()}):
            try:
                for name in self.removed:
                    (self.folder / name).unlink()
                    self._tidy(name)
            except OSError as error:
                raise ConfigError(f"cannot delete {error.filename}: {error.strerror or error}") from error

    def _tidy(self, name: str) -> None:
        """Remove the folders that are empty now."""
        for parent in (self.folder / name).parents:
            if parent == self.folder:
                return
            with contextlib.suppress(OSError):
                parent.rmdir()


def planned(folder: Path, files: Mapping[str, str], *, once: Collection[str] = (), force: bool = False) -> Plan:
    """Return what makes a folder hold `files`, with what a person did to it left alone unless `force`.

    Files of `once` are written when they are missing and never again. Raises: ConfigError for what cannot be read.
    """
    noted = _read_sums(folder)
    present = {name: _sum_of(folder / name) for name in {*files, *noted}}
    created: dict[str, str] = {}
    changed: dict[str, str] = {}
    kept: list[str] = []
    deleted: list[str] = []
    sums: dict[str, str] = {}
    for name, text in sorted(files.items()):
        ours, there, before = _sum(text.encode()), present[name], noted.get(name)
        if there is None and (force or before is None):
            created[name] = text
        elif there is None:
            deleted.append(name)
        elif name in once:
            continue
        elif there != ours:
            if not force and there != before:
                kept.append(name)
            else:
                changed[name] = text
        if name not in once:
            sums[name] = before or "" if name in {*kept, *deleted} else ours
    gone = sorted(name for name in noted if name not in files and present[name] is not None)
    left = tuple(name for name in gone if present[name] != noted[name] and not force)
    return Plan(
        folder=folder,
        created=created,
        changed=changed,
        removed=tuple(name for name in gone if name not in left),
        kept=tuple(kept),
        deleted=tuple(deleted),
        left=left,
        sums={name: each for name, each in sums.items() if each},
    )


def _read_sums(folder: Path) -> dict[str, str]:
    try:
        text = (folder / CHECKSUMS).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(folder / CHECKSUMS, error) from error
    return dict(_parsed(text, folder / CHECKSUMS))


def _parsed(text: str, where: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LINE.fullmatch(line)
        # A name that leads out of the folder was not written by us, and what it names is not ours to remove.
        if found is None or Path(found[2]).is_absolute() or ".." in Path(found[2]).parts:
            raise ConfigError(
                f"{where}, line {number}: expected the checksum of a file in the folder. Delete {where} to start again"
            )
        yield found[2], found[1]


def _written(sums: Mapping[str, str]) -> str:
    return "".join(f"{each}  {name}\n" for name, each in sorted(sums.items()))


def _sum_of(path: Path) -> str | None:
    try:
        return _sum(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
