"""What a process does when its slots change. The member is a list of what it was told."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from ctrlruntime.api.metadata import Metadata, NamespacedName, OwnerRecord
from ctrlruntime.ownership.machine import Change, SlotState
from ctrlruntime.ownership.options import ShardKey
from ctrlruntime.ownership.parts import Children, Roots
from ctrlruntime.ownership.ring import slot_of
from ctrlruntime.ownership.shards import ControllerShard, KeyShard, Shards, UidShard, key_of
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.testing import eventually
from ctrlruntime.workqueue import PriorityQueue

SLOTS = 64
KEYS = [Request("default", f"m-{number}") for number in range(200)]


async def settled() -> None:
    """Let all tasks take the steps that they can take."""
    for _ in range(20):
        await asyncio.sleep(0)


class Owner:
    """The member: what it was told, and until when it may write."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.until: float | None = 10.0
        self.others = ""
        """The member that has all other slots."""

    def warmed(self, slots):
        self.told.append(("warmed", tuple(slots)))

    def caught_up(self, slots):
        self.told.append(("caught up", *slots))

    def drained(self, slots):
        self.told.append(("drained", *slots))

    def deadline(self, slot, grant):
        return self.until

    def owner(self, slot):
        return SlotOwner(
            slot=slot, of=SLOTS, owner=self.others, member=self.others, following="", is_here=False, state=""
        )


def meta_of(key: Request) -> Metadata:
    # Real uids: the first bits of their hash, which decide, depend little on the last characters of a text.
    return Metadata(name=key.name, namespace=key.namespace, uid=str(uuid.uuid5(uuid.NAMESPACE_OID, key.name)))


class Controller:
    """A sharded controller with all `KEYS` in its cache, and reconciles that end when the test says so."""

    def __init__(self, shards: Shards, by: str) -> None:
        self.cached = {key: meta_of(key) for key in KEYS}
        self.shard: ControllerShard = (
            UidShard(shards, self.cached.get)
            if by == "uid"
            else KeyShard(shards, key_of("name", "example.com", "Game"))
        )
        self.queue: PriorityQueue[Request] = PriorityQueue(admit=self.shard.admits)
        self.synced = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.handed_over: list[float] = []
        self.running: set[Request] = set()
        shards.add(self)

    async def wait_synced(self):
        await self.synced.wait()

    async def show(self, slots):
        for key in self.cached:
            if self.shard.is_in(slots, key):
                self.queue.add(key, priority=-100)

    def delete(self, key: Request) -> None:
        """Handle the event of an object that was deleted."""
        self.cached.pop(key, None)
        self.shard.deleted(meta_of(key))
        self.queue.add(key)

    def withdraw(self, slots):
        found = []
        self.queue.remove(lambda key: self.shard.is_in(slots, key) and found.append(key) is None)
        found += [key for key in self.running if self.shard.slot_of_object(meta_of(key)) in slots]
        return [(self.shard.slot_of_object(meta_of(key)), key) for key in found]

    async def end_moved(self, slots, within):
        self.handed_over.append(within)
        await self.may_end.wait()

    def queued(self) -> set[Request]:
        found = set()
        while (item := self.queue.get_nowait()) is not None:
            found.add(item.key)
            self.queue.done(item.key)
        return found

    def of(self, *slots: int) -> set[Request]:
        return {key for key in KEYS if self.shard.slot_of_object(meta_of(key)) in slots}


class Process:
    def __init__(self, by: str = "name") -> None:
        self.owner = Owner()
        self.events: list[str] = []
        self.shards = Shards(
            SLOTS,
            self.owner,
            drain_timeout=7.0,
            fill=self.fill,
            free=self.free,
            linger=0.0,
            catch_up=lambda _slots: self.events.append("catch up"),
            lead=lambda: self.events.append("lead"),
            stop_leading=self.stop_leading,
            lost=lambda: self.events.append("lost"),
        )
        self.controller = Controller(self.shards, by)
        self.filled = asyncio.Event()
        self.filled.set()
        self.fills: list[tuple[int, list[int]]] = []
        self.frees: list[list[int]] = []

    async def fill(self, gains):
        self.fills.append((gains, sorted(self.shards.cached)))
        await self.filled.wait()

    async def free(self):
        self.frees.append(sorted(self.shards.cached))

    async def stop_leading(self):
        self.events.append("stop leading")

    async def change(self, state: SlotState, *slots: int, grant: int = 1) -> None:
        self.shards.changed([Change(slot, state, grant) for slot in slots])
        await settled()

    async def open(self, *slots: int) -> None:
        for state in (SlotState.WARMING, SlotState.CATCHING_UP, SlotState.OPEN):
            await self.change(state, *slots)

    def told(self) -> list[tuple[object, ...]]:
        told, self.owner.told = self.owner.told, []
        return told


