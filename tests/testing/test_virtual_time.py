from __future__ import annotations

import asyncio
import time

import pytest

from ctrlruntime.testing.virtual_time import VirtualTimeDeadlockError, VirtualTimeLoop, in_virtual_time


@in_virtual_time
async def test_a_day_of_sleep_takes_no_time():
    loop, began = asyncio.get_running_loop(), time.monotonic()
    start = loop.time()

    await asyncio.sleep(86_400)

    assert loop.time() - start == pytest.approx(86_400)
    assert time.monotonic() - began < 3600


@in_virtual_time
async def test_tasks_wake_in_the_order_of_their_timers():
    woken = []

    async def sleeper(seconds):
        await asyncio.sleep(seconds)
        woken.append(seconds)

    await asyncio.gather(*(sleeper(seconds) for seconds in (3, 1, 2, 0.001)))

    assert woken == [0.001, 1, 2, 3]


@in_virtual_time
async def test_time_limits_strike_at_their_moment():
    loop = asyncio.get_running_loop()
    start = loop.time()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(30):
            await asyncio.Event().wait()

    assert loop.time() - start == pytest.approx(30)


@in_virtual_time
async def test_a_thread_that_works_is_waited_for():
    assert await asyncio.to_thread(lambda: time.sleep(0.02) or "done") == "done"


def test_a_test_in_which_nothing_can_happen_any_more_fails():
    async def waits_for_ever():
        await asyncio.Event().wait()

    with (
        pytest.raises(VirtualTimeDeadlockError, match="every task waits"),
        asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(patience=0.01)) as runner,
    ):
        runner.run(waits_for_ever())


@pytest.fixture
def number():
    return 7


@in_virtual_time
async def test_fixtures_come_as_before(number):
    assert number == 7
