"""One connection without a socket: bytes in, answers out, however the bytes are cut."""

import asyncio
import gzip
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.rest.connection import READ_BUFFER, Connection, ExchangeError

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: 1\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + PLAIN
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


class Model(asyncio.Transport):
    """Holds what is written; tells the connection when it is aborted, as asyncio does."""

    def __init__(self, connection):
        super().__init__()
        self.connection = connection
        self.written = b""
        self.reading = True
        self.aborted = False

    def write(self, data):
        self.written += data

    def is_closing(self):
        return self.aborted

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def abort(self):
        if not self.aborted:
            self.aborted = True
            self.connection.connection_lost(None)


def connected():
    connection = Connection("https://server")
    wire = Model(connection)
    connection.connection_made(wire)
    return connection, wire


def cut(stream, at):
    cuts = [0, *sorted(at), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(cuts) if end > start]


@given(data=st.data(), stream=st.sampled_from([PLAIN, CHUNKED, INTERIM]))
def test_an_answer_is_the_same_however_its_bytes_are_cut(data, stream):
    async def exchange():
        connection, _ = connected()
        answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        for chunk in cut(stream, data.draw(st.sets(st.integers(0, len(stream)), max_size=8))):
            connection.received(chunk)
        return answer.status, await answer.whole(), connection.is_idle

    status, body, idle = asyncio.run(exchange())

    assert (status in {200, 201}, body, idle) == (True, b"hello", True)


async def test_a_request_leaves_at_once_and_headers_are_found_in_any_case():
    connection, wire = connected()

    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    assert wire.written == b"GET / HTTP/1.1\r\n\r\n"
    assert not connection.is_idle
    connection.received(PLAIN)

    await answer.begun()
    assert (answer.status, answer.headers.get("x-ONE")) == (200, "1")


async def test_a_connection_carries_one_exchange_after_the_other():
    connection, _ = connected()
    for stream, body in ((PLAIN, b"hello"), (EMPTY, b""), (CHUNKED, b"hello")):
        answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        connection.received(stream)
        assert await answer.whole() == body
        assert connection.is_idle


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        PLAIN + PLAIN,
    ],
    ids=["close", "1.0", "more than was asked"],
)
async def test_a_connection_that_will_not_be_kept_is_not_idle(stream):
    connection, _ = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(stream)

    await answer.whole()

    assert not connection.is_idle


async def test_bytes_that_nobody_asked_for_end_the_connection():
    connection, wire = connected()

    connection.received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")

    assert wire.aborted
    assert not connection.is_idle
    with pytest.raises(ExchangeError, match="closed the connection"):
        connection.send(b"GET / HTTP/1.1\r\n\r\n")


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n"


@given(data=st.data())
def test_after_a_requested_switch_every_byte_is_data_however_it_is_cut(data):
    stream = SWITCH + PLAIN

    async def exchange():
        connection, wire = connected()
        answer = connection.switch(b"GET / HTTP/1.1\r\n\r\n")
        for chunk in cut(stream, data.draw(st.sets(st.integers(0, len(stream)), max_size=8))):
            connection.received(chunk)
        connection.write(b"more")
        connection.connection_lost(None)
        came = b""
        while chunk := await answer.read():
            came += chunk
        return answer.status, came, wire.written, connection.is_idle

    assert asyncio.run(exchange()) == (101, PLAIN, b"GET / HTTP/1.1\r\n\r\nmore", False)


async def test_switch_that_nobody_asked_for_is_no_response():
    connection, wire = connected()
    refused = connection.switch(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(PLAIN)
    assert await refused.whole() == b"hello"

    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(SWITCH)

    with pytest.raises(ExchangeError, match=r"not HTTP/1\.1"):
        await answer.whole()
    assert wire.aborted
    with pytest.raises(ExchangeError, match="closed the connection"):
        connection.write(b"more")


async def test_an_answer_without_a_length_ends_with_its_connection():
    connection, _ = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(b"HTTP/1.1 200 OK\r\n\r\nhel")
    connection.received(b"lo")
    connection.connection_lost(None)

    assert await answer.whole() == b"hello"
    assert not connection.is_idle


@pytest.mark.parametrize(
    ("came", "error", "text", "unanswered"),
    [
        (b"", None, "closed the connection without a response", True),
        (b"", ConnectionResetError("reset"), r"failed \(ConnectionResetError: reset\)", True),
        (b"HTTP/1.1 2", None, r"broke off \(the connection was closed\)", False),
        (PLAIN[:-1], ConnectionResetError("reset"), r"broke off \(reset\)", False),
        (b"SSH-2.0-OpenSSH\r\n", None, "not HTTP/1.1", False),
    ],
    ids=["nothing", "reset", "in the headers", "in the body", "another protocol"],
)
async def test_what_breaks_says_how(came, error, text, unanswered):
    connection, wire = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    if came:
        connection.received(came)
    if not wire.aborted:
        connection.connection_lost(error)

    with pytest.raises(ExchangeError, match=text) as caught:
        await answer.whole()

    assert caught.value.unanswered is unanswered
    assert not connection.is_idle


async def test_an_answer_read_bit_by_bit_is_read_to_its_end():
    connection, _ = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(CHUNKED[:60])
    reading = asyncio.create_task(answer.read())
    await asyncio.sleep(0)
    connection.received(CHUNKED[60:])

    assert await reading + await answer.read() == b"hello"
    assert await answer.read() == b""
    assert answer.complete


async def test_what_came_before_a_failure_is_read_first():
    connection, _ = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(CHUNKED[:-5])
    connection.connection_lost(None)

    assert await answer.read() == b"hello"
    with pytest.raises(ExchangeError, match="broke off"):
        await answer.read()


async def test_a_slow_reader_holds_the_socket_back_and_a_whole_answer_does_not():
    connection, wire = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    size = 3 * READ_BUFFER
    connection.received(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    await answer.begun()
    connection.received(b"x" * (READ_BUFFER + 1))
    assert not wire.reading

    assert len(await answer.read()) == READ_BUFFER + 1
    assert wire.reading

    whole = asyncio.create_task(answer.whole())
    await asyncio.sleep(0)
    connection.received(b"x" * (2 * READ_BUFFER - 1))
    assert wire.reading
    assert len(await whole) == 2 * READ_BUFFER - 1


async def test_packed_answers_are_unpacked_whole_and_bit_by_bit():
    packed = gzip.compress(b"hello" * 1000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    for read in (lambda answer: answer.whole(), everything):
        connection, _ = connected()
        answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        for chunk in cut(head + packed, {len(head) + 5, len(head) + 20}):
            connection.received(chunk)

        assert await read(answer) == b"hello" * 1000


async def everything(answer):
    found = b""
    while chunk := await answer.read():
        found += chunk
    return found


async def test_a_packed_answer_that_is_damaged_is_an_error():
    connection, wire = connected()
    answer = connection.send(b"GET / HTTP/1.1\r\n\r\n")
    connection.received(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\noops")

    with pytest.raises(ExchangeError, match="cannot be unpacked"):
        await answer.whole()

    assert wire.aborted
