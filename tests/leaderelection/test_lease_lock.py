from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ctrlruntime.api import Object
from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, NotFound
from ctrlruntime.leaderelection import LeaderElection, LeaseLock, LeaseRecord

T0 = datetime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC)
OPTIONS = LeaderElection(id="lock", namespace="system", labels={"app": "memcached"})


class FakeClient:
    """Keeps objects as JSON, so what is tested is the wire form."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], str] = {}
        self.version = 0

    async def get(self, kind, key):
        if (key.namespace, key.name) not in self.stored:
            raise NotFound
        return kind.from_json(self.stored[key.namespace, key.name])

    async def create(self, obj: Object):
        if (obj.metadata.namespace, obj.metadata.name) in self.stored:
            raise AlreadyExists
        return self._store(obj)

    async def update(self, obj: Object):
        current = await self.get(type(obj), obj.metadata)
        if current.metadata.resource_version != obj.metadata.resource_version:
            raise Conflict
        return self._store(obj)

    def _store(self, obj):
        self.version += 1
        obj.metadata.resource_version = str(self.version)
        self.stored[obj.metadata.namespace, obj.metadata.name] = obj.to_json()
        return type(obj).from_json(obj.to_json())

    @property
    def lease(self) -> Lease:
        return Lease.from_json(self.stored["system", "lock"])


async def test_a_record_survives_the_way_through_a_lease():
    client = FakeClient()
    lock = LeaseLock(client, OPTIONS)
    assert lock.name == "system/lock"
    assert await lock.get() is None
    record = LeaseRecord(holder="me", lease_duration=15, acquire_time=T0, renew_time=T0, transitions=2)
    await lock.create(record)

    assert await LeaseLock(client, OPTIONS).get() == record
    text = client.stored["system", "lock"]
    text = text.decode() if isinstance(text, bytes) else text
    assert '"2026-01-02T03:04:05.000060Z"' in text
    assert client.lease.metadata.labels == {"app": "memcached"}
    assert client.lease.spec.lease_duration_seconds == 15


async def test_times_have_six_digits_also_on_a_full_second():
    client = FakeClient()
    moment = T0.replace(microsecond=0)
    await LeaseLock(client, OPTIONS).create(LeaseRecord(holder="me", acquire_time=moment, renew_time=moment))

    assert client.lease.spec.renew_time.text == "2026-01-02T03:04:05.000000Z"


async def test_an_update_needs_no_read_after_a_write():
    client = FakeClient()
    lock = LeaseLock(client, OPTIONS)
    await lock.create(LeaseRecord(holder="me"))
    await lock.update(LeaseRecord(holder="me", transitions=1))
    await lock.update(LeaseRecord(holder=""))

    assert client.lease.spec.holder_identity is None
    assert await lock.get() == LeaseRecord()


async def test_an_update_of_a_changed_lease_conflicts_until_it_is_read():
    client = FakeClient()
    first, second = LeaseLock(client, OPTIONS), LeaseLock(client, OPTIONS)
    await first.create(LeaseRecord(holder="first"))
    await second.get()
    await second.update(LeaseRecord(holder="second"))

    for _ in range(2):
        with pytest.raises(Conflict):
            await first.update(LeaseRecord(holder="first"))
    assert (await first.get()).holder == "second"
    await first.update(LeaseRecord(holder="first"))
    assert client.lease.spec.holder_identity == "first"


async def test_an_update_before_any_read_conflicts():
    with pytest.raises(Conflict, match="has not been read"):
        await LeaseLock(FakeClient(), OPTIONS).update(LeaseRecord(holder="me"))


async def test_what_others_wrote_into_the_lease_stays():
    client = FakeClient()
    lock = LeaseLock(client, OPTIONS)
    await lock.create(LeaseRecord(holder="me"))
    lease = client.lease
    lease.metadata.annotations["note"] = "mine"
    lease.spec.preferred_holder = "x"
    await client.update(lease)
    await lock.get()
    await lock.update(LeaseRecord(holder="me"))

    assert client.lease.metadata.annotations == {"note": "mine"}
    assert client.lease.spec.preferred_holder == "x"


async def test_the_namespace_comes_from_the_pod(tmp_path):
    file = tmp_path / "namespace"
    file.write_text("operators\n")

    assert LeaseLock(FakeClient(), LeaderElection(id="lock"), namespace_file=file).name == "operators/lock"


@pytest.mark.parametrize("content", [None, " "])
def test_outside_a_pod_the_namespace_must_be_given(tmp_path, content):
    file = tmp_path / "namespace"
    if content is not None:
        file.write_text(content)

    with pytest.raises(ConfigError, match=r"namespace=.*--leader-election-namespace"):
        LeaseLock(FakeClient(), LeaderElection(id="lock"), namespace_file=file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": ""}, "needs an id"),
        ({"id": "x", "identity": ""}, "identity is empty"),
        ({"id": "x", "lease_duration": 0.5}, "lease_duration is 0.5 s"),
        ({"id": "x", "renew_deadline": 0}, "renew_deadline is 0 s"),
        ({"id": "x", "retry_period": 0.9}, "retry_period is 0.9 s"),
        ({"id": "x", "lease_duration": 10.0}, "longer than renew_deadline"),
        ({"id": "x", "retry_period": 9.0}, "longer than 1.2 times retry_period"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        LeaderElection(**options)


def test_the_defaults_are_controller_runtimes():
    options = LeaderElection(id="x")

    assert (options.lease_duration, options.renew_deadline, options.retry_period) == (15.0, 10.0, 2.0)
    assert options.release_on_cancel
    assert options.request_timeout == 5.0
