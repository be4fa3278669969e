"""Runs after the blocks of docs/learn/one-file.md, in their namespace."""

import asyncio
import pathlib
import re

import yaml

from ctrlruntime.testing import Environment, eventually


async def run_the_page(environment: Environment) -> None:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(environment.kubeconfig_path)), scheme=ctrl.Scheme(Website), metrics_bind_address="0"
    )
    WebsiteReconciler(mgr.client).setup_with_manager(mgr)
    website = Website(metadata=meta.ObjectMeta(name="shop", namespace="default"), spec=WebsiteSpec(image="nginx"))
    async with ctrl.running(mgr):
        await mgr.client.create(website)

        async def is_ready() -> bool:
            return ctrl.is_condition_true((await mgr.client.get(Website, website.metadata)).status.conditions, "Ready")

        assert await eventually(is_ready)


page = pathlib.Path("docs/learn/one-file.md").read_text()
definition = re.search(r"```yaml\n(.*?)```", page, re.DOTALL)
with Environment(backend="embedded", crds=yaml.safe_load(definition[1])) as environment:
    asyncio.run(run_the_page(environment))
