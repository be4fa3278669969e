from __future__ import annotations

import subprocess
import sys

import pytest

from ctrlruntime import cel
from ctrlruntime.cel import types
from ctrlruntime.cel.library.authorization import AUTHORIZER, Authorizer, Decision
from ctrlruntime.cel.schema_types import converter, declare, smallest
from ctrlruntime.cel.types import object_of, optional_of
from ctrlruntime.cel.values import (
    NOTHING,
    Optional,
    Timestamp,
    UInt,
    equal,
    parse_duration,
    parse_timestamp,
    read_duration,
)


def value_of(expression, **variables):
    declared = dict.fromkeys(variables, types.DYN)
    return cel.compile(expression, variables=declared).evaluate(**variables)


def test_a_program_says_what_it_gives_and_what_it_uses():
    program = cel.compile("a + 1 > 2", variables={"a": types.INT, "b": types.INT})

    assert program.source == "a + 1 > 2"
    assert str(program.result_type) == "bool"
    assert program.used_variables == {"a"}
    assert program.evaluate(a=2) is True
    assert program.evaluate(a=1) is False


def test_untyped_arguments_are_those_whose_type_is_known_only_at_run_time():
    fields = {"a": types.DYN, "b": types.STRING, "c": types.list_of(types.DYN)}
    rule = "quantity(self.a) == quantity(self.b) && self.c.all(each, isQuantity(each)) && isQuantity(self.c[0])"

    program = cel.compile(rule, variables={"self": object_of("self", fields)})

    assert sorted(program.untyped_arguments("quantity", "isQuantity")) == [
        ("isQuantity", "each"),
        ("isQuantity", "…"),
        ("quantity", "self.a"),
    ]
    assert (program.calls("quantity"), program.calls("type")) == (True, False)


def test_functions_of_kubernetes_name_the_types_for_which_they_have_no_overload():
    with pytest.raises(cel.EvaluationError, match=r"^no such overload: quantity\(int\)$"):
        value_of("quantity(a)", a=1)


def test_each_place_that_is_wrong_is_shown_in_order():
    with pytest.raises(cel.CompileError) as caught:
        cel.compile("b || a.zz", variables={"a": object_of("thing", {"x": types.INT})})

    assert str(caught.value) == (
        "ERROR: <input>:1:1: undeclared reference to 'b' (in container '')\n | b || a.zz\n | ^\n"
        "ERROR: <input>:1:7: undefined field 'zz'\n | b || a.zz\n | ......^"
    )


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1, 2].map(x, x * 2)", [2, 4]),
        ("[[1, 2], [3]].map(x, x.map(y, y + 1))", [[2, 3], [4]]),
        ("[1, 2, 3].filter(x, x > 1).map(y, [1].map(z, y))", [[2], [3]]),
        ("{'a': 1}.map(k, k)", ["a"]),
        ("[3, 1].transformMap(i, v, i)", {0: 0, 1: 1}),
        ("[1].all(x, [2].all(x, x == 2) && x == 1)", True),
    ],
)
def test_loops_nest(expression, value):
    assert value_of(expression) == value


def test_what_a_loop_makes_is_new_each_time():
    program = cel.compile("[1].map(x, x)", variables={})

    first = program.evaluate()
    first.append(2)

    assert program.evaluate() == [1]


def test_a_decided_operator_absorbs_the_failure_of_its_other_side():
    assert value_of("a.b || true", a={}) is True
    assert value_of("a.b && false", a={}) is False
    with pytest.raises(cel.EvaluationError, match="no such key: b"):
        value_of("a.b || false", a={})


def test_dyn_finds_its_overload_by_the_value():
    assert value_of("a + b", a="x", b="y") == "xy"
    assert value_of("a + b", a=[1], b=["y"]) == [1, "y"]
    with pytest.raises(cel.EvaluationError, match="no such overload"):
        value_of("a + b", a="x", b=1)


def test_values_of_different_kinds_are_not_equal_and_numbers_compare_by_value():
    assert equal(1, 1.0)
    assert equal(UInt(1), 1)
    assert not equal(True, 1)
    assert not equal("1", 1)
    assert equal([{"a": 1}], [{"a": 1.0}])
    assert equal(Optional(1), Optional(1))
    assert not equal(Optional(1), NOTHING)


def test_optional_old_values():
    program = cel.compile("old.orValue(1) == 1", variables={"old": optional_of(types.INT)})

    assert program.evaluate(old=NOTHING) is True
    assert program.evaluate(old=Optional(2)) is False


def test_an_authorizer_asks_its_function():
    asked = []

    def decide(request):
        asked.append(request)
        return Decision(allowed=request.verb == "get", reason="because")

    rule = "authorizer.group('apps').resource('deployments').namespace('n').name('d').check('get').allowed()"
    program = cel.compile(rule, variables={"authorizer": AUTHORIZER})

    assert program.evaluate(authorizer=Authorizer(decide)) is True
    assert (asked[0].group, asked[0].resource, asked[0].namespace, asked[0].name) == ("apps", "deployments", "n", "d")
    assert program.cost().most > 350_000
    account = "authorizer.serviceAccount('n', 'sa').path('/x').check('post').reason()"
    assert (
        cel.compile(account, variables={"authorizer": AUTHORIZER}).evaluate(authorizer=Authorizer(decide)) == "because"
    )
    assert asked[1].user == "system:serviceaccount:n:sa"


