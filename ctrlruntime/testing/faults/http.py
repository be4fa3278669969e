"""HTTP/1.1 on asyncio's streams, as much as a proxy needs: heads, and bodies by length or in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Head", "answer_head", "body_pieces", "read_body", "read_head"]

PIECE = 64 * 1024
LIMIT = 1024 * 1024
"""Bytes of a head, and of what a stream reader holds before it stops reading."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message."""

    first: str
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """Return the first header of that name (lower case), or an empty string."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without(self, names: Iterable[str]) -> list[tuple[str, str]]:
        left_out = frozenset(names)
        return [(key, value) for key, value in self.headers if key.lower() not in left_out]

    @property
    def status(self) -> int:
        """Of an answer's head."""
        return int(self.first.split(" ", 2)[1])

    def encode(self) -> bytes:
        return "".join([self.first, "\r\n", *(f"{k}: {v}\r\n" for k, v in self.headers), "\r\n"]).encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Return the next head; None when the connection ended before it."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    first, *lines = text[:-4].decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(first, tuple((key.strip(), value.strip()) for key, _, value in pairs))


async def body_pieces(
    reader: asyncio.StreamReader, head: Head, *, ends_with_connection: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield a body as it comes. Raises: IncompleteReadError when the connection ends before it, ConnectionError."""
    if head.get("transfer-encoding").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            while size:
                piece = await reader.read(min(size, PIECE))
                if not piece:
                    raise asyncio.IncompleteReadError(b"", size)
                size -= len(piece)
                yield piece
            await reader.readexactly(2)
        while (await reader.readuntil(b"\r\n")) != b"\r\n":
            pass
    elif length := head.get("content-length"):
        left = int(length)
        while left:
            piece = await reader.read(min(left, PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            yield piece
    elif ends_with_connection:
        while piece := await reader.read(PIECE):
            yield piece


async def read_body(reader: asyncio.StreamReader, head: Head, *, ends_with_connection: bool = False) -> bytes:
    """Return a whole body. Raises: as `body_pieces`."""
    pieces = [piece async for piece in body_pieces(reader, head, ends_with_connection=ends_with_connection)]
    return b"".join(pieces)


def answer_head(status: int, headers: Iterable[tuple[str, str]]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return Head(f"HTTP/1.1 {status} {phrase}", tuple(headers)).encode()
