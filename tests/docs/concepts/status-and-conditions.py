"""Runs after the blocks of docs/concepts/status-and-conditions.md, in their namespace."""

import asyncio

from ctrlruntime.generate import crds
from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config, namespace: str) -> None:
    mgr = ctrl.new_manager(config, scheme=ctrl.Scheme(Website), metrics_bind_address="0")
    async with ctrl.running(mgr):
        shop = await mgr.client.create(Website(metadata=meta.ObjectMeta(name="shop", namespace=namespace)))
        await reconcile(mgr.client, shop)
        found = await mgr.api_reader.get(Website, shop.metadata)
        assert ctrl.is_condition_true(found.status.conditions, "Ready")
        assert found.to_dict()["status"]["readyReplicas"] == 0
        stored = await mgr.api_reader.get(ctrl.Unstructured.of("web.example.com/v1", "Website"), shop.metadata)
        assert stored["status"]["readyReplicas"] == 0

        # The name of a Service has no dots, so the API server rejects this one.
        wrong = await mgr.client.create(Website(metadata=meta.ObjectMeta(name="shop.example", namespace=namespace)))
        try:
            await reconcile(mgr.client, wrong)
        except ctrl.Invalid:
            found = await mgr.api_reader.get(Website, wrong.metadata)
            assert ctrl.is_condition_false(found.status.conditions, "Ready"), found
        else:
            raise AssertionError("the Service was created")


with Environment(backend="embedded", crds=crds([Website])) as environment:
    config = ctrl.get_config(str(environment.kubeconfig_path))
    asyncio.run(run_the_examples(config, environment.create_namespace()))
