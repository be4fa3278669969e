"""The steps of the scaffolded end-to-end workflow that need no cluster of its own: run by bash and kubectl, on the embedded server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest
import yaml

from ctrlruntime.project.scaffold.files import scaffold_files
from ctrlruntime.project.settings import Settings
from ctrlruntime.testing import Environment

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")

GROUP = "webapp.example.com"


def definition(kind: str, scope: str):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    plural = f"{kind.lower()}s"
    # Without the subresource status, `kubectl apply` sets the status as the operator would.
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": [version]},
    }


def sample(kind: str, name: str, **conditions: str):
    shown = [{"type": each, "status": status} for each, status in conditions.items()]
    metadata = {"name": name} | ({"namespace": "kube-public"} if kind == "Cart" else {})
    status = {"status": {"conditions": shown}} if shown else {}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **status}


@pytest.fixture(scope="module")
def server():
    crds = [definition("Cart", "Namespaced"), definition("Store", "Cluster")]
    with Environment(backend="embedded", crds=crds) as environment:
        yield environment


@pytest.fixture
def run_step(server, tmp_path):
    """Runs the step about samples as GitHub does; it looks once instead of waiting."""
    settings = Settings(project_name="shop", package="shop", domain="example.com")
    workflow = yaml.safe_load(scaffold_files(settings)[".github/workflows/e2e.yml"])
    (step,) = [each for each in workflow["jobs"]["e2e"]["steps"] if "samples" in each.get("name", "")]
    folder = tmp_path / "config/samples"
    folder.mkdir(parents=True)

    def run(*samples):
        for number, each in enumerate(samples):
            (folder / f"{number}.yaml").write_text(json.dumps(each))
        (folder / "kustomization.yaml").write_text(
            json.dumps({"resources": [f"{n}.yaml" for n in range(len(samples))]})
        )
        environ = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig_path),
            "HOME": str(tmp_path),
            "RUNNER_TEMP": str(tmp_path),
        }
        script = step["run"].replace("120s", "0s")
        return subprocess.run(
            ["bash", "-e", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    return run


def test_step_waits_for_ready_or_the_first_condition_of_each_sample(run_step):
    done = run_step(
        sample("Cart", "ready", Progressing="False", Ready="True"),
        sample("Store", "first", Available="True", Degraded="False"),
    )

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == [f"cart.{GROUP}/ready condition met", f"store.{GROUP}/first condition met"]


@pytest.mark.parametrize(
    ("name", "conditions"),
    [
        ("not-ready", {"Available": "True", "Ready": "False"}),
        ("not-available", {"Available": "False", "Degraded": "True"}),
        ("without-status", {}),
    ],
)
def test_step_fails_if_a_sample_does_not_become_ready(run_step, name, conditions):
    done = run_step(sample("Cart", name, **conditions))

    assert done.returncode == 1
    assert done.stderr == f"error: condition not met for carts/{name}\n"
