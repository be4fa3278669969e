"""Files that are written together: all of them or none, and each of them whole."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from pathlib import Path

from ctrlruntime.errors import ConfigError

__all__ = ["staged", "write"]


def write(files: Mapping[Path, str]) -> None:
    """Write these texts. Raises: ConfigError for a file that cannot be written; then all are as they were before."""
    with staged(files):
        pass


@contextlib.contextmanager
def staged(files: Mapping[Path, str | None]) -> Generator[set[Path]]:
    """Write these texts, delete the files whose text is None, and yield the files that are new.

    When the block raises, all are as they were before. A file that was there keeps its mode, and a symbolic link its target.
    Raises: ConfigError for a file that cannot be written or deleted.
    """
    staging = _Staging()
    try:
        for step in (staging.prepare, staging.move):
            for path, text in files.items():
                with _named(path, text):
                    step(path, text)
        yield staging.new
    except BaseException:
        staging.take_back()
        raise
    finally:
        staging.tidy()


class _Staging:
    """What stands beside files: their new texts, and what was there before."""

    def __init__(self) -> None:
        self.new: set[Path] = set()
        self._made: list[Path] = []
        self._texts: dict[Path, Path] = {}
        self._kept: dict[Path, Path] = {}
        self._moved: list[Path] = []

    def prepare(self, path: Path, text: str | None) -> None:
        target = _target(path)
        if target.is_dir():
            raise ConfigError(f"cannot write {path}: it is a folder")
        if text is None:
            self._kept[path] = _keep(target)
            return
        self._make(target.parent)
        beside = self._texts[path] = _beside(target)
        with beside.open("xb") as file:
            file.write(text.encode())
        if target.exists():
            shutil.copymode(target, beside)
            self._kept[path] = _keep(target)
        else:
            self.new.add(path)

    def move(self, path: Path, text: str | None) -> None:
        if text is None:
            _target(path).unlink()
        else:
            self._texts[path].replace(_target(path))
        self._moved.append(path)

    def take_back(self) -> None:
        for path in reversed(self._moved):
            kept = self._kept.pop(path, None)  # if it cannot be put back, it stays where it is
            with contextlib.suppress(OSError):  # the others are to be taken back, too
                _target(path).unlink() if kept is None else _put_back(kept, _target(path))
        self.tidy()
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # somebody else put something there
                folder.rmdir()

    def tidy(self) -> None:
        for beside in (*self._texts.values(), *self._kept.values()):
            with contextlib.suppress(OSError):
                beside.unlink()

    def _make(self, folder: Path) -> None:
        for each in reversed([each for each in (folder, *folder.parents) if not each.is_dir()]):
            if os.path.lexists(each):
                raise NotADirectoryError(errno.ENOTDIR, f"{each} is a file")
            each.mkdir()
            self._made.append(each)


@contextlib.contextmanager
def _named(path: Path, text: str | None) -> Generator[None]:
    try:
        yield
    except OSError as error:
        word = "delete" if text is None else "write"
        raise ConfigError(f"cannot {word} {path}: {error.strerror or error}") from error


def _target(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _beside(target: Path) -> Path:
    # In the same folder: moving is then one step, whatever file systems there are.
    return target.with_name(f".ctrl-{secrets.token_hex(8)}")


def _keep(target: Path) -> Path:
    beside = _beside(target)
    try:
        os.link(target, beside)  # takes no room, which may be what is missing when all is taken back
    except OSError:
        shutil.copy2(target, beside)
    return beside


def _put_back(kept: Path, target: Path) -> None:
    try:
        kept.replace(target)
    except OSError:  # whatever kept the others from moving
        shutil.copyfile(kept, target)
        kept.unlink()
