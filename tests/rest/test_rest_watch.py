"""Watches as frames, and the pages of a collection, against a server that sends what the test says."""

import asyncio
import json

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from servers import LONGEST_WAIT
from test_rest_transport import connected, serving, status

from ctrlruntime.errors import AnswerTooLargeError, APIStatusError, Expired, Gone, RequestTimeoutError, TransportError
from ctrlruntime.rest.collection import Collection, resource_path
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.connection import OversizeError
from ctrlruntime.rest.content import METADATA_ITEM, METADATA_LIST
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.rest.watch import Frame, Interrupt, LineSplitter

PODS = APIResource(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
NODES = APIResource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
DEPLOYMENTS = APIResource(group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True)


@pytest.fixture
async def server():
    async with serving() as server:
        yield server


def line(kind: str, obj: object) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def chunks(*parts: bytes, hold: asyncio.Event | None = None):
    """Send these pieces, each as one chunk, and end cleanly (after `hold` is set)."""

    async def handle(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        if hold is not None:
            await hold.wait()
        return response

    return handle


async def frames_of(collection, seen: list[Frame] | None = None, **options) -> list[Frame]:
    """Return all frames; those before a failure are in `seen`."""
    seen = [] if seen is None else seen
    async for batch in collection.watch(**{"resource_version": "5", "timeout": 30.0, **options}):
        seen += batch
    return seen


# --- lines -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=30).filter(lambda part: b"\n" not in part), max_size=12), st.data())
def test_any_chunking_gives_the_same_lines(lines, data):
    stream = b"".join(part + b"\n" for part in lines)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    splitter = LineSplitter()

    found = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += splitter.feed(stream[start:end])

    assert found == [part for part in lines if part]
    assert splitter.pending == 0


def test_an_incomplete_line_is_held():
    splitter = LineSplitter()

    assert splitter.feed(b"a\nbc") == [b"a"]
    assert splitter.pending == 2
    assert splitter.feed(b"d") == []
    assert splitter.feed(b"\n") == [b"bcd"]
    assert splitter.pending == 0


def test_a_line_over_the_limit_is_given_up():
    splitter = LineSplitter(limit=10)
    splitter.feed(b"12345678")

    with pytest.raises(OversizeError, match=r"longer than 10 bytes.*Config.max_frame_size"):
        splitter.feed(b"901")


@given(st.data())
def test_a_line_over_the_limit_is_given_up_however_it_is_cut(data):
    stream = b"1234567890\n" + b"12345678901\n"
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    splitter = LineSplitter(limit=10)

    def feed_all():
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            splitter.feed(stream[start:end])

    with pytest.raises(OversizeError):
        feed_all()


async def test_a_frame_over_the_limit_says_which_request_and_which_option(server):
    server.will(chunks(line("ADDED", {"data": "x" * 2000})))

    async with connected(Config(host=server.url, max_frame_size=1000)) as transport:
        with pytest.raises(AnswerTooLargeError, match=r"GET /api/v1/pods: a watch frame .*Config.max_frame_size"):
            await frames_of(Collection(transport, PODS))


# --- watches ---------------------------------------------------------------------------------------------------------


async def test_a_watch_asks_for_bookmarks_and_a_timeout(server):
    server.will(chunks(line("ADDED", {"a": 1}), line("BOOKMARK", {"b": 2})))

    async with connected(server.url) as transport:
        collection = Collection(
            transport, PODS, namespace="default", labels="a=b", fields="spec.nodeName=n", shards="shardRange(…)"
        )
        frames = await frames_of(collection, timeout=30.4)

    assert frames == [Frame("ADDED", b'{"a": 1}'), Frame("BOOKMARK", b'{"b": 2}')]
    request = server.requests[0]
    assert request.path == "/api/v1/namespaces/default/pods"
    assert dict(request.query) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "30",
        "resourceVersion": "5",
        "labelSelector": "a=b",
        "fieldSelector": "spec.nodeName=n",
        "shardSelector": "shardRange(…)",
    }


async def test_a_streaming_list_is_asked_for(server):
    server.will(chunks())

    async with connected(server.url) as transport:
        collection = Collection(transport, NODES, namespace="ignored", metadata_only=True)
        assert await frames_of(collection, resource_version="", initial_events=True) == []

    request = server.requests[0]
    assert request.path == "/api/v1/nodes"
    assert request.query["sendInitialEvents"] == "true"
    assert request.query["resourceVersionMatch"] == "NotOlderThan"
    assert "resourceVersion" not in request.query
    assert request.headers["Accept"] == METADATA_ITEM


async def test_a_frame_of_8_mib_passes(server):
    big = line("ADDED", {"data": "x" * (8 * 1024 * 1024)})
    server.will(chunks(big, line("DELETED", {})))

    async with connected(server.url) as transport:
        frames = await frames_of(Collection(transport, PODS))

    assert [frame.type for frame in frames] == ["ADDED", "DELETED"]
    assert len(frames[0].object) > 8 * 1024 * 1024


DEEP = b"[" * 100_000
WITH_DATA = b'{"kind": "Secret", "data": {"password": "czNjcmV0"}'


@pytest.mark.parametrize(
    "frame", [DEEP, b'{"type": "ADDED", "object": ' + DEEP, b'{"type": "ERROR", "object": ' + DEEP, WITH_DATA]
)
async def test_a_frame_that_cannot_be_read_is_an_error_that_does_not_show_it(server, frame):
    server.will(chunks(frame + b"\n"))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match="not a watch frame") as caught:
            await frames_of(Collection(transport, PODS))

    assert "czNjcmV0" not in str(caught.value)


