from __future__ import annotations

import pytest

from ctrlruntime.schema import compile_schema
from ctrlruntime.schema.formats import is_valid
from ctrlruntime.schema.structural import Structural, compile_pattern


def judged(schema, value, old=...):
    node = compile_schema(schema)
    causes = node.validate(value, "f") if old is ... else node.validate(value, "f", old)
    return [f"{cause.field}: {cause.message}" for cause in causes]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"type": "integer", "maximum": 3}, 4, "f: Invalid value: 4: f in body should be less than or equal to 3"),
        (
            {"type": "integer", "maximum": 3, "exclusiveMaximum": True},
            3,
            "f: Invalid value: 3: f in body should be less than 3",
        ),
        (
            {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
            3,
            "f: Invalid value: 3: f in body should be greater than 3",
        ),
        ({"type": "number", "multipleOf": 0.5}, 0.7, "f: Invalid value: 0.7: f in body should be a multiple of 0.5"),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in f',
        ),
        ({"type": "string", "enum": ["a"]}, "b", 'f: Unsupported value: "b": supported values: "a"'),
        ({"type": "string", "pattern": "^a+$"}, "b", "f: Invalid value: \"b\": f in body should match '^a+$'"),
        ({"type": "string", "format": "ipv4"}, "x", 'f: Invalid value: "x": f in body must be of type ipv4: "x"'),
        ({"type": "boolean"}, 1, 'f: Invalid value: "integer": f in body must be of type boolean: "integer"'),
        (
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
            [],
            "f: Invalid value: 0: f in body should have at least 1 items",
        ),
        (
            {"type": "array", "maxItems": 1, "items": {"type": "string"}},
            ["a", "b"],
            "f: Too many: 2: must have at most 1 item",
        ),
        ({"type": "object", "maxProperties": 0}, {"a": 1}, "f: Too many: 1: must have at most 0 items"),
        (
            {"type": "object", "minProperties": 1},
            {},
            "f: Invalid value: 0: f in body should have at least 1 properties",
        ),
        ({"type": "integer", "enum": [1, 2]}, 3, 'f: Unsupported value: 3: supported values: "1", "2"'),
        (
            {"type": "integer", "not": {"enum": [3]}},
            3,
            '<nil>: Invalid value: "": "f" must not validate the schema (not)',
        ),
        (
            {"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            '<nil>: Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
    ],
)
def test_each_rule_has_upstreams_text(schema, value, message):
    assert judged(schema, value) == [message]


@pytest.mark.parametrize("value", [2**63, 1.5, 1e300])
def test_numbers_that_are_no_int64_are_told_twice(value):
    assert judged({"type": "integer"}, value) == [
        'f: Invalid value: "number": f in body must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in f',
    ]


def test_items_of_a_list_without_keys_have_no_earlier_self():
    schema = {"type": "array", "items": {"type": "integer", "minimum": 5}}

    assert judged(schema, [1, 2], [1, 2]) == []
    assert len(judged(schema, [1, 9], [1, 2])) == 1


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 5.0),
        ({"type": "number"}, 5),
        ({"type": "string", "nullable": True}, None),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}, 1),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"anything": [1]}),
    ],
)
def test_what_fits_is_not_reported(schema, value):
    assert judged(schema, value) == []


def test_failed_any_of_names_the_rule_and_the_first_reason():
    schema = {"type": "integer", "anyOf": [{"minimum": 5}, {"minimum": 7}]}

    assert judged(schema, 1) == [
        '<nil>: Invalid value: "": "f" must validate at least one schema (anyOf)',
        "f: Invalid value: 1: f in body should be greater than or equal to 5",
    ]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_each_branch_of_nested_combinations_is_judged_once(keyword, monkeypatch):
    depth, looks, judge = 6, [], Structural.judge
    schema = {"minLength": 9}
    for _ in range(depth):
        schema = {keyword: [schema, schema]}
    node = compile_schema({"type": "string", **schema})

    def counted(self, *arguments):
        looks.append(self)
        return judge(self, *arguments)

    monkeypatch.setattr(Structural, "judge", counted)

    assert node.validate("a", "f")
    assert len(looks) == 2 ** (depth + 1) - 1


def test_ratcheting_follows_the_keys_of_a_map_list():
    schema = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "minimum": 5}}},
    }
    old = [{"k": "a", "n": 1}, {"k": "b", "n": 1}]

    assert judged(schema, [{"k": "b", "n": 1}, {"k": "a", "n": 1}], old) == []
    assert judged(schema, [{"k": "b", "n": 2}], old) == [
        "f[0].n: Invalid value: 2: f[0].n in body should be greater than or equal to 5"
    ]


def test_fitting_defaults_do_not_share_with_the_schema():
    default = {"a": []}
    node = compile_schema(
        {
            "type": "object",
            "properties": {"d": {"type": "object", "default": default, "x-kubernetes-preserve-unknown-fields": True}},
        }
    )
    first, second = {}, {}
    node.fit(first, "", [])
    node.fit(second, "", [])

    first["d"]["a"].append(1)

    assert second == {"d": {"a": []}}
    assert default == {"a": []}


def test_metadata_of_an_embedded_resource_is_kept():
    node = compile_schema(
        {
            "type": "object",
            "properties": {
                "e": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                }
            },
        }
    )
    value = {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}, "junk": 1}}
    unknown = []

    node.fit(value, "", unknown)

    assert value == {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}}
    assert sorted(unknown) == ["e.junk", "e.spec.x"]


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "("])
def test_patterns_that_re2_does_not_have_are_refused(pattern):
    with pytest.raises(ValueError):
        compile_pattern(pattern)


def test_a_dollar_is_the_very_end():
    assert compile_pattern("^a$").matches("a")
    assert not compile_pattern("^a$").matches("a\n")


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date-time", "2024-01-01T00:00:00.5Z", "2024-13-01T00:00:00Z"),
        ("date", "2024-01-31", "2024-1-1"),
        ("byte", "aGk=", "a"),
        ("duration", "1h30m", "soon"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("hostname", "a.example.com", "a.b"),
        ("email", "a@b.c", "a"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("uri", "https://x/y", "x y"),
        ("k8s-short-name", "abc-1", "Abc"),
    ],
)
def test_formats(format, good, bad):
    assert is_valid(format, good)
    assert not is_valid(format, bad)


def test_unknown_formats_accept_everything():
    assert is_valid("int32", "anything")
