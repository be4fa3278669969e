"""Every field of the built-in kinds, one at a time: with a plausible value, and with odd ones.

Fields come from the OpenAPI document. One that a feature gate turns off is dropped by the real server: this finds it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from builtin_objects import CASES
from field_variants import odd_objects, with_field
from test_builtin_kinds import Client, both, normalised, path_of, placed

from ctrlruntime.testing import Environment

__all__ = ["both"]

OBJECTS = {case.path: case.body for case in reversed(CASES) if case.changes is None and not case.is_stored}
"""The first object of each kind that the table has."""
NOT_SENT = frozenset({"apiVersion", "kind", "metadata", "status"})
VALUES: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True}
FORMATS = {"date-time": "2020-01-01T00:00:00Z", "byte": "YQ==", "int-or-string": "1"}
DEEPEST = 10
OTHERS_TESTS = frozenset(
    {
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
        "jobs",
        "cronjobs",
    }
)
"""Kinds with the specification of a Pod: `test_pod_specs.py` has odd ones of these."""
SHARES = 8
"""A run without `--all` sends one in so many of the odd objects."""
_SCHEMA = "spec.versions.[].schema.openAPIV3Schema"
KNOWN = {
    "/v1/persistentvolumes": ["spec.capacity.{}"],
    "autoscaling/v2/horizontalpodautoscalers": [
        f"spec.behavior.{each}.policies.[]" for each in ("scaleDown", "scaleUp")
    ],
    "networking.k8s.io/v1/ingresses": ["spec.rules.[]"],
    "resource.k8s.io/v1/resourceclaimtemplates": [
        "spec.metadata.deletionGracePeriodSeconds.0",
        *(f"spec.metadata.{each}.[]" for each in ("finalizers", "managedFields", "ownerReferences")),
    ],
    "/apiextensions.k8s.io/v1/customresourcedefinitions": [
        *(
            f"{_SCHEMA}{each}.dependencies.{{}}"
            for each in ("", *(f".{word}.[]" for word in ("allOf", "anyOf", "oneOf")))
        ),
        *(f"{_SCHEMA}{each}.dependencies.{{}}" for each in (".not", ".definitions.k", ".properties.k")),
        "spec.versions.[null]",
    ],
    "/certificates.k8s.io/v1/certificatesigningrequests": ["spec.extra.k.null"],
}
"""Where the servers still differ. Most: an empty list or map, which the embedded server reads as none."""


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


def schema_of(server: Environment, path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of what a path creates, and every other schema of its group."""
    group, _, plural = path.lstrip("/").rpartition("/")
    document = server.connection.request("GET", f"/openapi/v3/{'api' if group == 'v1' else 'apis'}/{group}")
    scope = "" if path.startswith("/") else "/namespaces/{namespace}"
    operation = document["paths"][f"/{'api' if group == 'v1' else 'apis'}/{group}{scope}/{plural}"]["post"]
    body = next(iter(operation["requestBody"]["content"].values()))
    return body["schema"], document["components"]["schemas"]


@pytest.mark.thorough
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


@pytest.mark.parametrize("share", [0, *(pytest.param(each, marks=pytest.mark.thorough) for each in range(1, SHARES))])
@pytest.mark.parametrize("path", [path for path in OBJECTS if path.rpartition("/")[2] not in OTHERS_TESTS])
def test_both_servers_judge_an_odd_value_alike(path, share, both):
    embedded, real, namespace = both
    schema, schemas = schema_of(embedded, path)
    found: dict[str, Any] = {}
    expected: dict[str, Any] = {}
    paths = (field for field in fields(schema, schemas) if field[0] not in NOT_SENT)

    for index, (name, body) in enumerate(odd_objects(unprotected(OBJECTS[path]), paths)):
        if index % SHARES == share and name not in KNOWN.get(path, ()):
            found[name], expected[name] = (
                normalised(
                    *Client(server).send("POST", f"{path_of(path, namespace)}?dryRun=All", placed(body, namespace))
                )
                for server in (embedded, real)
            )

    assert found == expected


def unprotected(body: dict[str, Any]) -> dict[str, Any]:
    """Put a definition into a group that needs no approval: without one, nothing but the missing approval is said."""
    if "versions" not in body.get("spec", {}):
        return body
    text = json.dumps(body["spec"]).replace(".k8s.io", ".example.com")
    name = body["metadata"]["name"].replace(".k8s.io", ".example.com")
    return {**body, "metadata": {**body["metadata"], "name": name}, "spec": json.loads(text)}
