from __future__ import annotations

import pytest

from ctrlruntime.cel.patterns import compile_pattern


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
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern, yes, no):
    compiled = compile_pattern(pattern)

    assert compiled.search(yes)
    assert no is None or not compiled.search(no)


def test_a_flag_may_turn_greed_around():
    assert compile_pattern("(?U)a+").search("aaa")[0] == "a"
    assert compile_pattern("(?U)a+?").search("aaa")[0] == "aaa"
