"""`/openapi/v2`: what is served in which form, and the definitions of it. Texts and most operations the embedded server leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.testing import Environment, eventually

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
OURS = ("com.example.v2.", "io.k8s.api", "io.k8s.kube-aggregator.")
"""The kind of this module and the built-in ones; other tests define others, also of groups that end with `.io`."""
ODD = {
    "type": "object",
    "required": ["text", "count"],
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 2, "default": 1, "enum": [1, 2]},
        "text": {"type": "string", "nullable": True},
        "nothing": {"type": "object", "nullable": True, "properties": {"x": {"type": "string"}}},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "more": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"x": {"type": "string"}},
        },
        "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "keyed": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "pattern": "a+"}}},
        },
        "open": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "maybe": {"type": "array", "nullable": True, "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        "object": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
        "limited": {"type": "object", "not": {"required": ["z"]}, "properties": {"z": {"type": "string"}}},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "odds.v2.example.com"},
    "spec": {
        "group": "v2.example.com",
        "scope": "Namespaced",
        "names": {"plural": "odds", "kind": "Odd"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ODD}}},
            },
            {
                "name": "v2",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            },
        ],
    },
}


def without_texts(tree: Any) -> Any:
    """A schema without descriptions; a property of that name is a tree."""
    if isinstance(tree, list):
        return [without_texts(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: without_texts(value) for key, value in tree.items() if key != "description" or not isinstance(value, str)
    }


async def definitions(server: Environment) -> dict[str, Any]:
    """The definitions of the kind and of the options, once both versions are there: the real server adds one after the other."""

    def found() -> dict[str, Any] | None:
        read = server.connection.request("GET", "/openapi/v2")["definitions"]
        both = all(
            f"com.example.v2.{version}.{kind}" in read for version in ("v1", "v2") for kind in ("Odd", "OddList")
        )
        return read if both else None

    return await eventually(found, timeout=LONGEST_WAIT, interval=0.1)


async def test_definitions_are_alike(embedded_server, real_server):
    found = []
    for server in (embedded_server, real_server):
        server.install_crds(DEFINITION)
        named = (await definitions(server)).items()
        found.append({key: without_texts(value) for key, value in named if key.startswith(OURS)})

    embedded, real = found
    for options in ("DeleteOptions", "WatchEvent"):  # they are of every group
        kind = f"io.k8s.apimachinery.pkg.apis.meta.v1.{options}"
        assert embedded.pop(kind)["properties"] == real.pop(kind)["properties"]
    assert embedded == real


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, application/json;q=0.5", "application/json"),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", PROTOBUF),
        (PROTOBUF, PROTOBUF),
        ("application/yaml", None),
        ("application/vnd.kubernetes.protobuf", None),
    ],
)
async def test_forms(server, accept, expected):
    headers = {"Accept": accept}

    def read():
        return server.connection.exchange("GET", "/openapi/v2", headers=headers)

    status, answered, body = read()
    assert (status, answered["Content-Type"]) == (200 if expected else 406, expected)
    assert body[:5] == {PROTOBUF: b"\n\x032.0", None: b""}.get(expected, b'{"swa')

    async def unchanged():
        nonlocal headers, answered
        headers = {"Accept": accept, "If-None-Match": answered["ETag"]}
        status, answered, body = read()
        return (status, body) == (304, b"")

    if expected:  # the document may change with the definitions of other tests
        assert await eventually(unchanged)
