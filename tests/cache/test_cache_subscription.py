"""A subscriber's buffer: order, the sync mark, and what becomes of a backlog."""

from __future__ import annotations

import asyncio

import pytest
from cache_server import drain, obj
from hypothesis import given
from hypothesis import strategies as st
from servers import LONGEST_WAIT

from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.event import CreateEvent, DeleteEvent, Snapshot, UpdateEvent


def snap(name="a", version=1, uid="", size=0):
    return Snapshot.of(obj(name, version, uid=uid or f"uid-{name}", spec="x" * size), bytes.decode)


def create(name="a", version=1, *, initial=False, **more):
    return CreateEvent(snap(name, version, **more), initial)


def update(name="a", old=1, new=2, **more):
    return UpdateEvent(snap(name, old, **more), snap(name, new, **more))


def delete(name="a", version=3, **more):
    return DeleteEvent(snap(name, version, **more))


def brief(events):
    return [(type(e).__name__[0], e.meta.name, int(e.meta.resource_version)) for e in events]


def test_events_come_in_the_order_they_were_put():
    subscription = Subscription("test")
    events = [create("a"), update("a"), create("b"), delete("a")]

    for event in events:
        subscription.put(event)

    assert drain(subscription) == events
    assert subscription.pop() is None


def test_it_is_synced_when_the_mark_is_taken_and_not_when_it_is_put():
    subscription = Subscription("test")
    subscription.put(create(initial=True))
    subscription.put_synced()

    assert not subscription.is_synced
    assert subscription.pop() is not None
    assert not subscription.is_synced  # the event is being handled
    assert subscription.pop() is None
    assert subscription.is_synced


async def test_get_waits_for_an_event_and_ends_with_none():
    subscription = Subscription("test")
    first = asyncio.create_task(subscription.get())
    await asyncio.sleep(0)
    event = create()

    subscription.put(event)
    assert await asyncio.wait_for(first, LONGEST_WAIT) is event
    second = asyncio.create_task(subscription.get())
    await asyncio.sleep(0)
    subscription.stop()
    assert await asyncio.wait_for(second, LONGEST_WAIT) is None


async def test_wait_synced_ends_when_the_mark_was_taken():
    subscription = Subscription("test")
    waiting = asyncio.create_task(subscription.wait_for_sync())
    subscription.put_synced()
    await asyncio.sleep(0)
    assert not waiting.done()

    assert subscription.pop() is None

    await asyncio.wait_for(waiting, LONGEST_WAIT)


async def test_stop_wakes_everybody_drops_the_rest_and_tells_the_informer_once():
    stopped = []
    subscription = Subscription("test", on_stop=stopped.append)
    subscription.put(create())
    waiting = asyncio.create_task(subscription.wait_for_sync())
    await asyncio.sleep(0)

    subscription.stop()
    subscription.stop()
    subscription.put(create())
    subscription.put_synced()

    await asyncio.wait_for(waiting, LONGEST_WAIT)
    assert not await subscription.ready()
    assert subscription.is_stopped
    assert not subscription.is_synced
    assert len(subscription) == 0
    assert stopped == [subscription]


def test_the_initial_list_is_never_coalesced():
    subscription = Subscription("test", max_events=3, max_bytes=100)

    for number in range(50):
        subscription.put(create(f"o{number}", initial=True))

    assert len(subscription) == 50
    assert subscription.coalesced == 0


def test_a_backlog_keeps_the_first_old_and_the_last_new():
    subscription = Subscription("test", max_events=3)

    for version in range(1, 7):
        subscription.put(update("a", version, version + 1))

    (event,) = drain(subscription)[:1]
    assert event.old_meta.resource_version == "1"
    assert subscription.coalesced > 0


def test_a_deletion_and_the_creation_after_it_stay_two_events():
    subscription = Subscription("test", max_events=2)
    subscription.put(update("a", 1, 2, uid="old"))
    subscription.put(delete("a", 3, uid="old"))

    subscription.put(create("a", 4, uid="new"))

    assert brief(drain(subscription)) == [("D", "a", 3), ("C", "a", 4)]


def test_lives_that_nobody_heard_of_are_left_out():
    subscription = Subscription("test", max_events=2)
    subscription.put(delete("a", 1, uid="0"))
    for life in range(1, 40):
        subscription.put(create("a", 2 * life, uid=str(life)))
        subscription.put(delete("a", 2 * life + 1, uid=str(life)))

    assert len(subscription) <= 3
    assert drain(subscription)[0].meta.uid == "0"


