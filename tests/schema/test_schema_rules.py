from __future__ import annotations

import subprocess
import sys

import pytest

from ctrlruntime.schema import compile_schema
from ctrlruntime.schema.definition_rules import check_schema, unrecognized_formats
from ctrlruntime.schema.rules import compile_rules, normalized_path

INT = {"type": "integer"}


def ruled(schema, *rules):
    return {**schema, "x-kubernetes-validations": [r if isinstance(r, dict) else {"rule": r} for r in rules]}


def thing(**properties):
    return {"type": "object", "properties": properties}


def findings(schema, value, old=None):
    causes, warnings = compile_rules(schema).check(value, old)
    return [f"{cause.field}: {cause.message}" for cause in causes], warnings


def test_a_schema_without_rules_has_no_node():
    assert compile_rules(thing(a=INT)) is None
    assert compile_schema(thing(a=INT)).rules is None


def test_only_the_branch_with_rules_is_kept():
    node = compile_rules(thing(a=INT, b=thing(c=ruled(INT, "self > 0"))))

    assert list(node.properties) == ["b"]
    assert node.rules == ()


def test_a_rule_fails_at_its_value_and_at_its_field_path():
    schema = thing(
        n=ruled(INT, "self > 0"),
        m={"type": "object", "additionalProperties": ruled(thing(v=INT), {"rule": "self.v > 0", "fieldPath": ".v"})},
    )

    assert findings(schema, {"n": 0, "m": {"k": {"v": 0}}})[0] == [
        "n: Invalid value: 0: failed rule: self > 0",
        "m[k].v: Invalid value: failed rule: self.v > 0",
    ]


def test_a_failure_of_what_did_not_change_is_a_warning():
    schema = thing(n=ruled(INT, {"rule": "self > 5", "message": "too small"}))

    assert findings(schema, {"n": 1}, {"n": 1}) == ([], ["n: Invalid value: 1: too small"])
    assert findings(schema, {"n": 2}, {"n": 1}) == (["n: Invalid value: 2: too small"], [])


def test_transition_rules_need_an_old_value_unless_they_say_otherwise():
    needs = thing(n=ruled(INT, "self >= oldSelf"))
    optional = thing(n=ruled(INT, {"rule": "oldSelf.orValue(0) < self", "optionalOldSelf": True}))

    assert findings(needs, {"n": 1}) == ([], [])
    assert findings(needs, {"n": 1}, {"n": 2})[0] == ["n: Invalid value: 1: failed rule: self >= oldSelf"]
    assert findings(optional, {"n": 0})[0] == ["n: Invalid value: 0: failed rule: oldSelf.orValue(0) < self"]


def test_items_of_a_map_list_meet_their_old_selves_by_key():
    items = {**thing(k={"type": "string"}, v=ruled(INT, "self >= oldSelf")), "required": ["k"]}
    schema = thing(
        l={"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    )
    old = {"l": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}

    assert findings(schema, {"l": [{"k": "b", "v": 1}, {"k": "a", "v": 5}]}, old) == ([], [])
    assert findings(schema, {"l": [{"k": "b", "v": 0}]}, old)[0] == [
        "l[0].v: Invalid value: 0: failed rule: self >= oldSelf"
    ]


def test_rules_wait_until_the_object_fits_its_schema():
    schema = compile_schema(thing(spec=ruled(thing(n=INT), "self.n > 0")))

    verdict = schema.judge_object({"metadata": {}, "spec": {"n": "x"}}, None)

    assert [cause.field for cause in verdict.causes] == ["spec.n", "<nil>"]
    assert "some validation rules were not checked" in verdict.causes[-1].message


def test_the_root_sees_the_names_of_an_object():
    schema = compile_schema({**ruled({"type": "object"}, "self.metadata.name == 'a'")})

    assert schema.judge_object({"metadata": {"name": "a"}}, None).causes == []
    assert [c.field for c in schema.judge_object({"metadata": {"name": "b"}}, None).causes] == ["<nil>"]


@pytest.mark.parametrize(
    ("path", "result"),
    [
        (".a", ".a"),
        (".a.b", ".a.b"),
        (".m['x.y'].c", ".m[x.y].c"),
        (".m.k", ".m[k]"),
        (".z", None),
        ("a", None),
        (".a[0]", None),
    ],
)
def test_field_paths(path, result):
    schema = thing(a=thing(b=INT), m={"type": "object", "additionalProperties": thing(c=INT)})

    assert normalized_path(path, schema) == result


def test_a_rule_that_can_cost_too_much_is_refused_with_its_factor():
    schema = thing(l={"type": "array", "maxItems": 4_000_000, "items": ruled(INT, "self > 0 && true || 5 == self")})

    causes = check_schema(schema, "s")

    assert [(cause.reason, cause.field) for cause in causes] == [
        ("FieldValueForbidden", "s.properties[l].items.x-kubernetes-validations[0].rule")
    ]
    assert "estimated rule cost exceeds budget by factor of 1.200000x" in causes[0].message


def test_without_the_cel_library_a_definition_with_rules_is_refused_in_one_line():
    code = """
import sys
sys.modules["re2"] = None
from ctrlruntime.schema.definition_rules import check_schema
(cause,) = check_schema({"type": "object", "x-kubernetes-validations": [{"rule": "'a'.matches('a')"}]}, "s")
print(cause.field, cause.message)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.startswith(
        "s.x-kubernetes-validations[0].rule Internal error: cannot use regular expressions of Kubernetes: the package google-re2"
    )


def test_formats_nobody_checks_are_named_once():
    schema = thing(
        a={"type": "string", "format": "foo"},
        b={"type": "string", "format": "foo"},
        c={"type": "string", "format": "uuid"},
    )

    assert unrecognized_formats(schema) == ["foo"]


def test_after_a_rule_that_cost_too_much_no_other_is_looked_at():
    loop = "self.all(a, self.all(b, self.all(c, true || a == b)))"
    schema = thing(l=ruled({"type": "array", "items": INT}, loop, "false"), z=ruled(INT, "false"))

    causes, _ = findings(schema, {"l": list(range(100)), "z": 1})

    why = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run"
    assert causes == [f'l: Invalid value: "array": {why} due to call cost exceeds limit for rule: {loop}']
