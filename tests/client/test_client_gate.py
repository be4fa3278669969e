"""The gate: a read never shows a state older than this process's own writes begun before it."""

from __future__ import annotations

import asyncio
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.client.gate import SWEEP_AT, Gate
from ctrlruntime.metrics import ClientMetrics

SOON = 5.0
THING = GroupVersionKind("example.com", "v1", "Thing")
OTHER = GroupVersionKind("example.com", "v1", "Other")


class View:
    """A cache as the gate sees it: a version for all namespaces, the uids that are there, and what it leaves out."""

    def __init__(self, version=0):
        self.at = version
        self.uids = {}
        self.outside = set()
        self.labels = None
        self._changed = asyncio.Event()

    def version(self, namespace):
        return self.at

    def uid(self, namespace, name):
        return self.uids.get((namespace, name))

    def covers(self, namespace, labels):
        return namespace not in self.outside and (self.labels is None or (labels or {}).items() >= self.labels.items())

    def changed(self):
        return self._changed.wait()

    def advance(self, version, **uids):
        self.at = version
        self.uids = {("ns", name): uid for name, uid in uids.items()}
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@pytest.fixture
def view():
    return View(10)


@pytest.fixture
def gate(view):
    gate = Gate(wait=SOON)
    gate.watch_horizons(lambda kind: view if kind == ("example.com", "Thing") else None)
    return gate


def meta(version, *, name="a", uid="uid", labels=None):
    return Metadata(name=name, namespace="ns", uid=uid, resource_version=str(version), labels=labels)


async def begun(coroutine):
    """Start it and let it get as far as it can."""
    task = asyncio.create_task(coroutine)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def outcome(task):
    return await asyncio.wait_for(task, SOON)


def marks(gate):
    return {key for held in gate._marks.values() for key in held}


# --- waiting ------------------------------------------------------------------------------------------------------------


async def test_without_writes_nothing_waits(gate):
    assert await gate.settle(THING, "ns", "a")
    assert await gate.settle(THING, "ns")
    assert gate.waits == 0


async def test_a_read_waits_until_the_cache_has_seen_the_write(gate, view):
    gate.open(THING, "ns", "a").stored(meta(20))

    reading = await begun(gate.settle(THING, "ns", "a"))
    view.advance(19, a="uid")
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(20, a="uid")

    assert await outcome(reading)
    assert marks(gate) == set()
    assert (gate.waits, gate.live_reads) == (1, 0)


async def test_a_read_waits_for_a_write_under_way(gate, view):
    ticket = gate.open(THING, "ns", "a")
    reading = await begun(gate.settle(THING, "ns", "a"))
    view.advance(50)
    await asyncio.sleep(0)
    assert not reading.done()

    ticket.stored(meta(40))

    assert await outcome(reading)


async def test_a_write_seen_before_its_answer_arrived_holds_nobody_up(gate, view):
    ticket = gate.open(THING, "ns", "a")
    view.advance(20, a="uid")

    ticket.stored(meta(20))

    assert await gate.settle(THING, "ns", "a")
    assert gate.waits == 0
    assert marks(gate) == set()


async def test_other_keys_kinds_and_namespaces_do_not_wait(gate):
    gate.open(THING, "ns", "a").stored(meta(20))

    assert await gate.settle(THING, "ns", "b")
    assert await gate.settle(THING, "other", "a")
    assert await gate.settle(THING, "other")
    assert await gate.settle(OTHER, "ns", "a")
    assert gate.waits == 0


@pytest.mark.parametrize("namespace", ["ns", ""])
async def test_a_list_waits_for_every_key_of_its_namespace(gate, view, namespace):
    gate.open(THING, "ns", "a").stored(meta(20))
    gate.open(THING, "ns", "b").stored(meta(21, name="b"))

    reading = await begun(gate.settle(THING, namespace))
    view.advance(20)
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(21)

    assert await outcome(reading)


async def test_a_refused_write_leaves_nothing_to_wait_for(gate):
    gate.open(THING, "ns", "a").failed()

    assert await gate.settle(THING, "ns", "a")
    assert marks(gate) == set()


