"""Sources: from events to requests in the queue, whatever user code does on the way."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import DecodeError
from ctrlruntime.event import CreateEvent, DeleteEvent, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.handler import EnqueueRequestForObject, Funcs, enqueue_requests_from_map_func
from ctrlruntime.log.options import ERROR, INFO, WARN
from ctrlruntime.log.output import sink
from ctrlruntime.predicate import Predicate
from ctrlruntime.reconcile import Request
from ctrlruntime.source import LOW_PRIORITY, Channel, EventChannel, Func, Kind

QUICK = (0.01, 0.02)
LEVELS = {INFO: "info", WARN: "warning", ERROR: "error"}


@contextlib.contextmanager
def capture_logs():
    """Collect log lines as dicts: event, log_level, and their fields, bound ones included."""

    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            lines.append({"event": event, "log_level": LEVELS.get(level, "debug"), **fields})

    lines, before = [], sink.output
    sink.output = Lines()
    try:
        yield lines
    finally:
        sink.output = before


class Thing:
    """Stands for a kind; the events bring their own decoding."""


class Queue:
    """Notes what is added, and lets a test wait for it."""

    def __init__(self):
        self.added = []
        self.keys = asyncio.Queue()

    def add(self, key, *, priority=0, after=0.0, rate_limited=False, trigger=None):
        self.added.append((key, priority, after, trigger))
        self.keys.put_nowait(key)

    async def next(self):
        return await asyncio.wait_for(self.keys.get(), LONGEST_WAIT)


class Informers:
    def __init__(self):
        self.subscription = Subscription("test")

    async def subscribe(self, kind, *, name):
        return self.subscription


def snapshot(name="a", version="1", decode=lambda raw: json.loads(raw)["metadata"]["name"]):
    metadata = {"name": name, "namespace": "ns", "resourceVersion": version}
    return Snapshot.of(json.dumps({"metadata": metadata}).encode(), decode)


def create(name="a", *, initial=False):
    return CreateEvent(snapshot(name), is_in_initial_list=initial)


class Started:
    """A started Kind source with its subscription and queue."""

    def __init__(self, handler=None, predicates=(), **options):
        self.informers = Informers()
        self.queue = Queue()
        options = {"retry_delays": QUICK, **options}
        self.source = Kind(
            self.informers, Thing, handler or EnqueueRequestForObject(), predicates=predicates, **options
        )

    async def __aenter__(self):
        await self.source.start(self.queue)
        return self

    async def __aexit__(self, *_):
        await self.source.stop()

    def put(self, *events):
        for event in events:
            self.informers.subscription.put(event)

    async def wait_for_sync(self):
        self.informers.subscription.put_synced()
        await asyncio.wait_for(self.source.wait_for_sync(), LONGEST_WAIT)


async def test_initial_list_and_unchanged_updates_are_low_priority_and_live_events_are_not():
    async with Started() as it:
        it.put(create("listed", initial=True))
        await it.wait_for_sync()
        it.put(
            create("created"),
            UpdateEvent(snapshot("resynced"), snapshot("resynced")),
            UpdateEvent(snapshot("updated", "1"), snapshot("updated", "2")),
            DeleteEvent(snapshot("deleted")),
            GenericEvent(snapshot("generic")),
        )
        for _ in range(6):
            await it.queue.next()

    assert [(key.name, priority) for key, priority, _, _ in it.queue.added] == [
        ("listed", LOW_PRIORITY),
        ("created", 0),
        ("resynced", LOW_PRIORITY),
        ("updated", 0),
        ("deleted", 0),
        ("generic", 0),
    ]


async def test_a_handler_may_set_priority_and_delay_itself():
    handler = Funcs(create=lambda event, enqueue: enqueue(Request("ns", "x"), priority=7, after=2.5))
    async with Started(handler) as it:
        it.put(create(initial=True))
        await it.queue.next()

    assert it.queue.added[0][:3] == (Request("ns", "x"), 7, 2.5)


async def test_a_request_carries_the_event_that_triggered_it():
    async with Started(cluster="west") as it:
        it.put(UpdateEvent(snapshot(version="1"), snapshot(version="2")))
        assert await it.queue.next() == Request("ns", "a", "west")

    trigger = it.queue.added[0][3]
    assert (trigger.event, trigger.source, trigger.name) == ("update", "Thing", "a")
    assert (trigger.resource_version, trigger.cluster) == ("2", "west")
    assert trigger.old_version == "1"
    assert (b'"1"' in trigger.old, b'"2"' in trigger.new) == (True, True)
    assert trigger.seen_at > 0


async def test_what_is_no_change_has_no_states_to_compare():
    async with Started() as it:
        it.put(UpdateEvent(snapshot("resynced"), snapshot("resynced")), create("created"))
        for _ in range(2):
            await it.queue.next()

    triggers = [added[3] for added in it.queue.added]
    assert [(trigger.event, trigger.old, trigger.new) for trigger in triggers] == [
        ("update", None, None),
        ("create", None, None),
    ]


async def test_synced_means_that_the_handler_has_seen_the_whole_initial_list():
    async with Started() as it:
        waiting = asyncio.create_task(it.source.wait_for_sync())
        it.put(create("one", initial=True), create("two", initial=True))
        await it.queue.next()
        await it.queue.next()
        assert not waiting.done()

        it.informers.subscription.put_synced()
        await asyncio.wait_for(waiting, LONGEST_WAIT)


async def test_synced_waits_for_async_handlers_of_the_initial_list():
    gate = asyncio.Event()

    async def function(name):
        await gate.wait()
        return [Request("ns", name)]

    async with Started(enqueue_requests_from_map_func(function)) as it:
        it.put(create(initial=True))
        it.informers.subscription.put_synced()
        waiting = asyncio.create_task(it.source.wait_for_sync())
        await it.informers.subscription.wait_for_sync()
        await asyncio.sleep(0)
        assert not waiting.done()

        gate.set()
        await asyncio.wait_for(waiting, LONGEST_WAIT)

    assert [key for key, *_ in it.queue.added] == [Request("ns", "a")]


async def test_predicates_are_asked_in_order_and_the_first_no_is_the_last_question():
    asked = []

    def ask(name, verdict):
        def predicate(event):
            asked.append(name)
            return verdict(event)

        return predicate

    predicates = [ask("first", lambda event: event.meta.name == "yes"), ask("second", lambda event: True)]
    async with Started(predicates=predicates) as it:
        it.put(create("no"), create("yes"))
        assert (await it.queue.next()).name == "yes"

    assert asked == ["first", "first", "second"]


async def test_a_predicate_that_raises_lets_the_event_pass_and_is_logged_once():
    class Broken(Predicate):
        def create(self, event):
            raise KeyError("spec")

    with capture_logs() as logs:
        async with Started(predicates=[Broken()]) as it:
            it.put(create("one"), create("two"))
            assert [(await it.queue.next()).name, (await it.queue.next()).name] == ["one", "two"]

    lines = [line for line in logs if "predicate failed" in line["event"]]
    assert len(lines) == 1
    assert (lines[0]["predicate"], lines[0]["name"]) == ("Broken()", "one")
    assert it.source.predicate_failures == 2


async def test_a_predicate_that_raises_does_not_silence_the_others():
    def broken(event):
        raise KeyError("spec")

    async with Started(predicates=[broken, lambda event: event.meta.name == "wanted"]) as it:
        it.put(create("unwanted"), create("wanted"))
        assert (await it.queue.next()).name == "wanted"

    assert len(it.queue.added) == 1


async def test_a_predicate_that_returns_a_coroutine_counts_as_failed():
    async def later():
        return False

    async with Started(predicates=[lambda event: later()]) as it:
        it.put(create())
        await it.queue.next()

    assert it.source.predicate_failures == 1


async def test_an_event_whose_handler_fails_is_handled_again_and_other_keys_go_on():
    calls = []

    def function(name):
        calls.append(name)
        if name == "bad" and calls.count("bad") < 3:
            raise ConnectionError("not now")
        return [Request("ns", name)]

    with capture_logs() as logs:
        async with Started(enqueue_requests_from_map_func(function)) as it:
            it.put(create("bad"), create("good"))
            assert [(await it.queue.next()).name, (await it.queue.next()).name] == ["good", "bad"]

    assert calls == ["bad", "good", "bad", "bad"]
    lines = [line for line in logs if "handler failed" in line["event"]]
    assert [(line["name"], line["log_level"]) for line in lines] == [("bad", "error")]


async def test_a_retried_event_keeps_its_priority():
    failures = iter([True, False])

    def function(name):
        if next(failures):
            raise ConnectionError("not now")
        return [Request("ns", name)]

    async with Started(enqueue_requests_from_map_func(function)) as it:
        it.put(create(initial=True))
        await it.queue.next()

    assert it.queue.added[0][1] == LOW_PRIORITY


async def test_a_handler_that_always_fails_is_given_up_with_an_error():
    given_up = asyncio.Event()
    calls = 0

    def function(name):
        nonlocal calls
        calls += 1
        if calls == 20:
            asyncio.get_running_loop().call_soon(given_up.set)
        raise ConnectionError("never")

    with capture_logs() as logs:
        async with Started(enqueue_requests_from_map_func(function), retry_delays=(0.0, 0.0)) as it:
            it.put(create())
            await asyncio.wait_for(given_up.wait(), LONGEST_WAIT)

    assert calls == 20
    assert [line["calls"] for line in logs if "event dropped" in line["event"]] == [20]


async def test_an_object_that_does_not_decode_is_not_tried_again_and_is_named():
    def undecodable(raw):
        raise DecodeError("spec.size: not a number")

    with capture_logs() as logs:
        async with Started(enqueue_requests_from_map_func(lambda obj: [Request("ns", obj)])) as it:
            it.put(CreateEvent(snapshot("bad", decode=undecodable)), create("good"))
            assert (await it.queue.next()).name == "good"

    lines = [line for line in logs if line["log_level"] == "warning"]
    assert [(line["name"], line["error"]) for line in lines] == [("bad", "spec.size: not a number")]


async def test_a_slow_async_handler_holds_up_its_own_key_only_and_keeps_its_order():
    gate = asyncio.Event()

    entered = []

    async def function(name):
        entered.append(name)
        if entered.count("slow") == 1 and name == "slow":
            await gate.wait()
        return [Request("ns", name)]

    async with Started(enqueue_requests_from_map_func(function)) as it:
        it.put(create("slow"), DeleteEvent(snapshot("slow", version="9")), create("quick"))
        assert (await it.queue.next()).name == "quick"
        assert entered == ["slow", "quick"]

        gate.set()
        assert [(await it.queue.next()).name, (await it.queue.next()).name] == ["slow", "slow"]

    assert [trigger.event for key, _, _, trigger in it.queue.added if key.name == "slow"] == ["create", "delete"]


async def test_an_async_handler_that_takes_too_long_is_cancelled_and_called_again():
    calls = 0

    async def function(name):
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.Event().wait()
        return [Request("ns", name)]

    with capture_logs() as logs:
        async with Started(enqueue_requests_from_map_func(function), handler_timeout=0.02) as it:
            it.put(create())
            await it.queue.next()

    assert "longer than 0.02 s" in str(next(line for line in logs if "handler failed" in line["event"])["exc_info"])


async def test_stop_ends_the_subscription_and_cancels_handlers_and_retries():
    entered = asyncio.Event()

    async def function(name):
        if name == "hangs":
            entered.set()
            await asyncio.Event().wait()
        raise ConnectionError("not now")

    before = asyncio.all_tasks()
    async with Started(enqueue_requests_from_map_func(function), retry_delays=(60.0, 60.0)) as it:
        it.put(create("fails"), create("hangs"))
        await asyncio.wait_for(entered.wait(), LONGEST_WAIT)

    assert it.informers.subscription.is_stopped
    assert asyncio.all_tasks() == before
    await it.source.stop()


async def test_a_long_initial_list_lets_other_tasks_run():
    turns = 0

    async def neighbour():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with Started() as it:
        it.put(*(create(str(number), initial=True) for number in range(20_000)))
        task = asyncio.create_task(neighbour())
        await it.wait_for_sync()
        task.cancel()

    assert len(it.queue.added) == 20_000
    assert turns > 3


async def test_a_source_starts_once():
    async with Started() as it:
        with pytest.raises(RuntimeError, match="started before"):
            await it.source.start(it.queue)


def test_missing_parts_are_refused_with_advice():
    with pytest.raises(TypeError, match=r"mgr\.cache"):
        Kind(None, Thing, EnqueueRequestForObject())
    with pytest.raises(TypeError, match="class of a kind"):
        Kind(Informers(), None, EnqueueRequestForObject())
    with pytest.raises(TypeError, match="event handler"):
        Kind(Informers(), Thing, None)
    with pytest.raises(TypeError, match="EventChannel"):
        Channel(None, EnqueueRequestForObject())
    with pytest.raises(TypeError, match="async function"):
        Func(None)


async def test_channel_keeps_events_from_before_the_start():
    channel, queue = EventChannel(), Queue()
    await channel.put(GenericEvent(snapshot("early")))
    source = Channel(channel, EnqueueRequestForObject())
    await channel.put(GenericEvent(snapshot("before-start")))
    await source.start(queue)
    await source.wait_for_sync()
    await channel.put(GenericEvent(snapshot("live")))

    assert [(await queue.next()).name for _ in range(3)] == ["early", "before-start", "live"]
    await source.stop()


async def test_each_receiver_of_a_channel_gets_every_event():
    channel, queues = EventChannel(), [Queue(), Queue()]
    sources = [Channel(channel, EnqueueRequestForObject()) for _ in queues]
    for source, queue in zip(sources, queues, strict=True):
        await source.start(queue)

    await channel.put(GenericEvent(snapshot("one")))

    assert [(await queue.next()).name for queue in queues] == ["one", "one"]
    for source in sources:
        await source.stop()


async def test_put_waits_for_the_slowest_receiver_and_put_nowait_refuses():
    channel, queue = EventChannel(buffer=1), Queue()
    source = Channel(channel, EnqueueRequestForObject())
    await channel.put(GenericEvent(snapshot("one")))
    with pytest.raises(asyncio.QueueFull):
        channel.put_nowait(GenericEvent(snapshot("refused")))
    waiting = asyncio.create_task(channel.put(GenericEvent(snapshot("two"))))
    await asyncio.sleep(0)
    assert not waiting.done()

    await source.start(queue)
    await asyncio.wait_for(waiting, LONGEST_WAIT)

    assert [(await queue.next()).name for _ in range(2)] == ["one", "two"]
    await source.stop()


async def test_a_stopped_receiver_holds_nobody_up():
    channel = EventChannel(buffer=1)
    source = Channel(channel, EnqueueRequestForObject())
    await channel.put(GenericEvent(snapshot("one")))
    waiting = asyncio.create_task(channel.put(GenericEvent(snapshot("two"))))
    await source.stop()
    await asyncio.wait_for(waiting, LONGEST_WAIT)


async def test_a_closed_channel_delivers_what_is_left_and_takes_no_more():
    channel, queue = EventChannel(), Queue()
    await channel.put(GenericEvent(snapshot("last")))
    channel.close()
    source = Channel(channel, EnqueueRequestForObject())
    await source.start(queue)

    assert (await queue.next()).name == "last"
    with pytest.raises(RuntimeError, match="closed"):
        await channel.put(GenericEvent(snapshot("late")))
    await source.stop()


async def test_channel_honours_predicates():
    channel, queue = EventChannel(), Queue()
    source = Channel(channel, EnqueueRequestForObject(), predicates=[lambda event: event.meta.name == "wanted"])
    await source.start(queue)
    await channel.put(GenericEvent(snapshot("unwanted")))
    await channel.put(GenericEvent(snapshot("wanted")))

    assert (await queue.next()).name == "wanted"
    await source.stop()


async def test_func_runs_until_stopped_and_is_called_again_when_it_fails():
    calls = 0

    async def tick(queue):
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("not now")
        queue.add(Request("ns", "tick"), after=1.0)
        await asyncio.Event().wait()

    queue = Queue()
    source = Func(tick, retry_delays=QUICK)
    with capture_logs() as logs:
        await source.start(queue)
        await source.wait_for_sync()
        assert await queue.next() == Request("ns", "tick")
    await source.stop()

    assert [line["event"] for line in logs] == ["source function failed, retrying"]


async def test_a_function_that_ran_for_long_is_called_again_after_the_first_delay():
    async def fail(queue):
        calls.append(queue)
        if len(calls) > 4:
            fifth.set()
            await asyncio.Event().wait()
        now[0] += 61.0 if len(calls) == 4 else 0.0
        raise LookupError("no luck")

    calls, now, fifth = [], [0.0], asyncio.Event()
    source = Func(fail, retry_delays=(0.001, 60.0), clock=lambda: now[0])
    with capture_logs() as logs:
        await source.start(Queue())
        await asyncio.wait_for(fifth.wait(), LONGEST_WAIT)
    await source.stop()

    first, second, third, fourth = (line["retryIn"] for line in logs)
    assert first < second < third
    assert fourth == first
