"""The Memcached example, from create to delete, on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually
from examples.memcached.api import Memcached, MemcachedSpec
from examples.memcached.controller import MemcachedReconciler

CRDS = Path(__file__).parents[2] / "examples" / "memcached" / "config" / "crd"


@pytest.fixture
async def mgr(server, namespace, nodes) -> AsyncIterator[ctrl.Manager]:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        scheme=ctrl.Scheme(Memcached),
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        metrics_bind_address="0",
    )
    await ctrl.install_crds(mgr.cluster.unfenced_client(), CRDS)
    MemcachedReconciler(mgr.client).setup_with_manager(mgr)
    async with running(mgr):
        yield mgr


@pytest.fixture
async def memcached(mgr, namespace) -> Memcached:
    return await mgr.client.create(
        Memcached(metadata=meta.ObjectMeta(name="cache", namespace=namespace), spec=MemcachedSpec(size=3))
    )


async def ready_nodes(mgr: ctrl.Manager, memcached: Memcached, count: int) -> Memcached:
    """Wait until the Deployment has `count` ready replicas and the status names as many pods."""
    key = ctrl.object_key(memcached)

    async def look() -> Memcached | None:
        found = await mgr.api_reader.get(Memcached, key)
        deployment = await mgr.api_reader.get_or_none(apps.Deployment, key)
        is_ready = deployment is not None and deployment.status.ready_replicas == deployment.spec.replicas == count
        return found if is_ready and len(found.status.nodes) == count else None

    return await eventually(look)


async def test_a_memcached_gets_its_deployment_and_the_names_of_its_pods(mgr, memcached, namespace):
    found = await ready_nodes(mgr, memcached, 3)

    pods = await mgr.api_reader.list(core.Pod, namespace=namespace)
    assert found.status.nodes == sorted(pod.name for pod in pods.metadata)


async def test_a_deleted_deployment_comes_back(mgr, memcached):
    await ready_nodes(mgr, memcached, 3)
    first = await mgr.api_reader.get(apps.Deployment, ctrl.object_key(memcached))

    await mgr.client.delete(first)

    async def is_another() -> bool:
        present = await mgr.api_reader.get_or_none(apps.Deployment, ctrl.object_key(memcached))
        return present is not None and present.metadata.uid != first.metadata.uid

    await eventually(is_another)
    await ready_nodes(mgr, memcached, 3)


async def test_an_edited_deployment_is_mended(mgr, memcached):
    await ready_nodes(mgr, memcached, 3)
    deployment = await mgr.api_reader.get(apps.Deployment, ctrl.object_key(memcached))

    deployment.spec.replicas = 1
    await mgr.client.patch(deployment, ctrl.merge_patch({"spec": {"replicas": 1}}))

    await ready_nodes(mgr, memcached, 3)


async def test_a_patched_size_is_followed(mgr, memcached):
    await ready_nodes(mgr, memcached, 3)

    await mgr.client.patch(memcached, ctrl.merge_patch({"spec": {"size": 5}}))

    await ready_nodes(mgr, memcached, 5)


async def test_deleting_the_memcached_removes_all_of_it(mgr, memcached, namespace):
    await ready_nodes(mgr, memcached, 3)

    await mgr.client.delete(memcached)

    async def all_gone() -> bool:
        kinds = (Memcached, apps.Deployment, apps.ReplicaSet, core.Pod)
        return not any([len(await mgr.api_reader.list(kind, namespace=namespace)) for kind in kinds])

    # kube-controller-manager's collector looks for new kinds every 30 s; a definition installed a moment ago may have to wait for that.
    await eventually(all_gone)
