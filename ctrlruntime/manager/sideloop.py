"""The second loop: an event loop in its own thread, for work that must continue while user code blocks the first.

The manager runs the election, the watchdog and the HTTP servers here. It hands up a way to run something on it and to wait for that.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ctrlruntime import log
from ctrlruntime.serving.loops import run_on

T = TypeVar("T")

_END: Final = 5.0  # seconds the thread may take to end: what runs in its pool is user code at a scrape


class SideLoop:
    """Runs coroutines on an event loop of its own, from `start` to `stop`; both are called on the first loop, once."""

    def __init__(self, name: str = "ctrlruntime") -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_asked = asyncio.Event()
        self._ended: asyncio.Future[None] | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop. Raises: RuntimeError before the start."""
        if self._loop is None:
            raise RuntimeError("the second loop has not been started")
        return self._loop

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; work submitted from now on starts as soon as the loop runs."""
        here = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._ended = here.create_future()
        # A daemon: whatever hangs in it must not keep the process from ending.
        self._thread = threading.Thread(target=self._turn, args=(here, self._ended), name=self._name, daemon=True)
        self._thread.start()

    async def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Run what `make` returns there and return its result; a cancellation is handed on and waits for the end of it."""
        return await run_on(self.loop, make, waits_for_end=True)

    async def stop(self) -> None:
        """End the loop: what still runs is cancelled, its thread ends. Does nothing without a start or the second time."""
        thread, self._thread = self._thread, None
        if thread is None or self._ended is None:
            return
        self.ask_to_end()
        await asyncio.wait({self._ended}, timeout=_END)
        if self._ended.done():
            thread.join()
        else:
            log.get_logger("manager").warning("second event loop does not stop and is abandoned", thread=self._name)

    def ask_to_end(self) -> None:
        """Request the end of the loop, from any thread, without waiting."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._is_asked.set)

    def _turn(self, first: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(self._wait())
        finally:
            _tell(first, ended)

    async def _wait(self) -> None:
        await self._is_asked.wait()


def _tell(first: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    try:
        first.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the first loop has ended before this one; nobody waits
