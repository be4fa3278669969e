"""Runs after the blocks of docs/how-to/webhooks.md, in their namespace."""

import asyncio

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment, eventually


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = build(config)
    named = meta.ObjectMeta(namespace="default", name="shop")
    pod = core.Pod(metadata=named.deep_copy(), spec=core.PodSpec(containers=[core.Container(name="c", image="c")]))
    async with ctrl.running(mgr):

        async def is_asked() -> bool:
            labelled = await mgr.client.create(pod.deep_copy(), dry_run=True)
            return labelled.metadata.labels.get("team") == "default"

        await eventually(is_asked, timeout=20)
        site = await mgr.client.create(Website(metadata=named, spec=WebsiteSpec(image="nginx", replicas=11)))
        assert site.spec.host == "shop.example.com"
        old = await mgr.api_reader.get(OldWebsite, ctrl.object_key(site))
        assert old.spec.size == 11
        site.spec.host = "other.example.com"
        try:
            await mgr.client.update(site)
        except ctrl.errors.Forbidden as error:
            assert "stays as it is" in str(error)
        else:
            raise AssertionError("the host was changed")


async def convert_without_the_first(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config, scheme=ctrl.Scheme(Website, OldWebsite))
    await cluster.unfenced_client().delete(
        Website(metadata=meta.ObjectMeta(namespace="default", name="shop"), spec=WebsiteSpec(image="x"))
    )
    await cluster.close()
    await convert_on_the_server(config)


test_no_field_is_lost()

with Environment(backend="embedded") as environment:
    found = ctrl.get_config(str(environment.kubeconfig_path))

    async def install() -> None:
        cluster = ctrl.Cluster(found)
        await ctrl.install_crds(cluster.unfenced_client(), Website, OldWebsite)
        await cluster.close()

    asyncio.run(install())
    asyncio.run(run_the_examples(found))
    asyncio.run(convert_without_the_first(found))
