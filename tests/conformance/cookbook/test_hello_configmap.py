from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import second_pass
from examples.cookbook import hello_configmap


async def test_hello_configmap(operator, find, client, namespace):
    greeted = core.ConfigMap(
        metadata=meta.ObjectMeta(name="ada", namespace=namespace, labels={"greet": ""}), data={"name": "Ada"}
    )
    other = core.ConfigMap(metadata=meta.ObjectMeta(name="other", namespace=namespace), data={"name": "Bob"})
    async with operator(hello_configmap) as mgr:
        await client.create(other)
        await client.create(greeted)
        await find(
            core.ConfigMap, greeted.metadata, lambda config: config.data == {"name": "Ada", "greeting": "Hello, Ada!"}
        )

        await client.patch(greeted, ctrl.merge_patch({"data": {"greeting": "Go away!", "name": "Grace"}}))
        await find(core.ConfigMap, greeted.metadata, lambda config: config.data["greeting"] == "Hello, Grace!")

        assert (await client.get(core.ConfigMap, other.metadata)).data == {"name": "Bob"}
        assert await second_pass(mgr) == []
