"""Commands that talk to a cluster: an embedded server for each module, and `ctrl` called with its kubeconfig."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl
from ctrlruntime.testing import Environment

sys.path.append(str(Path(__file__).parent.parent / "olm"))  # bundles.py: a good bundle, to be changed


@pytest.fixture(autouse=True)
def _runs_main(runs_main: None, manifests_in_forks: None) -> None:
    """`ctrl` runs in this process, and what it starts in one that is forked."""


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
def run(server):
    def command(*arguments: str, **options):
        return CliRunner().invoke(ctrl, [*arguments, "--kubeconfig", str(server.kubeconfig_path)], **options)

    return command


@pytest.fixture
def in_project(tmp_path, monkeypatch):
    """Makes the folder of a package a project, and a folder in it the current one."""

    def enter(package: str) -> None:
        table = f"[tool.ctrlruntime]\nproject-name = 'shop'\npackage = '{package}'\ndomain = 'example.com'\n"
        (tmp_path / "pyproject.toml").write_text(table)
        (tmp_path / "below").mkdir()
        monkeypatch.chdir(tmp_path / "below")

    return enter
