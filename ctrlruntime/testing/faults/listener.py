"""The socket clients connect to: accepts, begins TLS, and can be down without losing its port."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from typing_extensions import override

from ctrlruntime.certificates import KeyPair, make_authority
from ctrlruntime.testing.faults import plan
from ctrlruntime.testing.faults.exchange import ClientConnection
from ctrlruntime.testing.faults.http import LIMIT
from ctrlruntime.testing.faults.traffic import Traffic
from ctrlruntime.tls import load_pair, server_context

__all__ = ["Listener"]

_HOST = "127.0.0.1"


class Listener:
    """Listens on a free port of the loopback address; made by `open`."""

    def __init__(self, traffic: Traffic, tls: ssl.SSLContext) -> None:
        self._traffic = traffic
        self._tls = tls
        self._socket = _bound(0)
        self.port: int = self._socket.getsockname()[1]
        self._is_accepting = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: set[socket.socket] = set()
        """Accepted sockets that no transport owns: a black hole took them, or their task has not run yet."""

    @classmethod
    async def open(cls, traffic: Traffic) -> tuple[Listener, bytes]:
        """Return a listener and the authority (PEM) that clients have to trust."""
        authority = make_authority("fault proxy")
        listener = cls(traffic, _context(authority.server([_HOST, "localhost"])))
        listener.listen()
        return listener, authority.pem

    def listen(self, _fault: object = None) -> None:
        """Accept connections, unless a fault refuses them."""
        if not self._is_accepting and not self._traffic.has(plan.Refusal):
            self._socket.listen(512)
            asyncio.get_running_loop().add_reader(self._socket, self._accept)
            self._is_accepting = True

    def refuse(self, _fault: object = None) -> None:
        """Reset all connections and let new ones be refused; the port stays ours."""
        self._traffic.reset_all()
        if self._is_accepting:
            self._close_socket()
            self._socket = _bound(self.port)

    async def close(self) -> None:
        """Reset all connections and free the port."""
        self._close_socket()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._traffic.close()
        for held in self._held:
            held.close()
        for _ in range(3):  # connections that were cut are closed by callbacks
            await asyncio.sleep(0)
        await asyncio.get_running_loop().shutdown_default_executor()

    def _close_socket(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._is_accepting = False
        self._socket.close()

    def _accept(self) -> None:
        """Take a client; the event loop calls this, so that no cancellation comes between the client and its owner."""
        try:
            client, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # the client has left
        client.setblocking(False)
        self._held.add(client)
        if (hole := next((f for f in self._traffic.faults if isinstance(f, plan.BlackHole)), None)) is not None:
            hole.hits += 1
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._start(self._serve(client))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket) -> None:
        self._held.discard(client)
        reader = asyncio.StreamReader(limit=LIMIT)
        this = asyncio.current_task()
        assert this is not None
        protocol = _Protocol(reader, on_lost=this.cancel)
        try:
            writer = await self._traffic.connections.accept(client, self._tls, reader, protocol)
        except (OSError, EOFError):
            return
        await ClientConnection(self._traffic, reader, writer).serve()


class _Protocol(asyncio.StreamReaderProtocol):
    """Says when the client has gone, also while nobody reads."""

    def __init__(self, reader: asyncio.StreamReader, on_lost: Callable[[], object]) -> None:
        super().__init__(reader)
        self._on_lost = on_lost

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_lost()


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setblocking(False)
    made.bind((_HOST, port))
    return made


def _context(pair: KeyPair) -> ssl.SSLContext:
    context = server_context()
    load_pair(context, pair.certificate, pair.key)
    return context
