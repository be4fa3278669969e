"""Bounds of a server on real sockets: deadlines, sizes, room for others, and a stop that finishes what is under way.

The test moves the clock and calls `sweep`; nothing waits for a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from ctrlruntime.certificates import make_authority
from ctrlruntime.certwatcher import ShownCertificate
from ctrlruntime.metrics import Metrics
from ctrlruntime.serving.connections import BodyRefusedError, ServerLimits
from ctrlruntime.serving.listener import Listener
from ctrlruntime.serving.server import Address, HTTPServer
from ctrlruntime.testing import eventually

LIMITS = ServerLimits(connections=3, connections_per_client=3, header_bytes=2000, body_bytes=40_000)
SIZES = {"/several": 60_000, "/large": 50_000_000}
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass
class Served:
    """A server whose handler reads the body, counts it, and waits when the path is /slow."""

    tls: bool = False
    limits: ServerLimits = LIMITS
    now: float = 0.0
    begun: list[web.BaseRequest] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.listener = Listener("test", self.limits, clock=lambda: self.now)
        self.port = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.begun.append(request)
        try:
            body = await self.listener.read(request, 30_000)
        except BodyRefusedError as error:
            return web.Response(status=error.status, text=str(error))
        if request.path == "/slow":
            await self.may_end.wait()
        if request.path in SIZES:
            return web.Response(body=b"x" * SIZES[request.path])
        return web.Response(text=f"{len(body)} bytes")

    @contextlib.asynccontextmanager
    async def running(self, listening: socket.socket | None = None) -> AsyncIterator[Served]:
        runner = web.ServerRunner(
            web.Server(lambda request: self.listener.answer(request, self.handle)), shutdown_timeout=0.1
        )
        await runner.setup()
        assert runner.server is not None
        listening = listening or socket.create_server(("127.0.0.1", 0))
        for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            listening.setsockopt(socket.SOL_SOCKET, buffer, 4096)
        self.port = listening.getsockname()[1]
        shown = ShownCertificate()
        shown.show(make_authority("test").server(["127.0.0.1"]))
        await self.listener.start(runner.server, listening, shown.context() if self.tls else None)
        try:
            yield self
        finally:
            for caller in self.callers:
                caller.writer.transport.abort()
            await self.listener.stop(0.1)
            await runner.cleanup()

    async def connect(self) -> Caller:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        caller = Caller(*await asyncio.open_connection("127.0.0.1", self.port, ssl=context if self.tls else None))
        self.callers.append(caller)
        return caller

    async def has(self, connections: int) -> None:
        await eventually(lambda: len(self.listener.connections) == connections)

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.listener.sweep()

    @property
    def limited(self) -> dict[str, int]:
        return self.listener.metrics.limited


@dataclass
class Caller:
    """A client that writes what it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        """The next answer, head and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + await self.reader.readexactly(length)

    async def is_closed(self) -> bool:
        """Wait for the end of the connection."""
        with contextlib.suppress(ConnectionError):
            await self.reader.read()
        self.writer.close()
        return True


def post(path: str = "/", length: int = 4, body: bytes = b"body") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode() + body


Doing = Callable[[Served, Caller], object]


async def silence(served: Served, caller: Caller) -> None:
    """Connected, and nothing more."""


async def half_a_head(served: Served, caller: Caller) -> None:
    caller.send(GET[:10])


async def half_a_body(served: Served, caller: Caller) -> None:
    caller.send(post(length=10))
    await eventually(lambda: served.begun)


async def one_request(served: Served, caller: Caller) -> None:
    caller.send(post())
    assert (await caller.answer()).endswith(b"4 bytes")


async def no_ear(served: Served, caller: Caller) -> None:
    caller.writer.transport.pause_reading()
    caller.send(post("/large"))
    await eventually(lambda: served.begun)


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("does", "limit", "seconds"),
    [
        (silence, "header_timeout", 10),
        (half_a_head, "header_timeout", 10),
        (half_a_body, "body_timeout", 30),
        (one_request, "idle_timeout", 180),
        (no_ear, "write_timeout", 10),
    ],
)
async def test_a_caller_that_stops_is_closed_after_its_time(does, limit, seconds, tls):
    async with Served(tls=tls).running() as served:
        caller = await served.connect()
        await served.has(1)
        await does(served, caller)
        connection = next(iter(served.listener.connections))
        await eventually(lambda: connection.state.value == limit)
        served.later(seconds - 0.1)
        assert len(served.listener.connections) == 1

        served.later(0.2)

        await served.has(0)
        assert served.limited == {limit: 1}
        caller.writer.transport.resume_reading()
        assert await caller.is_closed()


async def test_a_handshake_that_is_not_finished_is_closed_after_its_time():
    async with Served(tls=True).running() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        await served.has(1)

        served.later(10)

        assert await reader.read() == b""
        assert served.limited == {"tls_timeout": 1}
        writer.close()


async def test_a_handler_may_take_its_time():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(post("/slow"))
        await eventually(lambda: served.begun)
        await eventually(lambda: next(iter(served.listener.connections)).state.name == "HANDLER")
        served.later(10_000)
        served.may_end.set()

        assert (await caller.answer()).endswith(b"4 bytes")


async def test_long_headers_end_the_connection():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 100) for n in range(30)))

        assert await caller.is_closed()
        assert served.limited == {"header_bytes": 1}


async def test_empty_lines_before_a_request_do_not_hide_its_headers():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(b"\r\n\r\n")
        caller.send(b"\r\nGET / HTTP/1.1\r\n" + b"X: " + b"x" * 3000)

        assert await caller.is_closed()
        assert served.limited == {"header_bytes": 1}


async def test_a_body_above_the_handlers_limit_is_answered_and_the_connection_ends():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(post(length=30_001, body=b"x" * 1000))

        answer = await caller.answer()
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert await caller.is_closed()


async def test_the_oldest_unfinished_body_ends_for_a_new_one():
    async with Served().running() as served:
        old, new = await served.connect(), await served.connect()
        old.send(post(length=25_001, body=b"x" * 25_000))
        await eventually(lambda: served.listener.connections.held > 25_000)
        served.now += 1
        new.send(post(length=25_000, body=b"x" * 25_000))

        assert (await new.answer()).endswith(b"25000 bytes")
        assert await old.is_closed()
        assert served.limited == {"body_bytes": 1}


async def test_a_body_that_has_no_room_beside_those_in_work_is_told_so():
    async with Served().running() as served:
        at_work, new = await served.connect(), await served.connect()
        at_work.send(post("/slow", length=25_000, body=b"x" * 25_000))
        await eventually(lambda: any(one.state.name == "HANDLER" for one in served.listener.connections))
        new.send(post(length=25_000, body=b"x" * 25_000))

        answer = await new.answer()
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"raise ServerLimits.body_bytes" in answer
        served.may_end.set()
        assert (await at_work.answer()).endswith(b"25000 bytes")
        assert served.listener.connections.held == 0


async def test_a_request_before_the_answer_to_another_ends_the_connection():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(post("/slow"))
        await eventually(lambda: served.begun)
        caller.send(post())

        assert await caller.is_closed()
        assert served.limited == {"pipelining": 1}
        served.may_end.set()
        assert len(served.begun) == 1


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_the_next_request_may_come_right_after_a_large_answer(tls):
    async with Served(tls=tls).running() as served:
        caller = await served.connect()
        for _ in range(20):
            caller.send(post("/several"))  # more than the sockets hold: the handler ends before all of it is sent
            assert len(await caller.answer()) > 60_000

        assert served.limited == {}


@pytest.mark.parametrize("first", [post(), GET, post().replace(b"Content-Length: 4", b"content-length:4  ")])
async def test_two_requests_at_once_are_not_even_read(first):
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(first + post())

        assert await caller.is_closed()
        assert served.limited == {"pipelining": 1}
        assert served.begun == []


async def test_a_second_request_behind_a_body_in_chunks_is_not_answered():
    chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(chunked)
        assert (await caller.answer()).endswith(b"4 bytes")
        caller.send(chunked + post())

        assert (await caller.answer()).endswith(b"4 bytes")
        assert await caller.is_closed()
        assert served.limited == {"pipelining": 1}


async def test_a_caller_that_hangs_up_counts_until_its_handler_ends():
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(post("/slow", length=20_000, body=b"x" * 20_000))
        await eventually(lambda: any(one.state.name == "HANDLER" for one in served.listener.connections))
        caller.writer.transport.abort()
        await eventually(lambda: served.begun[0].transport is None)
        assert len(served.listener.connections) == 1
        assert served.listener.connections.held > 20_000

        served.may_end.set()

        await served.has(0)
        assert served.listener.connections.held == 0


@pytest.mark.parametrize("does", [silence, half_a_head, half_a_body, one_request])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_connection_that_ended_leaves_nothing(does, tls):
    async with Served(tls=tls).running() as served:
        before = asyncio.all_tasks()
        caller = await served.connect()
        await served.has(1)
        await does(served, caller)
        caller.writer.transport.abort()

        await served.has(0)
        await eventually(lambda: asyncio.all_tasks() <= before)


async def test_the_newest_connection_is_refused_when_all_others_are_at_work():
    async with Served().running() as served:
        callers = [await served.connect() for _ in range(3)]
        for caller in callers:
            caller.send(post("/slow"))
        await eventually(lambda: len(served.begun) == 3)
        await eventually(lambda: all(one.state.name == "HANDLER" for one in served.listener.connections))

        assert await (await served.connect()).is_closed()

        served.may_end.set()
        for caller in callers:
            assert (await caller.answer()).endswith(b"4 bytes")
        assert served.limited == {"connections_per_client": 1}


async def test_the_connection_that_waits_longest_ends_for_a_new_one():
    async with Served().running() as served:
        old = await served.connect()
        await served.has(1)
        served.now += 2
        others = [await served.connect() for _ in range(3)]

        assert await old.is_closed()
        for caller in others:
            await one_request(served, caller)


async def test_one_line_tells_of_many_connections(caplog):
    caplog.set_level(logging.WARNING)
    async with Served().running() as served:
        for _ in range(5):
            caller = await served.connect()
            caller.send(b"x" * 3000)
            await caller.is_closed()
        served.now += 11
        caller = await served.connect()
        caller.send(b"x" * 3000)
        await caller.is_closed()

    assert served.limited == {"header_bytes": 6}


async def test_what_is_no_http_is_answered_without_a_line_in_the_log(capsys):
    async with Served().running() as served:
        caller = await served.connect()
        caller.send(b"\x16\x03\x01\x00\xff\r\n\r\n")
        answer = await caller.answer()

        assert answer.startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 400 "))
        assert b"server: ctrlruntime\r\n" in answer.lower()
        assert await caller.is_closed()
    assert capsys.readouterr().err == ""


async def test_a_stop_ends_idle_connections_and_finishes_requests():
    async with Served().running() as served:
        idle, busy = await served.connect(), await served.connect()
        await one_request(served, idle)
        busy.send(post("/slow", length=10))
        await eventually(lambda: len(served.begun) == 2)
        stopping = asyncio.ensure_future(served.listener.stop(20.0))

        assert await idle.is_closed()
        busy.send(b"yyyyyy")
        served.may_end.set()
        answer = await busy.answer()
        assert answer.endswith(b"10 bytes")
        assert b"connection: close" in answer.lower()
        await stopping
        assert await busy.is_closed()


class StopsAtAccept(socket.socket):
    """A listening socket. Its server is stopped right after it accepted a connection."""

    stop: Callable[[], object]

    def accept(self) -> tuple[socket.socket, object]:
        self.stop()
        return super().accept()


async def test_a_stop_closes_a_connection_that_was_just_accepted():
    listening = StopsAtAccept(fileno=socket.create_server(("127.0.0.1", 0)).detach())
    served = Served()
    async with served.running(listening):
        stops = []
        listening.stop = lambda: stops.append(asyncio.ensure_future(served.listener.stop(0.1)))
        caller = await served.connect()

        assert await caller.is_closed()
        await stops[0]


async def test_a_handler_of_a_page_that_takes_too_long_is_ended_with_504():
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    metrics = Metrics()
    limits = ServerLimits(handler_timeout=0.05)
    server = HTTPServer(
        Address("127.0.0.1", 0), {"/": never}, name="test", flag="--test", limits=limits, metrics=metrics.server("test")
    )
    await server.start()
    try:
        caller = Caller(*await asyncio.open_connection(*server.address))
        caller.send(GET)
        answer = await caller.answer()
        caller.writer.transport.abort()
    finally:
        await server.stop()

    assert answer.startswith(b"HTTP/1.1 504 ")
    assert b"server: ctrlruntime\r\n" in answer.lower()
    assert b'ctrlruntime_server_connections{server="test"}' in metrics.render()[0]
