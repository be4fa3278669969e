"""Runs after the blocks of docs/how-to/errors-and-retries.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment, eventually


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0", cache=ctrl.CacheOptions(namespaces=["default"]))
    build(mgr)
    build_with_objects(mgr)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("blocking").complete(Blocking(mgr.client))
    async with ctrl.running(mgr):
        made = core.ConfigMap(metadata=meta.ObjectMeta(name="c", namespace="default"), data={"color": "red"})
        await mgr.client.create(made)
        await eventually(lambda: mgr.client.get_or_none(core.Secret, made.metadata))
        await reconcile(mgr.client, ctrl.Request("default", "c"))
        token = core.Secret(metadata=meta.ObjectMeta(name="Token", namespace="default"))
        assert (await create_secret(mgr.client, token)).startswith('metadata.name: Invalid value: "Token"')
        token.metadata.name = "token"
        assert await create_secret(mgr.client, token) == ""

        failures = [ctrl.errors.ServiceUnavailable("starting"), ctrl.errors.TransportError("connection refused")]

        async def get(client: ctrl.Client, kind: type[core.ConfigMap], key: ctrl.ObjectKey) -> core.ConfigMap:
            if failures:
                raise failures.pop()
            return await client.get(kind, key)

        unready = ctrl.client.intercept(mgr.client, get=get)
        assert await settings(unready, made.metadata, pause=0) is not None
        assert not failures
        await mgr.client.delete(made)
        await reconcile(mgr.client, ctrl.Request("default", "c"))
        assert await mgr.client.get_or_none(core.ConfigMap, made.metadata) is None


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
