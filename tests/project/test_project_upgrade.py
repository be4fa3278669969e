"""The merge of a scaffold that was given, files that were edited since, and a newer scaffold."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.settings import Settings, read_settings, write_settings
from ctrlruntime.project.upgrade import RECORD, Outcome, apply, check_work_tree, plan, record

OLD = Settings(project_name="shop", package="shop", domain="x.io", image="shop:latest", scaffold_version="0.1.0")
TEN = "".join(f"line {number}\n" for number in range(1, 11))


def edited(**lines: str) -> str:
    """Ten lines, some of them changed."""
    return "".join(f"{lines.get(f'l{number}', f'line {number}')}\n" for number in range(1, 11))


@pytest.fixture(autouse=True)
def _plain_git(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path):
    """Makes a project of a scaffold and what was done to it since; a text None deletes."""

    def make(given: dict[str, str], changes: dict[str, str | None] | None = None) -> Path:
        given = {"pyproject.toml": '[project]\nname = "shop"\n', **given}
        (tmp_path / RECORD).parent.mkdir()
        (tmp_path / RECORD).write_text(record(OLD, given))
        for path, text in {**given, **(changes or {})}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                (tmp_path / path).write_text(write_settings(text, OLD) if path == "pyproject.toml" else text)
            elif (tmp_path / path).exists():
                (tmp_path / path).unlink()
        return tmp_path

    return make


def upgraded(folder: Path, new: dict[str, str], to: str = "0.2.0"):
    new = {"pyproject.toml": '[project]\nname = "shop"\n', **new}
    planned = plan(folder, read_settings(folder), new, to)
    apply(planned)
    return planned


def outcomes(planned) -> dict[str, Outcome]:
    return {step.path: step.outcome for step in planned.steps if step.path != "pyproject.toml"}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


CASES = {
    "nothing changed": (TEN, TEN, TEN, Outcome.UNCHANGED, TEN),
    "only the scaffold changed": (TEN, TEN, edited(l2="new"), Outcome.UPDATED, edited(l2="new")),
    "only the user changed": (TEN, edited(l9="mine"), TEN, Outcome.UNCHANGED, edited(l9="mine")),
    "both in different places": (
        TEN,
        edited(l9="mine"),
        edited(l2="new"),
        Outcome.MERGED,
        edited(l2="new", l9="mine"),
    ),
    "both the same": (TEN, edited(l2="new"), edited(l2="new"), Outcome.UNCHANGED, edited(l2="new")),
    "one more by the user": (
        TEN,
        edited(l2="new", l9="mine"),
        edited(l2="new"),
        Outcome.UNCHANGED,
        edited(l2="new", l9="mine"),
    ),
    "deleted by the user": (TEN, None, edited(l2="new"), Outcome.KEPT, None),
    "no longer scaffolded": (TEN, TEN, None, Outcome.KEPT, TEN),
    "new in the scaffold": (None, None, TEN, Outcome.ADDED, TEN),
    "new and there already": (None, "mine\n", TEN, Outcome.KEPT, "mine\n"),
    "new and the same already": (None, TEN, TEN, Outcome.UNCHANGED, TEN),
    "without a last line break": (TEN, TEN + "end", edited(l2="new"), Outcome.MERGED, edited(l2="new") + "end"),
    "with other line breaks": ("a\r\nb\r\n", "a\r\nb\r\n", "a\r\nc\r\n", Outcome.UPDATED, "a\r\nc\r\n"),
    "with all of Unicode": ("ä\u2028\x85b\n", "ä\u2028\x85b\n", "ß\u2028\n", Outcome.UPDATED, "ß\u2028\n"),
}


@pytest.mark.parametrize(("given", "mine", "new", "outcome", "after"), CASES.values(), ids=CASES.keys())
def test_a_file_of_three_texts_becomes_one(project, given, mine, new, outcome, after):
    folder = project({"a/file": given} if given is not None else {})
    if mine is not None:
        (folder / "a").mkdir(exist_ok=True)
        (folder / "a/file").write_bytes(mine.encode())
    elif given is not None:
        (folder / "a/file").unlink()

    planned = upgraded(folder, {"a/file": new} if new is not None else {})

    assert outcomes(planned) == {"a/file": outcome}
    assert planned.conflicts == []
    assert ((folder / "a/file").read_bytes().decode() if (folder / "a/file").exists() else None) == after


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_second_upgrade_finds_nothing_to_do(project, case):
    given, mine, new, _, _ = case
    folder = project({"file": given} if given is not None else {})
    (folder / "file").write_bytes(mine.encode()) if mine is not None else (folder / "file").unlink(missing_ok=True)
    upgraded(folder, {"file": new} if new is not None else {})
    before = tree(folder)

    again = upgraded(folder, {"file": new} if new is not None else {})

    assert again.texts == {}
    assert set(outcomes(again).values()) <= {Outcome.UNCHANGED, Outcome.KEPT}
    assert tree(folder) == before


def test_a_conflict_stands_between_marks_with_the_names_of_both(project):
    folder = project({"file": TEN}, {"file": edited(l2="mine", l9="mine too")})

    planned = upgraded(folder, {"file": edited(l2="new", l5="new too")})

    assert [step.path for step in planned.conflicts] == ["file"]
    assert planned.conflicts[0].note == "1 place"
    assert (folder / "file").read_text() == edited(
        l2="<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> scaffold of 0.2.0", l5="new too", l9="mine too"
    )


def test_after_a_conflict_the_new_scaffold_is_the_base(project):
    folder = project({"file": TEN}, {"file": edited(l2="mine")})
    upgraded(folder, {"file": edited(l2="new")})
    (folder / "file").write_text(edited(l2="mine and new"))

    planned = upgraded(folder, {"file": edited(l2="new", l8="newest")}, to="0.3.0")

    assert outcomes(planned) == {"file": Outcome.MERGED}
    assert (folder / "file").read_text() == edited(l2="mine and new", l8="newest")


def test_what_was_deleted_stays_deleted_at_the_next_upgrade_too(project):
    folder = project({"file": TEN}, {"file": None})
    upgraded(folder, {"file": edited(l2="new")})

    planned = upgraded(folder, {"file": edited(l3="newer")}, to="0.3.0")

    assert outcomes(planned) == {"file": Outcome.KEPT}
    assert not (folder / "file").exists()


def test_pyproject_keeps_its_table_and_gets_the_version(project):
    given = '[project]\nname = "shop"\ndependencies = ["ctrlruntime>=0.1"]\n'
    folder = project({"pyproject.toml": given})
    mine = (folder / "pyproject.toml").read_text().replace("[tool.ctrlruntime]", "# ours\n[tool.ctrlruntime]")
    (folder / "pyproject.toml").write_text(mine + "\n[tool.mine]\na = 1\n")

    planned = upgraded(folder, {"pyproject.toml": given.replace(">=0.1", ">=0.2")})

    text = (folder / "pyproject.toml").read_text()
    table = tomllib.loads(text)
    assert planned.steps[0].outcome is Outcome.MERGED
    assert table["project"]["dependencies"] == ["ctrlruntime>=0.2"]
    assert table["tool"]["mine"] == {"a": 1}
    assert "# ours" in text
    assert read_settings(folder) == OLD.__class__(
        project_name="shop", package="shop", domain="x.io", image="shop:latest", scaffold_version="0.2.0"
    )


def test_pyproject_with_a_conflict_gets_the_version_too(project):
    given = '[project]\nname = "shop"\ndependencies = ["ctrlruntime>=0.1"]\n'
    folder = project({"pyproject.toml": given}, {"pyproject.toml": given.replace('>=0.1"', '>=0.1", "httpx"')})

    planned = upgraded(folder, {"pyproject.toml": given.replace(">=0.1", ">=0.2")})

    text = (folder / "pyproject.toml").read_text()
    assert [step.path for step in planned.conflicts] == ["pyproject.toml"]
    assert 'scaffold-version = "0.2.0"' in text
    assert '"0.1.0"' not in text


def test_a_link_is_left_alone(project, tmp_path_factory):
    folder = project({"file": TEN}, {"file": None})
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    elsewhere.write_text(TEN)
    (folder / "file").symlink_to(elsewhere)

    planned = upgraded(folder, {"file": edited(l2="new")})

    assert outcomes(planned) == {"file": Outcome.KEPT}
    assert (folder / "file").is_symlink()
    assert elsewhere.read_text() == TEN


def test_the_mode_of_a_file_stays(project):
    folder = project({"run": TEN})
    (folder / "run").chmod(0o755)

    upgraded(folder, {"run": edited(l2="new")})

    assert (folder / "run").stat().st_mode & 0o777 == 0o755


# What can go wrong


def test_nothing_is_left_half_written(project, monkeypatch):
    folder = project(dict.fromkeys(("a", "b", "c"), TEN))
    planned = plan(folder, read_settings(folder), {"a": "new\n", "b": "new\n", "x/y/new": "new\n"}, "0.2.0")
    before = tree(folder)
    moved: list[str] = []
    really = Path.replace

    def full(self: Path, target: Path) -> Path:
        if len(moved) == 2:
            raise OSError(28, "No space left on device", str(target))
        moved.append(str(target))
        return really(self, target)

    monkeypatch.setattr(Path, "replace", full)

    with pytest.raises(ConfigError, match=r"cannot write .*: No space left on device"):
        apply(planned)

    assert len(moved) == 2
    assert tree(folder) == before
    assert sorted(path.name for path in folder.iterdir()) == [".ctrlruntime", "a", "b", "c", "pyproject.toml"]


def test_a_file_where_a_folder_should_be_stops_it_before_anything_is_written(project):
    folder = project({"a": TEN})
    planned = plan(folder, read_settings(folder), {"a": "new\n", "a.d/x": "new\n"}, "0.2.0")
    (folder / "a.d").write_text("a file")
    before = tree(folder)

    with pytest.raises(ConfigError, match="cannot write "):
        apply(planned)

    assert tree(folder) == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is missing"),
        ("{", "is not JSON"),
        ("[]", "is not a record of a scaffold"),
        ('{"files": {"../x": ["a"]}}', "has an invalid entry for ../x"),
        ('{"files": {"/etc/x": ["a"]}}', "has an invalid entry for /etc/x"),
        ('{"files": {"x": "a"}}', "has an invalid entry for x"),
    ],
)
def test_without_a_sound_record_nothing_is_merged(project, text, says):
    folder = project({})
    (folder / RECORD).write_text(text) if text is not None else (folder / RECORD).unlink()

    with pytest.raises(ConfigError) as caught:
        plan(folder, OLD, {}, "0.2.0")

    assert says in str(caught.value)
    assert "Restore it from version control" in str(caught.value)


def test_a_newer_project_is_refused(project):
    folder = project({})

    with pytest.raises(ConfigError, match=r"created by ctrlruntime 0\.1\.0, which is newer than 0\.0\.9\. Install"):
        plan(folder, OLD, {}, "0.0.9")


@pytest.mark.parametrize("to", ["0.1.0", "0.1.0.post1", "0.1.1rc1", "0.10.0", "1.0.0"])
def test_the_same_and_later_versions_are_taken(project, to):
    assert plan(project({}), OLD, {}, to).now == to


def test_a_file_that_is_no_text_is_named(project):
    folder = project({"file": TEN})
    (folder / "file").write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match=r"cannot read .*file: it is not UTF-8 text"):
        plan(folder, OLD, {"file": "new\n"}, "0.2.0")


def test_without_git_there_is_no_merge(project, monkeypatch, tmp_path):
    folder = project({"file": TEN}, {"file": edited(l2="mine")})
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError, match="git is not installed"):
        plan(folder, OLD, {"file": edited(l3="new")}, "0.2.0")


# The record


def test_a_record_grows_and_its_lines_can_be_merged():
    first = record(OLD, {"a": "1\n2\n", "b": "x\n"})

    second = record(OLD, {"c": "y", "b": "z\n"}, earlier=first)

    assert json.loads(second) == {"version": "0.1.0", "files": {"a": ["1\n", "2\n"], "b": ["z\n"], "c": ["y"]}}
    assert len(second.splitlines()) > 10


# The work tree


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository" / "inner"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    author = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, env=os.environ | author)

    git("init", "..")
    return folder, git


def test_a_clean_work_tree_passes(repository):
    folder, git = repository
    git("add", ".")
    git("commit", "-m", "x")
    (folder.parent / "beside").write_text("no part of the project")

    assert check_work_tree(folder) is None


@pytest.mark.parametrize("force", [False, True])
def test_changes_are_named_and_no_force_helps(repository, force):
    folder, git = repository
    git("add", ".")
    git("commit", "-m", "x")
    for name in ("1 ä", "2", "3", "4"):
        (folder / name).write_text("new")

    with pytest.raises(ConfigError, match="and 1 more") as caught:
        check_work_tree(folder, force=force)

    assert "Commit or stash them first" in str(caught.value)
    assert "ä" in str(caught.value)


def test_a_folder_that_git_ignores_is_not_in_git(repository):
    folder, git = repository
    (folder.parent / ".gitignore").write_text("inner/\n")
    git("add", "../.gitignore")
    git("commit", "-m", "x")

    with pytest.raises(ConfigError, match="uncommitted"):
        check_work_tree(folder)


def test_a_repository_that_git_refuses_is_not_taken_for_none(repository):
    folder, _ = repository
    (folder.parent / ".git" / "config").write_text("[core")

    with pytest.raises(ConfigError, match="cannot read the git state of"):
        check_work_tree(folder, force=True)


def test_outside_git_it_takes_force(tmp_path):
    with pytest.raises(ConfigError, match="not in a git repository"):
        check_work_tree(tmp_path)

    assert check_work_tree(tmp_path, force=True) is None
