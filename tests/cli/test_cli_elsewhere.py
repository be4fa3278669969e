"""Commands of kubebuilder and operator-sdk that ctrl does not have: each says in one line what to use, and starts nothing."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl


@pytest.mark.parametrize(
    ("words", "tool", "instead"),
    [
        ("run bundle quay.io/me/shop-bundle:v1 --timeout 5m", "operator-sdk", "`ctrl catalog`"),
        ("run bundle-upgrade quay.io/me/shop-bundle:v2", "operator-sdk", "`ctrl catalog`"),
        ("run packagemanifests --version 1.0.0", "operator-sdk", "`ctrl bundle`"),
        ("generate packagemanifests", "operator-sdk", "`ctrl bundle`"),
        ("generate bundle --version 1.0.0", "operator-sdk", "`ctrl bundle`"),
        ("cleanup shop", "operator-sdk", "kubectl"),
        ("olm install", "operator-sdk", "`operator-sdk olm`"),
        ("olm status", "operator-sdk", "`operator-sdk olm`"),
        ("olm uninstall --help", "operator-sdk", "`operator-sdk olm`"),
        ("pkgman-to-bundle packages", "operator-sdk", "`ctrl bundle`"),
        ("alpha update", "kubebuilder", "`ctrl upgrade`"),
        ("alpha generate", "kubebuilder", "`ctrl upgrade`"),
    ],
)
def test_it_is_one_line_with_the_other_command(words, tool, instead):
    done = CliRunner().invoke(ctrl, words.split())

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: `ctrl ")
    assert f" is a command of {tool}. " in done.stderr
    assert instead in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_argument_of_the_operator_is_not_such_a_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(ctrl, ["run", "--", "bundle"])

    assert done.exit_code == 1
    assert "is not in a project" in done.stderr
