"""The queue of queues: groups take turns, each with its own limit. What one group does is in the tests of the priority queue."""

from __future__ import annotations

import asyncio

import pytest

from ctrlruntime.workqueue import QueueShutDownError
from ctrlruntime.workqueue.fair import FairQueue


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def make(clock):
    """Makes a queue of keys such as `a1`, whose group is `a`."""

    def made(*, most_in_work: int = 1, **options) -> FairQueue[str]:
        return FairQueue(lambda key: key[0], most_in_work=most_in_work, clock=clock, **options)

    return made


def taken(queue: FairQueue[str], number: int) -> list[str]:
    """Take keys, one after the other; each is done before the next one."""
    found = []
    for _ in range(number):
        item = queue.get_nowait()
        assert item is not None
        found.append(item.key)
        queue.done(item.key)
    return found


def test_a_group_with_many_keys_delays_a_key_of_another_by_one_turn(make):
    queue = make()
    for number in range(10_000):
        queue.add(f"a{number}")
    assert taken(queue, 2) == ["a0", "a1"]
    queue.add("b0")
    queue.add("c0")
    assert taken(queue, 4) == ["b0", "c0", "a2", "a3"]


def test_groups_take_turns_within_a_priority(make):
    queue = make(most_in_work=9)
    for key in ("a1", "a2", "a3", "b1", "b2", "c1"):
        queue.add(key)
    queue.add("b9", priority=5)
    assert taken(queue, 7) == ["b9", "a1", "c1", "b1", "a2", "b2", "a3"]


def test_a_group_has_so_many_keys_in_work(make):
    queue = make(most_in_work=2)
    for key in ("a1", "a2", "a3", "a4", "b1"):
        queue.add(key)
    assert [queue.get_nowait().key for _ in range(3)] == ["a1", "b1", "a2"]
    assert queue.get_nowait() is None
    queue.add("a5", priority=100)
    assert queue.get_nowait() is None
    queue.done("a1")
    assert queue.get_nowait().key == "a5"
    assert queue.get_nowait() is None


def test_the_key_that_has_been_ready_longest_comes_also_from_a_group_with_low_priority(make, clock):
    queue = make()
    queue.add("low", priority=-100)
    for number in range(60):
        queue.add(f"h{number}")
    clock.now += 9.5
    assert "low" not in taken(queue, 20)
    clock.now += 0.5
    assert taken(queue, 20)[-1] == "low"


async def test_callers_wait_for_a_key_and_for_the_limit(make):
    queue = make()
    first, second = (asyncio.ensure_future(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a1")
    queue.add("a2")
    assert (await first).key == "a1"
    await asyncio.sleep(0)
    assert not second.done()
    queue.done("a1")
    assert (await second).key == "a2"


async def test_a_caller_that_is_cancelled_passes_its_key_on(make):
    queue = make()
    first, second = (asyncio.ensure_future(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("a1")
    first.cancel()
    assert (await second).key == "a1"
    assert first.cancelled()


async def test_keys_come_from_other_threads(make):
    queue = make()
    with pytest.raises(RuntimeError, match="no worker has waited"):
        queue.add_threadsafe("a1")
    caller = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    await asyncio.to_thread(queue.add_threadsafe, "a1")
    assert (await caller).key == "a1"


async def test_a_delay_ends(make):
    queue = FairQueue(lambda key: key[0], most_in_work=1)
    queue.add("a1", after=0.001)
    assert (await queue.get()).key == "a1"


async def test_after_a_shut_down_nothing_comes(make):
    queue = make()
    queue.add("a1")
    assert queue.get_nowait().key == "a1"
    caller = asyncio.ensure_future(queue.get())
    idle = asyncio.ensure_future(queue.wait_idle())
    await asyncio.sleep(0)
    queue.shut_down()
    with pytest.raises(QueueShutDownError):
        await caller
    queue.add("b1")
    assert (len(queue), idle.done()) == (0, False)
    queue.done("a1")
    await idle


def test_removed_keys_are_not_handed_out(make):
    queue = make()
    for key in ("a1", "a2", "b1"):
        queue.add(key)
    assert sorted(queue.remove(lambda key: key in {"a1", "b1"})) == ["a1", "b1"]
    assert taken(queue, 1) == ["a2"]
    assert queue.get_nowait() is None


def test_admit_keeps_keys_out(make):
    queue = make(admit=lambda key: key != "a1")
    queue.add("a1")
    queue.add("a2")
    assert taken(queue, 1) == ["a2"]


def test_failures_of_a_key_delay_it_and_are_forgotten(make, clock):
    queue = make()
    queue.add("a1", rate_limited=True)
    assert (queue.num_requeues("a1"), queue.get_nowait()) == (1, None)
    clock.now += 1
    queue.tick()
    assert queue.get_nowait().attempts == 1
    queue.forget("a1")
    assert queue.num_requeues("a1") == 0


def test_the_state_of_all_groups(make, clock):
    queue = make()
    for key in ("a1", "a2", "b1"):
        queue.add(key)
    queue.add("b2", after=5)
    queue.add("c1", priority=-100)
    clock.now += 2
    assert queue.get_nowait().key == "a1"
    clock.now += 3

    assert (len(queue), queue.state()) == (4, ({0: 3, -100: 1}, (3.0,)))
    seen = queue.overview(3)
    assert (seen.ready, seen.waiting, seen.in_work, seen.oldest_ready) == (4, 0, 1, 5.0)
    assert [key.key for key in seen.keys] == ["a1", "a2", "b1"]
    assert queue.pending("b1").ready_in == -5.0
    assert queue.pending("d1") is None
