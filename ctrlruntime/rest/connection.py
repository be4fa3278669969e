"""One HTTP/1.1 connection: sends a request, and receives its response as a whole or in parts.

It handles bytes, their framing (read by httptools) and their encryption (by a session), but no addresses and no Kubernetes. A connection
carries one exchange at a time. A failed exchange is an ExchangeError, whose text continues a caller's "GET /path: ".
"""

from __future__ import annotations

import asyncio
import os
import ssl
import zlib
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import cast

import httptools
from typing_extensions import override

from ctrlruntime.rest.limits import DEFAULT_ANSWER_LIMITS, AnswerLimits
from ctrlruntime.rest.session import SessionClosed, TLSSession

READ_BUFFER = 1024 * 1024
"""Bytes of a response stored for a slow reader before the socket is paused; a response that is read whole is stored whole."""

RECEIVED_AT_ONCE = 256 * 1024
"""Bytes that one call reads from a socket.

A separate buffer for each call would cost more than the call.
"""

_GZIP = 16 + zlib.MAX_WBITS
_PACKED_STEP = 32 * 1024
_UNPACKED_STEP = 512 * 1024
"""The maximum bytes of one decompression step: a few milliseconds, then the event loop runs other tasks."""

_SWITCHING = 101
"""The status of a response after which the connection carries another protocol (RFC 9110, section 15.2.2)."""

_IS_PACKED = {"": False, "identity": False, "gzip": True, "x-gzip": True}
"""Content encodings (RFC 9110, section 8.4.1: case does not matter, and x-gzip is gzip)."""


class ExchangeError(Exception):
    """A request got no response, or an incomplete one. `unanswered`: no byte arrived."""

    def __init__(self, text: str, *, unanswered: bool = False) -> None:
        super().__init__(text)
        self.unanswered = unanswered


class OversizeError(ExchangeError):
    """A response is larger than its limit; the text has the limit and the option that raises it."""


class _Stage(IntEnum):
    """The progress of a response, and the progress that a reader waits for."""

    SENT = 0
    BEGUN = 1
    SOME = 2
    COMPLETE = 3


