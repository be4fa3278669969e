"""Runs after the blocks of docs/learn/from-kubebuilder.md, in their namespace."""

WebsiteReconciler.update_status = update_status

WebsiteReconciler.finalized = finalized

import asyncio

from ctrlruntime.generate import crds


async def run_the_operator(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config)
    await ctrl.install_crds(cluster.unfenced_client(), Website, OldWebsite)
    await cluster.close()
    mgr = build(config, ctrl.parse_flags(["--zap-log-level=error"]))
    client = mgr.client
    async with ctrl.running(mgr):

        async def made() -> Website:
            named = meta.ObjectMeta(name="shop", namespace="default")
            return await client.create(Website(metadata=named, spec=WebsiteSpec(image="nginx")), dry_run=True)

        async def is_asked() -> bool:
            return (await made()).spec.host == "shop.x.io"

        await eventually(is_asked, timeout=20)
        named = meta.ObjectMeta(name="shop", namespace="default")
        site = await client.create(Website(metadata=named, spec=WebsiteSpec(image="nginx")))

        async def is_ready() -> bool:
            return ctrl.is_condition_true((await client.get(Website, site.metadata)).status.conditions, "Ready")

        await eventually(is_ready, timeout=20)
        site = await client.get(Website, site.metadata)
        assert site.metadata.finalizers == ["x.io/release"]
        assert (await mgr.api_reader.get(OldWebsite, ctrl.object_key(site))).spec.image == "nginx"
        site.spec.host = "other"
        try:
            await client.update(site.deep_copy())
        except ctrl.errors.Invalid as error:
            assert "it stays as it is" in str(error)
        else:
            raise AssertionError("the host was changed")
        await client.delete(site)

        async def is_gone() -> bool:
            return await mgr.api_reader.get_or_none(Website, site.metadata) is None

        await eventually(is_gone, timeout=20)
        assert released == ["shop.x.io"]


(definition,) = crds([Website, OldWebsite], warn=lambda text: None)
stored = definition["spec"]["versions"][0]
assert stored["name"] == "v1"
assert stored["additionalPrinterColumns"][0]["type"] == "integer"
assert stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] == {
    "host": {"type": "string"},
    "image": {"type": "string", "minLength": 1},
    "pages": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "title": {"type": "string"}},
            "required": ["name"],
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "replicas": {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "maximum": 20},
    "size": {"type": "string", "enum": ["Small", "Large"]},
}
assert stored["subresources"] == {"status": {}}

with Environment(backend="embedded") as environment:
    asyncio.run(run_the_operator(ctrl.get_config(str(environment.kubeconfig_path))))
