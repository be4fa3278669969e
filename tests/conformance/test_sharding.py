"""Replicas that share the objects of a controller, as managers in one process, on both servers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.testing import eventually

ID = "sharded.example.com"
LABELS = {"test": "sharding"}
OBJECTS = 40


def manager(server, namespace, name: str) -> ctrl.Manager:
    """Return the manager of a replica with short times, so that the test is short.

    A replica that renews too late, because the machine is busy, loses its share and joins again.
    """
    sharding = ctrl.Sharding(
        ID, namespace=namespace, identity=name, slots=64, lease_duration=5, renew_deadline=4, renew_period=1
    )
    config = ctrl.get_config(str(server.kubeconfig_path))
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), sharding=sharding)


class Replica:
    """A manager whose sharded controller notes what it reconciles, and writes its name into each ConfigMap."""

    def __init__(self, server, namespace, name: str, running: Counter[str], shard_by: str = "name") -> None:
        self.name = name
        self.seen: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        self.leads = False
        self._running = running
        self.mgr = manager(server, namespace, name)
        (
            ctrl.new_controller_managed_by(self.mgr)
            .for_(core.ConfigMap, predicates=[lambda event: (event.meta.labels or {}).get("test") == "sharding"])
            .with_options(sharded=True, shard_by=shard_by, max_concurrent_reconciles=5)
            .complete(self.reconcile)
        )
        self.mgr.add(self.lead)
        self.task = asyncio.ensure_future(self.mgr.start())

    async def lead(self) -> None:
        self.leads = True
        await asyncio.Event().wait()

    async def reconcile(self, request: ctrl.Request) -> None:
        self._running[request.name] += 1
        assert self._running[request.name] == 1, f"two replicas reconcile {request}"
        try:
            found = await self.mgr.client.get_or_none(core.ConfigMap, request)
            if found is None:
                self.deleted[request.name] += 1
            elif found.data.get("owner") != self.name:
                found.data["owner"] = self.name
                await self.mgr.client.update(found)
            self.seen[request.name] += 1
        finally:
            self._running[request.name] -= 1


@contextlib.asynccontextmanager
async def starting(server, namespace, shard_by: str = "name") -> AsyncIterator[Callable[[str], Replica]]:
    """Return the function that starts a replica; all of them end with the block."""
    running: Counter[str] = Counter()
    started: list[Replica] = []

    def start(name: str) -> Replica:
        started.append(Replica(server, namespace, name, running, shard_by))
        return started[-1]

    yield start
    for replica in started:
        replica.mgr.stop()
    for replica in started:
        with contextlib.suppress(asyncio.CancelledError):
            await replica.task


@pytest.fixture(params=["name", "uid"])
def shard_by(request) -> str:
    return request.param


@pytest.fixture
async def replicas(server, namespace, shard_by):
    async with starting(server, namespace, shard_by) as start:
        yield start


async def owners(client, namespace) -> Counter[str]:
    found = await client.list(core.ConfigMap, namespace=namespace, labels=LABELS)
    return Counter(each.data.get("owner", "") for each in found)


async def create(client, namespace, count: int = OBJECTS) -> None:
    for number in range(count):
        metadata = meta.ObjectMeta(name=f"c-{number}", namespace=namespace, labels=LABELS)
        await client.create(core.ConfigMap(metadata=metadata))


async def test_replicas_divide_the_objects_one_that_stops_gives_them_away_and_the_last_one_has_all(
    replicas, client, namespace
):
    await create(client, namespace)
    first, second = replicas("first"), replicas("second")

    async def both_have_a_share() -> bool:
        found = await owners(client, namespace)
        return set(found) == {"first", "second"} and min(found.values()) > OBJECTS / 5

    await eventually(both_have_a_share, timeout=LONGEST_WAIT)
    await eventually(lambda: first.leads != second.leads, timeout=LONGEST_WAIT)

    first.mgr.stop()
    await asyncio.wait_for(first.task, LONGEST_WAIT)

    async def second_has_all() -> bool:
        return await owners(client, namespace) == {"second": OBJECTS}

    await eventually(second_has_all, timeout=LONGEST_WAIT)
    await eventually(lambda: second.leads, timeout=LONGEST_WAIT)
    third = replicas("third")

    async def third_has_a_share() -> bool:
        return (await owners(client, namespace))["third"] > OBJECTS / 5

    await eventually(third_has_a_share, timeout=LONGEST_WAIT)
    assert not third.leads


@pytest.mark.usefixtures("sets_up_log")
async def test_without_leader_elect_one_process_reconciles_everything(server, client, namespace):
    flags = ctrl.parse_flags(["--kubeconfig", str(server.kubeconfig_path)])
    mgr = ctrl.new_manager(
        flags.get_config(),
        flags=flags,
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        sharding=ctrl.Sharding(ID, namespace=namespace),
    )
    seen = set()

    async def reconcile(request: ctrl.Request) -> None:
        seen.add(request.name)

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).with_options(sharded=True).complete(reconcile)
    await create(client, namespace, 5)
    async with ctrl.running(mgr):
        await eventually(lambda: {f"c-{n}" for n in range(5)} <= seen, timeout=LONGEST_WAIT)


class Reader:
    """A manager with a sharded controller that owns Secrets. Each reconcile makes the Secret of its ConfigMap, and notes what it reads."""

    def __init__(self, server, namespace, name: str, shard_by: str) -> None:
        self.name = name
        self.own: set[str] = set()
        self.errors: dict[str, ctrl.errors.ForeignShardError] = {}
        self.live: set[str] = set()
        self.listed: set[str] = set()
        self.whole: set[str] = set()
        self.mgr = manager(server, namespace, name)
        (
            ctrl.new_controller_managed_by(self.mgr)
            .for_(core.ConfigMap, predicates=[lambda event: event.meta.name.startswith("c-")])
            .owns(core.Secret)
            .with_options(sharded=True, shard_by=shard_by, max_concurrent_reconciles=5)
            .complete(self.reconcile)
        )
        self.mgr.add(Everywhere(self))
        self.task = asyncio.ensure_future(self.mgr.start())

    async def reconcile(self, request: ctrl.Request) -> None:
        client = self.mgr.client
        mine = await client.get_or_none(core.ConfigMap, request)
        if mine is None:
            return

        def mutate(secret: core.Secret) -> None:
            secret.data = {"owner": self.name.encode()}
            ctrl.set_controller_reference(mine, secret)

        await ctrl.create_or_update(client, core.Secret, request, mutate)
        self.listed = {each.metadata.name for each in await client.list(core.ConfigMap, labels=LABELS)}
        for number in range(OBJECTS):
            other = ctrl.NamespacedName(request.namespace, f"c-{number}")
            try:
                await client.get(core.ConfigMap, other)
            except ctrl.errors.ForeignShardError as error:
                self.errors[other.name] = error
                found = await client.get(core.ConfigMap, other, live_fallback=True)
                self.live.add(found.metadata.name)
        self.own.add(request.name)


class Everywhere:
    """What every replica runs, such as a webhook: it reads all objects from its cache."""

    needs_leader_election = False

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    async def start(self) -> None:
        found = await self.reader.mgr.client.list(core.ConfigMap, labels=LABELS)
        self.reader.whole = {each.metadata.name for each in found}
        await asyncio.Event().wait()


@pytest.fixture
async def readers(server, namespace, shard_by):
    started: list[Reader] = []

    def start(name: str) -> Reader:
        started.append(Reader(server, namespace, name, shard_by))
        return started[-1]

    yield start
    for reader in started:
        reader.mgr.stop()
    for reader in started:
        with contextlib.suppress(asyncio.CancelledError):
            await reader.task


def cached(reader: Reader, kind: str) -> set[str]:
    """Return the objects of a kind in the cache of the sharded controller."""
    (found,) = [
        informer for gvk, informer in reader.mgr.cache.all_informers() if gvk.kind == kind and informer.part is not None
    ]
    return {entry.meta.name for entry in found.store if entry.meta.name.startswith("c-")}


async def test_a_replica_caches_its_own_objects_and_their_children_only(readers, client, namespace):
    await create(client, namespace)
    names = {f"c-{number}" for number in range(OBJECTS)}
    first, second = readers("first"), readers("second")
    both = (first, second)

    def have_all() -> bool:
        return first.own | second.own == names and min(len(each.own) for each in both) > OBJECTS / 5

    await eventually(have_all, timeout=LONGEST_WAIT)
    await eventually(lambda: all(each.errors for each in both), timeout=LONGEST_WAIT)
    for each, other in ((first, second), (second, first)):
        await eventually(lambda: cached(each, "Secret") >= each.own - other.own, timeout=LONGEST_WAIT)  # noqa: B023
        assert each.whole <= names
        assert each.live == set(each.errors)
        assert not set(each.errors) & (each.own - other.own)
        assert each.listed != names
        error = next(iter(each.errors.values()))
        assert error.owner in {"first", "second", ""}
    first.mgr.stop()
    await asyncio.wait_for(first.task, LONGEST_WAIT)
    await eventually(lambda: cached(second, "ConfigMap") == names, timeout=LONGEST_WAIT)
    await eventually(lambda: cached(second, "Secret") == names, timeout=LONGEST_WAIT)
    await eventually(lambda: second.own == names, timeout=LONGEST_WAIT)