async def test_a_refusal_does_not_take_back_the_mark_of_an_earlier_write(gate):
    gate.open(THING, "ns", "a").stored(meta(20))
    gate.open(THING, "ns", "a").failed()

    reading = await begun(gate.settle(THING, "ns", "a"))
    assert not reading.done()
    reading.cancel()


async def test_a_wait_that_takes_too_long_ends_in_a_live_read(view):
    gate = Gate(wait=0.02)
    gate.watch_horizons(lambda _kind: view)
    gate.open(THING, "ns", "a").stored(meta(20))

    assert not await outcome(gate.settle(THING, "ns", "a"))
    assert gate.live_reads == 1
    assert marks(gate) == {("ns", "a")}


async def test_a_change_between_the_look_and_the_wait_is_not_missed(gate, view):
    gate.open(THING, "ns", "a").stored(meta(20))
    reading = asyncio.create_task(gate.settle(THING, "ns", "a"))
    await asyncio.sleep(0)  # it has looked, and is about to wait

    view.advance(20)

    assert await outcome(reading)


async def test_many_waits_leave_no_tasks_behind(gate, view):
    gate.open(THING, "ns", "a").stored(meta(1000))
    readings = [await begun(gate.settle(THING, "ns", "a")) for _ in range(3)]
    for version in range(11, 1001):
        view.advance(version)
        await asyncio.sleep(0)

    assert all([await outcome(reading) for reading in readings])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


# --- deletions ------------------------------------------------------------------------------------------------------------


async def test_after_a_deletion_a_read_waits_until_that_object_is_gone(gate, view):
    view.advance(10, a="old")
    gate.open(THING, "ns", "a").deleted("old")

    reading = await begun(gate.settle(THING, "ns", "a"))
    view.advance(15, a="old")
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(16, a="new")

    assert await outcome(reading)


async def test_a_deletion_seen_before_its_answer_holds_nobody_up(gate, view):
    view.advance(10, a="old")
    ticket = gate.open(THING, "ns", "a")
    view.advance(12)

    ticket.deleted("old")

    assert await gate.settle(THING, "ns", "a")
    assert gate.waits == 0


async def test_two_lives_deleted_in_a_row_must_both_be_gone(gate, view):
    view.advance(10, a="first")
    gate.open(THING, "ns", "a").deleted("first")
    gate.open(THING, "ns", "a").stored(meta(20, uid="second"))
    gate.open(THING, "ns", "a").deleted("second")

    reading = await begun(gate.settle(THING, "ns", "a"))
    view.advance(19, a="first")
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(20, a="second")
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(21)

    assert await outcome(reading)


async def test_a_deletion_of_what_the_cache_never_showed_is_settled_live(gate, view):
    gate.open(THING, "ns", "a").deleted("somebody-elses")

    assert not await gate.settle(THING, "ns", "a")
    assert not gate.settled_live(THING, "ns", "a", "", since=gate.losses)
    assert not await gate.settle(THING, "ns", "a")
    assert gate.settled_live(THING, "ns", "a", "10", since=gate.losses)  # the position of a list
    assert await gate.settle(THING, "ns", "a")


# --- lost answers -----------------------------------------------------------------------------------------------------------


async def test_a_lost_answer_makes_reads_live_until_one_of_them_settles_it(gate, view):
    gate.open(THING, "ns", "a").lost()
    view.advance(1000)

    assert not await gate.settle(THING, "ns", "a")
    assert not await gate.settle(THING, "ns")
    assert await gate.settle(THING, "ns", "b")
    gate.settled_live(THING, "ns", "a", "1001", since=gate.losses)

    reading = await begun(gate.settle(THING, "ns", "a"))
    assert not reading.done()
    view.advance(1001)
    assert await outcome(reading)


