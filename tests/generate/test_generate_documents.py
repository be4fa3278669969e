"""YAML documents are read as Go reads them."""

from __future__ import annotations

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import plain, read_documents, read_one


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e400", "1e400"),
        ("-1e400", "-1e400"),
        ("1_0e4_00", "1_0e4_00"),
        ("9" * 400, "9" * 400),
        ("9" * 6000, "9" * 6000),
        ("0x" + "f" * 6000, "0x" + "f" * 6000),
        ("0x1ffffffffffffffff", "0x1ffffffffffffffff"),
        ("1e300", 1e300),
        ("1e3", 1000),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -(2.0**63)),
        ("0644", 420),
        ("yes", "yes"),
        ("True", True),
        ("2020-01-01", "2020-01-01T00:00:00Z"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_scalar_is_what_go_takes_it_for(text, value):
    found = read_one(f"a: {text}", "x")["a"]

    assert (found, type(found)) == (value, type(value))


def test_a_number_that_none_can_hold_is_written_as_the_text_it_was():
    assert plain(read_one("a: 1e400", "x")["a"]) == "1e400"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "x, line 2: "),
        ("a: 1\na: 2", "x, line 2: duplicate key 'a'"),
        ("? [a]\n: 1", "a key must be a string"),
    ],
)
def test_what_is_no_document_is_refused_in_one_line(text, says):
    with pytest.raises(ConfigError) as caught:
        read_documents(text, "x")

    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_document_is_one():
    assert read_one("", "x") is None
    with pytest.raises(ConfigError, match="x: 2 documents where one is expected"):
        read_one("a: 1\n---\nb: 2", "x")


def test_aliases_are_read_and_a_bomb_of_them_is_refused():
    shared = read_one("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: 2}", "x")
    bomb = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 1}]\n" for n in range(9))

    assert shared == {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}
    for text in (bomb, "&a [*a]"):
        with pytest.raises(
            ConfigError, match=r"x, line \d: (the text comes to more than|an anchor's value contains itself)"
        ):
            read_documents(text, "x")
