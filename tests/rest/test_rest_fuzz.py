"""What reads a stranger's bytes ends, and fails only as it says: answers of a server, frames of a watch, kubeconfigs."""

import asyncio
import contextlib
import gzip
import json
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from servers import LONGEST_WAIT
from test_rest_answer_limits import asked, receive
from test_rest_connection import CHUNKED, EMPTY, INTERIM, PLAIN, cut

from ctrlruntime.errors import APIStatusError, ConfigError, TransportError
from ctrlruntime.rest.config import get_config
from ctrlruntime.rest.connection import ExchangeError
from ctrlruntime.rest.limits import AnswerLimits
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.watch import LineSplitter, _batch

# --- answers ---------------------------------------------------------------------------------------------------------

LENGTHS = [b"0", b"5", b"6", b"-1", b"+5", b"5, 5", b"0x5", b"99999999999999999999", b"", b"5\r\nContent-Length: 6"]
HEADERS = st.one_of(
    st.sampled_from(LENGTHS).map(lambda length: b"Content-Length: " + length),
    st.sampled_from([b"gzip", b"GZIP", b"x-gzip", b"br", b"identity", b"gzip, gzip", b""]).map(
        lambda c: b"Content-Encoding: " + c
    ),
    st.sampled_from([b"chunked", b"gzip", b"gzip, chunked", b"Chunked", b"chunked, chunked"]).map(
        lambda c: b"Transfer-Encoding: " + c
    ),
    st.sampled_from([b"close", b"keep-alive", b"upgrade"]).map(lambda c: b"Connection: " + c),
    st.sampled_from(
        [
            b"Upgrade: websocket",
            b"X" * 300 + b": y",
            b"X: " + b"y" * 300,
            b" folded",
            b": none",
            b"no colon",
            b"\x00: \xff",
        ]
    ),
)
BODIES = st.one_of(
    st.binary(max_size=40),
    st.binary(max_size=40).map(gzip.compress),
    st.lists(st.binary(max_size=10), max_size=3).map(lambda parts: b"".join(gzip.compress(part) for part in parts)),
    st.just(gzip.compress(b"x" * 5000)),
    st.binary(max_size=20).map(lambda body: b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)),
    st.sampled_from([b"5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n", b"ffffffffffffffff\r\n", b"-1\r\n", b"5\r\nhelloX"]),
)
STATUS = st.sampled_from([b"HTTP/1.1 200 OK", b"HTTP/1.0 200", b"HTTP/1.1 100 Continue", b"HTTP/1.1 101 Switch", b"HTTP/1.1 204 No", b"HTTP/2 200", b"HTTP/1.1 99999 X", b"HTTP/1.1 500 \xff", b"ICY 200 OK"])  # fmt: skip
ANSWERS = st.builds(
    lambda status, headers, body: b"\r\n".join((status, *headers, b"", b"")) + body,
    STATUS,
    st.lists(HEADERS, max_size=5),
    BODIES,
)
STREAMS = st.one_of(
    st.lists(st.one_of(ANSWERS, st.sampled_from([PLAIN, CHUNKED, EMPTY, INTERIM])), min_size=1, max_size=3).map(
        b"".join
    ),
    st.binary(max_size=200),
)


@st.composite
def changed(draw, streams):
    """A stream with a few bytes that are others, missing or repeated."""
    stream = bytearray(draw(streams))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(stream)))
        stream[at : at + draw(st.integers(0, 5))] = draw(st.binary(max_size=5))
    return bytes(stream)


async def exchange(stream, cuts, *, whole, ends, farewell):
    connection, wire, answer = asked(AnswerLimits(head=400, body=2000))
    received = asyncio.ensure_future(answer.whole() if whole else everything(answer))
    for chunk in cut(stream, {at for at in cuts if at <= len(stream)}):
        receive(connection, [chunk])
        await asyncio.sleep(0)
    if ends and not wire.aborted:
        connection.connection_lost(ConnectionResetError("reset") if farewell else None)
    async with asyncio.timeout(LONGEST_WAIT):
        if not ends and not received.done():
            for _ in range(200):
                await asyncio.sleep(0)
            if not received.done():  # it waits for more, as it should
                assert not wire.aborted
                received.cancel()
                return
        with contextlib.suppress(ExchangeError):
            body = await received
            assert not whole or len(body) <= 2000
    if connection.is_idle:
        # What came before must not show in the answer to the next request.
        following = connection.send(b"GET / HTTP/1.1\r\n\r\n")
        connection.received(PLAIN)
        assert await following.whole() == b"hello"
        assert following.headers.all("X-One") == ["1"]
        assert len(following.headers._pairs) == 2


async def everything(answer):
    await answer.begun()
    size = 0
    while piece := await answer.read():
        size += len(piece)
    return b"x" * min(size, 1)


@given(
    stream=changed(STREAMS),
    cuts=st.sets(st.integers(0, 400), max_size=10),
    whole=st.booleans(),
    ends=st.booleans(),
    farewell=st.booleans(),
)
def test_whatever_a_server_answers_an_exchange_ends(stream, cuts, whole, ends, farewell):
    asyncio.run(exchange(stream, cuts, whole=whole, ends=ends, farewell=farewell))


# --- frames ----------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)
STATUSES = st.fixed_dictionaries(
    {"kind": st.just("Status")},
    optional={
        "code": st.one_of(st.sampled_from([404, 410, 0, -1, 10**30]), JSON),
        "reason": st.one_of(st.sampled_from(["NotFound", "Expired"]), JSON),
        "message": JSON,
        "status": JSON,
        "details": st.one_of(
            st.fixed_dictionaries({}, optional={"causes": JSON, "retryAfterSeconds": JSON, "kind": JSON}),
            JSON,
        ),
    },
)
FRAMES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]), "object": st.one_of(STATUSES, JSON)}
    ),
    JSON,
).map(lambda frame: json.dumps(frame).encode())


