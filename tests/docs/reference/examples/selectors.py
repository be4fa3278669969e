"""Runs after the blocks of docs/reference/examples/selectors.md, in their namespace."""

import asyncio

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    async with ctrl.running(mgr):
        for name, labels in (("arena", ARENA), ("lobby", LOBBY), ("probe", {**LOBBY, "debug": "true"})):
            containers = [core.Container(name="game", image="example.com/game:1")]
            spec = core.PodSpec(node_name="node-1", containers=containers)
            metadata = meta.ObjectMeta(name=name, namespace="default", labels=labels)
            await mgr.client.create(core.Pod(metadata=metadata, spec=spec))
        for name in ("lobby", "probe"):
            failed = await mgr.api_reader.get(core.Pod, ctrl.NamespacedName("default", name))
            failed.status.phase = "Failed"
            await mgr.client.status.update(failed)
        assert await stuck(mgr.api_reader, "node-1") == ["lobby"]
        assert await stuck(mgr.api_reader, "node-2") == []


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
