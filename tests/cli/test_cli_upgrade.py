"""`ctrl upgrade`."""

from __future__ import annotations

import os
import subprocess

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.settings import Settings, read_settings, write_settings
from ctrlruntime.project.upgrade import RECORD, record

OLD = Settings(project_name="shop", package="shop", domain="x.io", image="shop:latest", scaffold_version="0.0.1")
PYPROJECT = '[project]\nname = "shop"\n'
LINES = "one\ntwo\nthree\nfour\nfive\n"


def run(*arguments: str):
    return CliRunner().invoke(ctrl, ["upgrade", *arguments])


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of version 0.0.1, in git, and the scaffold of this version, to be filled."""
    folder = tmp_path / "shop"
    (folder / RECORD).parent.mkdir(parents=True)
    given = {"pyproject.toml": PYPROJECT, "Makefile": LINES, "main.py": LINES, "README.md": LINES, "gone.py": LINES}
    (folder / RECORD).write_text(record(OLD, given))
    for path, text in given.items():
        (folder / path).write_text(text)
    (folder / "pyproject.toml").write_text(write_settings(PYPROJECT, OLD))
    (folder / "gone.py").unlink()
    scaffold = {**given}
    monkeypatch.setattr("ctrlruntime.cli.upgrade.newest_files", lambda settings: scaffold)
    monkeypatch.setattr("ctrlruntime.cli.upgrade.version", lambda name: "0.0.2")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return folder, scaffold


def commit(folder) -> None:
    author = ["-c", "user.name=x", "-c", "user.email=x@x.io"]
    for command in (["init"], ["add", "."], [*author, "commit", "-m", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


def test_help_shows_how_it_is_used():
    answer = run("--help")

    assert answer.exit_code == 0
    assert "ctrl upgrade --dry-run" in answer.stdout


def test_each_file_is_told_and_the_version_set(project):
    folder, scaffold = project
    (folder / "README.md").write_text(LINES + "mine\n")
    commit(folder)
    scaffold |= {name: LINES.replace("one", "ONE") for name in ("Makefile", "README.md", "gone.py")} | {"new.py": "x\n"}

    answer = run()

    assert answer.exit_code == 0
    assert answer.stdout.splitlines() == [
        "updated    Makefile",
        "merged     README.md",
        "kept       gone.py (you deleted it)",
        "unchanged  main.py",
        "added      new.py",
        "merged     pyproject.toml",
        "1 unchanged, 1 added, 1 updated, 2 merged, 1 kept",
        "the project is upgraded to 0.0.2. Run ctrl manifests and the tests, then commit",
    ]
    assert (folder / "README.md").read_text() == LINES.replace("one", "ONE") + "mine\n"
    assert read_settings(folder).scaffold_version == "0.0.2"


def test_a_conflict_is_written_told_and_fails(project):
    folder, scaffold = project
    (folder / "main.py").write_text(LINES.replace("three", "mine"))
    commit(folder)
    scaffold["main.py"] = LINES.replace("three", "theirs")

    answer = run()

    assert answer.exit_code == 1
    assert "conflict   main.py (1 place)" in answer.stdout.splitlines()
    assert "Resolve the conflicts between" in answer.stderr
    assert "<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> scaffold of 0.0.2\n" in (folder / "main.py").read_text()


def test_a_dry_run_says_the_same_and_writes_nothing(project):
    folder, scaffold = project
    commit(folder)
    (folder / "main.py").write_text(LINES.replace("three", "mine"))
    scaffold["main.py"] = LINES.replace("three", "theirs")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    answer = run("--dry-run")

    assert answer.exit_code == 1
    assert "conflict   main.py (1 place)" in answer.stdout.splitlines()
    assert answer.stdout.splitlines()[-1] == "nothing was written"
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_dirty_work_tree_is_refused(project):
    folder, _ = project
    commit(folder)
    (folder / "main.py").write_text("changed")

    answer = run()

    assert answer.exit_code == 1
    assert answer.stderr == ("error: the work tree has uncommitted changes (main.py). Commit or stash them first\n")


def test_outside_git_it_takes_force(project):
    folder, scaffold = project
    scaffold["main.py"] = "new\n"

    refused, forced = run(), run("--force")

    assert (refused.exit_code, forced.exit_code) == (1, 0)
    assert "is not in a git repository" in refused.stderr
    assert (folder / "main.py").read_text() == "new\n"


def test_outside_a_project_it_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    answer = run()

    assert answer.exit_code == 1
    assert "Create one with `ctrl init`" in answer.stderr


def test_a_project_of_a_newer_version_is_refused(project, monkeypatch):
    folder, _ = project
    commit(folder)
    monkeypatch.setattr("ctrlruntime.cli.upgrade.version", lambda name: "0.0.0")

    answer = run()

    assert answer.exit_code == 1
    assert "Install 0.0.1 or newer" in answer.stderr


def test_a_fresh_project_has_nothing_to_upgrade(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = CliRunner().invoke

    made = command(ctrl, ["init", "--domain", "x.io", "--project-name", "fresh"])
    added = command(ctrl, ["create", "api", "--group", "web", "--version", "v1", "--kind", "Website"])
    upgraded = command(ctrl, ["upgrade", "--force"])

    assert (made.exit_code, added.exit_code, upgraded.exit_code) == (0, 0, 0), made.stderr + added.stderr
    *steps, counts = upgraded.stdout.splitlines()
    assert len(steps) > 20
    assert counts == f"{len(steps)} unchanged"
