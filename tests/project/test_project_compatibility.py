"""The changes of a definition: one pair for each code, and what holds of all of them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.generate.builtin import LOOSE_QUANTITY, QUANTITY
from ctrlruntime.generate.definitions import read_definitions
from ctrlruntime.project.compatibility import (
    RULES,
    Code,
    Level,
    compare,
    compare_all,
)

CRD_FILES = sorted((Path(__file__).parents[2] / "examples").glob("*/config/crd/bases/*.yaml"))


def version(name: str = "v1", *, storage: bool = True, served: bool = True, field: Any = None, **more: Any):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"field": field or STRING}}}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: Any, stored: tuple[str, ...] = (), names: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", **(names or {})},
            "versions": list(versions) or [version()],
            **more,
        },
        **({"status": {"storedVersions": list(stored)}} if stored else {}),
    }


def webhook(name: str) -> dict[str, Any]:
    client = {"service": {"name": name, "namespace": "shop", "path": "/convert"}}
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}


def obj(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAP = {"type": "object", "additionalProperties": STRING}
PAIR = {**obj(a=STRING, b=STRING), "required": ["a", "b"]}
V1, V1_SERVED = version("v1"), version("v1", storage=False)
V2, V2_SERVED = version("v2"), version("v2", storage=False)
V1_UNSERVED = version("v1", storage=False, served=False)
SCALE = {"specReplicasPath": ".spec.field", "statusReplicasPath": ".status.field"}


def listed(kind: str, *keys: str) -> dict[str, Any]:
    more = {"x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": PAIR, "x-kubernetes-list-type": kind, **more}


def rule(text: str, message: str = "no") -> dict[str, Any]:
    return {**INTEGER, "x-kubernetes-validations": [{"rule": text, "message": message}]}


# code → definition before, definition after, and the codes that come with it
DEFINITIONS: dict[Code, tuple[dict[str, Any], dict[str, Any], set[Code]]] = {
    Code.GROUP_CHANGED: (definition(), definition(group="other.com"), set()),
    Code.KIND_CHANGED: (definition(), definition(names={"kind": "Item"}), {Code.NAMES_CHANGED}),
    Code.PLURAL_CHANGED: (definition(), definition(names={"plural": "items"}), set()),
    Code.SCOPE_CHANGED: (definition(), definition(scope="Cluster"), set()),
    Code.NAMES_CHANGED: (definition(names={"shortNames": ["t"]}), definition(names={"shortNames": ["x"]}), set()),
    Code.NAMES_ADDED: (definition(), definition(names={"categories": ["all"]}), set()),
    Code.CONVERSION_REMOVED: (
        definition(V1, V2_SERVED, conversion=webhook("a")),
        definition(V1, V2_SERVED, conversion={"strategy": "None"}),
        set(),
    ),
    Code.CONVERSION_ADDED: (definition(V1, V2_SERVED), definition(V1, V2_SERVED, conversion=webhook("a")), set()),
    Code.CONVERSION_CHANGED: (
        definition(V1, V2_SERVED, conversion=webhook("a")),
        definition(V1, V2_SERVED, conversion=webhook("b")),
        set(),
    ),
    Code.CONVERSION_NOT_NEEDED: (
        definition(V1_UNSERVED, V2, conversion=webhook("a"), stored=("v2",)),
        definition(V2),
        {Code.MIGRATED_VERSION_REMOVED},
    ),
    Code.STORED_VERSION_REMOVED: (
        definition(V1_SERVED, V2, stored=("v1", "v2")),
        definition(V2),
        set(),
    ),
    Code.SERVED_VERSION_REMOVED: (definition(V1_SERVED, V2, stored=("v2",)), definition(V2), set()),
    Code.UNSERVED_VERSION_REMOVED: (definition(V1_UNSERVED, V2), definition(V2), set()),
    Code.MIGRATED_VERSION_REMOVED: (definition(V1_UNSERVED, V2, stored=("v2",)), definition(V2), set()),
    Code.VERSION_NOT_SERVED: (definition(V1_SERVED, V2), definition(V1_UNSERVED, V2), set()),
    Code.VERSION_SERVED: (definition(V1_UNSERVED, V2), definition(V1_SERVED, V2), set()),
    Code.VERSION_ADDED: (definition(V1), definition(V1, V2_SERVED), set()),
    Code.VERSION_DEPRECATED: (definition(), definition(version(deprecated=True)), set()),
    Code.DEPRECATION_CHANGED: (definition(version(deprecated=True)), definition(), set()),
    Code.STORAGE_VERSION_CHANGED: (definition(V1, V2_SERVED), definition(V1_SERVED, V2), set()),
    Code.STATUS_REMOVED: (definition(version(subresources={"status": {}})), definition(), set()),
    Code.STATUS_ADDED: (definition(), definition(version(subresources={"status": {}})), set()),
    Code.SCALE_REMOVED: (definition(version(subresources={"scale": SCALE})), definition(), set()),
    Code.SCALE_CHANGED: (
        definition(version(subresources={"scale": SCALE})),
        definition(version(subresources={"scale": {**SCALE, "labelSelectorPath": ".status.selector"}})),
        set(),
    ),
    Code.SCALE_ADDED: (definition(), definition(version(subresources={"scale": SCALE})), set()),
    Code.SELECTABLE_REMOVED: (
        definition(version(selectableFields=[{"jsonPath": ".spec.field"}])),
        definition(),
        set(),
    ),
    Code.SELECTABLE_ADDED: (definition(), definition(version(selectableFields=[{"jsonPath": ".spec.field"}])), set()),
    Code.COLUMNS_CHANGED: (
        definition(),
        definition(version(additionalPrinterColumns=[{"name": "F", "type": "string", "jsonPath": ".spec.field"}])),
        set(),
    ),
}

# code → schema of spec.field before and after, the path below it, and the codes that come with it
FIELDS: dict[Code, tuple[dict[str, Any], dict[str, Any], str, set[Code]]] = {
    Code.FIELD_REMOVED: (obj(a=STRING), obj(), ".a", set()),
    Code.FIELD_UNCHECKED: (
        obj(a=STRING),
        {**obj(), "x-kubernetes-preserve-unknown-fields": True},
        ".a",
        {Code.UNKNOWN_FIELDS_KEPT},
    ),
    Code.FIELD_ADDED: (obj(), obj(a=STRING), ".a", set()),
    Code.FIELD_CHECKED: (ANYTHING, {**ANYTHING, **obj(a=STRING)}, ".a", set()),
    Code.REQUIRED_ADDED: (obj(a=STRING), {**obj(a=STRING), "required": ["a"]}, ".a", set()),
    Code.REQUIRED_WITH_DEFAULT: (
        obj(a={**STRING, "default": "x"}),
        {**obj(a={**STRING, "default": "x"}), "required": ["a"]},
        ".a",
        set(),
    ),
    Code.REQUIRED_REMOVED: ({**obj(a=STRING), "required": ["a"]}, obj(a=STRING), ".a", set()),
    Code.TYPE_CHANGED: (STRING, obj(a=STRING), "", set()),
    Code.TYPE_NARROWED: ({"type": "number"}, INTEGER, "", set()),
    Code.TYPE_WIDENED: (
        INTEGER,
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "",
        set(),
    ),
    Code.INT_OR_STRING_NARROWED: ({"x-kubernetes-int-or-string": True}, STRING, "", set()),
    Code.NULLABLE_REMOVED: ({**STRING, "nullable": True}, STRING, "", set()),
    Code.NULLABLE_ADDED: (STRING, {**STRING, "nullable": True}, "", set()),
    Code.DEFAULT_ADDED: (STRING, {**STRING, "default": "a"}, "", set()),
    Code.DEFAULT_CHANGED: ({**STRING, "default": "a"}, {**STRING, "default": "b"}, "", set()),
    Code.DEFAULT_REMOVED: ({**STRING, "default": "a"}, STRING, "", set()),
    Code.UNKNOWN_FIELDS_PRUNED: (ANYTHING, obj(), "", set()),
    Code.UNKNOWN_FIELDS_KEPT: (obj(), ANYTHING, "", set()),
    Code.VALUES_PRUNED: (MAP, obj(), "{}", set()),
    Code.VALUES_KEPT: (obj(), MAP, "{}", set()),
    Code.LIST_TYPE_CHANGED: (listed("atomic"), listed("map", "a", "b"), "", set()),
    Code.MAP_KEYS_CHANGED: (listed("map", "a", "b"), listed("map", "a"), "", set()),
    Code.MAP_TYPE_CHANGED: (MAP, {**MAP, "x-kubernetes-map-type": "atomic"}, "", set()),
    Code.EMBEDDED_ADDED: (ANYTHING, {**ANYTHING, "x-kubernetes-embedded-resource": True}, "", set()),
    Code.EMBEDDED_REMOVED: ({**ANYTHING, "x-kubernetes-embedded-resource": True}, ANYTHING, "", set()),
    Code.ENUM_ADDED: (STRING, {**STRING, "enum": ["a"]}, "", set()),
    Code.ENUM_VALUE_REMOVED: ({**STRING, "enum": ["a", "b"]}, {**STRING, "enum": ["b"]}, "", set()),
    Code.ENUM_VALUE_ADDED: ({**STRING, "enum": ["b"]}, {**STRING, "enum": ["b", "a"]}, "", set()),
    Code.ENUM_REMOVED: ({**STRING, "enum": ["a"]}, STRING, "", set()),
    Code.BOUND_TIGHTENED: ({**INTEGER, "maximum": 5}, {**INTEGER, "maximum": 4}, "", set()),
    Code.BOUND_LOOSENED: ({**INTEGER, "minimum": 5}, {**INTEGER, "minimum": 4}, "", set()),
    Code.PATTERN_CHANGED: ({**STRING, "pattern": "a"}, {**STRING, "pattern": "b"}, "", set()),
    Code.PATTERN_REMOVED: ({**STRING, "pattern": "a"}, STRING, "", set()),
    Code.FORMAT_TIGHTENED: ({**INTEGER, "format": "int64"}, {**INTEGER, "format": "int32"}, "", set()),
    Code.FORMAT_LOOSENED: ({**INTEGER, "format": "int32"}, {**INTEGER, "format": "int64"}, "", set()),
    Code.RULE_ADDED: (INTEGER, rule("self > 1"), "", set()),
    Code.RULE_REMOVED: (rule("self > 1"), INTEGER, "", set()),
    Code.RULE_TEXT_CHANGED: (rule("self > 1"), rule("self > 1", "too small"), "", set()),
    Code.BRANCH_ADDED: (STRING, {**STRING, "not": {"enum": ["a"]}}, "", set()),
    Code.BRANCH_REMOVED: ({**STRING, "allOf": [{"minLength": 1}]}, STRING, "", set()),
    Code.DOCUMENTATION_CHANGED: (STRING, {**STRING, "description": "What it is."}, "", set()),
    Code.OTHER_CHANGED: (STRING, {**STRING, "x-kubernetes-new": 1}, "", set()),
}


@pytest.mark.parametrize("code", DEFINITIONS, ids=str)
def test_a_change_of_the_definition_is_found(code):
    old, new, others = DEFINITIONS[code]

    assert {finding.code for finding in compare(old, new)} == {code} | others


@pytest.mark.parametrize("code", FIELDS, ids=str)
def test_a_change_of_a_field_is_found_where_it_is(code):
    old, new, below, others = FIELDS[code]

    findings = compare(definition(version(field=old)), definition(version(field=new)))

    assert {finding.code for finding in findings} == {code} | others
    (found,) = [finding for finding in findings if finding.code is code]
    assert (found.version, found.path) == ("v1", f"spec.field{below}")


def test_every_code_has_a_meaning_and_a_pair():
    whole = {Code.DEFINITION_ADDED, Code.DEFINITION_REMOVED}
    assert RULES.keys() == set(Code) == DEFINITIONS.keys() | FIELDS.keys() | whole


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (INTEGER, {**INTEGER, "minimum": 0}, Code.BOUND_TIGHTENED),
        (INTEGER, {**INTEGER, "multipleOf": 4}, Code.BOUND_TIGHTENED),
        ({**INTEGER, "multipleOf": 4}, {**INTEGER, "multipleOf": 2}, Code.BOUND_LOOSENED),
        ({**INTEGER, "multipleOf": 4}, {**INTEGER, "multipleOf": 3}, Code.BOUND_TIGHTENED),
        ({**STRING, "maxLength": 5}, STRING, Code.BOUND_LOOSENED),
        (
            {**INTEGER, "maximum": 5},
            {**INTEGER, "maximum": 5, "exclusiveMaximum": True},
            Code.BOUND_TIGHTENED,
        ),
        ({**STRING, "anyOf": [{"minLength": 2}]}, {**STRING, "anyOf": [{"minLength": 2}, {"enum": [""]}]},
         Code.BRANCH_REMOVED),
        ({**STRING, "allOf": []}, {**STRING, "allOf": [{"minLength": 2}]}, Code.BRANCH_ADDED),
        ({"type": "object", "additionalProperties": True}, MAP, Code.TYPE_NARROWED),
    ],
)  # fmt: skip
def test_what_takes_fewer_values_is_tighter(old, new, code):
    assert [one.code for one in compare(definition(version(field=old)), definition(version(field=new)))] == [code]


def test_the_quantities_of_controller_gen_lose_only_what_no_client_can_read():
    loose = {**QUANTITY, "pattern": LOOSE_QUANTITY}

    assert compare(definition(version(field=loose)), definition(version(field=QUANTITY))) == []
    assert [one.code for one in compare(definition(version(field=QUANTITY)), definition(version(field=loose)))] == [
        Code.PATTERN_CHANGED
    ]


def test_changes_below_lists_and_maps_name_their_place():
    def nested(limit: int) -> dict[str, Any]:
        values = {"type": "object", "additionalProperties": {**STRING, "maxLength": limit}}
        return {"type": "array", "items": obj(labels=values)}

    (found,) = compare(definition(version(field=nested(5))), definition(version(field=nested(4))))

    assert (found.path, found.was, found.now) == ("spec.field[].labels{}", "maxLength 5", "maxLength 4")


def test_a_field_that_loses_its_default_is_required_from_then_on():
    old = {**obj(a={**STRING, "default": "x"}), "required": ["a"]}
    new = {**obj(a=STRING), "required": ["a"]}

    codes = {finding.code for finding in compare(definition(version(field=old)), definition(version(field=new)))}

    assert codes == {Code.REQUIRED_ADDED, Code.DEFAULT_REMOVED}


def test_a_new_required_field_is_breaking_unless_it_comes_with_its_parent_or_a_default():
    required = {**obj(a=STRING), "required": ["a"]}
    with_default = {**obj(a={**STRING, "default": "x"}), "required": ["a"]}

    def codes(old: Any, new: Any) -> list[Code]:
        return [finding.code for finding in compare(definition(version(field=old)), definition(version(field=new)))]

    assert codes(obj(), required) == [Code.REQUIRED_ADDED, Code.FIELD_ADDED]
    assert codes(obj(), obj(parent=required)) == [Code.FIELD_ADDED]
    assert codes(obj(), with_default) == [Code.FIELD_ADDED]


def test_the_worst_comes_first():
    old = obj(a=STRING, b=STRING)
    new = obj(b={**STRING, "default": "x"}, c=STRING)

    levels = [finding.level for finding in compare(definition(version(field=old)), definition(version(field=new)))]

    assert levels == [Level.BREAKING, Level.RISKY, Level.HARMLESS]


def test_the_certificate_and_the_default_port_of_a_conversion_are_no_change():
    old, new = definition(V1, V2_SERVED, conversion=webhook("a")), definition(V1, V2_SERVED, conversion=webhook("a"))
    client = old["spec"]["conversion"]["webhook"]["clientConfig"]
    client["caBundle"] = "QQ=="
    client["service"]["port"] = 443

    assert compare(old, new) == []


def test_pruning_for_all_versions_is_found():
    keeping = definition(preserveUnknownFields=True)

    assert [finding.code for finding in compare(keeping, definition())] == [Code.UNKNOWN_FIELDS_PRUNED]
    assert [finding.code for finding in compare(definition(), keeping)] == [Code.UNKNOWN_FIELDS_KEPT]


def test_what_is_not_known_yet_is_found_in_the_definition_and_its_versions():
    of_all, of_one = definition(newKey=1), definition(version(newKey=1))

    assert [(one.code, one.version, one.now) for one in compare(definition(), of_all)] == [
        (Code.OTHER_CHANGED, "", {"newKey": 1})
    ]
    assert [(one.code, one.version) for one in compare(definition(), of_one)] == [(Code.OTHER_CHANGED, "v1")]


# What holds of all definitions

_names = st.sampled_from(["a", "b", "c", "d"])
_leaves = st.sampled_from(
    [
        STRING,
        INTEGER,
        {**STRING, "enum": ["x", "y"]},
        {**INTEGER, "minimum": 1},
        rule("self > 0"),
        listed("map", "a", "b"),
    ]
)


def _wider(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.dictionaries(_names, children, max_size=3).map(lambda fields: obj(**fields))
    lists = children.map(lambda items: {"type": "array", "items": items})
    maps = children.map(lambda values: {"type": "object", "additionalProperties": values})
    return st.one_of(objects, lists, maps)


schemas = st.recursive(_leaves, _wider, max_leaves=8)


@given(schemas)
def test_a_definition_does_not_differ_from_itself(schema):
    one = definition(version(field=schema), stored=("v1",))

    assert compare(one, copy.deepcopy(one)) == []


@given(schemas, schemas)
def test_what_differs_is_found(old, new):
    assert bool(compare(definition(version(field=old)), definition(version(field=new)))) == (old != new)


@given(schemas)
def test_an_optional_field_may_be_added_in_every_place(schema):
    for place in _objects(schema):
        before = copy.deepcopy(schema)
        place["properties"]["added"] = {**INTEGER, "minimum": 3}

        findings = compare(definition(version(field=before)), definition(version(field=schema)))

        assert {(finding.code, finding.level) for finding in findings} == {(Code.FIELD_ADDED, Level.HARMLESS)}
        del place["properties"]["added"]


def _objects(schema: dict[str, Any]) -> list[dict[str, Any]]:
    here = [schema] if "properties" in schema else []
    below = [
        *schema.get("properties", {}).values(),
        *(schema[key] for key in ("items", "additionalProperties") if key in schema),
    ]
    return [*here, *(place for child in below for place in _objects(child))]


# Files


def test_the_definitions_of_the_examples_do_not_differ_from_themselves():
    assert CRD_FILES
    for file in CRD_FILES:
        (comparison,) = compare_all(read_definitions(file), read_definitions(file.parent))
        assert comparison.findings == ()


def test_definitions_are_paired_by_name_and_then_by_kind():
    renamed = definition(group="other.com")
    renamed["metadata"]["name"] = "things.other.com"
    extra = definition(names={"kind": "Extra", "plural": "extras"})
    extra["metadata"]["name"] = "extras.example.com"

    moved = compare_all([definition()], [extra, renamed])
    gone = compare_all([definition(), extra], [definition()])

    assert [(each.name, [one.code for one in each.findings]) for each in moved] == [
        ("extras.example.com", [Code.DEFINITION_ADDED]),
        ("things.example.com", [Code.GROUP_CHANGED]),
    ]
    assert [(each.name, [one.code for one in each.findings]) for each in gone] == [
        ("extras.example.com", [Code.DEFINITION_REMOVED]),
        ("things.example.com", []),
    ]
