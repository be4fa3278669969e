"""`shardSelector` of lists and watches, on the embedded server and on a real one, both with the feature gate ShardedListAndWatch."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from test_builtin_kinds import Client

from ctrlruntime.apiserver import Options
from ctrlruntime.shard_selectors import fnv64a
from ctrlruntime.testing import Environment

FULL = ("0x0000000000000000", "0x10000000000000000")
PATH = "/api/v1/namespaces/default/configmaps"
CUSTOM = "/apis/shards.example.com/v1/namespaces/default/pieces"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "pieces.shards.example.com"},
    "spec": {
        "group": "shards.example.com",
        "names": {"kind": "Piece", "plural": "pieces"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
UID, NAMESPACE = "object.metadata.uid", "object.metadata.namespace"


PIECE = {"apiVersion": "shards.example.com/v1", "kind": "Piece"}


def span(field: str, start: str, end: str) -> str:
    return f"shardRange({field}, '{start}', '{end}')"


def hexadecimal(number: int) -> str:
    return f"0x{number:016x}"


@pytest.fixture(scope="module")
def gated(own_real_server) -> Iterator[tuple[Environment, Environment]]:
    """Two servers with the feature gate, and 20 objects."""
    options = Options(controllers=[], feature_gates={"ShardedListAndWatch": True})
    flags = ["--feature-gates=ShardedListAndWatch=true"]
    with (
        Environment(backend="embedded", crds=DEFINITION, embedded=options) as embedded,
        own_real_server(crds=DEFINITION, apiserver_args=flags) as real,
    ):
        for server in (embedded, real):
            for number in range(20):
                labels = {"even": str(number % 2 == 0).lower()}
                server.connection.request("POST", PATH, {"metadata": {"name": f"a{number:02}", "labels": labels}})
        yield embedded, real


def both(gated: tuple[Environment, Environment], path: str, accept: str = "application/json") -> tuple[Any, Any]:
    """The answers of both servers, without what differs by nature."""
    found = []
    for server in gated:
        status, _, text = server.connection.exchange("GET", path, headers={"Accept": accept})
        body: Any = json.loads(text)
        found.append({"code": status, **{key: body.get(key) for key in ("kind", "message", "reason", "status")}})
        metadata = body.get("metadata") or {}
        found[-1]["metadata"] = {
            key: value for key, value in metadata.items() if key not in {"resourceVersion", "continue"}
        }
    return found[0], found[1]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "1",
        "[1]",
        "{}",
        "a.b",
        "f(1)",
        "a || b",
        "shardRange()",
        "shardRange(",
        "a as b",
        f"shardRange({UID}, '\\ud800', '')",
        "(" * 251,
        "shardRange(1, '0x0', '0x1')",
        span("a.b", *FULL),
        span("a", *FULL),
        span("object.metadata.name", *FULL),
        f"shardRange({UID}, a, '0x1')",
        f"shardRange({UID}, 1, '0x1')",
        f"shardRange({UID}, 1u, '0x1')",
        f"shardRange({UID}, 1.5, '0x1')",
        f"shardRange({UID}, true, '0x1')",
        f"shardRange({UID}, b'a', '0x1')",
        span(UID, "1", "2"),
        span(UID, "0x", "0x"),
        span(UID, "0x1", FULL[1]),
        span(UID, FULL[0], "0x20000000000000000"),
        span(UID, FULL[0], "0x100000000000000000"),
        span(UID, FULL[0], "0xF000000000000000"),
        span(UID, FULL[1], FULL[0]),
        span(UID, FULL[0], FULL[0]),
        f"{span(UID, *FULL)} && {span(UID, *FULL)}",
        f"!{span(UID, *FULL)}",
        f"{span(UID, *FULL)} || {span(NAMESPACE, *FULL)}",
        f"{span(UID, *FULL)} || f()",
        f"  {span(UID, *FULL)}  ||{span(UID, FULL[0], '0x8000000000000000')}",
        f'shardRange({NAMESPACE}, "{FULL[0]}", "{FULL[1]}")',
    ],
)
def test_both_servers_take_and_refuse_the_same_selectors(gated, text):
    query = urlencode({"shardSelector": text})
    found, expected = both(gated, f"{PATH}?{query}")
    assert found == expected
    found, expected = both(gated, f"{PATH}?limit=3&{query}")
    found["metadata"].pop("remainingItemCount", None)
    expected["metadata"].pop("remainingItemCount", None)
    assert found == expected
    if expected["code"] != 200:
        found, expected = both(gated, f"{PATH}?watch=1&{query}")
        assert found == expected


def test_both_servers_filter_custom_resources(gated):
    for server in gated:
        server.connection.request("POST", CUSTOM, {**PIECE, "metadata": {"name": "a"}})
    for end in (FULL[1], "0x0000000000000001"):
        query = urlencode({"shardSelector": span(UID, FULL[0], end)})
        found, expected = both(gated, f"{CUSTOM}?{query}")
        assert found == expected
        assert not expected["metadata"]  # only lists of built-in kinds say that they are filtered
        assert [len(listing(server, f"{CUSTOM}?{query}")["items"]) for server in gated] == [end == FULL[1]] * 2


@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadataList"])
def test_both_servers_say_in_each_form_that_a_list_is_filtered(gated, form):
    query = urlencode({"shardSelector": span(UID, *FULL)})
    found, expected = both(gated, f"{PATH}?{query}", f"application/json;as={form};g=meta.k8s.io;v=v1")
    assert found == expected


@pytest.mark.parametrize("query", ["", "&labelSelector=even%3Dtrue", "&resourceVersion=0", "&limit=4"])
def test_ranges_divide_the_objects(gated, query):
    for server in gated:
        everything = names(server, f"{PATH}?{query.removeprefix('&')}")
        middle, found = hexadecimal(2**63), []
        for start, end in ((FULL[0], middle), (middle, FULL[1])):
            selector = span(UID, start, end)
            listed = listing(server, f"{PATH}?shardSelector={quote(selector)}{query}")
            assert all(int(start, 16) <= fnv64a(one["metadata"]["uid"]) < int(end, 16) for one in listed["items"])
            assert listed["metadata"]["shardInfo"] == {"selector": selector}
            while continued := listed["metadata"].get("continue"):
                found += [one["metadata"]["name"] for one in listed["items"]]
                listed = listing(server, f"{PATH}?shardSelector={quote(selector)}{query}&continue={continued}")
            found += [one["metadata"]["name"] for one in listed["items"]]
        if "limit" not in query:
            assert sorted(found) == everything
        assert set(everything) <= set(found)


def test_a_watch_has_the_objects_of_its_ranges(gated):
    for server in gated:
        own = listing(server, PATH)["items"]
        one = next(item for item in own if item["metadata"]["name"] == "a07")
        number = fnv64a(one["metadata"]["uid"])
        selector = span(UID, hexadecimal(number), hexadecimal(number + 1))
        query = f"watch=1&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&shardSelector={quote(selector)}"
        address = server.connection.url.removeprefix("https://")
        connection = http.client.HTTPSConnection(address, context=server.connection.tls, timeout=60)
        try:
            connection.request("GET", f"{PATH}?{query}", headers=dict(server.connection.headers))
            answer = connection.getresponse()
            frames = [json.loads(answer.readline()) for _ in range(2)]
            Client(server).send("PUT", f"{PATH}/a06", {"metadata": {"name": "a06"}, "data": {"k": "v"}})
            Client(server).send("PUT", f"{PATH}/a07", {"metadata": {"name": "a07"}, "data": {"k": "v"}})
            frames += [json.loads(answer.readline())]
        finally:
            connection.close()

        assert [(frame["type"], frame["object"]["metadata"].get("name")) for frame in frames] == [
            ("ADDED", "a07"), ("BOOKMARK", None), ("MODIFIED", "a07"),
        ]  # fmt: skip
        assert "shardInfo" not in frames[1]["object"]["metadata"]


def test_without_the_gate_the_parameter_is_nothing(embedded_server, real_server):
    found, expected = both((embedded_server, real_server), f"{PATH}?shardSelector=x")
    assert found == expected
    assert expected["code"] == 200


def listing(server: Environment, path: str) -> Any:
    return server.connection.request("GET", path)


def names(server: Environment, path: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in listing(server, path)["items"])
