"""Accepts connections for an aiohttp server, within the limits of `connections`.

aiohttp reads HTTP and calls handlers. Each connection has a `_Caller` between its transport and aiohttp's protocol, which sees all bytes
and so knows the state of the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from aiohttp import web
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.metrics.server import ServerMetrics
from ctrlruntime.serving.connections import (
    AT_WORK,
    READING,
    BodyRefusedError,
    Connection,
    Connections,
    ServerLimits,
    State,
)

if TYPE_CHECKING:
    import socket

__all__ = ["HTTP_OPTIONS", "Listener"]

R = TypeVar("R", bound=web.BaseRequest)

MAX_LINE: Final = 8190
"""The maximum bytes of the first line of a request, and of each header; the response to more is 400."""

HTTP_OPTIONS: Final[dict[str, Any]] = {
    "access_log": None,
    "max_line_size": MAX_LINE,
    "max_field_size": MAX_LINE,
    "lingering_time": 2.0,
    "auto_decompress": False,  # what is sent is what is counted
}
"""The options of aiohttp's servers."""

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_SWEEP: Final = 0.5  # seconds between two looks at deadlines
_GOODBYE: Final = 0.3  # seconds connections get to close with TLS's goodbye when the server stops
_QUIET: Final = 10.0  # seconds between two log lines about one limit
_ACCEPTED: Final = 1  # connections accepted in one turn of the loop: a TLS handshake takes a millisecond
_BACKLOG: Final = 1024  # connections the kernel keeps for the turns to come
_TLS_BUFFER: Final = 20 * 1024  # a record of TLS and some more


