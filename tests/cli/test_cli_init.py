"""`ctrl init`: a folder becomes a project, wholly or not at all."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def init(*arguments: object):
    return CliRunner().invoke(ctrl, ["init", *map(str, arguments)])


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_empty_folder_becomes_a_project(shop):
    done = init("--domain", "x.io")

    lines = done.stdout.splitlines()
    table = tomllib.loads((shop / "pyproject.toml").read_text())["tool"]["ctrlruntime"]
    assert (done.exit_code, done.stderr) == (0, "")
    assert "created shop/operator.py" in lines
    assert lines[-4:] == [
        "The project shop is ready. Next:",
        "  python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'",
        "  ctrl create api --group webapp --version v1 --kind Guestbook",
        "  pytest",
    ]
    assert (table["project-name"], table["package"], table["domain"], table["image"]) == (
        "shop",
        "shop",
        "x.io",
        "shop:latest",
    )
    for path in ("config/default/kustomization.yaml", "config/manager/manager.yaml", ".ctrlruntime/scaffold.json"):
        assert (shop / path).is_file()
    assert [path.name for path in shop.iterdir() if path.name.startswith(".ctrl-")] == []


def test_what_was_chosen_is_kept_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "OURS").write_text("Do as you like.\n")

    done = init("My Shop", "--domain=x.io", "--package=our_shop", "--image=r.io/shop:v1", "--owner=Us", "--license-file=OURS", "--namespaced", "--multigroup")  # fmt: skip

    folder = tmp_path / "My Shop"
    table = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["ctrlruntime"]
    assert done.exit_code == 0, done.output
    assert {key: table[key] for key in ("project-name", "package", "image", "namespaced", "multigroup", "owner", "license")} == {
        "project-name": "my-shop",
        "package": "our_shop",
        "image": "r.io/shop:v1",
        "namespaced": True,
        "multigroup": True,
        "owner": "Us",
        "license": "file",
    }  # fmt: skip
    assert (folder / "LICENSE").read_text() == "Do as you like.\n"
    assert "  cd 'My Shop'\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--domain", "localhost"], "the domain 'localhost' is not a DNS name with a dot"),
        (["--project-name", "My Shop"], "the project name 'My Shop' is not a DNS label"),
        (["--project-name", "class"], "the package 'class' is a keyword of Python. Give another --package"),
        (["--package", "json"], "the package 'json' would hide a module of that name"),
        (["--package", "test"], "the package 'test' would conflict with a file or folder of the project"),
        (["--project-name", "build"], "the package 'build' would conflict with a file or folder of the project"),
        (["--package", "ctrlruntime"], "the package 'ctrlruntime' would hide a module of that name"),
        (["--image", "a b"], "the image 'a b' is not valid. Use a reference"),
        (["--license-file", "empty"], "empty is empty"),
        (["empty"], "cannot create the project empty: it is a file"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(shop, arguments, message):
    (shop / "empty").write_text("")

    failed = init(*arguments)

    assert failed.exit_code == 1
    assert failed.stderr.startswith("error: ")
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert names(shop) == ["empty"]


@pytest.mark.parametrize(
    "arguments", [["--license=MIT"], ["--license=apache2", "--license-file=empty"], ["--license-file=none-such"]]
)
def test_wrong_usage_ends_with_2(shop, arguments):
    (shop / "empty").write_text("")

    assert init(*arguments).exit_code == 2
    assert names(shop) == ["empty"]


def test_files_that_are_there_are_listed_and_stay_unless_forced(shop):
    (shop / "Makefile").write_text("all:\n")
    (shop / "README.md").write_text("mine\n")
    (shop / "notes").write_text("mine\n")

    refused = init("--domain", "x.io")
    there = names(shop)
    forced = init("--domain", "x.io", "--force")

    assert (refused.exit_code, refused.stderr) == (
        1,
        "error: cannot overwrite Makefile, README.md. Move them, or add --force\n",
    )
    assert there == ["Makefile", "README.md", "notes"]
    assert forced.exit_code == 0
    assert "changed Makefile" in forced.stdout.splitlines()
    assert (shop / "README.md").read_text() != "mine\n"
    assert (shop / "notes").read_text() == "mine\n"


def test_a_project_is_not_made_twice(shop):
    (shop / "pyproject.toml").write_text('[tool.ctrlruntime]\nproject-name = "shop"\n')

    failed = init("--domain", "x.io", "--force")

    assert failed.exit_code == 1
    assert "is already a project. Use `ctrl create`" in failed.stderr
    assert names(shop) == ["pyproject.toml"]


def test_when_the_manifests_cannot_be_made_nothing_is_left(shop, monkeypatch):
    # A process of its own, not a fork: that needs no interpreter.
    monkeypatch.setattr("ctrlruntime.project.scaffold.writing.subprocess", subprocess)
    monkeypatch.setattr(sys, "executable", "/bin/false")

    failed = init("--domain", "x.io")

    assert failed.exit_code == 1
    assert "nothing was written, because `ctrl manifests` would fail" in failed.stderr
    assert names(shop) == []
