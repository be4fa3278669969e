"""Patterns are Go's, and take linear time. The answers are those of Go 1.26's `regexp`."""

from __future__ import annotations

import sys

import pytest

from ctrlruntime import cel
from ctrlruntime.cel import patterns
from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.cel.types import STRING
from ctrlruntime.project.kustomize.resources import Resource
from ctrlruntime.project.kustomize.selecting import Selector
from ctrlruntime.schema.structural import compile_schema

EVIL = ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){20}b", "^(([a-z])+.)+[A-Z]([a-z])+$")
LONG = "a" * 50_000 + "!"
"""A text that a backtracking engine needs more than a lifetime for."""


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("(", "missing closing ): `(`"),
        (")", "unexpected ): `)`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a++", "invalid nested repetition operator: `++`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("[a", "missing closing ]: `[a`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        ("(?>a)", "invalid or unsupported Perl syntax: `(?>`"),
        ("x(?<!a>)", "invalid named capture: `(?<!a>`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"[a]\C+", r"invalid escape sequence: `\C`"),
        (r"\x{", r"invalid escape sequence: `\x{`"),
        ("(?P<ä>x)", "invalid named capture: `(?P<ä>`"),
        ("(" * 1000 + ")" * 1000, f"expression nests too deeply: `{'(' * 1000 + ')' * 1000}`"),
    ],
)
def test_what_go_refuses_is_refused_with_its_words(pattern, error):
    with pytest.raises(ValueError) as caught:
        compile_pattern(pattern)

    assert str(caught.value) == f"error parsing regexp: {error}"


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a$", "a", "a\n"),
        ("(?m)^a$", "b\na\nc", "b"),
        ("(?i)abc", "ABC", "abd"),
        ("a(?i)b|c", "aB", "A"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?s)a.b", "a\nb", "ab"),
        ("a.b", "axb", "a\nb"),
        (r"^\d+$", "12", "\u0661"),
        (r"^\w$", "a", "\u00e9"),
        (r"\bfoo\b", "a foo b", "afoo"),
        ("^[[:alpha:]]+$", "abC", "a1"),
        ("^[[:^alpha:]]+$", "12", "a"),
        (r"^[^\d]+$", "ab", "a1"),
        (r"^[]a]+$", "]a", "b"),
        ("^[a&&b]+$", "a&b", "c"),
        ("^a{,2}$", "a{,2}", "aa"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\x41\x{42}\103$", "ABC", "abc"),
        (r"^\p{Lu}+$", "AÉ", "a"),
        (r"^\P{Lu}+$", "a", "A"),
        (r"^[\p{Greek}]+$", "αβ", "ab"),
        ("^(?P<n>a)(?<m>b)$", "ab", "ba"),
        ("(|a)+$", "a", None),
        (r"^\Q\C(?P<ä>\E$", r"\C(?P<ä>", "C"),
        (r"^[\\C[:alpha:]]+$", "\\C", "1"),
        (r"^\\C$", "\\C", "C"),
        ("^[(((]+$", "(((", ")"),
        (r"a\z", "ba", "a\n"),
        ("^[a-b-c]+$", "a-c", "d"),
        (r"^\pN\PN$", "1a", "11"),
        ("^.$", "\ud800", "ab"),
        ("^\ufffd$", "\udfff", "a"),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, yes, no):
    compiled = compile_pattern(pattern)

    assert compiled.matches(yes)
    assert no is None or not compiled.matches(no)


def test_a_flag_may_turn_greed_around():
    assert compile_pattern("(?U)a+").find("aaa") == "a"
    assert compile_pattern("(?U)a+?").find("aaa") == "aaa"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a", "bab", ["a"]),
        ("a*", "baab", ["", "aa", ""]),
        ("$", "ab", [""]),
        ("", "中é", ["", "", ""]),
        ("é?", "aé中", ["", "é", ""]),
        (r"\b", "a b", ["", "", "", ""]),
        ("^", "aa", [""]),
    ],
)
def test_all_places_are_found_as_go_finds_them(pattern, text, found):
    assert compile_pattern(pattern).find_all(text) == found
    assert compile_pattern(pattern).find_all(text, 1) == found[:1]
    assert compile_pattern(pattern).find_all(text, 0) == []


@pytest.mark.parametrize("pattern", EVIL)
def test_no_pattern_of_a_schema_freezes_the_server(pattern):
    schema = compile_schema({"type": "string", "pattern": pattern})

    assert [cause.field for cause in schema.validate(LONG, "f")] == ["f"]


@pytest.mark.parametrize("pattern", EVIL)
@pytest.mark.parametrize(
    "rule", ["text.matches(pattern)", "text.find(pattern) != ''", "text.findAll(pattern, 1) != []"]
)
def test_no_pattern_of_a_rule_freezes_the_server(pattern, rule):
    compiled = cel.compile(rule, variables={"text": STRING, "pattern": STRING})

    assert compiled.evaluate(text=LONG, pattern=pattern) is False


@pytest.mark.parametrize("pattern", EVIL)
def test_no_pattern_of_a_patch_freezes_kustomize(pattern):
    long = Resource({"apiVersion": "v1", "kind": "A", "metadata": {"name": LONG}}, origin="a.yaml")

    assert not Selector(name=pattern).matches(long)


def test_a_pattern_that_needs_too_much_memory_is_refused():
    with pytest.raises(ValueError, match="expression too large"):
        compile_pattern(r"(?:\pL{500}\PL{500}){2}[\pL\pN]{1000}")


def test_without_re2_there_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    patterns._engine.cache_clear()
    try:
        with pytest.raises(cel.MissingLibraryError, match=r"pip install 'ctrlruntime\[apiserver\]'"):
            compile_pattern("only here")
    finally:
        patterns._engine.cache_clear()
