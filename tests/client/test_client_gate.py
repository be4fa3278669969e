"""The gate: how a cached read waits for own writes, compares with the server, and gives up. `test_client_marks.py` tests the rules."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, NamespacedName
from ctrlruntime.client.gate import DOUBT_AFTER, Gate
from ctrlruntime.client.marks import WHOLE, Listing
from ctrlruntime.errors import ServiceUnavailable, StaleReadError
from ctrlruntime.metrics import ClientMetrics

THING = GroupVersionKind("example.com", "v1", "Thing")
OTHER = GroupVersionKind("example.com", "v1", "Other")


class View:
    """An informer, as the gate sees it. `answers`: what comparisons return, in order; an error is raised."""

    is_filtered_by_fields = False

    def __init__(self, position=10):
        self.at = position
        self.objects = {}
        self.answers = []
        self.compared = []
        self.refreshed = []
        self._changed = asyncio.Event()

    def position(self, namespace):
        return self.at

    def entry(self, namespace, name):
        return self.objects.get((namespace, name))

    def entries(self, namespace):
        return self.objects.values()

    def covers(self, namespace, meta):
        return True

    def changed(self):
        return self._changed.wait()

    def refresh(self, namespace):
        self.refreshed.append(namespace)

    async def compare(self, key):
        self.compared.append(key)
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return await answer if asyncio.isfuture(answer) else answer

    def advance(self, position, *objects):
        self.at = position
        self.objects = {(one.namespace, one.name): one for one in objects}
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@pytest.fixture
def view():
    return View(10)


def gate_of(view, **options):
    gate = Gate(**{"wait": LONGEST_WAIT, **options})
    gate.watch_views(lambda kind: [view] if kind == ("example.com", "Thing") else [])
    return gate


@pytest.mark.parametrize(
    ("written", "waits_for"),
    [
        (("ns", "a"), {("ns", "a")}),
        (("", "a"), {("", "a"), ("ns", "a"), ("other", "a")}),  # a cluster-scoped object may be read with a namespace
        (("ns", WHOLE), {("ns", "a"), ("ns", "b")}),
        (("", WHOLE), {("ns", "a"), ("ns", "b"), ("other", "a"), ("", "a")}),
    ],
)
def test_reads_of_other_objects_are_idle(view, written, waits_for):
    gate = gate_of(view)
    keys = {("ns", "a"), ("ns", "b"), ("other", "a"), ("", "a")}
    assert all(gate.is_idle(THING, NamespacedName(*key)) for key in keys)

    ticket = gate.open(THING, *written)

    assert {key for key in keys if not gate.is_idle(THING, NamespacedName(*key))} == waits_for
    assert not gate.is_idle(THING)
    assert gate.is_idle(OTHER)
    assert all(gate.is_idle(OTHER, NamespacedName(*key)) for key in keys)
    ticket.failed()
    assert all(gate.is_idle(THING, NamespacedName(*key)) for key in keys)


@pytest.fixture
def gate(view):
    return gate_of(view)


def meta(version, *, name="a", uid="uid"):
    return Metadata(name=name, namespace="ns", uid=uid, resource_version=str(version))


async def started(coroutine):
    """Start it and let it get as far as it can."""
    task = asyncio.create_task(coroutine)
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def outcome(task):
    return await asyncio.wait_for(task, LONGEST_WAIT)


# --- waiting ------------------------------------------------------------------------------------------------------------


async def test_without_writes_nothing_waits(gate, view):
    assert gate.is_idle(THING)
    assert await gate.wait_until_visible(THING, view, "ns", "a")
    assert await gate.wait_until_visible(THING, view, "ns")
    assert gate.waits == 0


async def test_a_read_waits_until_the_cache_shows_the_write(gate, view):
    gate.open(THING, "ns", "a").stored(meta(20))
    assert not gate.is_idle(THING)
    assert gate.is_idle(OTHER)

    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    view.advance(19, meta(15))
    await asyncio.sleep(0)
    assert not reading.done()
    view.advance(20, meta(20))

    assert await outcome(reading)
    assert gate.is_idle(THING)
    assert (gate.waits, gate.read_fallbacks) == (1, 0)
    assert view.refreshed == []


async def test_a_read_waits_for_an_open_write_to_end(gate, view):
    ticket = gate.open(THING, "ns", "a")
    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    view.advance(50)
    await asyncio.sleep(0)
    assert not reading.done()

    ticket.stored(meta(40))

    assert await outcome(reading)


async def test_a_steady_writer_does_not_delay_a_reader(gate, view):
    gate.open(THING, "ns", "a").stored(meta(20))
    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    for version in range(21, 40):
        gate.open(THING, "ns", "a").stored(meta(version))
        await asyncio.sleep(0)
    gate.open(THING, "ns", "a")

    view.advance(20, meta(20))

    assert await outcome(reading)


async def test_a_change_between_the_look_and_the_wait_is_not_missed(gate, view):
    gate.open(THING, "ns", "a").stored(meta(20))
    reading = asyncio.create_task(gate.wait_until_visible(THING, view, "ns", "a"))
    await asyncio.sleep(0)  # it has looked, and is about to wait

    view.advance(20)

    assert await outcome(reading)


async def test_a_wait_that_takes_too_long_ends_in_a_live_read(view):
    gate = gate_of(view, wait=0.02)
    gate.open(THING, "ns", "a").stored(meta(20))

    assert not await outcome(gate.wait_until_visible(THING, view, "ns", "a"))
    assert gate.read_fallbacks == 1
    assert view.refreshed == ["ns"]  # its watch may have a dead connection
    assert not gate.is_idle(THING)


async def test_a_cache_whose_versions_are_no_integers_is_not_waited_for(gate, view):
    view.at = -1
    gate.open(THING, "ns", "a").stored(meta("x2"))

    assert not await outcome(gate.wait_until_visible(THING, view, "ns", "a"))
    view.objects = {("ns", "a"): meta("x2")}
    assert await outcome(gate.wait_until_visible(THING, view, "ns", "a"))


async def test_many_waits_leave_no_tasks_behind(gate, view):
    gate.open(THING, "ns", "a").stored(meta(1000))
    readings = [await started(gate.wait_until_visible(THING, view, "ns", "a")) for _ in range(3)]
    for version in range(11, 1001):
        view.advance(version)
        await asyncio.sleep(0)

    assert all([await outcome(reading) for reading in readings])
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_waits_are_counted_by_kind_with_their_seconds(view):
    counter = ClientMetrics()
    now = [0.0]
    gate = gate_of(view, wait=5.0, waits=counter, clock=lambda: now[0])
    gate.open(THING, "ns", "a").stored(meta(20))
    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    now[0] = 6.5

    view.advance(11)

    assert not await outcome(reading)
    assert counter.read_waits == {"Thing.example.com": 1}
    assert counter.read_wait_seconds == {"Thing.example.com": 6.5}
    assert counter.read_fallbacks == {"Thing.example.com": 1}


# --- comparing ------------------------------------------------------------------------------------------------------------


async def test_an_unknown_write_is_settled_by_one_list_of_its_key(gate, view):
    gate.open(THING, "ns", "a").lost()
    view.answers = [Listing("500", {})]

    readings = [await started(gate.wait_until_visible(THING, view, "ns", name)) for name in ("a", "a", None)]

    assert [await outcome(reading) for reading in readings] == [True] * 3
    assert view.compared == [("ns", "a")]
    assert await gate.wait_until_visible(THING, view, "ns", "a")
    assert view.compared == [("ns", "a")]


async def test_a_list_that_was_sent_before_a_write_ended_is_repeated(gate, view):
    held = asyncio.get_running_loop().create_future()
    view.answers = [held, Listing("501", {})]
    gate.open(THING, "ns", "a").lost()
    first = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    gate.open(THING, "ns", "a").lost()
    second = await started(gate.wait_until_visible(THING, view, "ns", "a"))

    held.set_result(Listing("500", {}))

    assert await outcome(first)
    assert await outcome(second)
    assert len(view.compared) == 2


async def test_a_reader_that_is_cancelled_while_it_compares_does_not_fail_the_others(gate, view):
    view.answers = [asyncio.get_running_loop().create_future(), Listing("500", {})]
    gate.open(THING, "ns", "a").lost()
    first = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    second = await started(gate.wait_until_visible(THING, view, "ns", "a"))

    first.cancel()

    assert await outcome(second)


async def test_a_comparison_that_fails_is_a_stale_read_with_kind_and_age(view):
    now = [100.0]
    gate = gate_of(view, clock=lambda: now[0])
    gate.open(THING, "ns", "a").lost()
    now[0] = 103.0
    view.answers = [ServiceUnavailable("etcd is down"), Listing("500", {})]

    with pytest.raises(
        StaleReadError, match=r"cannot read Thing from the cache: since 3\.0 s it may lack a write.*: etcd is down"
    ):
        await gate.wait_until_visible(THING, view, "ns", "a")
    assert await gate.wait_until_visible(THING, view, "ns", "b")
    assert await gate.wait_until_visible(THING, view, "ns", "a")


async def test_a_comparison_takes_no_longer_than_the_wait(view):
    gate = gate_of(view, wait=0.02)
    gate.open(THING, "ns", "a").lost()
    view.answers = [asyncio.get_running_loop().create_future()]

    with pytest.raises(StaleReadError, match="TimeoutError") as raised:
        await outcome(gate.wait_until_visible(THING, view, "ns", "a"))

    assert raised.value.kind == "Thing.example.com"


async def test_a_collection_write_without_an_answer_is_settled_by_a_list_of_the_namespace(gate, view):
    gate.open_all(THING, "ns").lost()
    view.answers = [Listing("10", {})]

    assert await gate.wait_until_visible(THING, view, "ns", "a")
    assert view.compared == [("ns", WHOLE)]


async def test_a_stored_object_that_field_selectors_keep_out_costs_one_list_and_no_long_wait(view):
    now = [0.0]
    gate = gate_of(view, clock=lambda: now[0])
    view.is_filtered_by_fields = True
    gate.open(THING, "ns", "a").stored(meta(20))
    view.answers = [Listing("30", {})]
    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    assert view.compared == []

    now[0] = DOUBT_AFTER
    view.advance(11)

    assert await outcome(reading)
    assert view.compared == [("ns", "a")]


async def test_a_cache_that_is_distrusted_is_compared_namespace_by_namespace_when_it_is_read(gate, view):
    view.advance(10, meta(5))
    gate.distrust([(("example.com", "Thing"), "ns"), (("example.com", "Thing"), "other")])
    view.answers = [Listing("30", {("ns", "a"): "5", ("ns", "b"): "29"})]

    assert await gate.wait_until_visible(THING, view, "ns", "a")
    assert view.compared == [("ns", WHOLE)]
    reading = await started(gate.wait_until_visible(THING, view, "ns"))
    assert not reading.done()
    view.advance(29, meta(5), meta(29, name="b"))
    assert await outcome(reading)
    assert view.compared == [("ns", WHOLE)]


# --- in words ---------------------------------------------------------------------------------------------------------------


async def test_what_a_read_would_wait_for_is_put_in_words(gate, view):
    def pending():
        return gate.pending(("example.com", "Thing"), "ns", "a")

    assert pending() == ""
    ticket = gate.open(THING, "ns", "a")
    assert pending() == "a write has no response yet"
    ticket.stored(meta(20))
    assert pending() == "the cache does not show version 20 yet"
    gate.open(THING, "ns", "a").lost()
    assert (
        pending()
        == "the result of a write, here or in another process, is not known; the next read compares with the server"
    )
    view.answers = [Listing("30", {("ns", "a"): "30"})]
    reading = await started(gate.wait_until_visible(THING, view, "ns", "a"))
    assert pending() == "the cache does not show what a list returned yet"
    view.advance(30, meta(30))
    assert await outcome(reading)
    assert pending() == ""
