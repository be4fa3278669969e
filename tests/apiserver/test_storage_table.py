from __future__ import annotations

from random import Random

import pytest
from cases import seeds

from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.storage import Record, Store


@pytest.fixture
def store():
    return Store(history=4, now=lambda: 1.0)


class Writer:
    """Writes small records into one table."""

    def __init__(self, store):
        self.store = store
        self.table = store.table("", "things")

    def put(self, name, body=b"{}", namespace="n"):
        old = self.table.records.get((namespace, name))
        record = Record((namespace, name), self.store.next_revision(), body, None)
        self.store.commit(self.table, "MODIFIED" if old else "ADDED", record, old, None)
        return record.revision

    def drop(self, name, namespace="n"):
        old = self.table.records[namespace, name]
        record = Record((namespace, name), self.store.next_revision(), old.body, None)
        self.store.commit(self.table, "DELETED", record, old, None)
        return record.revision


@pytest.fixture
def writer(store):
    return Writer(store)


def test_versions_start_at_the_clock_and_count_every_write(store, writer):
    assert store.revision == 1000
    assert [writer.put("a"), writer.put("b")] == [1001, 1002]


def test_keys_are_sorted_and_cut_by_namespace(writer):
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y"), ("ab", "w")):
        writer.put(name, namespace=namespace)

    assert list(writer.table.keys()) == [("a", "y"), ("a", "z"), ("ab", "w"), ("b", "x")]
    assert list(writer.table.keys("a")) == [("a", "y"), ("a", "z")]


@pytest.mark.parametrize("seed", seeds(range(100), 5))
def test_reading_the_past_undoes_what_came_after(seed):
    """After each of many random writes, all that is in the history is read again, from any key on."""
    rng, writer = Random(seed), Writer(Store(history=8, now=lambda: 1.0))
    states = {writer.store.revision: {}}
    for number in range(60):
        key = (rng.choice(("a", "ab", "b")), rng.choice("wxyz"))
        state = dict(states[writer.store.revision])
        if key in state and rng.random() < 0.4:
            writer.drop(key[1], key[0])
            del state[key]
        else:
            state[key] = str(number).encode()
            writer.put(key[1], state[key], key[0])
        states[writer.store.revision] = state
        for revision, wanted in states.items():
            namespace, start = (
                rng.choice(("", "a", "ab", "c")),
                rng.choice((None, ("a", "x\0"), ("ab", "y"), ("b", "zz"))),
            )
            expected = {
                key: body
                for key, body in sorted(wanted.items())
                if key[0] == (namespace or key[0]) and key >= (start or key)
            }
            found = writer.table.read(namespace, start=start, revision=None if wanted == state else revision)
            if found is None:
                assert revision < writer.table.compacted
            else:
                assert {record.key: record.body for record in found[0]} == expected
                assert found[1] == len(expected)


def test_history_is_bounded_and_says_what_it_lost(writer):
    versions = [writer.put("a", str(number).encode()) for number in range(6)]

    assert writer.table.compacted == versions[1]
    assert [event.revision for event in writer.table.since(versions[1])] == versions[2:]
    assert writer.table.since(versions[0]) is None
    assert writer.table.read(revision=versions[0]) is None


def test_nothing_before_the_start_is_known(store, writer):
    assert writer.table.since(store.revision) == []
    assert writer.table.since(store.revision - 1) is None


async def test_subscriptions_get_what_they_want_and_are_cut_when_slow(writer):
    everything = writer.table.subscribe()
    one = writer.table.subscribe("n", ("n", "a"))
    other = writer.table.subscribe("elsewhere")
    slow = writer.table.subscribe(limit=1)

    writer.put("a")
    writer.put("b")

    assert [event.record.key[1] for event in everything.events] == ["a", "b"]
    assert [event.record.key[1] for event in one.events] == ["a"]
    assert not other.events
    assert slow.closed
    assert slow.wake.is_set()


def test_listeners_hear_changes_inside_the_write(store, writer):
    heard = []
    stop = writer.table.listen(heard.append)
    change = Change("ADDED", {"a": 1}, None, 1)
    store.commit(writer.table, "ADDED", Record(("n", "a"), store.next_revision(), b"{}", None), None, change)
    stop()
    store.commit(writer.table, "ADDED", Record(("n", "b"), store.next_revision(), b"{}", None), None, change)

    assert heard == [change]


async def test_waiting_for_a_version(store, writer):
    import asyncio

    waiting = asyncio.ensure_future(store.wait_for(store.revision + 1, 5.0))
    await asyncio.sleep(0)
    assert not waiting.done()

    writer.put("a")

    assert await waiting
    assert not await store.wait_for(store.revision + 1, 0.01)
