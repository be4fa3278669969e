"""One client's connection and the requests on it, one after another: to the server and back, struck by the faults.

A watch is passed on frame by frame, any other answer as a whole. What is to be sent goes through a queue of items with
the time each is due, so frames that are late keep their order.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import aclosing, suppress
from dataclasses import dataclass

from ctrlruntime.testing.faults import plan
from ctrlruntime.testing.faults.http import Head, answer_head, body_pieces, read_body, read_head
from ctrlruntime.testing.faults.match import SeenRequest, describe
from ctrlruntime.testing.faults.plan import Reply, status_body
from ctrlruntime.testing.faults.poison import poisoned_answer, poisoned_frame
from ctrlruntime.testing.faults.traffic import Traffic, Upstream, expired_frame, reset

__all__ = ["ClientConnection"]

_HOP = {"connection", "keep-alive", "te", "transfer-encoding", "content-length", "upgrade", "proxy-connection"}
_MINE = {*_HOP, "host", "accept-encoding", "expect"}
_WRITES = {"POST", "PUT", "PATCH", "DELETE"}
_WITHOUT_BODY = {204, 304}
_FULL = 64  # items on the way to a client before the server has to wait
_ON_THE_WIRE = 0.02
"""Seconds between the last bytes that are to arrive and a reset, which would overtake them."""

_LOST = (OSError, asyncio.IncompleteReadError, ValueError)


class _OverError(Exception):
    """The connection is done with."""


class ClientConnection:
    """A client's connection."""

    def __init__(self, traffic: Traffic, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.traffic = traffic
        self.writer = writer
        self.exchange: _Exchange | None = None
        self.is_dead = False
        self._reader = reader
        self._server: tuple[Upstream, asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def serve(self) -> None:
        """Carry requests until the client leaves or a fault ends the connection."""
        self.traffic.clients.add(self)
        try:
            while await self._one():
                pass
        except (_OverError, *_LOST):
            pass
        finally:
            self.traffic.clients.discard(self)
            self.leave_server()
            self.writer.transport.abort()

    async def _one(self) -> bool:
        head = await read_head(self._reader)
        if head is None:
            return False
        if self.is_dead:
            await silence()
        if head.get("expect").lower() == "100-continue":
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await read_body(self._reader, head)
        if self.is_dead:
            await silence()
        method, target, _ = head.first.split(" ", 2)
        request = describe(time.monotonic(), method, target, agent=head.get("user-agent"), body=body)
        self.traffic.seen.append(request)
        self.exchange = _Exchange(self, request, head, target)
        try:
            await self.exchange.run()
        finally:
            request.ended = time.monotonic()
            self.exchange = None
        return head.get("connection").lower() != "close"

    def reset(self) -> None:
        reset(self.writer.transport)

    async def server(self, user: Upstream) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the connection to the server as this user, the last one if it is still open. Raises: OSError."""
        if self._server is not None:
            known, reader, writer = self._server
            if known is user and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            self.leave_server()
        reader, writer = await user.connect(self.traffic.connections)
        self._server = (user, reader, writer)
        return reader, writer

    def leave_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server[2].transport.abort()

    async def tunnel(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes both ways until one side ends, because after an upgrade the bytes are not HTTP."""
        ways = {
            asyncio.create_task(_pass(self._reader, writer)),
            asyncio.create_task(_pass(server, self.writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        raise _OverError


@dataclass(frozen=True, slots=True)
class _Item:
    """Something to send at `due` (loop time); no data: the end, which is clean or not."""

    due: float
    data: bytes
    is_frame: bool = False
    is_clean: bool = True


class _Exchange:
    """One request and its answer."""

    def __init__(self, connection: ClientConnection, request: SeenRequest, head: Head, target: str) -> None:
        self.request = request
        self.is_dead = False
        self.is_stream = False
        self._connection = connection
        self._traffic = connection.traffic
        self._head = head
        self._target = target
        self._items: deque[_Item] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._drips: list[plan.Drip] = []
        self._left: int | None = None
        """Bytes of the body that still pass before the connection is reset, or goes silent."""
        self._goes_silent = False

    # --- what faults call --------------------------------------------------------------------------------------------

    def cut_after(self, size: int) -> None:
        self._left, self._goes_silent = size, False
        if not size:
            self._connection.reset()

    def stall_after(self, size: int) -> None:
        self._left, self._goes_silent = size, True
        self.is_dead = not size

    def drip(self, fault: plan.Drip) -> None:
        self._drips.append(fault)

    def inject(self, frame: bytes) -> None:
        self._put(frame, is_frame=True)

    def finish(self) -> None:
        self._put(b"")

    # --- the way there -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        request, traffic = self.request, self._traffic
        if (stall := traffic.strike(plan.Stall, request)) is not None:
            self.stall_after(stall.after)
        if traffic.strike(plan.BlackHole, request) is not None:
            self.is_dead = True
        await self._living()
        if (cut := traffic.strike(plan.Cut, request)) is not None:
            self.cut_after(cut.after)
        self._drips = list(traffic.struck(plan.Drip, request))
        user, is_ours = traffic.user(self._head.get("authorization"))
        late = sum(fault.seconds for fault in self._delays("request"))
        if late and user is not None and request.method in _WRITES:
            # Shielded: what is on its way to the server arrives there, whether or not the client still waits.
            await self._finish(await asyncio.shield(traffic.keep(self._ask_late(late, user, is_ours=is_ours))))
            return
        await asyncio.sleep(late)
        await self._living()
        if user is None:
            await self._whole(Reply(401, status_body(request, 401, message="Unauthorized")))
        elif (reply := self._made_here()) is not None:
            await self._whole(reply)
        else:
            await self._ask(user, is_ours=is_ours)

    def _made_here(self) -> Reply | None:
        request, traffic = self.request, self._traffic
        if (answering := traffic.strike(plan.Answering, request)) is not None:
            return answering.reply(request)
        if request.verb == "watch":
            if (expiry := traffic.strike(plan.ExpiryEvent, request)) is not None:
                return Reply(200, expired_frame(request, expiry.reason))
            if traffic.strike(plan.Ending, request) is not None:
                return Reply(200, b"")
        for rewind in traffic.in_force(plan.Rewind, request):
            if self._target in rewind.recorded:
                rewind.hits += 1
                return rewind.recorded[self._target]
        return None

    def _delays(self, at: str) -> list[plan.Delay]:
        """Return the delays that strike now, which counts."""
        delays = [fault for fault in self._traffic.in_force(plan.Delay, self.request) if fault.at == at]
        struck = [fault for fault in delays if fault.strikes(self.request)]
        for fault in struck:
            fault.hits += 1
        return struck

    async def _ask_late(self, seconds: float, user: Upstream, *, is_ours: bool) -> Reply:
        await asyncio.sleep(seconds)
        reader, writer = await user.connect(self._traffic.connections)
        try:
            writer.write(self._forwarded(user, "", is_ours=is_ours))
            self.request.reached_server = True
            head = await read_head(reader)
            if head is None:
                raise ConnectionResetError("the server closed the connection without an answer")
            return (await _read_reply(reader, head))[0]
        finally:
            writer.transport.abort()

    async def _ask(self, user: Upstream, *, is_ours: bool) -> None:
        connection = self._connection
        try:
            reader, writer = await connection.server(user)
        except OSError:
            connection.reset()
            raise
        upgrade = self._head.get("upgrade")
        writer.write(self._forwarded(user, upgrade, is_ours=is_ours))
        self.request.reached_server = True
        await writer.drain()
        head = await read_head(reader)
        while head is not None and head.status < 200 and head.status != 101:
            head = await read_head(reader)
        if head is None:
            await self._living()
            connection.reset()
            raise _OverError
        if head.status == 101:
            self.request.status = 101
            connection.writer.write(head.encode())
            await connection.tunnel(reader, writer)
        elif self.request.method == "HEAD":
            await self._living()
            self.request.status = head.status
            connection.writer.write(head.encode())
        elif head.status == 200 and (self.request.verb == "watch" or self.request.query.get("follow") == "true"):
            await self._going_on(reader, head)
        else:
            reply, is_last = await _read_reply(reader, head)
            if is_last:
                connection.leave_server()
            await self._finish(reply)

    def _forwarded(self, user: Upstream, upgrade: str, *, is_ours: bool) -> bytes:
        method, _, protocol = self._head.first.split(" ", 2)
        left_out = {*_MINE, "authorization"} if is_ours else _MINE
        headers = [("Host", f"{user.host}:{user.port}"), *self._head.without(left_out), ("Accept-Encoding", "identity")]
        if is_ours:
            headers += user.headers
        if upgrade:
            headers += [("Connection", "Upgrade"), ("Upgrade", upgrade)]
        body = self.request.body
        if body or method in {"POST", "PUT", "PATCH"}:
            headers.append(("Content-Length", str(len(body))))
        return Head(f"{method} {user.prefix}{self._target} {protocol}", tuple(headers)).encode() + body

    # --- whole answers -----------------------------------------------------------------------------------------------

    async def _finish(self, reply: Reply) -> None:
        """Take an answer of the server's to the client as a whole."""
        request, traffic = self.request, self._traffic
        if reply.status == 200 and request.verb in {"get", "list"}:
            traffic.record(self._target, reply)
        if (drop := traffic.strike(plan.DropAnswer, request)) is not None:
            if drop.how == "reset":
                self._connection.reset()
                raise _OverError
            self.is_dead = True
        await self._living()
        for poison in traffic.in_force(plan.Poison, request):
            reply = Reply(reply.status, poisoned_answer(reply.body, poison), reply.headers)
        await self._whole(reply)

    async def _whole(self, reply: Reply) -> None:
        await asyncio.sleep(sum(fault.seconds for fault in self._delays("response")))
        await self._living()
        self.request.status = reply.status
        headers = list(reply.headers)
        if reply.status not in _WITHOUT_BODY:  # whoever keeps an answer takes over the headers of a 304
            if not any(name.lower() == "content-type" for name, _ in headers):
                headers.append(("Content-Type", "application/json"))
            headers.append(("Content-Length", str(len(reply.body))))
        self._connection.writer.write(answer_head(reply.status, headers))
        await self._send(reply.body, chunked=False)
        await self._connection.writer.drain()

    # --- answers that go on ------------------------------------------------------------------------------------------

    async def _going_on(self, reader: asyncio.StreamReader, head: Head) -> None:
        """Take a watch, or a log that is followed, from the server to the client as it comes."""
        await self._living()
        self.is_stream = True
        self.request.status = head.status
        headers = [*head.without(_HOP), ("Transfer-Encoding", "chunked")]
        self._connection.writer.write(answer_head(head.status, headers))
        await self._connection.writer.drain()
        source = asyncio.create_task(self._fetch(reader, head))
        try:
            while await self._next():
                pass
        finally:
            self.is_stream = False
            if not source.done():
                self._connection.leave_server()
                source.cancel()
            await asyncio.gather(source, return_exceptions=True)

    async def _next(self) -> bool:
        """Send the next item when it is due; return whether more may come."""
        while not self._items:
            self._news.clear()
            await self._news.wait()
        item = self._items.popleft()
        self._room.set()
        if (wait := item.due - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait)
        await self._living()
        writer = self._connection.writer
        if item.data:
            await self._send(item.data, chunked=True)
            self.request.frames += item.is_frame
            return True
        if not item.is_clean:
            self._connection.reset()
            raise _OverError
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return False

    async def _fetch(self, reader: asyncio.StreamReader, head: Head) -> None:
        is_watch = self.request.verb == "watch"
        parts: list[bytes] = []
        is_clean = True
        try:
            async with aclosing(body_pieces(reader, head, ends_with_connection=True)) as pieces:
                async for piece in pieces:
                    if not is_watch:
                        await self._offer(piece, is_frame=False)
                        continue
                    *complete, rest = piece.split(b"\n")
                    for line in complete:
                        await self._offer(b"".join((*parts, line, b"\n")), is_frame=True)
                        parts = []
                    if rest:
                        parts.append(rest)
        except _LOST:
            is_clean = False
        if parts:
            await self._offer(b"".join(parts), is_frame=False)
        self._put(b"", is_clean=is_clean)

    async def _offer(self, data: bytes, *, is_frame: bool) -> None:
        while len(self._items) > _FULL and not self._traffic.in_force(plan.Delay, self.request):
            self._room.clear()
            await self._room.wait()
        if is_frame:
            for poison in self._traffic.in_force(plan.Poison, self.request):
                data = poisoned_frame(data, poison)
        if data:
            self._put(data, is_frame=is_frame)

    def _put(self, data: bytes, *, is_frame: bool = False, is_clean: bool = True) -> None:
        late = 0.0
        for fault in self._traffic.in_force(plan.Delay, self.request):
            if fault.at == "response":
                fault.hits += is_frame
                late += fault.seconds
        due = asyncio.get_running_loop().time() + late
        if self._items:
            due = max(due, self._items[-1].due)
        self._items.append(_Item(due, data, is_frame, is_clean))
        self._news.set()

    # --- bytes -------------------------------------------------------------------------------------------------------

    async def _send(self, data: bytes, *, chunked: bool) -> None:
        """Send a part of the body at the pace, in the pieces and as far as the faults let it."""
        writer, position = self._connection.writer, 0
        while position < len(data):
            await self._living()
            size, pause = self._pace(len(data) - position)
            if self._left is not None:
                size = min(size, self._left)
                self._left -= size
            piece = data[position : position + size]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()
            if self._left == 0:
                self.is_dead = self._goes_silent
                await self._living()
                await asyncio.sleep(_ON_THE_WIRE)
                self._connection.reset()
                raise _OverError
            position += size
            if pause:
                await asyncio.sleep(pause)

    def _pace(self, size: int) -> tuple[int, float]:
        """Return how many bytes go at once, of `size`, and the seconds after them."""
        pause = 0.0
        for split in self._traffic.in_force(plan.Split, self.request):
            size, pause = min(size, split.size), max(pause, split.pause)
        for drip in self._drips:
            if drip in self._traffic.faults:
                size, pause = 1, max(pause, drip.interval)
        return size, pause

    async def _living(self) -> None:
        """Go on, or never: what a dead connection is sent is swallowed."""
        if self.is_dead:
            self._connection.leave_server()
            await silence()


async def _read_reply(reader: asyncio.StreamReader, head: Head) -> tuple[Reply, bool]:
    """Return a whole answer, and whether it is the last on its connection."""
    has_body = head.status not in _WITHOUT_BODY
    is_open_ended = has_body and not head.get("content-length") and head.get("transfer-encoding").lower() != "chunked"
    body = await read_body(reader, head, ends_with_connection=is_open_ended) if has_body else b""
    reply = Reply(head.status, body, tuple(head.without({*_HOP, "content-encoding"})))
    return reply, is_open_ended or head.get("connection").lower() == "close"


async def silence() -> None:
    """Wait until the client has had enough and leaves, which cancels this."""
    await asyncio.Event().wait()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(*_LOST):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
