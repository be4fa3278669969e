from __future__ import annotations

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import second_pass
from examples.cookbook import generated_password
from examples.cookbook.generated_password import Password, PasswordSpec


async def test_generated_password(operator, find, client, namespace):
    database = Password(metadata=meta.ObjectMeta(name="database", namespace=namespace), spec=PasswordSpec(length=24))
    cache = Password(metadata=meta.ObjectMeta(name="cache", namespace=namespace))

    def is_ready(found: Password, reason: str = "Generated") -> bool:
        ready = ctrl.find_condition(found.status.conditions, "Ready")
        return (
            ready is not None
            and ready.reason == reason
            and ready.status == ("True" if reason == "Generated" else "False")
            and ready.observed_generation == found.metadata.generation
        )

    async with operator(generated_password) as mgr:
        await client.create(database)
        await find(Password, database.metadata, is_ready)
        secret = await find(core.Secret, database.metadata)
        value = secret.data["password"]
        assert len(value) == 24

        # A new length is for the next value. Another client cannot change the value.
        await client.patch(database, ctrl.merge_patch({"spec": {"length": 40}}))
        await find(Password, database.metadata, lambda found: found.metadata.generation == 2 and is_ready(found))
        assert (await client.get(core.Secret, database.metadata)).data == {"password": value}
        with pytest.raises(ctrl.Invalid):
            await client.patch(secret, ctrl.merge_patch({"stringData": {"password": "weak"}}))

        await client.delete(secret)
        secret = await find(core.Secret, database.metadata, lambda found: found.metadata.uid != secret.metadata.uid)
        assert len(secret.data["password"]) == 40
        assert secret.data["password"] != value

        # A Secret of another owner stays as it is, until that owner deletes it.
        foreign = core.Secret(metadata=cache.metadata.deep_copy(), string_data={"password": "by hand"})
        await client.create(foreign)
        await client.create(cache)
        await find(Password, cache.metadata, lambda found: is_ready(found, "SecretExists"))
        assert (await client.get(core.Secret, cache.metadata)).data == {"password": b"by hand"}
        await client.delete(foreign)
        await find(Password, cache.metadata, is_ready)
        assert len((await client.get(core.Secret, cache.metadata)).data["password"]) == 32

        assert await second_pass(mgr) == []
