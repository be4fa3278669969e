from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime import selector
from ctrlruntime.selector import (
    FieldTerm,
    LabelSelector,
    Requirement,
    from_fields,
    from_label_selector,
    parse_fields,
    parse_labels,
)


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("a", {}, False),
        ("!a", {}, True),
        ("! a", {"a": "1"}, False),
        ("a=1", {"a": "1"}, True),
        ("a == 1", {"a": "1"}, True),
        ("a=1", {}, False),
        ("a=", {"a": ""}, True),
        ("a!=1", {"a": "2"}, True),
        ("a!=1", {}, True),
        ("a in (1, 2)", {"a": "2"}, True),
        ("a in (1,2)", {}, False),
        ("a in (,1)", {"a": ""}, True),
        ("a in ()", {"a": ""}, True),
        ("a notin (1,2)", {}, True),
        ("a notin (1,2)", {"a": "1"}, False),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "x"}, False),
        ("a<5", {"a": "4"}, True),
        ("a>5", {"a": "9223372036854775807"}, True),
        ("a>5", {"a": "9223372036854775808"}, False),
        ("x.io/a=1,b,!c", {"x.io/a": "1", "b": ""}, True),
        ("in in (in)", {"in": "in"}, True),
        ("a in (,b)", {"a": ""}, True),
        ("a in (b,,c)", {"a": ""}, True),
        ("a in (b,c)", {"a": ""}, False),
    ],
)
def test_label_selectors_match_as_the_api_server_does(text, labels, expected):
    assert parse_labels(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=1 b", "found 'b', expected: ',' or 'end of string'"),
        ("a in 1", "unable to parse requirement: found '1' expected: '('"),
        ("a in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a=!", "unable to parse requirement: found '!', expected: identifier"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a notin", "unable to parse requirement: found '' expected: '('"),
        ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_label_selector_errors_have_the_servers_text(text, message):
    with pytest.raises(ValueError) as caught:
        parse_labels(text)

    assert str(caught.value) == message


def test_a_key_or_value_that_is_no_label_is_refused():
    with pytest.raises(ValueError, match="name part must consist of"):
        parse_labels("-a=1")
    with pytest.raises(ValueError, match="a valid label must be an empty string"):
        parse_labels("a=-1")
    with pytest.raises(ValueError, match="prefix part"):
        parse_labels("Bad_Prefix/a=1")


def test_the_canonical_text_is_sorted_and_equal_selectors_are_equal():
    one, two = parse_labels("b in (2,1), a==x,!c"), parse_labels("!c,a==x,b in (1,2)")

    assert str(one) == "a==x,b in (1,2),!c"
    assert one == two
    assert hash(one) == hash(two)
    assert parse_labels(str(one)) == one


def test_a_label_selector_tree_becomes_the_same_selector():
    tree = {
        "matchLabels": {"app": "x"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "new", "operator": "Exists"},
            {"key": "zone", "operator": "NotIn", "values": ["z"]},
        ],
    }

    assert str(from_label_selector(tree)) == "app=x,new,!old,tier in (a,b),zone notin (z)"


def test_an_absent_tree_selects_nothing_and_an_empty_one_everything():
    assert not from_label_selector(None).matches({})
    assert from_label_selector({}).matches({})
    with pytest.raises(ValueError, match='"Like" is not a valid label selector operator'):
        from_label_selector({"matchExpressions": [{"key": "a", "operator": "Like"}]})


def test_builders_combine():
    both = selector.in_("a", ["1"]) & selector.not_in("b", ["2"]) & selector.exists("c") & selector.not_exists("d")

    assert str(both) == "a in (1),b notin (2),c,!d"
    assert both.matches({"a": "1", "c": ""})
    assert not both.matches({"a": "1", "c": "", "d": ""})
    assert selector.from_labels({"a": "1"}) == selector.equals("a", "1")


@pytest.mark.parametrize(("value", "text"), [(1, "1"), (True, "true"), (1.5, "1.5"), (None, "None")])
@pytest.mark.parametrize(("make", "what"), [(selector.from_labels, "label"), (from_fields, "field")])
def test_a_value_that_is_no_text_says_what_to_write(make, what, value, text):
    with pytest.raises(
        TypeError, match=rf"the value of the {what} app is a text, not {value}: write {{'app': '{text}'}}"
    ):
        make({"app": value})
    assert not LabelSelector()
    assert Requirement("a", "exists").matches({"a": "1"})


def test_field_selectors_parse_match_and_print():
    fields = parse_fields("status.phase!=Running,,metadata.name=a,spec.x==y")

    assert fields.matches({"metadata.name": "a", "status.phase": "Pending", "spec.x": "y"})
    assert not fields.matches({"metadata.name": "a", "status.phase": "Running", "spec.x": "y"})
    assert str(fields) == "metadata.name=a,spec.x=y,status.phase!=Running"
    assert fields.exact("metadata.name") == "a"
    assert fields.exact("status.phase") is None
    assert fields.paths == ("metadata.name", "spec.x", "status.phase")
    assert not parse_fields("")


def test_field_values_may_be_escaped():
    fields = parse_fields(r"a=x\,y,b=1\=2")

    assert fields.terms == (FieldTerm("a", "x,y"), FieldTerm("b", "1=2"))
    assert parse_fields(str(fields)) == fields


@given(st.dictionaries(st.sampled_from("abc"), st.text(st.sampled_from("a\\,=! ")), max_size=3))
def test_every_field_value_can_be_asked_for(values):
    assert {term.path: term.value for term in parse_fields(str(from_fields(values))).terms} == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=b=c", "unescaped character in value: 61"),
        (r"a=\b", r"invalid escape sequence: \b"),
        ("a=b\\", "invalid escape sequence: \\"),
    ],
)
def test_a_value_that_is_not_escaped_is_refused(text, problem):
    with pytest.raises(ValueError) as caught:
        parse_fields(text)

    assert str(caught.value) == f"invalid field selector: {problem}"


def test_a_field_selector_without_operator_is_refused():
    with pytest.raises(ValueError) as caught:
        parse_fields("bad")

    assert str(caught.value) == "invalid selector: 'bad'; can't understand 'bad'"
