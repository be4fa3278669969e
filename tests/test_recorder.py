import asyncio
import json
from datetime import UTC, datetime, timedelta
from random import Random

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import LONGEST_WAIT

from ctrlruntime.api.apps import v1 as apps
from ctrlruntime.api.core import v1 as core
from ctrlruntime.api.meta import v1 as meta
from ctrlruntime.errors import AlreadyExists, Forbidden, NotFound, TransportError
from ctrlruntime.field import MicroTime
from ctrlruntime.log.options import WARN
from ctrlruntime.log.output import sink
from ctrlruntime.recorder import ATTEMPTS, FINISH_AFTER, REFRESH_EVERY, RETRY_DELAY, TEND_EVERY, EventRecorder


class Clock:
    """Both clocks: seconds that pass, and what the calendar says."""

    time = 0.0

    def __call__(self):
        return self.time

    def now(self):
        return MicroTime.of(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time))


class Writer:
    """A client that keeps the Events it is given and fails with `errors`, one for each call, while there are any."""

    def __init__(self):
        self.created, self.patches, self.errors, self.calls = [], [], [], 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.wrote = asyncio.Event()

    async def _answer(self):
        self.calls += 1
        await self.gate.wait()
        self.wrote.set()
        if self.errors:
            raise self.errors.pop(0)

    async def create(self, obj):
        await self._answer()
        self.created.append(obj.to_dict())
        obj.metadata.resource_version = "7"
        return obj

    async def patch(self, obj, patch):
        await self._answer()
        self.patches.append((obj.metadata.name, patch.content_type, patch.data(obj)))
        return obj


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def writer():
    return Writer()


@pytest.fixture
def recorder(writer, clock):
    return EventRecorder(writer, "memcached", instance="memcached-pod-1", clock=clock, now=clock.now, rng=lambda: 0.5)


@pytest.fixture
def warnings():
    """What is logged, as dicts."""

    class Lines:
        threshold = WARN

        def write(self, level, name, event, fields):
            lines.append({"event": event, **fields})

    lines, before = [], sink.output
    sink.output = Lines()
    yield lines
    sink.output = before


def deployment(name="web", namespace="ns"):
    return apps.Deployment(metadata=meta.ObjectMeta(name=name, namespace=namespace, uid="u1", resource_version="3"))


def record(recorder, obj=None, *, note="made it", **options):
    recorder.event(obj or deployment(), **{"reason": "Created", "action": "Create", "note": note, **options})


async def test_an_event_says_what_happened_to_what_by_whom(recorder, writer):
    record(recorder, related=core.Pod(metadata=meta.ObjectMeta(name="pod", namespace="ns")))
    assert writer.created == []

    await recorder.flush()

    (event,) = writer.created
    name = event["metadata"].pop("name")
    assert name.startswith("web.")
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Created",
        "action": "Create",
        "note": "made it",
        "regarding": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "ns",
            "name": "web",
            "uid": "u1",
            "resourceVersion": "3",
        },
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "pod"},
        "reportingController": "memcached",
        "reportingInstance": "memcached-pod-1",
    }


async def test_an_event_about_a_cluster_scoped_object_lives_in_default(recorder, writer):
    record(recorder, core.Node(metadata=meta.ObjectMeta(name="n1")))

    await recorder.flush()

    assert writer.created[0]["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("name", "start"), [("a" * 253, "a" * 200), ("system:admin", "event."), ("a." * 126 + "b", "a.a.")]
)
async def test_an_events_name_is_one_the_server_takes(recorder, writer, name, start):
    record(recorder, deployment(name))

    await recorder.flush()

    made = writer.created[0]["metadata"]["name"]
    assert made.startswith(start)
    assert len(made) <= 253
    assert ".." not in made
    assert ":" not in made


async def test_a_long_note_is_cut_at_a_character(recorder, writer):
    record(recorder, note="ä" * 1000)

    await recorder.flush()

    note = writer.created[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("ä…")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "Error"}, "Normal or Warning, not 'Error'"),
        ({"reason": ""}, "reason has 1 to 128 bytes"),
        ({"action": "x" * 129}, "action has 1 to 128 bytes; .* has 129"),
        ({"action": "ä" * 65}, "action has 1 to 128 bytes; .* has 130"),
    ],
)
def test_what_no_server_would_take_is_refused(recorder, options, message):
    with pytest.raises(ValueError, match=message):
        record(recorder, **options)


def test_the_instance_is_named_and_at_most_128_bytes_long(writer):
    assert EventRecorder(writer, "m").instance.startswith("m-")
    assert EventRecorder(writer, "m", instance="ä" * 200).instance == "ä" * 64


