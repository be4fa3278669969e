"""The TCP connections of a proxy, both to clients and to the server. None outlives the proxy.

asyncio ends a TLS connection with a farewell that waits for the peer, and loses a socket whose TLS handshake is cancelled. So a connection
is made in two steps, TCP and then TLS. `abort` closes the TCP transports, which are known from the first moment.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from weakref import WeakSet

from typing_extensions import override

from ctrlruntime.testing.faults.http import LIMIT

__all__ = ["Connections"]


class Connections:
    """Makes connections and can close all of them."""

    def __init__(self) -> None:
        self._transports: WeakSet[asyncio.Transport] = WeakSet()

    async def connect(
        self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a server. Raises: OSError."""
        loop = asyncio.get_running_loop()
        tcp, _ = await loop.create_connection(self._waiting, host, port)
        reader = asyncio.StreamReader(limit=LIMIT)
        protocol = asyncio.StreamReaderProtocol(reader)
        return reader, await _stream(tcp, reader, protocol, tls, server_name=server_name)

    async def accept(
        self,
        client: socket.socket,
        tls: ssl.SSLContext,
        reader: asyncio.StreamReader,
        protocol: asyncio.StreamReaderProtocol,
    ) -> asyncio.StreamWriter:
        """Begin TLS with a client. Raises: OSError."""
        tcp, _ = await asyncio.get_running_loop().connect_accepted_socket(self._waiting, client)
        return await _stream(tcp, reader, protocol, tls)

    def abort(self) -> None:
        """Close every connection. The event loop closes the sockets in its next step."""
        for transport in list(self._transports):
            transport.abort()

    def _waiting(self) -> _Waiting:
        return _Waiting(self._transports)


class _Waiting(asyncio.Protocol):
    """A TCP connection before it has its protocol: what the peer sends stays in the socket."""

    def __init__(self, transports: WeakSet[asyncio.Transport]) -> None:
        self._transports = transports

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transports.add(transport)
        transport.pause_reading()


async def _stream(
    tcp: asyncio.Transport,
    reader: asyncio.StreamReader,
    protocol: asyncio.StreamReaderProtocol,
    tls: ssl.SSLContext | None,
    *,
    server_name: str | None = None,
) -> asyncio.StreamWriter:
    """Let `protocol` take over a TCP connection. Without a server name this is the server's side of TLS."""
    loop = asyncio.get_running_loop()
    over: asyncio.Transport | None = tcp
    if tls is None:
        tcp.set_protocol(protocol)
    else:
        is_server = server_name is None
        over = await loop.start_tls(tcp, protocol, tls, server_side=is_server, server_hostname=server_name)
    if over is None:
        raise ConnectionResetError("the connection was closed during the TLS handshake")
    protocol.connection_made(over)
    if tls is None:
        tcp.resume_reading()
    return asyncio.StreamWriter(over, protocol, reader, loop)
