"""The server on a loop of its own, in a thread: for synchronous tests, and for tests whose own loop must be free."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Self, TypeVar

from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.server import APIServer

T = TypeVar("T")


class ServerThread:
    """Runs an APIServer in a daemon thread; also a context manager."""

    def __init__(self, options: Options | None = None) -> None:
        self.server = APIServer(options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ctrlruntime-apiserver", daemon=True)

    def start(self) -> None:
        """Start the thread and wait until the server answers. Raises: what the start raises."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def stop(self) -> None:
        """Stop the server and wait for the thread to end."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function on the server's loop and return its result, e.g. `thread.call(thread.server.faults.expire_history)`."""
        assert self._loop is not None, "the server is not started"

        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def reset(self) -> None:
        """Go back to the state right after the start, see `APIServer.reset`. Call it from any thread but the server's own."""
        assert self._loop is not None, "the server is not started"
        asyncio.run_coroutine_threadsafe(self.server.reset(), self._loop).result()

    @property
    def url(self) -> str:
        return self.server.url

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the starting thread
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self.server.start()
        try:
            self._ready.set()
            await self._stop.wait()
        finally:
            await self.server.stop()
