"""A read of the manager's client is never older than its own writes, on both servers."""

import asyncio

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.manager.manager import running


async def test_what_lost_its_last_finalizer_is_not_read_again(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")
    async with running(mgr), asyncio.timeout(LONGEST_WAIT):
        for number in range(20):
            held = core.ConfigMap(metadata=meta.ObjectMeta(name=f"held-{number}", namespace=namespace))
            ctrl.add_finalizer(held, "example.com/held")
            await mgr.client.create(held)
            await mgr.client.delete(held)
            held = await mgr.client.get(core.ConfigMap, ctrl.object_key(held))
            ctrl.remove_finalizer(held, "example.com/held")

            await mgr.client.update(held)

            assert await mgr.client.get_or_none(core.ConfigMap, ctrl.object_key(held)) is None


async def test_a_deleted_collection_is_not_listed_again(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")
    mine = {"example.com/mine": "yes"}
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        for number in range(10):
            names = [f"one-{number}", f"two-{number}"]
            for name in names:
                metadata = meta.ObjectMeta(name=name, namespace=namespace, labels=mine)
                await mgr.client.create(core.ConfigMap(metadata=metadata))
            assert [m.name for m in (await mgr.client.list(core.ConfigMap, labels=mine)).metadata] == names

            await mgr.client.delete_all_of(core.ConfigMap, namespace=namespace, labels=mine)

            assert len(await mgr.client.list(core.ConfigMap, labels=mine)) == 0
            assert await mgr.client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, names[0])) is None
