"""Runs after the blocks of docs/learn/from-kopf.md, in their namespace."""

WebsiteReconciler.update_status = update_status

WebsiteReconciler.finalized = finalized


async def run_the_operator(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config)
    await ctrl.install_crds(cluster.unfenced_client(), Website)
    await cluster.close()
    mgr = build(config, ctrl.parse_flags(["--zap-log-level=error"]))
    client = mgr.client
    async with ctrl.running(mgr):
        named = meta.ObjectMeta(name="shop", namespace="default", finalizers=[KOPF])

        async def is_asked() -> bool:
            site = await client.create(Website(metadata=named, spec=WebsiteSpec(image="nginx:1")), dry_run=True)
            return site.metadata.name == "shop"

        await eventually(is_asked, timeout=20)
        site = await client.create(Website(metadata=named.deep_copy(), spec=WebsiteSpec(image="nginx:1")))

        async def is_ready() -> bool:
            return ctrl.is_condition_true((await client.get(Website, site.metadata)).status.conditions, "Ready")

        await eventually(is_ready, timeout=20)
        site = await client.get(Website, site.metadata)
        assert site.metadata.finalizers == ["x.io/release"]
        latest = site.deep_copy()
        latest.spec.image = "nginx:latest"

        async def is_refused() -> bool:
            try:
                await client.update(latest.deep_copy(), dry_run=True)
            except ctrl.errors.Forbidden as error:
                return "give a version" in str(error)
            return False

        await eventually(is_refused, timeout=20)
        reconciles = 'controller_runtime_reconcile_total{controller="website",result="success"} '
        before = mgr.metrics.render()[0].decode().partition(reconciles)[2].split()[0]
        CHANGES.put_nowait(ctrl.event.GenericEvent.of(site))
        await eventually(lambda: mgr.metrics.render()[0].decode().partition(reconciles)[2].split()[0] != before)
        assert await pods_on(client, "no-such-node") == []
        await client.patch(site, ctrl.merge_patch({"metadata": {"labels": {"paused": ""}}, "spec": {"replicas": 2}}))
        await client.patch(site, ctrl.merge_patch({"metadata": {"labels": None}}))

        async def is_scaled() -> bool:
            return (await client.get(apps.Deployment, site.metadata)).spec.replicas == 2

        await eventually(is_scaled, timeout=20)
        await client.delete(site)

        async def is_gone() -> bool:
            return await mgr.api_reader.get_or_none(Website, site.metadata) is None

        await eventually(is_gone, timeout=20)
        assert released == ["shop"]


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_operator(ctrl.get_config(str(environment.kubeconfig_path))))
