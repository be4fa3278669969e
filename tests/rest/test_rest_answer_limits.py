"""What an answer may not do: be larger than its limits, unpack without end, hold the event loop, or leave something for the next one."""

import asyncio
import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_rest_connection import PLAIN, Model, cut, everything
from test_rest_session import Peer

from ctrlruntime.errors import AnswerTooLargeError, ConfigError
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.connection import READ_BUFFER, Connection, ExchangeError, OversizeError
from ctrlruntime.rest.limits import AnswerLimits
from ctrlruntime.rest.transport import translating

LIMITS = AnswerLimits(head=1000, body=2000)


def asked(limits=LIMITS):
    connection = Connection("https://server", limits=limits)
    wire = Model(connection)
    connection.connection_made(wire)
    return connection, wire, connection.send(b"GET / HTTP/1.1\r\n\r\n")


def with_length(body, *headers):
    return b"\r\n".join((b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *headers, b"", b"")) + body


def packed(body, coding=b"gzip"):
    return with_length(body, b"Content-Encoding: " + coding)


def receive(connection, chunks):
    """Hand the chunks over as long as the connection takes them, as asyncio does."""
    for chunk in chunks:
        if connection._transport.is_closing():
            return
        connection.received(chunk)


# --- sizes -----------------------------------------------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"


@given(data=st.data(), size=st.sampled_from([1000, 1001]))
def test_headers_have_a_limit_however_they_are_cut(data, size):
    async def exchange():
        connection, wire, answer = asked()
        stream = HEAD + b"X: " + b"x" * (size - len(HEAD) - 7) + b"\r\n\r\n"
        assert len(stream) == size
        receive(connection, cut(stream, data.draw(st.sets(st.integers(0, size), max_size=6))))
        if size <= LIMITS.head:
            assert await answer.whole() == b""
            return
        with pytest.raises(OversizeError, match=r"more than 1000 bytes of headers.*Config.max_header_size"):
            await answer.whole()
        assert wire.aborted

    asyncio.run(exchange())


@pytest.mark.parametrize(
    "endless",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 40,
        b"HTTP/1.1 200 " + b"x" * 1400,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 1400,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n" + b"X: y\r\n" * 300,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: " + b"y" * 1400,
    ],
    ids=["interim answers", "reason", "headers", "a chunk's extension", "trailers", "one trailer"],
)
async def test_whatever_is_no_body_has_the_limit_of_headers(endless):
    connection, wire, answer = asked()

    receive(connection, [endless[at : at + 100] for at in range(0, len(endless), 100)])

    assert wire.aborted
    with pytest.raises(OversizeError, match=r"Config\.max_header_size"):
        await answer.whole()