async def test_a_lost_answer_for_an_object_that_is_not_there_needs_a_position_to_wait_for(gate, view):
    view.advance(10, a="old")
    gate.open(THING, "ns", "a").lost()
    assert not gate.settled_live(THING, "ns", "a", "", since=gate.losses)
    assert gate.settled_live(THING, "ns", "a", "12", since=gate.losses)

    reading = await begun(gate.settle(THING, "ns", "a"))
    view.advance(11)
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(12)

    assert await outcome(reading)


async def test_without_anything_lost_a_live_read_settles_and_changes_nothing(gate):
    gate.open(THING, "ns", "a").stored(meta(20))

    assert gate.settled_live(THING, "ns", "a", "", since=gate.losses)
    assert gate.settled_live(THING, "ns", "b", "", since=gate.losses)

    assert marks(gate) == {("ns", "a")}


async def test_a_live_list_settles_all_that_was_lost_in_its_namespace(gate, view):
    gate.open(THING, "ns", "a").lost()
    gate.open(THING, "ns", "b").stored(meta(20, name="b"))
    gate.open(THING, "elsewhere", "c").lost()

    gate.settled_live(THING, "ns", None, "30", since=gate.losses)

    view.advance(29)
    reading = await begun(gate.settle(THING, "ns", "a"))
    assert not reading.done()
    assert await gate.settle(THING, "ns", "b")
    assert not await gate.settle(THING, "elsewhere", "c")
    view.advance(30)
    assert await outcome(reading)


async def test_a_live_read_does_not_settle_what_was_lost_after_it_was_sent(gate, view):
    since = gate.losses
    gate.open(THING, "ns", "a").lost()

    gate.settled_live(THING, "ns", "a", "5", since=since)

    assert not await gate.settle(THING, "ns", "a")


async def test_an_answer_settles_what_was_lost_before_it_was_asked_for_but_not_what_was_lost_meanwhile(gate, view):
    gate.open(THING, "ns", "a").lost()
    gate.open(THING, "ns", "a").stored(meta(9))
    assert await gate.settle(THING, "ns", "a")

    answered, unanswered = gate.open(THING, "ns", "a"), gate.open(THING, "ns", "a")
    unanswered.lost()
    answered.stored(meta(9))

    assert not await gate.settle(THING, "ns", "a")


async def test_a_live_read_during_a_write_settles_nothing(gate, view):
    gate.open(THING, "ns", "a").lost()
    ticket = gate.open(THING, "ns", "a")

    gate.settled_live(THING, "ns", "a", "5", since=gate.losses)
    ticket.failed()

    assert not await gate.settle(THING, "ns", "a")


# --- what cannot be compared, what is not held --------------------------------------------------------------------------------


async def test_versions_are_integers_of_any_length(gate, view):
    view.advance(10**30)
    gate.open(THING, "ns", "a").stored(meta(10**30 + 1))

    reading = await begun(gate.settle(THING, "ns", "a"))
    assert not reading.done()
    view.advance(10**30 + 1)

    assert await outcome(reading)


async def test_a_kind_whose_versions_do_not_parse_is_read_live_after_a_write(gate, view):
    view.advance(-1)
    assert await gate.settle(THING, "ns", "a")
    gate.open(THING, "ns", "a").stored(meta("opaque"))

    assert not await gate.settle(THING, "ns", "a")
    gate.settled_live(THING, "ns", "a", "opaque", since=gate.losses)
    assert not await gate.settle(THING, "ns", "a")


async def test_an_answer_without_a_version_is_not_taken_for_seen(gate):
    gate.open(THING, "ns", "a").stored(meta(""))

    assert not await gate.settle(THING, "ns", "a")


async def test_a_kind_that_no_cache_holds_waits_for_writes_under_way_only(gate):
    ticket = gate.open(OTHER, "ns", "a")
    reading = await begun(gate.settle(OTHER, "ns", "a"))
    assert not reading.done()

    ticket.stored(meta(10**9))

    assert await outcome(reading)
    assert await gate.settle(OTHER, "ns", "a")
    assert marks(gate) == set()


async def test_an_informer_that_is_removed_while_a_read_waits_ends_the_wait(view):
    held = [view]
    gate = Gate(wait=SOON)
    gate.watch_horizons(lambda _kind: held[0])
    gate.open(THING, "ns", "a").stored(meta(20))
    reading = await begun(gate.settle(THING, "ns", "a"))

    held[0] = None
    view.advance(11)

    assert await outcome(reading)


