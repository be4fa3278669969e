from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import Environment, eventually, second_pass
from examples.cookbook import cluster_mirror
from examples.cookbook.cluster_mirror import MIRROR_OF, SOURCE


@pytest.fixture
async def source(namespace: str) -> AsyncIterator[ctrl.Cluster]:
    async with Environment(backend="embedded") as environment:
        cluster = ctrl.Cluster(ctrl.get_config(str(environment.kubeconfig_path)))
        await cluster.unfenced_client().create(core.Namespace(metadata=meta.ObjectMeta(name=namespace)))
        yield cluster
        await cluster.close()


async def test_cluster_mirror(operator, find, client, source, namespace):
    def config(name: str, color: str, **labels: str) -> core.ConfigMap:
        return core.ConfigMap(
            metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=labels), data={"color": color}
        )

    def has(color: str):
        return lambda found: found.data == {"color": color}

    async def is_gone(name: str) -> bool:
        return await client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, name)) is None

    remote = source.unfenced_client()
    await client.create(config("deleted-meanwhile", "grey", **{MIRROR_OF: SOURCE}))
    await client.create(config("private", "blue"))
    async with operator(cluster_mirror, setup=lambda mgr: cluster_mirror.setup(mgr, source.config)) as mgr:
        await eventually(lambda: is_gone("deleted-meanwhile"), timeout=LONGEST_WAIT)
        await remote.create(config("unlabelled", "white"))
        settings = await remote.create(config("settings", "red", mirror="true"))
        mirror = await find(core.ConfigMap, settings.metadata, has("red"))
        assert await is_gone("unlabelled")

        await remote.patch(settings, ctrl.merge_patch({"data": {"color": "green"}}))
        await find(core.ConfigMap, settings.metadata, has("green"))
        await client.patch(mirror, ctrl.merge_patch({"data": {"color": "black", "size": "3"}}))
        await find(core.ConfigMap, settings.metadata, has("green"))
        await client.delete(mirror)
        await find(core.ConfigMap, settings.metadata, lambda found: found.metadata.uid != mirror.metadata.uid)

        unmirrored = await remote.create(config("flags", "red", mirror="true"))
        await find(core.ConfigMap, unmirrored.metadata)
        await remote.patch(unmirrored, ctrl.merge_patch({"metadata": {"labels": {"mirror": None}}}))
        await eventually(lambda: is_gone("flags"), timeout=LONGEST_WAIT)

        same_name = await remote.create(config("private", "red", mirror="true"))
        await remote.delete(same_name)
        last = await remote.create(config("last", "red", mirror="true"))
        await find(core.ConfigMap, last.metadata)
        await find(core.ConfigMap, same_name.metadata, has("blue"))

        await find(core.ConfigMap, settings.metadata, has("green"))
        assert await second_pass(mgr) == []
