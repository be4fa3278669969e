from __future__ import annotations

import struct
import zlib

import pytest

from ctrlruntime.apiserver.http.spdy import _DICTIONARY, Frame, FrameError, Frames, Kind


class Peer:
    """The other side of a connection, as kubectl's library writes."""

    def __init__(self):
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def open(self, stream, **headers):
        texts = [part for pair in headers.items() for part in pair]
        parts = [struct.pack(">I", len(headers)), *(struct.pack(">I", len(text)) + text.encode() for text in texts)]
        block = self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack(">IIBB", stream, 0, 0, 0) + block)


def control(kind, payload, version=3):
    return struct.pack(">HHI", 0x8000 | version, kind, len(payload)) + payload


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_frames_arrive_whole_however_they_are_cut(size):
    peer, frames = Peer(), Frames()
    sent = [
        peer.open(1, Port="80", StreamType="data"),
        peer.open(3, Port="81", StreamType="error"),
        Frames.data(1, b"abc"),
        control(4, b"settings"),
        control(9, bytes(8)),
        Frames.data(1, b"", is_last=True),
        control(6, struct.pack(">I", 7)),
        control(3, struct.pack(">II", 3, 5)),
        control(7, bytes(8)),
    ]
    text = b"".join(sent)

    found = [frame for start in range(0, len(text), size) for frame in frames.feed(text[start : start + size])]

    assert found == [
        Frame(Kind.SYN_STREAM, 1, headers={"port": "80", "streamtype": "data"}),
        Frame(Kind.SYN_STREAM, 3, headers={"port": "81", "streamtype": "error"}),
        Frame(Kind.DATA, 1, b"abc"),
        Frame(Kind.DATA, 1, is_last=True),
        Frame(Kind.PING, 7),
        Frame(Kind.RST_STREAM, 3),
        Frame(Kind.GO_AWAY, 0),
    ]


def test_replies_share_one_compression():
    frames, inflate = Frames(), zlib.decompressobj(zdict=_DICTIONARY)

    for stream in (1, 3):
        reply = frames.reply(stream)
        assert struct.unpack_from(">HHII", reply) == (0x8003, 2, len(reply) - 8, stream)
        assert inflate.decompress(reply[12:]) == bytes(4)


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (struct.pack(">II", 1, 0xFFFFFF), "a frame has 16777215 bytes; the limit is 1048576"),
        (control(1, bytes(20), version=2), "not of SPDY/3"),
        (control(6, b"a"), "too short"),
        (control(1, bytes(20)), "headers of a stream cannot be read"),
        (Peer().open(1, a="x" * 100_000), "more than 65536 bytes"),
    ],
)
def test_what_is_no_frame_or_too_large_is_refused(sent, message):
    with pytest.raises(FrameError, match=message):
        list(Frames().feed(sent))