@pytest.mark.parametrize("is_announced", [True, False])
@pytest.mark.parametrize("begins", [True, False])
async def test_a_body_has_a_limit(is_announced, begins):
    connection, wire, answer = asked()
    length = b"Content-Length: 2001" if is_announced else b"X: y"
    receive(connection, [b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n"])
    if begins:
        await answer.begun()
    whole = asyncio.ensure_future(answer.whole())
    await asyncio.sleep(0)
    receive(connection, [b"x" * 1500, b"x" * 501])

    with pytest.raises(OversizeError, match=r"more than 2000 bytes.*Config.max_answer_size"):
        await whole
    assert wire.aborted


async def test_a_body_that_is_announced_too_long_is_not_waited_for():
    connection, wire, answer = asked(AnswerLimits(body=10 * READ_BUFFER))
    receive(connection, [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (11 * READ_BUFFER)])
    await answer.begun()
    whole = asyncio.ensure_future(answer.whole())
    await asyncio.sleep(0)

    receive(connection, [b"x" * (READ_BUFFER + 1)])

    assert wire.aborted
    with pytest.raises(OversizeError):
        await whole


async def test_a_body_as_long_as_the_limit_passes():
    connection, _, answer = asked()
    receive(connection, [with_length(b"x" * 2000)])

    assert await answer.whole() == b"x" * 2000


async def test_an_answer_that_is_read_bit_by_bit_has_no_limit():
    connection, _, answer = asked()
    receive(connection, [b"HTTP/1.1 200 OK\r\n\r\n"])
    await answer.begun()
    size = 0
    for _ in range(10):
        receive(connection, [b"x" * 1000])
        size += len(await answer.read())

    assert size == 10_000


async def test_many_small_chunks_are_one_part():
    connection, _, answer = asked(AnswerLimits())
    receive(
        connection, [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"2\r\nab\r\n" * 500 + b"0\r\n\r\n"]
    )

    assert len(answer._parts) == 1
    assert await answer.whole() == b"ab" * 500


# --- packed answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [lambda answer: answer.whole(), everything], ids=["whole", "bit by bit"])
@pytest.mark.parametrize("coding", [b"gzip", b"GZIP", b"x-gzip", b" X-Gzip "])
async def test_a_coding_has_any_case_and_an_older_name(coding, read):
    connection, _, answer = asked()
    receive(connection, [packed(gzip.compress(b"hello"), coding)])

    assert await read(answer) == b"hello"


@pytest.mark.parametrize("coding", [b"br", b"deflate", b"gzip, gzip", b"gzip\r\nContent-Encoding: gzip"])
async def test_a_coding_that_was_not_asked_for_is_an_error(coding):
    connection, wire, answer = asked()
    receive(connection, [packed(b"hello", coding)])

    with pytest.raises(ExchangeError, match="is packed as"):
        await answer.whole()
    assert wire.aborted


async def test_what_is_named_identity_is_not_packed():
    connection, _, answer = asked()
    receive(connection, [packed(b"hello", b"Identity")])

    assert await answer.whole() == b"hello"


@pytest.mark.parametrize("read", [lambda answer: answer.whole(), everything], ids=["whole", "bit by bit"])
@pytest.mark.parametrize("parts", [[b"hello", b" ", b"world"], [b"", b"hello world", b""], [b"x" * 3_000_000, b"y"]])
async def test_a_packed_answer_is_a_series_of_members(parts, read):
    connection, _, answer = asked(AnswerLimits())
    stream = packed(b"".join(gzip.compress(part) for part in parts))
    receive(connection, cut(stream, {len(stream) - 30, len(stream) - 10}))

    assert await read(answer) == b"".join(parts)


@pytest.mark.parametrize("read", [lambda answer: answer.whole(), everything], ids=["whole", "bit by bit"])
@pytest.mark.parametrize(
    "body",
    [gzip.compress(b"hello")[:-1], gzip.compress(b"hello") + b"oops", gzip.compress(b"a") + gzip.compress(b"b")[:5]],
    ids=["cut", "goes on", "cut in the second"],
)
async def test_a_packed_answer_that_is_cut_or_goes_on_as_something_else_is_an_error(body, read):
    connection, _, answer = asked()
    receive(connection, [packed(body)])

    with pytest.raises(ExchangeError, match="cannot be unpacked"):
        await read(answer)


async def test_what_unpacks_to_more_than_the_limit_is_given_up():
    connection, _, answer = asked()
    receive(connection, [packed(gzip.compress(b"x" * 2001))])

    with pytest.raises(OversizeError, match=r"decompresses to more than 2000 bytes.*Config.max_answer_size"):
        await answer.whole()


class Turns:
    """Counts the turns of the event loop while something runs."""

    async def __aenter__(self):
        self.count = 0
        self._task = asyncio.create_task(self._run())
        await asyncio.sleep(0)
        self.count = 0
        return self

    async def _run(self):
        while True:
            self.count += 1
            await asyncio.sleep(0)

    async def __aexit__(self, *_):
        self._task.cancel()


async def test_others_have_their_turn_while_an_answer_is_unpacked():
    connection, _, answer = asked(AnswerLimits())
    receive(connection, [packed(gzip.compress(b"x" * 8 * READ_BUFFER))])

    async with Turns() as turns:
        assert len(await answer.whole()) == 8 * READ_BUFFER

    assert turns.count >= 14


@pytest.mark.parametrize("read", [lambda answer: answer.whole(), everything], ids=["whole", "bit by bit"])
async def test_others_have_their_turn_while_members_that_hold_nothing_are_unpacked(read):
    connection, _, answer = asked(AnswerLimits())
    receive(connection, [packed(gzip.compress(b"") * 5000)])

    async with Turns() as turns:
        assert await read(answer) == b""

    assert turns.count >= 4000


async def test_a_stream_that_unpacks_to_much_is_handed_out_in_steps():
    connection, _, answer = asked(AnswerLimits(body=10 * 1024))
    receive(connection, [packed(gzip.compress(b"x" * 8 * READ_BUFFER))])
    await answer.begun()

    sizes = []
    async with Turns() as turns:
        while piece := await answer.read():
            sizes.append(len(piece))

    assert sum(sizes) == 8 * READ_BUFFER
    assert max(sizes) <= READ_BUFFER
    assert turns.count >= len(sizes) - 1


async def test_a_flushed_packed_stream_is_handed_out_as_it_comes():
    connection, _, answer = asked()
    packer = zlib.compressobj(wbits=31)
    receive(connection, [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"])
    await answer.begun()
    for text in (b"one", b"x" * READ_BUFFER, b"two"):
        receive(connection, [packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)])
        found = await answer.read()
        while len(found) < len(text):
            found += await answer.read()
        assert found == text


# --- ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more", [b"H", b"HTTP/1.1 2", PLAIN[:30], PLAIN[:-1], PLAIN], ids=lambda more: f"{len(more)} bytes"
)
async def test_what_goes_on_after_an_answer_does_not_reach_the_next_request(more):
    connection, _, answer = asked()

    receive(connection, [PLAIN + more])

    assert await answer.whole() == b"hello"
    assert not connection.is_idle


async def test_trailers_do_not_become_headers_of_the_next_answer():
    connection, _, answer = asked()
    receive(connection, [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nRetry-After: 9\r\n\r\n"])
    assert await answer.whole() == b""
    assert connection.is_idle

    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    receive(connection, [PLAIN])

    await answer.begun()
    assert "Retry-After" not in answer.headers


async def shaken(context, server_context):
    connection = Connection("https://server")
    wire = Model(connection)
    connection.connection_made(wire)
    peer = Peer(server_context)
    securing = asyncio.ensure_future(connection.secure(context, "127.0.0.1"))
    await asyncio.sleep(0)
    while not securing.done():
        said, wire.written = wire.written, b""
        connection.received(peer.shake(said))
        await asyncio.sleep(0)
    await securing
    connection.received(peer.shake(wire.written))  # tickets
    return connection, peer


@pytest.mark.parametrize("is_told", [True, False])
async def test_over_tls_an_answer_without_a_length_ends_with_a_farewell(is_told, context, server_context):
    connection, peer = await shaken(context, server_context)
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(peer.says(b"HTTP/1.1 200 OK\r\n\r\nhello"))

    if is_told:
        connection.received(peer.farewell())
        assert await answer.whole() == b"hello"
        return
    connection.connection_lost(None)
    with pytest.raises(ExchangeError, match="without TLS's farewell"):
        await answer.whole()


# --- what callers see ------------------------------------------------------------------------------------------------


def test_an_answer_over_its_limit_is_a_transport_error_of_its_own():
    with pytest.raises(AnswerTooLargeError, match=r"^GET /api: too much"), translating("GET", "/api"):
        raise OversizeError("too much")


@pytest.mark.parametrize("name", ["max_header_size", "max_answer_size", "max_frame_size"])
def test_a_limit_is_above_zero(name):
    with pytest.raises(ConfigError, match=f"{name} is 0"):
        Config(host="https://server", **{name: 0})
