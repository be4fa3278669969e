"""The sockets of a fault proxy: all are closed with it, wherever its connections are at that moment."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import warnings
from collections.abc import Awaitable, Callable

import pytest

from ctrlruntime.testing.faults.listener import Listener
from ctrlruntime.testing.faults.traffic import Traffic, Upstream

STEPS = range(12)
"""How many steps of the event loop pass before the proxy is closed; accepting and connecting take fewer."""


def client_hello() -> bytes:
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost").do_handshake()
    return out.read()


async def unclosed(steps: int, close: Callable[[], Awaitable[None]]) -> list[str]:
    """Let so many steps of the event loop pass and close; return what Python says about resources that are left."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(steps):
            await asyncio.sleep(0)
        await close()
        gc.collect()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("sent", [b"", client_hello()], ids=["connected", "handshake"])
async def test_a_client_is_closed_with_the_proxy(sent, steps):
    listener, _ = await Listener.open(Traffic())
    for _ in STEPS:  # it waits for clients now
        await asyncio.sleep(0)
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        client.send(sent)

        assert await unclosed(steps, listener.close) == []


@pytest.mark.parametrize("steps", STEPS)
async def test_a_connection_to_the_server_is_closed_with_the_proxy(steps):
    with socket.create_server(("127.0.0.1", 0)) as server:  # it never answers the handshake
        upstream = Upstream("127.0.0.1", server.getsockname()[1], "", ssl.create_default_context(), None, ())
        traffic = Traffic()
        opening = asyncio.create_task(upstream.connect(traffic.connections))

        async def close() -> None:
            opening.cancel()
            await asyncio.gather(opening, traffic.close(), return_exceptions=True)
            await asyncio.sleep(0)

        assert await unclosed(steps, close) == []
