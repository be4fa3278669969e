"""Runs after the blocks of docs/how-to/recipes.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment, eventually


async def run_the_examples(config: ctrl.Config) -> None:
    scheme = ctrl.Scheme(Database)
    mgr = ctrl.new_manager(config, scheme=scheme, metrics_bind_address="0")
    setup_with_manager(mgr)
    client, key = mgr.client, ctrl.NamespacedName("default", "main")
    await ctrl.install_crds(mgr.cluster.unfenced_client(), Database)
    async with ctrl.running(mgr):
        database = Database(metadata=meta.ObjectMeta(name="main", namespace="default"), spec=DatabaseSpec(budget=True))
        await client.create(database)
        assert await eventually(lambda: client.get_or_none(policy.PodDisruptionBudget, key))

        async def rolled_out() -> apps.Deployment | None:
            found = await client.get_or_none(apps.Deployment, key)
            return found if found is not None and is_rolled_out(found) else None

        before = await eventually(rolled_out)
        password = await client.get(core.Secret, ctrl.NamespacedName("default", "main-password"))
        await client.patch(database, ctrl.merge_patch({"spec": {"budget": False}}))

        async def has_no_budget() -> bool:
            return await client.get_or_none(policy.PodDisruptionBudget, key) is None

        assert await eventually(has_no_budget)

        async def is_replaced() -> bool:
            found = await rolled_out()
            return found is not None and found.spec.template != before.spec.template

        assert await eventually(is_replaced)
        # A budget of another client stays, and so does everything while the object is paused.
        foreign = policy.PodDisruptionBudget(metadata=meta.ObjectMeta(name="main", namespace="default"))
        await client.create(foreign)
        await keep_budget(client, await client.get(Database, key))
        assert await client.get_or_none(policy.PodDisruptionBudget, key) is not None
        await client.delete(foreign)
        paused = {"metadata": {"annotations": {PAUSED: "true"}}, "spec": {"budget": True}}
        await client.patch(database, ctrl.merge_patch(paused))
        await DatabaseReconciler(client).reconcile(ctrl.Request("default", "main"))
        assert await has_no_budget()
        await client.patch(database, ctrl.merge_patch({"metadata": {"annotations": {PAUSED: None}}}))
        assert await eventually(lambda: client.get_or_none(policy.PodDisruptionBudget, key))
        result = await Timer(client, "probe", 30).reconcile(ctrl.Request("default", "main"))
        assert result == ctrl.Result(requeue_after=30)
        assert (await client.get(core.Secret, password.metadata)).data == password.data
        try:
            await client.patch(database, ctrl.merge_patch({"spec": {"engine": "mysql"}}))
        except ctrl.Invalid as error:
            assert "spec.engine" in str(error), error
        else:
            raise AssertionError("the field was changed")
        await client.delete(database)

        async def is_gone() -> bool:
            return await mgr.api_reader.get_or_none(Database, key) is None

        assert await eventually(is_gone, timeout=60)


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
