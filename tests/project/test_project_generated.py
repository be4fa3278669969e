"""Generated files in a folder: what differs, how it is told, and whose they are."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.generated import Change, apply, changes, refreshed

MARK = "# generated\n"
OLD, NEW, MINE = f"{MARK}a: 1\n", f"{MARK}a: 2\n", "a: mine\n"


def content(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def write(tmp_path):
    def written(**files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return written


def refresh(folder, files, **options):
    found = refreshed(folder, {folder / name: text for name, text in files.items()}, mark=MARK, **options)
    found.apply()
    return [line.replace(f"{folder}/", "") for line in (*found.lines(), *found.notes())]


# What differs


def test_only_what_is_missing_or_differs_is_a_change(write):
    folder = write(same=OLD, old=OLD)
    files = {folder / "same.yaml": OLD, folder / "old.yaml": NEW, folder / "deep/er/new.yaml": "b: ä\n"}

    found = changes(files)
    apply(found)

    assert [(change.path.name, change.before) for change in found] == [("new.yaml", None), ("old.yaml", OLD)]
    assert changes(files) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("a: 1", "a: 2\n", ["--- x", "+++ x (generated)", "@@ -1 +1 @@", "-a: 1", "\\ No newline at end of file", "+a: 2"]),
        (None, "a: 2\n", ["--- /dev/null", "+++ x (generated)", "@@ -0,0 +1 @@", "+a: 2"]),
        ("a: 1\n", None, ["--- x", "+++ /dev/null", "@@ -1 +0,0 @@", "-a: 1"]),
    ],
)  # fmt: skip
def test_a_diff_names_the_file_and_the_lines(tmp_path, before, after, said):
    change = Change(tmp_path / "x", before, after)

    assert change.diff().replace(f"{tmp_path}/", "").splitlines() == said


def test_a_file_that_cannot_be_read_or_written_is_named_and_no_file_is_changed(write):
    folder = write(x=OLD)
    (folder / "folder").mkdir()
    (folder / "latin").write_bytes(b"\xff")
    before = content(folder / "x.yaml")

    for name in ("folder", "latin"):
        with pytest.raises(ConfigError, match=f"cannot read .*{name}"):
            changes({folder / name: ""})
    with pytest.raises(ConfigError, match=r"cannot write .*x\.yaml/y"):
        apply([Change(folder / "x.yaml", OLD, NEW), Change(folder / "x.yaml/y", None, "a")])

    assert content(folder / "x.yaml") == before
    assert sorted(path.name for path in folder.iterdir()) == ["folder", "latin", "x.yaml"]


# Whose they are


@pytest.mark.parametrize(
    ("there", "generated", "lines", "left"),
    [
        (None, NEW, ["created x.yaml"], NEW),
        (OLD, NEW, ["changed x.yaml"], NEW),
        (OLD.replace("\n", "\r\n"), NEW, ["changed x.yaml"], NEW),
        (NEW, NEW, [], NEW),
        (OLD, None, ["removed x.yaml"], None),
        (
            MINE,
            NEW,
            ["x.yaml: not changed, because its first line does not say that it is generated. Delete it to get the generated one"],
            MINE,
        ),
        (f"# mine, once:\n{OLD}", None, [], f"# mine, once:\n{OLD}"),
        (MINE, None, [], MINE),
        # A text without the mark is for a file of the user.
        (None, "a: once\n", ["created x.yaml"], "a: once\n"),
        (MINE, "a: once\n", [], MINE),
        (OLD, "a: once\n", [], OLD),
    ],
)  # fmt: skip
def test_the_first_line_says_whose_a_file_is(write, there, generated, lines, left):
    folder = write(other=OLD, **({} if there is None else {"x": there}))
    files = {"other.yaml": OLD} | ({} if generated is None else {"x.yaml": generated})

    assert refresh(folder, files) == lines
    assert content(folder) == {"other.yaml": OLD} | ({} if left is None else {"x.yaml": left})
    assert refresh(folder, files) == [line for line in lines if "not changed" in line]


def test_force_replaces_files_without_the_mark_where_one_with_it_is_generated(write):
    folder = write(x=MINE, once=MINE)
    files = {folder / "x.yaml": NEW, folder / "once.yaml": "a: once\n"}

    found = refreshed(folder, files, mark=MARK, force=True)
    found.apply()

    assert (found.replaced, found.kept) == ([folder / "x.yaml"], [])
    assert content(folder) == {"x.yaml": NEW, "once.yaml": MINE}


def test_deleted_files_take_their_empty_folders_along(write):
    folder = write(a=OLD, b__c__d=OLD, b__c__e=OLD, f__mine=MINE, f__g=OLD)

    assert refresh(folder, {"a.yaml": OLD}) == ["removed b/c/d.yaml", "removed b/c/e.yaml", "removed f/g.yaml"]
    assert sorted(path.name for path in folder.iterdir()) == ["a.yaml", "f"]


def test_only_files_of_the_folder_are_deleted_and_no_copies_of_an_editor(write, tmp_path_factory):
    folder, outside = write(a=OLD, parts__a=OLD), tmp_path_factory.mktemp("outside")
    (outside / "x.yaml").write_text(OLD)
    (folder / "link").symlink_to(outside)
    (folder / "link.yaml").symlink_to(outside / "x.yaml")
    (folder / "a.yaml.orig").write_text(OLD)
    (folder / "binary.yaml").write_bytes(b"\xff\xfe")

    assert refresh(folder, {"new.yaml": NEW}, within="link") == ["created new.yaml"]
    assert refresh(folder, {"new.yaml": NEW}, within="parts") == ["removed parts/a.yaml"]
    (outside / "root").symlink_to(folder)
    assert refresh(outside / "root", {"new.yaml": NEW}) == ["removed a.yaml"]
    (outside / "root").unlink()
    assert content(outside) == {"x.yaml": OLD}
    assert {path.name for path in folder.iterdir()} == {"new.yaml", "link", "link.yaml", "a.yaml.orig", "binary.yaml"}


def test_when_a_file_cannot_be_written_none_is_written_or_deleted(write):
    folder = write(a=OLD, gone=OLD, b=MINE)
    before = content(folder)

    with pytest.raises(ConfigError, match="cannot "):
        refresh(folder, {"a.yaml": NEW, "b.yaml/c.yaml": NEW})

    assert content(folder) == before
