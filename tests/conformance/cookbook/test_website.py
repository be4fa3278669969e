from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.testing import second_pass
from examples.cookbook import website
from examples.cookbook.website import Website, WebsiteSpec


async def test_website(operator, find, client, namespace):
    site = Website(
        metadata=meta.ObjectMeta(name="shop", namespace=namespace), spec=WebsiteSpec(image="nginx:1.29", replicas=2)
    )

    def is_ready(found: Website) -> bool:
        condition = ctrl.find_condition(found.status.conditions, "Ready")
        return (
            condition is not None
            and condition.status == "True"
            and condition.observed_generation == found.metadata.generation
            and found.status.ready_replicas == found.spec.replicas
        )

    async with operator(website) as mgr:
        await client.create(site)
        await find(Website, site.metadata, is_ready)
        deployment = await find(apps.Deployment, site.metadata)
        assert deployment.spec.template.spec.containers[0].image == "nginx:1.29"
        assert (await find(core.Service, site.metadata)).spec.selector == {"website": "shop"}

        await client.patch(deployment, ctrl.merge_patch({"spec": {"replicas": 7}}))
        await find(apps.Deployment, site.metadata, lambda found: found.spec.replicas == 2)
        await client.patch(site, ctrl.merge_patch({"spec": {"replicas": 3, "image": "nginx:1.30"}}))
        await find(Website, site.metadata, lambda found: found.status.ready_replicas == 3 and is_ready(found))

        assert await second_pass(mgr) == []
