"""Clients of the servers of an operator: six hostile kinds, and an honest one that measures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Final

from benchmarks.attack.victim import PATH

__all__ = ["KINDS", "honest", "hostile"]

REVIEW_BYTES: Final = 7 * 1024 * 1024

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def client_context() -> ssl.SSLContext:
    """Return a TLS context that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _head(length: int) -> bytes:
    return f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


def review(padding: int = 8 * 1024) -> bytes:
    """Return a review as an API server writes it, with an object of about `padding` bytes."""
    kind = {"group": "games.example.com", "version": "v1", "kind": "Game"}
    game = {
        "apiVersion": "games.example.com/v1",
        "kind": "Game",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"replicas": 3, "sides": {f"side-{n}": "x" * 100 for n in range(padding // 110)}},
    }
    request = {"uid": "u1", "kind": kind, "name": "g", "namespace": "ns", "operation": "CREATE", "object": game}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


# The hostile kinds: each holds one connection for as long as the server lets it.


async def _silent(streams: _Streams) -> None:
    await streams[0].read()


async def _slow_headers(streams: _Streams) -> None:
    head = b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\nX-Pad: " + b"a" * 100_000
    for at in range(len(head)):
        streams[1].write(head[at : at + 1])
        await streams[1].drain()
        await asyncio.sleep(0.2)


async def _lacks_a_byte(streams: _Streams) -> None:
    streams[1].write(_head(REVIEW_BYTES))
    part = b" " * 64 * 1024
    left = REVIEW_BYTES - 1
    while left:
        streams[1].write(part[:left])
        left -= min(left, len(part))
        await streams[1].drain()
    await streams[0].read()


async def _slow_body(streams: _Streams) -> None:
    streams[1].write(_head(REVIEW_BYTES))
    while True:
        streams[1].write(b" ")
        await streams[1].drain()
        await asyncio.sleep(0.2)


async def _deaf(streams: _Streams) -> None:
    """Sends requests and reads no answer."""
    transport = streams[1].transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    request = _head(2) + b"{}"
    while True:
        streams[1].write(request * 20)
        await streams[1].drain()
        await asyncio.sleep(0.05)


KINDS: Final[dict[str, tuple[bool, Callable[[_Streams], Awaitable[None]]]]] = {
    "silent before TLS": (False, _silent),
    "silent after TLS": (True, _silent),
    "headers byte by byte": (True, _slow_headers),
    "7 MiB body without its last byte": (True, _lacks_a_byte),
    "body byte by byte": (True, _slow_body),
    "requests without reading responses": (True, _deaf),
}
"""By name: whether it does the TLS handshake, and what it does then."""


async def hostile(port: int, kind: str, connections: int, sources: list[str], again: float) -> None:
    """Keep `connections` of one kind open from the addresses `sources`, until cancelled. `again`: seconds before a closed one comes back."""
    does_tls, act = KINDS[kind]
    context = client_context()

    async def one(number: int) -> None:
        await asyncio.sleep(number / connections)  # they come within one second
        while True:
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError, asyncio.IncompleteReadError):
                streams = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=context if does_tls else None, local_addr=(sources[number % len(sources)], 0)
                )
                try:
                    await act(streams)
                finally:
                    streams[1].transport.abort()
            await asyncio.sleep(again)

    await asyncio.gather(*(one(number) for number in range(connections)))


async def honest(port: int, rate: float, seconds: float, connections: int = 8) -> dict[str, float]:
    """Post reviews at a steady rate; return milliseconds from when each was due to its answer, and how many failed."""
    context, body = client_context(), review()
    request = _head(len(body)) + body
    times: list[float] = []
    failures = 0
    begin = time.perf_counter() + 0.5
    due = iter(begin + number / rate for number in range(int(rate * seconds)))

    async def worker() -> None:
        nonlocal failures
        streams: _Streams | None = None
        for moment in due:
            await asyncio.sleep(max(0.0, moment - time.perf_counter()))
            try:
                if streams is None:
                    streams = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                streams[1].write(request)
                head = await streams[0].readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                answer = await streams[0].readexactly(length)
                if not head.startswith(b"HTTP/1.1 200") or b'"allowed":true' not in answer:
                    raise OSError(f"not allowed: {head!r} {answer[:200]!r}")
            except (OSError, asyncio.IncompleteReadError):
                failures += 1
                if streams is not None:
                    streams[1].transport.abort()
                streams = None
            times.append(time.perf_counter() - moment)
        if streams is not None:
            streams[1].transport.abort()

    await asyncio.gather(*(worker() for _ in range(connections)))
    times.sort()
    return {
        "reviews": len(times),
        "failures": failures,
        "p50_ms": times[len(times) // 2] * 1000,
        "p99_ms": times[int(len(times) * 0.99)] * 1000,
        "longest_ms": times[-1] * 1000,
    }


async def _main(arguments: list[str]) -> None:
    match arguments:
        case ["honest", port, rate, seconds]:
            print(json.dumps(await honest(int(port), float(rate), float(seconds))), flush=True)
        case ["hostile", port, connections, sources, again, *kinds]:
            os.nice(5)  # they are on other machines
            each = int(connections) // len(kinds)
            await asyncio.gather(*(hostile(int(port), kind, each, sources.split(","), float(again)) for kind in kinds))
        case _:
            raise SystemExit("usage: honest PORT RATE SECONDS | hostile PORT CONNECTIONS SOURCES AGAIN KIND…")


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
