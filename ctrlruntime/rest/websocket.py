"""A WebSocket to the API server, as a client (RFC 6455): whole messages out, whole messages in.

It takes a connection that the transport has switched to this protocol. Frames have no extensions. A message has a maximum size, however many
frames it comes in.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from ctrlruntime.errors import TransportError
from ctrlruntime.rest.connection import ExchangeError, OversizeError
from ctrlruntime.rest.transport import Params, Transport, translating

__all__ = ["MAX_MESSAGE_SIZE", "Frame", "FrameReader", "Opcode", "WebSocket", "encode_frame", "websocket"]

MAX_MESSAGE_SIZE: Final = 1024 * 1024
"""The default maximum size of a message in bytes."""

_MAX_CONTROL: Final = 125
_KEY_SUFFIX: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3


class Opcode(IntEnum):
    """The kinds of frames (RFC 6455, section 5.2)."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class Frame(NamedTuple):
    """One frame. `is_last`: it ends its message."""

    opcode: Opcode
    is_last: bool
    payload: bytes


class FrameReader:
    """Splits the bytes of a server into frames. A payload has at most `limit` bytes."""

    def __init__(self, limit: int = MAX_MESSAGE_SIZE) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that `data` completes.

        Raises: OversizeError for a payload over the limit, ExchangeError for bytes that are not frames of a server.
        """
        self._held += data
        while (frame := self._next()) is not None:
            yield frame

    def _next(self) -> Frame | None:
        held = self._held
        if len(held) < 2:
            return None
        first, length = held[0], held[1]
        # A server does not mask (section 5.1), and the reserved bits are for extensions, of which none was requested.
        if first & 0x70 or length & 0x80 or first & 0x0F not in set(Opcode):
            raise ExchangeError("the server sent an invalid WebSocket frame")
        opcode, is_last = Opcode(first & 0x0F), bool(first & 0x80)
        if opcode >= Opcode.CLOSE and (length > _MAX_CONTROL or not is_last):
            raise ExchangeError("the server sent an invalid WebSocket control frame")
        size = {126: 2, 127: 8}.get(length, 0)
        start = 2 + size
        if len(held) < start:
            return None
        if size:
            length = int.from_bytes(held[2:start], "big")
        if length > self._limit:
            raise _oversize(self._limit)
        if len(held) < start + length:
            return None
        payload = bytes(held[start : start + length])
        del held[: start + length]
        return Frame(opcode, is_last, payload)


def encode_frame(opcode: Opcode, payload: bytes, mask: bytes) -> bytes:
    """Return a whole message of a client as one frame. `mask`: four random bytes."""
    size = len(payload)
    if size <= _MAX_CONTROL:
        length = bytes((0x80 | size,))
    elif size < 2**16:
        length = bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    key = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
    return bytes((0x80 | opcode,)) + length + mask + masked


class WebSocket:
    """An open WebSocket. `read` returns received data, or nothing after the end; `write` sends. Receive in one task only."""

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes]],
        write: Callable[[bytes], None],
        *,
        limit: int = MAX_MESSAGE_SIZE,
        new_mask: Callable[[], bytes] = lambda: os.urandom(4),
    ) -> None:
        self._read = read
        self._write = write
        self._limit = limit
        self._new_mask = new_mask
        self._reader = FrameReader(limit)
        self._frames: Iterator[Frame] = iter(())
        self._is_closed = False

    def send(self, message: bytes) -> None:
        """Send a binary message. Raises: ExchangeError."""
        self._write(encode_frame(Opcode.BINARY, message, self._new_mask()))

    async def receive(self) -> bytes | None:
        """Return the next message, text or binary, or None after the end.

        Raises: ExchangeError, OversizeError for a message over the limit.
        """
        parts: list[bytes] = []
        is_open = False
        while (frame := await self._frame()) is not None:
            match frame.opcode:
                case Opcode.PING:
                    with contextlib.suppress(ExchangeError):  # lost already: what came before is still to be read
                        self._write(encode_frame(Opcode.PONG, frame.payload, self._new_mask()))
                    continue
                case Opcode.PONG:
                    continue
                case Opcode.CLOSE:
                    self._is_closed = True
                    return None
                case opcode:
                    if (opcode == Opcode.CONTINUATION) != is_open:
                        raise ExchangeError("the server sent the frames of a WebSocket message out of order")
            parts.append(frame.payload)
            is_open = True
            if sum(map(len, parts)) > self._limit:
                raise _oversize(self._limit)
            if frame.is_last:
                return b"".join(parts)
        return None

    async def _frame(self) -> Frame | None:
        while not self._is_closed:
            frame = next(self._frames, None)
            if frame is not None:
                return frame
            data = await self._read()
            self._is_closed = not data
            self._frames = self._reader.feed(data)
        return None


@contextlib.asynccontextmanager
async def websocket(
    transport: Transport,
    path: str,
    *,
    protocol: str,
    params: Params = (),
    limit: int = MAX_MESSAGE_SIZE,
    opens_within: float = 10.0,
) -> AsyncGenerator[WebSocket, None]:
    """Open a WebSocket with a subprotocol, and yield it; it is closed at the end.

    `limit`: the maximum size of a message in bytes. `opens_within`: seconds until the response must start. An ExchangeError inside the block
    becomes a TransportError.

    Raises: APIStatusError, TransportError.
    """
    key = base64.b64encode(os.urandom(16)).decode()
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": protocol,
    }
    opened = transport.switch(path, params=params, headers=headers, headers_within=opens_within)
    async with opened as (connection, answer):
        if answer.headers.get("Sec-WebSocket-Accept") != _accept(key):
            raise TransportError(f"GET {path}: the response of {transport.host} does not open a WebSocket")
        if answer.headers.get("Sec-WebSocket-Protocol") != protocol:
            raise TransportError(f"GET {path}: {transport.host} does not support the WebSocket protocol {protocol}")
        with translating("GET", path):
            yield WebSocket(answer.read, connection.write, limit=limit)


def _accept(key: str) -> str:
    digest = hashlib.sha1((key + _KEY_SUFFIX).encode(), usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


def _oversize(limit: int) -> OversizeError:
    return OversizeError(f"a WebSocket message is longer than {limit} bytes")
