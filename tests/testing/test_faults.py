"""The fault proxy, before the embedded server: what each fault does to a client, and that it does nothing else."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.errors import ConfigError, Expired, Forbidden, TooManyRequests, TransportError, Unauthorized
from ctrlruntime.rest.config import get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.watch import frames
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.faults import FaultProxy, Match, freeze, frozen, thaw
from ctrlruntime.testing.faults.match import describe

MAPS = Match(resource="configmaps")
LISTS = Match(verb="list", resource="configmaps")
WATCHES = Match(verb="watch", resource="configmaps")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def server():
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
def namespace(server):
    return server.create_namespace()


@pytest.fixture
def proxy(server):
    with FaultProxy(server) as made:
        yield made


@pytest.fixture
async def transport(proxy):
    made = Transport(proxy.config)
    yield made
    await made.close()


@pytest.fixture
def path(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


def create(server, path, name, **data):
    return server.connection.request("POST", path, {"metadata": {"name": name}, "data": data})


async def names(transport, path):
    answer = await transport.request("GET", path)
    return [
        item["metadata"]["name"]
        for item in json.loads(answer.body)["items"]
        if item["metadata"]["name"] != "kube-root-ca.crt"
    ]


@asynccontextmanager
async def watching(transport, proxy, path, version="0"):
    """A watch as a queue of (type, name); its end is put there, too: None or the error."""
    got: asyncio.Queue = asyncio.Queue()

    async def run():
        try:
            params = [("watch", "true"), *([("resourceVersion", version)] if version else [])]
            async for batch in frames(transport, path, params=params, accept="application/json"):
                for frame in batch:
                    tree = json.loads(frame.object)
                    if tree["metadata"]["name"] != "kube-root-ca.crt":
                        got.put_nowait((frame.type, tree["metadata"]["name"]))
            got.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            got.put_nowait(error)

    task = asyncio.create_task(run())
    since = time.monotonic()
    await proxy.wait_for(WATCHES, since=since, answered=True)
    yield got
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def next_of(queue):
    return await asyncio.wait_for(queue.get(), LONGEST_WAIT)


@asynccontextmanager
async def given_up(request):
    """A request under way, that the client cancels at the end of the block."""
    task = asyncio.create_task(request)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()


async def struck(fault):
    await eventually(lambda: fault.hits == 1)


async def stays_silent(queue, seconds=0.15):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), seconds)
    return True


def version_of(server, path):
    return server.connection.request("GET", path)["metadata"]["resourceVersion"]


# --- what passes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "target", "expected"),
    [
        ("GET", "/api/v1/pods", ("list", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods?watch=true", ("watch", "", "pods", "a", "")),
        ("GET", "/api/v1/namespaces/a/pods/b", ("get", "", "pods", "a", "b")),
        ("PUT", "/apis/apps/v1/namespaces/a/deployments/b/status", ("update", "apps", "deployments/status", "a", "b")),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", ("create", "apps", "deployments", "a", "")),
        ("PATCH", "/api/v1/nodes/n", ("patch", "", "nodes", "", "n")),
        ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "", "pods", "a", "")),
        ("DELETE", "/api/v1/namespaces/a", ("delete", "", "namespaces", "", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "namespaces/finalize", "", "a")),
        ("GET", "/apis/apps/v1", ("get", "", "", "", "")),
    ],
)
def test_a_request_is_described_as_in_rbac(method, target, expected):
    request = describe(0.0, method, target)

    assert (request.verb, request.group, request.resource, request.namespace, request.name) == expected


def test_a_match_covers_a_subresource_only_when_it_says_so():
    status = describe(0.0, "PUT", "/api/v1/namespaces/a/pods/b/status")

    assert not Match(resource="pods").covers(status)
    assert Match(resource="pods/*", verb={"update", "patch"}).covers(status)
    assert Match().covers(status)


async def test_without_faults_requests_pass_and_are_noted(proxy, transport, server, path, namespace):
    await transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')

    assert await names(transport, path) == ["a"]
    assert [(r.verb, r.namespace, r.status) for r in proxy.matching(MAPS)] == [
        ("create", namespace, 201),
        ("list", namespace, 200),
    ]
    assert server.connection.request("GET", f"{path}/a")["metadata"]["name"] == "a"


async def test_another_user_keeps_his_own_rights_behind_the_proxy(proxy, server, path):
    text = proxy.kubeconfig_for(server.add_user("jane"))
    file = proxy.kubeconfig_path.with_name("jane")
    file.write_text(text)
    transport = Transport(get_config(str(file)))

    with pytest.raises(Forbidden, match="jane"):
        await transport.request("GET", path)

    await transport.close()


def test_an_unchanged_answer_passes_without_headers_of_a_body(proxy):
    # Clients that keep answers (kubectl's discovery) take over the headers of a 304.
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster_of(proxy)["certificate-authority-data"]).decode()
    )
    parts = urlsplit(proxy.url)
    token = json.loads(proxy.kubeconfig)["users"][0]["user"]["token"]
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context, timeout=LONGEST_WAIT)
    headers = {"Authorization": f"Bearer {token}", "Accept": AGGREGATED}
    try:
        connection.request("GET", "/apis", headers=headers)
        first = connection.getresponse()
        first.read()
        connection.request("GET", "/apis", headers={**headers, "If-None-Match": first.headers["ETag"]})
        second = connection.getresponse()
        second.read()
    finally:
        connection.close()

    assert (first.status, second.status) == (200, 304)
    assert second.headers["Content-Length"] is None


def cluster_of(proxy):
    return json.loads(proxy.kubeconfig)["clusters"][0]["cluster"]


# --- connections -----------------------------------------------------------------------------------------------------


async def test_a_stalled_watch_swallows_what_comes_and_stays_dead(proxy, transport, server, path):
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.stall(WATCHES) as fault:
            create(server, path, "a")
            assert await stays_silent(got)
            assert await names(transport, path) == ["a"]  # other requests pass
        create(server, path, "b")
        assert await stays_silent(got)

    assert fault.hits == 1
    assert proxy.open_streams(WATCHES) == 0


async def test_a_black_hole_swallows_old_and_new_connections(proxy, transport, path):
    await names(transport, path)

    with proxy.black_hole():
        with pytest.raises(TransportError):
            await transport.request("GET", path, timeout=0.2)
        with pytest.raises(TransportError):
            await transport.request("GET", path, timeout=0.2)

    assert await names(transport, path) == []


async def test_refused_connections_are_refused_until_the_block_ends(proxy, transport, path):
    async with watching(transport, proxy, path) as got:
        with proxy.refuse():
            assert isinstance(await next_of(got), TransportError)
            with pytest.raises(TransportError, match="cannot connect"):
                await transport.request("GET", path)

    assert await names(transport, path) == []


async def test_a_cut_hits_open_watches_and_new_requests(proxy, transport, path):
    async with watching(transport, proxy, path) as got:
        with proxy.reset(MAPS):
            assert isinstance(await next_of(got), TransportError)
            with pytest.raises(TransportError):
                await transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')

    assert not any(request.reached_server for request in proxy.matching(Match(verb="create")))


async def test_a_cut_after_some_bytes_breaks_inside_a_frame(proxy, transport, server, path):
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.reset(WATCHES, after=20):
            create(server, path, "a")
            assert isinstance(await next_of(got), TransportError)

    assert proxy.matching(WATCHES)[0].frames == 0


async def test_an_ended_watch_ends_cleanly(proxy, transport, path):
    async with watching(transport, proxy, path) as got:
        with proxy.close_watches(WATCHES):
            assert await next_of(got) is None


# --- late and lost ---------------------------------------------------------------------------------------------------


async def test_delayed_frames_come_late_and_in_order(proxy, transport, server, path):
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.delay(WATCHES, 0.3) as delay:
            began = time.monotonic()
            create(server, path, "a")
            await struck(delay)
        create(server, path, "b")

        assert [await next_of(got), await next_of(got)] == [("ADDED", "a"), ("ADDED", "b")]
    assert time.monotonic() - began >= 0.3


async def test_a_write_whose_answer_is_late_is_done_when_the_client_gives_up(proxy, transport, server, path):
    with proxy.delay(Match(verb="create"), 1.0) as delay:
        async with given_up(transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')):
            await struck(delay)

    assert server.connection.request("GET", f"{path}/a")


async def test_a_late_request_arrives_although_the_client_gave_up(proxy, transport, server, path):
    with proxy.delay(Match(verb="create"), 1.0, at="request") as delay:
        async with given_up(transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')):
            await struck(delay)

    assert await eventually(lambda: server.connection.request("GET", f"{path}/a"))
    [request] = proxy.matching(Match(verb="create"))
    assert request.reached_server
    assert time.monotonic() - request.time >= 1.0


async def test_a_late_request_is_answered_when_the_client_waits(proxy, transport, path):
    with proxy.delay(MAPS, 0.1, at="request") as delay:
        answer = await transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')
        assert "a" in await names(transport, path)

    assert answer.status == 201
    assert delay.hits == 2


async def test_an_answer_cut_off_leaves_the_write_done(proxy, transport, server, path):
    with proxy.drop_response(Match(verb="create"), how="reset"), pytest.raises(TransportError):
        await transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')

    assert server.connection.request("GET", f"{path}/a")
    assert await names(transport, path) == ["a"]


async def test_an_answer_that_never_comes_leaves_the_write_done(proxy, transport, server, path):
    with proxy.drop_response(Match(verb="create"), how="silence") as drop:
        async with given_up(transport.request("POST", path, body=b'{"metadata":{"name":"a"}}')):
            await struck(drop)

    assert server.connection.request("GET", f"{path}/a")
    assert await names(transport, path) == ["a"]


async def test_a_dripping_watch_sends_bytes_and_no_frames(proxy, transport, server, path):
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.slow_body(WATCHES, 0.02):
            create(server, path, "a")
            assert await stays_silent(got)

        assert await next_of(got) == ("ADDED", "a")


@pytest.mark.parametrize("size", [1, 3, 7, 64])
async def test_split_frames_arrive_whole(proxy, transport, server, path, size):
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.split(WATCHES, size, pause=0.0):
            create(server, path, "a", text="äöü€😀")
            assert await next_of(got) == ("ADDED", "a")


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_throttled_requests_carry_retry_after_and_do_not_reach_the_server(proxy, transport, path):
    began = time.monotonic()

    with proxy.throttle(LISTS, retry_after=0.2, count=2) as fault:
        assert await names(transport, path) == []

    assert fault.hits == 2
    assert time.monotonic() - began >= 0.4
    assert [r.reached_server for r in proxy.matching(LISTS)] == [False, False, True]


async def test_throttled_for_good_is_an_error_with_the_time_to_wait(proxy, transport, path):
    with proxy.throttle(LISTS, retry_after=30.0), pytest.raises(TooManyRequests) as caught:
        await transport.request("GET", path, timeout=1.0)

    assert caught.value.retry_after == 30.0


async def test_a_denied_request_says_what_was_denied(proxy, transport, path):
    with proxy.deny(LISTS), pytest.raises(Forbidden, match='list resource "configmaps"'):
        await transport.request("GET", path)


async def test_expiry_comes_as_an_event_in_open_watches(proxy, transport, path):
    async with watching(transport, proxy, path) as got:
        with proxy.expire(WATCHES, "event") as fault:
            assert isinstance(await next_of(got), Expired)

    assert fault.hits == 1


async def test_expiry_comes_as_http_status_for_the_next_watch(proxy, transport, path):
    with proxy.expire(WATCHES, "http"):
        async with watching(transport, proxy, path) as got:
            assert isinstance(await next_of(got), Expired)
        async with watching(transport, proxy, path) as got:
            assert await stays_silent(got)


async def test_expiry_of_a_page_leaves_first_pages_alone(proxy, transport, server, path):
    create(server, path, "a")
    with proxy.expire(LISTS, "page"):
        first = await transport.request("GET", path, params=[("limit", "1")])
        token = json.loads(first.body)["metadata"]["continue"]
        with pytest.raises(Expired):
            await transport.request("GET", path, params=[("limit", "1"), ("continue", token)])


async def test_only_the_rotated_token_is_accepted(proxy, transport, path):
    file = proxy.kubeconfig_path.with_name("rotated")
    tree = json.loads(proxy.kubeconfig)
    tree["users"][0]["user"] = {"token": "fresh"}
    file.write_text(json.dumps(tree))
    rotated = Transport(get_config(str(file)))

    with proxy.accept_only_token("fresh"):
        with pytest.raises(Unauthorized):
            await transport.request("GET", path)
        assert await names(rotated, path) == []
    with pytest.raises(Unauthorized):  # the server does not know it
        await rotated.request("GET", path)

    await rotated.close()


# --- lies ------------------------------------------------------------------------------------------------------------


async def test_poison_changes_lists_and_frames(proxy, transport, server, path):
    def rename(item):
        return item | {"metadata": item["metadata"] | {"name": item["metadata"]["name"] + "-poisoned"}}

    create(server, path, "a")
    async with watching(transport, proxy, path, version_of(server, path)) as got:
        with proxy.rewrite(MAPS, rename) as fault:
            create(server, path, "b")
            assert await next_of(got) == ("ADDED", "b-poisoned")
            assert "a-poisoned" in await names(transport, path)

    assert fault.hits


async def test_poison_can_leave_objects_out_and_break_their_json(proxy, transport, server, path):
    create(server, path, "a")

    with proxy.rewrite(LISTS, lambda _: None):
        assert await names(transport, path) == []
    with proxy.rewrite(LISTS, lambda _: b"{broken"):
        answer = await transport.request("GET", path)

    assert b"[{broken" in answer.body


async def test_an_exception_in_a_poison_is_raised_where_its_block_ends(proxy, transport, server, path):
    create(server, path, "a")

    with pytest.raises(KeyError, match="nothing"), proxy.rewrite(LISTS, lambda item: item["nothing"]):
        assert "a" in await names(transport, path)


async def test_rewound_lists_are_answered_as_they_were_before(proxy, transport, server, path):
    create(server, path, "a")
    await names(transport, path)
    create(server, path, "b")

    with proxy.serve_stale(LISTS):
        assert await names(transport, path) == ["a"]

    assert await names(transport, path) == ["a", "b"]


# --- the kit itself --------------------------------------------------------------------------------------------------


async def test_nested_faults_hold_together_and_end_one_by_one(proxy, transport, path):
    with proxy.delay(LISTS, 0.2):
        with proxy.respond(LISTS, 503, message="nested"), pytest.raises(TransportError):
            await transport.request("GET", path, timeout=0.1)
        began = time.monotonic()
        await names(transport, path)

    assert time.monotonic() - began >= 0.2


async def test_waiting_for_requests_that_do_not_come_says_which_did(proxy, transport, path):
    await names(transport, path)

    with pytest.raises(AssertionError, match=r"0 of 1 expected requests.*list configmaps"):
        await proxy.wait_for(Match(verb="delete"), timeout=0.05)
    with pytest.raises(AssertionError):
        proxy.wait(Match(verb="delete"), timeout=0.05)
    proxy.forget()
    assert proxy.requests == []


def test_a_proxy_that_does_not_run_says_so(server):
    proxy = FaultProxy(server)

    with pytest.raises(ConfigError, match="not running"):
        _ = proxy.url
    with pytest.raises(ConfigError, match="not running"), proxy.stall():
        pass
    proxy.stop()


def state_of(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_frozen_process_stands_still():
    code = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdin.write("a\n")
        process.stdin.flush()
        assert process.stdout.readline() == "a\n"
        with frozen(process):
            assert state_of(process) == "T"
        freeze(process)
        thaw(process)
        process.stdin.write("b\n")
        process.stdin.flush()
        assert process.stdout.readline() == "b\n"
    finally:
        process.kill()
        process.communicate()
    thaw(process.pid)


def test_the_fixture_gives_a_proxy_before_the_environment(fault_proxy, envtest):
    assert fault_proxy.url != envtest.url
    assert fault_proxy.config.host == fault_proxy.url
