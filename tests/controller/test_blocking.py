"""`blocking`: a plain reconcile and the async client."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.errors import TerminalError
from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request, Result
from ctrlruntime.rest.fence import current_actor
from ctrlruntime.source import Func

A = Request("ns", "a")


class Plain:
    """A reconciler that runs `work` in its thread and keeps what came of it."""

    def __init__(self, work):
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.outcomes = asyncio.Queue()

    def reconcile(self, request):
        try:
            outcome = self.work()
        except BaseException as error:
            self.loop.call_soon_threadsafe(self.outcomes.put_nowait, error)
            raise TerminalError("done") from error
        self.loop.call_soon_threadsafe(self.outcomes.put_nowait, outcome)
        return Result()

    async def outcome(self):
        return await asyncio.wait_for(self.outcomes.get(), LONGEST_WAIT)


async def outcome_of(work, **options):
    """Run `work` in the thread of a plain reconcile and return what it returned or raised."""
    reconciler = Plain(work)
    controller = Controller("plain", reconciler, options=ControllerOptions(**options), metrics=Metrics())

    async def fill(queue):
        queue.add(A)

    controller.watch(Func(fill))
    task = asyncio.ensure_future(controller.start())
    try:
        return await reconciler.outcome()
    finally:
        await controller.stop(LONGEST_WAIT)
        await task


async def answer(value=42):
    await asyncio.sleep(0)
    return value


async def test_it_returns_what_the_awaitable_returns():
    assert await outcome_of(lambda: ctrl.blocking(answer()) + ctrl.blocking(answer(1))) == 43


async def test_it_raises_what_the_awaitable_raises():
    async def fail():
        raise LookupError("no luck")

    error = await outcome_of(lambda: ctrl.blocking(fail()))

    assert isinstance(error, LookupError)


async def test_the_awaitable_runs_on_the_loop_of_the_controller():
    async def where():
        return asyncio.get_running_loop(), threading.current_thread()

    assert await outcome_of(lambda: ctrl.blocking(where())) == (
        asyncio.get_running_loop(),
        threading.current_thread(),
    )


async def test_any_awaitable_will_do():
    class Awaitable:
        def __await__(self):
            return answer("done").__await__()

    assert await outcome_of(lambda: ctrl.blocking(Awaitable())) == "done"


async def test_the_actor_and_other_context_travel_along():
    variable = contextvars.ContextVar("variable", default="outside")

    async def look():
        return variable.get(), current_actor()

    def work():
        variable.set("inside")
        return ctrl.blocking(look())

    value, actor = await outcome_of(work)

    assert value == "inside"
    assert (actor.controller, actor.request) == ("plain", A)


async def test_on_the_event_loop_it_says_to_await():
    with pytest.raises(RuntimeError, match="Write `await`"):
        ctrl.blocking(answer())


async def test_in_a_thread_of_ones_own_it_says_where_it_works():
    caught = []

    def work():
        try:
            ctrl.blocking(answer())
        except RuntimeError as error:
            caught.append(str(error))

    await asyncio.to_thread(work)

    assert "in which a controller runs a plain `def reconcile`" in caught[0]


async def test_a_function_that_was_not_called_is_named():
    error = await outcome_of(lambda: ctrl.blocking(answer))

    assert isinstance(error, TypeError)
    assert "blocking(client.get(…))" in str(error)


async def test_a_cancelled_reconcile_ends_the_call_it_waits_for():
    began = threading.Event()
    was_cancelled = []

    async def hang():
        began.set()
        try:
            await asyncio.sleep(3600)
        finally:
            was_cancelled.append(True)

    error = await outcome_of(lambda: ctrl.blocking(hang()), reconciliation_timeout=0.5)

    assert isinstance(error, asyncio.CancelledError)
    assert was_cancelled == [True]


async def test_a_cancellation_between_two_calls_ends_the_next_one_only():
    release = threading.Event()
    cancelled = asyncio.get_running_loop().call_later(0.3, release.set)

    def work():
        release.wait(LONGEST_WAIT)
        with pytest.raises(asyncio.CancelledError):
            ctrl.blocking(answer())
        return ctrl.blocking(answer("cleaned up"))

    assert await outcome_of(work, reconciliation_timeout=0.05, cancel_interval=60.0) == "cleaned up"
    cancelled.cancel()


async def test_calls_of_two_reconciles_do_not_mix():
    gate = asyncio.Event()
    names = []

    async def name(request):
        names.append(request.name)
        if len(names) == 2:
            gate.set()
        await gate.wait()
        return request.name

    results = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def reconcile(request):
        found = ctrl.blocking(name(request))
        loop.call_soon_threadsafe(results.put_nowait, (request.name, found))

    controller = Controller(
        "plain", reconcile, options=ControllerOptions(max_concurrent_reconciles=2), metrics=Metrics()
    )

    async def fill(queue):
        queue.add(A)
        queue.add(Request("ns", "b"))

    controller.watch(Func(fill))
    task = asyncio.ensure_future(controller.start())
    found = {await asyncio.wait_for(results.get(), LONGEST_WAIT) for _ in range(2)}
    await controller.stop(LONGEST_WAIT)
    await task

    assert found == {("a", "a"), ("b", "b")}
