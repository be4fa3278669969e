"""`ctrl install` and `ctrl uninstall` in a project; tests/cli/test_cli_cluster.py has them by --module."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from shop_project import shop

from ctrlruntime.cli import ctrl

__all__ = ["shop"]


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_help_has_examples(command):
    helped = CliRunner().invoke(ctrl, [command, "--help"])

    assert helped.exit_code == 0
    assert f"\n    ctrl {command}" in helped.stdout


def test_in_a_project_the_settings_name_the_package_also_from_a_folder_below(run, shop, monkeypatch):
    shop.write()
    monkeypatch.chdir(shop.source.parent)

    installed = run("install")
    removed = run("uninstall", "--yes")

    assert (installed.exit_code, installed.stdout) == (0, f"installed {shop.crd}\n"), installed.stderr
    assert (removed.exit_code, removed.stdout) == (0, f"uninstalled {shop.crd}\n"), removed.stderr


def test_who_may_not_install_is_told_what(shop, server, tmp_path):
    shop.write()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.add_user("newcomer"))

    refused = CliRunner().invoke(ctrl, ["install", "--kubeconfig", str(kubeconfig)])

    line, page = refused.stderr.splitlines()
    assert refused.exit_code == 1
    assert 'cannot get resource "customresourcedefinitions"' in line
    assert page == "See https://ctrlruntime.dev/reference/errors/#Forbidden"
