"""One running reconcile: its timeout, the thread of a plain function, and the line at which it waits.

User code is cancelled with `task.cancel()`, repeated at intervals, and never by an enclosing scope. So its cleanup can await, and a
reconcile that ignores its cancellation blocks only its own request.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic

from typing_extensions import TypeVar

from ctrlruntime import frames
from ctrlruntime.controller.blocking import Calls, serving
from ctrlruntime.errors import CtrlError

T = TypeVar("T", default=Any)


class ReconcileTimeoutError(CtrlError):
    """A reconcile ran longer than `reconciliation_timeout` and was cancelled.

    The request is retried with backoff.
    """


class ReconcilePanicError(CtrlError):
    """A reconcile raised an error that is not an Exception.

    The error does not end the process.

    `__cause__` has it.
    """


class ReconcileCancelledError(CtrlError):
    """A reconcile was cancelled, but not by its timeout or a stop.

    Its own task, or something that it awaited, was cancelled.
    """


class Deadline:
    """Cancels a task after `seconds`, and again every `interval` seconds until it is closed."""

    __slots__ = ("_interval", "_on_ignored", "_task", "_timer", "fired")

    def __init__(
        self, task: asyncio.Task[Any], seconds: float, interval: float, on_ignored: Callable[[int], None]
    ) -> None:
        self._task = task
        self._interval = interval
        self._on_ignored = on_ignored
        self.fired = 0
        self._timer = asyncio.get_running_loop().call_later(seconds, self._fire)

    def _fire(self) -> None:
        if self.fired:
            self._on_ignored(self.fired)
        self.fired += 1
        self._task.cancel("reconciliation_timeout")
        self._timer = asyncio.get_running_loop().call_later(self._interval, self._fire)

    def close(self) -> bool:
        """Stop, undo the cancellations made here, and return whether there were any."""
        self._timer.cancel()
        for _ in range(self.fired):
            self._task.uncancel()
        return self.fired > 0


class Job(Generic[T]):
    """A running call in a thread."""

    __slots__ = ("call", "calls", "context", "future", "thread_id")

    def __init__(self, call: Callable[[], T], future: asyncio.Future[T]) -> None:
        self.call = call
        self.calls = Calls(future.get_loop())
        self.context = contextvars.copy_context()
        self.future = future
        self.thread_id: int | None = None


class Threads:
    """The threads of one controller's plain reconcile functions, started as needed, at most `size`.

    They are daemon threads: a function that never returns does not keep the process alive.
    """

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0

    def submit(self, call: Callable[[], T]) -> Job[T]:
        """Run `call` in a thread, with the context variables of the caller."""
        loop = asyncio.get_running_loop()
        job: Job[T] = Job(call, loop.create_future())
        job.future.add_done_callback(self._freed)
        if self._idle:
            self._idle -= 1
        elif len(self._threads) < self._size:
            thread = threading.Thread(
                target=_serve, args=(self._jobs, loop), name=f"{self._name}-{len(self._threads)}", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._jobs.put(job)
        return job

    def _freed(self, _: asyncio.Future[Any]) -> None:
        self._idle += 1

    def close(self) -> None:
        """Let the threads end when they are idle."""
        for _ in self._threads:
            self._jobs.put(None)


def _serve(jobs: SimpleQueue[Job[Any] | None], loop: asyncio.AbstractEventLoop) -> None:
    while (job := jobs.get()) is not None:
        job.thread_id = threading.get_ident()
        outcome: Any = None
        failure: BaseException | None = None
        try:
            with serving(job.calls):
                outcome = job.context.run(job.call)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
            failure = error
        job.thread_id = None
        try:
            loop.call_soon_threadsafe(_deliver, job.future, outcome, failure)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more


def _deliver(future: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
    if future.cancelled():
        return
    if failure is None:
        future.set_result(outcome)
    elif isinstance(failure, StopIteration):
        future.set_exception(RuntimeError("the reconcile raised StopIteration"))
    else:
        future.set_exception(failure)


async def finish(job: Job[T]) -> T:
    """Wait until the call has really ended, also if cancelled: a thread cannot be cancelled, and its request must stay locked.

    An await inside `blocking` can be cancelled.
    """
    while True:
        try:
            return await asyncio.shield(job.future)
        except asyncio.CancelledError:
            if job.future.done() and not job.future.cancelled():
                return job.future.result()
            job.calls.cancel()


async def take_back(task: asyncio.Task[Any]) -> bool:
    """Undo the cancellations of the running `task`, including one not delivered yet.

    Return whether there were any.
    """
    if not task.cancelling():
        return False
    while task.uncancel():
        pass
    # Before Python 3.13 uncancel() leaves a cancellation that was not delivered yet: it comes with the next await.
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    return True


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling `function` gives a coroutine (an object may have an async `__call__`)."""
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is looked at, not called
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def where(task: asyncio.Task[Any] | None, job: Job[Any] | None) -> str:
    """Return the line of user code at which a reconcile waits, as `file:line in function`; empty if unknown."""
    places = _thread_places(job) if job is not None else _task_places(task) if task is not None else []
    return frames.user_line(places) or (frames.line(places[0]) if places else "")


def _task_places(task: asyncio.Task[Any]) -> list[frames.Place]:
    places: list[frames.Place] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = (
            getattr(awaited, "cr_frame", None)
            or getattr(awaited, "gi_frame", None)
            or getattr(awaited, "ag_frame", None)
        )
        if frame is not None:
            places.append((frame.f_code, frame.f_lineno))
        awaited = (
            getattr(awaited, "cr_await", None)
            or getattr(awaited, "gi_yieldfrom", None)
            or getattr(awaited, "ag_await", None)
        )
    return places[::-1]


def _thread_places(job: Job[Any]) -> list[frames.Place]:
    return list(frames.outwards(sys._current_frames().get(job.thread_id or 0)))  # noqa: SLF001 - the documented way to see another thread
