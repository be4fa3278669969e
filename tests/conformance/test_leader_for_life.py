"""Leader for life on both servers: the lock goes with its Pod, by the garbage collector's hand."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime import leader
from ctrlruntime.api import core, meta


@pytest.fixture
def config(server):
    return ctrl.get_config(str(server.kubeconfig_path))


@pytest.fixture
async def cluster(config):
    cluster = ctrl.Cluster(config)
    yield cluster
    await cluster.close()


@pytest.fixture
def client(cluster):
    return cluster.unfenced_client()


def pod(namespace, name, *, node=""):
    container = core.Container(name="operator", image="operator")
    return core.Pod(
        metadata=meta.ObjectMeta(name=name, namespace=namespace),
        spec=core.PodSpec(containers=[container], node_name=node),
    )


async def short(_seconds):
    await asyncio.sleep(0.05)


def candidate(config, namespace, name):
    return asyncio.ensure_future(leader.become(config, "lock", namespace=namespace, pod=name, environ={}, sleep=short))


async def owner(client, namespace):
    lock = await client.get(core.ConfigMap, ctrl.NamespacedName(namespace, "lock"))
    return lock.metadata.owner_references[0].name


async def test_the_lock_passes_on_when_the_leaders_pod_is_deleted(config, client, namespace):
    first = await client.create(pod(namespace, "first"))
    await client.create(pod(namespace, "second"))

    await asyncio.wait_for(candidate(config, namespace, "first"), LONGEST_WAIT)
    await asyncio.wait_for(candidate(config, namespace, "first"), LONGEST_WAIT)  # a container that was restarted
    waiting = candidate(config, namespace, "second")
    await asyncio.sleep(0.3)
    assert not waiting.done()
    assert await owner(client, namespace) == "first"

    await client.delete(first, grace_period_seconds=0)
    await asyncio.wait_for(waiting, LONGEST_WAIT)
    assert await owner(client, namespace) == "second"


async def test_an_evicted_leader_is_deleted_and_succeeded(config, client, namespace):
    first = await client.create(pod(namespace, "first"))
    await client.create(pod(namespace, "second"))
    await asyncio.wait_for(candidate(config, namespace, "first"), LONGEST_WAIT)

    first.status.phase, first.status.reason = "Failed", "Evicted"
    await client.status.patch(first, ctrl.merge_patch({"status": {"phase": "Failed", "reason": "Evicted"}}))
    await asyncio.wait_for(candidate(config, namespace, "second"), LONGEST_WAIT)

    assert await owner(client, namespace) == "second"
    assert await client.get_or_none(core.Pod, ctrl.object_key(first)) is None


async def test_a_leader_on_a_lost_node_is_succeeded(config, client, namespace):
    node = await client.create(core.Node(metadata=meta.ObjectMeta(name=f"lost-{namespace}")))
    try:
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
        await client.status.patch(node, ctrl.merge_patch({"status": {"conditions": [lost]}}))
        await client.create(pod(namespace, "first", node=node.metadata.name))
        await client.create(pod(namespace, "second"))
        await asyncio.wait_for(candidate(config, namespace, "first"), LONGEST_WAIT)

        await asyncio.wait_for(candidate(config, namespace, "second"), LONGEST_WAIT)

        assert await owner(client, namespace) == "second"
    finally:
        await client.delete(node)


async def test_of_many_candidates_one_leads(config, client, namespace):
    names = [f"pod-{number}" for number in range(5)]
    for name in names:
        await client.create(pod(namespace, name))

    candidates = [candidate(config, namespace, name) for name in names]
    done, waiting = await asyncio.wait(candidates, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0.3)

    assert len(done) == 1
    assert not [task for task in waiting if task.done()]
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
