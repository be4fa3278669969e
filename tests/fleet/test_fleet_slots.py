"""What a replica does with its clusters when slots move. The test plays the ring."""

from __future__ import annotations

import asyncio

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import FencedError, ForeignShardError
from ctrlruntime.explain.explainer import Explainer, QuestionError
from ctrlruntime.fleet import ClusterState, Static
from ctrlruntime.ownership.machine import Change, SlotState
from ctrlruntime.ownership.ring import slot_of
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.rest.fence import lease_clock
from ctrlruntime.testing import eventually

NAME = "static/c1"
SLOT = slot_of(NAME, 64)
TAKE_OVER = (SlotState.WARMING, SlotState.CATCHING_UP, SlotState.OPEN)


class Ring:
    """Stands for the member of a replica: what is reported to it, and who owns the slots."""

    def __init__(self, mgr: ctrl.Manager) -> None:
        self.reported: list[tuple[str, int]] = []
        self.other = ""
        self.ended = asyncio.Event()
        replica = mgr._replica
        self.shards = replica.shards
        self.shards._owner = self
        self.shards._linger = 0.0
        replica.start = lambda *_args, **_options: asyncio.ensure_future(self.ended.wait())
        replica.leave = self.leave

    async def leave(self, _within) -> None:
        self.ended.set()
        await self.shards.close()

    def warmed(self, slots):
        self.reported += [("warmed", slot) for slot in slots]

    def caught_up(self, slots):
        self.reported += [("caught up", slot) for slot, _ in slots]

    def drained(self, slots):
        self.reported += [("drained", slot) for slot, _ in slots]

    def deadline(self, slot, grant):
        return lease_clock() + 10

    def owner(self, slot):
        return SlotOwner(
            slot=slot, of=64, owner=self.other, member=self.other, following="", is_here=not self.other, state=""
        )

    def state(self):
        return None

    async def change(self, *states: SlotState, slot: int = SLOT) -> None:
        """Go through the states of a slot, and wait for what is reported in between."""
        for state in states:
            self.shards.changed([Change(slot, state, 1)])
            if state is SlotState.WARMING:
                await eventually(lambda: ("warmed", slot) in self.reported, interval=0.001)
            if state is SlotState.DRAINING:
                await eventually(lambda: ("drained", slot) in self.reported, interval=0.001)


@pytest.fixture
def mgr(servers):
    hub, other = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers[:2])
    sharding = ctrl.Sharding("fleet", namespace="default", slots=64, identity="me", drain_timeout=0.0)
    fleet = ctrl.Fleet(Static({"c1": other}), sharded=True)
    return ctrl.new_manager(hub, metrics_bind_address="0", sharding=sharding, fleet=fleet)


@pytest.fixture
def ring(mgr):
    return Ring(mgr)


@pytest.fixture
def seen(mgr, namespaces) -> list[tuple[str, str]]:
    """The requests of the test's namespace that were reconciled."""
    found: list[tuple[str, str]] = []

    async def reconcile(request: ctrl.Request) -> None:
        if request.namespace == namespaces and request.name != "kube-root-ca.crt":
            found.append((request.cluster, request.name))

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="all").complete(reconcile)
    return found


def config_map(namespace: str, name: str) -> core.ConfigMap:
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


def state(mgr) -> ClusterState | None:
    return mgr.fleet.status(NAME).state if NAME in mgr.fleet.names() else None


async def test_a_cluster_is_connected_when_its_slot_comes_and_removed_when_it_has_gone(
    mgr, ring, seen, clients, namespaces
):
    await clients[1].create(config_map(namespaces, "one"))
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced)
        assert mgr.fleet.names() == []
        ring.other = "you"
        with pytest.raises(ForeignShardError, match="the replica you reconciles the cluster 'static/c1'") as failed:
            mgr.fleet.client(NAME)
        assert (failed.value.slot, failed.value.owner) == (SLOT, "you")
        (shown,) = mgr.fleet.explained()
        assert (shown.name, shown.state, shown.owner) == (NAME, "Foreign", "you")

        await ring.change(SlotState.WARMING)
        assert state(mgr) is ClusterState.STANDBY
        with pytest.raises(ForeignShardError):
            await mgr.fleet.client(NAME).list(core.ConfigMap)
        assert seen == []

        ring.other = ""
        await ring.change(SlotState.CATCHING_UP, SlotState.OPEN)
        await eventually(lambda: seen == [(NAME, "one")])
        assert state(mgr) is ClusterState.ENGAGED

        await ring.change(SlotState.DRAINING, SlotState.FOREIGN)
        ring.other = "you"
        await eventually(lambda: mgr.fleet.names() == [])
        await clients[1].create(config_map(namespaces, "two"))
        assert mgr.fleet.explained()[0].owner == "you"
    assert seen == [(NAME, "one")]


