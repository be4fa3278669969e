"""Runs after the blocks of docs/reference/examples/owners-and-conditions.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    async with ctrl.running(mgr):
        client = mgr.client
        for name in ("games", "berlin", "paris"):
            await client.create(core.Namespace(metadata=meta.ObjectMeta(name=name)))
        owner = core.ConfigMap(metadata=meta.ObjectMeta(name="chess", namespace="games"))
        await client.create(owner)
        for namespace in ("paris", "berlin"):
            copy = core.Secret(metadata=meta.ObjectMeta(name="token", namespace=namespace))
            controllerutil.set_tracked_owner(owner, copy)
            await client.create(copy)
        assert await mirrors(client, owner) == ["berlin", "paris"]

        key = ctrl.NamespacedName("games", "chess")
        assert await publish(client, key, "203.0.113.7") == ctrl.OperationResult.CREATED
        assert await publish(client, key, "203.0.113.7") == ctrl.OperationResult.UNCHANGED
        assert await publish(client, key, "203.0.113.8") == ctrl.OperationResult.UPDATED_STATUS_ONLY
        found = await client.get(core.Service, key)
        assert found.status.load_balancer.ingress[0].ip == "203.0.113.8"

        await keep_maps(client, owner, ["openings", "endings"])
        maps = await client.list(core.ConfigMap, namespace="games", labels={"game": "chess"})
        assert sorted(each.metadata.name for each in maps) == ["endings", "openings"]
        assert all(controllerutil.has_owner(owner, each) for each in maps)

        assert ctrl.add_finalizer(owner, FINALIZER)
        await client.update(owner)
        await client.delete(owner)
        assert needs_refund(await client.get(core.ConfigMap, key))


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
