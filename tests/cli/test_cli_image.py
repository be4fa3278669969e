"""`ctrl image build`: it runs the tool, or prints what it would run."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

PROJECT = '[tool.ctrlruntime]\nproject-name = "shop"\npackage = "shop"\ndomain = "x.io"\nimage = "me/shop:v1"\n'


def run(*arguments: str):
    return CliRunner().invoke(ctrl, ["image", "build", *arguments])


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return folder


@pytest.fixture
def tool(project, tmp_path):
    """Puts a program on PATH that notes its arguments and ends with a code; returns what was noted."""
    (tmp_path / "bin").mkdir()
    noted = tmp_path / "noted"

    def make(name: str = "docker", code: int = 0):
        program = tmp_path / "bin" / name
        program.write_text(
            f"#!{sys.executable}\nimport sys\nopen({str(noted)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\nsys.exit({code})\n"
        )
        program.chmod(0o755)
        return lambda: noted.read_text().splitlines()

    return make


def test_the_image_of_the_settings_is_built(tool):
    noted = tool()

    done = run()

    assert (done.exit_code, done.stdout) == (0, "built me/shop:v1\n")
    assert noted() == ["build --tag me/shop:v1 ."]


def test_flags_choose_name_tool_platforms_and_push(tool):
    tool()
    noted = tool("podman")

    done = run("--image", "me/shop:v2", "--tool", "podman", "--platform", "linux/amd64, linux/arm64", "--push")

    assert (done.exit_code, done.stdout) == (0, "pushed me/shop:v2\n")
    assert noted()[0] == "build --platform linux/amd64,linux/arm64 --manifest me/shop:v2 ."


def test_a_build_that_fails_is_one_line_and_code_1(tool):
    tool(code=3)

    done = run("--push")

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error: `docker build --tag me/shop:v1 .` failed with exit code 3\n"


def test_print_runs_nothing(tool):
    tool(code=3)

    done = run("--print", "--push")

    assert (done.exit_code, done.output) == (0, "docker build --tag me/shop:v1 .\ndocker push me/shop:v1\n")


@pytest.mark.parametrize(
    ("flags", "missing"),
    [((), "none of docker, podman, nerdctl, buildah is on PATH"), (("--tool", "docker"), "docker is not on PATH")],
)
def test_without_a_tool_the_command_is_printed_and_fails(project, flags, missing):
    done = run(*flags)

    assert (done.exit_code, done.stdout) == (1, "docker build --tag me/shop:v1 .\n")
    assert (
        done.stderr
        == f"error: cannot build the image: {missing}. Install it, or run the printed commands on another machine\n"
    )


def test_outside_a_project_it_is_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = run()

    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert "ctrl init" in done.stderr


def test_a_name_that_is_none_is_refused(project):
    done = run("--image", "Shop!")

    assert (done.exit_code, done.stdout) == (1, "")
    assert "is not valid. Use [REGISTRY/]NAME[:TAG] in lower case" in done.stderr


def test_an_unknown_tool_is_wrong_usage(project):
    assert run("--tool", "make").exit_code == 2


def test_the_help_has_examples():
    shown = run("--help")

    assert shown.exit_code == 0
    assert "ctrl image build --image ghcr.io/me/shop:v1 --push" in shown.stdout
