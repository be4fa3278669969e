"""Runs code on another event loop, which may be blocked, for probes and pages.

Coroutines stay on their loop. Only the start, the result and a cancellation cross, each with `call_soon_threadsafe`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from ctrlruntime.errors import CtrlError

T = TypeVar("T")


class EventLoopBlockedError(CtrlError):
    """An event loop did not respond in time: code blocks it, or it has ended."""


async def run_on(
    loop: asyncio.AbstractEventLoop,
    make: Callable[[], Awaitable[T]],
    *,
    begin_within: float | None = None,
    waits_for_end: bool = False,
) -> T:
    """Run the result of `make` on `loop` and return its result; both are called there, with the context of the caller.

    begin_within: seconds until `loop` must start it; after that it is not started at all.
    waits_for_end: a cancellation takes effect only when the work has ended.

    Raises: EventLoopBlockedError, and the error of the work.
    """
    errand = _Errand(make, loop, asyncio.get_running_loop())
    try:
        loop.call_soon_threadsafe(errand.begin)
    except RuntimeError as error:
        raise EventLoopBlockedError("the event loop has ended") from error
    if begin_within is not None and not await errand.is_begun_within(begin_within):
        raise EventLoopBlockedError(f"the event loop has not responded for {begin_within:g} s")
    return await errand.finish(waits_for_end=waits_for_end)


class _Errand(Generic[T]):
    """One call between its two loops."""

    def __init__(
        self, make: Callable[[], Awaitable[T]], there: asyncio.AbstractEventLoop, here: asyncio.AbstractEventLoop
    ) -> None:
        self._make = make
        self._there = there
        self._here = here
        self._lock = threading.Lock()
        self._is_begun = False
        self._is_taken_back = False
        self._task: asyncio.Task[T] | None = None
        self.begun: asyncio.Future[None] = here.create_future()
        self.ended: asyncio.Future[T] = here.create_future()
        # Read by whoever waits; when nobody waits any more, it is nobody's.
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    # --- here -------------------------------------------------------------------------------------------------------

    async def is_begun_within(self, seconds: float) -> bool:
        """Wait for the start; on timeout cancel the call."""
        try:
            await asyncio.wait({self.begun}, timeout=seconds)
        except asyncio.CancelledError:
            if not self._take_back():
                self._cancel()
            raise
        return not self._take_back()

    def _take_back(self) -> bool:
        """Keep the work from beginning; say whether that came in time."""
        with self._lock:
            self._is_taken_back = not self._is_begun
            return self._is_taken_back

    async def finish(self, *, waits_for_end: bool) -> T:
        was_cancelled = False
        while not self.ended.done():
            try:
                await asyncio.wait({self.ended})
            except asyncio.CancelledError:
                was_cancelled = True
                if not self._cancel() or not waits_for_end:
                    break
        if was_cancelled:
            raise asyncio.CancelledError
        return self.ended.result()

    def _cancel(self) -> bool:
        """Hand a cancellation on; say whether there is still somebody to take it."""
        try:
            self._there.call_soon_threadsafe(self._cancel_there)
        except RuntimeError:
            return False
        return True

    # --- there ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        with self._lock:
            if self._is_taken_back:
                return
            self._is_begun = True
        self._tell(self._note_beginning)
        self._task = self._there.create_task(self._work())
        self._task.add_done_callback(self._hand_back)

    def _note_beginning(self) -> None:
        if not self.begun.done():
            self.begun.set_result(None)

    async def _work(self) -> T:
        return await self._make()

    def _cancel_there(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _hand_back(self, task: asyncio.Task[T]) -> None:
        def deliver() -> None:
            if self.ended.done():
                return
            if task.cancelled():
                self.ended.cancel()
            elif (error := task.exception()) is not None:
                self.ended.set_exception(error)
            else:
                self.ended.set_result(task.result())

        self._tell(deliver)

    def _tell(self, what: Callable[[], Any]) -> None:
        # The loop that asked may be gone by now; then nobody waits.
        with contextlib.suppress(RuntimeError):
            self._here.call_soon_threadsafe(what)