def test_a_schema_declares_types_and_escapes_names():
    schema = {
        "type": "object",
        "properties": {
            "a-b": {"type": "string", "maxLength": 3},
            "namespace": {"type": "integer"},
            "free": {"x-kubernetes-preserve-unknown-fields": True},
            "list": {"type": "array", "items": {"type": "number"}},
            "9": {"type": "string"},
        },
    }

    declared = declare(schema)

    assert set(declared.fields) == {"a__dash__b", "__namespace__", "namespace", "list"}
    assert declared.fields["a__dash__b"].largest == 12
    assert str(declared.fields["list"]) == "list(double)"
    assert declare({"x-kubernetes-preserve-unknown-fields": True}) is None
    assert smallest({"type": "object", "required": ["a-b"], "properties": schema["properties"]}) == 2 + 3 + 2 + 4


def test_a_resource_has_its_names():
    declared = declare({"type": "object", "properties": {"metadata": {"type": "object"}}}, is_resource=True)

    assert set(declared.fields) == {"apiVersion", "kind", "metadata"}
    assert set(declared.fields["metadata"].fields) == {"name", "generateName"}


def test_values_are_converted_only_where_a_schema_asks():
    plain = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    }
    special = {
        "type": "object",
        "properties": {
            "t": {"type": "string", "format": "date-time"},
            "n": {"type": "string", "nullable": True},
            "d": {"type": "number"},
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
    }

    converted = converter(special)({"t": "2024-01-01T00:00:00Z", "n": None, "d": 1, "s": ["a", "b"]})

    assert converter(plain) is None
    assert isinstance(converted["t"], Timestamp)
    assert "n" not in converted
    assert isinstance(converted["d"], float)
    assert equal(converted["s"], ["b", "a"])


@pytest.mark.parametrize(("text", "seconds"), [("1h30m", 5400), ("-1.5s", -1.5), ("0", 0), ("300ms", 0.3)])
def test_durations(text, seconds):
    assert parse_duration(text).nanoseconds == seconds * 1_000_000_000


def test_durations_in_words_are_for_formats_only():
    assert parse_duration("2 weeks") is None
    assert read_duration("2 weeks").nanoseconds == 14 * 24 * 3600 * 1_000_000_000
    assert read_duration("soon") is None


def test_a_timestamp_keeps_its_offset():
    moment = parse_timestamp("2024-01-01T00:00:00.5+01:00")

    assert str(moment) == "2024-01-01T00:00:00.5+01:00"
    assert moment == parse_timestamp("2023-12-31T23:00:00.5Z")
    assert parse_timestamp("2024-13-01T00:00:00Z") is None


def test_a_server_without_rules_does_not_load_the_compiler():
    code = "import sys, ctrlruntime.apiserver; print([m for m in sys.modules if m.startswith('ctrlruntime.cel.')])"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "ctrlruntime.cel.program" not in loaded
    assert "ctrlruntime.cel.checker" not in loaded


def test_deep_data_is_a_failure_and_no_crash():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(cel.EvaluationError, match="nests too deeply"):
        value_of("a == b", a=deep, b=[deep[0]])


def test_loops_that_never_seem_to_end_are_stopped():
    program = cel.compile("l.all(a, l.all(b, l.all(c, true || a == b)))", variables={"l": types.list_of(types.INT)})

    assert program.evaluate(l=list(range(50))) is True
    with pytest.raises(cel.CostError, match="actual cost limit exceeded"):
        program.evaluate(l=list(range(100)))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("null[[list]]", "invalid qualifier type"),
        ("dyn(null)[?[1]]", "invalid qualifier type"),
        ("self[?'a']", "unsupported index type 'string' in list"),
        ("self[?true]", "unsupported index type 'bool' in list"),
        ("self.map(x, {self: x})", "unsupported key type: list"),
        ("[?self]", "cannot initialize optional list element from non-optional value"),
        ("{?'a': self}", "cannot initialize optional entry 'a' from non-optional value"),
        ("null.optMap(x, x)", r"no such overload: hasValue\(null_type\)"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_of_the_evaluation(rule, message):
    program = cel.compile(rule, variables={"self": types.DYN})

    with pytest.raises(cel.EvaluationError, match=message):
        program.evaluate(self=[1, 2])


def test_a_range_has_a_bound():
    with pytest.raises(cel.CostError, match="actual cost limit exceeded"):
        cel.compile("lists.range(self)", variables={"self": types.INT}).evaluate(self=2**62)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("has(self.f)", False),
        ("self.?f.hasValue()", False),
        ("dyn(1)[?0].orValue(2)", 2),
        ("optional.of(1).orValue(1 / 0)", 1),
        ("optional.of(1).or(optional.of(1 / 0)).value()", 1),
    ],
)
def test_what_has_no_parts_has_no_part_of_any_name(rule, value):
    assert cel.compile(rule, variables={"self": types.DYN}).evaluate(self="x") == value


@pytest.mark.parametrize(
    ("expression", "kind", "value"),
    [
        ("Object{a: 1, b: Object.b{c: 'x'}}", "Object", {"a": 1, "b": {"c": "x"}}),
        ("Object{?a: optional.none(), ?b: optional.of(1)}", "Object", {"b": 1}),
        ("[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/b~')}]", "list(JSONPatch)", None),
        ("Object{a: 1}.a + 1", "int", 2),
        ("has(Object{a: 1}.b)", "bool", False),
        ("true ? dyn(1) : 'a'", "dyn", 1),
    ],
)
def test_literals_of_mutations(expression, kind, value):
    program = cel.compile(expression, variables={}, mutates=True)

    found = program.evaluate()

    assert str(program.result_type) == kind
    assert found == (value if value is not None else [{"op": "add", "path": "/a~1b~0"}])
    with pytest.raises(cel.CompileError, match=r"undeclared reference|undefined"):
        cel.compile("Object{}", variables={})
