"""Runs after the blocks of docs/how-to/metrics.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr, rollouts = build(config)
    async with ctrl.running(mgr):
        rollouts.inc()
        text = mgr.metrics.render()[0].decode()
        assert "website_rollouts_total 1.0" in text


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
