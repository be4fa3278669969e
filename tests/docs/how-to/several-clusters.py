"""Runs after the blocks of docs/how-to/several-clusters.md, in their namespace."""

import asyncio

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment, eventually


async def run_the_example(home: ctrl.Config, other: ctrl.Config) -> None:
    mgr = build(home, other)
    elsewhere = ctrl.Cluster(other)
    named = meta.ObjectMeta(name="web", namespace="default", labels={"copy": "true"})
    async with ctrl.running(mgr):
        await elsewhere.unfenced_client().create(core.ConfigMap(metadata=named, data={"color": "red"}))
        key = ctrl.NamespacedName("default", "web")

        async def is_copied() -> bool:
            return await mgr.api_reader.get_or_none(core.ConfigMap, key) is not None

        assert await eventually(is_copied)
        assert (await mgr.api_reader.get(core.ConfigMap, key)).data == {"color": "red"}
    await elsewhere.close()


with Environment(backend="embedded") as one, Environment(backend="embedded") as two:
    asyncio.run(run_the_example(*(ctrl.get_config(str(each.kubeconfig_path)) for each in (one, two))))
