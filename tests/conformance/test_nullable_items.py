"""Where null may stand in a list: the generator refuses what the servers refuse, and nothing else."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

import ctrlruntime as ctrl
from ctrlruntime.errors import GenerateError, Invalid
from ctrlruntime.generate import crds
from ctrlruntime.markers import Nullable
from ctrlruntime.testing import Environment

DRY_RUN = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
PLAIN = {"type": "array", "items": {"type": "string", "nullable": True}}
OBJECTS = {"type": "object", "nullable": True, "properties": {"name": {"type": "string"}}, "required": ["name"]}
LIST, KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"

SCHEMAS: dict[str, tuple[dict[str, Any], bool]] = {
    "a list": (PLAIN, True),
    "an atomic list": ({**PLAIN, LIST: "atomic"}, True),
    "a list of objects": ({"type": "array", "items": OBJECTS}, True),
    "a dict": ({"type": "object", "additionalProperties": PLAIN["items"]}, True),
    "a set": ({**PLAIN, LIST: "set"}, False),
    "a list with keys": ({"type": "array", "items": OBJECTS, LIST: "map", KEYS: ["name"]}, False),
}


@pytest.mark.parametrize(("schema", "is_taken"), SCHEMAS.values(), ids=SCHEMAS.keys())
def test_null_in_lists_is_taken_by_generator_and_server_alike(server: Environment, schema, is_taken):
    class Value(ctrl.Model):
        @classmethod
        def __ctrl_schema__(cls) -> dict[str, Any]:
            return schema

    class Holder(ctrl.Object, group="nullable.example.com", version="v1"):
        value: Value

    class Plain(ctrl.Object, group="nullable.example.com", version="v1"):
        value: str = ""

    (definition,) = crds([Plain])
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["value"] = schema

    if is_taken:
        (made,) = crds([Holder])
        assert made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["value"] == schema
        server.connection.request("POST", DRY_RUN, definition)
        return
    with pytest.raises(GenerateError, match="cannot be nullable"):
        crds([Holder])
    with pytest.raises(Invalid, match="cannot be nullable when x-kubernetes-list-type is"):
        server.connection.request("POST", DRY_RUN, definition)


def test_items_that_may_be_null_are_said_by_a_marker(server: Environment):
    class Rows(ctrl.Object, group="nullable.example.com", version="v1", plural="rows"):
        cells: list[Annotated[str | None, Nullable]]

    (definition,) = crds([Rows])
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert schema["properties"]["cells"] == PLAIN
    server.connection.request("POST", DRY_RUN, definition)
    assert Rows(cells=["a", None]).to_dict()["cells"] == ["a", None]


@pytest.mark.parametrize("values", [["a"], ["a", None]], ids=["without null", "with null"])
def test_an_enum_takes_no_null(server: Environment, namespace: str, values: list[Any]):
    class Choice(ctrl.Object, group="nullable.example.com", version="v1"):
        value: Annotated[str | None, Nullable] = None

    (definition,) = crds([Choice])
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["value"]
    schema["enum"] = values
    server.install_crds([definition])

    with pytest.raises(Invalid, match="value: Unsupported value: null: supported values: "):
        server.connection.request(
            "POST",
            f"/apis/nullable.example.com/v1/namespaces/{namespace}/choices",
            {
                "apiVersion": "nullable.example.com/v1",
                "kind": "Choice",
                "metadata": {"name": "a"},
                "value": None,
            },
        )


def test_a_nullable_enum_is_warned_of():
    class Option(ctrl.Object, group="nullable.example.com", version="v1"):
        value: Annotated[Literal["a", "b"] | None, Nullable] = None

    warnings: list[str] = []
    crds([Option], warn=warnings.append)

    assert [text for text in warnings if "the API server rejects null for an enum" in text and ".value: " in text]
