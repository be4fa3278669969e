"""Every field of the built-in kinds, one at a time: what both servers take they store alike, and warn about alike.

Fields come from the OpenAPI document. One that a feature gate turns off is dropped by the real server: this finds it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_objects import CASES
from test_builtin_kinds import Client, both, normalised, path_of, placed

from ctrlruntime.testing import Environment

__all__ = ["both"]
pytestmark = pytest.mark.thorough

OBJECTS = {case.path: case.body for case in reversed(CASES) if case.changes is None and not case.is_stored}
"""The first object of each kind that the table has."""
NOT_SENT = frozenset({"apiVersion", "kind", "metadata", "status"})
VALUES: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True}
FORMATS = {"date-time": "2020-01-01T00:00:00Z", "byte": "YQ==", "int-or-string": "1"}
DEEPEST = 10


def fields(schema: dict[str, Any], schemas: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value below a schema, and the value last; `[]` goes into a list."""
    refs = [schema, *schema.get("allOf", ())]
    name = next((each["$ref"].rpartition("/")[2] for each in refs if "$ref" in each), None)
    if name is not None:
        if above.count(name) > 1 or len(above) > DEEPEST:
            return
        schema, above = schemas[name], (*above, name)
    if schema.get("properties"):
        for key, inner in schema["properties"].items():
            yield from ((key, *rest) for rest in fields(inner, schemas, above))
    elif "additionalProperties" in schema:
        yield from (("k", *rest) for rest in fields(schema["additionalProperties"], schemas, above))
    elif "items" in schema:
        yield from (("[]", *rest) for rest in fields(schema["items"], schemas, above))
    elif schema.get("type") == "object":
        yield ({"k": "v"},)
    else:
        known = [choice for choice in schema.get("enum", ()) if choice]
        text = known[0] if known else FORMATS.get(schema.get("format", ""), "1")
        yield (VALUES.get(schema.get("type", ""), text),)


def with_field(tree: Any, path: tuple[Any, ...]) -> Any:
    key, *rest = path
    if not rest:
        return key
    if key == "[]":
        present = tree if isinstance(tree, list) and tree else [None]
        return [with_field(present[0], tuple(rest)), *present[1:]]
    present = tree if isinstance(tree, dict) else {}
    return {**present, key: with_field(present.get(key), tuple(rest))}


def schema_of(server: Environment, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of what a path creates, and every other schema of its group."""
    group, _, plural = path.lstrip("/").rpartition("/")
    document = server.connection.request("GET", f"/openapi/v3/{'api' if group == 'v1' else 'apis'}/{group}")
    scope = "" if path.startswith("/") else "/namespaces/{namespace}"
    operation = document["paths"][f"/{'api' if group == 'v1' else 'apis'}/{group}{scope}/{plural}"]["post"]
    body = next(iter(operation["requestBody"]["content"].values()))
    return body["schema"], document["components"]["schemas"]


@pytest.mark.parametrize("path", OBJECTS)
def test_both_servers_keep_the_same_fields(path, both):
    embedded, real, namespace = both
    schema, schemas = schema_of(embedded, path)
    found: dict[tuple[Any, ...], Any] = {}
    expected: dict[tuple[Any, ...], Any] = {}

    for field in fields(schema, schemas):
        if field[0] in NOT_SENT:
            continue
        body = placed(with_field(copy.deepcopy(OBJECTS[path]), field), namespace)
        answers = [
            normalised(*Client(server).send("POST", f"{path_of(path, namespace)}?dryRun=All", body))
            for server in (embedded, real)
        ]
        if all(answer["code"] < 300 for answer in answers):
            found[field[:-1]], expected[field[:-1]] = answers

    if not found:
        pytest.skip("no server takes the object with another field alone")
    assert found == expected
