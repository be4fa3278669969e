"""Commands that talk to a cluster."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ctrlruntime.cli import ctrl

API = """
    import ctrlruntime as ctrl

    class Gauge(ctrl.Object, group="cli.example.com", version="v1"):
        size: int = 1
"""
NAME = "gauges.cli.example.com"
PATH = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}"


@pytest.fixture
def gauge(package):
    return package(api=API)


def test_definitions_are_installed_used_and_uninstalled(run, server, gauge):
    request = server.connection.request

    installed = run("install", "--module", gauge)
    gauges = "/apis/cli.example.com/v1/namespaces/default/gauges"
    body = {"apiVersion": "cli.example.com/v1", "kind": "Gauge", "metadata": {"name": "one"}}
    request("POST", gauges, body)
    again = run("install", "--module", gauge)
    removed = run("uninstall", "--module", gauge, "--yes")

    assert (installed.exit_code, installed.stdout) == (0, f"installed {NAME}\n"), installed.stderr
    assert (again.exit_code, again.stdout) == (0, f"installed {NAME}\n")
    assert (removed.exit_code, removed.stdout) == (0, f"uninstalled {NAME}\n")


def test_uninstalling_asks_first(run, server, gauge):
    run("install", "--module", gauge)

    kept = run("uninstall", "--module", gauge, input="n\n")

    assert kept.exit_code == 1
    assert "Every object of these kinds is deleted too." in kept.stdout
    assert server.connection.request("GET", PATH)["metadata"]["name"] == NAME


def test_migrating_says_what_it_did(run, server, gauge):
    run("install", "--module", gauge)

    dry = run("storage", "migrate", "gauges", "--dry-run")
    real = run("storage", "migrate", "gauge")

    assert dry.stdout.splitlines() == [
        f"{NAME}: 0 objects would be stored in v1",
        "stored versions: v1 now, v1 after a migration",
    ]
    assert real.stdout.splitlines() == [f"{NAME}: 0 objects stored in v1", "stored versions: v1 before, v1 now"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["storage", "migrate", "nonsense"], "error: no CRD of the kind 'nonsense'"),
        (["install", "--module", "json"], "error: module json defines no kinds"),
        (["uninstall", "--module", "json", "--yes"], "error: module json defines no kinds"),
        (["uninstall", "--module", "no_such_package", "--yes"], "error: module no_such_package does not exist"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, arguments, message):
    refused = run(*arguments)

    assert refused.exit_code == 1
    assert refused.stderr.startswith(message)
    assert refused.stderr.count("\n") == 1


def test_a_kubeconfig_that_is_not_there_is_one_line():
    refused = CliRunner().invoke(ctrl, ["storage", "migrate", "x", "--kubeconfig", "/nowhere"])

    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ")
    assert "/nowhere" in refused.stderr
    assert refused.stderr.count("\n") == 1
