"""The streams between a client and a command, as WebSocket channels or as SPDY streams.

Numbers and names are the kubelet's (k8s.io/apimachinery's pkg/util/remotecommand). Each message of a WebSocket begins with the number of its
channel; each stream of SPDY has its name in the header `streamType`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from typing import Final, TypeVar

from aiohttp import WSMsgType, web
from typing_extensions import override

from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.spdy import Kind
from ctrlruntime.apiserver.http.upgrades import SpdyConnection, Upgraded, asks_for_spdy, negotiate
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.trees import Document

_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_NAMES: Final = {_STDIN: "stdin", _STDOUT: "stdout", _STDERR: "stderr", _ERROR: "error"}
_OLDER: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_PROTOCOLS: Final = ("v5.channel.k8s.io", *_OLDER)
_WITH_STATUS: Final = frozenset({"v5.channel.k8s.io", "v4.channel.k8s.io"})
_WITH_RESIZE: Final = frozenset({"v4.channel.k8s.io", "v3.channel.k8s.io"})
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes. One message of standard input waits for the command to read it; then the connection waits."""
_CREATION: Final = 30.0
"""Seconds that a client has to open its streams, as a kubelet gives."""
_GOODBYE: Final = 1.0
"""Seconds that a client has to close; a connection that is closed with unread input could lose what was sent last."""
_T = TypeVar("_T")


class Session(ABC):
    """One connection: the streams that the client asked for."""

    def __init__(self, call: Call, protocol: str, *, reads_input: bool) -> None:
        """Input is dropped if nothing reads it: a simulated container that is attached to."""
        self._asked = {name for name in ("stdin", "stdout", "stderr", "tty") if call.asks(name)}
        self._takes_input = reads_input and "stdin" in self._asked
        self._protocol = protocol
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._gone = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to read. Raises: ConnectionResetError when the client does not open what it asked for."""
        self._reader = asyncio.create_task(self._read())

    async def write(self, data: bytes) -> None:
        """Send standard output."""
        if data and "stdout" in self._asked:
            await self._send(_STDOUT, data)

    async def write_error(self, data: bytes) -> None:
        """Send standard error; on a terminal it is standard output."""
        if "tty" in self._asked:
            await self.write(data)
        elif data and "stderr" in self._asked:
            await self._send(_STDERR, data)

    async def stdin(self) -> AsyncIterator[bytes]:
        """Yield standard input until the client closes it."""
        while "stdin" in self._asked:
            data = await self._input.get()
            if data is None:
                return
            yield data

    async def end(self, status: Document) -> None:
        """Say how it ended: as a Status, or for older clients as the message of a failure."""
        if self._protocol in _WITH_STATUS:
            await self._send(_ERROR, json.dumps(status).encode())
        elif "message" in status:
            await self._send(_ERROR, str(status["message"]).encode())
        await self._finish()

    async def unless_gone(self, work: Coroutine[None, None, _T]) -> _T:
        """Return the result of the work; it is cancelled when the client goes. Raises: ConnectionResetError then."""
        running, gone = asyncio.create_task(work), asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait((running, gone), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise ConnectionResetError
            return running.result()
        finally:
            gone.cancel()
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        """Take what the client sends until it goes; sizes of the terminal are of no use here."""
        try:
            async for data in self._received():
                if data is None or self._takes_input:
                    await self._input.put(data)
        finally:
            self._gone.set()

    @property
    @abstractmethod
    def response(self) -> web.StreamResponse:
        """The response of the request."""

    @abstractmethod
    def _received(self) -> AsyncIterator[bytes | None]:
        """Yield standard input, and None where the client closes it."""

    @abstractmethod
    async def _send(self, channel: int, data: bytes) -> None: ...

    @abstractmethod
    async def _finish(self) -> None: ...


class _WebSocketSession(Session):
    def __init__(self, socket: web.WebSocketResponse, call: Call, *, reads_input: bool) -> None:
        super().__init__(call, socket.ws_protocol or _PROTOCOLS[-1], reads_input=reads_input)
        self._socket = socket

    @property
    @override
    def response(self) -> web.StreamResponse:
        return self._socket

    @override
    async def _received(self) -> AsyncIterator[bytes | None]:
        async for message in self._socket:
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT) or not message.data:
                continue
            received = message.data.encode() if message.type is WSMsgType.TEXT else message.data
            channel, data = received[0], received[1:]
            if channel == _STDIN and data:
                yield data
            elif channel == _CLOSE and data[:1] == bytes((_STDIN,)):  # of v5: no more of a channel
                yield None

    @override
    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + data)

    @override
    async def _finish(self) -> None:
        await self._socket.close()


class _SpdySession(Session):
    def __init__(self, upgraded: Upgraded, call: Call, protocol: str, *, reads_input: bool) -> None:
        super().__init__(call, protocol, reads_input=reads_input)
        self._upgraded = upgraded
        self._connection = SpdyConnection(upgraded)
        is_terminal = "tty" in self._asked
        names = {"error", *self._asked} - ({"tty", "stderr"} if is_terminal else set())
        self._missing = names | ({"resize"} if is_terminal and protocol in _WITH_RESIZE else set())
        self._streams: dict[str, int] = {}
        self._are_open = asyncio.Event()

    @property
    @override
    def response(self) -> web.StreamResponse:
        return self._upgraded.response

    @override
    async def open(self) -> None:
        await super().open()
        with contextlib.suppress(TimeoutError):
            await self.unless_gone(asyncio.wait_for(self._are_open.wait(), _CREATION))
            return
        raise ConnectionResetError("the client did not open its streams in time")

    @override
    async def _received(self) -> AsyncIterator[bytes | None]:
        async for frame in self._connection.frames():
            if frame.kind is Kind.SYN_STREAM:
                await self._accept(frame.stream, frame.headers.get("streamtype", ""))
            elif frame.kind is Kind.DATA and frame.stream == self._streams.get("stdin"):
                if frame.data:
                    yield frame.data
                if frame.is_last:
                    yield None

    async def _accept(self, stream: int, name: str) -> None:
        if name not in self._missing:
            await self._connection.reset(stream)
            return
        self._missing.remove(name)
        self._streams[name] = stream
        await self._connection.accept(stream)
        if not self._missing:
            self._are_open.set()

    @override
    async def _send(self, channel: int, data: bytes) -> None:
        await self._connection.write(self._streams[_NAMES[channel]], data)

    @override
    async def _finish(self) -> None:
        for stream in self._streams.values():
            await self._connection.finish(stream)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), _GOODBYE)


async def start_session(request: web.BaseRequest, call: Call, *, reads_input: bool) -> Session | web.Response:
    """Return the streams of a request that upgrades its connection, or the refusal. Raises: BadRequest for another request."""
    if asks_for_spdy(request.headers):
        protocol = negotiate(request, _OLDER)
        if isinstance(protocol, web.Response):
            return protocol
        upgraded = Upgraded(request, protocol)
        await upgraded.prepare()
        return _SpdySession(upgraded, call, protocol, reads_input=reads_input)
    socket = web.WebSocketResponse(protocols=_PROTOCOLS, max_msg_size=_LARGEST_MESSAGE)
    if not socket.can_prepare(request).ok:
        raise BadRequest("Upgrade request required")
    await socket.prepare(request)
    return _WebSocketSession(socket, call, reads_input=reads_input)


__all__ = ["Session", "start_session"]