@pytest.fixture(params=["name", "uid"])
async def process(request):
    process = Process(request.param)
    process.controller.synced.set()
    yield process
    await process.shards.close()


def gone(process: Process, slot: int, count: int = 1) -> list[Request]:
    """Return requests of a slot for objects that are not in the cache."""
    keys = (Request("default", f"gone-{number}") for number in range(10_000))
    return [key for key in keys if process.controller.shard.slot_of_object(meta_of(key)) == slot][:count]


async def test_slots_are_warm_when_the_controllers_have_synced(process):
    process.controller.synced.clear()
    await process.change(SlotState.WARMING, 1, 2)
    assert process.told() == []

    process.controller.synced.set()
    await settled()
    assert process.told() == [("warmed", (1, 2))]


async def test_slots_are_warm_when_the_caches_have_their_objects(process):
    process.filled.clear()
    await process.change(SlotState.WARMING, 1, 2, SLOTS)
    assert process.fills == [(1, [1, 2])]  # the slot of the leader has no objects
    await process.change(SlotState.WARMING, 3)
    assert process.fills[1:] == [(2, [1, 2, 3])]
    assert process.told() == []

    process.filled.set()
    await settled()
    assert process.told() == [("warmed", (1, 2, SLOTS)), ("warmed", (3,))]


async def test_a_slot_that_was_lost_and_comes_again_waits_for_its_own_list(process):
    process.filled.clear()
    await process.change(SlotState.WARMING, 1, 2)
    await process.change(SlotState.FOREIGN, 1)
    process.filled.set()
    await settled()
    assert process.told() == [("warmed", (2,))]

    await process.change(SlotState.WARMING, 1)
    assert process.told() == [("warmed", (1,))]


async def test_a_slot_that_another_member_has_leaves_the_caches(process):
    await process.open(1, 2, 3)
    process.owner.others = "other"
    await process.change(SlotState.DRAINING, 1, 2)
    await process.change(SlotState.CLOSED, 1, 2)
    assert process.frees == []
    await process.change(SlotState.FOREIGN, 1, 2)
    await eventually(lambda: process.frees)

    assert process.frees == [[3]]
    await process.change(SlotState.WARMING, 1)
    assert process.fills[1:] == [(2, [1, 3])]


async def test_a_slot_without_an_owner_stays_in_the_caches(process):
    await process.open(1)
    await process.change(SlotState.FOREIGN, 1)
    for _ in range(3):
        await settled()
    assert (process.frees, process.shards.cached) == ([], {1})

    await process.open(1)
    assert process.fills == [(1, [1]), (1, [1])]  # nothing is listed again
    process.owner.others = "other"
    for _ in range(3):
        await settled()
    assert process.shards.cached == {1}


def child(*owners: Request) -> Metadata:
    references = tuple(OwnerRecord(name=owner.name, uid=meta_of(owner).uid) for owner in owners)
    return Metadata(name="c", namespace="default", owner_references=references)


def children_of(shard: ControllerShard) -> Children:
    if isinstance(shard, UidShard):
        return Children(shard.keeps, lambda meta: [owner.uid for owner in meta.owner_references])
    return Children(shard.keeps, lambda meta: [Request(meta.namespace, owner.name) for owner in meta.owner_references])


async def test_what_is_cached_of_a_kind(process):
    shard = process.controller.shard
    roots, children = Roots(shard, "Game"), children_of(shard)
    mine, other = min(process.controller.of(1)), min(process.controller.of(2))

    await process.change(SlotState.WARMING, 1)
    assert [roots.keeps(meta_of(key)) for key in (mine, other)] == [True, False]
    assert not roots.has(mine.namespace, mine.name)  # its list may not be complete
    await process.change(SlotState.CATCHING_UP, 1)
    assert [children.keeps(child(*owners)) for owners in ((mine,), (other,), (other, mine), ())] == [
        True, False, True, False,
    ]  # fmt: skip
    assert not children.has("default", "c")
    assert children.foreign("default", "c") is None
    assert children.foreign_object(child(other)) is None
    process.owner.others = "other"
    error = roots.foreign_object(meta_of(other))
    assert (error.slot, error.owner) == (2, "other")
    assert str(error) == (
        f"Game {other} is not cached here: the replica other reconciles it (slot 2). Read it with get(…, live_fallback=True)"
    )
    process.owner.others = ""
    assert "no replica is known to reconcile it now" in str(roots.foreign_object(meta_of(other)))


async def test_a_name_says_what_is_missing_and_a_uid_does_not(process):
    shard = process.controller.shard
    roots = Roots(shard, "Game")
    mine, other = min(process.controller.of(1)), min(process.controller.of(2))
    await process.open(1)

    by_name = isinstance(shard, KeyShard)
    assert [roots.has(key.namespace, key.name) for key in (mine, other)] == [by_name, False]
    error = roots.foreign(other.namespace, other.name)
    assert error is None if not by_name else error.slot == 2


