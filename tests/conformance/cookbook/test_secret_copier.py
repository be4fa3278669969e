from __future__ import annotations

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import eventually, second_pass
from examples.cookbook import secret_copier
from examples.cookbook.secret_copier import COPY_TO


def secret(name: str, namespace: str, password: str, **annotations: str) -> core.Secret:
    metadata = meta.ObjectMeta(name=name, namespace=namespace, annotations=annotations)
    return core.Secret(metadata=metadata, string_data={"password": password})


async def test_secret_copier(operator, find, client, new_namespace):
    home, blog, shop = (new_namespace() for _ in range(3))
    in_blog, in_shop = (ctrl.NamespacedName(namespace, "registry") for namespace in (blog, shop))

    def has(password: bytes):
        return lambda copy: copy.data == {"password": password}

    async def is_gone(key: ctrl.ObjectKey) -> bool:
        return await client.get_or_none(core.Secret, key) is None

    async with operator(secret_copier, cache=ctrl.CacheOptions(namespaces=[home, blog, shop])) as mgr:
        foreign = await client.create(secret("registry", blog, "private"))
        source = await client.create(secret("registry", home, "horse", **{COPY_TO: f"{blog}, {shop}, {home}"}))
        copy = await find(core.Secret, in_shop, has(b"horse"))
        assert COPY_TO not in copy.metadata.annotations
        assert (await client.get(core.Secret, in_blog)).data == {"password": b"private"}
        await client.delete(foreign)
        await find(core.Secret, in_blog, has(b"horse"))

        await client.patch(source, ctrl.merge_patch({"stringData": {"password": "battery"}}))
        await find(core.Secret, in_shop, has(b"battery"))
        await client.patch(copy, ctrl.merge_patch({"stringData": {"password": "changed", "more": "added"}}))
        await find(core.Secret, in_shop, has(b"battery"))
        await client.delete(copy)
        await find(core.Secret, in_shop, lambda found: found.metadata.uid != copy.metadata.uid)

        await client.patch(source, ctrl.merge_patch({"metadata": {"annotations": {COPY_TO: blog}}}))
        await eventually(lambda: is_gone(in_shop), timeout=LONGEST_WAIT)

        short_lived = await client.create(secret("token", home, "staple", **{COPY_TO: shop}))
        await find(core.Secret, ctrl.NamespacedName(shop, "token"), has(b"staple"))
        await client.delete(short_lived)
        await eventually(lambda: is_gone(short_lived.metadata), timeout=LONGEST_WAIT)
        assert await is_gone(ctrl.NamespacedName(shop, "token"))

        await find(core.Secret, in_blog, has(b"battery"))
        assert await second_pass(mgr) == []
