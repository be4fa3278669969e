from __future__ import annotations

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.testing import eventually, second_pass
from examples.cookbook import config_reloader
from examples.cookbook.config_reloader import HASH, RELOAD

POD = {
    "initContainers": [
        {
            "name": "setup",
            "image": "busybox:1",
            "env": [{"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "regions", "key": "region"}}}],
        }
    ],
    "containers": [
        {
            "name": "web",
            "image": "nginx:1.29",
            "envFrom": [{"configMapRef": {"name": "colors"}}, {"configMapRef": {"name": "extras", "optional": True}}],
        }
    ],
    "volumes": [
        {"name": "pages", "configMap": {"name": "pages"}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "banners"}}]}},
    ],
}


def deployment(name: str, namespace: str, annotations: dict[str, str]) -> apps.Deployment:
    return apps.Deployment.from_dict(
        {
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": POD},
            },
        }
    )


async def is_uncached(mgr: ctrl.Manager, config: core.ConfigMap) -> bool:
    return await mgr.client.get_or_none(core.ConfigMap, config.metadata) is None


async def test_config_reloader(operator, find, client, namespace):
    def hash_of(found: apps.Deployment) -> str | None:
        return found.spec.template.metadata.annotations.get(HASH)

    async def change(config: core.ConfigMap, data: dict[str, str]) -> None:
        await client.patch(config, ctrl.merge_patch({"data": data}))

    async def new_hash(old: str | None) -> str:
        return hash_of(await find(apps.Deployment, web.metadata, lambda found: hash_of(found) not in {None, old}))

    async with operator(config_reloader) as mgr:
        web = await client.create(deployment("web", namespace, {RELOAD: "true"}))
        other = await client.create(deployment("other", namespace, {}))
        names = ("colors", "regions", "pages", "banners", "extras")
        configs = {
            name: core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace), data={"region": "eu"})
            for name in names
        }

        # The hash waits for all ConfigMaps that are not optional.
        for name in names[:-1]:
            await find(apps.Deployment, web.metadata, lambda found: found.status.observed_generation)
            assert await second_pass(mgr) == []
            assert hash_of(await client.get(apps.Deployment, web.metadata)) is None
            await client.create(configs[name])
        digest = await new_hash(None)
        await client.create(configs["extras"])
        digest = await new_hash(digest)

        for name in names:
            await change(configs[name], {"region": "us"})
            digest = await new_hash(digest)
        await client.patch(
            configs["pages"], ctrl.json_patch([{"op": "add", "path": "/binaryData", "value": {"a": "AA=="}}])
        )
        digest = await new_hash(digest)

        # A new label is no reason for a rollout. A missing ConfigMap is not one either, and neither is its return.
        before = await client.get(apps.Deployment, web.metadata)
        await client.patch(configs["colors"], ctrl.merge_patch({"metadata": {"labels": {"team": "web"}}}))
        await client.delete(configs["regions"])
        await eventually(lambda: is_uncached(mgr, configs["regions"]), timeout=LONGEST_WAIT)
        assert await second_pass(mgr) == []
        regions = core.ConfigMap(metadata=meta.ObjectMeta(name="regions", namespace=namespace), data={"region": "us"})
        await client.create(regions)
        await eventually(lambda: mgr.client.get(core.ConfigMap, regions.metadata), timeout=LONGEST_WAIT)
        assert await second_pass(mgr) == []
        assert (await client.get(apps.Deployment, web.metadata)).metadata.generation == before.metadata.generation

        # Another client removes the annotation.
        template = {"metadata": {"annotations": {HASH: None}}}
        await client.patch(before, ctrl.merge_patch({"spec": {"template": template}}))
        await find(apps.Deployment, web.metadata, lambda found: hash_of(found) == digest)
        assert hash_of(await client.get(apps.Deployment, other.metadata)) is None

        assert await second_pass(mgr) == []
