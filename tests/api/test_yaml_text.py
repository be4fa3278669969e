"""Scalars and keys of YAML mean what they mean to kubectl (sigs.k8s.io/yaml)."""

from __future__ import annotations

import pytest

from ctrlruntime.api.yaml_text import MeaningError, read_documents, scalar

SCALARS = {
    "on": True, "yes": True, "y": True, "Y": True, "off": False, "n": False, "tRue": "tRue", "oFF": "oFF",
    "~": None, "Null": None, "12:30:45": "12:30:45", "1:2": "1:2", "0o14": 12, "014": 12, "08": 8.0, "0o8": "0o8", "0b1": 1, "-0b1111": -15,
    "0b2": "0b2", "0x1F": 31, "0X1F": 31, "0x": "0x", "1_000": 1000, "_1": "_1", "1_": 1, "-_1": -1, "0777777777777777777777777": 7.777777777777778e23,
    "18446744073709551615": 2**64 - 1, "18446744073709551616": 2.0**64, "0x10000000000000000": "0x10000000000000000",
    "1e3": 1000.0, "1.": 1.0, ".5": 0.5, "+.5": 0.5, "5_.": 5.0, "._5": "._5", ".e3": ".e3", "1e400": "1e400", "0x1p4": "0x1p4", "1e": "1e",
    "2001-01-01": "2001-01-01", "2001-01-01T00:00:00Z": "2001-01-01T00:00:00Z", "=": "=", "NaN": "NaN", "-.nan": "-.nan", "0.1.2": "0.1.2",
}  # fmt: skip
KEYS = {
    "on": "true", "no": "false", "1": "1", "012": "10", "0x10": "16", "1.5": "1.5", "1.10": "1.1", "1e3": "1000", "123456789.5": "1.2345679e+08",
    "1e21": "1e+21", "0.0000001": "1e-07", ".nan": ".nan", "-.inf": "-.inf", "1e308": ".inf", "'~'": "~", "2001-01-01": "2001-01-01", "=": "=",
}  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_a_scalar_without_quotes_means_what_go_yaml_makes_of_it(text: str, value: object):
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


@pytest.mark.parametrize(("text", "name"), KEYS.items())
def test_a_key_is_the_text_of_what_it_means(text: str, name: str):
    assert list(read_documents(f"{text}: 1")) == [{name: 1}]


@pytest.mark.parametrize("text", ["~", "null", "18446744073709551615", "[a]", "{a: 1}"])
def test_what_has_no_text_is_no_key(text: str):
    with pytest.raises(MeaningError, match="is not a key"):
        list(read_documents(f"? {text}\n: 1"))


def test_a_float_is_written_as_json_has_it():
    assert list(read_documents("[1.0, 1e20, 1.5, -0.0]")) == [[1, 1e20, 1.5, 0]]
    assert [type(one) for one in next(read_documents("[1.0, 1e20, 1.5]"))] == [int, float, float]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a: !!str 1", {"a": "1"}),
        ("a: !!int '1'", {"a": 1}),
        ("a: !!float 1", {"a": 1}),
        ("a: !!binary aGk=", {"a": "hi"}),
        ("a: !other x", {"a": "x"}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("<<: [{a: 1}, {a: 2, b: 2}]", {"a": 1, "b": 2}),
        ("a: 2\n<<: {a: 1}", {"a": 1}),
        ("a: {b, on}", {"a": {"b": None, "true": None}}),
    ],
)
def test_tags_and_merges_mean_what_go_yaml_makes_of_them(text: str, tree: object):
    assert list(read_documents(text)) == [tree]


def test_documents_are_read_in_turn():
    assert list(read_documents("a: 1\n---\n---\nb: 2\n")) == [{"a": 1}, None, {"b": 2}]
