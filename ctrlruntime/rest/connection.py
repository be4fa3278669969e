"""One HTTP/1.1 connection: a request goes out, its answer comes in, whole or bit by bit.

Knows bytes and their framing (which httptools reads) and nothing of addresses, TLS or Kubernetes. A connection carries one exchange at a
time. What does not come to its end is an ExchangeError, whose text goes on where a caller's "GET /path: " ends.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, cast

import httptools
from multidict import CIMultiDict
from typing_extensions import override

if TYPE_CHECKING:
    import ssl

READ_BUFFER = 1024 * 1024
"""Bytes of an answer held for a slow reader before the socket is left alone; an answer that is read whole is held whole."""

_GZIP = 16 + zlib.MAX_WBITS


class ExchangeError(Exception):
    """A request got no answer, or not all of one. `unanswered`: not a byte of it came."""

    def __init__(self, text: str, *, unanswered: bool = False) -> None:
        super().__init__(text)
        self.unanswered = unanswered


class _Stage(IntEnum):
    """How far an answer has come, and how far somebody waits for it to come."""

    SENT = 0
    BEGUN = 1
    SOME = 2
    COMPLETE = 3


class Answer:
    """An answer on its way. Read it with one task only, and either with `whole` or with `read`."""

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers: CIMultiDict[str] = CIMultiDict()
        self._connection = connection
        self._parts: list[bytes] = []
        self._held = 0
        self._stage = _Stage.SENT
        self._wanted = _Stage.COMPLETE
        self._waiter: asyncio.Future[None] | None = None
        self._error: ExchangeError | None = None
        self._inflate: Callable[[bytes], bytes] | None = None

    @property
    def complete(self) -> bool:
        return self._stage is _Stage.COMPLETE

    async def begun(self) -> None:
        """Wait for status and headers. Raises: ExchangeError."""
        await self._reach(_Stage.BEGUN)

    async def whole(self) -> bytes:
        """Return the body, unpacked. Raises: ExchangeError."""
        await self._reach(_Stage.COMPLETE)
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if body and self._is_packed():
            return self._unpack(_decompress, body)
        return body

    async def read(self) -> bytes:
        """Return what has come since the last time, at least a byte, or nothing after the end. Raises: ExchangeError."""
        while True:
            if not self._parts:
                await self._reach(_Stage.SOME)
            chunk = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
            self._connection.resume()
            if self._stage is not _Stage.COMPLETE:
                self._stage = _Stage.BEGUN
            if not chunk:
                return b""
            if not self._is_packed():
                return chunk
            if self._inflate is None:
                self._inflate = zlib.decompressobj(_GZIP).decompress
            if unpacked := self._unpack(self._inflate, chunk):
                return unpacked

    def _is_packed(self) -> bool:
        return self.headers.get("Content-Encoding") == "gzip"

    def _unpack(self, decompress: Callable[[bytes], bytes], packed: bytes) -> bytes:
        try:
            return decompress(packed)
        except zlib.error as error:
            raise self._connection.failed(
                f"the answer of {self._connection.peer} cannot be unpacked ({error})"
            ) from error

    async def _reach(self, stage: _Stage) -> None:
        self._wanted = stage
        if stage is _Stage.COMPLETE:
            self._connection.resume()
        while self._stage < stage and self._error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        # What came before a failure is handed out first.
        if self._error is not None and (stage is _Stage.COMPLETE or not self._parts):
            raise self._error

    # --- what the connection tells ------------------------------------------------------------------------------------

    def begin(self, status: int, headers: CIMultiDict[str]) -> None:
        self.status, self.headers = status, headers
        self._advance(_Stage.BEGUN)

    def feed(self, chunk: bytes) -> None:
        self._parts.append(chunk)
        if self._wanted is _Stage.COMPLETE:
            return
        self._held += len(chunk)
        if self._held > READ_BUFFER:
            self._connection.pause()
        self._advance(_Stage.SOME)

    def end(self) -> None:
        self._advance(_Stage.COMPLETE)

    def fail(self, error: ExchangeError) -> None:
        self._error = error
        self._wake()

    def _advance(self, stage: _Stage) -> None:
        self._stage = stage
        if stage >= self._wanted:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Connection(asyncio.Protocol):
    """A connection to `peer`, the name that errors call it by. It belongs to one event loop."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.generation = 0
        """For the pool, as the two below: how often its connections were distrusted before this one was made."""

        self.context: ssl.SSLContext | None = None
        self.idle_since = 0.0
        self._socket: asyncio.Transport | None = None
        self._transport: asyncio.Transport | None = None
        self._is_closed = False
        self._is_paused = False
        self._keeps = True
        self._answer: Answer | None = None
        self._arrived = False
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpResponseParser(self)

    # --- what its owner does ------------------------------------------------------------------------------------------

    def send(self, request: bytes) -> Answer:
        """Hand a request to the socket, all of it and before this returns; return the answer to wait for.

        Raises: ExchangeError when the connection has been lost.
        """
        if self._transport is None or self._is_closed or self._transport.is_closing():
            raise ExchangeError(f"{self.peer} closed the connection without an answer", unanswered=True)
        self._arrived = False
        answer = self._answer = Answer(self)
        self._transport.write(request)
        return answer

    @property
    def is_idle(self) -> bool:
        """Whether it can carry another exchange: nothing is under way, and both sides mean to keep it."""
        return (
            self._answer is None
            and self._keeps
            and not self._is_closed
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def abort(self) -> None:
        """Close the socket now, without farewell, and drop what has not left yet."""
        if self._socket is not None:
            self._socket.abort()

    def secured(self, transport: asyncio.Transport) -> None:
        """Go on through `transport`, which speaks TLS on the connection there was; after a proxy's answer to CONNECT, afresh."""
        self._transport = transport
        self._answer, self._raw_headers, self._keeps = None, [], True
        self._parser = httptools.HttpResponseParser(self)

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None, "it is connected when its owner gets it"
        return self._transport

    def pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def failed(self, text: str) -> ExchangeError:
        """Give the exchange up, and the connection with it; return the error to raise."""
        error = ExchangeError(text, unanswered=not self._arrived)
        self._keeps = False
        if self._answer is not None:
            self._answer.fail(error)
            self._answer = None
        self.abort()
        return error

    # --- what asyncio tells -------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nothing was asked
            self.abort()
            return
        self._arrived = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.failed(f"the answer of {self.peer} broke off (not HTTP/1.1: {error})")

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        if self._answer is None:
            return
        if exc is None and self._answer.status and not _has_length(self._answer.headers):
            self.on_message_complete()  # an answer without a length ends with its connection
        elif self._arrived:
            self.failed(f"the answer of {self.peer} broke off ({exc or 'the connection was closed'})")
        elif exc is None:
            self.failed(f"{self.peer} closed the connection without an answer")
        else:
            self.failed(f"the connection to {self.peer} failed ({type(exc).__name__}: {exc})")

    # --- what the parser tells ----------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        headers, self._raw_headers = self._raw_headers, []
        status = self._parser.get_status_code()
        if self._answer is not None and status >= 200:  # those below say that the answer will come
            decoded = [(name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in headers]
            self._answer.begin(status, CIMultiDict(decoded))

    def on_body(self, chunk: bytes) -> None:
        if self._answer is not None:
            self._answer.feed(chunk)

    def on_message_complete(self) -> None:
        if self._answer is None:
            self._keeps = False  # a second answer to one request
        elif self._answer.status:
            self._keeps = self._keeps and not self._is_closed and self._parser.should_keep_alive()
            answer, self._answer = self._answer, None
            answer.end()


def _decompress(packed: bytes) -> bytes:
    return zlib.decompress(packed, _GZIP)


def _has_length(headers: CIMultiDict[str]) -> bool:
    return "Content-Length" in headers or "Transfer-Encoding" in headers
