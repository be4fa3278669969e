"""The certificate in a Secret, kept by replicas of which some are slow, on both servers."""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime, timedelta

import pytest

from ctrlruntime.api import core
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client import APIClient
from ctrlruntime.scheme import Scheme
from ctrlruntime.webhook.configurations import Mutating
from ctrlruntime.webhook.secret import SecretCertificates, SecretStore

DAY = 86400.0


class Clock:
    def __init__(self):
        self.moment = datetime.now(UTC)

    def __call__(self):
        return self.moment


@pytest.fixture
async def hooks(client, namespace):
    config = {"service": {"namespace": namespace, "name": "hooks"}}
    webhook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": config}
    tree = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    obj = Mutating.from_dict({**tree, "metadata": {"name": namespace}, "webhooks": [webhook]})
    await client.create(obj)
    yield obj
    await client.delete(obj)


async def test_replicas_keep_a_secret_that_others_edit(client, namespace, hooks):
    clock = Clock()
    options = SecretCertificates(
        name="cert", namespace=namespace, service="hooks", mutating=[hooks.metadata.name], dns_names=["10.0.0.1"]
    )
    stores = [SecretStore(options, client, now=clock) for _ in range(4)]
    key = NamespacedName(namespace, "cert")

    async def look():
        """Let all replicas look at once; return the Secret they agree on."""
        shown = []
        await asyncio.gather(*(store._look(shown.append) for store in stores))
        secret = await client.get(core.Secret, key)
        assert {pair.certificate for pair in shown} <= {secret.data["tls.crt"]}
        present = await client.get(Mutating, NamespacedName("", hooks.metadata.name))
        assert base64.b64decode(present["webhooks"][0]["clientConfig"]["caBundle"]) == secret.data["ca.crt"]
        return secret

    assert len(set(await asyncio.gather(*(store.prepare() for store in stores)))) == 1
    made = await look()
    assert (await look()).metadata.resource_version == made.metadata.resource_version

    edited = made.deep_copy()
    edited.metadata.labels["theirs"] = edited.metadata.annotations["theirs"] = "1"
    edited.data |= {"theirs": b"1", "tls.crt": b""}  # a Secret of this type must have the key
    await client.update(edited)
    mended = await look()
    assert mended.data == made.data | {
        "theirs": b"1",
        "tls.crt": mended.data["tls.crt"],
        "tls.key": mended.data["tls.key"],
    }
    assert mended.metadata.labels == mended.metadata.annotations == {"theirs": "1"}

    clock.moment += timedelta(days=2440)  # two thirds of the CA's ten years
    announced = await look()
    clock.moment += timedelta(seconds=61)
    signing = await look()
    assert signing.data["signer.crt"] == announced.data["next.crt"]
    assert signing.data["ca.crt"] == announced.data["next.crt"] + made.data["ca.crt"]
    assert signing.data["theirs"] == b"1"

    await client.delete(signing)
    again = await look()
    assert again.metadata.uid != signing.metadata.uid
    assert again.data["ca.crt"] == again.data["signer.crt"]


async def test_a_secret_that_is_deleted_while_a_replica_mends_it_is_made_anew(client, namespace):
    options = SecretCertificates(name="cert", namespace=namespace, service="hooks")
    pair = await SecretStore(options, client).prepare()

    class Late(APIClient):
        """A client in front of which somebody deletes the Secret."""

        async def update(self, obj, *, subresource=""):
            await client.delete(core.Secret.from_dict(obj.to_dict()))
            return await client.update(obj)

    later = datetime.now(UTC) + timedelta(days=62)
    slow = Late(client._transport, client._mapper, Scheme())
    renewed = await SecretStore(options, slow, now=lambda: later).prepare()

    assert renewed != pair
    assert (await client.get(core.Secret, NamespacedName(namespace, "cert"))).data["tls.crt"] == renewed.certificate
