"""Memcached in two versions, the newer with a renamed field: converted while both are used, then migrated by the command."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import Environment, eventually
from examples.memcached.api import Memcached, MemcachedSpec, MemcachedStatus

ROOT = Path(__file__).parents[2]
GROUP = "cache-versions.example.com"  # not the example's own: its tests run on the same server
NAME = ctrl.NamespacedName("", f"memcacheds.{GROUP}")


class MemcachedV1alpha1(Memcached, group=GROUP, kind="Memcached"):
    """What the example has, with `size`."""


class NewSpec(ctrl.Model):
    replicas: int = Field(ge=0, description="Number of memcached pods.")


class MemcachedV1beta1(ctrl.Object, group=GROUP, version="v1beta1", kind="Memcached", short_names=["mc"], storage=True):
    """A group of memcached servers."""

    spec: NewSpec
    status: MemcachedStatus = Field(default_factory=MemcachedStatus)


def up(old: MemcachedV1alpha1) -> MemcachedV1beta1:
    return MemcachedV1beta1(spec=NewSpec(replicas=old.spec.size), status=old.status)


def down(new: MemcachedV1beta1) -> MemcachedV1alpha1:
    return MemcachedV1alpha1(spec=MemcachedSpec(size=new.spec.replicas), status=new.status)


CONVERSION = ctrl.webhook.Conversion(MemcachedV1beta1).spoke(MemcachedV1alpha1, to_hub=up, from_hub=down)


@pytest.fixture
async def client(server: Environment):
    cluster = ctrl.Cluster(
        ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(MemcachedV1alpha1, MemcachedV1beta1)
    )
    yield cluster.unfenced_client()
    await ctrl.uninstall_crds(cluster.unfenced_client(), MemcachedV1beta1)
    await cluster.close()


def converting_manager(server: Environment) -> ctrl.Manager:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        scheme=ctrl.Scheme(MemcachedV1alpha1, MemcachedV1beta1),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    ctrl.new_webhook_managed_by(mgr).for_(MemcachedV1beta1).with_conversion(CONVERSION).complete()
    return mgr


async def strategy(client: ctrl.Client) -> str:
    definition = await client.get(CustomResourceDefinition, NAME)
    return definition["spec"]["conversion"]["strategy"]


async def test_objects_of_the_old_version_are_converted_migrated_and_outlive_it(server, client, namespace):
    keys = [ctrl.NamespacedName(namespace, f"m{size}") for size in range(3)]
    await ctrl.install_crds(client, MemcachedV1alpha1)
    for size, key in enumerate(keys):
        meta = {"name": key.name, "namespace": key.namespace}
        await client.create(MemcachedV1alpha1(metadata=meta, spec=MemcachedSpec(size=size)))
    await ctrl.install_crds(client, MemcachedV1alpha1, MemcachedV1beta1)

    async with running(converting_manager(server)):

        async def is_converting() -> bool:
            return await strategy(client) == "Webhook"

        async def is_converted() -> bool:
            return (await client.get(MemcachedV1beta1, keys[2])).spec.replicas == 2

        await eventually(is_converting)
        await eventually(is_converted)
        migrated = await asyncio.to_thread(
            subprocess.run,
            [
                sys.executable, "-m", "ctrlruntime", "storage", "migrate", f"memcacheds.{GROUP}",
                "--kubeconfig", str(server.kubeconfig_path),
            ],
            cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert (migrated.returncode, migrated.stdout.splitlines()) == (
            0,
            [
                f"memcacheds.{GROUP}: 3 objects stored in v1beta1",
                "stored versions: v1alpha1, v1beta1 before, v1beta1 now",
            ],
        ), migrated.stderr

    # Nobody converts any more, and the old version goes: what is stored is the new form.
    await ctrl.install_crds(client, MemcachedV1beta1)
    assert await strategy(client) == "None"
    assert [(await client.get(MemcachedV1beta1, key)).spec.replicas for key in keys] == [0, 1, 2]