async def test_why_names_the_replica_of_a_cluster(mgr, ring, seen, namespaces):
    ring.other = "you"
    explainer = Explainer(
        mgr.journal, lambda: mgr._controllers, lambda: mgr._clusters, ring=ring.state, fleet=mgr.fleet.explained
    )
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced)
        (answer,) = explainer.why("ConfigMap", namespaces, "one", cluster=NAME).answers
        with pytest.raises(QuestionError, match="was never seen by"):
            explainer.why("ConfigMap", namespaces, "one")
        with pytest.raises(QuestionError, match="the fleet has no cluster 'static/c2'"):
            explainer.why("ConfigMap", namespaces, "one", cluster="static/c2")
    assert (answer.cluster, answer.shard.owner, answer.elsewhere) == (NAME, "you", ["you"])
    assert answer.next == "in the replica that has its cluster"


async def test_a_cluster_that_stays_after_all_is_reconciled_again_with_what_came_meanwhile(
    mgr, ring, seen, clients, namespaces
):
    await clients[1].create(config_map(namespaces, "one"))
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced)
        await ring.change(*TAKE_OVER)
        await eventually(lambda: seen == [(NAME, "one")])
        await ring.change(SlotState.DRAINING)
        await eventually(lambda: state(mgr) is ClusterState.STANDBY)
        await clients[1].delete(config_map(namespaces, "one"))
        await clients[1].create(config_map(namespaces, "two"))
        member = mgr.fleet._members[NAME]
        await eventually(lambda: sum(map(len, member.parked.values())) >= 2)
        assert seen == [(NAME, "one")]

        await ring.change(SlotState.OPEN)
        await eventually(lambda: set(seen[1:]) == {(NAME, "one"), (NAME, "two")})
        assert state(mgr) is ClusterState.ENGAGED


async def test_a_reconcile_of_a_cluster_that_moved_cannot_write(mgr, ring, clients, namespaces):
    errors: list[Exception] = []
    began, ended = asyncio.Event(), asyncio.Event()

    async def reconcile(request: ctrl.Request) -> None:
        if request.namespace != namespaces or request.name != "one" or began.is_set():
            return
        began.set()
        client = mgr.fleet.cluster(NAME).client
        try:
            await asyncio.Event().wait()
        finally:
            while SlotState.OPEN is not ring.shards.state(SLOT) or len(errors) == 0:
                try:
                    await client.create(config_map(namespaces, "too-late"))
                except FencedError as error:
                    errors.append(error)
                    break
                except asyncio.CancelledError:
                    continue
            ended.set()

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").complete(reconcile)
    await clients[1].create(config_map(namespaces, "one"))
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced)
        await ring.change(*TAKE_OVER)
        await began.wait()
        await ring.change(SlotState.CLOSED, SlotState.OPEN)
        await ended.wait()
    assert (
        str(errors[0])
        == f"write by controller configmap rejected: this process does not own {NAME}:{namespaces}/one any more"
    )
    assert await clients[1].get_or_none(core.ConfigMap, ctrl.NamespacedName(namespaces, "too-late")) is None


async def test_requests_of_the_hub_belong_to_one_replica(mgr, ring, seen, clients, namespaces):
    await clients[0].create(config_map(namespaces, "one"))
    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.is_synced)
        await ring.change(*TAKE_OVER)
        assert seen == []
        await ring.change(*TAKE_OVER, slot=slot_of("", 64))
        await eventually(lambda: seen == [("", "one")])
        await ring.change(SlotState.DRAINING, slot=slot_of("", 64))
        await clients[0].create(config_map(namespaces, "two"))
        await eventually(lambda: mgr.fleet.lane("").parked)
        await ring.change(SlotState.OPEN, slot=slot_of("", 64))
        await eventually(lambda: ("", "two") in seen)
