"""Ports of Pods, forwarded to ports of this machine (k8s.io/cri-streaming's pkg/streaming/portforward).

| protocol | for each port |
|---|---|
| WebSocket with `v4.channel.k8s.io` | two channels, for data and for an error; each begins with the port |
| WebSocket with `SPDY/3.1+portforward.k8s.io`, of kubectl | for each connection a pair of streams, for data and for an error |
| SPDY/3.1 with `portforward.k8s.io`, of Go clients | the same |
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import WSMsgType, web

from ctrlruntime.apiserver.containers import Containers, PortError
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.spdy import Frame, Kind
from ctrlruntime.apiserver.http.upgrades import (
    Carrier,
    Messages,
    SpdyConnection,
    Upgraded,
    asks_for_spdy,
    negotiate,
)
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.errors import BadRequest
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document

_log = get_logger("apiserver")
_CHANNELS: Final = "v4.channel.k8s.io"
_SPDY: Final = "portforward.k8s.io"
_TUNNEL: Final = f"SPDY/3.1+{_SPDY}"
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
_CHUNK: Final = 64 * 1024
_WAITING: Final = 8
"""Messages that wait for one port; then the connection of the client waits."""
_MOST_CONNECTIONS: Final = 512
"""Connections at once of one client, and ports in one request."""
_Write = Callable[[bytes], Awaitable[None]]


class PortForward:
    def __init__(self, registry: Registry, containers: Containers) -> None:
        self._registry = registry
        self._containers = containers

    async def open(
        self, request: web.BaseRequest, call: Call, resource: Resource, target: ResourcePath
    ) -> web.StreamResponse:
        """Forward ports until the client goes or, of channels, all connections end. Raises: BadRequest."""
        pod: Document = resource.tree(self._registry.record(resource, target.namespace, target.name))
        if not (pod.get("spec") or {}).get("nodeName"):
            raise BadRequest(f"pod {target.name} does not have a host assigned")
        if asks_for_spdy(request.headers):
            protocol = negotiate(request, (_SPDY,))
            if isinstance(protocol, web.Response):
                return protocol
            upgraded = Upgraded(request, protocol)
            await upgraded.prepare()
            with contextlib.suppress(ConnectionResetError):  # a client that goes away ends it
                await _Pairs(upgraded, pod, self._containers).run()
            return upgraded.response
        socket = web.WebSocketResponse(protocols=(_TUNNEL, _CHANNELS), max_msg_size=_LARGEST_MESSAGE)
        ready = socket.can_prepare(request)
        if not ready.ok:
            raise BadRequest("Upgrade request required")
        ports = [] if ready.protocol == _TUNNEL else _ports(call)
        await socket.prepare(request)
        session = _Pairs(Messages(socket), pod, self._containers) if ready.protocol == _TUNNEL else None
        with contextlib.suppress(ConnectionResetError):
            await (session or _Channels(socket, pod, self._containers, ports)).run()
            await socket.close()
        return socket


def _ports(call: Call) -> list[int]:
    """Return the ports that channels are asked for. Raises: BadRequest, in the words of NewV4Options in websocket.go."""
    given = call.queries.get("ports") or []
    if not given:
        raise BadRequest('query parameter "ports" is required')
    found: list[int] = []
    for text in given:
        if not text:
            raise BadRequest('query parameter "ports" cannot be empty')
        for part in text.split(","):
            if not (part.isascii() and part.isdigit()) or int(part) > 65535:
                why = "value out of range" if part.isascii() and part.isdigit() else "invalid syntax"
                raise BadRequest(f'unable to parse "{text}" as a port: strconv.ParseUint: parsing "{part}": {why}')
            if int(part) < 1:
                raise BadRequest(f'port "{text}" must be > 0')
            found.append(int(part))
    if len(found) > _MOST_CONNECTIONS:
        raise BadRequest(f"at most {_MOST_CONNECTIONS} ports can be forwarded by one request")
    return found


class _Connection:
    """A connection to a port of a Pod: what the client sends waits here."""

    def __init__(self) -> None:
        self._received: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)

    async def feed(self, data: bytes) -> None:
        """Take what the client sent; nothing for the end."""
        await self._received.put(data)

    async def copy(self, pod: Document, port: int, containers: Containers, write: _Write) -> str:
        """Copy both ways until the port closes the connection; return what is wrong, or nothing."""
        try:
            local = await containers.port_of(pod, port)
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
        except (PortError, OSError) as error:
            metadata = pod["metadata"]
            return (
                f"error forwarding port {port} to pod {metadata['name']}, uid {metadata['uid']}: failed to connect to "
                f"localhost:{port} inside of the pod: {error}"
            )
        sending = asyncio.create_task(self._send(writer))
        try:
            while data := await reader.read(_CHUNK):
                await write(data)
        except ConnectionError as error:
            return f"error forwarding port {port} to pod {pod['metadata']['name']}: {error}"
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.close()
        return ""

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the reading side says it
            while data := await self._received.get():
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        while True:
            await self._received.get()  # for the client, which may send more, nothing waits


class _Channels:
    """One connection for each port of the request."""

    def __init__(self, socket: web.WebSocketResponse, pod: Document, containers: Containers, ports: list[int]) -> None:
        self._socket = socket
        self._pod = pod
        self._containers = containers
        self._ports = ports
        self._connections = [_Connection() for _ in ports]

    async def run(self) -> None:
        for index, port in enumerate(self._ports):
            for channel in (2 * index, 2 * index + 1):
                await self._send(channel, port.to_bytes(2, "little"))
        copying = asyncio.gather(*(self._copy(index) for index in range(len(self._ports))))
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait((copying, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (copying, reading):
                task.cancel()
            await asyncio.gather(copying, reading, return_exceptions=True)

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY and message.data:
                index, is_error = divmod(message.data[0], 2)
                if not is_error and index < len(self._connections) and len(message.data) > 1:
                    await self._connections[index].feed(message.data[1:])

    async def _copy(self, index: int) -> None:
        async def write(data: bytes) -> None:
            await self._send(2 * index, data)

        problem = await self._connections[index].copy(self._pod, self._ports[index], self._containers, write)
        if problem:
            await self._send(2 * index + 1, problem.encode())

    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + data)


class _Pairs:
    """SPDY: the client opens two streams with one request id for each of its connections."""

    def __init__(self, carrier: Carrier, pod: Document, containers: Containers) -> None:
        self._spdy = SpdyConnection(carrier)
        self._pod = pod
        self._containers = containers
        self._halves: dict[str, dict[str, int]] = {}
        """The streams of a request id, by type, until there are two."""
        self._connections: dict[int, _Connection] = {}
        """By the stream of the data."""
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            async for frame in self._spdy.frames():
                await self._take(frame)
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.SYN_STREAM:
            await self._open(frame.stream, frame.headers)
        elif frame.kind is Kind.RST_STREAM and frame.stream in self._tasks:
            self._tasks[frame.stream].cancel()
        elif frame.kind is Kind.DATA and (connection := self._connections.get(frame.stream)) is not None:
            if frame.data:
                await connection.feed(frame.data)
            if frame.is_last:
                await connection.feed(b"")

    async def _open(self, stream: int, headers: Mapping[str, str]) -> None:
        kind, port, request = headers.get("streamtype"), headers.get("port", ""), headers.get("requestid", "")
        is_full = len(self._tasks) + len(self._halves) >= _MOST_CONNECTIONS
        if kind not in {"data", "error"} or not port.isdecimal() or not 0 < int(port) < 65536 or is_full:
            await self._spdy.reset(stream)
            return
        await self._spdy.accept(stream)
        halves = self._halves.setdefault(request, {})
        halves[kind] = stream
        if len(halves) == 2:
            del self._halves[request]
            data = halves["data"]
            self._connections[data] = _Connection()
            self._tasks[data] = asyncio.create_task(self._copy(data, halves["error"], int(port)))

    async def _copy(self, data: int, error: int, port: int) -> None:
        async def write(chunk: bytes) -> None:
            await self._spdy.write(data, chunk)

        try:
            problem = await self._connections[data].copy(self._pod, port, self._containers, write)
            if problem:
                await self._spdy.write(error, problem.encode())
            for stream in (data, error):
                await (self._spdy.reset(stream) if problem else self._spdy.finish(stream))
        finally:
            del self._connections[data], self._tasks[data]


__all__ = ["PortForward"]