class Listener:
    """Serves one aiohttp server at one socket.

    `name` is for logs and metrics. Runs once, on the loop that calls `start`.

    Call handlers through `answer`, and read bodies with `read`. A request that is sent before the previous response ends the connection; Go
    clients, browsers and proxies send none.
    """

    def __init__(
        self,
        name: str,
        limits: ServerLimits,
        *,
        metrics: ServerMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._clock = clock
        self.metrics = metrics or ServerMetrics(name)
        self.connections = Connections(limits, self.metrics, clock=clock, on_limit=self._note_limit)
        self._callers: dict[Connection, _Caller] = {}
        self._by_protocol: dict[asyncio.Protocol, _Caller] = {}
        self._server: asyncio.Server | None = None
        self._listening: socket.socket | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._is_stopping = False
        self._unlogged: dict[str, tuple[float, int]] = {}
        self._log = log.get_logger("serving")

    # --- life -------------------------------------------------------------------------------------------------------

    async def start(self, server: web.Server, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept connections for `server` at a listening socket, with TLS if there is a context."""
        loop = asyncio.get_running_loop()

        def made(raw: asyncio.Transport) -> asyncio.BaseProtocol | None:
            connection = self._admit(raw, State.HEADER if tls is None else State.HANDSHAKE)
            if connection is None:
                return None
            caller = self._callers[connection] = _Caller(self, connection, raw, new_protocol)
            return caller if tls is None else _TLS(loop, caller, tls)

        def new_protocol(caller: _Caller) -> web.RequestHandler:
            inner = _Protocol(server, loop=loop, **HTTP_OPTIONS)
            self._by_protocol[inner] = caller
            return inner

        # asyncio accepts as many connections at a time as the backlog has: a thousand would stop the loop for long.
        self._server = await loop.create_server(lambda: _Door(made), sock=listening, backlog=_ACCEPTED)
        listening.listen(_BACKLOG)
        self._listening = listening
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def stop(self, timeout: float) -> None:
        """Accept no more connections, finish running requests for `timeout` seconds, and close all connections. May be called twice.

        aiohttp reads no more of a body once it stops, so call this before its `cleanup`.
        """
        if self._server is None:
            return
        self._is_stopping = True
        # A connection that was accepted in this turn of the loop gets its transport in the next one. If the server is closed before that,
        # asyncio forgets the connection, and the caller waits until the garbage collector closes it.
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening = None
        await asyncio.sleep(0)
        self._server.close()
        for caller in list(self._callers.values()):
            caller.close_if_idle()
        await self._until(lambda: not any(caller.is_busy for caller in self._callers.values()), timeout)
        for caller in list(self._callers.values()):
            caller.close()
        await self._until(lambda: not self._callers, _GOODBYE)
        for caller in list(self._callers.values()):
            caller.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait({self._sweeper})
        await asyncio.sleep(0)  # connections that are aborted say so in the next turn of the loop

    async def _until(self, is_done: Callable[[], bool], timeout: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not is_done():
                    self._changed.clear()
                    await self._changed.wait()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            self.sweep()

    def sweep(self) -> None:
        """Close connections over their time limit."""
        for caller in list(self._callers.values()):
            caller.note_written()
        for connection in self.connections.overdue():
            self._callers[connection].abort()

    def make_room_for(self, body_limit: int) -> None:
        """Raise `body_bytes` if needed, so that a body of this size fits together with its headers."""
        limits = self.connections.limits
        self.connections.limits = replace(limits, body_bytes=max(limits.body_bytes, body_limit + limits.header_bytes))

    # --- requests ---------------------------------------------------------------------------------------------------

    async def answer(self, request: R, handler: Callable[[R], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
        """Return the handler's response to a request.

        If the handler does not call `read`, the connection ends with an unread body.
        """
        caller = self._by_protocol.get(request.protocol)
        if caller is None:  # it was closed before its request got here
            return web.Response(status=503)
        task = asyncio.current_task()
        assert task is not None  # aiohttp has one for each request, which ends when the answer is written
        task.add_done_callback(lambda _: caller.ended())
        if not caller.begins(has_body=request.body_exists):
            return web.Response(status=400, text="send the next request after the answer to this one\n")
        try:
            response = await handler(request)
        except web.HTTPException as error:
            self._finish(caller, error)
            raise
        except BaseException:
            caller.answers(is_last=True)
            raise
        self._finish(caller, response)
        return response

    def _finish(self, caller: _Caller, response: web.StreamResponse) -> None:
        is_last = caller.answers(is_last=self._is_stopping)
        if not response.prepared:
            response.headers["Server"] = "ctrlruntime"  # aiohttp would name versions
            if is_last:
                response.force_close()

    async def read(self, request: web.BaseRequest, limit: int) -> bytes:
        """Return the body of a request.

        Raises: BodyRefusedError if it is larger than `limit` bytes, if the server has no room, or if the caller has disconnected.
        """
        caller = self._by_protocol.get(request.protocol)
        if request.content_length is not None and request.content_length > limit:
            raise _too_large(limit)
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.content.iter_any():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                if caller is None or caller.is_refused:
                    raise BodyRefusedError(
                        503,
                        "the server has too many bytes of pending requests; retry, or raise ServerLimits.body_bytes",
                    )
                parts.append(part)
        except (ConnectionError, web.PayloadAccessError, web.RequestPayloadError) as error:
            # aiohttp keeps the error, and its traceback would keep what was read until the garbage collector comes.
            error.with_traceback(None)
            raise BodyRefusedError(400, f"the connection ended inside the body: {error}") from None
        if caller is not None:
            caller.is_read()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # --- connections ------------------------------------------------------------------------------------------------

    def _admit(self, raw: asyncio.Transport, state: State) -> Connection | None:
        if self._is_stopping:
            return None
        peer = raw.get_extra_info("peername")
        connection, closed = self.connections.admit(str(peer[0]) if peer else "", state)
        if closed is not None:
            self._callers[closed].abort()
        return connection

    def received(self, connection: Connection, size: int) -> bool:
        """Count bytes of a connection; return whether it continues."""
        victim = self.connections.received(connection, size)
        if victim is not None and victim is not connection:
            self.connections.remove(victim)
            self._callers[victim].abort()
        return victim is not connection

    def gone(self, connection: Connection, inner: asyncio.Protocol | None) -> None:
        """Remove a connection that ended."""
        self.connections.remove(connection)
        self._callers.pop(connection, None)
        if inner is not None:
            self._by_protocol.pop(inner, None)
        self.changed()

    def changed(self) -> None:
        """Notify a stop that waits for requests."""
        self._changed.set()

    def _note_limit(self, limit: str, connection: Connection) -> None:
        if limit == State.IDLE.value:
            return
        now = self._clock()
        last, count = self._unlogged.get(limit, (-_QUIET, 0))
        if now - last < _QUIET:
            self._unlogged[limit] = (last, count + 1)
            return
        self._unlogged[limit] = (now, 0)
        self._log.warning(
            "connection closed at a limit",
            server=self._name,
            limit=limit,
            client=connection.client,
            state=connection.state.name.lower(),
            sinceLastLine=count,
        )


class _Door(asyncio.Protocol):
    """Gets the protocol of a new connection from `made`, and closes the connection without one, which is cheap."""

    def __init__(self, made: Callable[[asyncio.Transport], asyncio.BaseProtocol | None]) -> None:
        self._made = made

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raw = cast("asyncio.Transport", transport)
        protocol = self._made(raw)
        if protocol is None:
            raw.abort()
        else:
            raw.set_protocol(protocol)
            protocol.connection_made(raw)


class _Caller(asyncio.Protocol):
    """One connection, between its transport and aiohttp.

    Without TLS it is the outermost protocol; with TLS `_TLS` is.

    It counts as open until its handler has ended, so that a caller that disconnects does not free its memory before.
    """

    def __init__(
        self,
        listener: Listener,
        connection: Connection,
        raw: asyncio.Transport,
        new_protocol: Callable[[_Caller], web.RequestHandler],
    ) -> None:
        self.is_refused = False
        self._listener = listener
        self._connection = connection
        self._raw = raw
        self._new_protocol = new_protocol
        self._inner: web.RequestHandler | None = None  # made when TLS stands: most hostile connections never get there
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self._is_handling = False
        self._is_last = False  # no request is read after this one
        self._is_gone = False

    # From the transport

    def gone(self) -> None:
        """The transport is closed."""
        self._is_gone = True
        if not self._is_handling:
            self._listener.gone(self._connection, self._inner)
            self._inner = self._transport = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._move(State.HEADER)
        self._inner = self._new_protocol(self)
        self._inner.connection_made(transport)

    @override
    def data_received(self, data: bytes) -> None:
        if not self._is_last and not self._count(data):
            self.abort()
        elif self._inner is not None:
            self._inner.data_received(data)

    @override
    def eof_received(self) -> None:
        if self._inner is not None:
            self._inner.eof_received()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        is_outermost = self._transport is self._raw
        if self._inner is not None:
            self._inner.connection_lost(exc)
        if is_outermost:
            self.gone()

    @override
    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    @override
    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def _count(self, data: bytes) -> bool:
        """Take bytes into account; return False when the connection has to end for them."""
        connection = self._connection
        if connection.state is State.ANSWER and not self._unsent:
            self._move(State.IDLE)  # it has the whole answer, and we did not look yet
        if connection.state is State.IDLE:
            self._move(State.HEADER)
        if connection.state is State.HEADER and not self._read_head(connection, data):
            return False
        if connection.state in AT_WORK:
            self._listener.connections.exceeds("pipelining", connection)
            return False
        if self.is_refused or self._listener.received(connection, len(data)):
            return True
        self.is_refused = True
        return connection.state is State.BODY  # then the handler answers that it is refused

    def _read_head(self, connection: Connection, data: bytes) -> bool:
        """Look for the end of the headers; return False when they are too long, or another request came with this one."""
        connections, head = self._listener.connections, self._head
        begin = max(0, len(head) - len(_HEAD_END))
        head += data if head else data.lstrip(b"\r\n")  # empty lines may come before a request (RFC 9112, 2.2)
        end = head.find(_HEAD_END, begin)
        if end >= 0:
            if _is_followed(head, end):
                connections.exceeds("pipelining", connection)
                return False
            head.clear()
            self._move(State.BODY)
        elif len(head) > connections.limits.header_bytes:
            connections.exceeds("header_bytes", connection)
            return False
        return True

    # From the requests

    def begins(self, *, has_body: bool) -> bool:
        """A handler is about to be called; return False if its request came together with the previous one."""
        connection = self._connection
        if connection.state not in READING:
            self._listener.connections.exceeds("pipelining", connection)
            self.abort()
            return False
        self._is_handling = True
        self._move(State.BODY if has_body else State.HANDLER)
        return True

    def is_read(self) -> None:
        """The body is read; the handler continues."""
        self._move(State.HANDLER)

    def answers(self, *, is_last: bool) -> bool:
        """The handler returned.

        Return whether the connection must end, because of `is_last` or an unread body.
        """
        self._is_last = is_last or self._connection.state is State.BODY
        self._move(State.ANSWER)
        return self._is_last

    def ended(self) -> None:
        """The response was passed to the transport."""
        self._is_handling = False
        if self._is_gone:
            self.gone()
        self.note_written()
        self._listener.changed()

    def note_written(self) -> None:
        """Record when the caller has received the whole response."""
        connection = self._connection
        if connection.state is not State.ANSWER or self._is_handling or self._is_last:
            return
        if self._is_closing or self._unsent:
            return
        self._move(State.IDLE)

    # What it is

    @property
    def is_busy(self) -> bool:
        """Whether a request is running."""
        if self._is_handling or self._is_closing:
            return self._is_handling
        return self._connection.state in {State.BODY, State.ANSWER} or bool(self._head)

    @property
    def _is_closing(self) -> bool:
        return self._transport is None or self._transport.is_closing()

    @property
    def _unsent(self) -> int:
        above = self._transport if self._transport is not self._raw else None
        return self._raw.get_write_buffer_size() + (0 if above is None else above.get_write_buffer_size())

    def _move(self, state: State) -> None:
        self._listener.connections.move(self._connection, state)

    def close_if_idle(self) -> None:
        if not self.is_busy:
            self.close()

    def close(self) -> None:
        """Close the connection with a TLS close."""
        if self._transport is not None:
            self._transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._raw.abort()


class _TLS(SSLProtocol):
    """TLS for one connection. asyncio's own TLS (`create_server(ssl=…)`) needs 256 KiB for each, and counts no handshakes."""

    max_size = _TLS_BUFFER

    def __init__(self, loop: asyncio.AbstractEventLoop, caller: _Caller, context: ssl.SSLContext) -> None:
        super().__init__(loop, caller, context, cast("asyncio.Future[Any]", None), server_side=True)
        self._caller = caller

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        asyncio.get_running_loop().call_soon(
            self._caller.gone
        )  # after the protocol above, which is told in the next turn


class _Protocol(web.RequestHandler):
    """aiohttp's protocol without version headers and without log lines about invalid HTTP."""

    __slots__ = ()

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= 500:
            response = super().handle_error(request, status, exc, message)
        else:
            response = web.Response(status=status, text=f"{message or 'bad request'}\n")
            response.force_close()
        response.headers["Server"] = "ctrlruntime"
        return response


def _is_followed(data: bytearray, end: int) -> bool:
    """Say whether more came than a request whose headers are over at `end`: it costs less than to have all of it parsed."""
    length = _LENGTH.search(data, 0, end + 2)
    if length is None and _CHUNKED.search(data, 0, end + 2):
        return False
    return len(data) - end - len(_HEAD_END) > (0 if length is None else int(length[1]))


def _too_large(limit: int) -> BodyRefusedError:
    return BodyRefusedError(413, f"the body is larger than {limit} bytes")
