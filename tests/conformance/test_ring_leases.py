"""The Leases of a ring on both servers: each request of a member gets the response that its machine expects."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import msgspec
import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.api.meta.v1 import ObjectMeta
from ctrlruntime.errors import ConfigError
from ctrlruntime.ownership.leases import RING_ANNOTATION, Leases
from ctrlruntime.ownership.machine import Machine, SlotState
from ctrlruntime.ownership.member import Member
from ctrlruntime.ownership.messages import (
    RING,
    DeleteMember,
    ExpireMember,
    GetMember,
    Listing,
    ListLeases,
    MemberLease,
    PutMember,
    PutRing,
    Rejected,
    RingLease,
    Stored,
)
from ctrlruntime.ownership.ring import Ring, planned
from ctrlruntime.rest.fence import lease_clock
from ctrlruntime.testing import eventually

ID = "memcached.example.com"
SLOTS = 16


def leases(client, namespace, pod="") -> Leases:
    return Leases(client, ctrl.NamespacedName(namespace, ID), pod=pod)


@pytest.fixture
def mine(client, namespace) -> Leases:
    return leases(client, namespace, "pod-a")


@pytest.fixture
def other(client, namespace) -> Leases:
    return leases(client, namespace, "pod-b")


def member(**fields) -> MemberLease:
    return MemberLease(identity=f"{ID}-a", **{"holder": f"{ID}-a", "layout": "v1", **fields})


async def put(store: Leases, lease: MemberLease) -> MemberLease:
    stored = await store.send(PutMember(lease))
    assert isinstance(stored, Stored)
    return member(uid=stored.uid, version=stored.version)


async def test_an_operator_without_leases_has_no_members_and_no_ring(mine):
    assert await mine.send(ListLeases()) == Listing((), None)
    assert await mine.send(GetMember(f"{ID}-a")) is None


async def test_a_member_is_read_as_it_was_written(mine, other):
    lease = member(state="leaving", weight=3, ring_uid="u", warm=frozenset({0, 1, 2, 7, 16}), renewal=4)
    stored = await mine.send(PutMember(lease))

    found = await other.send(GetMember(lease.identity))
    assert isinstance(stored, Stored)
    assert found == member(
        state="leaving", weight=3, ring_uid="u", warm=lease.warm, renewal=4, uid=stored.uid, version=stored.version
    )
    assert await other.send(ListLeases()) == Listing((found,), None)
    assert other.pod_of(lease.identity) == "pod-a"


async def test_a_renewal_names_the_version_that_it_replaces(mine):
    first = await put(mine, member())
    second = await put(mine, first)

    assert second.uid == first.uid
    assert second.version != first.version
    assert await mine.send(PutMember(first)) == Rejected()
    assert await mine.send(PutMember(member())) == Rejected()  # a Lease that exists is not created


async def test_a_member_that_was_expired_cannot_renew(mine, other):
    lease = await put(mine, member(weight=2))
    (seen,) = (await other.send(ListLeases())).members

    assert isinstance(await other.send(ExpireMember(msgspec.structs.replace(seen, holder=""))), Stored)
    assert await mine.send(PutMember(lease)) == Rejected()
    found = await mine.send(GetMember(lease.identity))
    assert (found.holder, found.weight) == ("", 2)
    assert await other.send(ExpireMember(msgspec.structs.replace(seen, holder=""))) == Rejected()


async def test_a_renewal_of_a_deleted_lease_does_not_create_it_again(mine, client, namespace):
    lease = await put(mine, member())
    await client.delete(Lease(metadata=ObjectMeta(name=lease.identity, namespace=namespace)))

    assert await mine.send(PutMember(lease)) == Rejected()
    assert await mine.send(GetMember(lease.identity)) is None


async def test_a_member_deletes_only_its_own_lease(mine):
    lease = await put(mine, member())
    assert await mine.send(DeleteMember(lease.identity, "another uid")) is None
    assert await mine.send(GetMember(lease.identity)) is not None

    await mine.send(DeleteMember(lease.identity, lease.uid))
    assert await mine.send(GetMember(lease.identity)) is None
    await mine.send(DeleteMember(lease.identity, lease.uid))


async def test_the_ring_is_read_as_it_was_written(mine, other):
    ring = planned(planned(Ring.empty(SLOTS, "v1"), {"a": 1, "b": 2}), {"a": 1, "b": 2, "c": 1})
    stored = await mine.send(PutRing(RingLease(holder=RING, ring=ring, renewal=7)))

    assert isinstance(stored, Stored)
    found = (await other.send(ListLeases())).ring
    assert found == RingLease(holder=RING, ring=ring, renewal=7, uid=stored.uid, version=stored.version)
    assert isinstance(
        await other.send(PutRing(RingLease(holder="", ring=None, uid=found.uid, version=found.version))), Stored
    )
    assert await mine.send(PutRing(found)) == Rejected()
    given_back = (await mine.send(ListLeases())).ring
    assert (given_back.holder, given_back.ring) == ("", None)


async def test_the_lease_of_an_elector_is_found_without_the_label_and_taken_over(mine, client, namespace):
    elector = Lease(metadata=ObjectMeta(name=ID, namespace=namespace, labels={"team": "a"}))
    elector.spec.holder_identity = "host_1"
    elector.spec.lease_duration_seconds = 15
    await client.create(elector)

    found = (await mine.send(ListLeases())).ring
    assert (found.holder, found.ring, found.duration) == ("host_1", None, 15)
    ring = Ring.empty(SLOTS, "v1")
    assert isinstance(
        await mine.send(PutRing(RingLease(holder=RING, ring=ring, uid=found.uid, version=found.version))), Stored
    )
    taken = await client.get(Lease, ctrl.NamespacedName(namespace, ID))
    assert taken.metadata.labels["team"] == "a"
    assert taken.spec.lease_transitions == 1
    assert (await mine.send(ListLeases())).ring.ring == ring


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"layout": "v1", "slots": 16, "epoch": 1, "renewal": 1, "owners": {"a": "17"}, "nexts": {}}',
        '{"layout": "v1", "slots": 16, "epoch": 1, "renewal": 1, "owners": {"a": "0-3", "b": "3"}, "nexts": {}}',
        '{"layout": "v1", "slots": 1000000000, "epoch": 1, "renewal": 1, "owners": {}, "nexts": {}}',
    ],
)
async def test_a_damaged_ring_is_an_error_that_says_what_to_do(mine, client, namespace, text):
    await mine.send(PutRing(RingLease(holder=RING, ring=Ring.empty(SLOTS, "v1"))))
    lease = await client.get(Lease, ctrl.NamespacedName(namespace, ID))
    lease.metadata.annotations[RING_ANNOTATION] = text
    await client.update(lease)

    with pytest.raises(ConfigError, match="Delete the Lease"):
        await mine.send(ListLeases())


class Process:
    """A member at a clock that is eight times as fast, with caches that are filled at once."""

    def __init__(self, client, namespace, name: str) -> None:
        starts = itertools.count(1)
        machine = Machine(lambda: f"{ID}-{name}-{next(starts)}", layout="v1", slots=SLOTS, now=self.clock())
        store = leases(client, namespace, name)
        self.member = Member(machine, store.send, pod_of=store.pod_of, on_changes=self.changed, clock=self.clock)
        self.task = asyncio.ensure_future(self.member.run())

    def clock(self) -> float:
        return 8 * lease_clock()

    def changed(self, changes) -> None:
        for change in changes:
            match change.state:
                case SlotState.WARMING:
                    self.member.warmed([change.slot])
                case SlotState.CATCHING_UP:
                    self.member.caught_up([(change.slot, change.grant)])
                case SlotState.DRAINING:
                    self.member.drained([(change.slot, change.grant)])
                case _:
                    pass

    @property
    def held(self) -> list[int]:
        machine = self.member.machine
        return [slot for slot in range(SLOTS + 1) if machine.writable(slot, machine.slot(slot).grant, self.clock())]


async def test_members_share_all_slots_take_those_of_a_killed_one_and_give_the_ring_back(client, namespace):
    processes = [Process(client, namespace, name) for name in "abc"]

    def is_shared() -> bool:
        held = [process.held for process in processes]
        parts = [len([slot for slot in each if slot < SLOTS]) for each in held]
        return sorted(slot for each in held for slot in each) == [*range(SLOTS + 1)] and max(parts) - min(parts) <= 1

    try:
        await eventually(is_shared, timeout=LONGEST_WAIT)
        mine, theirs = processes[0].member, processes[1].held[0]
        ring = mine.state()
        assert sorted(each.pod for each in ring.replicas) == ["a", "b", "c"]
        assert [each.pod for each in ring.replicas if each.is_here] == ["a"]
        assert sum(each.slots for each in ring.replicas) == ring.slots == SLOTS
        assert (ring.unowned, ring.trouble, sum(each.leads for each in ring.replicas)) == (0, "", 1)
        assert (mine.owner(theirs).owner, mine.owner(theirs).is_here) == ("b", False)
        processes.pop().task.cancel()
        await eventually(is_shared, timeout=LONGEST_WAIT)
        for process in processes:
            process.member.stop()
        await asyncio.wait_for(asyncio.gather(*(process.task for process in processes)), LONGEST_WAIT)
    finally:
        for process in processes:
            process.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await process.task

    left = await client.list(Lease, namespace=namespace)
    (ring,) = [lease for lease in left if lease.metadata.name == ID]
    assert not ring.spec.holder_identity
    assert all(not lease.spec.holder_identity for lease in left)