@pytest.mark.parametrize(
    ("controller", "message"),
    [
        ("", "name of the reporting controller"),
        ("my operator", "'my operator': name part must consist of"),
        ("m" * 64, "no more than 63 bytes"),
    ],
)
def test_the_controller_is_a_qualified_name(writer, controller, message):
    with pytest.raises(ValueError, match=message):
        EventRecorder(writer, controller)


# --- series -----------------------------------------------------------------------------------------------------------


async def test_the_same_again_is_a_count_in_a_series(recorder, writer, clock):
    record(recorder)
    await recorder.flush()
    for _ in range(5):
        clock.time += 1
        record(recorder, note="another note")
    await recorder.flush()
    await recorder.flush()

    assert len(writer.created) == 1
    assert writer.patches == [
        (
            writer.created[0]["metadata"]["name"],
            "application/merge-patch+json",
            b'{"series":{"count":6,"lastObservedTime":"2026-01-01T00:00:05.000000Z"}}',
        )
    ]


async def test_what_came_together_is_created_with_its_series(recorder, writer):
    record(recorder)
    record(recorder)

    await recorder.flush()
    await recorder.flush()

    assert writer.created[0]["series"] == {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}
    assert writer.patches == []


@pytest.mark.parametrize(
    "other",
    [
        {"type": "Warning"},
        {"reason": "Other"},
        {"action": "Other"},
        {"obj": deployment("db")},
        {"related": deployment()},
    ],
)
async def test_something_else_is_another_event(recorder, writer, other):
    record(recorder)
    record(recorder, **other)

    await recorder.flush()

    assert len(writer.created) == 2


async def test_a_long_series_is_refreshed_every_half_hour(recorder, writer, clock):
    record(recorder)
    await recorder.flush()
    record(recorder)
    await recorder.flush()
    for _ in range(10):
        clock.time += REFRESH_EVERY / 10
        record(recorder)
        await recorder.flush()

    assert [b'"count":2' in data or b'"count":12' in data for _, _, data in writer.patches] == [True, True]


async def test_a_series_that_went_quiet_is_finished_and_the_next_event_is_a_new_one(recorder, writer, clock):
    record(recorder)
    await recorder.flush()
    record(recorder)
    await recorder.flush()
    record(recorder)
    clock.time += FINISH_AFTER
    await recorder.flush()
    assert [b'"count":3' in data for _, _, data in writer.patches] == [False, True]

    record(recorder)
    await recorder.flush()
    assert len(writer.created) == 2


async def test_a_series_whose_event_is_gone_begins_anew(recorder, writer, clock):
    record(recorder)
    await recorder.flush()
    writer.errors = [NotFound()]
    clock.time += 1
    record(recorder)
    await recorder.flush()

    first, second = writer.created
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert "resourceVersion" not in second["metadata"]
    assert second["series"]["count"] == 2


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_lost_answer_is_tried_again_later_and_then_not_taken_for_another(recorder, writer, clock):
    writer.errors = [TransportError("reset"), AlreadyExists()]
    record(recorder)
    await recorder.flush()
    await recorder.flush()
    assert (writer.calls, recorder.pending) == (1, 1)

    clock.time += RETRY_DELAY / 2
    await recorder.flush()
    assert (writer.calls, recorder.pending, recorder.dropped) == (2, 0, 0)


async def test_what_was_counted_since_a_lost_answer_is_not_lost(recorder, writer, clock):
    writer.errors = [TransportError("reset"), AlreadyExists()]
    record(recorder)
    await recorder.flush()
    record(recorder)
    clock.time += RETRY_DELAY
    await recorder.flush()

    assert [b'"count":2' in data for _, _, data in writer.patches] == [True]


async def test_an_event_forgotten_while_it_is_written_is_written_once(writer, clock, recorder):
    recorder = EventRecorder(writer, "m", capacity=1, clock=clock, now=clock.now)
    writer.gate.clear()
    record(recorder)
    flush = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)
    record(recorder, deployment("db"))  # there is room for one, so the other is forgotten
    writer.gate.set()
    await flush
    await recorder.flush()

    assert (len(writer.created), writer.patches, recorder.dropped) == (2, [], 0)


async def test_two_flushes_at_once_write_an_event_once(recorder, writer):
    writer.gate.clear()
    record(recorder)
    first = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)
    record(recorder)
    second = asyncio.create_task(recorder.flush())
    await asyncio.sleep(0)
    assert writer.calls == 1
    writer.gate.set()
    await asyncio.gather(first, second)
    await recorder.flush()

    assert (len(writer.created), len(writer.patches)) == (1, 1)


