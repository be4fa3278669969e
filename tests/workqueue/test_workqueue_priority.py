from __future__ import annotations

import asyncio
import gc
import threading

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request
from ctrlruntime.testing.virtual_time import in_virtual_time
from ctrlruntime.workqueue import Item, ItemExponentialFailureRateLimiter, PriorityQueue, QueueShutDownError
from ctrlruntime.workqueue.priority import AGED_SHARE, MAX_TRIGGERS


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> PriorityQueue[str]:
    return PriorityQueue(clock=clock)


def take(queue: PriorityQueue[str]) -> str | None:
    item = queue.get_nowait()
    return None if item is None else item.key


def take_all(queue: PriorityQueue[str]) -> list[str]:
    keys = []
    while (key := take(queue)) is not None:
        keys.append(key)
        queue.done(key)
    return keys


# --- order ---------------------------------------------------------------------------------------------------------


def test_keys_of_one_priority_come_in_the_order_they_were_added(queue):
    for key in "cab":
        queue.add(key)

    assert take_all(queue) == ["c", "a", "b"]


def test_higher_priority_comes_first(queue):
    queue.add("low", priority=-100)
    queue.add("normal")
    queue.add("high", priority=5)

    assert take_all(queue) == ["high", "normal", "low"]


def test_an_item_says_its_priority_triggers_and_attempts(queue):
    queue.add("a", priority=3, trigger="create", rate_limited=True)
    queue.add("a", trigger="update")

    assert queue.get_nowait() == Item("a", 3, ("create", "update"), 1)


def test_triggers_are_bounded(queue):
    for number in range(50):
        queue.add("a", trigger=number)

    assert queue.get_nowait().triggers == tuple(range(MAX_TRIGGERS))


def test_the_default_key_is_a_request():
    queue: PriorityQueue = PriorityQueue()
    queue.add(Request("default", "a"))
    queue.add(Request("default", "a"))

    assert queue.get_nowait().key == Request("default", "a")
    assert queue.get_nowait() is None


# --- merging -------------------------------------------------------------------------------------------------------


def test_a_key_has_one_entry(queue):
    queue.add("a")
    queue.add("a")

    assert len(queue) == 1
    assert take_all(queue) == ["a"]


def test_the_highest_priority_of_a_key_holds(queue):
    queue.add("a", priority=1)
    queue.add("a", priority=7)
    queue.add("a", priority=3)

    assert queue.get_nowait().priority == 7


def test_a_raised_key_stands_behind_those_already_on_that_level(queue):
    queue.add("a", priority=0)
    queue.add("b", priority=1)
    queue.add("a", priority=1)
    queue.add("c", priority=1)

    assert take_all(queue) == ["b", "a", "c"]


def test_a_key_raised_taken_and_added_again_low_keeps_its_new_place(queue):
    queue.add("a")
    queue.add("b")
    queue.add("a", priority=1)
    assert take(queue) == "a"
    queue.done("a")
    queue.add("a")

    assert take_all(queue) == ["b", "a"]


def test_the_earliest_moment_of_a_waiting_key_holds(queue, clock):
    queue.add("a", after=10)
    queue.add("a", after=2)
    queue.add("a", after=5)

    clock.now += 1.9
    assert take(queue) is None
    clock.now += 0.1
    assert take(queue) == "a"
    queue.done("a")
    clock.now += 100
    assert take(queue) is None


def test_adding_a_waiting_key_without_delay_makes_it_ready_once(queue, clock):
    queue.add("a", after=10)
    queue.add("a")

    assert take_all(queue) == ["a"]
    clock.now += 100
    assert take(queue) is None


def test_a_delay_does_not_hold_back_a_ready_key(queue):
    queue.add("a")
    queue.add("a", after=10)

    assert take(queue) == "a"


def test_a_waiting_key_takes_the_higher_priority_along(queue, clock):
    queue.add("a", after=5, priority=1)
    queue.add("a", after=9, priority=4)
    clock.now += 5

    assert queue.get_nowait().priority == 4


def test_waiting_keys_become_ready_in_the_order_they_are_due(queue, clock):
    queue.add("late", after=3)
    queue.add("early", after=1)
    clock.now += 5
    queue.add("now")

    assert take_all(queue) == ["early", "late", "now"]


