"""`ctrl.blocking(client.get(Memcached, request))`: call the async client from a plain `def reconcile`.

It works for every awaitable, so that the client keeps its types and needs no second API. The thread of a plain reconcile has the `Calls` of
its run. `blocking` runs an awaitable on the controller's event loop, with the context of the thread (the actor, the log fields), and the
thread waits for it. If the reconcile is cancelled, the current call is cancelled, or else the next one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class Calls:
    """The awaitables of one plain reconcile on `loop`, one at a time.

    All methods except `run` are called on the loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._must_cancel = False

    def run(self, awaitable: Awaitable[T]) -> T:
        """Await it on the loop and return its result.

        Raises: its error; CancelledError if the reconcile is cancelled.
        """
        outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            self._loop.call_soon_threadsafe(self._begin, awaitable, outcome, context=contextvars.copy_context())
        except RuntimeError:
            # The loop is closed: the reconcile was left behind.
            _discard(awaitable)
            raise
        return outcome.result()

    def cancel(self) -> None:
        """Cancel the current call, or the next one."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._must_cancel = True

    def _begin(self, awaitable: Awaitable[T], outcome: concurrent.futures.Future[T]) -> None:
        if self._must_cancel:
            self._must_cancel = False
            _discard(awaitable)
            outcome.set_exception(asyncio.CancelledError())
            return
        task: asyncio.Task[T] = self._loop.create_task(_coroutine(awaitable))
        self._task = task

        def ended(task: asyncio.Task[T]) -> None:
            self._task = None
            if task.cancelled():
                outcome.set_exception(asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(task.result())

        task.add_done_callback(ended)


class _Here(threading.local):
    calls: Calls | None = None


_here = _Here()


@contextlib.contextmanager
def serving(calls: Calls) -> Generator[None]:
    """Make `blocking` work in this thread, with `calls`."""
    _here.calls = calls
    try:
        yield
    finally:
        _here.calls = None


def blocking(awaitable: Awaitable[T]) -> T:
    """Wait in a plain `def reconcile` for the result of an async call.

    For example `blocking(client.get(Memcached, request))`.

    Returns its result or raises its error. Raises: RuntimeError outside the thread in which a controller runs a plain reconcile, TypeError
    if it cannot be awaited, asyncio.CancelledError if the reconcile is cancelled meanwhile.
    """
    if not inspect.isawaitable(awaitable):
        raise TypeError(
            f"blocking() takes the call of an async function, as in blocking(client.get(…)); got {awaitable!r}"
        )
    is_loop = _is_on_loop()
    calls = _here.calls
    if is_loop or calls is None:
        _discard(awaitable)
        raise RuntimeError(
            "cannot use blocking() here: it would block the event loop. Write `await`; blocking() is for a plain `def reconcile`"
            if is_loop
            else "cannot use blocking() here: it works only in the thread in which a controller runs a plain `def reconcile`. "
            "In another thread use asyncio.run_coroutine_threadsafe"
        )
    return calls.run(awaitable)


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _coroutine(awaitable: Awaitable[T]) -> Coroutine[Any, Any, T]:
    async def wait() -> T:
        return await awaitable

    # A coroutine as it is: inside another one it would never have begun when the task is cancelled before its first step.
    return awaitable if inspect.iscoroutine(awaitable) else wait()


def _discard(awaitable: object) -> None:
    # Or Python warns of a coroutine that was never awaited, beside the error that matters.
    if inspect.iscoroutine(awaitable):
        awaitable.close()