def use(error):
    """Use all that an error of the server offers."""
    return str(error), repr(error), error.code, error.causes, error.retry_after, error.details, error.message


@given(stream=changed(st.lists(FRAMES, max_size=4).map(b"\n".join)), cuts=st.sets(st.integers(0, 400), max_size=8))
def test_whatever_a_watch_holds_it_is_frames_or_an_error_of_a_watch(stream, cuts):
    splitter = LineSplitter(limit=300)
    with contextlib.suppress(ExchangeError):
        for chunk in cut(stream + b"\n", {at for at in cuts if at <= len(stream)}):
            frames, failure = _batch(splitter.feed(chunk))
            assert all(isinstance(frame.object, bytes) for frame in frames)
            if isinstance(failure, APIStatusError):
                use(failure)
            else:
                assert failure is None or isinstance(failure, TransportError)


@given(body=changed(st.one_of(STATUSES, JSON).map(lambda tree: json.dumps(tree).encode())), code=st.integers(300, 599))
def test_whatever_a_refusal_holds_it_is_an_error_of_its_status(body, code):
    error = APIStatusError.from_response(code, body)

    use(error)
    assert isinstance(error.code, int)


# --- kubeconfigs -----------------------------------------------------------------------------------------------------

WORDS = st.one_of(
    st.sampled_from(["a", "b", "", "https://h:1", "http://[::1", "https://h:99999", "h", "u:p@h", "true", "1", "\n", "/x", "é", "a\r\nb", "..", "\x00", "\ud800"]),
    st.text(max_size=12),
)  # fmt: skip
VALUES = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.lists(WORDS, max_size=2), st.dictionaries(WORDS, WORDS, max_size=2))  # fmt: skip
EXEC = st.fixed_dictionaries({}, optional={"command": VALUES, "apiVersion": st.one_of(st.just("client.authentication.k8s.io/v1"), VALUES), "args": VALUES, "env": st.one_of(VALUES, st.lists(st.dictionaries(st.sampled_from(["name", "value"]), VALUES), max_size=2)), "provideClusterInfo": VALUES, "interactiveMode": VALUES, "installHint": VALUES})  # fmt: skip
PROVIDER = st.fixed_dictionaries({}, optional={"name": st.sampled_from(["oidc", "x", 5]), "config": st.one_of(VALUES, st.dictionaries(st.sampled_from(["idp-issuer-url", "client-id", "id-token", "expiry", "access-token", "idp-certificate-authority-data", "idp-certificate-authority"]), VALUES))})  # fmt: skip
CLUSTER = st.fixed_dictionaries({}, optional=dict.fromkeys(("server", "proxy-url", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data", "extensions"), VALUES))  # fmt: skip
USER = st.fixed_dictionaries({}, optional={**dict.fromkeys(("token", "tokenFile", "username", "password", "client-key", "client-key-data", "client-certificate", "client-certificate-data", "as", "as-uid", "as-groups", "as-user-extra"), VALUES), "exec": st.one_of(EXEC, VALUES), "auth-provider": st.one_of(PROVIDER, VALUES)})  # fmt: skip


def named(key, inner):
    items = st.fixed_dictionaries({"name": st.one_of(st.just("a"), VALUES)}, optional={key: st.one_of(inner, VALUES)})
    return st.one_of(st.lists(items, min_size=1, max_size=2), VALUES)


SOUND = st.builds(
    lambda cluster, user, server: {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "a", "user": user}],
    },
    CLUSTER,
    USER,
    st.one_of(st.just("https://h:1"), WORDS),
)
LOOSE = st.fixed_dictionaries(
    {},
    optional={
        "current-context": VALUES,
        "contexts": named(
            "context", st.fixed_dictionaries({}, optional={"cluster": VALUES, "user": VALUES, "namespace": VALUES})
        ),
        "clusters": named("cluster", CLUSTER),
        "users": named("user", USER),
    },
)


def minimal(cluster=None, user=None):
    return json.dumps(
        {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://h:1", **(cluster or {})}}],
            "users": [{"name": "a", "user": user or {}}],
        }
    ).encode()


TEXTS = st.one_of(
    st.one_of(SOUND, LOOSE).map(lambda tree: json.dumps(tree).encode()),
    changed(st.one_of(SOUND, LOOSE).map(lambda tree: json.dumps(tree, indent=1).encode())),
    st.binary(max_size=60),
    st.text(alphabet="{}[]:,-&*!|>'\"%@`?# \n\tab01", max_size=40).map(str.encode),
)


@given(text=TEXTS)
@example(text=b"users: &a [*a]")
@example(text=b"a: 2026-99-99")
@example(text=b"[" * 3000)
@example(text=minimal(user={"tokenFile": "\0"}))
@example(text=minimal(user={"token": "\ud800"}))
@example(text=minimal(cluster={"certificate-authority-data": "true"}))
@example(text=minimal(cluster={"server": "https://h:99999"}))
@example(
    text=b'clusters: [{name: a, cluster: {server: "https://[::1"}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a'
)
def test_whatever_a_kubeconfig_holds_it_is_a_config_or_an_error_of_configuration(text):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config"
        path.write_bytes(text)
        with contextlib.suppress(ConfigError):
            config = get_config(str(path), environ={})
            repr(config)
            transport = Transport(config)
            asyncio.run(use_of(transport))


async def use_of(transport):
    transport._request("GET", "/api", [], {"Accept": "x"})
    transport._pool()
    credential = transport.config.credential
    if type(credential).__name__ in {"StaticToken", "BasicAuth", "TokenFile"}:
        headers = await transport._headers("application/json")
        transport._request("GET", "/api", [], headers)
