"""The server as the whole work of a process: it serves until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.server import APIServer
from ctrlruntime.signals import handled_by_loop


async def serve(options: Options, announce: Callable[[APIServer], None]) -> None:
    """Serve until SIGTERM or SIGINT; call `announce` when the server answers. Raises: ConfigError."""
    stop = asyncio.Event()
    server = APIServer(options)
    with handled_by_loop(lambda _received: stop.set()):
        await server.start()
        try:
            announce(server)
            await stop.wait()
        finally:
            await server.stop()
