"""Finalizers of several controllers on one object, while others write it, on both servers."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ctrlruntime.api import core, meta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client.patches import json_patch, merge_patch
from ctrlruntime.errors import Conflict
from ctrlruntime.finalizer import Finalizers

STRANGERS = ["other.io/z", "other.io/a", "other.io/m"]


class Controller:
    """Keeps two finalizers; each clean-up fails until its time has come."""

    def __init__(self, client, key, name, random):
        self.client, self.key, self.random = client, key, random
        self.names = [f"{name}.io/second", f"{name}.io/first"]
        self.finalizers, self.done = Finalizers(), []
        for each in self.names:
            self.finalizers.register(each, lambda obj, each=each: self._clean(each, obj))

    def _clean(self, name, obj):
        assert name not in self.done, "a clean-up that was written runs no more"
        if self.random.random() < 0.4:
            obj.metadata.annotations[name.replace("/", "-")] = "failed"
            raise RuntimeError(name)

    async def reconcile(self):
        obj = await self.client.get(core.ConfigMap, self.key)
        try:
            await self.finalizers.reconcile(self.client, obj)
        except Conflict:
            return
        except (RuntimeError, ExceptionGroup):
            pass  # what failed is tried again; the rest is written
        if obj.metadata.deletion_timestamp:
            self.done = [name for name in self.names if name not in obj.metadata.finalizers]


@pytest.mark.parametrize("seed", range(4))
async def test_finalizers_of_many_come_and_go_and_nothing_of_others_is_lost(client, namespace, seed):
    random = Random(seed)
    key = NamespacedName(namespace, "it")
    await client.create(
        core.ConfigMap(
            metadata=meta.ObjectMeta(name="it", namespace=namespace, finalizers=STRANGERS[:2]), data={"theirs": "0"}
        )
    )
    controllers = [Controller(client, key, name, random) for name in ("b", "a", "c")]
    bare = core.ConfigMap(metadata=meta.ObjectMeta(name="it", namespace=namespace))

    async def strangers():
        for number in range(1, 6):
            await client.patch(bare.deep_copy(), merge_patch({"data": {"theirs": str(number)}}))
            if number == 2:
                add = {"op": "add", "path": "/metadata/finalizers/1", "value": STRANGERS[2]}
                await client.patch(bare.deep_copy(), json_patch([add]))

    async def controller(each):
        for _ in range(8):
            await each.reconcile()

    await asyncio.gather(strangers(), *(controller(each) for each in controllers))
    for each in controllers:
        await each.reconcile()
    live = await client.get(core.ConfigMap, key)
    assert sorted(live.metadata.finalizers) == sorted(
        [*STRANGERS, *(name for each in controllers for name in each.names)]
    )
    assert [name for name in live.metadata.finalizers if name in STRANGERS] == [
        STRANGERS[0],
        STRANGERS[2],
        STRANGERS[1],
    ]
    for each in controllers:
        assert [name for name in live.metadata.finalizers if name in each.names] == each.names
    assert live.data == {"theirs": "5"}

    await client.delete(bare)
    for _ in range(40):
        await asyncio.gather(*(each.reconcile() for each in controllers))
    left = await client.get(core.ConfigMap, key)
    assert left.metadata.finalizers == [STRANGERS[0], STRANGERS[2], STRANGERS[1]]
    assert left.data == {"theirs": "5"}

    await client.patch(bare.deep_copy(), json_patch([{"op": "remove", "path": "/metadata/finalizers"}]))
    assert await client.get_or_none(core.ConfigMap, key) is None


async def test_what_a_finalizer_wrote_before_it_failed_is_kept(client, namespace):
    pod = core.Pod(
        metadata=meta.ObjectMeta(name="it", namespace=namespace, finalizers=["a.io/fails"]),
        spec=core.PodSpec(scheduler_name="nobody", containers=[core.Container(name="c", image="c")]),
    )
    await client.create(pod)
    await client.delete(pod, grace_period_seconds=0)
    finalizers = Finalizers()

    def fails(obj):
        obj.status.message = "the bucket is not empty"
        obj.metadata.annotations["tried"] = "1"
        raise RuntimeError("not empty")

    finalizers.register("a.io/fails", fails)
    found = await client.get(core.Pod, NamespacedName(namespace, "it"))
    with pytest.raises(RuntimeError, match="not empty"):
        await finalizers.reconcile(client, found)

    kept = await client.get(core.Pod, NamespacedName(namespace, "it"))
    assert kept.status.message == "the bucket is not empty"
    assert kept.metadata.annotations["tried"] == "1"
    assert kept.metadata.finalizers == ["a.io/fails"]
    await client.patch(kept, merge_patch({"metadata": {"finalizers": None}}))