async def test_dropped_counts_what_happened_and_not_what_was_sent(recorder, writer):
    writer.errors = [Forbidden("terminating")]
    for _ in range(3):
        record(recorder)
    await recorder.flush()

    assert recorder.dropped == 3


async def test_a_full_queue_does_not_lose_what_is_counted(writer, clock):
    recorder = EventRecorder(writer, "m", capacity=2, clock=clock, now=clock.now)
    record(recorder)
    await recorder.flush()
    record(recorder, deployment("a"))
    record(recorder, deployment("b"))  # now the first is forgotten
    record(recorder, deployment("b"))
    await recorder.flush()

    assert recorder.dropped == 0
    assert [event.get("series", {}).get("count") for event in writer.created] == [None, None, 2]


async def test_others_are_written_while_one_waits_for_its_next_try(recorder, writer):
    writer.errors = [TransportError("reset")]
    record(recorder)
    record(recorder, deployment("db"))

    await recorder.flush()

    assert [event["regarding"]["name"] for event in writer.created] == ["db"]


async def test_after_twelve_tries_an_event_is_dropped(recorder, writer, clock):
    writer.errors = [TransportError("reset")] * 100
    record(recorder)
    for _ in range(20):
        await recorder.flush()
        clock.time += RETRY_DELAY

    assert (writer.calls, recorder.dropped, recorder.pending) == (ATTEMPTS, 1, 0)


@pytest.mark.parametrize("error", [Forbidden("terminating"), RuntimeError("a broken writer")])
async def test_what_is_refused_is_dropped_at_once(recorder, writer, error):
    writer.errors = [error]
    record(recorder)
    record(recorder, deployment("db"))

    await recorder.flush()

    assert (len(writer.created), recorder.dropped, recorder.pending) == (1, 1, 0)


async def test_a_full_queue_drops_and_counts(writer, clock):
    recorder = EventRecorder(writer, "m", capacity=2, clock=clock, now=clock.now)
    for number in range(5):
        record(recorder, deployment(f"d{number}"))

    await recorder.flush()

    assert (len(writer.created), recorder.dropped) == (2, 3)


# --- running ----------------------------------------------------------------------------------------------------------


async def until(event):
    async with asyncio.timeout(LONGEST_WAIT):
        await event.wait()
    event.clear()


async def test_run_writes_what_is_recorded_also_from_threads(recorder, writer):
    task = asyncio.create_task(recorder.run())

    record(recorder)
    await until(writer.wrote)
    await asyncio.to_thread(record, recorder, deployment("db"))
    await until(writer.wrote)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(writer.created) == 2


async def test_what_is_queued_when_run_ends_is_still_written_and_later_events_are_dropped(recorder, writer):
    writer.gate.clear()
    task = asyncio.create_task(recorder.run())
    record(recorder)
    record(recorder, deployment("db"))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.sleep(0)
    writer.gate.set()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(LONGEST_WAIT):
            await task
    assert sorted(event["regarding"]["name"] for event in writer.created) == ["db", "web"]
    record(recorder)
    assert (recorder.dropped, recorder.pending) == (1, 0)


async def test_counts_and_what_waits_for_another_try_are_written_when_run_ends(recorder, writer):
    task = asyncio.create_task(recorder.run())
    for _ in range(2):
        record(recorder)
        await until(writer.wrote)
    record(recorder)
    writer.errors = [TransportError("reset")]
    record(recorder, deployment("db"))
    await until(writer.wrote)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [event["regarding"]["name"] for event in writer.created] == ["web", "db"]
    assert [json.loads(data)["series"]["count"] for _, _, data in writer.patches] == [2, 3]
    assert recorder.dropped == 0


async def test_the_last_flush_has_a_limit(recorder, writer):
    writer.gate.clear()
    task = asyncio.create_task(recorder.run(flush_within=0.01))
    record(recorder)
    record(recorder, deployment("db"))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(LONGEST_WAIT):
            await task
    assert recorder.dropped == 2


async def test_the_last_flush_also_happens_when_a_cancel_scope_ends_it(recorder, writer):
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        await asyncio.sleep(0)
        record(recorder)
        group.cancel_scope.cancel()

    assert len(writer.created) == 1


async def test_run_wakes_for_a_retry(writer):
    recorder = EventRecorder(writer, "m", rng=lambda: 0.0)
    writer.errors = [TransportError("reset")]
    task = asyncio.create_task(recorder.run())

    record(recorder)
    await until(writer.wrote)
    await until(writer.wrote)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(writer.created) == 1


