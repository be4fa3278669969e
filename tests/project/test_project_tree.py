"""Generated files in a folder: what differs, and how it is told."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project import Change, Tree


def test_only_what_is_missing_or_differs_is_a_change(tmp_path):
    (tmp_path / "same.yaml").write_text("a: 1\n")
    (tmp_path / "old.yaml").write_text("a: 1\n")

    changes = Tree(tmp_path).changes({"same.yaml": "a: 1\n", "old.yaml": "a: 2\n", "new/x.yaml": "b: 1\n"})

    assert [(change.path.name, change.before) for change in changes] == [("x.yaml", None), ("old.yaml", "a: 1\n")]


def test_writing_makes_folders_and_then_nothing_differs(tmp_path):
    tree, files = Tree(tmp_path), {"deep/er/x.yaml": "b: ä\n"}

    tree.write(tree.changes(files))

    assert tree.changes(files) == []


def test_a_diff_names_the_file_and_the_lines(tmp_path):
    (tmp_path / "x.yaml").write_text("a: 1")

    (change,) = Tree(tmp_path).changes({"x.yaml": "a: 2\n"})

    assert change.diff().splitlines() == [
        f"--- {tmp_path}/x.yaml",
        f"+++ {tmp_path}/x.yaml (generated)",
        "@@ -1 +1 @@",
        "-a: 1",
        "\\ No newline at end of file",
        "+a: 2",
    ]


def test_a_new_file_is_a_diff_from_nothing(tmp_path):
    (change,) = Tree(tmp_path).changes({"x.yaml": "a: 2\n"})

    assert change.diff().startswith("--- /dev/null\n")


def test_leftovers_are_yaml_files_that_nothing_generates(tmp_path):
    (tmp_path / "crd").mkdir()
    for name in ("kept.yaml", "gone.yaml", "README.md"):
        (tmp_path / "crd" / name).touch()

    assert Tree(tmp_path).leftovers({"crd/kept.yaml": ""}, ["crd"]) == [tmp_path / "crd" / "gone.yaml"]


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path):
    (tmp_path / "x.yaml").mkdir()
    (tmp_path / "file").touch()
    tree = Tree(tmp_path)

    with pytest.raises(ConfigError, match=r"cannot read .*x\.yaml"):
        tree.changes({"x.yaml": ""})
    with pytest.raises(ConfigError, match=r"cannot write .*file/y\.yaml"):
        tree.write([Change(tmp_path / "file" / "y.yaml", None, "a")])


def test_when_one_file_cannot_be_written_none_is(tmp_path):
    (tmp_path / "x.yaml").write_text("old\n")
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"cannot write .*file/y\.yaml"):
        Tree(tmp_path).write(
            [Change(tmp_path / "x.yaml", "old\n", "new\n"), Change(tmp_path / "file/y.yaml", None, "a")]
        )

    assert (tmp_path / "x.yaml").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "x.yaml"]
