"""A chart of `ctrl helm` in a cluster: Helm installs it, changes it and takes it away, on both servers."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import admissionregistration, apiextensions, apps, core, rbac
from ctrlruntime.project.helm import chart_files
from ctrlruntime.project.settings import Resource, Settings

HELM = shutil.which("helm")
DEFINITION = "barrows.helm.x.io"
OPERATOR = """
    import ctrlruntime as ctrl


    class Barrow(ctrl.Object, group="helm.x.io", version="v1"):
        size: int = 1


    class Defaulter:
        async def default(self, barrow: Barrow) -> None: ...


    def setup(mgr: ctrl.Manager) -> None:
        ctrl.new_webhook_managed_by(mgr).for_(Barrow).with_defaulter(Defaulter()).complete()
"""

pytestmark = pytest.mark.skipif(HELM is None, reason="needs helm on PATH")


@pytest.fixture
def chart(package, tmp_path) -> Path:
    resource = Resource(group="helm.x.io", version="v1", kind="Barrow", plural="barrows", defaulting=True)
    name = package(operator=textwrap.dedent(OPERATOR))
    settings = Settings(project_name="cart-shop", package=name, domain="x.io", image="shop:v1", resources=(resource,))
    for path, text in chart_files(tmp_path, settings, warn=lambda _: None).items():
        (tmp_path / "chart" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / path).write_text(text)
    return tmp_path / "chart"


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


async def test_a_chart_is_installed_upgraded_and_uninstalled(chart, client, server, namespace):
    def helm(command: str, *flags: str) -> str:
        done = subprocess.run(
            [HELM, "--kubeconfig", str(server.kubeconfig_path), "--namespace", namespace, command, "mine", *flags],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    name = "mine-cart-shop"
    told = helm("install", str(chart), "--set", "certManager.enabled=false")

    assert f"cart-shop is installed as mine in the namespace {namespace}." in told
    deployment = await client.get(apps.Deployment, ctrl.NamespacedName(namespace, f"{name}-controller-manager"))
    assert deployment.spec.template.spec.containers[0].image == "shop:v1"
    [webhook] = (
        await client.get(
            admissionregistration.MutatingWebhookConfiguration,
            ctrl.NamespacedName("", f"{name}-mutating-webhook-configuration"),
        )
    ).webhooks
    service = await client.get(core.Service, ctrl.NamespacedName(namespace, webhook.client_config.service.name))
    assert webhook.client_config.service.namespace == service.metadata.namespace == namespace

    helm("upgrade", str(chart), "--set", "webhook.enabled=false,metrics.enabled=false")

    assert await client.get_or_none(core.Service, ctrl.NamespacedName(namespace, f"{name}-webhook-service")) is None
    assert await client.get_or_none(rbac.ClusterRole, ctrl.NamespacedName("", f"{name}-metrics-reader")) is None

    told = helm("uninstall")

    assert DEFINITION in told
    assert (
        await client.get_or_none(apiextensions.CustomResourceDefinition, ctrl.NamespacedName("", DEFINITION))
        is not None
    )
    assert (
        await client.get_or_none(apps.Deployment, ctrl.NamespacedName(namespace, f"{name}-controller-manager")) is None
    )
    left = [role.metadata.name for role in await client.list(rbac.ClusterRole)]
    assert not [role for role in left if role.startswith(name)]
    server.uninstall_crds([DEFINITION])
