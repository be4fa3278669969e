"""Connections that leave HTTP for SPDY/3.1: as Go clients ask for it, or inside of a WebSocket, as kubectl does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

from aiohttp import WSMsgType, web

from ctrlruntime.apiserver.http.spdy import Frame, FrameError, Frames, Kind
from ctrlruntime.log import get_logger

_log = get_logger("apiserver")
_SPDY: Final = "SPDY/3.1"
_VERSIONS: Final = "X-Stream-Protocol-Version"
_ENOUGH: Final = 256 * 1024
"""Bytes that wait to be read; then the connection of the client waits."""
_LARGEST_DATA: Final = 64 * 1024


class Carrier(Protocol):
    """What carries the bytes of SPDY."""

    def received(self) -> AsyncIterator[bytes]:
        """Yield what the client sends until it goes."""
        ...

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises: ConnectionResetError when the client is gone."""
        ...


class Messages:
    """SPDY in the messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def received(self) -> AsyncIterator[bytes]:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                yield message.data

    async def send(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class Upgraded:
    """SPDY on the connection of a request, which is closed afterwards."""

    def __init__(self, request: web.BaseRequest, protocol: str) -> None:
        self._request = request
        headers = {"Connection": "Upgrade", "Upgrade": _SPDY, _VERSIONS: protocol}
        self.response: Final = web.StreamResponse(status=101, headers=headers)
        self._waiting = bytearray()
        self._changed = asyncio.Event()
        self._is_over = False

    async def prepare(self) -> None:
        """Answer that the connection changes."""
        parser: Any = self  # aiohttp gives it what arrives from here on; a client sends nothing before the answer
        self._request.protocol.set_parser(parser)
        self._request.protocol.keep_alive(False)
        self.response.force_close()
        await self.response.prepare(self._request)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._waiting += data
        transport = self._request.transport
        if len(self._waiting) > _ENOUGH and transport is not None:
            transport.pause_reading()
        self._changed.set()
        return False, b""

    def feed_eof(self) -> None:
        self._is_over = True
        self._changed.set()

    async def received(self) -> AsyncIterator[bytes]:
        while self._waiting or not self._is_over:
            if self._waiting:
                data = bytes(self._waiting)
                self._waiting.clear()
                transport = self._request.transport
                if len(data) > _ENOUGH and transport is not None:
                    transport.resume_reading()
                yield data
            else:
                self._changed.clear()
                await self._changed.wait()

    async def send(self, data: bytes) -> None:
        await self.response.write(data)


class SpdyConnection:
    """The streams that a client opens."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._frames = Frames()

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield what is sent on streams until the client goes, or sends something other than SPDY. Pings are answered here."""
        try:
            async for data in self._carrier.received():
                for frame in self._frames.feed(data):
                    if frame.kind is Kind.GO_AWAY:
                        return
                    if frame.kind is Kind.PING:
                        await self._carrier.send(self._frames.ping(frame.stream))
                    else:
                        yield frame
        except FrameError as error:
            _log.warning("connection closed: the client does not send SPDY", error=str(error))

    async def accept(self, stream: int) -> None:
        """Take a stream."""
        await self._carrier.send(self._frames.reply(stream))

    async def write(self, stream: int, data: bytes) -> None:
        """Send data on a stream."""
        for start in range(0, len(data), _LARGEST_DATA):
            await self._carrier.send(Frames.data(stream, data[start : start + _LARGEST_DATA]))

    async def finish(self, stream: int) -> None:
        """Say that nothing more comes on a stream."""
        await self._carrier.send(Frames.data(stream, b"", is_last=True))

    async def reset(self, stream: int) -> None:
        """End a stream in both directions."""
        await self._carrier.send(Frames.reset(stream))


def asks_for_spdy(headers: Mapping[str, str]) -> bool:
    """Say whether a request asks for SPDY."""
    return _SPDY.lower() in headers.get("Upgrade", "").lower() and "upgrade" in headers.get("Connection", "").lower()


def negotiate(request: web.BaseRequest, served: tuple[str, ...]) -> str | web.Response:
    """Return the first protocol of the client that is served, or the refusal.

    The rules are those of Handshake in k8s.io/streaming's pkg/httpstream.
    """
    given = request.headers.getall(_VERSIONS, [])
    asked = [name.strip(" ") for value in given for name in value.split(",") if name.strip(" ")]
    if not given:
        return _refusal(400, f"header {_VERSIONS} does not exist in request with {len(request.headers)} headers")
    if not asked:
        return _refusal(400, f"header {_VERSIONS} contains [{' '.join(given)}], but no valid protocols")
    for name in asked:
        if name in served:
            return name
    text = f"unable to negotiate protocol: client supports [{' '.join(asked)}], server accepts [{' '.join(served)}]"
    response = _refusal(403, text)
    for name in served:
        response.headers.add("X-Accepted-Stream-Protocol-Versions", name)
    return response


def _refusal(code: int, text: str) -> web.Response:
    return web.Response(status=code, text=f"unable to upgrade: {text}\n")


__all__ = ["Carrier", "Messages", "SpdyConnection", "Upgraded", "asks_for_spdy", "negotiate"]
