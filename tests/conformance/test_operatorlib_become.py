"""Leader for life at its edges, on both servers: `test_leader_for_life.py` has how the lock is taken and passes on."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime import leader
from ctrlruntime.api import core, meta
from ctrlruntime.client.interceptor import intercept
from ctrlruntime.errors import AlreadyExists, ConfigError, Forbidden, NotFound


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


async def pod(client, namespace, name):
    container = core.Container(name="operator", image="operator")
    metadata = meta.ObjectMeta(name=name, namespace=namespace)
    return await client.create(core.Pod(metadata=metadata, spec=core.PodSpec(containers=[container])))


def lock_of(pod):
    owner = meta.OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid)
    metadata = meta.ObjectMeta(name="lock", namespace=pod.metadata.namespace, owner_references=[owner])
    return core.ConfigMap(metadata=metadata)


async def become(client, pod, sleep):
    place = {"POD_NAMESPACE": pod.metadata.namespace, "POD_NAME": pod.metadata.name}
    async with asyncio.timeout(LONGEST_WAIT):
        await leader.become(client, "lock", environ=place, sleep=sleep, rng=lambda: 0.0)


async def holder(client, namespace):
    lock = await client.get(core.ConfigMap, ctrl.NamespacedName(namespace, "lock"))
    return lock.metadata.owner_references[0].name


async def test_a_lock_that_vanishes_between_two_calls_is_asked_for_again_after_a_pause(client, namespace):
    mine, others = await pod(client, namespace, "mine"), await pod(client, namespace, "others")
    calls, pauses = [], []

    async def create(inner, obj, **options):
        """Be late by a moment, the first two times: another one has the lock, and gives it up again."""
        calls.append(type(obj))
        if len(calls) > 2:
            return await inner.create(obj, **options)
        await inner.create(lock_of(others))
        with pytest.raises(AlreadyExists) as refused:
            await inner.create(obj, **options)
        await inner.delete(await inner.get(core.ConfigMap, ctrl.object_key(obj)))
        raise refused.value

    async def pause(seconds):
        pauses.append(seconds)

    await become(intercept(client, create=create), mine, pause)

    assert calls == [core.ConfigMap] * 3
    assert pauses == [1, 2]
    assert await holder(client, namespace) == "mine"


async def test_a_pod_that_was_preempted_makes_room(client, namespace):
    first, second = await pod(client, namespace, "first"), await pod(client, namespace, "second")

    async def pause(_seconds):
        await asyncio.sleep(0.05)

    await become(client, first, pause)
    failed = {"status": {"phase": "Failed", "reason": "Preempting"}}
    await client.status.patch(first, ctrl.merge_patch(failed))

    await become(client, second, pause)

    assert await holder(client, namespace) == "second"
    assert await client.get_or_none(core.Pod, ctrl.object_key(first)) is None


async def test_of_a_lost_node_the_leader_goes_with_its_lock_at_once(client, namespace):
    node = await client.create(core.Node(metadata=meta.ObjectMeta(name=f"gone-{namespace}")))
    try:
        unready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": ""}
        await client.status.patch(node, ctrl.merge_patch({"status": {"conditions": [unready]}}))
        bound = core.Pod(
            metadata=meta.ObjectMeta(name="first", namespace=namespace),
            spec=core.PodSpec(
                containers=[core.Container(name="operator", image="operator")], node_name=node.metadata.name
            ),
        )
        first, second = await client.create(bound), await pod(client, namespace, "second")
        await client.create(lock_of(first))
        pauses = []

        async def pause(seconds):
            """Once: the lock was deleted, not only its Pod, which a collector would have to follow."""
            pauses.append(seconds)
            with pytest.raises(NotFound):
                await holder(client, namespace)

        await become(client, second, pause)
    finally:
        await client.delete(node)

    assert pauses == [1]
    assert await holder(client, namespace) == "second"


async def test_a_lock_that_is_nobodys_pod_is_waited_for(client, namespace):
    mine = await pod(client, namespace, "mine")
    lock = await client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="lock", namespace=namespace)))
    pauses = []

    async def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            await client.delete(lock)

    await become(client, mine, pause)

    assert pauses == [1, 2, 4]
    assert await holder(client, namespace) == "mine"


async def test_outside_a_cluster_it_returns_at_once_and_asks_nobody(client, namespace, tmp_path):
    async def ask(*_arguments, **_options):
        pytest.fail("it asked the API server")

    alone = intercept(client, get=ask, create=ask, delete=ask)

    await leader.become(alone, "lock", environ={}, namespace_file=tmp_path / "none")

    assert await client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "lock")) is None


async def test_a_pod_that_is_not_there_and_rights_that_are_missing_are_told(client, server, namespace, tmp_path):
    place = {"POD_NAMESPACE": namespace, "POD_NAME": "nobody"}
    with pytest.raises(ConfigError, match=f"Pod {namespace}/nobody of this process does not exist"):
        await leader.become(client, "lock", environ=place)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.add_user(f"newcomer-{namespace}"))

    with pytest.raises(Forbidden, match=r"leader\.become needs get and create of configmaps and get of pods"):
        await leader.become(ctrl.get_config(str(kubeconfig)), "lock", environ=place)
