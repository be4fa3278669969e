"""Runs after the blocks of docs/how-to/several-clusters.md, in their namespace."""

import asyncio

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment, eventually


async def run_the_example(hub: ctrl.Config, other: ctrl.Config) -> None:
    mgr = build(hub, {"eu": other})
    elsewhere = ctrl.Cluster(other)
    named = meta.ObjectMeta(name="web", namespace="default", labels={"copy": "true"})
    async with ctrl.running(mgr):
        await elsewhere.unfenced_client().create(core.ConfigMap(metadata=named, data={"color": "red"}))

        async def is_copied(cluster: str) -> bool:
            key = ctrl.NamespacedName("default", f"{cluster}-web")
            found = await mgr.api_reader.get_or_none(core.ConfigMap, key)
            return found is not None and found.data == {"color": "red"}

        assert await eventually(lambda: is_copied("eu"))
        await replace(mgr, "eu", other)
        assert mgr.fleet.names() == ["eu"]
    await elsewhere.close()


with Environment(backend="embedded") as one, Environment(backend="embedded") as two:
    asyncio.run(run_the_example(*(ctrl.get_config(str(each.kubeconfig_path)) for each in (one, two))))
