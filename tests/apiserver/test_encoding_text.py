"""Bodies as trees: what is no text, no JSON, no YAML, or nothing that a type of Go holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.apiserver.encoding import decode_body, duplicate_fields, timestamp
from ctrlruntime.apiserver.go_json import NumberError, Struct, syntax_error, unmarshal
from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml


@pytest.mark.parametrize(
    ("body", "tree"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\ud800\u0041"', "\ufffdA"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\\ud800"', r"\ud800"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (rb'{"\udc00": 1}', {"\ufffd": 1}),
    ],
)
def test_json_replaces_what_is_no_character(body, tree):
    assert decode_body(body) == tree


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a": ', "unexpected end of JSON input"),
        (r'"\q"', "invalid character 'q' in string escape code"),
        (r'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        ('{"a": "é\n"}', r"invalid character '\n' in string literal"),
        ("fals", "invalid character ' ' in literal false (expecting 'e')"),
        ("[nul]", "invalid character ']' in literal null (expecting 'l')"),
        ("01", "invalid character '1' after top-level value"),
        ("[1.]", "invalid character ']' after decimal point in numeric literal"),
        ("[1e]", "invalid character ']' in exponent of numeric literal"),
        ("[-]", "invalid character ']' in numeric literal"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1, 2.x]", "invalid character 'x' after decimal point in numeric literal"),
        ('[{}, {"a": [1, 2]}, {"a": 1]', "invalid character ']' after object key:value pair"),
        ('{"a": [1], "b": {"c": 01}}', "invalid character '1' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"', "invalid character '\"' after object key:value pair"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("'", r"invalid character '\'' looking for beginning of value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("[" * 10_001, "invalid character '[' exceeded max depth"),
        ("[" * 600 + "]" * 600, "exceeded max depth"),
    ],
)
def test_what_is_no_json_is_refused_in_the_words_of_go(text, problem):
    with pytest.raises(ValueError) as refused:
        decode_body(text.encode())

    assert str(refused.value) == problem


TOKENS = (
    *("{", "}", "[", "]", ",", ":", '"', "\\", r"\u00e9", r"\ud800", '"a"', "1", "-", ".", "e", "true", "nul", " ", "\n", "é", "\x7f"),
    *('{"a":', "[1,", "01", "1.5", "1E9", r"\n", "'"),
)  # fmt: skip


@given(st.lists(st.sampled_from(TOKENS), max_size=12).map("".join))
def test_a_text_has_a_syntax_error_if_python_cannot_read_it(text):
    try:
        json.loads(text)
    except ValueError:
        assert syntax_error(text.encode())
    else:
        assert not syntax_error(text.encode())


@pytest.mark.parametrize("text", ["1e999", "-1E400", "9" * 5000])
def test_a_number_beyond_all_is_kept_as_it_was_written(text):
    with pytest.raises(NumberError) as refused:
        decode_body(f'{{"a": [{text}], "b": 1.5}}'.encode())

    assert str(refused.value) == f"json: cannot unmarshal number {text} into Go value of type float64"
    assert f"{refused.value.tree['a'][0]}" == text
    assert refused.value.tree["b"] == 1.5


INNER = Struct("Inner", "v1.Inner", {"n": "int32", "texts": "[]string", "by": "map[string]string"})
OUTER = Struct("Outer", "v1.Outer", {"inner": INNER, "on": "bool", "id": "types.UID"})
EXACT = Struct("Exact", "v1.Exact", {"on": "bool"}, is_exact=True)


@pytest.mark.parametrize(
    ("tree", "into", "found"),
    [
        (None, OUTER, {}),
        ({"ON": True, "other": []}, OUTER, {"on": True}),
        ({"ON": 1}, EXACT, {}),
        ({"inner": {"texts": ["a", None], "by": {"a": "b"}, "n": None}}, OUTER, {"inner": {"texts": ["a", ""], "by": {"a": "b"}}}),
    ],
)  # fmt: skip
def test_a_struct_has_the_fields_that_json_gives(tree, into, found):
    assert unmarshal(tree, into) == found


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ([], "array into Go value of type v1.Outer"),
        ({"inner": 1}, "number into Go struct field Outer.inner of type v1.Inner"),
        ({"id": 1}, "number into Go struct field Outer.id of type types.UID"),
        ({"inner": {"n": "1"}}, "string into Go struct field Inner.inner.n of type int32"),
        ({"inner": {"n": 2**31}}, "number 2147483648 into Go struct field Inner.inner.n of type int32"),
        ({"inner": {"n": 1.5}}, "number 1.5 into Go struct field Inner.inner.n of type int32"),
        ({"inner": {"texts": "a"}}, "string into Go struct field Inner.inner.texts of type []string"),
        ({"inner": {"texts": [True]}}, "bool into Go struct field Inner.inner.texts of type string"),
        ({"inner": {"by": []}}, "array into Go struct field Inner.inner.by of type map[string]string"),
        ({"inner": {"by": {"a": {}}}}, "object into Go struct field Inner.inner.by of type string"),
    ],
)
def test_what_a_struct_cannot_hold_is_refused_in_the_words_of_go(tree, problem):
    with pytest.raises(ValueError) as refused:
        unmarshal(tree, OUTER)

    assert str(refused.value) == f"json: cannot unmarshal {problem}"


def test_keys_given_twice_are_found_whatever_the_texts_are():
    body = b'{"a": "\xff", "a": 1, "b": {"c": 1, "c": 2}}'

    assert duplicate_fields(body, decode_body(body)) == ["a", "b.c"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (rb'{"a":"\ud83d\ude00"}', "yaml: found invalid Unicode character escape code"),
        (b'a: 1\nb: "\\q"', "yaml: line 2: found unknown escape character"),
        (rb'{"a":"\/"}', "yaml: found unknown escape character"),
        (b"a: b: c", "yaml: mapping values are not allowed in this context"),
        (b'{"a":"\x7f"}', "yaml: control characters are not allowed"),
        (b"a: \xe2\x82", "yaml: incomplete UTF-8 octet sequence"),
        (b"a: \xf4\x90\x80\x80", "yaml: invalid Unicode character"),
    ],
)
def test_yaml_says_with_upstreams_words_what_is_wrong(body, problem):
    with pytest.raises(YAMLProblem) as refused:
        read_yaml(body)

    assert str(refused.value) == problem


def test_a_time_has_whole_seconds():
    assert timestamp(1_700_000_000.9) == "2023-11-14T22:13:20Z"
