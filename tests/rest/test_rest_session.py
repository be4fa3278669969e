"""TLS in memory: what a client's session says to a server's, however its bytes are cut."""

import asyncio
import contextlib
import ssl

import pytest

from ctrlruntime.rest.connection import Connection, ExchangeError
from ctrlruntime.rest.session import SessionClosed, TLSSession
from ctrlruntime.testing import eventually

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


class Peer:
    """The server's end of a session."""

    def __init__(self, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def shake(self, came):
        self.incoming.write(came)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def says(self, plain):
        self.tls.write(plain)
        return self.outgoing.read()

    def heard(self, came):
        self.incoming.write(came)
        return self.tls.read(1 << 20)

    def farewell(self):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        return self.outgoing.read()


@pytest.fixture
def ends(context, server_context):
    session, peer = TLSSession(context, "127.0.0.1"), Peer(server_context)
    done, out = session.shake()
    while not done:
        done, out = session.shake(peer.shake(out))
    assert session.decrypt(peer.shake(out)) == b""  # tickets
    return session, peer


def test_what_is_encrypted_is_heard_and_the_other_way_round(ends):
    session, peer = ends

    assert peer.heard(session.encrypt(b"hello")) == b"hello"
    assert session.decrypt(peer.says(b"x" * 100_000)) == b"x" * 100_000


def test_a_record_may_come_in_pieces(ends):
    session, peer = ends
    came = peer.says(b"one") + peer.says(b"two")

    assert b"".join(session.decrypt(came[i : i + 1]) for i in range(len(came))) == b"onetwo"


def test_the_end_is_told_with_what_came_before_it(ends):
    session, peer = ends

    with pytest.raises(SessionClosed) as closed:
        session.decrypt(peer.says(b"last") + peer.farewell())

    assert closed.value.plain == b"last"


def test_a_changed_byte_is_an_error(ends):
    session, peer = ends
    came = bytearray(peer.says(b"hello"))
    came[-1] ^= 1

    with pytest.raises(ssl.SSLError):
        session.decrypt(bytes(came))


def test_a_server_that_is_not_who_it_says_is_told_so(context, server_context):
    session, peer = TLSSession(context, "elsewhere.example.com"), Peer(server_context)
    _, out = session.shake()

    with pytest.raises(ssl.SSLCertVerificationError):
        session.shake(peer.shake(out))

    with pytest.raises(ssl.SSLError):
        peer.heard(session.farewell())


# --- on a connection


class Served:
    """A server on a socket that answers with `OK` each time it has heard so many bytes."""

    def __init__(self):
        self.answers_each = len(REQUEST)
        self.heard = b""
        self.writer = None

    async def serve(self, reader, writer):
        self.writer = writer
        while chunk := await reader.read(1 << 16):
            self.heard += chunk
            if len(self.heard) % self.answers_each == 0:
                writer.write(OK)


@pytest.fixture
async def served(server_context):
    served = Served()
    listener = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=server_context)
    served.port = listener.sockets[0].getsockname()[1]
    yield served
    listener.close()
    if served.writer is not None:
        served.writer.transport.abort()
    await listener.wait_closed()


@pytest.fixture
async def connection(served, context):
    connection = Connection("https://server")
    await asyncio.get_running_loop().create_connection(lambda: connection, "127.0.0.1", served.port)
    await connection.secure(context, "127.0.0.1")
    yield connection
    connection.abort()


async def test_the_permit_is_asked_when_nothing_has_left_and_what_it_refuses_never_leaves(connection, served):
    assert await connection.send(REQUEST, permit=lambda: None).whole() == b"ok"
    before = served.heard

    def refuse():
        raise PermissionError("frozen")  # an OSError, as a broken socket's: it is not taken for one

    with pytest.raises(PermissionError, match="frozen"):
        connection.send(REQUEST, permit=refuse)

    assert not connection.is_idle  # one record is missing in its session
    with pytest.raises(ExchangeError):
        connection.send(REQUEST)
    await eventually(served.writer.transport.is_closing)
    assert served.heard == before == REQUEST


async def test_a_request_larger_than_the_sockets_buffer_arrives_whole(connection, served):
    body = b"x" * 8_000_000
    request = REQUEST.replace(b"Content-Length: 0", b"Content-Length: %d" % len(body)) + body

    served.answers_each = len(request)

    assert await connection.send(request).whole() == b"ok"

    assert served.heard == request


async def test_a_farewell_ends_a_connection_that_is_idle(connection, served):
    assert await connection.send(REQUEST).whole() == b"ok"

    served.writer.close()

    await eventually(lambda: not connection.is_idle)