@pytest.mark.parametrize("body", [DEEP, b'{"items": [' + DEEP, WITH_DATA, b"<html>log in</html>", b'{"metadata": 5}'])
async def test_a_list_that_cannot_be_read_is_an_error_that_does_not_show_it(server, body):
    server.will((200, {}, body))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match="the response is not a list") as caught:
            await Collection(transport, PODS).page()

    assert "czNjcmV0" not in str(caught.value)


@pytest.mark.parametrize(("reason", "error"), [("Expired", Expired), ("Gone", Gone)])
async def test_an_error_frame_is_raised_after_the_frames_before_it(server, reason, error):
    failure = json.loads(status(410, reason, "too old resource version"))
    server.will(chunks(line("ADDED", {"a": 1}) + line("ERROR", failure)))
    seen: list[Frame] = []

    async with connected(server.url) as transport:
        with pytest.raises(error, match="too old"):
            await frames_of(Collection(transport, PODS), seen, timeout=30)

    assert [frame.type for frame in seen] == ["ADDED"]


async def test_a_refused_watch_raises_its_reason(server):
    server.will((410, {}, status(410, "Expired", "too old")))

    async with connected(server.url) as transport:
        with pytest.raises(Expired):
            await frames_of(Collection(transport, PODS))


async def test_what_is_no_frame_is_a_transport_error(server):
    server.will(chunks(b"<html>\n"))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match="not a watch frame"):
            await frames_of(Collection(transport, PODS))


async def test_a_watch_that_ends_inside_a_frame_is_a_transport_error(server):
    server.will(chunks(b'{"type":"ADDED",'))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match="ended inside a frame"):
            await frames_of(Collection(transport, PODS))


