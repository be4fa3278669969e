"""Commands and ports over SPDY/3.1, as clients of Go's remotecommand and portforward packages ask for them."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from urllib.parse import urlsplit

import pytest
from servers import LONGEST_WAIT
from test_server_streams import PREFIX, SUCCESS, V4, annotate, failed, handle, pod  # noqa: F401 - fixtures
from test_spdy_frames import Peer, control

from ctrlruntime.apiserver import Command
from ctrlruntime.apiserver.http import sessions
from ctrlruntime.apiserver.http.spdy import Frames, Kind

V2 = "v2.channel.k8s.io"
PORTS = "portforward.k8s.io"
EXEC = "exec?command=redis-cli&command=ping&stdout=1&stderr=1"


class Connection:
    """A connection that is upgraded to SPDY, and what came on its streams."""

    def __init__(self, thread, path, protocols):
        url = urlsplit(thread.url)
        context = ssl.create_default_context(cadata=thread.server.ca_pem.decode())
        raw = socket.create_connection((url.hostname, url.port), LONGEST_WAIT)
        self._socket = context.wrap_socket(raw, server_hostname=url.hostname)
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {thread.server.admin_token}",
            "Connection: Upgrade",
            "Upgrade: SPDY/3.1",
            *(f"X-Stream-Protocol-Version: {name}" for name in protocols),
            "Content-Length: 0",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._text = b""
        while b"\r\n\r\n" not in self._text:
            self._text += self._socket.recv(65536)
        self.head, self._text = self._text.split(b"\r\n\r\n", 1)
        self._peer, self._frames = Peer(), Frames()
        self.streams: dict[int, bytes] = {}
        self.finished: set[int] = set()
        self.pings: list[int] = []
        self.resets: list[int] = []

    @property
    def code(self):
        return int(self.head.split()[1])

    @property
    def text(self):
        """The rest of a response that is no upgrade."""
        while data := self._socket.recv(65536):
            self._text += data
        return self._text.decode()

    def open(self, stream, **headers):
        self._socket.sendall(self._peer.open(stream, **headers))

    def send(self, stream, data, *, is_last=False):
        self._socket.sendall(Frames.data(stream, data, is_last=is_last))

    def send_raw(self, data):
        self._socket.sendall(data)

    def until(self, is_enough):
        """Read until it is so, or the server closes; return whether it is so."""
        while not is_enough():
            data = self._text or self._socket.recv(65536)
            self._text = b""
            if not data:
                return False
            for frame in self._frames.feed(data):
                if frame.kind is Kind.DATA:
                    self.streams[frame.stream] = self.streams.get(frame.stream, b"") + frame.data
                    self.finished |= {frame.stream} if frame.is_last else set()
                elif frame.kind is Kind.PING:
                    self.pings.append(frame.stream)
                elif frame.kind is Kind.RST_STREAM:
                    self.resets.append(frame.stream)
        return True

    def close(self):
        self._socket.close()


@pytest.fixture
def connect(thread, pod):  # noqa: F811 - the fixture of another file
    made = []

    def connected(query, *protocols):
        made.append(Connection(thread, f"{pod}/{query}", protocols))
        return made[-1]

    yield connected
    for each in made:
        each.close()


def opened(connection, *names):
    for number, name in enumerate(names):
        connection.open(2 * number + 1, streamType=name)
    return [2 * number + 1 for number in range(len(names))]


@pytest.mark.parametrize(
    ("query", "output", "status"),
    [
        (EXEC, (b"PONG\n", b""), SUCCESS),
        ("exec?command=sh&command=-c&command=false&stdout=1&stderr=1", (b"some\n", b"bad\n"), failed(3)),
    ],
)
def test_annotation_answers_a_command(connect, query, output, status):
    connection = connect(query, "v5.channel.k8s.io", V4)
    assert connection.code == 101
    assert f"X-Stream-Protocol-Version: {V4}".encode() in connection.head

    error, out, err = opened(connection, "error", "stdout", "stderr")

    assert connection.until(lambda: connection.finished == {error, out, err})
    assert (connection.streams[out], connection.streams[err]) == output
    assert json.loads(connection.streams[error]) == status
    connection.close()


def test_older_protocol_has_the_message_of_a_failure(connect):
    connection = connect("exec?command=sh&command=-c&command=false&stdout=1", V2)
    error, out = opened(connection, "error", "stdout")

    assert connection.until(lambda: connection.finished == {error, out})
    assert connection.streams[error] == b"command terminated with non-zero exit code: exit status 3"


def test_function_reads_all_that_is_sent_at_its_own_pace(connect, handle):  # noqa: F811
    async def count(command: Command):
        total = 0
        async for data in command.stdin:
            total += len(data)
        await command.write(b"x" * total)
        return 0

    handle(count)
    connection = connect("exec?command=count&stdin=1&stdout=1&tty=1", V4)
    error, out, into, _ = opened(connection, "error", "stdout", "stdin", "resize")
    for _ in range(20):
        connection.send(into, b"y" * 100_000)
    connection.send_raw(control(6, struct.pack(">I", 7)))
    connection.send(into, b"", is_last=True)

    assert connection.until(lambda: {error, out} <= connection.finished)
    assert connection.streams[out] == b"x" * 2_000_000
    assert json.loads(connection.streams[error]) == SUCCESS
    assert connection.pings == [7]


def test_stream_that_was_not_asked_for_is_reset(connect):
    connection = connect(EXEC, V4)
    connection.open(1, streamType="stdin")
    connection.open(3, streamType="what")
    connection.open(5, streamType="error")
    connection.open(7, streamType="error")

    assert connection.until(lambda: connection.resets == [1, 3, 7])


@pytest.mark.parametrize("sent", [control(1, bytes(20), version=2), control(7, bytes(8))])
def test_client_that_ends_or_sends_no_spdy_is_let_go(connect, sent):
    connection = connect(EXEC, V4)
    connection.send_raw(sent)

    assert not connection.until(lambda: False)
    again = connect(EXEC, V4)
    error, *_ = opened(again, "error", "stdout", "stderr")
    assert again.until(lambda: error in again.finished)


def test_client_that_opens_no_streams_is_let_go(connect, monkeypatch):
    monkeypatch.setattr(sessions, "_CREATION", 0.0)

    assert not connect(EXEC, V4).until(lambda: False)


@pytest.mark.parametrize(
    ("protocols", "code", "text"),
    [
        ((), 400, "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with"),
        ((" , ",), 400, "but no valid protocols"),
        (
            ("x, y", "z"),
            403,
            "unable to negotiate protocol: client supports [x y z], server accepts [v4.channel.k8s.io v3.channel.k8s.io v2.",
        ),
    ],
)
def test_protocols_that_are_not_served_are_refused(connect, protocols, code, text):
    connection = connect(EXEC, *protocols)

    assert connection.code == code
    assert (b"X-Accepted-Stream-Protocol-Versions: v2.channel.k8s.io" in connection.head) == (code == 403)
    connection.send_raw(
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )  # the connection is still one of HTTP
    assert text in connection.text


def test_ports_are_forwarded(api, connect, pod):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as behind:
        annotate(api, pod, **{f"{PREFIX}/port.80": str(behind.getsockname()[1])})

        def echo():
            accepted, _ = behind.accept()
            with accepted:
                while data := accepted.recv(65536):
                    accepted.sendall(data)

        echoing = threading.Thread(target=echo)
        echoing.start()
        connection = connect("portforward", PORTS)
        for stream, kind, port in ((1, "error", "80"), (3, "data", "80"), (5, "error", "81"), (7, "data", "81")):
            connection.open(stream, streamType=kind, port=port, requestID=port)
        connection.send(3, b"abc" * 100_000)
        connection.send(3, b"", is_last=True)

        assert connection.until(lambda: {1, 3} <= connection.finished and {5, 7} <= set(connection.resets))
        echoing.join()
    assert connection.streams[3] == b"abc" * 100_000
    assert f"{PREFIX}/port.81".encode() in connection.streams[5]
