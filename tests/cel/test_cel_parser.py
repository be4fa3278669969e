"""The parser: trees and errors as cel-go's, the limits, and what cannot be read from the recorded expressions."""

from __future__ import annotations

import gzip
import json

import pytest
from parsers import RECORDED, comparable, ours

from ctrlruntime import cel
from ctrlruntime.cel import syntax_errors
from ctrlruntime.cel.types import DYN

PARSED = json.loads(gzip.decompress(RECORDED.read_bytes()))


def test_random_expressions_are_read_as_cel_go_reads_them():
    differ = {
        text: (ours(text), answer) for text, answer in PARSED.items() if comparable(ours(text)) != comparable(answer)
    }

    assert differ == {}
    assert {answer[0] for answer in PARSED.values()} == {"ok", "error"}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("-1", "0-1"),
        ("- 1", "0-1"),
        ("--1", "21"),
        ("-1u", "0c-_(11u)"),
        ("!!!a", "0c!_(3ia)"),
        ("a - -1", "2c_-_(0ia,4-1)"),
        ("1 - 2 - 3", "6c_-_(2c_-_(01,42),83)"),
        ("1 + 2 * 3", "2c_+_(01,6c_*_(42,83))"),
        ("a || b || c || d", "7c_||_(2c_||_(0ia,5ib),12c_||_(10ic,15id))"),
        ("a ? b : c ? d : e", "2c_?_:_(0ia,4ib,10c_?_:_(8ic,12id,16ie))"),
        ("a.b.c", "3.c(1.b(0ia))"),
        ("a.b.C{}", "5oa.b.C()"),
        (".a", "1i.a"),
        ("a[?0].?b", "5c_?._(1c_[?_](0ia,30),7s62)"),
        ("[,]", "0l[]()"),
        ("[1, ?2,]", "0l[1](11,52)"),
        ("{?a: 1}", "0m(3true2ia51)"),
        ("a.in1", "1.in1(0ia)"),
        ("1 // two\n+ 2", "9c_+_(01,112)"),
    ],
)
def test_what_binds_more_and_where_a_node_is(text, tree):
    assert ours(text) == ["ok", tree]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\a\b\f\n\r\t\v\\\'\"\`\?'", "\a\b\f\n\r\t\v\\'\"`?"),
        (r"'\x41\u00e9\U0001F600\101'", "Aé😀A"),
        ("'a\\nb' + r'\\n' + R\"\\\"", "a\nb\\n\\"),
        ("'''a\r\nb'c'''", "a\nb'c"),
        ('"""a""b"""', 'a""b'),
        ("b'é\\xff\\101'", "é".encode() + b"\xffA"),
        ("br'\\x'", b"\\x"),
        ("0x1f + 0X0", None),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615u", 2**64 - 1),
        (".5e1", 5.0),
    ],
)
def test_literals(text, value):
    if value is None:
        with pytest.raises(cel.CompileError, match="extraneous input 'X0' expecting <EOF>"):
            cel.compile(text, variables={})
    else:
        assert cel.compile(text, variables={}).evaluate() == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true'",
        ),
        ("9223372036854775808", "<input>:1:1: invalid int literal"),
        ("1" * 5000, "<input>:1:1: invalid int literal"),
        ("18446744073709551616u", "<input>:1:1: invalid uint literal"),
        ("1e999", "<input>:1:1: invalid double literal"),
        (r"'\ud800'", "<input>:1:1: invalid unicode code point"),
        (r"'\U00110000'", "<input>:1:1: invalid unicode code point"),
        (r"b'\u00e9'", "<input>:1:1: unable to unescape string"),
        ("'a", "token recognition error at: ''a'"),
        ("a.`b`", "<input>:1:3: unsupported syntax: '`'"),
        ("A{`b`: 1}", "<input>:1:3: unsupported syntax: '`'"),
        ("self.package + package", "<input>:1:16: reserved identifier: package"),
        ("a.true", "<input>:1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("(" * 250 + "1" + ")" * 250, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
        ("(" * 249, "<input>:1:250: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '('"),
        ("{1:" * 240, "<input>:1:721: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '('"),
        ("1 + (" * 126 + "1" + ")" * 126, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
        ("a < b < (" * 126, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
        ("(" * 251 + "'", "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
        ("(" * 251, "ERROR: <input>:-1:0: expression recursion limit exceeded: 250"),
        ("self" + ".a" * 251, "ERROR: <input>:-1:0: max recursion depth exceeded"),
        (" " * 100_001, "expression code point size exceeds limit: size: 100001, limit 100000"),
        ("* " * 40, "Syntax error: error recovery attempt limit exceeded: 30"),
        ("#" * 101, "Syntax error: More than 100 syntax errors"),
    ],
)
def test_what_is_wrong_or_too_much(text, message):
    with pytest.raises(cel.CompileError) as caught:
        cel.compile(text, variables={"self": DYN})

    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 248 + "1" + ")" * 248 + " == 1",
        " + ".join(["1"] * 249) + " == 249",
        "self" + ".a" * 248 + " == 1",
        "[" * 240 + "]" * 240 + " == []",
        " || ".join(["self == 1"] * 2000),
        "1 == 2 ? false : " * 240 + "true",
        "{'a':" * 240 + "1" + "}" * 240 + " != {}",
    ],
)
def test_deep_and_long_expressions_compile_and_run(text):
    data = {}
    for _ in range(248):
        data = {"a": data}
    program = cel.compile(text, variables={"self": DYN})

    assert program.cost().most > 0
    program.evaluate(self=data)


@pytest.mark.parametrize(
    "text", [" || ".join(["self == 1"] * 1500) + ")", "[" + ",".join(["1"] * 5000) + " )", "self" + ".a" * 5000 + " )"]
)
def test_what_is_decided_once_is_not_decided_again(text, monkeypatch):
    closed = []
    close = syntax_errors._Prediction._close
    monkeypatch.setattr(
        syntax_errors._Prediction, "_close", lambda *given, **named: closed.append(1) or close(*given, **named)
    )

    with pytest.raises(cel.CompileError, match="Syntax error"):
        cel.compile(text, variables={"self": DYN})

    assert len(closed) < 500
