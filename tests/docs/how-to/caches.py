"""Runs after the blocks of docs/how-to/caches.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = build(config)
    async with ctrl.running(mgr):
        assert await mgr.client.list(apps.Deployment, namespace="shop") is not None
        assert await mgr.client.get_or_none(core.Secret, ctrl.NamespacedName("default", "none")) is None
        await move(mgr)
        assert await any_deployment(mgr.client, ctrl.NamespacedName("default", "none")) is None
        try:
            await mgr.client.list(core.ConfigMap, namespace="default")
        except ctrl.errors.NotCachedError:
            return
        raise AssertionError("a namespace that is not cached was read")


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