async def test_a_watch_whose_connection_breaks_is_a_transport_error(server):
    async def broken(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(line("ADDED", {}))
        request.transport.close()
        return response

    server.will(broken)
    seen: list[Frame] = []

    async with connected(server.url) as transport:
        with pytest.raises(TransportError):
            await frames_of(Collection(transport, PODS), seen, timeout=30)

    assert len(seen) == 1


async def test_a_watch_that_does_not_end_in_time_is_taken_for_dead(server):
    hold = asyncio.Event()
    server.will(chunks(line("ADDED", {}), hold=hold))
    seen: list[Frame] = []

    async with connected(server.url) as transport:
        with pytest.raises(RequestTimeoutError, match=r"did not end within 1.05 s.*treated as dead"):
            await frames_of(Collection(transport, PODS), seen, timeout=1.0, timeout_grace=0.05)
    hold.set()

    assert [frame.type for frame in seen] == ["ADDED"]


async def test_frames_are_yielded_as_they_come(server):
    hold = asyncio.Event()
    server.will(chunks(line("ADDED", {}), hold=hold))

    async with connected(server.url) as transport:
        watch = Collection(transport, PODS).watch(resource_version="5", timeout=30)
        async with asyncio.timeout(LONGEST_WAIT):
            first = await anext(watch)
        await watch.aclose()
    hold.set()

    assert [frame.type for frame in first] == ["ADDED"]


@pytest.mark.parametrize("moment", ["before it starts", "while it waits", "after it has ended"])
async def test_an_interrupted_watch_ends_without_an_error(server, moment):
    hold, interrupt = asyncio.Event(), Interrupt()
    server.will(chunks(line("ADDED", {}), hold=hold))
    seen: list[Frame] = []

    async with connected(server.url) as transport:
        if moment == "before it starts":
            interrupt.set()
        async with asyncio.timeout(LONGEST_WAIT):
            async for batch in Collection(transport, PODS).watch(resource_version="5", timeout=30, interrupt=interrupt):
                seen += batch
                if moment == "after it has ended":
                    hold.set()
                else:
                    asyncio.get_running_loop().call_later(0.01, interrupt.set)
        interrupt.set()
    hold.set()

    assert len(seen) == (moment != "before it starts")


# --- pages -----------------------------------------------------------------------------------------------------------


async def test_a_page_holds_the_bytes_of_its_items(server):
    body = b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[{"a": 1},{}]}'
    server.will((200, {}, body))

    async with connected(server.url) as transport:
        collection = Collection(transport, DEPLOYMENTS, metadata_only=True)
        page = await collection.page(limit=2, continue_token="s", resource_version="0", match="NotOlderThan")

    assert (page.items, page.resource_version, page.continue_token) == ([b'{"a": 1}', b"{}"], "7", "t")
    assert page.remaining_item_count == 3
    request = server.requests[0]
    assert request.path == "/apis/apps/v1/deployments"
    assert request.headers["Accept"] == METADATA_LIST
    assert dict(request.query) == {
        "limit": "2",
        "continue": "s",
        "resourceVersion": "0",
        "resourceVersionMatch": "NotOlderThan",
    }


async def test_null_items_are_none(server):
    server.will((200, {}, b'{"metadata":{},"items":null}'))

    async with connected(server.url) as transport:
        assert (await Collection(transport, PODS).page()).items == []


async def test_an_answer_that_is_no_list_is_a_transport_error(server):
    server.will((200, {}, b"<html>"))

    async with connected(server.url) as transport:
        with pytest.raises(TransportError, match="not a list"):
            await Collection(transport, PODS).page()


async def test_an_old_continue_token_is_expired(server):
    server.will((410, {}, status(410, "Expired", "The provided continue parameter is too old")))

    async with connected(server.url) as transport:
        with pytest.raises(APIStatusError, match="too old"):
            await Collection(transport, PODS).page(continue_token="t")


# --- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((PODS,), "/api/v1/pods"),
        ((PODS, "a"), "/api/v1/namespaces/a/pods"),
        ((PODS, "a", "b"), "/api/v1/namespaces/a/pods/b"),
        ((PODS, "a", "b", "log"), "/api/v1/namespaces/a/pods/b/log"),
        ((NODES, "a", "b"), "/api/v1/nodes/b"),
        ((DEPLOYMENTS, "a", "b", "scale"), "/apis/apps/v1/namespaces/a/deployments/b/scale"),
    ],
)
def test_the_path_of_a_resource(arguments, path):
    assert resource_path(*arguments) == path


@pytest.mark.parametrize("name", ["..", ".", "../secrets/a", "a/b", "a%2fb"])
def test_a_name_cannot_lead_elsewhere(name):
    with pytest.raises(ValueError, match="cannot be part of a name"):
        resource_path(PODS, "default", name)