def test_of_after_and_the_rate_limit_the_smaller_holds(clock):
    queue: PriorityQueue[str] = PriorityQueue(rate_limiter=ItemExponentialFailureRateLimiter(base=4.0), clock=clock)
    queue.add("limited", after=60, rate_limited=True)
    queue.add("timed", after=1, rate_limited=True)

    clock.now += 1
    assert take_all(queue) == ["timed"]
    clock.now += 3
    assert take_all(queue) == ["limited"]


def test_a_negative_delay_is_none(queue):
    queue.add("a", after=-1)

    assert take(queue) == "a"


def test_rate_limited_adds_back_off_until_forgotten(clock):
    queue: PriorityQueue[str] = PriorityQueue(rate_limiter=ItemExponentialFailureRateLimiter(base=1.0), clock=clock)
    queue.add("a", rate_limited=True)
    clock.now += 1
    item = queue.get_nowait()
    queue.add("a", rate_limited=True)
    queue.done("a")

    assert item.attempts == 1
    assert queue.num_requeues("a") == 2
    clock.now += 1.5
    assert take(queue) is None
    clock.now += 0.5
    assert take(queue) == "a"
    queue.forget("a")
    assert queue.num_requeues("a") == 0


# --- in work -------------------------------------------------------------------------------------------------------


def test_a_key_in_work_is_not_handed_out_again_before_it_is_done(queue):
    queue.add("a")
    take(queue)
    queue.add("a")

    assert len(queue) == 1
    assert take(queue) is None
    queue.done("a")
    assert take(queue) == "a"
    queue.done("a")
    assert take(queue) is None


def test_a_key_added_while_in_work_keeps_its_turn(queue):
    queue.add("a")
    take(queue)
    queue.add("b")
    queue.add("a")
    queue.add("c")
    queue.done("a")

    assert take_all(queue) == ["b", "a", "c"]


def test_a_delay_that_ends_while_the_key_is_in_work_waits_for_done(queue, clock):
    queue.add("a")
    take(queue)
    queue.add("a", after=1)
    clock.now += 2
    assert take(queue) is None
    queue.done("a")

    assert take(queue) == "a"


def test_a_delay_that_ends_after_done_is_kept(queue, clock):
    queue.add("a")
    take(queue)
    queue.add("a", after=5)
    queue.done("a")

    assert take(queue) is None
    clock.now += 5
    assert take(queue) == "a"


def test_a_key_in_work_can_be_raised(queue):
    queue.add("a")
    take(queue)
    queue.add("b", priority=1)
    queue.add("a")
    queue.add("a", priority=2)
    queue.done("a")

    assert take_all(queue) == ["a", "b"]


def test_the_priority_of_a_key_in_work_does_not_stick(queue):
    queue.add("a", priority=9)
    take(queue)
    queue.add("a", priority=-100)
    queue.done("a")

    assert queue.get_nowait().priority == -100


def test_done_for_a_key_that_is_not_in_work_does_nothing(queue):
    queue.add("a")
    queue.done("a")
    queue.done("unknown")

    assert take_all(queue) == ["a"]


# --- aging ---------------------------------------------------------------------------------------------------------


def test_under_constant_high_load_every_low_key_is_handed_out_within_the_bound(clock):
    queue: PriorityQueue[str] = PriorityQueue(aging=10.0, clock=clock)
    low = [f"low-{number}" for number in range(100)]
    for key in low:
        queue.add(key, priority=-100)
    bound = 10.0 + AGED_SHARE * (len(low) + 1) * 0.01

    started = {}
    began = clock.now
    for number in range(10_000):
        queue.add(f"high-{number}")
        key = take(queue)
        started[key] = clock.now - began
        clock.now += 0.01
        queue.done(key)

    assert max(started[key] for key in low) <= bound
    assert [key for key in started if key.startswith("low")] == low


def test_an_overdue_backlog_does_not_hold_up_a_fresh_key(clock):
    queue: PriorityQueue[str] = PriorityQueue(aging=10.0, clock=clock)
    for number in range(10_000):
        queue.add(f"low-{number}", priority=-100)
    clock.now += 60

    waits = []
    for number in range(200):
        queue.add(f"user-{number}")
        added = clock.now
        while True:
            key = take(queue)
            clock.now += 0.01
            queue.done(key)
            if key == f"user-{number}":
                break
        waits.append(clock.now - added)

    assert max(waits) < 0.1


