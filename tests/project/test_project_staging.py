"""Files that are written together: whatever fails, nothing is half written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.staging import staged, write


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a").write_text("old a\n")
    (tmp_path / "b").write_text("old b\n")
    return tmp_path


@pytest.fixture
def files(folder):
    return {folder / "a": "new a\n", folder / "deep/er/c": "new c\n", folder / "b": "new b\n"}


def everything(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_text() for path in folder.rglob("*")}


def full_disk_at(monkeypatch, method, number):
    """The disk is full at the n-th text that is written beside its place (`open`), or at the n-th that is moved there (`replace`)."""
    original, calls = getattr(Path, method), []

    def fails(path, *rest):
        if method == "replace" or rest == ("xb",):
            calls.append(path)
            if len(calls) == number:
                raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, *rest)

    monkeypatch.setattr(Path, method, fails)


def test_all_are_written_and_nothing_else_stays(folder, files):
    with staged(files) as new:
        assert new == {folder / "deep/er/c"}

    assert everything(folder) == {
        "a": "new a\n",
        "b": "new b\n",
        "deep": False,
        "deep/er": False,
        "deep/er/c": "new c\n",
    }


def test_a_file_without_a_text_is_deleted_and_comes_back_when_the_block_fails(folder):
    def fail() -> None:
        with staged({folder / "a": None, folder / "b": "new b\n"}):
            assert not (folder / "a").exists()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    after_failure = everything(folder)

    with staged({folder / "a": None}) as new:
        assert new == set()

    assert after_failure == {"a": "old a\n", "b": "old b\n"}
    assert everything(folder) == {"b": "old b\n"}


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("method", ["open", "replace"])
def test_a_full_disk_leaves_all_as_it_was(folder, files, monkeypatch, method, number):
    before = everything(folder)
    full_disk_at(monkeypatch, method, number)

    with pytest.raises(ConfigError, match=r"cannot write .*: No space left on device"):
        write(files)

    monkeypatch.undo()
    assert everything(folder) == before


def test_what_fails_after_it_takes_everything_back(folder, files):
    before, inode = everything(folder), (folder / "a").stat().st_ino
    seen = []

    def interrupted():
        seen.append((folder / "a").read_text())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), staged(files):
        interrupted()

    assert seen == ["new a\n"]
    assert everything(folder) == before
    assert (folder / "a").stat().st_ino == inode


def test_without_hard_links_it_works_the_same(folder, files, monkeypatch):
    before = everything(folder)

    def refused(*_paths):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with pytest.raises(RuntimeError), staged(files):
        raise RuntimeError

    assert everything(folder) == before


def test_modes_and_links_stay(folder):
    (folder / "a").chmod(0o750)
    (folder / "link").symlink_to("b")

    write({folder / "a": "new\n", folder / "link": "new\n"})

    assert stat.S_IMODE((folder / "a").stat().st_mode) == 0o750
    assert (folder / "link").is_symlink()
    assert (folder / "b").read_text() == "new\n"


def test_new_files_have_the_usual_mode(folder):
    write({folder / "x": "new\n"})

    assert (folder / "x").stat().st_mode == (folder / "a").stat().st_mode


def test_folders_and_files_in_the_way_are_named(folder):
    (folder / "deep").mkdir()
    before = everything(folder)

    with pytest.raises(ConfigError, match=r"cannot write .*/deep: it is a folder"):
        write({folder / "a": "new\n", folder / "deep": "x"})
    with pytest.raises(ConfigError, match=r"cannot write .*/b/x: "):
        write({folder / "a": "new\n", folder / "b/x": "x"})

    assert everything(folder) == before