async def test_before_a_slot_opens_the_caches_are_compared_with_the_server(process):
    await process.change(SlotState.CATCHING_UP, 1, 2, grant=5)

    assert process.events == ["catch up"]
    assert process.told() == [("caught up", (1, 5), (2, 5))]


async def test_an_open_slot_has_each_of_its_objects_in_the_queue_and_no_other(process):
    await process.open(1, 2)

    assert process.controller.queued() == process.controller.of(1, 2)
    for key in KEYS:
        process.controller.queue.add(key)
    assert process.controller.queued() == process.controller.of(1, 2)
    assert process.shards.held() == [1, 2]


async def test_a_request_that_comes_while_its_slot_is_on_its_way_is_not_lost(process):
    (deleted,) = gone(process, 3)
    await process.change(SlotState.WARMING, 3)
    process.controller.delete(deleted)
    assert process.controller.queued() == set()
    await process.change(SlotState.CATCHING_UP, 3)
    await process.change(SlotState.OPEN, 3)

    assert process.controller.queued() == {deleted, *process.controller.of(3)}


async def test_a_slot_that_does_not_come_keeps_no_requests(process):
    (key, *_) = process.controller.of(3)
    await process.change(SlotState.WARMING, 3)
    process.controller.queue.add(key)
    await process.change(SlotState.FOREIGN, 3)

    assert process.shards._slots[3].kept == {}
    assert process.controller.queued() == set()


async def test_a_slot_is_given_away_when_its_reconciles_have_ended_and_no_write_is_open(process):
    await process.open(1, 2)
    process.told()
    grants = [process.shards.grant(slot) for slot in (1, 2)]
    grants[0].begin()
    process.controller.may_end.clear()
    await process.change(SlotState.DRAINING, 1, 2)
    assert process.controller.queued() == set()
    assert process.controller.handed_over == [7.0]
    assert [process.shards.grant(slot) for slot in (1, 2)] == [None, None]
    assert process.told() == []
    assert [grant.deadline() for grant in grants] == [10.0, 10.0]  # what runs may write

    process.controller.may_end.set()
    await settled()
    assert [grant.deadline() for grant in grants] == [None, None]
    assert process.told() == [("drained", (2, 1))]  # a write of slot 1 is open, and delays no other slot

    grants[0].end()
    await settled()
    assert process.told() == [("drained", (1, 1))]


async def test_a_slot_whose_successor_left_is_worked_again(process):
    await process.open(1, 2)
    process.controller.queued()
    process.told()
    process.controller.may_end.clear()
    deleted = gone(process, 1, 3)
    process.controller.delete(deleted[0])
    process.controller.delete(deleted[1])
    process.controller.queue.remove(lambda key: key == deleted[1])
    process.controller.running.add(deleted[1])
    await process.change(SlotState.DRAINING, 1, 2)
    process.controller.delete(deleted[2])
    assert process.controller.queued() == set()
    await process.change(SlotState.OPEN, 1)
    process.controller.may_end.set()
    await settled()

    assert process.told() == [("drained", (2, 1))]
    assert process.controller.queued() == {*process.controller.of(1), *deleted}  # also those that are not in the cache
    assert process.shards.grant(1).deadline() == 10.0


async def test_a_slot_that_was_closed_too_early_opens_again(process):
    await process.open(1)
    grant = process.shards.grant(1)
    grant.begin()
    await process.change(SlotState.DRAINING, 1)
    assert grant.deadline() is None
    await process.change(SlotState.OPEN, 1)
    assert process.shards.grant(1).deadline() == 10.0

    grant.end()  # the write of before
    await settled()
    assert ("drained", (1, 1)) not in process.told()
    assert process.shards.grant(1).deadline() == 10.0


async def test_a_write_of_a_former_move_does_not_report_a_later_one(process):
    await process.open(1)
    grant = process.shards.grant(1)
    grant.begin()
    await process.change(SlotState.DRAINING, 1)
    await process.change(SlotState.OPEN, 1)
    process.told()
    process.controller.may_end.clear()
    await process.change(SlotState.DRAINING, 1)
    grant.end()
    await settled()
    assert process.told() == []  # a reconcile runs

    process.controller.may_end.set()
    await settled()
    assert process.told() == [("drained", (1, 1))]


async def test_a_lost_slot_can_write_no_more_and_what_runs_is_cancelled_at_once(process):
    await process.open(1, 2)
    grant = process.shards.grant(1)
    await process.change(SlotState.FOREIGN, 1)

    assert grant.deadline() is None
    assert process.controller.handed_over == [0.0]
    assert process.controller.queued() == process.controller.of(2)
    assert process.events == ["catch up"]


async def test_nothing_starts_without_a_valid_lease(process):
    await process.open(1)
    process.owner.until = None

    assert process.shards.grant(1).deadline() is None


