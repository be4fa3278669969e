"""A server that does clients harm: each kind of hostile answer by name, over plain asyncio, and what a client makes of it.

`KINDS` says what each sends. `Hostile` serves one kind. `attack` asks it in the way that the kind is about, and measures: what happened, the
growth of this process's memory and the longest time its event loop stood still. `python -m benchmarks.attack.servers KIND` prints the row of
one kind; each should have a process of its own, for memory that was used once is seldom given back.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import json
import resource
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple, Self

MIB = 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

Chunks = Iterator[bytes]


@dataclass(frozen=True)
class Kind:
    """A hostile answer: its bytes, and how it is asked for. `ends`: the server closes the connection after it."""

    what: str
    answer: Callable[[], Chunks]
    ask: Literal["get", "list", "watch"] = "get"
    ends: bool = True


def repeated(part: bytes, size: int) -> Chunks:
    """Yield at least `size` bytes of a repeated part, in pieces of about 64 KiB."""
    piece = part * max(1, 64 * 1024 // len(part))
    for _ in range(size // len(piece) + 1):
        yield piece


def chunked(parts: Chunks) -> Chunks:
    for part in parts:
        yield b"%x\r\n%b\r\n" % (len(part), part)


def packed(head: bytes, parts: Chunks) -> Chunks:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join(map(packer.compress, parts)) + packer.flush()
    yield head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    yield body


def after(head: bytes, parts: Chunks) -> Chunks:
    yield head
    yield from parts


def sized(body: bytes, *headers: bytes) -> Chunks:
    yield b"".join((OK, *headers, b"Content-Length: %d\r\n\r\n" % len(body), body))


def _frame(size: int) -> Chunks:
    yield b'{"type": "ADDED", "object": {"data": "'
    yield from repeated(b"x", size)


_DEEP = b"[" * 100_000
_STATUS = json.dumps(
    {"kind": "Status", "code": "none", "details": {"causes": "x", "retryAfterSeconds": "soon"}}
).encode()

KINDS: dict[str, Kind] = {
    "gzip-400": Kind("398 KiB of gzip that decompress to 400 MiB", lambda: packed(OK, repeated(b"\0", 400 * MIB))),
    "gzip-stream": Kind(
        "a watch that decompresses to 400 MiB without a line break",
        lambda: packed(OK, repeated(b"x", 400 * MIB)),
        "watch",
    ),
    "gzip-members": Kind(
        "400,000 empty members of gzip", lambda: sized(gzip.compress(b"") * 400_000, b"Content-Encoding: gzip\r\n")
    ),
    "gzip-garbage": Kind(
        "gzip followed by other bytes",
        lambda: sized(gzip.compress(b"{}") + b"x" * 99, b"Content-Encoding: gzip\r\n"),
    ),
    "gzip-cut": Kind("truncated gzip", lambda: sized(gzip.compress(b"{}")[:-4], b"Content-Encoding: gzip\r\n")),
    "unknown-coding": Kind("an encoding that was not requested", lambda: sized(b"{}", b"Content-Encoding: br\r\n")),
    "header-200": Kind("one header of 200 MB", lambda: after(OK + b"X: ", repeated(b"x", 200_000_000))),
    "headers-200": Kind("200 MB of small headers", lambda: after(OK, repeated(b"X: y\r\n", 200_000_000))),
    "reason-200": Kind("a status line of 200 MB", lambda: after(b"HTTP/1.1 200 ", repeated(b"x", 200_000_000))),
    "interim-200": Kind(
        "200 MB of 103 Early Hints", lambda: repeated(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 200_000_000)
    ),
    "trailers-200": Kind(
        "200 MB of trailers",
        lambda: after(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", repeated(b"X: y\r\n", 200_000_000)),
    ),
    "extension-200": Kind(
        "a chunk extension of 200 MB",
        lambda: after(OK + b"Transfer-Encoding: chunked\r\n\r\n2;", repeated(b"x", 200_000_000)),
    ),
    "body-600": Kind(
        "600 MiB with a Content-Length",
        lambda: after(OK + b"Content-Length: %d\r\n\r\n" % (600 * MIB), repeated(b" ", 600 * MIB)),
    ),
    "body-endless": Kind("600 MiB without a Content-Length", lambda: after(OK + b"\r\n", repeated(b" ", 600 * MIB))),
    "chunks-600": Kind(
        "600 MiB in chunks",
        lambda: after(OK + b"Transfer-Encoding: chunked\r\n\r\n", chunked(repeated(b" ", 600 * MIB))),
    ),
    "tiny-chunks": Kind(
        "40 MB as chunks of 2 bytes",
        lambda: chain(
            (OK + b"Transfer-Encoding: chunked\r\n\r\n",), repeated(b"2\r\n  \r\n", 40_000_000), (b"0\r\n\r\n",)
        ),
    ),
    "frame-200": Kind("a watch frame of 200 MiB", lambda: after(OK + b"\r\n", _frame(200 * MIB)), "watch"),
    "deep-list": Kind("a list of 100,000 brackets", lambda: sized(b'{"metadata": {}, "items": [' + _DEEP), "list"),
    "deep-frame": Kind(
        "a watch frame of 100,000 brackets", lambda: sized(b'{"type": "ADDED", "object": ' + _DEEP + b"\n"), "watch"
    ),
    "deep-status": Kind(
        "an error body of 100,000 brackets",
        lambda: after(b"HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n", iter((_DEEP,))),
    ),
    "odd-status": Kind(
        "an error body with wrong types",
        lambda: after(b"HTTP/1.1 404 No\r\nContent-Length: %d\r\n\r\n" % len(_STATUS), iter((_STATUS,))),
    ),
    "retry-now": Kind(
        "429 with Retry-After: 0",
        lambda: iter((b"HTTP/1.1 429 No\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",)),
        ends=False,
    ),
    "two-answers": Kind(
        "two responses to one request",
        lambda: iter((OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX: stale",)),
        ends=False,
    ),
    "silence": Kind("no response", lambda: iter(()), ends=False),
    "cut": Kind("a truncated body", lambda: after(OK + b"Content-Length: 100\r\n\r\n", iter((b"{",)))),
    "no-http": Kind("bytes that are not HTTP", lambda: iter((b"SSH-2.0-OpenSSH_9.9\r\n",))),
}


class Hostile:
    """Serves one kind on 127.0.0.1 in a thread of its own, so that what it does takes nothing from the client's loop; `url`, `requests`."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.url = ""
        self.requests = 0
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await self._serve(reader, writer)
            except (OSError, EOFError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in [*tasks]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            self.requests += 1
            for piece in self._kind.answer():
                writer.write(piece)
                await writer.drain()
            if self._kind.ends:
                writer.close()
                await writer.wait_closed()
                return


class Row(NamedTuple):
    """What a kind did to a client. `memory`: MiB that the process grew by at its peak; `still`: the longest pause of the loop, in seconds."""

    kind: str
    what: str
    outcome: str
    memory: float
    still: float
    seconds: float
    requests: int


@contextlib.asynccontextmanager
async def watching_the_loop() -> AsyncIterator[Callable[[], float]]:
    """Measure the longest time between two turns of the loop."""
    longest, last = 0.0, time.perf_counter()

    def look() -> None:
        nonlocal longest, last
        now = time.perf_counter()
        longest, last = max(longest, now - last), now

    async def tick() -> None:
        while True:
            look()
            await asyncio.sleep(0.001)

    task = asyncio.create_task(tick())
    try:
        yield lambda: longest
    finally:
        look()  # what stood still to the end was not interrupted by a tick
        task.cancel()


async def attack(name: str, *, timeout: float = 20.0) -> Row:
    """Ask a server of that kind and return what happened: the class and text of an error of ctrlruntime, `a response` for one.

    Whatever else is raised goes on: no client may raise it.
    """
    from ctrlruntime.errors import CtrlError
    from ctrlruntime.rest.collection import Collection
    from ctrlruntime.rest.config import Config
    from ctrlruntime.rest.mapper import APIResource
    from ctrlruntime.rest.transport import Transport

    pods = APIResource(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
    kind = KINDS[name]
    with Hostile(kind) as server:
        transport = Transport(Config(host=server.url, timeout=timeout))
        collection = Collection(transport, pods)
        before, began = _peak(), time.perf_counter()
        async with watching_the_loop() as longest:
            try:
                if kind.ask == "watch":
                    async with contextlib.aclosing(
                        collection.watch(resource_version="1", timeout=timeout, timeout_grace=timeout)
                    ) as frames:
                        async for _ in frames:
                            pass
                elif kind.ask == "list":
                    await collection.page()
                else:
                    await transport.request("GET", "/api/v1/pods")
                outcome = "a response"
            except CtrlError as error:
                outcome = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        await transport.close()
        return Row(name, kind.what, outcome, (_peak() - before) / MIB, longest(), seconds, server.requests)


def _peak() -> int:
    """Return the most bytes of memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="What one kind of hostile answer does to the client of ctrlruntime.")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds of the client (default: 20)")
    args = parser.parse_args()
    print(json.dumps(asyncio.run(attack(args.kind, timeout=args.timeout))._asdict()))


if __name__ == "__main__":
    main()