async def test_a_response_outside_the_cache_closes_its_mark_at_once(gate, view):
    view.outside.add("ns")
    gate.open(THING, "ns", "a").stored(meta(20))
    gate.open(THING, "ns", "b").deleted("uid")

    assert marks(gate) == set()


async def test_a_write_that_takes_an_object_out_of_the_selection_is_waited_for(gate, view):
    view.labels = {"app": "x"}
    view.advance(10, a="uid")
    gate.open(THING, "ns", "a").stored(meta(20, labels={"app": "other"}))
    reading = await begun(gate.settle(THING, "ns", "a"))
    assert not reading.done()
    view.advance(20)
    assert await outcome(reading)

    gate.open(THING, "ns", "b").stored(meta(30, name="b", labels={"app": "x"}))
    gate.open(THING, "ns", "b").stored(meta(31, name="b", labels={"app": "other"}))
    view.advance(30, b="uid")
    reading = await begun(gate.settle(THING, "ns", "b"))
    assert not reading.done()
    view.advance(31)
    assert await outcome(reading)


async def test_an_outside_answer_beside_one_under_way_leaves_no_mark_of_a_version_never_seen(gate, view):
    view.labels = {"app": "x"}
    first, second = gate.open(THING, "ns", "a"), gate.open(THING, "ns", "a")
    first.failed()
    second.stored(meta(20))

    assert marks(gate) == set()


# --- whole collections ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["ns", ""])
async def test_a_write_to_a_whole_collection_is_waited_for_by_all_reads_of_it(gate, view, where):
    ticket = gate.open_all(THING, where)
    readings = [await begun(gate.settle(THING, "ns", name)) for name in ("a", None)]
    assert not any(reading.done() for reading in readings)
    if where:
        assert await gate.settle(THING, "other", "a")

    ticket.reached("30")
    await asyncio.sleep(0)
    assert not any(reading.done() for reading in readings)
    view.advance(30)

    assert all([await outcome(reading) for reading in readings])


async def test_a_collection_write_without_a_position_makes_reads_live(gate, view):
    gate.open_all(THING, "ns").lost()

    assert not await gate.settle(THING, "ns", "a")
    assert not await gate.settle(THING, "ns")
    gate.settled_live(THING, "ns", None, "10", since=gate.losses)
    assert await gate.settle(THING, "ns", "a")


# --- housekeeping ---------------------------------------------------------------------------------------------------------


async def test_marks_of_keys_that_nobody_reads_do_not_pile_up(gate, view):
    for number in range(20 * SWEEP_AT):
        gate.open(THING, "ns", f"o{number}").stored(meta(11 + number, name=f"o{number}"))
        view.advance(10 + number)

    assert len(marks(gate)) <= SWEEP_AT + 1


async def test_waits_are_counted_by_kind_with_their_seconds(view):
    counter = ClientMetrics()
    now = iter([0.0, 0.0, 6.0, 6.5])
    gate = Gate(wait=5.0, waits=counter, clock=lambda: next(now))
    gate.watch_horizons(lambda _kind: view)
    gate.open(THING, "ns", "a").stored(meta(20))
    assert await gate.settle(OTHER, "ns", "a")

    asyncio.get_running_loop().call_soon(view.advance, 11)
    assert not await gate.settle(THING, "ns", "a")

    assert counter.read_waits == {"Thing.example.com": 1}
    assert counter.read_wait_seconds == {"Thing.example.com": 6.5}
    assert counter.live_reads == {"Thing.example.com": 1}


# --- whatever happens -----------------------------------------------------------------------------------------------------


