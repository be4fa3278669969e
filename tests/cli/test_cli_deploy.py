"""`ctrl deploy` and `ctrl undeploy`: what they print and refuse. What they do is tested on both servers in tests/conformance."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from shop_project import Shop, shop

from ctrlruntime.cli import ctrl
from ctrlruntime.project.deployment import applying
from ctrlruntime.testing import eventually

__all__ = ["shop"]

OUTCOME = "simulation.ctrlruntime.dev/outcome"


def simulate(shop: Shop, **annotations: str) -> None:
    """Tell the simulated kubelet how the operator's Pods fare."""
    manager = shop.folder / "config/manager/manager.yaml"
    lines = "".join(
        f"        simulation.ctrlruntime.dev/{key.replace('_', '-')}: {json.dumps(value)}\n"
        for key, value in annotations.items()
    )
    mark = "      annotations:\n"
    assert mark in manager.read_text()
    manager.write_text(manager.read_text().replace(mark, mark + lines, 1))


@pytest.mark.parametrize("command", ["deploy", "undeploy"])
def test_help_has_examples(command):
    helped = CliRunner().invoke(ctrl, [command, "--help"])

    assert helped.exit_code == 0
    assert f"ctrl {command} config/overlays/test --context test" in helped.stdout


def test_json_has_every_step_also_of_a_deployment_that_failed(run, shop):
    shop.write()
    done = run("deploy", "--json")
    shop.write(webhooks=True, cert_manager=True)
    failed = run("deploy", "--json")
    removed = run("undeploy", "--yes", "--json")

    steps = json.loads(done.stdout)["steps"]
    assert steps[0] == {"action": "created", "apiVersion": "v1", "kind": "Namespace", "name": shop.namespace}
    assert steps[-1]["action"] == "ready"
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["error"].startswith("cannot deploy: the cluster does not serve ")
    assert {step["action"] for step in json.loads(removed.stdout)["steps"]} == {"deleted"}


def test_kinds_that_the_cluster_lacks_are_named_before_anything_is_changed(run, shop, server):
    shop.write(webhooks=True, cert_manager=True)

    refused = run("deploy")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "Certificate of cert-manager.io/v1" in refused.stderr
    assert "Issuer of cert-manager.io/v1" in refused.stderr
    assert "The embedded API server runs no Pods, so neither cert-manager nor the operator can set" in refused.stderr
    assert "Run the operator on this machine: `ctrl run --webhooks development`" in refused.stderr
    assert refused.stderr.count("\n") == 1
    names = [each["metadata"]["name"] for each in server.connection.request("GET", "/api/v1/namespaces")["items"]]
    assert shop.namespace not in names


def waiting(shop, server):
    """Return the reasons for which the containers of the operator wait."""
    pods = server.connection.request("GET", f"/api/v1/namespaces/{shop.namespace}/pods")["items"]
    statuses = [status for pod in pods for status in pod.get("status", {}).get("containerStatuses", [])]
    return {status["state"].get("waiting", {}).get("reason") for status in statuses}


def test_an_image_that_cannot_be_had_is_told_with_the_reason(run, shop, server):
    shop.write()
    simulate(shop, outcome="image-pull-error")

    run("deploy", "--image", "example.com/no:v1", "--no-wait")
    asyncio.run(eventually(lambda: "ImagePullBackOff" in waiting(shop, server)))
    failed = run("deploy", "--image", "example.com/no:v1", "--timeout", "1")
    run("undeploy", "--yes")

    assert failed.exit_code == 1
    assert failed.stderr.startswith(f"error: Deployment {shop.deployment} is not available after 1 s: ")
    assert "is waiting: ImagePullBackOff" in failed.stderr
    assert "example.com/no:v1" in failed.stderr
    assert failed.stdout.splitlines()[-1].startswith(f"waiting Deployment {shop.deployment}: 0 of 1 replicas available")


def test_a_crash_loop_is_told_with_the_last_lines_of_the_log(run, shop, server):
    shop.write()
    simulate(shop, outcome="crash-loop", exit_code="3", log="one\ntwo: boom")

    run("deploy", "--no-wait")
    asyncio.run(eventually(lambda: "CrashLoopBackOff" in waiting(shop, server)))
    failed = run("deploy", "--timeout", "1")
    doctor = run("doctor", "--json")
    run("undeploy", "--yes")

    assert failed.exit_code == 1
    assert "keeps crashing (exit code 3, " in failed.stderr
    assert failed.stderr.endswith("\n  one\n  two: boom\n")
    checks = {check["name"]: check["status"] for check in json.loads(doctor.stdout)}
    assert (checks["deployment"], checks["restarts"]) == ("fail", "warn")


def test_webhooks_without_a_ca_are_an_error_at_once_where_no_pod_runs(run, shop, server):
    shop.write(webhooks=True)

    refused = run("deploy")

    hook = f"MutatingWebhookConfiguration {shop.name}-mutating-webhook-configuration"
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith(
        f"error: cannot deploy {hook}: its calls would fail. The embedded API server runs no Pods"
    )
    assert refused.stderr.endswith("`ctrl run --webhooks development`, or deploy with --no-wait\n")
    names = [each["metadata"]["name"] for each in server.connection.request("GET", "/api/v1/namespaces")["items"]]
    assert shop.namespace not in names