class Headers:
    """The headers of a response as they arrived: names in any case, possibly repeated.

    They are decoded on access, because few are read.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._pairs = pairs

    def all(self, name: str) -> list[str]:
        """Return the values of each header of this name, in order."""
        wanted = name.lower().encode("latin-1")
        return [value.decode("utf-8", "surrogateescape") for found, value in self._pairs if found.lower() == wanted]

    def get(self, name: str) -> str | None:
        """Return the first value of this name, or None."""
        return next(iter(self.all(name)), None)

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))


class _Unpacker:
    """Decompresses gzip incrementally: a series of members (RFC 1952, section 2.2)."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield the data that `packed` adds, in steps; a step may add nothing.

        Raises: zlib.error.
        """
        view = memoryview(packed)
        for at in range(0, len(view), _PACKED_STEP):
            left: bytes | memoryview = view[at : at + _PACKED_STEP]
            has_more = True
            while has_more:
                member = self._member or zlib.decompressobj(_GZIP)
                out = member.decompress(left, _UNPACKED_STEP)
                if member.eof:
                    self._member, left = None, member.unused_data
                    has_more = bool(left)
                else:
                    # After a full step there may be more to come of input that is used up.
                    self._member, left = member, member.unconsumed_tail
                    has_more = bool(left) or len(out) == _UNPACKED_STEP
                yield out

    def finish(self) -> None:
        """Check the end. Raises: zlib.error if the input ended inside a member."""
        if self._member is not None:
            raise zlib.error("it is truncated")


class Answer:
    """A response in progress. Read it in one task only, with `whole` or with `read`."""

    def __init__(self, connection: Connection) -> None:
        self.status = 0
        self.headers = Headers()
        self._connection = connection
        self._parts: list[bytes] = []
        self._held = 0
        self._room = min(READ_BUFFER, connection.limits.body)
        """Bytes that may be held without a look at the limits."""

        self._stage = _Stage.SENT
        self._wanted = _Stage.COMPLETE
        self._waiter: asyncio.Future[None] | None = None
        self._error: ExchangeError | None = None
        self._unpacker: _Unpacker | None = None
        self._unpacking: Iterator[bytes] | None = None

    @property
    def complete(self) -> bool:
        return self._stage is _Stage.COMPLETE

    async def begun(self) -> None:
        """Wait for status and headers. Raises: ExchangeError."""
        await self._reach(_Stage.BEGUN)

    async def whole(self) -> bytes:
        """Return the decompressed body.

        Raises: ExchangeError; OversizeError for one over the limit, compressed or decompressed.
        """
        self._wanted = _Stage.COMPLETE
        if self._held > self._room:
            self._outgrown()
        await self._reach(_Stage.COMPLETE)
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        return await self._unpacked(self._unpacker, body) if body and self._unpacker is not None else body

    async def read(self) -> bytes:
        """Return new data, at least a byte, or nothing after the end. Raises: ExchangeError.

        A compressed response is returned in steps: each has a limit, the response has none.
        """
        while True:
            while self._unpacking is not None:
                await asyncio.sleep(0)  # others have their turn between two steps
                piece = self._next_piece(self._unpacking)
                if piece:
                    return piece
                if piece is None:
                    self._unpacking = None
            chunk = await self._chunk()
            if self._unpacker is None:
                return chunk
            if not chunk:
                self._finish(self._unpacker)
                return b""
            self._unpacking = self._unpacker.feed(chunk)

    async def _chunk(self) -> bytes:
        if not self._parts:
            await self._reach(_Stage.SOME)
        chunk = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        self._connection.resume()
        if self._stage is not _Stage.COMPLETE:
            self._stage = _Stage.BEGUN
        return chunk

    async def _unpacked(self, unpacker: _Unpacker, packed: bytes) -> bytes:
        pieces: list[bytes] = []
        size = 0
        steps = unpacker.feed(packed)
        while (piece := self._next_piece(steps)) is not None:
            if pieces:
                await asyncio.sleep(0)
            pieces.append(piece)
            size += len(piece)
            if size > self._connection.limits.body:
                raise self._oversize("decompresses to more than")
        self._finish(unpacker)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _next_piece(self, steps: Iterator[bytes]) -> bytes | None:
        try:
            return next(steps, None)
        except zlib.error as error:
            raise self._damaged(error) from error

    def _finish(self, unpacker: _Unpacker) -> None:
        try:
            unpacker.finish()
        except zlib.error as error:
            raise self._damaged(error) from error

    def _damaged(self, error: zlib.error) -> ExchangeError:
        return self._connection.failed(f"the answer of {self._connection.peer} cannot be unpacked ({error})")

    def _outgrown(self) -> None:
        """Deal with an answer that holds more than its room: a reader is to take it first; a whole one has a limit."""
        if self._wanted is not _Stage.COMPLETE:
            self._connection.pause()
            return
        limit = self._room = self._connection.limits.body
        announced = self.headers.get("Content-Length") or ""
        if self._held > limit or (announced.isdecimal() and int(announced) > limit):
            self.fail(self._oversize("has more than"))

    def _oversize(self, what: str) -> ExchangeError:
        self._parts.clear()
        return self._connection.failed(
            f"the answer of {self._connection.peer} {what} {self._connection.limits.body} bytes. "
            "Ask for less at once, such as smaller pages, or raise Config.max_answer_size",
            kind=OversizeError,
        )

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

    def begin(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers
        coding = ",".join(headers.all("Content-Encoding")).strip().lower()
        is_packed = _IS_PACKED.get(coding)
        if is_packed is None:
            self._connection.failed(
                f"the answer of {self._connection.peer} is packed as {coding[:40]!r}, which was not asked for; "
                "does something between change answers?"
            )
            return
        if is_packed:
            self._unpacker = _Unpacker()
        self._advance(_Stage.BEGUN)

    def feed(self, chunk: bytes) -> None:
        self._parts.append(chunk)
        self._held += len(chunk)
        if self._held > self._room:
            self._outgrown()
        if self._wanted is not _Stage.COMPLETE:
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


class Connection(asyncio.BufferedProtocol):
    """A connection to `peer`, its name in errors. It belongs to one event loop.

    Data is received into `buffer`. All connections of a loop may share it, because its content is processed before the loop continues.
    """

    def __init__(
        self, peer: str, *, buffer: memoryview | None = None, limits: AnswerLimits = DEFAULT_ANSWER_LIMITS
    ) -> None:
        self.peer = peer
        self.limits = limits
        self._buffer = buffer or new_buffer()
        self.generation = 0
        """For the pool, as the three below: the number of `distrust` calls before this connection was opened."""

        self.context: ssl.SSLContext | None = None
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._file = -1
        self._sessions: list[TLSSession] = []
        """TLS as it lies on the connection: the first is the one next to the socket (a proxy's), the last the one next to us."""

        self._handshake: asyncio.Future[None] | None = None
        self._has_farewell = False
        self._is_whole = True
        """Whether the end of the connection is intended: TLS shows it, and without TLS it is unknown (RFC 8446, section 6.1)."""

        self._is_closed = False
        self._is_paused = False
        self._keeps = True
        self._answer: Answer | None = None
        self._arrived = False
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._came: list[bytes] = []
        """What the bytes that are being parsed have of a body."""

        self._is_head = True
        self._is_switch_requested = False
        self._is_switched = False
        self._framing = 0
        """Bytes of headers, or of whatever else is not a body, since the last that were of one."""

        self._parser: httptools.HttpResponseParser | _NoParser = httptools.HttpResponseParser(self)

    # --- what its owner does ------------------------------------------------------------------------------------------

    def send(self, request: bytes, *, permit: Callable[[], object] | None = None) -> Answer:
        """Pass a whole request to the socket before this returns.

        Return the response to wait for.

        `permit` is called when only the write to the socket remains. If it raises, nothing has been sent. Raises: ExchangeError if the
        connection is lost.
        """
        if self._transport is None or self._is_closed or self._transport.is_closing():
            raise ExchangeError(f"{self.peer} closed the connection without a response", unanswered=True)
        transport, file = self._transport, self._file
        try:
            for session in reversed(self._sessions):
                request = session.encrypt(request)
        except ssl.SSLError as error:
            raise self.failed(f"the connection to {self.peer} failed ({error})") from error
        has_room = file >= 0 and not transport.get_write_buffer_size()
        self._arrived, self._is_head, self._framing = False, True, 0
        self._is_switch_requested = False
        answer = self._answer = Answer(self)
        sent = 0
        # A process that is frozen between the permit and the write writes when it wakes up: nothing else belongs between them.
        try:
            if permit is not None:
                permit()
        except BaseException:
            self._answer = None
            if self._sessions:  # what was encrypted and is not sent is missing in the session
                self.abort()
            raise
        if has_room:
            try:
                sent = os.write(file, request)
            except OSError:  # no room, and the transport waits for it; or lost, and it finds out
                sent = 0
        if sent < len(request):
            transport.write(request[sent:])
        return answer

    def switch(self, request: bytes) -> Answer:
        """Send a request for another protocol, and return the response to wait for.

        If its status is 101, `read` of the response returns the data of that protocol, and `write` sends more. Raises: ExchangeError if the
        connection is lost.
        """
        answer = self.send(request)
        self._is_switch_requested = True
        return answer

    def write(self, data: bytes) -> None:
        """Send data of the protocol that was switched to; it is kept until the socket takes it.

        Raises: ExchangeError if the connection is lost.
        """
        if self._transport is None or self._is_closed or self._transport.is_closing():
            raise ExchangeError(f"{self.peer} closed the connection")
        try:
            for session in reversed(self._sessions):
                data = session.encrypt(data)
        except ssl.SSLError as error:
            raise self.failed(f"the connection to {self.peer} failed ({error})") from error
        self._transport.write(data)

    @property
    def is_idle(self) -> bool:
        """Whether it can carry another exchange: none is running, and both sides keep the connection."""
        return (
            self._answer is None
            and self._keeps
            and not self._is_closed
            and self._transport is not None
            and not self._transport.is_closing()
        )

    def abort(self) -> None:
        """Close the socket now, without a TLS close, and drop unsent data."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def session(self) -> TLSSession | None:
        """The TLS session with the server."""
        return self._sessions[-1] if self._sessions else None

    async def secure(self, context: ssl.SSLContext, server_hostname: str, ticket: ssl.SSLSession | None = None) -> None:
        """Start TLS, with a ticket of an earlier session. After a proxy's response to CONNECT, start it again inside the existing TLS.

        Raises: ssl.SSLError, ExchangeError if the connection is closed instead.
        """
        session = TLSSession(context, server_hostname, ticket)
        self._sessions.append(session)
        self._answer, self._raw_headers, self._keeps, self._is_whole = None, [], True, False
        self._parser = httptools.HttpResponseParser(self)
        self._handshake = asyncio.get_running_loop().create_future()
        try:
            self._shake(session, b"")
            await self._handshake
        finally:
            self._handshake = None

    def pause(self) -> None:
        if not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def failed(self, text: str, *, kind: type[ExchangeError] = ExchangeError) -> ExchangeError:
        """Abort the exchange and the connection, and return the error to raise."""
        error = kind(text, unanswered=not self._arrived)
        self._keeps = False
        if self._answer is not None:
            self._answer.fail(error)
            self._answer = None
        self.abort()
        return error

    # --- what asyncio tells -------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # Requests go to the socket itself: a transport may keep them until the loop's next round, as uvloop's does.
        socket = transport.get_extra_info("socket")
        self._file = -1 if socket is None or os.name != "posix" else socket.fileno()

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self.received(self._buffer[:nbytes])

    def received(self, data: bytes | memoryview) -> None:
        try:
            for session in self._sessions:
                if self._handshake is not None and session is self._sessions[-1]:
                    self._shake(session, data)
                    return
                data = self._decrypted(session, data)
        except ssl.SSLError as error:
            self.failed(f"the answer of {self.peer} broke off ({error})")
            return
        if data:
            self._feed(data)
        if self._has_farewell and not self._is_closed:
            self.connection_lost(None)
            self.abort()

    def _feed(self, data: bytes | memoryview) -> None:
        if self._answer is None:  # nothing was asked
            self.abort()
            return
        self._arrived = True
        room = self.limits.head - self._framing
        try:
            if self._is_head and len(data) > room:
                self._parse(data[:room])
                data = data[room:]
                if self._is_head:
                    self._oversize_framing()
                    return
            self._parse(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.failed(f"the answer of {self.peer} broke off (not HTTP/1.1: {error})")
        else:
            if self._framing > self.limits.head:
                self._oversize_framing()

    def _parse(self, data: bytes | memoryview) -> None:
        self._framing += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as end:
            if not self._is_switched:
                raise
            self._parser = _NoParser(self)
            if rest := data[end.args[0] :]:
                self._parser.feed_data(rest)
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give the answer what has come of its body: at once, for a part of its own for each small chunk would cost more than the chunk."""
        if self._came:
            chunk = self._came[0] if len(self._came) == 1 else b"".join(self._came)
            self._came.clear()
            self._framing = 0
            if self._answer is not None:
                self._answer.feed(chunk)

    def _oversize_framing(self) -> None:
        self.failed(
            f"the answer of {self.peer} has more than {self.limits.head} bytes of headers. "
            "If they are meant, raise Config.max_header_size",
            kind=OversizeError,
        )

    def _decrypted(self, session: TLSSession, data: bytes | memoryview) -> bytes:
        try:
            plain = session.decrypt(data)
        except SessionClosed as closed:
            plain, self._has_farewell = closed.plain, True
            self._is_whole = session is self._sessions[-1]  # a proxy's farewell is not the server's
        self._write_below(session, session.farewell())
        return plain

    def _shake(self, session: TLSSession, came: bytes | memoryview) -> None:
        handshake = self._handshake
        assert handshake is not None
        try:
            is_done, out = session.shake(came)
            self._write_below(session, out)
            # What comes with the end of a handshake is for TLS itself, tickets for example: we have asked for nothing yet.
            if is_done and self._decrypted(session, b""):
                self.abort()
        except ssl.SSLError as error:
            self._write_below(session, session.farewell())
            if not handshake.done():
                handshake.set_exception(error)
            return
        if is_done and not handshake.done():
            handshake.set_result(None)

    def _write_below(self, session: TLSSession, data: bytes) -> None:
        """Send what a session itself has to say."""
        if not data or self._transport is None:
            return
        for below in reversed(self._sessions[: self._sessions.index(session)]):
            data = below.encrypt(data)
        self._transport.write(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        if self._handshake is not None and not self._handshake.done():
            self._handshake.set_exception(ExchangeError(f"the connection was closed{f' ({exc})' if exc else ''}"))
        if self._answer is None:
            return
        has_end = bool(self._answer.status) and not _has_length(self._answer.headers)
        if has_end and exc is None and self._is_whole:
            self.on_message_complete()  # an answer without a length ends with its connection
        elif has_end and exc is None:
            self.failed(
                f"the answer of {self.peer} broke off (it has no length, and the connection was closed without TLS's farewell)"
            )
        elif self._arrived:
            self.failed(f"the answer of {self.peer} broke off ({exc or 'the connection was closed'})")
        elif exc is None:
            self.failed(f"{self.peer} closed the connection without a response")
        else:
            self.failed(f"the connection to {self.peer} failed ({type(exc).__name__}: {exc})")

    # --- what the parser tells ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._raw_headers = []
        if self._answer is None:
            self._keeps = False  # it goes on after the answer: what that is nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        self._raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        headers, self._raw_headers = self._raw_headers, []
        status = self._parser.get_status_code()
        self._is_switched = status == _SWITCHING and self._is_switch_requested
        if self._answer is not None and (status >= 200 or self._is_switched):  # others say that the answer will come
            self._is_head, self._framing = False, 0
            self._answer.begin(status, Headers(headers))

    def on_body(self, chunk: bytes) -> None:
        self._came.append(chunk)

    def on_message_complete(self) -> None:
        self._hand_over()
        # The parser's message is the headers; ours ends with the connection.
        if self._is_switched and not self._is_closed:
            return
        if self._answer is not None and self._answer.status:
            self._keeps = self._keeps and not self._is_closed and self._parser.should_keep_alive()
            answer, self._answer = self._answer, None
            answer.end()


class _NoParser:
    """Stands for the parser after a switch of protocols: everything is data."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def feed_data(self, data: bytes | memoryview) -> None:
        self._connection.on_body(bytes(data))

    def should_keep_alive(self) -> bool:
        return False

    def get_status_code(self) -> int:
        return _SWITCHING


def new_buffer() -> memoryview:
    return memoryview(bytearray(RECEIVED_AT_ONCE))


def _has_length(headers: Headers) -> bool:
    return "Content-Length" in headers or "Transfer-Encoding" in headers
