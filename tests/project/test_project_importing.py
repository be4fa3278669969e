"""Classes from definitions: what is written says the same to the generator, and what cannot be said is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.api.decoding import load_yaml
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate import dump
from ctrlruntime.generate.builtin import QUANTITY
from ctrlruntime.project.importing import chosen, differences, importable, source_of
from ctrlruntime.project.importing.layout import WIDTH
from ctrlruntime.project.importing.names import FieldNames
from ctrlruntime.project.importing.reading import regenerated

ROOT = Path(__file__).parents[2]
GOLDENS = sorted((ROOT / "tests" / "generate" / "golden" / "crd").glob("*.yaml"))
EXAMPLES = sorted((ROOT / "examples").glob("*/config/crd/bases/*.yaml"))


def definition(
    spec: dict[str, Any] | None = None, *, root: dict[str, Any] | None = None, **over: Any
) -> dict[str, Any]:
    """A definition of the kind CronTab whose spec has the given properties."""
    schema = root or {"type": "object", "properties": {"spec": {"type": "object", "properties": spec or {}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **over}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com",
            "names": {"kind": "CronTab", "plural": "crontabs"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def imported(*definitions: dict[str, Any]) -> tuple[str, list[str]]:
    """(source, warnings)."""
    warnings: list[str] = []
    return source_of(definitions, warn=warnings.append), warnings


def module(source: str) -> dict[str, Any]:
    """The names of a written module, run."""
    import types

    made = sys.modules["imported_in_test"] = types.ModuleType("imported_in_test")
    exec(source, made.__dict__)
    return made.__dict__


# The round trip


@pytest.mark.parametrize("path", [*GOLDENS, *EXAMPLES], ids=lambda path: path.stem)
def test_the_classes_of_a_definition_generate_it_again(path: Path):
    # The golden with all that looks like a number holds 1e400, which must be read as text.
    text = path.read_text()
    (source,) = [load_yaml(text)] if "quoting" in path.stem else importable(text, "a")

    text, warnings = imported(source)

    assert warnings == []
    (made,) = regenerated(text)
    assert differences(source, made) == []
    assert max(map(len, text.splitlines())) <= WIDTH


def test_there_are_goldens_and_examples():
    assert len(GOLDENS) >= 78
    assert len(EXAMPLES) == 3


FIELDS: dict[str, dict[str, Any]] = {
    "preserve": {"x-kubernetes-preserve-unknown-fields": True},
    "preserveObject": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "preserveFields": {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "emptyObject": {"type": "object"},
    "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "embeddedFields": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string", "enum": ["Pod"]},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}},
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    },
    "port": {"x-kubernetes-int-or-string": True, "default": "http"},
    "bothPort": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "default": 0},
    "memory": {**QUANTITY, "default": "500m"},
    "odd": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$"},
    "nullableText": {"type": "string", "nullable": True, "default": "x"},
    "nullableRequired": {"type": "string", "nullable": True},
    "nullableList": {"type": "array", "nullable": True, "items": {"type": "string"}},
    "nullableItems": {"type": "array", "items": {"type": "string", "nullable": True}},
    "nullableValues": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
    "zero": {"type": "integer", "default": 0},
    "no": {"type": "boolean", "default": False},
    "yes": {"type": "boolean", "default": True},
    "emptyList": {"type": "array", "items": {"type": "string"}, "default": []},
    "emptyMap": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
    "words": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
    "part": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}, "default": {}},
    "partWithout": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}},
    "partSaid": {"type": "object", "required": ["y"], "properties": {"y": {"type": "string"}}, "default": {"y": "z"}},
    "ratio": {"type": "number", "format": "double", "minimum": 0.5, "maximum": 1, "exclusiveMaximum": True, "default": 0.75},
    "choice": {"type": "string", "enum": ["", "a b", 'q"uote', "back\\slash"], "default": ""},
    "level": {"type": "integer", "enum": [1, 2, 3]},
    "when": {"type": "string", "format": "date-time", "default": "2020-01-01T00:00:00Z"},
    "day": {"type": "string", "format": "date"},
    "secret": {"type": "string", "format": "byte", "maxLength": 64},
    "address": {"type": "array", "items": {"type": "string", "format": "ipv4", "maxLength": 15}, "maxItems": 4},
    "both": {"type": "string", "allOf": [{"minLength": 1, "pattern": "a"}, {"minLength": 2, "pattern": "b"}]},
    "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "keyed": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "podIP"],
        "items": {
            "type": "object",
            "required": ["name", "podIP"],
            "properties": {"name": {"type": "string"}, "podIP": {"type": "string", "default": "::"}},
        },
    },
    "atomicMap": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic", "maxProperties": 3},
    "ruled": {
        "type": "object",
        "maxProperties": 2,
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "x-kubernetes-validations": [
            {"rule": "self.a <= self.b", "message": 'a "must" not exceed b', "fieldPath": ".a", "reason": "FieldValueForbidden"},
            {"rule": "!has(self.a) || self.a > 0"},
        ],
    },
    "ruledText": {
        "type": "string",
        "maxLength": 9,
        "x-kubernetes-validations": [
            {"rule": "self == oldSelf.orValue(self)", "messageExpression": "'no ' + self", "optionalOldSelf": True}
        ],
    },
    "titled": {"type": "string", "title": "A title", "example": {"any": 1}, "externalDocs": {"url": "https://example.com/a"}},
    "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer", "format": "int64", "minimum": -1}}},
    "deep": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "string"}}}},
    "regexp": {"type": "string", "pattern": '^[a-z\\d]+(\\.[a-z"\']+)*\\/$'},
    # Names
    "from": {"type": "string"},
    "class": {"type": "string"},
    "copy": {"type": "string"},
    "json": {"type": "string"},
    "model_fields": {"type": "string"},
    "to_dict": {"type": "string"},
    "str": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "ctrl": {"type": "string"},
    "meta": {"type": "string"},
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "api_version": {"type": "string"},
    "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "foo-bar": {"type": "string"},
    "foo.bar": {"type": "string"},
    "fooBar": {"type": "string"},
    "foo_bar": {"type": "string"},
    "$ref": {"type": "string"},
    "1st": {"type": "string"},
    "_hidden": {"type": "string"},
    "é": {"type": "string"},
    "podIPs": {"type": "array", "items": {"type": "string"}},
    "X": {"type": "string"},
}  # fmt: skip


def test_the_hard_cases_come_back():
    whole = definition(FIELDS)
    spec = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["required"] = ["nullableRequired", "from", "zero", "partSaid"]

    _, warnings = imported(whole)

    assert warnings == []


@pytest.mark.parametrize("name", FIELDS)
def test_a_hard_case_comes_back_as_field_item_value_and_root(name: str):
    field = FIELDS[name]
    inside = {key: one for key, one in field.items() if key != "default"}
    root = {
        "type": "object",
        "properties": {
            name: field if name not in {"kind", "apiVersion", "metadata"} else {"type": "string"},
            "items": {"type": "array", "items": inside},
            "values": {"type": "object", "additionalProperties": inside},
        },
    }
    if name in {"kind", "apiVersion", "metadata"}:
        del root["properties"][name]
    if name == "ruledText":  # items of a list have no old self
        del root["properties"]["items"]

    _, warnings = imported(definition(root=root))

    assert warnings == []


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(
        ["name", "podIP", "from", "copy", "foo-bar", "fooBar", "foo_bar", "spec", "items", "default", "int", "Type"]
    )
    texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=150)
    described = st.fixed_dictionaries(
        {}, optional={"description": texts, "nullable": st.just(value=True), "title": texts}
    )
    small = st.integers(0, 3)
    string = st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("string")}, optional={"minLength": small, "maxLength": st.integers(4, 9)}
        ),
        st.fixed_dictionaries(
            {"type": st.just("string"), "format": st.sampled_from(["date-time", "byte", "date", "ipv4", "uri"])}
        ),
        st.fixed_dictionaries(
            {"type": st.just("string"), "enum": st.lists(texts, min_size=1, max_size=6, unique=True)}
        ),
        st.builds(lambda text: {"type": "string", "default": text}, texts),
        st.fixed_dictionaries(
            {"type": st.just("string"), "pattern": st.sampled_from(["^a$", r"^\d+\.\d+$", "^(x|y)*$"])}
        ),
    )
    number = st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["integer", "number"])},
            optional={
                "minimum": st.integers(-5, 0), "maximum": st.integers(1, 9), "default": st.just(1),
                "exclusiveMaximum": st.just(value=False), "format": st.sampled_from(["int32", "int64"]),
            },
        ),
        st.just({"type": "boolean"}),
        st.just({"type": "boolean", "default": False}),
        st.just({"x-kubernetes-int-or-string": True}),
        st.just(dict(QUANTITY)),
        st.just({"x-kubernetes-preserve-unknown-fields": True}),
        st.just({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    )  # fmt: skip
    leaves = st.builds(lambda one, said: {**one, **said}, string | number, described)

    def deeper(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        item = inner.map(lambda one: {key: value for key, value in one.items() if key != "default"})
        lists = st.builds(
            lambda one, bounds: {"type": "array", "items": one, **bounds},
            item,
            st.fixed_dictionaries({}, optional={"maxItems": small}),
        )
        maps = st.builds(lambda one: {"type": "object", "additionalProperties": one}, item)
        objects = st.builds(
            lambda fields, share: {"type": "object", "properties": fields, "required": sorted(fields)[:share]},
            st.dictionaries(names, inner, max_size=4),
            small,
        )
        return st.builds(lambda one, said: {**one, **said}, lists | maps | objects, described)

    return st.recursive(leaves, deeper, max_leaves=8)


@given(st.dictionaries(st.sampled_from(["spec", "status", "data"]), schemas(), min_size=1))
def test_any_structural_schema_comes_back(fields: dict[str, Any]):
    whole = definition(root={"type": "object", "properties": fields})

    text, warnings = imported(whole)

    assert warnings == []
    assert differences(whole, *regenerated(text)) == []


# What is written


def test_equal_parts_share_a_class_and_names_follow_the_path():
    part = {"type": "object", "properties": {"a": {"type": "string"}}}
    text, _ = imported(definition({"template": part, "others": {"type": "array", "items": part}}))

    assert text.count("(ctrl.Model):") == 2
    assert "class CronTabSpec(ctrl.Model):" in text
    assert "class SpecTemplate(ctrl.Model):" in text
    assert "others: list[SpecTemplate]" in text


def test_versions_share_parts_that_are_equal():
    whole = definition({"size": {"type": "integer"}})
    stored = whole["spec"]["versions"][0]
    old = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"old": {"type": "string"}}}}}
    whole["spec"]["versions"] += [
        {**stored, "name": "v1beta1", "storage": False, "deprecated": True, "deprecationWarning": "use v1"},
        {**stored, "name": "v1alpha1", "storage": False, "served": False, "schema": {"openAPIV3Schema": old}},
    ]

    text, warnings = imported(whole)

    assert warnings == []
    made = module(text)
    assert made["CronTab"].model_fields["spec"].annotation is made["CronTabV1beta1"].model_fields["spec"].annotation
    assert made["CronTabV1alpha1"].__kind_info__.served is False
    assert "class CronTabV1alpha1Spec(ctrl.Model):" in text


def test_what_a_definition_says_beyond_its_schema_comes_back():
    whole = definition(
        root={
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "description": "A table\n\nof jobs, with a very long line that goes on and on " + "and on " * 20,
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {"replicas": {"type": "integer"}, "color": {"type": "string"}},
                },
                "status": {
                    "type": "object",
                    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                },
            },
            "x-kubernetes-validations": [{"rule": "has(self.spec)"}],
        },
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        additionalPrinterColumns=[
            {
                "name": "Replicas",
                "jsonPath": ".spec.replicas",
                "type": "integer",
                "priority": 1,
                "description": "how many",
            },
            {"name": "Age", "jsonPath": ".metadata.creationTimestamp", "type": "date"},
        ],
        selectableFields=[{"jsonPath": ".spec.color"}],
    )
    whole["metadata"] |= {"labels": {"app": "cron"}, "annotations": {"example.com/a": "b"}}
    whole["spec"]["scope"] = "Cluster"
    whole["spec"]["names"] |= {
        "shortNames": ["ct"],
        "categories": ["all"],
        "singular": "tab",
        "listKind": "Tabs",
        "plural": "crontabz",
    }

    text, warnings = imported(whole)

    assert warnings == []
    assert '@crd.printcolumn("Age", ".metadata.creationTimestamp")' in text


def test_builtin_types_are_used_where_the_schema_is_theirs():
    golden = next(path for path in GOLDENS if "podtemplate" in path.stem)

    text, _ = imported(*importable(golden.read_text(), "a"))

    assert "core.PodTemplateSpec" in text
    assert len(text.splitlines()) < 30


def test_objects_are_read_and_written_by_their_names_on_the_wire():
    text, _ = imported(definition(FIELDS))
    crontab = module(text)["CronTab"]
    wire = {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": {
            "foo-bar": "1",
            "fooBar": "2",
            "foo_bar": "3",
            "from": "4",
            "copy": "5",
            "$ref": "6",
            "podIPs": ["::1"],
        },
    }

    found = crontab.from_dict(wire)

    assert (found.spec.from_, found.spec.copy_, found.spec.pod_ips) == ("4", "5", ["::1"])
    assert wire["spec"].items() <= found.to_dict()["spec"].items()


def test_a_required_field_with_a_default_can_be_left_out():
    # As in the API server, which sets defaults before it checks required fields.
    spec = {
        "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
        "text": {"type": "string", "default": "x"},
        "count": {"type": "integer", "default": 3},
        "off": {"type": "boolean", "default": False},
        "part": {"type": "object", "default": {}, "properties": {"size": {"type": "integer"}}},
        "names": {"type": "array", "items": {"type": "string"}, "default": []},
        "known": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
    }
    root = {"type": "object", "properties": {"spec": {"type": "object", "required": sorted(spec), "properties": spec}}}

    text, warnings = imported(definition(root=root))
    crontab = module(text)["CronTab"]

    assert warnings == []
    head = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}}
    found = crontab.from_dict({**head, "spec": {}}).spec
    assert (found.mode, found.text, found.count, found.off, found.names, found.known) == ("A", "x", 3, False, [], None)


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("podIP", "pod_ip"),
        ("from", "from_"),
        ("replicas", "replicas"),
        ("clusterIPs", "cluster_ips"),
        ("é", "field"),
        ("9p", "field_9p"),
    ],
)
def test_attributes_are_snake_case(wire: str, attribute: str):
    assert FieldNames().of(wire) == attribute


def test_a_class_prefix_stands_before_each_name():
    text = source_of(
        [definition({"a": {"type": "object", "properties": {"b": {"type": "string"}}}})], class_prefix="Old"
    )

    assert "class OldCronTab(\n" in text or "class OldCronTab(ctrl.Object" in text
    assert "class OldCronTabSpec(ctrl.Model):" in text
    assert 'kind="CronTab"' in text


# What cannot be said


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 2}]}, "v1 .spec.a: oneOf"),
        ({"type": "string", "pattern": "(?!x)a"}, "v1 .spec.a: limits"),
        ({"type": "string", "nullable": True, "default": None}, "v1 .spec.a: default null"),
        ({"type": "number", "enum": [1.5, 2.5]}, "v1 .spec.a: enum"),
        ({"type": "string", "minimum": 3}, "v1 .spec.a: limits"),
        ({"type": "array", "items": {"type": "string", "default": "x"}}, "v1 .spec.a[]: default"),
        ({"type": "string", "description": "TODO say it"}, "v1 .spec.a: description"),
        # The API server prunes objects in such values, and the dict of the class keeps them.
        ({"type": "object", "additionalProperties": True}, "v1 .spec.a{}: the CRD has true"),
    ],
)
def test_what_no_class_can_say_is_told_with_its_path(schema: dict[str, Any], told: str):
    text, warnings = imported(definition({"a": schema}))

    assert len(warnings) == 1
    assert warnings[0].startswith(f"crontabs.stable.example.com: {told}")
    assert regenerated(text)


def test_columns_of_one_name_are_told_apart_by_their_paths():
    whole = definition(
        {"size": {"type": "integer"}},
        additionalPrinterColumns=[
            {"name": "Size", "jsonPath": ".spec.gone", "type": "string"},
            {"name": "Size", "jsonPath": ".spec.size", "type": "integer"},
        ],
    )

    _, warnings = imported(whole)

    (line,) = warnings
    assert line.startswith("crontabs.stable.example.com: v1.additionalPrinterColumns: Size (.spec.gone) {")


def test_columns_metadata_and_conversion_that_cannot_be_said_are_told():
    whole = definition(
        root={
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}},
        },
        additionalPrinterColumns=[{"name": "Gone", "jsonPath": ".spec.gone", "type": "string"}],
    )
    whole["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}

    _, warnings = imported(whole)

    assert [line.split("{")[0].split("[")[0].strip() for line in warnings] == [
        "crontabs.stable.example.com: v1: metadata",
        "crontabs.stable.example.com: v1: additionalPrinterColumns",
        "crontabs.stable.example.com: conversion",
    ]


# What is refused


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"apiVersion": "apiextensions.k8s.io/v1beta1"}, "Convert it to apiextensions.k8s.io/v1"),
        ({"kind": "Deployment"}, "the file has no CustomResourceDefinition (only Deployment). Pass the file of a CRD"),
        ({"spec": {"group": "a.b"}}, "has no spec.names.kind"),
    ],
)
def test_a_file_without_a_sound_definition_is_refused(change: dict[str, Any], told: str):
    with pytest.raises(ConfigError) as caught:
        importable(dump(definition() | change), "crd.yaml")

    assert told in str(caught.value)
    assert str(caught.value).startswith("crd.yaml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({}, ".spec.a has no type"),
        ({"type": "text"}, ".spec.a has the unknown type 'text'"),
        ({"type": "array"}, ".spec.a is a list without items"),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            ".spec.a has both properties and",
        ),
        ({"type": "string", "$ref": "#/definitions/x"}, ".spec.a has $ref"),
        ({"type": "string", "anyOf": [{"type": "string"}]}, ".spec.a has type inside anyOf"),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match="not structural") as caught:
        importable(yaml.safe_dump(definition({"a": schema})), "crd.yaml")

    assert told in str(caught.value)


def test_a_list_of_definitions_is_opened_and_a_kind_chosen():
    other = definition()
    other["spec"] = {**other["spec"], "names": {"kind": "Other", "plural": "others"}}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [definition(), other]})

    found = importable(text, "a")

    assert [one["spec"]["names"]["kind"] for one in chosen(found, "Other")] == ["Other"]
    with pytest.raises(ConfigError, match=r"the file has no CRD of the kind 'Third'\. Use one of CronTab, Other"):
        chosen(found, "Third")


def test_texts_of_a_definition_cannot_become_code():
    evil = '"""\nimport os\nraise SystemExit(1)\n"""\x07\x85 \u2028\r{x}\\'
    whole = definition({evil: {"type": "string", "description": evil, "title": evil, "enum": [evil]}})
    whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = evil

    _, warnings = imported(whole)

    assert warnings == []


# The tools


def write_modules(folder: Path) -> None:
    """Write a module of every sort of field and one of several versions; `scripts/check-types` has them checked, too."""
    golden = next(path for path in GOLDENS if "versioned" in path.stem)
    (folder / "hard.py").write_text(imported(definition({**FIELDS}))[0])
    (folder / "versioned.py").write_text(imported(*importable(golden.read_text(), "a"))[0])


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "format", "--check", "--isolated", "--line-length", "120", "--target-version", "py311"],
        ["ruff", "check", "--isolated", "--line-length", "120", "--target-version", "py311"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_written_modules_pass_the_tools(command: list[str], tmp_path: Path):
    write_modules(tmp_path)
    name, *arguments = command

    done = subprocess.run(
        [Path(sys.executable).parent / name, *arguments, "."], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
