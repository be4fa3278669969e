"""Writes of a custom resource's status: both servers validate the status alone, and nulls that are applied count."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlruntime.testing import Environment

GROUP = "parts.example.com"
ITEMS = f"/apis/{GROUP}/v1/namespaces/default/parts"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY, JSON_PATCH = "application/apply-patch+yaml", "application/json-patch+json"
STATUS = {
    "type": "object",
    "maxProperties": 2,
    "properties": {
        "ready": {"type": "integer", "minimum": 3},
        "word": {"type": "string"},
        "names": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "not": {"required": ["ready", "word"]},
}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "default": "small"},
        "loose": {"x-kubernetes-preserve-unknown-fields": True},
        "by_name": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
HEAD = {"apiVersion": f"{GROUP}/v1", "kind": "Part", "metadata": {"name": "one"}}


@pytest.fixture
def parts(server: Environment) -> Iterator[Environment]:
    """A server that has a part."""
    names = {"plural": "parts", "singular": "part", "kind": "Part", "listKind": "PartList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    server.install_crds({**head, "metadata": {"name": f"parts.{GROUP}"}, "spec": spec}, timeout=30)
    server.connection.request("POST", ITEMS, {**HEAD, "spec": {}})
    yield server
    server.connection.request("DELETE", f"{DEFINITIONS}/parts.{GROUP}")


def patched(server: Environment, path: str, body: Any, form: str) -> tuple[int, Any]:
    """Return the code, and the object or the causes."""
    head = {"Content-Type": form, "Accept": "application/json"}
    code, _, text = server.connection.exchange("PATCH", f"{ITEMS}/{path}", json.dumps(body).encode(), head)
    answer = json.loads(text)
    causes = (answer.get("details") or {}).get("causes") or ()
    return code, answer if code < 300 else [(cause["field"], cause["message"]) for cause in causes]


def with_status(server: Environment, status: Any) -> tuple[int, Any]:
    return patched(server, "one/status", [{"op": "add", "path": "/status", "value": status}], JSON_PATCH)


@pytest.mark.parametrize(
    ("status", "field", "message"),
    [
        ({"ready": 1}, "status.ready", "Invalid value: 1: ready in body should be greater than or equal to 3"),
        ({"word": 4}, "status.word", 'Invalid value: "integer": word in body must be of type string: "integer"'),
        ({"counts": {"a": "b"}}, "status.counts.a", 'Invalid value: "string": counts.a in body must be of type integer: "string"'),
        ("text", "status", 'Invalid value: "string":  in body must be of type object: "string"'),
        ({"ready": 5, "word": "w"}, "status", 'Invalid value: "": "" must not validate the schema (not)'),
        ({"names": ["a", "a"]}, "status.names[1]", 'Duplicate value: "a"'),
    ],
)  # fmt: skip
def test_messages_have_paths_below_the_status(parts, status: Any, field: str, message: str) -> None:
    code, causes = with_status(parts, status)

    assert code == 422
    assert (field, message) in causes


def test_too_many_fields_are_those_of_the_status(parts) -> None:
    code, causes = with_status(parts, {"ready": 4, "names": [], "counts": {}})

    assert (code, causes) == (422, [("status", "Too many: 3: must have at most 2 items")])


def test_an_object_inside_the_status_is_not_judged(parts) -> None:
    code, written = with_status(parts, {"whole": {"kind": "No Kind", "metadata": {"labels": {"a b": "c"}}}})

    assert code == 200
    assert written["status"]["whole"] == {"kind": "No Kind", "metadata": {"labels": {"a b": "c"}}}


def test_nulls_in_a_part_that_an_apply_cannot_set_do_not_count(parts) -> None:
    body = {**HEAD, "spec": {"size": "big"}, "status": {"word": None}}

    code, written = patched(parts, "one?fieldManager=one&force=true", body, APPLY)

    assert code == 200
    assert written["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:size": {}}}
    code, causes = patched(parts, "one/status?fieldManager=one", body, APPLY)
    assert (code, causes) == (
        422,
        [("status.word", 'Invalid value: "null": word in body must be of type string: "null"')],
    )


def test_an_applied_null_becomes_the_default_where_one_is(parts) -> None:
    new = {**HEAD, "metadata": {"name": "two"}}

    code, written = patched(parts, "two?fieldManager=one", {**new, "spec": {"size": None, "loose": None}}, APPLY)

    assert code == 201
    assert written["spec"] == {"size": "small"}
    code, causes = patched(parts, "two?fieldManager=one", {**new, "spec": {"by_name": {"a": None}}}, APPLY)
    assert (code, causes[0][0]) == (422, "spec.by_name.a")


@pytest.mark.parametrize(
    ("added", "is_refused"),
    [
        ({"maxProperties": 9}, True),
        ({"minProperties": 0}, True),
        ({"oneOf": [{"required": ["spec"]}]}, True),
        ({"x-kubernetes-map-type": "atomic"}, True),
        ({"required": ["spec"], "description": "A <part>", "x-kubernetes-preserve-unknown-fields": True}, False),
    ],
)
def test_the_root_of_a_schema_has_few_fields_beside_a_status(server, added: dict[str, Any], is_refused: bool) -> None:
    names = {"plural": "roots", "singular": "root", "kind": "Root", "listKind": "RootList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}, **added}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    body = json.dumps({**head, "metadata": {"name": f"roots.{GROUP}"}, "spec": spec}).encode()
    accepted = {"Content-Type": "application/json", "Accept": "application/json"}

    code, _, text = server.connection.exchange("POST", f"{DEFINITIONS}?dryRun=All", body, accepted)

    causes = (json.loads(text).get("details") or {}).get("causes") or ()
    assert (code, len(causes)) == ((422, 1) if is_refused else (201, 0))
    for cause in causes:
        assert cause["field"] == "spec.validation.openAPIV3Schema"
        assert cause["message"].startswith(
            'Invalid value: {"ID":"","Schema":"","Ref":null,"Description":"","Type":"object",'
        )
        assert '"Properties":{"spec":{"ID":"",' in cause["message"]
        assert cause["message"].endswith("at the root of the schema if the status subresource is enabled")


def test_an_apply_does_not_warn_of_fields_that_are_dropped(server) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}
    spec_schema = {**inner, "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "loose", "singular": "loose", "kind": "Loose", "listKind": "LooseList"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    server.install_crds({**head, "metadata": {"name": f"loose.{GROUP}"}, "spec": spec}, timeout=30)
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Loose", "metadata": {"name": "one"}, "spec": {"a": {"c": 1}}}
    found: list[tuple[int, int]] = []

    for method, path, form in (("POST", "", "application/json"), ("PATCH", "/one?fieldManager=one", APPLY)):
        accepted = {"Content-Type": form, "Accept": "application/json"}
        url = f"/apis/{GROUP}/v1/loose{path}"
        code, headers, text = server.connection.exchange(method, url, json.dumps(body).encode(), accepted)
        found.append((code, len(headers.get_all("Warning") or ())))
        assert json.loads(text)["spec"] == {"a": {}}

    server.connection.request("DELETE", f"{DEFINITIONS}/loose.{GROUP}")
    assert found == [(201, 1), (200, 0)]
