"""Bodies as trees: what is not a Unicode, and what is not YAML."""

import pytest

from ctrlruntime.apiserver.encoding import decode_body, duplicate_fields, timestamp
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


@pytest.mark.parametrize("body", [b'{"a": ', rb'"\q"', b'{"a": "\xff"', b"[" * 600 + b"]" * 600])
def test_what_is_no_json_is_refused(body):
    with pytest.raises(Exception, match=r"truncated|malformed|max depth"):
        decode_body(body)


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
