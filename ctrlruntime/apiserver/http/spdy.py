"""The frames of SPDY/3.1 that kubectl sends to forward ports (github.com/moby/spdystream): a pure state machine, without I/O.

Flow control is not here: kubectl's library has none either.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow authorization "
    "cache-control connection content-base content-encoding content-language content-length content-location content-md5 content-range "
    "content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified "
    "location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding "
    "upgrade user-agent vary via warning www-authenticate method get status"
)
_MORE_WORDS: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No "
    "Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 "
    "Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,"
    "image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,"
    "sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY: Final = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in (*_WORDS.split(), *_MORE_WORDS)) + _REST.encode()
)
"""What both sides of a connection know of headers before the first one (section 2.6.10.1 of the specification)."""
_CONTROL: Final = 0x8003_0000
_VERSION: Final = 0xFFFF_0000
_FIN: Final = 1
_LARGEST_FRAME: Final = 1024 * 1024
_LARGEST_HEADERS: Final = 64 * 1024


class Kind(IntEnum):
    """What a frame is; the numbers of control frames are the protocol's."""

    DATA = 0
    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GO_AWAY = 7


class Frame(NamedTuple):
    """A frame that arrived."""

    kind: Kind
    stream: int
    """The stream; of a ping its number."""
    data: bytes = b""
    headers: Mapping[str, str] = {}
    is_last: bool = False
    """Nothing more comes on the stream."""


class FrameError(ValueError):
    """The bytes are not SPDY, or more than this side takes."""


class Frames:
    """Both directions of a connection: the headers of each are compressed as one."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete; those that say nothing to a server are left out. Raises: FrameError."""
        received = self._received
        received += data
        while len(received) >= 8:
            head, rest = struct.unpack_from(">II", received)
            size = rest & 0xFF_FFFF
            if size > _LARGEST_FRAME:
                raise FrameError(f"a frame has {size} bytes; the limit is {_LARGEST_FRAME}")
            if len(received) < 8 + size:
                return
            payload = bytes(received[8 : 8 + size])
            del received[: 8 + size]
            frame = self._frame(head, payload, is_last=bool(rest >> 24 & _FIN))
            if frame is not None:
                yield frame

    def _frame(self, head: int, payload: bytes, *, is_last: bool) -> Frame | None:
        if not head >> 31:
            return Frame(Kind.DATA, head, payload, is_last=is_last)
        if head & _VERSION != _CONTROL:
            raise FrameError("a frame is not of SPDY/3")
        kind = head & 0xFFFF
        if kind == Kind.SYN_STREAM:
            headers = self._headers(payload[10:])
            return Frame(Kind.SYN_STREAM, _number(payload), headers=headers, is_last=is_last)
        if kind in {Kind.RST_STREAM, Kind.PING, Kind.GO_AWAY}:
            return Frame(Kind(kind), _number(payload))
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, _LARGEST_HEADERS)
            if self._inflate.unconsumed_tail:
                raise FrameError(f"the headers of a stream have more than {_LARGEST_HEADERS} bytes")
            (count,), position = struct.unpack_from(">I", text), 4
            parts: list[str] = []
            for _ in range(2 * count):
                (size,) = struct.unpack_from(">I", text, position)
                position += 4 + size
                parts.append(text[position - size : position].decode("latin-1"))
        except (zlib.error, struct.error) as error:
            raise FrameError(f"the headers of a stream cannot be read: {error}") from None
        return dict(zip((name.lower() for name in parts[::2]), parts[1::2], strict=True))

    def reply(self, stream: int) -> bytes:
        """Return the frame that takes a stream, without headers."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(Kind.SYN_REPLY, struct.pack(">I", stream) + block)

    @staticmethod
    def data(stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        """Return a frame of data."""
        return struct.pack(">II", stream, (_FIN if is_last else 0) << 24 | len(data)) + data

    @staticmethod
    def reset(stream: int) -> bytes:
        """Return the frame that ends a stream in both directions."""
        return _control(Kind.RST_STREAM, struct.pack(">II", stream, 5))  # 5: cancelled

    @staticmethod
    def ping(number: int) -> bytes:
        """Return the response to a ping."""
        return _control(Kind.PING, struct.pack(">I", number))


def _control(kind: Kind, payload: bytes) -> bytes:
    return struct.pack(">II", _CONTROL | kind, len(payload)) + payload


def _number(payload: bytes) -> int:
    if len(payload) < 4:
        raise FrameError("a frame is too short")
    number: int = struct.unpack_from(">I", payload)[0]
    return number & 0x7FFF_FFFF


__all__ = ["Frame", "FrameError", "Frames", "Kind"]
