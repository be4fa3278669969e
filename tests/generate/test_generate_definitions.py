"""Definitions are read from files in one way, whatever is done with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.definitions import definitions_in, read_definitions


def definition(plural: str = "things", schema: Any = None, **spec: Any) -> dict[str, Any]:
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema or {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.read.example.com"},
        "spec": {
            "group": "read.example.com",
            "names": {"kind": plural.title(), "plural": plural},
            "versions": [version],
            **spec,
        },
    }


def plurals(definitions: list[dict[str, Any]]) -> list[str]:
    return [one["spec"]["names"]["plural"] for one in definitions]


def test_folders_are_read_to_the_bottom_and_other_documents_passed_over(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([definition(), {"kind": "ConfigMap"}, None, [1], "text"]))
    (tmp_path / "inner" / "b.json").write_text(json.dumps(definition("widgets")))
    (tmp_path / "notes.txt").write_text("{ no manifest")

    assert plurals(read_definitions(tmp_path)) == ["things", "widgets"]
    assert plurals(read_definitions(str(tmp_path / "a.yaml"))) == ["things"]
    assert read_definitions(tmp_path / "inner" / "b.json") == read_definitions(definition("widgets"))


@pytest.mark.parametrize("kind", ["List", "CustomResourceDefinitionList"])
def test_lists_are_opened_in_files_and_in_trees(kind):
    listed = {
        "kind": kind,
        "items": [{"kind": "ConfigMap"}, definition(), {"kind": "List", "items": [definition("b")]}],
    }

    assert plurals(definitions_in(yaml.safe_dump(listed), "x")) == ["things", "b"]
    assert plurals(read_definitions(listed)) == ["things", "b"]


def test_a_kind_of_that_name_in_another_group_is_something_else():
    assert read_definitions(definition() | {"apiVersion": "pkg.example.com/v1"}) == []


def test_a_null_is_absent_but_for_values():
    values = {"default": None, "example": None, "enum": [None, "a"]}
    named = {"default": {"type": "string", "title": None}, "enum": None, "properties": {"properties": {"a": None}}}
    given = definition(schema={"type": "object", "required": None, "properties": named, **values}, scope=None)
    (given["spec"]["versions"][0])["served"] = None

    (found,) = read_definitions(given)

    assert "scope" not in found["spec"]
    (version,) = found["spec"]["versions"]
    assert version == {
        "name": "v1",
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"default": {"type": "string"}, "properties": {"properties": {}}},
                **values,
            }
        },
    }
    assert given["spec"]["scope"] is None, "the tree that was given is left alone"


def test_no_definition_is_an_answer():
    assert definitions_in("", "x") == definitions_in("kind: ConfigMap", "x") == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: [", "crd.yaml, line 2: "),
        (yaml.safe_dump(definition() | {"metadata": None}), "a CRD has no metadata.name"),
        (yaml.safe_dump(definition(group="")), "things.read.example.com has no spec.group"),
        (yaml.safe_dump(definition(names={"kind": "A"})), "has no spec.names.plural"),
        (
            yaml.safe_dump(definition(versions=["v1"])),
            "a version in spec.versions of things.read.example.com has no name",
        ),
        (
            yaml.safe_dump(definition(versions="v1")),
            "a version in spec.versions of things.read.example.com has no name",
        ),
        (
            yaml.safe_dump(definition() | {"apiVersion": "apiextensions.k8s.io/v1beta1"}),
            "things.read.example.com has the apiVersion apiextensions.k8s.io/v1beta1",
        ),
        ("kind: CustomResourceDefinition", "a CRD has no apiVersion. Convert it"),
        (b"\xff", "cannot read"),
        (
            yaml.safe_dump(definition(schema={"properties": {"a": "text"}})),
            "spec.versions[0].schema.openAPIV3Schema.properties.a must be a map",
        ),
        (yaml.safe_dump(definition(schema={"required": [1]})), "openAPIV3Schema.required[0] must be a string"),
        (yaml.safe_dump(definition(schema={"minimum": True})), "openAPIV3Schema.minimum must be a number"),
        (yaml.safe_dump(definition(schema={"maxItems": 1.5})), "openAPIV3Schema.maxItems must be an integer"),
        (yaml.safe_dump(definition(schema={"oneOf": [{"not": []}]})), "openAPIV3Schema.oneOf[0].not must be a map"),
        (
            yaml.safe_dump(definition(names={"kind": "A", "plural": "as", "shortNames": "a"})),
            "shortNames must be a list",
        ),
    ],
    ids=range(15),
)
def test_what_is_not_whole_is_named_in_one_line(tmp_path, text, says):
    file = tmp_path / "crd.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(ConfigError) as caught:
        read_definitions(tmp_path)

    assert str(file) in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=f"cannot read CRDs from {tmp_path}/none: no such file or folder"):
        read_definitions(tmp_path / "none")