async def test_events_on_top_of_the_capacity_are_logged_now_and_then(writer, clock, warnings):
    recorder = EventRecorder(writer, "m", capacity=1, clock=clock, now=clock.now)
    for number in range(4):
        record(recorder, deployment(f"web-{number}"))
    clock.time = TEND_EVERY
    record(recorder, deployment("web-last"))

    assert [(line["reporter"], line["count"]) for line in warnings if line["event"] == "events dropped"] == [
        ("m", 1),
        ("m", 3),
    ]
    assert recorder.dropped == 4


async def test_no_more_events_are_remembered_than_may_wait(writer, clock):
    recorder = EventRecorder(writer, "m", capacity=2, clock=clock, now=clock.now)
    for name in ("a", "a", "a", "b", "a", "c"):
        record(recorder, deployment(name))
        await recorder.flush()
    # b happened longer ago than a, and is forgotten first: it is recorded anew.
    for name in ("a", "b"):
        record(recorder, deployment(name))
        await recorder.flush()

    assert [event["regarding"]["name"] for event in writer.created] == ["a", "b", "c", "b"]
    assert len(recorder._series) == 2


async def test_the_count_of_an_event_that_is_forgotten_is_written(writer, clock):
    recorder = EventRecorder(writer, "m", capacity=1, clock=clock, now=clock.now)
    for _ in range(5):
        record(recorder, deployment("a"))
        await recorder.flush()
    record(recorder, deployment("b"))
    await recorder.flush()

    assert [json.loads(patch)["series"]["count"] for _, _, patch in writer.patches] == [2, 5]


# --- any history ------------------------------------------------------------------------------------------------------


class Events:
    """A server that keeps Events, forgets them, and fails before or after it did what was asked: `faults` has one word for each call."""

    def __init__(self):
        self.counts, self.faults = {}, []

    async def _answer(self, work):
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise TransportError("refused")
        work()
        if fault == "after":
            raise TransportError("reset")

    async def create(self, obj):
        event = obj.to_dict()
        name, count = event["metadata"]["name"], event.get("series", {"count": None})["count"]
        assert count is None or count > 1, "the server refuses a series of one"

        def work():
            if name in self.counts:
                raise AlreadyExists(name)
            self.counts[name] = count or 1

        await self._answer(work)

    async def patch(self, obj, patch):
        name, count = obj.metadata.name, json.loads(patch.data(obj))["series"]["count"]
        assert count > 1, "the server refuses a series of one"

        def work():
            if name not in self.counts:
                raise NotFound(name)
            self.counts[name] = count

        await self._answer(work)

    def expire(self):
        self.counts.clear()


_STEPS = st.one_of(
    st.tuples(st.just("record"), st.integers(0, 4)),
    st.tuples(st.just("flush"), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1.0, RETRY_DELAY, TEND_EVERY, FINISH_AFTER, REFRESH_EVERY])),
    st.tuples(st.just("fault"), st.sampled_from(["before", "after", ""])),
)


async def end(recorder):
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@given(st.lists(_STEPS, max_size=60), st.integers(1, 6), st.integers())
async def test_what_is_stored_and_what_was_dropped_is_what_happened(steps, capacity, seed):
    clock, server, happened = Clock(), Events(), 0
    random = Random(seed)
    recorder = EventRecorder(server, "m", capacity=capacity, clock=clock, now=clock.now, rng=random.random)
    for step, value in steps:
        clock.time += 0.001
        if step == "record":
            record(recorder, deployment(f"d{value}"))
            happened += 1
        elif step == "flush":
            await recorder.flush()
        elif step == "wait":
            clock.time += value
        else:
            server.faults.append(value)
        assert recorder.pending <= capacity + 1
    server.faults.clear()
    await end(recorder)

    assert sum(server.counts.values()) + recorder.dropped == happened


@given(st.lists(_STEPS, max_size=60), st.integers())
async def test_an_event_that_expired_comes_back_with_its_count(steps, seed):
    clock, server = Clock(), Events()
    recorder = EventRecorder(server, "m", clock=clock, now=clock.now, rng=Random(seed).random)
    for step, value in steps:
        if step == "wait":
            clock.time += value % FINISH_AFTER
        elif step == "flush":
            server.expire()
            await recorder.flush()
        record(recorder)
        clock.time += 0.001
    await end(recorder)

    # The first is written by the run, or was written before and nothing happened since.
    assert sum(server.counts.values()) in {0, len(steps)}
