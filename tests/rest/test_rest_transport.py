"""The transport against a scripted server: what goes out, what comes back, and what every failure becomes."""

import asyncio
import contextlib
import gzip
import json
import socket
import ssl
import tempfile
import threading
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from servers import LONGEST_WAIT

from ctrlruntime import log
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import (
    APIStatusError,
    ConfigError,
    FencedError,
    NotFound,
    RequestTimeoutError,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from ctrlruntime.rest.config import Config, Impersonation
from ctrlruntime.rest.credentials import TokenFile
from ctrlruntime.rest.fence import Actor, Fence, acting
from ctrlruntime.rest.tls import ClientCertificate, TLSConfig
from ctrlruntime.rest.transport import Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers with what the test queued; the last answer is repeated. Keeps the requests."""

    def __init__(self) -> None:
        self.answers: list[Handler | web.Response] = []
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.url = ""

    def will(self, *answers) -> None:
        self.answers += answers

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, tuple):
            status, headers, body = answer
            return web.Response(status=status, headers=headers, body=body)
        return await answer(request)


@contextlib.asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server()
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


@pytest.fixture
async def server():
    async with serving() as server:
        yield server


@contextlib.asynccontextmanager
async def connected(config: Config | str, **options):
    transport = Transport(Config(host=config) if isinstance(config, str) else config, **options)
    try:
        yield transport
    finally:
        await transport.close()


def status(code: int, reason: str, message: str = "no", **details) -> bytes:
    return json.dumps(
        {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


OK = (200, {}, b"{}")


class Counter:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.throttles = 0.0
        self.waits: list[tuple[str, float]] = []

    def request(self, code, method, host):
        self.seen.append((code, method))

    def throttled(self, seconds, host):
        self.throttles += seconds

    def waited(self, seconds, reason, host):
        self.waits.append((reason, seconds))

    def waited_for(self, reason):
        return [seconds for each, seconds in self.waits if each == reason]


class Token:
    """A credential whose token is renewed by `refresh`."""

    def __init__(self) -> None:
        self.number = 1
        self.stale: list = []

    async def headers(self):
        return {"Authorization": f"Bearer {self.number}"}

    async def refresh(self, stale=None):
        self.stale.append(stale)
        self.number += 1
        return True


class Clock:
    """A clock, and a sleep that moves it."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await asyncio.sleep(0)


# --- what goes out ---------------------------------------------------------------------------------------------------


async def test_a_request_carries_path_query_body_and_headers(server):
    server.will((201, {"X-Mine": "1"}, b'{"a":1}'))

    async with connected(Config(host=server.url, user_agent="mine/1")) as transport:
        answer = await transport.request(
            "PATCH",
            "/api/v1/namespaces/default/configmaps/system:a",
            params=[("labelSelector", "a in (b,c),d=e/f"), ("dryRun", "All")],
            body=b"[]",
            content_type="application/json-patch+json",
            accept="application/json;as=Table",
        )

    assert (answer.status, answer.body, answer.headers.get("X-Mine")) == (201, b'{"a":1}', "1")
    request = server.requests[0]
    assert request.method == "PATCH"
    assert request.raw_path.startswith("/api/v1/namespaces/default/configmaps/system:a?")
    assert dict(request.query) == {"labelSelector": "a in (b,c),d=e/f", "dryRun": "All"}
    assert server.bodies == [b"[]"]
    assert request.headers["Content-Type"] == "application/json-patch+json"
    assert request.headers.getall("Accept") == ["application/json;as=Table"]
    assert request.headers["User-Agent"] == "mine/1"
    assert "Cookie" not in request.headers


async def test_a_path_in_the_address_comes_first(server):
    server.will(OK)

    async with connected(server.url + "/k8s/clusters/c-1/") as transport:
        await transport.request("GET", "/api/v1/pods")

    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/pods"


async def test_impersonation_headers_repeat(server):
    server.will(OK)
    who = Impersonation(user="jane", groups=("a", "b"), extra={"Scope": ("x", "y")})

    async with connected(Config(host=server.url, impersonate=who)) as transport:
        await transport.request("GET", "/api")

    headers = server.requests[0].headers
    assert headers["Impersonate-User"] == "jane"
    assert headers.getall("Impersonate-Group") == ["a", "b"]
    assert headers.getall("Impersonate-Extra-scope") == ["x", "y"]


async def test_a_proxy_is_asked_for_the_whole_url(server):
    server.will(OK)

    async with connected(Config(host="http://cluster.invalid:6443", proxy_url=server.url)) as transport:
        await transport.request("GET", "/api")

    assert server.requests[0].raw_path == "http://cluster.invalid:6443/api"
    assert server.requests[0].headers["Host"] == "cluster.invalid:6443"


async def test_a_socks_proxy_reads_no_request(server):
    server.will(OK)
    url = urllib.parse.urlsplit(server.url)
    dialled = []

    async def dial(host, port, target, target_port, *, credentials):
        dialled.append((host, port, target, target_port, credentials))
        made = socket.create_connection((url.hostname, url.port))
        made.setblocking(False)
        return made

    config = Config(host="http://cluster.invalid:6443", proxy_url="socks5://jane:x@proxy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ctrlruntime.rest.socks.dial", dial)
        async with connected(config) as transport:
            await transport.request("GET", "/api")

    assert dialled == [("proxy", 1080, "cluster.invalid", 6443, "jane:x")]
    assert server.requests[0].raw_path == "/api"
    assert "Proxy-Authorization" not in server.requests[0].headers


async def test_a_compressed_answer_is_unpacked(server):
    body = json.dumps({"items": ["x" * 100] * 2000}).encode()
    server.will((200, {"Content-Encoding": "gzip"}, gzip.compress(body)))

    async with connected(server.url) as transport:
        answer = await transport.request("GET", "/api")

    assert answer.body == body
    assert "gzip" in server.requests[0].headers["Accept-Encoding"]


async def test_a_redirect_is_not_followed(server):
    server.will((302, {"Location": "/elsewhere"}, b""))

    async with connected(server.url) as transport:
        with pytest.raises(APIStatusError) as caught:
            await transport.request("GET", "/api")

    assert caught.value.code == 302
    assert len(server.requests) == 1


# --- refusals --------------------------------------------------------------------------------------------------------


async def test_a_failure_is_the_exception_of_its_reason(server):
    server.will((404, {}, status(404, "NotFound", 'pods "a" not found', name="a", kind="pods")))

    async with connected(server.url) as transport:
        with pytest.raises(NotFound, match='pods "a" not found') as caught:
            await transport.request("GET", "/api/v1/namespaces/x/pods/a")

    assert caught.value.details["name"] == "a"


async def test_fetch_hands_on_the_failure_as_the_server_sent_it(server):
    server.will((403, {}, status(403, "Forbidden", "may not")))

    async with connected(server.url) as transport:
        code, body = await transport.fetch("/apis", "application/json")

    assert code == 403
    assert json.loads(body)["reason"] == "Forbidden"


async def test_a_401_refreshes_the_credential_once_and_tells_it_what_was_refused(server):
    server.will((401, {}, status(401, "Unauthorized")), OK)
    token = Token()

    async with connected(Config(host=server.url, credential=token)) as transport:
        await transport.request("POST", "/api", body=b"{}")

    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer 1", "Bearer 2"]
    assert server.bodies == [b"{}", b"{}"]
    assert [stale["Authorization"] for stale in token.stale] == ["Bearer 1"]


async def test_a_second_401_is_raised(server):
    server.will((401, {}, status(401, "Unauthorized")))
    token = Token()

    async with connected(Config(host=server.url, credential=token)) as transport:
        with pytest.raises(Unauthorized):
            await transport.request("GET", "/api")

    assert len(server.requests) == 2
    assert len(token.stale) == 1


async def test_a_stream_refreshes_after_401_too(server):
    server.will((401, {}, status(401, "Unauthorized")), (200, {}, b"line\n"))
    token = Token()

    async with (
        connected(Config(host=server.url, credential=token)) as transport,
        transport.stream("/api", params=[("watch", "true")]) as content,
    ):
        assert await content.read() == b"line\n"

    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer 1", "Bearer 2"]
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(("code", "reason"), [(429, "TooManyRequests"), (503, "ServiceUnavailable")])
async def test_retry_after_is_waited_for(server, code, reason):
    busy = (code, {"Retry-After": "3"}, status(code, reason))
    server.will(busy, busy, OK)
    clock, counter = Clock(), Counter()

    async with connected(server.url, sleep=clock.sleep, counter=counter, rng=lambda: 0.0) as transport:
        await transport.request("PUT", "/api", body=b"1")

    assert clock.slept == [3.0, 3.0]
    assert server.bodies == [b"1"] * 3
    assert counter.seen == [(str(code), "PUT"), (str(code), "PUT"), ("200", "PUT")]
    assert counter.throttles == 6.0


async def test_retries_end(server):
    server.will((429, {"Retry-After": "0"}, status(429, "TooManyRequests")))
    clock = Clock()

    async with connected(server.url, sleep=clock.sleep, rng=lambda: 0.0) as transport:
        with pytest.raises(TooManyRequests):
            await transport.request("GET", "/api", timeout=1000)

    assert clock.slept == pytest.approx([0.1 * 2**n for n in range(10)])  # a server that says 0 is not asked at once


async def test_who_is_refused_together_does_not_come_back_together(server):
    server.will((429, {"Retry-After": "5"}, b""), OK)
    clock = Clock()

    async with connected(server.url, sleep=clock.sleep, rng=lambda: 0.5) as transport:
        await transport.request("GET", "/api")

    assert clock.slept == pytest.approx([5.5])


@pytest.mark.parametrize("said", ["inf", "nan", "1e999", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", "-"])
async def test_a_wait_that_is_no_number_is_none(server, said):
    server.will((503, {"Retry-After": said}, b"busy"))
    clock = Clock()

    async with connected(server.url, sleep=clock.sleep) as transport:
        with pytest.raises(ServiceUnavailable) as caught:
            await transport.request("GET", "/api")

    assert (caught.value.retry_after, clock.slept) == (None, [])


async def test_a_token_file_that_did_not_change_is_asked_with_once(server, tmp_path):
    (tmp_path / "token").write_text("old")
    server.will((401, {}, status(401, "Unauthorized")))

    async with connected(Config(host=server.url, credential=TokenFile(str(tmp_path / "token")))) as transport:
        with pytest.raises(Unauthorized):
            await transport.request("GET", "/api")

    assert len(server.requests) == 1


async def test_a_token_file_that_changed_is_asked_with_again(server, tmp_path):
    (tmp_path / "token").write_text("old")
    server.will((401, {}, status(401, "Unauthorized")), OK)

    async with connected(Config(host=server.url, credential=TokenFile(str(tmp_path / "token")))) as transport:
        await transport.config.credential.headers()
        (tmp_path / "token").write_text("new")
        await transport.request("GET", "/api")

    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


DEEP = b"[" * 100_000


@pytest.mark.parametrize("code", [404, 500])
async def test_a_failure_that_is_nested_too_deeply_is_an_error_of_its_status(server, code):
    server.will((code, {}, DEEP))

    async with connected(server.url) as transport:
        with pytest.raises(APIStatusError) as caught:
            await transport.request("GET", "/api")

    assert caught.value.code == code


async def test_a_wait_longer_than_the_time_limit_is_not_begun(server):
    server.will((429, {"Retry-After": "60"}, status(429, "TooManyRequests")))
    clock = Clock()

    async with connected(server.url, sleep=clock.sleep) as transport:
        with pytest.raises(TooManyRequests) as caught:
            await transport.request("GET", "/api", timeout=5)

    assert caught.value.retry_after == 60
    assert clock.slept == []


@pytest.mark.parametrize(("code", "headers"), [(429, {}), (503, {}), (500, {"Retry-After": "1"})])
async def test_without_a_wait_to_honour_nothing_is_sent_again(server, code, headers):
    server.will((code, headers, b"busy"))
    clock = Clock()

    async with connected(server.url, sleep=clock.sleep) as transport:
        with pytest.raises(APIStatusError, match="busy"):
            await transport.request("GET", "/api")

    assert clock.slept == []
    assert len(server.requests) == 1


async def test_a_refused_stream_carries_its_status(server):
    server.will((503, {"Retry-After": "7"}, b"not now"))

    async with connected(server.url) as transport:
        with pytest.raises(ServiceUnavailable, match="not now") as caught:
            async with transport.stream("/api"):
                pytest.fail("a refused stream was opened")

    assert caught.value.retry_after == 7


async def test_a_warning_is_logged_once(server, monkeypatch):
    lines: list[str] = []

    class Log:
        def warning(self, event, *, warning):
            lines.append(warning)

    monkeypatch.setattr(log, "get_logger", lambda name: Log())
    both = {"Warning": '299 - "v1 is \\"old\\"", 299 - "use v2"'}
    server.will((200, both, b"{}"))

    async with connected(server.url) as transport:
        await transport.request("GET", "/api")
        await transport.request("GET", "/api")

    assert lines == ['v1 is "old"', "use v2"]


# --- no answer -------------------------------------------------------------------------------------------------------


async def test_a_refused_connection_says_where_and_what_to_check():
    counter = Counter()
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()

    async with connected(f"http://127.0.0.1:{port}", counter=counter) as transport:
        with pytest.raises(TransportError, match=rf"GET /api: cannot connect to http://127.0.0.1:{port}.*running"):
            await transport.request("GET", "/api")
        with pytest.raises(TransportError, match="cannot connect"):
            async with transport.stream("/api"):
                pytest.fail("there is no server")

    assert counter.seen == [("<error>", "GET"), ("<error>", "GET")]


async def test_a_connection_that_breaks_is_a_transport_error_and_a_write_is_sent_once(server):
    async def hang_up(request):
        request.transport.close()
        return web.Response()

    server.will(OK, hang_up)

    async with connected(server.url) as transport:
        await transport.request("GET", "/api")  # the connection is in the pool now: only a read may be sent again
        with pytest.raises(TransportError, match=r"PUT /api: http://.* closed the connection without a response"):
            await transport.request("PUT", "/api", body=b"1")

    assert [request.method for request in server.requests] == ["GET", "PUT"]


async def test_a_read_on_a_connection_that_was_closed_meanwhile_is_sent_again_once(server):
    async def hang_up(request):
        request.transport.close()
        return web.Response()

    server.will(OK, hang_up, OK)

    async with connected(server.url) as transport:
        await transport.request("GET", "/api")
        assert (await transport.request("GET", "/api")).status == 200
        server.answers[:] = [hang_up]
        with pytest.raises(TransportError, match="without a response"):
            await transport.request("GET", "/api")

    assert len(server.requests) == 5


async def test_a_token_that_would_break_the_headers_is_refused(server):
    class Broken(Token):
        async def headers(self):
            return {"Authorization": "Bearer a\r\nX-Evil: 1"}

    server.will(OK)
    async with connected(Config(host=server.url, credential=Broken())) as transport:
        with pytest.raises(ConfigError, match="Authorization would contain a line break"):
            await transport.request("GET", "/api")

    assert server.requests == []


async def test_an_answer_that_breaks_off_is_a_transport_error(server):
    async def half(request):
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"{")
        request.transport.close()
        return response

    server.will(half)

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match=r"broke off|failed"):
            await transport.request("GET", "/api")


async def test_no_answer_in_time_is_a_request_timeout(server):
    release = asyncio.Event()

    async def wait(request):
        await release.wait()
        return web.Response()

    server.will(wait)
    counter = Counter()

    async with connected(server.url, counter=counter) as transport:
        with pytest.raises(RequestTimeoutError, match=r"GET /api: no complete response from .* within 0.05 s"):
            await transport.request("GET", "/api", timeout=0.05)
        with pytest.raises(RequestTimeoutError, match=r"sent no headers within 0.05 s"):
            async with transport.stream("/api", headers_within=0.05):
                pytest.fail("no headers were sent")
    release.set()

    assert counter.seen == [("<error>", "GET"), ("<error>", "GET")]


async def test_a_connection_that_is_never_made_ends_at_the_connect_timeout():
    """The server accepts and never speaks TLS."""
    held: list = []
    listener = await asyncio.start_server(lambda reader, writer: held.append(writer), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    config = Config(host=f"https://127.0.0.1:{port}", tls=TLSConfig(insecure_skip_verify=True), connect_timeout=0.05)

    async with listener, connected(config) as transport:
        with pytest.raises(RequestTimeoutError, match=r"no connection to https://.* in time"):
            await transport.request("GET", "/api", timeout=5)
        for writer in held:
            writer.close()


async def test_a_cancelled_request_is_cancelled(server):
    began = asyncio.Event()

    async def wait(request):
        began.set()
        await asyncio.Event().wait()

    server.will(wait)

    async with connected(server.url) as transport:
        task = asyncio.create_task(transport.request("GET", "/api"))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# --- connections --------------------------------------------------------------------------------------------------------


async def test_connections_are_kept_and_close_leaves_nothing_behind(server):
    server.will(OK)
    async with connected(server.url) as transport:
        for _ in range(3):
            await transport.request("GET", "/api")
        peers = {request.transport for request in server.requests}
        pool = transport._pool()

    assert len(peers) == 1
    assert pool.is_closed
    await transport.close()  # once more does no harm


async def test_each_event_loop_has_connections_of_its_own(server):
    server.will(OK)
    statuses: list[int] = []

    async with connected(server.url) as transport:
        ours = transport._pool()

        async def elsewhere():
            answer = await transport.request("GET", "/api")
            assert transport._pool() is not ours
            statuses.append(answer.status)
            await transport.close()

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        await asyncio.to_thread(thread.join, 10)

        assert statuses == [200]
        assert not ours.is_closed
        assert (await transport.request("GET", "/api")).status == 200


async def test_after_a_silent_request_no_connection_made_before_it_is_used_again(server):
    hold = asyncio.Event()

    async def hangs(request):
        await hold.wait()
        return web.json_response({})

    server.will(OK)
    async with connected(server.url) as transport:
        await asyncio.gather(*(transport.request("GET", "/api") for _ in range(3)))
        before = {request.transport for request in server.requests}
        server.answers[:] = [hangs, OK]
        with pytest.raises(RequestTimeoutError):
            await transport.request("GET", "/api", timeout=0.1)
        hold.set()
        await transport.request("GET", "/api")

        assert server.requests[-1].transport not in before


async def test_a_stream_under_way_survives_when_another_request_finds_its_connection_silent(server):
    hold, more = asyncio.Event(), asyncio.Event()

    async def hangs(request):
        await hold.wait()
        return web.json_response({})

    async def goes_on(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one")
        await more.wait()
        await response.write(b"two")
        return response

    server.will(goes_on, hangs)
    async with connected(server.url) as transport, transport.stream("/logs") as content:
        assert await content.read() == b"one"
        with pytest.raises(RequestTimeoutError):
            await transport.request("GET", "/api", timeout=0.1)
        hold.set()
        more.set()
        assert await content.read() == b"two"


# --- the fence -------------------------------------------------------------------------------------------------------


async def test_a_closed_fence_refuses_writes_and_lets_reads_pass(server):
    server.will(OK)
    fence = Fence()
    fence.arm(lambda: None)

    async with connected(server.url, fence=fence) as transport:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            with pytest.raises(FencedError, match="does not hold the lease"):
                await transport.request(method, "/api", body=b"")
        assert server.requests == []
        await transport.request("GET", "/api")
        with acting(Actor("events", fenced=False)):
            await transport.request("POST", "/api", body=b"")

    assert [request.method for request in server.requests] == ["GET", "POST"]


@pytest.mark.parametrize("body", [b"", b"{}"], ids=["empty", "body"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_the_fence_is_asked_again_when_the_connection_is_held(server, method, body):
    """Head and body leave together and at once after that: there is no moment between in which the lease could pass on."""
    server.will(OK)
    now = asyncio.get_running_loop().time
    asked = 0

    def deadline():
        nonlocal asked
        asked += 1
        # `request` asks, then the time limit; both while leading. The lease is lost while the connection is made.
        return now() + 5 if asked <= 2 else None

    fence = Fence(clock=now)
    fence.arm(deadline)

    async with connected(server.url, fence=fence) as transport:
        with pytest.raises(FencedError):
            await transport.request(method, "/api", body=body)
        assert asked == 3
        assert server.requests == []
        fence.arm(lambda: now() + 5)
        assert (await transport.request(method, "/api", body=body)).status == 200

    assert len(server.requests) == 1


async def test_no_write_begins_after_a_jump_of_the_clock(server):
    """As after SIGSTOP and SIGCONT: the lease was fine when the task was last looked at."""
    server.will(OK)
    loop = asyncio.get_running_loop()
    jump = 0.0
    until = loop.time() + 10
    fence = Fence(clock=lambda: loop.time() + jump)
    fence.arm(lambda: until)

    async with connected(server.url, fence=fence) as transport:
        for steps in range(12):
            before, jump = len(server.requests), 0.0
            task = asyncio.ensure_future(transport.request("POST", "/api", body=b"{}"))
            for _ in range(steps):
                await asyncio.sleep(0)
            jump = 60.0
            with contextlib.suppress(FencedError):
                await task
            assert len(server.requests) == before + (task.exception() is None), f"after {steps} steps"


async def test_a_retry_asks_the_fence_again(server):
    server.will((429, {"Retry-After": "1"}, b""), OK)
    leading = True
    now = asyncio.get_running_loop().time
    fence = Fence(clock=now)
    fence.arm(lambda: now() + 5 if leading else None)

    async def sleep(seconds):
        nonlocal leading
        leading = False

    async with connected(server.url, fence=fence, sleep=sleep) as transport:
        with pytest.raises(FencedError):
            await transport.request("POST", "/api", body=b"")

    assert len(server.requests) == 1


async def test_a_write_is_cut_off_when_leadership_ends(server):
    async def wait(request):
        await asyncio.Event().wait()

    server.will(wait)
    now = asyncio.get_running_loop().time
    until = now() + 0.05
    fence = Fence(clock=now)
    fence.arm(lambda: until)

    async with connected(server.url, fence=fence) as transport:
        with pytest.raises(RequestTimeoutError, match="POST /api: aborted"):
            await transport.request("POST", "/api", body=b"", timeout=30)
    assert now() < until + 5


async def test_a_renewed_lease_lets_a_slow_write_end(server):
    release = asyncio.Event()

    async def slow(request):
        await release.wait()
        return web.Response(body=b"done")

    server.will(slow)
    now = asyncio.get_running_loop().time
    until = [now() + 0.05]
    renewals = 0

    def deadline():
        nonlocal renewals
        renewals += 1
        if renewals == 5:
            release.set()
        until[0] = now() + 0.05
        return until[0]

    fence = Fence(clock=now)
    fence.arm(deadline)

    async with connected(server.url, fence=fence) as transport:
        answer = await transport.request("POST", "/api", body=b"", timeout=10)

    assert answer.body == b"done"


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return make_authority("test authority")


def server_context(authority, names, *, clients=ssl.CERT_OPTIONAL):
    pair = authority.server(names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = clients
    context.load_verify_locations(cadata=authority.pem.decode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.pem"
        path.write_bytes(pair.key + pair.certificate)
        context.load_cert_chain(path)
    return context


async def who(request):
    certificate = request.transport.get_extra_info("peercert") or {}
    name = dict(part[0] for part in certificate.get("subject", ())).get("commonName", "")
    return web.Response(body=name.encode())


async def test_certificates_from_data_and_from_files(authority, tmp_path):
    pair = authority.client("jane", [])
    for name, content in (("ca", authority.pem), ("cert", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(content)
    data = TLSConfig(ca_data=authority.pem, cert_data=pair.certificate, key_data=pair.key)
    files = TLSConfig(ca_file=str(tmp_path / "ca"), cert_file=str(tmp_path / "cert"), key_file=str(tmp_path / "key"))

    async with serving(server_context(authority, ["127.0.0.1"])) as server:
        server.will(who)
        for tls in (data, files):
            async with connected(Config(host=server.url, tls=tls)) as transport:
                assert (await transport.request("GET", "/api")).body == b"jane"


async def test_an_untrusted_certificate_says_so_and_insecure_takes_it(authority):
    other = make_authority("another")

    async with serving(server_context(authority, ["127.0.0.1"])) as server:
        server.will(OK)
        async with connected(Config(host=server.url, tls=TLSConfig(ca_data=other.pem))) as transport:
            with pytest.raises(TransportError, match=r"certificate of https://.* is not trusted"):
                await transport.request("GET", "/api")
        async with connected(Config(host=server.url, tls=TLSConfig(insecure_skip_verify=True))) as transport:
            assert (await transport.request("GET", "/api")).status == 200


async def test_the_server_name_of_the_config_is_the_one_checked(authority):
    async with serving(server_context(authority, ["kubernetes.example"])) as server:
        server.will(OK)
        async with connected(Config(host=server.url, tls=TLSConfig(ca_data=authority.pem))) as transport:
            with pytest.raises(TransportError, match="not trusted"):
                await transport.request("GET", "/api")
        named = TLSConfig(ca_data=authority.pem, server_name="kubernetes.example")
        async with connected(Config(host=server.url, tls=named)) as transport:
            assert (await transport.request("GET", "/api")).status == 200
            async with transport.stream("/api"):
                pass


async def test_a_replaced_client_certificate_is_shown_without_a_restart(authority, tmp_path):
    def write(name):
        pair = authority.client(name, [])
        (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)

    write("before")
    path = str(tmp_path / "pair.pem")
    tls = TLSConfig(ca_data=authority.pem, cert_file=path, key_file=path)

    async with serving(server_context(authority, ["127.0.0.1"])) as server:
        server.will(who)
        async with connected(Config(host=server.url, tls=tls)) as transport:
            assert (await transport.request("GET", "/api")).body == b"before"
            write("and afterwards")
            transport.tls._checked = float("-inf")  # files are looked at once a second
            assert (await transport.request("GET", "/api")).body == b"and afterwards"


async def test_a_credential_may_bring_the_client_certificate(authority):
    pair = authority.client("plugin", [])

    class Plugin(Token):
        client_certificate = ClientCertificate(pair.certificate, pair.key)

    config_tls = TLSConfig(ca_data=authority.pem)
    async with serving(server_context(authority, ["127.0.0.1"])) as server:
        server.will(who)
        async with connected(Config(host=server.url, tls=config_tls, credential=Plugin())) as transport:
            assert (await transport.request("GET", "/api")).body == b"plugin"


async def test_a_server_without_tls_is_named_as_that(server):
    server.will(OK)

    async with connected(server.url.replace("http://", "https://")) as transport:
        with pytest.raises(TransportError, match=r"GET /api: "):
            await transport.request("GET", "/api")


# --- how many at once, and how many a second -----------------------------------------------------------------------------


class Held:
    """Answers requests when the test says so; a watch, as soon as it comes, and without an end."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.order: list[str] = []
        self.connections: set[object] = set()
        self.under_way = self.most = 0

    async def __call__(self, request):
        if request.path == "/watch":
            answer = web.StreamResponse()
            await answer.prepare(request)
            await self.release.wait()
            return answer
        self.order.append(request.path)
        self.connections.add(request.transport)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.release.wait()
        self.under_way -= 1
        return web.Response(body=b"{}")


async def until(condition):
    while not condition():  # noqa: ASYNC110 - what it waits for is what a server saw
        await asyncio.sleep(0)


async def test_requests_beyond_the_bound_wait_their_turn_and_open_no_connection(server):
    held, counter = Held(), Counter()
    server.will(held)
    config = Config(host=server.url, max_connections=4)
    async with connected(config, counter=counter) as transport, asyncio.timeout(LONGEST_WAIT):
        tasks = [asyncio.ensure_future(transport.request("POST", f"/{i}", body=b"{}")) for i in range(40)]
        await until(lambda: held.under_way == 4)
        assert len(held.connections) == 4
        held.release.set()
        await asyncio.gather(*tasks)

    assert held.most == 4
    assert len(held.connections) == 4
    assert sorted(held.order) == sorted(f"/{i}" for i in range(40))
    assert len(counter.waited_for("connection")) == 36
    # In the order they asked: each group of four may answer in any order.
    started = [int(path[1:]) // 4 for path in held.order]
    assert all(abs(group - position // 4) <= 1 for position, group in enumerate(started))


async def test_watches_do_not_count_and_do_not_starve_writes(server):
    held = Held()
    server.will(held)
    config = Config(host=server.url, max_connections=1)
    async with connected(config) as transport, contextlib.AsyncExitStack() as stack, asyncio.timeout(LONGEST_WAIT):
        for _ in range(10):
            await stack.enter_async_context(transport.stream("/watch"))
        write = asyncio.ensure_future(transport.request("POST", "/write", body=b"{}"))
        await until(lambda: held.order == ["/write"])
        await stack.enter_async_context(transport.stream("/watch"))  # and a write does not hold up a watch
        held.release.set()
        await write


async def test_a_request_that_gets_no_turn_says_so_and_the_connections_stay_trusted(server):
    held = Held()
    server.will(held)
    async with connected(Config(host=server.url, max_connections=1)) as transport, asyncio.timeout(LONGEST_WAIT):
        first = asyncio.ensure_future(transport.request("GET", "/first"))
        await until(lambda: held.under_way == 1)
        with pytest.raises(
            RequestTimeoutError, match=r"cannot send GET /second: all 1 connections were in use for 0\.01 s\."
        ):
            await transport.request("GET", "/second", timeout=0.01)
        held.release.set()
        await first
        await transport.request("GET", "/third")

    assert len(held.connections) == 1
    assert held.order == ["/first", "/third"]


async def test_a_limit_of_requests_a_second_lets_a_burst_through_and_then_spaces_them(server):
    server.will(OK)
    clock, counter, slept = [100.0], Counter(), []

    async def sleep(seconds):
        slept.append(seconds)
        clock[0] += seconds

    config = Config(host=server.url, qps=2, burst=3)
    async with connected(config, counter=counter, clock=lambda: clock[0], sleep=sleep) as transport:
        for _ in range(5):
            await transport.request("GET", "/")
        assert slept == [0.5, 0.5]
        assert counter.waited_for("rate") == [0.5, 0.5]
        clock[0] += 60
        for _ in range(3):
            await transport.request("GET", "/")
        assert len(slept) == 2
        with pytest.raises(RequestTimeoutError, match="the limit of 2 requests a second leaves no room within"):
            await transport.request("GET", "/", timeout=0.1)
    assert len(server.requests) == 8


async def test_without_a_limit_nothing_waits(server):
    server.will(OK)
    counter = Counter()
    async with connected(server.url, counter=counter) as transport:
        for _ in range(50):
            await transport.request("GET", "/")
    assert counter.waits == []
