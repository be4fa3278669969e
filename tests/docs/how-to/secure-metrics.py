"""Runs after the blocks of docs/how-to/secure-metrics.md, in their namespace."""

import asyncio

import aiohttp

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = build(config)
    async with ctrl.running(mgr), aiohttp.ClientSession() as session:
        host, port = mgr.metrics_address
        async with session.get(f"https://{host}:{port}/metrics", ssl=False) as response:
            assert response.status == 401  # no bearer token


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
