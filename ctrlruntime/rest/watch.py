"""The frames of a watch: from an HTTP stream to (type, bytes of the object), in batches as they arrive.

It handles lines, JSON and the four frame types, but no caches. A frame of type ERROR is raised as the exception for its Status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import NamedTuple

import msgspec

from ctrlruntime.errors import APIStatusError, RequestTimeoutError, TransportError
from ctrlruntime.rest.connection import OversizeError
from ctrlruntime.rest.content import UNREADABLE, unreadable
from ctrlruntime.rest.limits import MAX_FRAME_SIZE
from ctrlruntime.rest.transport import Params, Transport, translating


class Frame(NamedTuple):
    """One line of a watch: its type (ADDED, MODIFIED, DELETED, BOOKMARK) and the JSON of its object."""

    type: str
    object: bytes

    def __repr__(self) -> str:
        return f"Frame({self.type}, {len(self.object)} bytes)"  # which may be a Secret's


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode


class LineSplitter:
    """Splits a byte stream into lines. A line over `limit` bytes raises OversizeError."""

    def __init__(self, limit: int = MAX_FRAME_SIZE) -> None:
        self._limit = limit
        self._held = bytearray()

    @property
    def pending(self) -> int:
        """The bytes of an incomplete line."""
        return len(self._held)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without empty ones."""
        *lines, last = chunk.split(b"\n")
        if lines and self._held:
            self._hold(lines[0])
            lines[0] = bytes(self._held)
            self._held = bytearray()
        if last:
            self._hold(last)
        if len(chunk) > self._limit and any(len(line) > self._limit for line in lines):
            raise self._too_long()
        return [line for line in lines if line]

    def _hold(self, part: bytes) -> None:
        if len(self._held) + len(part) > self._limit:
            raise self._too_long()
        self._held += part

    def _too_long(self) -> OversizeError:
        return OversizeError(
            f"a watch frame is longer than {self._limit} bytes; the watch is given up. "
            "If objects may be that large, raise Config.max_frame_size"
        )


class Interrupt:
    """Ends the watch that reads with it, without an error. Use it on the event loop of the watch."""

    __slots__ = ("is_set", "limit")

    def __init__(self) -> None:
        self.is_set = False
        self.limit: asyncio.Timeout | None = None
        """The limit of the current read; None between two reads."""

    def set(self) -> None:
        self.is_set = True
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(0.0)


async def frames(
    transport: Transport,
    path: str,
    *,
    params: Params,
    accept: str,
    begins_within: float = 10.0,
    ends_within: float | None = None,
    interrupt: Interrupt | None = None,
) -> AsyncGenerator[list[Frame], None]:
    """Open a watch and yield its frames; frames that arrive together are one list.

    Ends when the server ends the watch cleanly, or by `interrupt`.

    begins_within: seconds until the response must start.
    ends_within: seconds after the start, after which a watch that has not ended is treated as dead; it must be longer than the requested
    `timeoutSeconds`.

    Both raise RequestTimeoutError. Frames before a failure are yielded. Raises: APIStatusError (also for an ERROR frame), TransportError
    (AnswerTooLargeError for a frame over `Config.max_frame_size`).
    """
    splitter = LineSplitter(transport.config.max_frame_size)
    interrupt = interrupt or Interrupt()
    async with transport.stream(path, params=params, accept=accept, headers_within=begins_within) as content:
        deadline = None if ends_within is None else asyncio.get_running_loop().time() + ends_within
        while not interrupt.is_set:
            try:
                async with asyncio.timeout_at(deadline) as interrupt.limit:
                    with translating("GET", path):
                        chunk = await content.read()
            except TimeoutError as error:
                if interrupt.is_set:
                    return
                transport.distrust_connections()
                raise RequestTimeoutError(
                    f"GET {path}: the watch did not end within {ends_within:g} s; "
                    f"the connection to {transport.host} is treated as dead"
                ) from error
            finally:
                interrupt.limit = None
            if not chunk:
                break
            with translating("GET", path):
                lines = splitter.feed(chunk)
            batch, failure = _batch(lines)
            if batch:
                yield batch
            if failure is not None:
                raise failure
        if splitter.pending:
            raise TransportError(f"GET {path}: the watch ended inside a frame")


def _batch(lines: list[bytes]) -> tuple[list[Frame], Exception | None]:
    batch: list[Frame] = []
    try:
        for line in lines:
            batch.append(_frame(line))  # noqa: PERF401 - those before a failure are kept
    except (APIStatusError, TransportError) as error:
        return batch, error
    return batch, None


def _frame(line: bytes) -> Frame:
    try:
        decoded = _decode_line(line)
    except UNREADABLE as error:
        raise TransportError(f"not a watch frame: {unreadable(error, line)}") from error
    if decoded.type == "ERROR":
        raise APIStatusError.from_response(500, bytes(decoded.object))
    return Frame(decoded.type, bytes(decoded.object))
