"""The Makefile of a project: each target runs commands that exist, with the variables of kubebuilder and operator-sdk."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.project.scaffold import new_project, scaffold_files
from ctrlruntime.project.scaffold.writing import staged

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")

IMAGE = "registry.example.com/shop:v2"
TARGETS = (
    *("help", "manifests", "generate", "fmt", "vet", "lint", "lint-fix", "test", "test-e2e", "build", "run", "lock"),
    *("docker-build", "docker-push", "docker-buildx", "build-installer", "install", "uninstall", "deploy", "undeploy"),
    *("bundle", "bundle-build", "bundle-push", "catalog-build", "catalog-push"),
)
OTHERS = {"docker", "mkdir", "mypy", "printenv", "pytest", "ruff", "sed", "uv"}


@pytest.fixture
def shop(tmp_path) -> Path:
    files = scaffold_files(new_project(tmp_path / "shop", domain="x.io", image="registry.example.com:5000/shop:v1"))
    with staged(tmp_path, files):
        pass
    return tmp_path


@pytest.fixture
def parsed(monkeypatch) -> list[str]:
    """The commands that a command line was parsed for. They are not run."""
    found: list[str] = []
    monkeypatch.setattr(click.Command, "invoke", lambda _self, context: found.append(context.command_path))
    return found


def expanded(folder: Path, target: str, *variables: str) -> list[list[str]]:
    """The commands of a target, without the redirection at their end."""
    done = subprocess.run(
        ["make", "--dry-run", target, *variables], cwd=folder, capture_output=True, text=True, check=True
    )
    lines = done.stdout.replace("\\\n", " ").splitlines()
    commands = [part for line in lines for part in re.split(r" [|] | && ", line)]
    return [shlex.split(command.partition(" > ")[0]) for command in commands]


@pytest.mark.parametrize(
    "variables", [(), (f"IMG={IMAGE}", "ignore-not-found=true", "CHANNELS=a,b", "DEFAULT_CHANNEL=a", "USE_IMAGE_DIGESTS=true")]
)  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_each_target_runs_commands_that_exist(shop, parsed, target, variables):
    commands = expanded(shop, target, *variables)

    assert commands
    for program, *arguments in commands:
        if program != "ctrl":
            assert program in OTHERS
            continue
        before = len(parsed)
        done = CliRunner().invoke(ctrl, arguments)
        assert (done.exit_code, done.output) == (0, "")
        assert len(parsed) > before + 1  # the command, and not ctrl alone


@pytest.mark.parametrize(
    ("target", "variables", "command"),
    [
        ("deploy", ["IMG=shop:v2"], "ctrl deploy --image shop:v2"),
        ("deploy", [], "ctrl deploy"),
        ("build-installer", ["IMG=shop:v2"], "ctrl render config/default --image shop:v2 --output dist/install.yaml"),
        ("docker-buildx", ["PLATFORMS=linux/arm64"], "ctrl image build --platform linux/arm64 --push"),
        ("undeploy", ["ignore-not-found=true"], "ctrl undeploy --ignore-not-found"),
        ("bundle", ["VERSION=1.2.3", "CHANNELS=a,b"], "ctrl bundle --version 1.2.3 --channels a,b"),
        ("bundle", ["IMG=shop:v2"], "ctrl edit --image shop:v2"),
        ("bundle", [], "ctrl bundle --version 0.1.0"),
        ("bundle-build", [], "docker build -f bundle.Dockerfile -t registry.example.com:5000/shop-bundle:v0.1.0 ."),
        ("bundle-push", ["CONTAINER_TOOL=podman", "BUNDLE_IMG=b:v1"], "podman push b:v1"),
        ("catalog-build", ["BUNDLE_IMG=b:v1"], "ctrl catalog bundle --image b:v1"),
        ("catalog-build", ["CATALOG_IMG=c:v1"], "docker build -f - -t c:v1 catalog"),
    ],
)
def test_variables_reach_the_command(shop, target, variables, command):
    assert command.split() in expanded(shop, target, *variables)


def test_help_lists_each_target(shop):
    done = subprocess.run(["make"], cwd=shop, capture_output=True, text=True, check=True)

    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == set(TARGETS)


def test_the_catalog_image_gets_its_dockerfile_from_the_makefile(shop):
    for name, script in {"ctrl": "echo a catalog", "docker": "cat > given"}.items():
        (shop / name).write_text(f"#!/bin/sh\n{script}\n")
        (shop / name).chmod(0o755)

    subprocess.run(["make", "catalog-build"], cwd=shop, env={"PATH": f"{shop}:{os.environ['PATH']}"}, check=True)

    assert (shop / "catalog/catalog.yaml").read_text() == "a catalog\n"
    lines = (shop / "given").read_text().splitlines()
    assert (lines[0], lines[3]) == ("FROM quay.io/operator-framework/opm:latest", "COPY . /configs")
    assert lines[-1] == "LABEL operators.operatorframework.io.index.configs.v1=/configs"
