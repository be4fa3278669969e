from __future__ import annotations

import contextlib

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import second_pass
from examples.cookbook import node_index
from examples.cookbook.node_index import PODS


async def test_node_index(operator, find, client, namespace):
    worker = core.Node(metadata=meta.ObjectMeta(name=f"worker-{namespace}"))

    async def counted(number: int) -> core.Node:
        return await find(core.Node, worker.metadata, lambda found: found.metadata.annotations.get(PODS) == str(number))

    def pod(name: str) -> core.Pod:
        container = core.Container(name="web", image="nginx:1.29")
        return core.Pod(
            metadata=meta.ObjectMeta(name=name, namespace=namespace),
            spec=core.PodSpec(node_name=worker.metadata.name, containers=[container]),
        )

    async with operator(node_index) as mgr, contextlib.AsyncExitStack() as stack:
        await client.create(worker)
        stack.push_async_callback(client.delete, worker)
        await counted(0)
        shop, blog = pod("shop"), pod("blog")
        await client.create(shop)
        await client.create(blog)
        await counted(2)

        # A Pod that has ended still exists, but does not run.
        await client.status.patch(shop, ctrl.merge_patch({"status": {"phase": "Succeeded"}}))
        await counted(1)
        await client.delete(blog, grace_period_seconds=0)
        node = await counted(0)

        # Another client changes the annotation, or removes it.
        for value in ("7", None):
            await client.patch(node, ctrl.merge_patch({"metadata": {"annotations": {PODS: value}}}))
            await counted(0)

        assert await second_pass(mgr) == []
