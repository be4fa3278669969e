"""Runs after the blocks of docs/how-to/caches.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = build(config)
    async with ctrl.running(mgr):
        assert await mgr.client.list(apps.Deployment, namespace="shop") is not None
        assert await mgr.client.get_or_none(core.Secret, ctrl.NamespacedName("default", "none")) is None
        await mgr.cache.wait_for_cache_sync()
        assert problems(mgr.cache) == {}
        await move(mgr)
        assert await any_deployment(mgr.client, ctrl.NamespacedName("default", "none")) is None
        try:
            await mgr.client.list(core.ConfigMap, namespace="default")
        except ctrl.errors.NotCachedError:
            return
        raise AssertionError("a namespace that is not cached was read")


async def read_with_long_watches(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, cache=QUIET, metrics_bind_address="0")
    async with ctrl.running(mgr):
        assert len(await mgr.client.list(core.Namespace)) > 0


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
    asyncio.run(read_with_long_watches(ctrl.get_config(str(environment.kubeconfig_path))))
