"""Work handed from one event loop to another."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.serving.loops import EventLoopBlockedError, run_on


@pytest.fixture
def other():
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    if loop.is_running():
        loop.call_soon_threadsafe(loop.stop)
    thread.join(LONGEST_WAIT)
    loop.close()


async def test_work_runs_on_the_other_loop_with_our_context(other):
    variable = contextvars.ContextVar("variable", default="")
    variable.set("mine")

    async def work():
        return asyncio.get_running_loop(), variable.get()

    assert await run_on(other, work) == (other, "mine")


async def test_what_it_raises_is_raised_here(other):
    async def work():
        raise LookupError("there")

    with pytest.raises(LookupError, match="there"):
        await run_on(other, work)


async def test_a_call_that_fails_before_it_awaits_is_raised_here_too(other):
    with pytest.raises(ZeroDivisionError):
        await run_on(other, lambda: 1 / 0)


async def test_a_cancellation_waits_for_the_end_of_the_work(other):
    begun, ended = threading.Event(), []

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append(True)

    task = asyncio.ensure_future(run_on(other, work, waits_for_end=True))
    assert await asyncio.to_thread(begun.wait, LONGEST_WAIT)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert ended == [True]


async def test_without_waiting_a_cancellation_passes_at_once_and_is_handed_on(other):
    begun, cancelled = threading.Event(), threading.Event()

    async def work():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.ensure_future(run_on(other, work))
    assert await asyncio.to_thread(begun.wait, LONGEST_WAIT)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert await asyncio.to_thread(cancelled.wait, LONGEST_WAIT)


async def test_a_blocked_loop_is_an_error_in_time_and_the_work_is_never_begun(other):
    release, runs = threading.Event(), []

    async def work():
        runs.append(True)

    async def look():
        return list(runs)

    other.call_soon_threadsafe(release.wait)
    with pytest.raises(EventLoopBlockedError, match=r"has not responded for 0\.02 s"):
        await run_on(other, work, begin_within=0.02)
    release.set()

    assert await run_on(other, look) == []


async def test_work_that_has_begun_may_take_longer_than_the_beginning(other):
    async def work():
        await asyncio.sleep(0.05)
        return "done"

    assert await run_on(other, work, begin_within=0.02 * 100) == "done"


async def test_a_loop_that_is_closed_is_an_error():
    loop = asyncio.new_event_loop()
    loop.close()

    async def work():
        pytest.fail("it cannot run")

    with pytest.raises(EventLoopBlockedError, match="has ended"):
        await run_on(loop, work)