async def test_the_slot_of_the_leader_starts_and_ends_what_the_leader_runs(process):
    await process.open(SLOTS)
    assert process.events == ["catch up", "lead"]
    assert process.shards.leader_deadline() == 10.0

    await process.change(SlotState.DRAINING, SLOTS)
    assert process.events[2:] == ["stop leading"]
    assert process.told()[-1] == ("drained", (SLOTS, 1))
    await process.change(SlotState.CLOSED, SLOTS)
    assert process.events[3:] == []
    assert process.shards.leader_deadline() is None


async def test_a_leader_that_lost_its_slot_is_told(process):
    await process.open(SLOTS)
    await process.change(SlotState.FOREIGN, SLOTS)

    assert process.events[2:] == ["lost"]


async def test_the_log_says_once_which_share_this_process_has(process, capsys):
    await process.open(1, 2, SLOTS)

    lines = [line for line in capsys.readouterr().err.splitlines() if "slots changed" in line]
    assert len(lines) == 1
    assert '"slots":2' in lines[0] or "slots=2" in lines[0]


# --- division by uid ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def by_uid():
    process = Process("uid")
    process.controller.synced.set()
    await process.open(1)
    process.controller.queued()
    yield process
    await process.shards.close()


async def test_the_reconcile_after_a_deletion_belongs_to_the_slot_of_the_deleted_object(by_uid):
    controller = by_uid.controller
    key = min(controller.of(1))
    controller.delete(key)

    assert controller.queued() == {key}
    assert controller.shard.slot(key) == 1
    assert controller.shard.grant(key).deadline() == 10.0
    controller.shard.done(key)
    assert controller.shard.slot(key) is None
    controller.queue.add(key)
    assert controller.queued() == set()
    assert by_uid.shards.foreign_requests == 1
    assert (controller.shard.owner(key), controller.shard.grant(key)) == (None, None)


async def test_an_object_that_has_a_deleted_name_again_belongs_to_its_own_slot(by_uid):
    controller = by_uid.controller
    key, other = min(controller.of(1)), min(controller.of(2))
    controller.delete(key)
    controller.cached[key] = meta_of(other)  # its uid

    assert controller.shard.slot(key) == 2
    controller.queue.add(key)
    del controller.cached[key]
    assert controller.shard.slot(key) == 1
    # The API server says that the name is that of an object of another replica.
    meta = Metadata(name=key.name, namespace=key.namespace, uid=meta_of(other).uid)
    assert Roots(controller.shard, "Game").foreign_object(meta).slot == 2
    assert controller.shard.grant(key) is None


@pytest.mark.parametrize("state", [SlotState.FOREIGN, SlotState.CLOSED])
async def test_a_slot_that_is_gone_takes_its_deletions_along(by_uid, state):
    controller = by_uid.controller
    key, foreign = min(controller.of(1)), min(controller.of(2))
    for each in (key, foreign):
        controller.delete(each)
    assert controller.shard._deleted == {key: 1}
    await by_uid.change(state, 1)

    assert controller.shard._deleted == {}
    assert controller.queued() == set()


async def test_the_api_server_selects_the_cached_slots(by_uid):
    await by_uid.open(2, 5)
    width = 2**64 // SLOTS
    spans = [(width, 3 * width), (5 * width, 6 * width)]
    assert by_uid.controller.shard.server_ranges() == " || ".join(
        f"shardRange(object.metadata.uid, '0x{start:016x}', '0x{end:016x}')" for start, end in spans
    )
    assert UidShard(by_uid.shards, {}.get, server_ranges=False).server_ranges() == ""
    assert KeyShard(by_uid.shards, str).server_ranges() == ""


@pytest.mark.parametrize(
    ("by", "text"),
    [
        ("name", "example.com/Game/default/m"),
        ("namespace", "default"),
        (ShardKey("tenant", lambda key: key.name[0]), "m"),
    ],
)
def test_the_text_that_is_hashed(by, text):
    assert key_of(by, "example.com", "Game")(Request("default", "m")) == text


def test_a_cluster_scoped_object_is_divided_by_its_name():
    assert key_of("namespace", "example.com", "Game")(Request("", "m")) == "m"


def test_a_rule_of_its_own_gets_namespace_and_name():
    seen = []
    key_of(ShardKey("tenant", lambda key: seen.append(key) or ""), "", "")(Request("a", "b", "c"))
    assert seen == [NamespacedName("a", "b")]


def test_keys_are_divided_evenly():
    counts = [0] * SLOTS
    for number in range(20_000):
        counts[slot_of(f"example.com/Game/default/m-{number}", SLOTS)] += 1

    assert max(counts) < 1.25 * 20_000 / SLOTS
    assert min(counts) > 0.75 * 20_000 / SLOTS
