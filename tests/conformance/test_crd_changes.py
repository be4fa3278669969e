"""What `ctrl crd diff` says of existing objects is what the API server does with them.

Each case is a field before and after the change, and a value that fitted before. An object holds it when the definition is changed; then
another field beside it is written.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ctrlruntime.errors import Invalid
from ctrlruntime.project.compatibility import RULES, Code, compare
from ctrlruntime.testing import Environment

PAIR = {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CASES: list[tuple[Code, dict[str, Any], dict[str, Any], Any]] = [
    (Code.TYPE_CHANGED, {"type": "string"}, {"type": "boolean"}, "a"),
    (Code.TYPE_NARROWED, {"type": "number"}, {"type": "integer"}, 1.5),
    (
        Code.INT_OR_STRING_NARROWED,
        {"x-kubernetes-int-or-string": True},
        {"type": "integer"},
        "a",
    ),
    (
        Code.LIST_TYPE_CHANGED,
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ["a", "a"],
    ),
    (
        Code.MAP_KEYS_CHANGED,
        {"type": "array", "items": PAIR, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        {"type": "array", "items": PAIR, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
        [{"a": "1", "b": "1"}, {"a": "1", "b": "2"}],
    ),
    (Code.ENUM_ADDED, {"type": "string"}, {"type": "string", "enum": ["b"]}, "a"),
    (Code.ENUM_VALUE_REMOVED, {"type": "string", "enum": ["a", "b"]}, {"type": "string", "enum": ["b"]}, "a"),
    (Code.BOUND_TIGHTENED, {"type": "integer"}, {"type": "integer", "maximum": 1}, 2),
    (Code.PATTERN_CHANGED, {"type": "string"}, {"type": "string", "pattern": "b"}, "a"),
    (Code.FORMAT_TIGHTENED, {"type": "string"}, {"type": "string", "format": "date-time"}, "a"),
    (
        Code.RULE_ADDED,
        {"type": "integer"},
        {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 2"}]},
        2,
    ),
    (Code.BRANCH_ADDED, {"type": "integer"}, {"type": "integer", "allOf": [{"maximum": 1}]}, 2),
]


def definition(group: str, field: dict[str, Any], *required: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": {"other": {"type": "integer"}, "field": field}}
    if required:
        spec["required"] = list(required)
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"changes.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": "Change", "plural": "changes"},
            "versions": [version],
        },
    }


def held(server: Environment, old: dict[str, Any], new: dict[str, Any], spec: dict[str, Any]) -> str:
    """Have an object made under the old definition, and the new one enforced; returns where the object is."""
    group = old["spec"]["group"]
    server.install_crds(old)
    url = f"/apis/{group}/v1/changes"
    body = {"apiVersion": f"{group}/v1", "kind": "Change", "metadata": {"name": "held"}, "spec": {**spec, "other": 1}}
    server.connection.request("POST", url, body)
    server.install_crds(new)
    deadline = time.monotonic() + 30
    while True:
        try:
            server.connection.request("POST", f"{url}?dryRun=All", {**body, "metadata": {"name": "new"}})
        except Invalid:
            return f"{url}/held"
        assert time.monotonic() < deadline, f"{server.backend}: the new definition refuses nothing within half a minute"
        time.sleep(0.05)


def change_beside(server: Environment, url: str) -> None:
    held = server.connection.request("GET", url)
    held["spec"]["other"] = 2
    server.connection.request("PUT", url, held)


@pytest.fixture
def group(server: Environment) -> Iterator[str]:
    name = f"x{secrets.token_hex(4)}.example.com"
    yield name
    server.connection.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/changes.{name}")


@pytest.mark.parametrize(("code", "old", "new", "value"), CASES, ids=[case[0].value for case in CASES])
def test_an_object_that_no_longer_fits_can_be_changed_elsewhere(server, group, code, old, new, value):
    before, after = definition(group, old), definition(group, new)

    url = held(server, before, after, {"field": value})

    assert [finding.code for finding in compare(before, after)] == [code]
    assert RULES[code].refuses == "new values"
    change_beside(server, url)
    assert server.connection.request("GET", url)["spec"] == {"field": value, "other": 2}


def test_an_object_without_what_became_required_cannot(server, group):
    text = {"type": "string"}
    before, after = definition(group, text), definition(group, text, "field")

    url = held(server, before, after, {})

    assert [finding.code for finding in compare(before, after)] == [Code.REQUIRED_ADDED]
    with pytest.raises(Invalid, match="Required value"):
        change_beside(server, url)


def test_an_object_whose_value_became_an_embedded_resource_cannot(server, group):
    before = definition(group, ANYTHING)
    after = definition(group, {**ANYTHING, "x-kubernetes-embedded-resource": True})

    url = held(server, before, after, {"field": {"a": 1}})

    assert [finding.code for finding in compare(before, after)] == [Code.EMBEDDED_ADDED]
    with pytest.raises(Invalid, match="Required value"):
        change_beside(server, url)


def test_every_code_that_refuses_writes_is_shown_here():
    shown = {case[0] for case in CASES} | {Code.REQUIRED_ADDED, Code.EMBEDDED_ADDED}
    # A field of a map that kept anything is checked as other fields are.
    assert shown == {code for code, rule in RULES.items() if rule.refuses} - {Code.FIELD_CHECKED}
    assert {code for code, rule in RULES.items() if rule.refuses == "updates"} == {
        Code.REQUIRED_ADDED,
        Code.EMBEDDED_ADDED,
    }
