"""Commands in simulated containers, what `attach` shows, logs that are followed, and ports that are forwarded."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import ssl
from urllib.parse import urlsplit

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.apiserver import Command
from ctrlruntime.errors import BadRequest
from ctrlruntime.project.deployment.portforward import get_from_pod
from ctrlruntime.rest.config import get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.websocket import Opcode, encode_frame, websocket

CORE = "/api/v1"
PREFIX = "simulation.ctrlruntime.dev"
ANSWERS = """
- command: redis-cli ping
  stdout: PONG
- command: sh -c .*
  stdout: some
  stderr: bad
  exitCode: 3
"""
STATUS = {
    "name": "c",
    "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
    "ready": True,
    "restartCount": 0,
    "image": "i",
    "imageID": "",
}
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@pytest.fixture
def pod(api, ns):
    """A Pod that runs; the value is its path."""
    path = f"{CORE}/{ns}/pods"
    annotations = {f"{PREFIX}/exec": ANSWERS, f"{PREFIX}/log": "one"}
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    made = api.made(path, {"metadata": {"name": "p", "annotations": annotations}, "spec": spec})
    made["status"].update({"phase": "Running", "containerStatuses": [STATUS]})
    assert api.put(f"{path}/p/status", made).code == 200
    return f"{path}/p"


class Stream:
    """A WebSocket to a container: what came of each channel."""

    def __init__(self, socket):
        self.socket, self.channels = socket, {}

    async def finish(self):
        """Read until the server closes; return the status."""
        while (message := await self.socket.receive()) is not None:
            self.take(message)
        return json.loads(self.channels.pop(3, b"null"))

    async def until(self, channel, text):
        while text not in self.channels.get(channel, b""):
            message = await self.socket.receive()
            assert message is not None
            self.take(message)

    def take(self, message):
        self.channels[message[0]] = self.channels.get(message[0], b"") + message[1:]


@pytest.fixture
def connect(thread, tmp_path):
    thread.server.write_kubeconfig(tmp_path / "config")

    @contextlib.asynccontextmanager
    async def opened(path, *query, protocol=V5):
        transport = Transport(get_config(str(tmp_path / "config")))
        params = [tuple(part.split("=")) for part in query]
        try:
            async with (
                asyncio.timeout(LONGEST_WAIT),
                websocket(transport, path, params=params, protocol=protocol, opens_within=LONGEST_WAIT) as socket,
            ):
                yield Stream(socket)
        finally:
            await transport.close()

    return opened


@pytest.fixture
def handle(thread):
    """Answer commands with a function until the test ends."""
    ends = []
    yield lambda handler: ends.append(thread.call(lambda: thread.server.containers.handle(handler)))
    for end in ends:
        thread.call(end)


def failed(code):
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


SUCCESS = {"metadata": {}, "status": "Success"}
BOTH = ("stdout=1", "stderr=true")


@pytest.mark.parametrize(
    ("query", "channels", "status"),
    [
        (("command=redis-cli", "command=ping", *BOTH), {1: b"PONG\n"}, SUCCESS),
        (("command=sh", "command=-c", "command=false", *BOTH), {1: b"some\n", 2: b"bad\n"}, failed(3)),
        (("command=sh", "command=-c", "command=false", "stdout=1"), {1: b"some\n"}, failed(3)),
        (("command=sh", "command=-c", "command=false", "stdout=True", "stderr=0"), {1: b"some\n"}, failed(3)),
        (("command=sh", "command=-c", "command=false", "stdout=1", "tty=1"), {1: b"some\nbad\n"}, failed(3)),
    ],
)
async def test_annotation_answers_a_command(connect, pod, query, channels, status):
    async with connect(f"{pod}/exec", *query) as stream:
        assert await stream.finish() == status
        assert stream.channels == channels


async def test_older_protocol_has_no_status(connect, pod):
    async with connect(
        f"{pod}/exec", "command=redis-cli", "command=ping", "stdout=1", protocol="channel.k8s.io"
    ) as stream:
        assert await stream.finish() is None
        assert stream.channels == {1: b"PONG\n"}


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (ANSWERS, 'exec: "ls": executable file not found in $PATH'),
        ("a: b: c", f"cannot read the annotation {PREFIX}/exec: yaml: "),
        ("a: b", f"cannot read the annotation {PREFIX}/exec: it must be a list"),
        ("[{command: ls, exitCode: 300}]", "exitCode must be a number from 0 to 255, not 300"),
        ("[{command: '('}]", "cannot read the command '('"),
    ],
)
async def test_command_that_nothing_answers_says_what_to_do(api, connect, pod, annotation, text):
    patch = {"metadata": {"annotations": {f"{PREFIX}/exec": annotation}}}
    assert api.patch(pod, patch).code == 200

    async with connect(f"{pod}/exec", "command=ls", *BOTH) as stream:
        status = await stream.finish()

    assert (status["status"], status["reason"], status["code"]) == ("Failure", "InternalError", 500)
    assert text in status["message"]


async def test_function_answers_with_what_the_client_sends(connect, handle, pod):
    async def upper(command: Command):
        if command.arguments[0] != "upper":
            return None
        async for data in command.stdin:
            await command.write(data.upper())
        await command.write_error(f"{command.pod['metadata']['name']}/{command.container}".encode())
        return 0

    handle(upper)

    async with connect(f"{pod}/exec", "command=upper", "stdin=1", *BOTH) as stream:
        stream.socket.send(b"\x00ab")
        await stream.until(1, b"AB")
        stream.socket.send(b"\x04" + b'{"Width":80,"Height":24}')
        stream.socket._write(encode_frame(Opcode.TEXT, b"\x00c", bytes(4)))  # as the Python client sends what is a str
        stream.socket.send(b"\xff\x00")
        assert await stream.finish() == SUCCESS
        assert stream.channels == {1: b"ABC", 2: b"p/c"}
    async with connect(f"{pod}/exec", "command=redis-cli", "command=ping", *BOTH) as stream:
        assert await stream.finish() == SUCCESS


async def test_command_of_a_client_that_goes_away_is_cancelled(thread, connect, handle, pod):
    begun, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def forever(command: Command):
        loop.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            loop.call_soon_threadsafe(ended.set)

    handle(forever)

    async with connect(f"{pod}/exec", "command=sleep", *BOTH):
        await begun.wait()
    await asyncio.wait_for(ended.wait(), LONGEST_WAIT)


async def test_command_whose_function_fails_ends_with_the_reason(connect, handle, pod, caplog):
    async def broken(command: Command):
        raise LookupError("no data")

    handle(broken)

    async with connect(f"{pod}/exec", "command=ls", *BOTH) as stream:
        status = await stream.finish()
    assert (status["reason"], status["code"]) == ("InternalError", 500)
    assert status["message"].endswith("error executing command in container: LookupError: no data")


async def test_attached_container_reads_no_input(api, connect, pod):
    async with connect(f"{pod}/attach", "stdin=1", *BOTH) as stream:
        for _ in range(5):
            stream.socket.send(b"\x00" + bytes(1024))
        await stream.until(1, b"one\n")
        await asyncio.to_thread(api.delete, pod, {"gracePeriodSeconds": 0})

        assert await stream.finish() == SUCCESS


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        (
            {"command": "ls", "stdout": "1"},
            400,
            "Upgrade request required",
        ),
        ({"stdout": "1"}, 400, "you must specify at least one command for the container"),
        ({"command": "ls"}, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ({"command": "ls", "stdout": "1", "container": "z"}, 400, "container z is not valid for pod p"),
    ],
)
def test_odd_request_is_refused(api, pod, query, code, message):
    answer = api.get(f"{pod}/exec", **query)

    assert (answer.code, answer.message) == (code, message)


async def test_attached_client_sees_the_log_until_the_container_ends(api, connect, pod):
    async with connect(f"{pod}/attach", *BOTH, protocol=V4) as stream:
        await stream.until(1, b"one\n")
        await asyncio.to_thread(api.patch, pod, {"metadata": {"annotations": {f"{PREFIX}/log": "one\ntwo"}}})
        await stream.until(1, b"two\n")
        await asyncio.to_thread(api.delete, pod, {"gracePeriodSeconds": 0})

        assert await stream.finish() == SUCCESS
        assert stream.channels == {1: b"one\ntwo\n"}


@pytest.mark.parametrize(
    ("query", "stamp"), [("follow=true", b""), ("follow=&timestamps=yes", b"2026-01-02T03:04:05Z ")]
)
def test_followed_log_goes_on_until_the_container_ends(api, thread, pod, query, stamp):
    url = urlsplit(thread.server.url)
    connection = http.client.HTTPSConnection(url.netloc, context=ssl._create_unverified_context(), timeout=LONGEST_WAIT)
    with contextlib.closing(connection):
        connection.request(
            "GET", f"{pod}/log?{query}", headers={"Authorization": f"Bearer {thread.server.admin_token}"}
        )
        answer = connection.getresponse()
        assert answer.read(len(stamp) + 4) == stamp + b"one\n"
        for text, added in (("one\ntwo", b"two\n"), ("fresh", b"fresh\n")):
            api.patch(pod, {"metadata": {"annotations": {f"{PREFIX}/log": text}}})
            assert answer.read(len(stamp + added)) == stamp + added
        ended = {"name": "c", "state": {"terminated": {"exitCode": 0}}, "ready": False}
        api.patch(f"{pod}/status", {"status": {"containerStatuses": [{**STATUS, **ended}]}})
        assert answer.read() == b""


# Ports


@contextlib.asynccontextmanager
async def listening(answer):
    """A server on a free port of this machine; `answer` gets what is sent to it."""

    serving = set()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        await answer(reader, writer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*serving)


async def shout(reader, writer):
    while data := await reader.read(100):
        writer.write(data.upper())


def annotate(api, pod, **annotations):
    assert api.patch(pod, {"metadata": {"annotations": annotations}}).code == 200


async def test_channels_of_ports_carry_data_and_errors(api, connect, pod):
    uid = api.get(pod).body["metadata"]["uid"]
    async with listening(shout) as port:
        annotate(api, pod, **{f"{PREFIX}/port.80": str(port)})
        async with connect(f"{pod}/portforward", "ports=80,81", "ports=80", protocol=V4) as stream:
            stream.socket.send(b"\x00ab")
            stream.socket.send(b"\x04c")
            await stream.until(0, b"AB")
            await stream.until(4, b"C")
            await stream.until(3, b"port.81")

    eighty, eighty_one = (80).to_bytes(2, "little"), (81).to_bytes(2, "little")
    error = stream.channels.pop(3)
    assert stream.channels == {0: eighty + b"AB", 1: eighty, 2: eighty_one, 4: eighty + b"C", 5: eighty}
    assert error.startswith(eighty_one + f"error forwarding port 81 to pod p, uid {uid}: failed to connect".encode())
    assert f"name a local port with the annotation {PREFIX}/port.81 of the Pod".encode() in error


@pytest.mark.parametrize("text", ["0", "65536", "1" * 5000, "x", "-1", ""])
async def test_annotation_of_a_port_that_is_none_is_refused(api, connect, pod, text):
    annotate(api, pod, **{f"{PREFIX}/port.80": text})
    async with connect(f"{pod}/portforward", "ports=80", protocol=V4) as stream:
        await stream.until(1, b"must be a port from 1 to 65535")


async def test_function_names_the_port(api, thread, connect, pod):
    async with listening(shout) as port:

        async def local(document, number):
            return port if (document["metadata"]["name"], number) == ("p", 5432) else None

        end = thread.call(lambda: thread.server.containers.forward(local))
        try:
            async with connect(f"{pod}/portforward", "ports=5432,5433", protocol=V4) as stream:
                stream.socket.send(b"\x00ab")
                await stream.until(0, b"AB")
                await stream.until(3, b"connection refused")
        finally:
            thread.call(end)


async def test_channels_close_when_the_ports_do(api, connect, pod):
    async def bye(_reader, writer):
        writer.write(b"bye")

    async with listening(bye) as port:
        annotate(api, pod, **{f"{PREFIX}/port.80": str(port)})
        async with connect(f"{pod}/portforward", "ports=80", protocol=V4) as stream:
            assert await stream.finish() is None

    assert stream.channels[0] == b"\x50\x00bye"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", 'query parameter "ports" is required'),
        ("?ports=", 'query parameter "ports" cannot be empty'),
        ("?ports=80,x", 'unable to parse "80,x" as a port: strconv.ParseUint: parsing "x": invalid syntax'),
        ("?ports=65536", 'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range'),
        ("?ports=0", 'port "0" must be > 0'),
    ],
)
async def test_wrong_ports_are_refused(thread, connect, pod, query, message):
    parts = [part for part in query.removeprefix("?").split("&") if part]
    with pytest.raises(BadRequest, match=re.escape(message)):
        async with connect(f"{pod}/portforward", *parts, protocol=V4):
            pass


async def test_page_of_a_pod_is_read_through_the_server(api, ns, connect, pod, thread, tmp_path):
    async def page(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
        await writer.drain()

    async with listening(page) as port:
        annotate(api, pod, **{f"{PREFIX}/port.8082": str(port)})
        thread.server.write_kubeconfig(tmp_path / "config")
        transport = Transport(get_config(str(tmp_path / "config")))
        try:
            name = NamespacedName(ns.removeprefix("namespaces/"), "p")
            found = await get_from_pod(transport, name, 8082, "/", timeout=LONGEST_WAIT)
        finally:
            await transport.close()

    assert (found.status, len(found.body)) == (200, 100000)