def test_without_aging_low_keys_wait(clock):
    queue: PriorityQueue[str] = PriorityQueue(aging=None, clock=clock)
    queue.add("low", priority=-1)
    for number in range(1000):
        queue.add(f"high-{number}")
        key = take(queue)
        assert key != "low"
        clock.now += 1
        queue.done(key)


def test_a_negative_aging_is_refused():
    with pytest.raises(ValueError, match="aging is -1"):
        PriorityQueue(aging=-1)


def test_steady_overload_leaves_no_garbage_behind(clock):
    queue: PriorityQueue[str] = PriorityQueue(aging=0.0, clock=clock)
    queue.add("stuck", priority=-200)
    gc.collect()
    for number in range(20_000):
        queue.add("low", priority=-100)
        queue.add(f"high-{number % 3}")
        queue.add("low", priority=0)
        queue.add("later", after=1000 - number % 7)
        queue.add("later")
        for _ in range(3):
            queue.done(take(queue))
    sizes = [len(level.fifo) + len(level.late) for level in queue._levels.values()]

    assert max(sizes) < 1000
    assert len(queue._by_age) < 1000
    assert len(queue._waiting) < 1000


def test_raising_over_many_distinct_priorities_loses_nothing(clock):
    queue: PriorityQueue[int] = PriorityQueue(clock=clock)
    for priority in range(500):
        queue.add(priority % 3, priority=priority)

    taken = [queue.get_nowait().key for _ in range(3)]
    assert sorted(taken) == [0, 1, 2]
    assert queue.get_nowait() is None


def test_many_distinct_priorities_do_not_pile_up(clock):
    queue: PriorityQueue[int] = PriorityQueue(clock=clock)
    for number in range(1000):
        queue.add(number, priority=number)
        queue.done(queue.get_nowait().key)

    assert len(queue._levels) < 50


# --- waiting for keys ----------------------------------------------------------------------------------------------


async def test_get_waits_for_an_add():
    queue: PriorityQueue[str] = PriorityQueue()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")

    assert (await asyncio.wait_for(getter, LONGEST_WAIT)).key == "a"


@in_virtual_time
async def test_get_waits_for_a_delay():
    now = asyncio.get_running_loop().time
    queue: PriorityQueue[str] = PriorityQueue(clock=now)
    began = now()
    queue.add("later", after=7200)
    queue.add("sooner", after=3600)

    taken = [((await queue.get()).key, round(now() - began)) for _ in range(2)]

    assert taken == [("sooner", 3600), ("later", 7200)]


async def test_a_delay_added_before_the_loop_knows_the_queue_is_kept():
    queue: PriorityQueue[str] = PriorityQueue()
    thread = threading.Thread(target=lambda: queue.add("a", after=0.01))
    thread.start()
    thread.join()

    assert (await asyncio.wait_for(queue.get(), LONGEST_WAIT)).key == "a"


async def test_tick_wakes_a_getter_after_the_clock_was_moved_by_hand(queue, clock):
    queue.add("a", after=3600)
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    clock.now += 3600
    queue.tick()

    assert (await asyncio.wait_for(getter, LONGEST_WAIT)).key == "a"


async def test_each_key_wakes_one_getter():
    queue: PriorityQueue[str] = PriorityQueue()
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)

    items = await asyncio.wait_for(asyncio.gather(*getters), LONGEST_WAIT)
    assert [item.key for item in items] == ["a", "b", "c"]


async def test_done_wakes_a_getter_for_a_key_added_meanwhile():
    queue: PriorityQueue[str] = PriorityQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.done("a")

    assert (await asyncio.wait_for(getter, LONGEST_WAIT)).key == "a"


async def test_a_getter_cancelled_as_it_is_woken_passes_the_key_on():
    queue: PriorityQueue[str] = PriorityQueue()
    first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()

    assert (await asyncio.wait_for(second, LONGEST_WAIT)).key == "a"
    assert first.cancelled()


async def test_cancelled_getters_are_forgotten():
    queue: PriorityQueue[str] = PriorityQueue()
    for _ in range(10):
        getter = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        getter.cancel()
        await asyncio.wait({getter})

    assert not queue._getters


async def test_keys_can_be_added_from_a_thread():
    queue: PriorityQueue[str] = PriorityQueue()
    getter = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    await asyncio.to_thread(queue.add_threadsafe, "a", priority=2)

    assert (await asyncio.wait_for(getter, LONGEST_WAIT)).priority == 2


