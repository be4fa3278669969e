"""Runs after the blocks of docs/how-to/watch-and-filter.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    Reconciler(mgr.client).setup_with_manager(mgr)
    add_indexes(mgr)
    async with ctrl.running(mgr):
        assert await pods_on(mgr.client, "no-such-node") == []
        assert await pods_of(mgr.client, ctrl.Request("default", "web")) == []


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
