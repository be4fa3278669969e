"""The WebSocket against another implementation of a server, and its frames as bytes."""

import asyncio

import pytest
from aiohttp import WSMsgType, web
from hypothesis import example, given
from hypothesis import strategies as st
from test_rest_connection import cut
from test_rest_transport import connected, server, serving

from ctrlruntime.errors import AnswerTooLargeError, Forbidden, RequestTimeoutError, TransportError
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.connection import ExchangeError, OversizeError
from ctrlruntime.rest.credentials import StaticToken
from ctrlruntime.rest.tls import TLSConfig
from ctrlruntime.rest.websocket import FrameReader, Opcode, WebSocket, encode_frame, websocket

__all__ = ["server"]

PROTOCOL = "v4.channel.k8s.io"


def frame(first, payload, *, size=None):
    """A frame of a server: without a mask."""
    size = len(payload) if size is None else size
    length = bytes((size,)) if size < 126 else bytes((126,)) + size.to_bytes(2, "big")
    return bytes((first,)) + length + payload


def received(*chunks, limit=1000):
    """Return the messages of a socket that gets these chunks, and what it sends itself."""
    sent = []
    stream = iter([*chunks, b""])

    async def read():
        return next(stream)

    async def messages():
        socket = WebSocket(read, sent.append, limit=limit, new_mask=lambda: bytes(4))
        found = []
        while (message := await socket.receive()) is not None:
            found.append(message)
        return found

    return asyncio.run(messages()), b"".join(sent)


# --- frames -----------------------------------------------------------------------------------------------------------


@given(data=st.data())
def test_messages_are_the_same_however_their_bytes_are_cut(data):
    stream = (
        frame(0x01, b"a") + frame(0x89, b"!") + frame(0x80, b"b" * 200) + frame(0x82, b"") + frame(0x88, b"\x03\xe8")
    )
    chunks = cut(stream, data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))

    messages, sent = received(*chunks)

    assert messages == [b"a" + b"b" * 200, b""]
    assert sent == b"\x8a\x81\0\0\0\0!"  # the ping's answer


async def test_receive_returns_messages_that_came_before_the_connection_was_lost():
    chunks = iter([frame(0x89, b"!") + frame(0x82, b"a"), b""])

    async def read():
        return next(chunks)

    def write(_data):
        raise ExchangeError("lost")

    socket = WebSocket(read, write)

    assert [await socket.receive(), await socket.receive()] == [b"a", None]


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_encode_frame_masks_payload_and_writes_its_length(size):
    payload = bytes(range(256)) * 257
    written = encode_frame(Opcode.BINARY, payload[:size], b"\x01\x02\x03\x04")

    head = {0: 2, 125: 2, 126: 4, 65535: 4, 65536: 10}[size]
    assert (written[0], written[1] & 0x80, len(written)) == (0x82, 0x80, head + 4 + size)
    mask, masked = written[head : head + 4], written[head + 4 :]
    assert bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked)) == payload[:size]


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (b"\x82\x81\0\0\0\0a", "invalid WebSocket frame"),
        (b"\xc2\x00", "invalid WebSocket frame"),
        (b"\x83\x00", "invalid WebSocket frame"),
        (b"\x09\x00", "control frame"),
        (b"\x89\x7e\x00\x80", "control frame"),
        (frame(0x80, b"a"), "out of order"),
        (frame(0x02, b"a") + frame(0x82, b"b"), "out of order"),
    ],
    ids=["masked", "reserved bit", "opcode", "cut control", "long control", "no start", "two starts"],
)
def test_frames_that_break_the_protocol_are_an_error(stream, text):
    with pytest.raises(ExchangeError, match=text):
        received(stream)


def test_messages_over_the_limit_are_refused_before_they_are_stored():
    with pytest.raises(OversizeError, match="longer than 10 bytes"):
        received(frame(0x82, b"", size=11), limit=10)
    with pytest.raises(OversizeError, match="longer than 10 bytes"):
        received(frame(0x02, b"a" * 6) + frame(0x80, b"a" * 6), limit=10)
    with pytest.raises(OversizeError, match="longer than 10 bytes"):
        received(b"\x82\x7f" + b"\xff" * 8, limit=10)