def test_adding_from_a_thread_needs_a_loop(queue):
    with pytest.raises(RuntimeError, match="event loop"):
        queue.add_threadsafe("a")


# --- the end -------------------------------------------------------------------------------------------------------


async def test_shut_down_wakes_getters_and_drops_adds():
    queue: PriorityQueue[str] = PriorityQueue()
    getters = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.shut_down()
    queue.add("late")
    queue.add("later", after=1)

    for outcome in await asyncio.gather(*getters, return_exceptions=True):
        assert isinstance(outcome, QueueShutDownError)
    assert len(queue) == 0
    with pytest.raises(QueueShutDownError):
        queue.get_nowait()
    with pytest.raises(QueueShutDownError):
        await queue.get()


async def test_shut_down_leaves_ready_keys_behind():
    queue: PriorityQueue[str] = PriorityQueue()
    queue.add("a")
    queue.shut_down()

    with pytest.raises(QueueShutDownError):
        await queue.get()


async def test_wait_idle_waits_for_the_keys_in_work():
    queue: PriorityQueue[str] = PriorityQueue()
    queue.add("a")
    await queue.get()
    queue.shut_down()
    idle = asyncio.create_task(queue.wait_idle())
    await asyncio.sleep(0)
    assert not idle.done()
    queue.done("a")

    await asyncio.wait_for(idle, LONGEST_WAIT)


async def test_wait_idle_waits_for_ready_keys_before_the_shutdown():
    queue: PriorityQueue[str] = PriorityQueue()
    queue.add("a")
    queue.add("b")
    idle = asyncio.create_task(queue.wait_idle())
    for _ in range(2):
        item = await queue.get()
        await asyncio.sleep(0)
        assert not idle.done()
        queue.done(item.key)

    await asyncio.wait_for(idle, LONGEST_WAIT)


# --- metrics -------------------------------------------------------------------------------------------------------


def test_metrics_count_adds_retries_latency_and_work(clock):
    metrics = Metrics()
    numbers = metrics.workqueue("c")
    queue: PriorityQueue[str] = PriorityQueue(metrics=numbers, clock=clock)
    queue.add("a")
    queue.add("a")
    queue.add("b", after=1)
    clock.now += 1
    queue.tick()
    clock.now += 2
    take(queue)
    clock.now += 4
    queue.done("a")

    assert (numbers.adds, numbers.retries) == (2, 1)
    assert (numbers.latency.count, numbers.latency.sum) == (1, 3.0)
    assert (numbers.work.count, numbers.work.sum) == (1, 4.0)


def test_metrics_see_depth_by_priority_and_work_under_way(clock):
    metrics = Metrics()
    numbers = metrics.workqueue("c")
    queue: PriorityQueue[str] = PriorityQueue(metrics=numbers, clock=clock)
    for key, priority in {"a": 0, "b": 0, "c": -100, "d": 7}.items():
        queue.add(key, priority=priority)
    take(queue)
    queue.add("d")
    clock.now += 5

    state = numbers.state()
    assert dict(state.ready) == {0: 3, -100: 1, 7: 0}
    assert state.in_work == (5.0,)


# --- keys of others ------------------------------------------------------------------------------------------------


def test_a_key_that_is_not_admitted_is_dropped(clock):
    queue = PriorityQueue(admit=lambda key: key != "foreign", clock=clock)
    queue.add("own")
    queue.add("foreign")
    queue.add("foreign", after=1.0)
    clock.now += 2

    assert take_all(queue) == ["own"]


def test_removed_keys_are_not_handed_out_and_their_failures_are_forgotten(queue, clock):
    queue.add("ready")
    queue.add("failed", rate_limited=True)
    queue.add("working")
    queue.add("stays")
    clock.now += 1
    assert take(queue) == "ready"
    queue.add("ready")

    assert set(queue.remove({"ready", "failed", "working"}.__contains__)) == {"ready", "failed", "working"}
    assert queue.num_requeues("failed") == 0
    queue.done("ready")
    assert take_all(queue) == ["stays"]


async def test_removing_the_last_key_ends_a_wait_for_idle(queue):
    queue.add("a")
    waiting = asyncio.ensure_future(queue.wait_idle())
    await asyncio.sleep(0)
    assert not waiting.done()

    queue.remove(lambda _key: True)
    await waiting