def test_a_backlog_of_bytes_is_coalesced_too():
    subscription = Subscription("test", max_events=1000, max_bytes=5000)

    for version in range(1, 20):
        subscription.put(update("a", version, version + 1, size=1000))

    assert len(subscription) <= 3


def test_bytes_of_events_around_the_sync_mark_are_counted_once():
    subscription = Subscription("test", max_events=10_000, max_bytes=4000)
    subscription.put_synced()
    for name in "abc":
        subscription.put(create(name, size=1000))
    drain(subscription)
    for version in range(1, 10):
        subscription.put(update("a", version, version + 1, size=1000))

    assert subscription.coalesced > 0


def test_different_keys_are_looked_at_again_only_when_the_backlog_has_doubled():
    subscription = Subscription("test", max_events=10)
    passes = []
    coalesce = subscription._coalesce
    subscription._coalesce = lambda: (passes.append(len(subscription)), coalesce())

    for number in range(200):
        subscription.put(create(f"o{number}"))

    assert passes == [11, 23, 47, 95, 191]
    assert len(subscription) == 200


@st.composite
def histories(draw):
    """Events of a few keys as an informer may put them: each key lives, changes, ends and lives again."""
    alive, events, version = {}, [], 0
    initial = draw(st.integers(0, 4))
    for _ in range(draw(st.integers(0, 60))):
        version += 1
        name = draw(st.sampled_from("abcd"))
        if name not in alive:
            alive[name] = (version, str(version))
            events.append(CreateEvent(snap(name, version, uid=str(version)), version <= initial))
            continue
        old, uid = alive[name]
        if draw(st.integers(0, 2)) == 0:
            del alive[name]
            events.append(DeleteEvent(snap(name, version, uid=uid), draw(st.booleans())))
        else:
            alive[name] = (version, uid)
            events.append(UpdateEvent(snap(name, old, uid=uid), snap(name, version, uid=uid)))
    return events


def apply(events, state):
    for event in events:
        if isinstance(event, DeleteEvent):
            state.pop(event.meta.name, None)
        else:
            state[event.meta.name] = event.meta
    return state


@given(histories(), st.integers(1, 8), st.lists(st.integers(0, 5), max_size=60), st.integers(0, 60))
def test_whatever_is_coalesced_replaying_the_events_ends_in_the_same_state(events, limit, taken, marker):
    subscription = Subscription("test", max_events=limit)
    seen = []

    for position, event in enumerate(events):
        if position == marker:
            subscription.put_synced()
        subscription.put(event)
        popped = [subscription.pop() for _ in range(taken[position] if position < len(taken) else 0)]
        seen += [event for event in popped if event is not None]
    seen += drain(subscription)

    assert apply(seen, {}) == apply(events, {})
    assert len(seen) + subscription.coalesced == len(events)
    assert subscription.is_synced == (marker < len(events))
    assert subscription._bytes == subscription._counted == 0


@given(histories(), st.integers(1, 8))
def test_no_uid_is_seen_to_change_without_a_deletion_between(events, limit):
    subscription = Subscription("test", max_events=limit)
    for event in events:
        subscription.put(event)

    alive = {}
    for event in drain(subscription):
        name, uid = event.meta.name, event.meta.uid
        if isinstance(event, DeleteEvent):
            alive.pop(name, None)
            continue
        assert alive.setdefault(name, uid) == uid
        if isinstance(event, UpdateEvent):
            assert event.old_meta.uid == uid


@given(histories(), st.integers(1, 4))
def test_a_backlog_is_bounded_by_the_number_of_keys(events, limit):
    subscription = Subscription("test", max_events=limit)
    for event in events:
        subscription.put(event)

    keys = {event.meta.name for event in events}
    assert len(subscription) <= 2 * max(limit, 2 * len(keys)) + 4


def test_an_update_shown_again_by_a_resync_does_not_hide_a_change():
    subscription = Subscription("test", max_events=1)
    subscription.put(update("a", 1, 2))

    subscription.put(update("a", 2, 2))

    (event,) = drain(subscription)
    assert (event.old_meta.resource_version, event.new_meta.resource_version) == ("1", "2")


@pytest.mark.parametrize("initial", [True, False])
def test_a_creation_joined_with_a_change_stays_what_it_was(initial):
    subscription = Subscription("test", max_events=1)
    subscription.put(create("a", 1, initial=initial))
    subscription.put(update("a", 1, 2))
    subscription.put(update("a", 2, 3))

    event = drain(subscription)[0]
    assert isinstance(event, CreateEvent)
    assert event.is_in_initial_list is initial
