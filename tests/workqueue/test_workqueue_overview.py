"""What the queue tells people who ask how it stands."""

from __future__ import annotations

import pytest

from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter, PriorityQueue
from ctrlruntime.workqueue.priority import MAX_TRIGGERS


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    return PriorityQueue(clock=clock, rate_limiter=ItemExponentialFailureRateLimiter(base=2.0))


def test_a_key_that_is_not_there_is_not_pending(queue):
    assert queue.pending("a") is None


def test_a_ready_key_says_for_how_long_it_has_been_ready(queue, clock):
    queue.add("a", priority=5, trigger="one")
    clock.now += 3
    queue.add("a", trigger="two")

    pending = queue.pending("a")
    assert (pending.ready_in, pending.in_work, pending.priority) == (-3.0, None, 5)
    assert (pending.triggers, pending.omitted, pending.attempts) == (("one", "two"), 0, 0)


def test_a_key_that_waits_says_when_it_becomes_ready_and_after_how_many_failures(queue):
    queue.add("a", rate_limited=True)

    pending = queue.pending("a")
    assert (pending.ready_in, pending.attempts) == (2.0, 1)


def test_a_key_in_work_says_for_how_long_and_whether_it_was_added_again(queue, clock):
    queue.add("a", trigger="one")
    queue.get_nowait()
    clock.now += 4

    pending = queue.pending("a")
    assert (pending.in_work, pending.ready_in, pending.triggers) == (4.0, None, ("one",))
    queue.add("a", trigger="two")
    pending = queue.pending("a")
    assert (pending.in_work, pending.ready_in, pending.triggers) == (4.0, 0.0, ("two",))
    queue.done("a")
    assert queue.pending("a").in_work is None


def test_triggers_beyond_those_kept_are_counted(queue):
    for number in range(MAX_TRIGGERS + 3):
        queue.add("a", trigger=number)

    assert queue.pending("a").omitted == 3
    assert queue.get_nowait().omitted == 3


def test_the_overview_counts_all_and_lists_those_in_work_and_the_oldest(queue, clock):
    queue.add("working")
    queue.get_nowait()
    for number in range(5):
        queue.add(f"ready-{number}", priority=-100 if number < 2 else 0)
        clock.now += 1
    queue.add("later", after=50)
    queue.add("soon", after=10)

    seen = queue.overview(4)
    assert (seen.ready, seen.waiting, seen.in_work) == (5, 2, 1)
    assert seen.by_priority == {-100: 2, 0: 3}
    assert seen.oldest_ready == 5.0
    assert [pending.key for pending in seen.keys] == ["working", "ready-0", "ready-1", "ready-2"]
    assert [pending.key for pending in queue.overview().keys][-2:] == ["soon", "later"]


def test_the_overview_of_an_empty_queue_is_empty(queue):
    seen = queue.overview()

    assert (seen.ready, seen.waiting, seen.in_work, seen.oldest_ready, seen.keys) == (0, 0, 0, None, ())


def test_a_delay_that_is_over_counts_as_ready(queue, clock):
    queue.add("a", after=1)
    clock.now += 2

    assert (queue.overview().ready, queue.pending("a").ready_in) == (1, -1.0)
