"""Runs after the blocks of docs/how-to/logs.md, in their namespace."""

import asyncio

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment, eventually


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(Reconciler(mgr))
    async with ctrl.running(mgr):
        await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="web", namespace="default")))

        async def is_recorded() -> bool:
            events = await mgr.api_reader.list(core.Event, namespace="default")
            return any(event.reason == "NoColor" for event in events)

        assert await eventually(is_recorded)


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
