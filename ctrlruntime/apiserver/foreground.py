"""The server as the whole work of a process: it serves until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.server import APIServer


async def serve(options: Options, announce: Callable[[APIServer], None]) -> None:
    """Serve until SIGTERM or SIGINT; call `announce` when the server answers. Raises: ConfigError."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = APIServer(options)
    await server.start()
    try:
        announce(server)
        await stop.wait()
    finally:
        await server.stop()