@given(st.lists(st.binary(max_size=40), max_size=6))
@example([b"\x82\x7e"])
def test_bytes_of_a_stranger_are_frames_or_an_exchange_error(chunks):
    reader = FrameReader(100)
    try:
        for chunk in chunks:
            for found in reader.feed(chunk):
                assert len(found.payload) <= 100
    except ExchangeError:
        pass


# --- on a connection --------------------------------------------------------------------------------------------------


async def echo(request):
    socket = web.WebSocketResponse(protocols=[PROTOCOL])
    await socket.prepare(request)
    await socket.send_bytes(b"hello")  # often with the response in one packet
    async for message in socket:
        if message.type == WSMsgType.BINARY:
            await socket.send_bytes(message.data)
    return socket


async def test_messages_go_to_and_fro_over_tls(server_context, authority):
    async with serving(server_context) as server:
        server.will(echo)
        config = Config(host=server.url, tls=TLSConfig(ca_data=authority.pem), credential=StaticToken("secret"))
        async with (
            connected(config) as transport,
            websocket(transport, "/api/v1/pods", params=[("ports", "8082")], protocol=PROTOCOL) as socket,
        ):
            first = await socket.receive()
            socket.send(b"x" * 100_000)
            second = await socket.receive()

    request = server.requests[0]
    assert (first, second) == (b"hello", b"x" * 100_000)
    assert (request.path_qs, request.headers["Authorization"]) == ("/api/v1/pods?ports=8082", "Bearer secret")


async def test_end_of_the_server_is_the_end_of_the_messages(server):
    async def close(request):
        socket = web.WebSocketResponse(protocols=[PROTOCOL])
        await socket.prepare(request)
        await socket.close()
        return socket

    server.will(close)

    async with connected(server.url) as transport, websocket(transport, "/", protocol=PROTOCOL) as socket:
        assert [await socket.receive(), await socket.receive()] == [None, None]


async def test_refusal_is_the_error_of_the_api_server_and_leaves_no_connection(server):
    status = b'{"kind":"Status","message":"pods \\"a\\" is forbidden","reason":"Forbidden","code":403}'
    server.will((403, {"Content-Type": "application/json"}, status))

    async with connected(server.url) as transport:
        with pytest.raises(Forbidden, match='pods "a" is forbidden'):
            async with websocket(transport, "/", protocol=PROTOCOL):
                pytest.fail("it is open")


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (200, {}, "did not switch to another protocol"),
        (101, {"Upgrade": "websocket", "Connection": "upgrade"}, "does not open a WebSocket"),
    ],
)
async def test_response_that_opens_no_websocket_is_a_transport_error(server, status, headers, text):
    server.will((status, headers, b""))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match=text):
            async with websocket(transport, "/", protocol=PROTOCOL):
                pytest.fail("it is open")


async def test_server_without_the_protocol_is_a_transport_error(server):
    server.will(echo)

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match=r"does not support the WebSocket protocol v9.example.com"):
            async with websocket(transport, "/", protocol="v9.example.com"):
                pytest.fail("it is open")


async def test_failures_inside_the_block_name_the_request(server):
    server.will(echo)

    async with connected(server.url) as transport:
        with pytest.raises(AnswerTooLargeError, match="GET /a: a WebSocket message is longer than 3 bytes"):
            async with websocket(transport, "/a", protocol=PROTOCOL, limit=3) as socket:
                await socket.receive()


async def test_server_that_sends_no_response_is_a_timeout(server):
    async def silent(_request):
        await asyncio.Event().wait()
        raise AssertionError

    server.will(silent)

    async with connected(server.url) as transport:
        with pytest.raises(RequestTimeoutError, match=r"sent no headers within 0.05 s"):
            async with websocket(transport, "/", protocol=PROTOCOL, opens_within=0.05):
                pytest.fail("it is open")
