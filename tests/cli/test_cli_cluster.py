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


def test_uninstalling_counts_the_objects_and_asks_before_the_first_is_deleted(run, server, gauge):
    run("install", "--module", gauge)
    for number in range(6):
        body = {"apiVersion": "cli.example.com/v1", "kind": "Gauge", "metadata": {"name": f"g{number}"}}
        server.connection.request("POST", "/apis/cli.example.com/v1/namespaces/default/gauges", body)

    kept = run("uninstall", "--module", gauge, input="n\n")

    assert kept.exit_code == 1
    assert kept.stderr.splitlines()[:3] == [
        f"6 objects of {NAME} will be deleted too:",
        "  Gauge default/g0",
        "  Gauge default/g1",
    ]
    assert "Continue? [y/N]" in kept.stderr
    assert server.connection.request("GET", PATH)["metadata"]["name"] == NAME
    removed = run("uninstall", "--module", gauge, input="y\n")
    assert removed.stdout == f"uninstalled {NAME}\n"
    assert run("uninstall", "--module", gauge).stdout == f"uninstalled {NAME}\n"  # nothing to ask


@pytest.mark.parametrize("manager", ["helm", "kubectl-client-side-apply"])
def test_a_crd_that_another_tool_applied_is_not_touched_unless_it_is_named(run, server, gauge, manager):
    run("install", "--module", gauge)
    theirs = server.connection.request("GET", PATH)
    run("uninstall", "--module", gauge, "--yes")
    made = {key: theirs[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": NAME}}
    before = server.connection.request("POST", f"{PATH.rpartition('/')[0]}?fieldManager={manager}", made)["metadata"][
        "uid"
    ]

    installed = run("install", "--module", gauge)
    removed = run("uninstall", "--module", gauge, "--yes")

    text = (
        f"CRDs of others: {NAME} was applied by {manager}. Set external=True in the classes of kinds that other projects own, or take them "
        f"over with --force-conflicts {NAME}\n"
    )
    assert (installed.exit_code, installed.stderr) == (1, f"error: cannot install {text}")
    assert (removed.exit_code, removed.stderr) == (1, f"error: cannot uninstall {text}")
    now = server.connection.request("GET", PATH)["metadata"]
    assert now["uid"] == before
    assert {entry["manager"] for entry in now["managedFields"] if "subresource" not in entry} == {manager}

    assert run("install", "--module", gauge, "--force-conflicts", NAME).exit_code == 0
    assert run("uninstall", "--module", gauge, "--yes").exit_code == 0  # it is ours now


def test_a_crd_of_a_deployment_is_not_uninstalled(run, server, gauge):
    run("install", "--module", gauge)
    label = {"metadata": {"labels": {"applyset.kubernetes.io/part-of": "applyset-x-v1"}}}
    server.connection.request("PATCH", PATH, label, content_type="application/merge-patch+json")

    removed = run("uninstall", "--module", gauge, "--yes")

    assert removed.exit_code == 1
    assert f"cannot uninstall CRDs of others: {NAME} is part of the deployment applyset-x-v1. " in removed.stderr
    assert run("uninstall", "--module", gauge, "--yes", "--force-conflicts", NAME).exit_code == 0


EXTERNAL = """
    import ctrlruntime as ctrl

    class Gauge(ctrl.Object, group="cli.example.com", version="v1", external=True):
        size: int = 1
"""


def test_the_crd_of_another_project_is_installed_for_tests_only(run, server, package):
    module = package(api=EXTERNAL)

    refused = [run(command, "--module", module) for command in ("install", "uninstall")]
    for_tests = run("install", "--module", module, "--include-external")

    assert {each.stderr for each in refused} == {
        f"error: module {module} defines only external kinds, whose CRDs belong to other projects\n"
    }
    assert for_tests.stdout == f"installed {NAME}\n"
    server.uninstall_crds([NAME])


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
    line, *page = refused.stderr.splitlines()

    assert refused.exit_code == 1
    assert line.startswith(message)
    # An error whose message does not have all of the fix also prints its page.
    assert all(text.startswith("See https://ctrlruntime.dev/reference/errors/#") for text in page)
    assert len(page) <= 1


def test_a_kubeconfig_that_is_not_there_is_one_line():
    refused = CliRunner().invoke(ctrl, ["storage", "migrate", "x", "--kubeconfig", "/nowhere"])

    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ")
    assert "/nowhere" in refused.stderr
    assert refused.stderr.count("\n") == 1