class Server:
    """Objects with a history, and a cache that follows it when told to."""

    def __init__(self):
        self.revision = 10
        self.objects = {}
        self.history = [(10, {})]
        self.view = View(10)
        self.cursor = 0

    def change(self, key, uid):
        self.revision += 1
        self.objects = {name: known for name, known in self.objects.items() if name != key}
        if uid is not None:
            self.objects[key] = (uid, self.revision)
        self.history.append((self.revision, self.objects))
        return self.revision

    def follow(self, steps):
        self.cursor = min(self.cursor + steps, len(self.history) - 1)
        version, objects = self.history[self.cursor]
        self.view.advance(version, **{name: uid for name, (uid, _) in objects.items()})


class Write:
    """One of our own writes; `effect` is the revision that it made, once it has."""

    def __init__(self, key):
        self.key = key
        self.effect = None


async def play(actions):
    server = Server()
    gate = Gate(wait=60.0)
    gate.watch_horizons(lambda _kind: server.view)
    under_way, own, readings = [], [], []

    def finish(write, ticket, how, took_effect):
        uid = server.objects.get(write.key, (None,))[0]
        match how:
            case "update" if uid is not None:
                write.effect = server.change(write.key, uid)
                ticket.stored(meta(write.effect, name=write.key, uid=uid))
            case "create" if uid is None:
                write.effect = server.change(write.key, uid := f"{write.key}{server.revision}")
                ticket.stored(meta(write.effect, name=write.key, uid=uid))
            case "delete" if uid is not None:
                write.effect = server.change(write.key, None)
                ticket.deleted(uid)
            case "lost":
                if took_effect:
                    write.effect = server.change(write.key, None if uid else f"{write.key}{server.revision}")
                ticket.lost()
            case _:
                ticket.failed()

    async def read(name):
        before = [write for write in own if name is None or write.key == name]
        since = gate.losses
        if not await gate.settle(THING, "ns", name):
            # The live read: what the server has now.
            if name is None:
                gate.settled_live(THING, "ns", None, str(server.revision), since=since)
            else:
                version = server.objects[name][1] if name in server.objects else ""
                if not gate.settled_live(THING, "ns", name, str(version), since=since):
                    gate.settled_live(THING, "ns", name, str(server.revision), since=since)
            return
        seen = server.history[server.cursor][0]
        for write in before:
            assert write.effect is None or seen >= write.effect

    for action, key, number, how, flag in actions:
        match action:
            case "open":
                write = Write(key)
                own.append(write)
                under_way.append((write, gate.open(THING, "ns", key)))
            case "finish" if under_way:
                finish(*under_way.pop(number % len(under_way)), how, flag)
            case "foreign":
                known = server.objects.get(key)
                server.change(key, None if known and flag else known[0] if known else f"foreign{server.revision}")
            case "follow":
                server.follow(number)
            case "read":
                readings.append(asyncio.create_task(read(None if flag else key)))
        for _ in range(number % 4):
            await asyncio.sleep(0)
    for write, ticket in under_way:
        finish(write, ticket, "failed", False)
    server.follow(sys.maxsize)
    async with asyncio.timeout(SOON):
        await asyncio.gather(*readings)
        for name in ("a", "b", None):
            await read(name)
    # All is seen and nothing is lost any more: no mark holds anybody up.
    server.follow(0)
    for name in ("a", "b", None):
        await asyncio.wait_for(read(name), SOON)


ACTIONS = st.tuples(
    st.sampled_from(["open", "open", "finish", "finish", "foreign", "follow", "read", "read"]),
    st.sampled_from("ab"),
    st.integers(0, 6),
    st.sampled_from(["create", "update", "delete", "lost", "failed"]),
    st.booleans(),
)


UNSEEN_LIFE = [  # somebody else's object, never seen by the cache, is deleted by us; a lagging cache could still show it
    ("open", "b", 0, "create", False),
    ("foreign", "b", 1, "create", False),
    ("finish", "b", 0, "delete", False),
    ("read", "b", 1, "create", False),
    ("read", "b", 1, "create", False),
]


@settings(max_examples=400, deadline=None)
@given(st.lists(ACTIONS, max_size=50))
@example(UNSEEN_LIFE)
def test_a_settled_read_is_never_older_than_own_writes_begun_before_it(actions):
    asyncio.run(play(actions))
