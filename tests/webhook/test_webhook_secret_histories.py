"""Random histories of replicas that share a certificate in a Secret, of other people's edits, and of time: every replica shows a
certificate that the API server trusts.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from cryptography import x509

from ctrlruntime.api import core
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import AlreadyExists, Conflict, NotFound, TransportError
from ctrlruntime.webhook.configurations import Mutating
from ctrlruntime.webhook.secret import SecretCertificates, SecretStore

INTERVAL, LIFETIME, CA_LIFETIME = 60.0, 900.0, 2400.0
OURS = ["tls.crt", "tls.key", "ca.crt", "signer.crt", "signer.key", "next.crt", "next.key"]


class World:
    """A clock, and a cluster with one Secret and one webhook configuration whose answers come in random order."""

    def __init__(self, random):
        self.random, self.moment, self.version = random, datetime(2026, 1, 1, tzinfo=UTC), 0
        self.objects = {core.Secret: None}
        self.fails = 0.0
        hooks = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "hooks"},
            "webhooks": [{"clientConfig": {}}],
        }
        self.put(Mutating.from_dict(hooks))

    @property
    def api_reader(self):
        return self

    def put(self, obj):
        self.version += 1
        obj.metadata.resource_version = str(self.version)
        self.objects[type(obj)] = obj.deep_copy()

    async def _travel(self):
        for _ in range(self.random.randrange(4)):
            await asyncio.sleep(0)
        if self.random.random() < self.fails:
            raise TransportError("reset")

    async def get_or_none(self, kind, key):
        await self._travel()
        found = self.objects[kind]
        return None if found is None else found.deep_copy()

    async def create(self, obj):
        await self._travel()
        if self.objects[type(obj)] is not None:
            raise AlreadyExists
        self.put(obj)
        await self._travel()

    async def update(self, obj):
        await self._travel()
        present = self.objects[type(obj)]
        if present is None:
            raise NotFound
        if present.metadata.resource_version != obj.metadata.resource_version:
            raise Conflict
        self.put(obj)
        await self._travel()
        return obj

    @property
    def bundle(self):
        """What the API server trusts."""
        return base64.b64decode(self.objects[Mutating]["webhooks"][0]["clientConfig"]["caBundle"])

    def trusts(self, pair, host):
        leaf = x509.load_pem_x509_certificate(pair.certificate)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        for each in x509.load_pem_x509_certificates(self.bundle):
            with contextlib.suppress(Exception):
                leaf.verify_directly_issued_by(each)
                return host in names.get_values_for_type(x509.DNSName) and all(
                    one.not_valid_before_utc <= self.moment < one.not_valid_after_utc for one in (leaf, each)
                )
        return False


class Replica:
    def __init__(self, world, host, ahead):
        self.world, self.host, self.shown = world, host, None
        options = SecretCertificates(
            name="cert",
            namespace="ns",
            service="hooks",
            mutating=["hooks"],
            dns_names=[host],
            lifetime=LIFETIME,
            ca_lifetime=CA_LIFETIME,
            interval=INTERVAL,
        )
        self.store = SecretStore(options, world, now=lambda: world.moment + timedelta(seconds=ahead))

    async def look(self):
        """As the store's own loop does: an error is for the next look."""
        with contextlib.suppress(TransportError):
            if self.shown is None:
                self.shown = await self.store.prepare()
            else:
                await self.store._look(self.show)

    def show(self, pair):
        self.shown = pair

    @property
    def is_served(self):
        return self.shown is None or self.world.trusts(self.shown, self.host)


def edit(random, world):
    """Do to the Secret what other people may do."""
    secret = world.objects[core.Secret]
    if secret is None:
        return
    secret = secret.deep_copy()
    name = random.choice(OURS)
    match random.randrange(5):
        case 0:
            world.objects[core.Secret] = None
            return
        case 1:
            secret.data.pop(name, None)
        case 2:
            secret.data[name] = random.choice([b"", b"nonsense", make_authority("stranger", now=world.moment).pem])
        case 3:
            stranger = make_authority("stranger", now=world.moment)
            secret.data |= {"signer.crt": stranger.pem, "signer.key": stranger.pair.key}
        case 4:
            secret.data = {}
    world.put(secret)


async def live(seed, length):
    random = Random(seed)
    world = World(random)
    replicas = [
        Replica(world, random.choice(["a", "a", "b"]), random.choice([0.0, 0.0, -20.0, 20.0]))
        for _ in range(random.randrange(1, 4))
    ]
    for number in range(length):
        world.moment += timedelta(seconds=random.uniform(INTERVAL, 2 * INTERVAL))
        world.fails = random.choice([0.0, 0.0, 0.1])
        await asyncio.gather(*(replica.look() for replica in replicas))
        assert all(replica.is_served for replica in replicas), f"seed {seed}, round {number}"
        if random.random() < 0.1:
            secret = world.objects[core.Secret]
            if secret is not None:
                theirs = secret.deep_copy()
                theirs.data["theirs"], theirs.metadata.labels["theirs"] = b"1", "1"
                world.put(theirs)
        if random.random() < 0.1:
            edit(random, world)
            world.fails = 0.0
            has_theirs = (secret := world.objects[core.Secret]) is not None and "theirs" in secret.data
            for _ in range(3):
                world.moment += timedelta(seconds=INTERVAL)
                await asyncio.gather(*(replica.look() for replica in replicas))
            assert all(replica.is_served for replica in replicas), f"seed {seed}, round {number}, after an edit"
            assert not has_theirs or world.objects[core.Secret].data["theirs"] == b"1"
        if random.random() < 0.1:
            replicas[random.randrange(len(replicas))] = Replica(world, random.choice(["a", "b"]), 0.0)
    world.fails = 0.0
    for _ in range(2):
        await asyncio.gather(*(replica.look() for replica in replicas))
    version = world.version
    await asyncio.gather(*(replica.look() for replica in replicas))
    assert len({replica.shown for replica in replicas}) == 1, f"seed {seed}: the replicas do not agree"
    assert world.version == version, f"seed {seed}: the replicas do not come to rest"


@pytest.mark.parametrize("seed", range(12))
async def test_every_replica_shows_what_the_api_server_trusts(seed):
    await live(seed, 80)


@pytest.mark.thorough
async def test_in_many_lives_every_replica_shows_what_the_api_server_trusts():
    for seed in range(100, 400):
        await live(seed, 40)