def test_webhooks_are_left_out_when_the_operator_does_not_come_up(run, shop, server, monkeypatch):
    shop.write(webhooks=True)
    simulate(shop, outcome="never-ready")
    monkeypatch.setattr(
        applying, "is_embedded", lambda _cluster: asyncio.sleep(0, result=False)
    )  # a cluster's own Pods

    failed = run("deploy", "--timeout", "0.5")
    run("undeploy", "--yes")

    assert failed.exit_code == 1
    assert "the webhook configurations were not applied" in failed.stderr
    assert "MutatingWebhookConfiguration" not in failed.stdout


def test_without_waiting_it_ends_at_once(run, shop):
    shop.write(webhooks=True)
    simulate(shop, outcome="pending")

    done = run("deploy", "--no-wait")
    run("undeploy", "--yes")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"created MutatingWebhookConfiguration {shop.name}-mutating-webhook-configuration"
    )


def test_stale_manifests_are_a_warning_and_with_strict_an_error(run, shop):
    shop.write()
    shop.source.write_text(shop.source.read_text().replace("size: int = 1", "size: int = 1\n    colour: str = ''"))
    shop.forget()

    warned = run("deploy", "--dry-run")
    refused = run("deploy", "--dry-run", "--strict")

    stale = f"stale: config/crd/bases/{shop.group}_carts.yaml. Run `ctrl manifests`"
    assert (warned.exit_code, warned.stderr) == (0, f"warning: {stale}\n")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == f"error: {stale}, or deploy without --strict\n"


def test_a_package_that_cannot_be_loaded_does_not_keep_from_deploying(run, shop):
    shop.write()
    shop.source.write_text("raise RuntimeError('no')")
    shop.forget()

    warned = run("deploy", "--dry-run")

    assert warned.exit_code == 0, warned.stderr
    assert warned.stderr.startswith("warning: cannot check whether the manifests are stale: ")


def test_an_overlay_is_deployed_and_undeployed_by_its_name(run, shop):
    shop.write()
    overlay = Path("config/overlays/test")
    overlay.mkdir(parents=True)
    (overlay / "kustomization.yaml").write_text("namespace: elsewhere\nresources: [../../default]\n")

    done = run("deploy", str(overlay))
    missed = run("undeploy", "--yes")
    removed = run("undeploy", str(overlay), "--yes")

    assert done.exit_code == 0, done.stderr
    assert "created Namespace elsewhere" in done.stdout.splitlines()
    assert missed.exit_code == 1
    assert missed.stderr.startswith(f"error: {shop.name} is not deployed in namespace {shop.namespace}: ")
    assert removed.exit_code == 0, removed.stderr
    assert removed.stdout.splitlines()[-1] == "deleted Namespace elsewhere"


def test_undeploying_what_is_not_there_can_be_no_error(run, shop):
    shop.write()

    ignored = run("undeploy", "--ignore-not-found")

    assert (ignored.exit_code, ignored.stdout) == (0, "")
    assert "is not deployed in namespace" in ignored.stderr


def test_another_tool_s_set_is_left_alone(run, shop, server):
    shop.write()
    request = server.connection.request
    run("deploy", "--no-wait")
    path = f"/api/v1/namespaces/{shop.namespace}/configmaps/{shop.name}"
    annotations = {"applyset.kubernetes.io/tooling": "kubectl/v1.36"}
    request("PATCH", path, {"metadata": {"annotations": annotations}}, content_type="application/merge-patch+json")

    refused = run("undeploy", "--yes")
    deployed = run("deploy", "--no-wait")

    assert refused.exit_code == deployed.exit_code == 1
    assert refused.stderr == (
        f"error: cannot deploy: ConfigMap {shop.namespace}/{shop.name} belongs to kubectl. "
        "Remove its deployment with that tool\n"
    )


@pytest.mark.parametrize("command", ["deploy", "undeploy", "doctor", "install", "run"])
def test_outside_a_project_is_one_line(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    refused = CliRunner().invoke(ctrl, [command])

    assert refused.exit_code == 1
    assert refused.stderr == (
        f"error: {tmp_path} is not in a project: it has no pyproject.toml with a table [tool.ctrlruntime], here or above. "
        "Create one with `ctrl init`\n"
    )


@pytest.mark.parametrize("command", [["deploy"], ["undeploy", "--yes"], ["install"], ["run", "--install"]])
def test_no_cluster_and_one_that_does_not_answer_are_one_line(command, shop):
    shop.write()
    unreachable = Path("kubeconfig")
    unreachable.write_text(
        json.dumps(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
            }
        )
    )

    missing = CliRunner().invoke(ctrl, [*command, "--kubeconfig", "/nowhere"])
    silent = CliRunner().invoke(ctrl, [*command, "--kubeconfig", str(unreachable)])

    assert (missing.exit_code, missing.stderr) == (1, "error: kubeconfig /nowhere does not exist; check the path\n")
    line, *page = silent.stderr.splitlines()
    assert silent.exit_code == 1
    assert "cannot connect to http://127.0.0.1:1" in line
    assert page in ([], ["See https://ctrlruntime.dev/reference/errors/#TransportError"])


def test_a_tree_that_does_not_render_is_one_line_and_can_still_be_undeployed(run, shop):
    shop.write()
    run("deploy", "--no-wait")
    Path("config/default/kustomization.yaml").write_text("resources: [../nowhere]\n")

    refused = run("deploy")
    removed = run("undeploy", "--yes")

    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1].startswith("error: ")
    assert "../nowhere" in refused.stderr.splitlines()[-1]
    assert removed.exit_code == 0, removed.stderr
