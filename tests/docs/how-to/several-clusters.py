"""Runs after the blocks of docs/how-to/several-clusters.md, in their namespace."""

import asyncio


async def run_the_example(hub: ctrl.Config, other: ctrl.Config) -> None:
    mgr = build(hub, {"eu": other})
    elsewhere = ctrl.Cluster(other)
    named = meta.ObjectMeta(name="web", namespace="default", labels={"copy": "true"})
    async with ctrl.running(mgr):
        await elsewhere.unfenced_client().create(core.ConfigMap(metadata=named, data={"color": "red"}))

        async def is_copied(cluster: str) -> bool:
            key = ctrl.NamespacedName("default", f"{cluster}-web")
            found = await mgr.api_reader.get_or_none(core.ConfigMap, key)
            return found is not None and found.data == {"color": "red"}

        assert await eventually(lambda: is_copied("eu"))
        await replace(mgr, "eu", other)
        assert mgr.fleet.names() == ["eu"]
    await elsewhere.close()


async def run_the_providers(hub: ctrl.Config, kubeconfig: bytes) -> None:
    home = ctrl.Cluster(hub)
    client = home.unfenced_client()
    await client.create(core.Namespace(metadata=meta.ObjectMeta(name="fleet")))
    metadata = meta.ObjectMeta(name="eu", namespace="fleet", labels={"example.com/cluster": "yes"})
    await client.create(core.Secret(metadata=metadata, data={"kubeconfig": kubeconfig}))

    async def look() -> Mapping[str, bytes]:
        return {"us": kubeconfig}

    mgr = build_fleet(hub)
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced and mgr.fleet.names() == ["secrets/eu"])
        copy = ctrl.NamespacedName("default", "secrets.eu-web")
        await eventually(lambda: mgr.api_reader.get_or_none(core.ConfigMap, copy))
    registered = ctrl.new_manager(hub, fleet=ctrl.Fleet(Registry(look)), metrics_bind_address="0")
    async with ctrl.running(registered):
        await eventually(lambda: registered.fleet.is_synced)
        assert registered.fleet.names() == ["registry/us"]
    await home.close()


with Environment(backend="embedded") as one, Environment(backend="embedded") as two:
    hub, other = (ctrl.get_config(str(each.kubeconfig_path)) for each in (one, two))
    asyncio.run(run_the_example(hub, other))
    asyncio.run(run_the_providers(hub, two.kubeconfig_path.read_bytes()))
asyncio.run(test_config_maps_are_copied())
