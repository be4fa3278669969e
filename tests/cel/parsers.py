"""Random expressions, right and wrong, and what cel-go's parser says of them.

python tests/cel/parsers.py compare 5000         # with cel-go, built by Go; prints what differs
python tests/cel/parsers.py compare 500 x deep   # only expressions of many levels
python tests/cel/parsers.py record               # writes parsed.json.gz, which the suite reads
"""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from random import Random

from ctrlruntime.cel import macros
from ctrlruntime.cel.failures import CompileError
from ctrlruntime.cel.parser import read
from ctrlruntime.cel.syntax import (
    Call,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    Source,
)
from ctrlruntime.cel.values import UInt

RECORDED = Path(__file__).parent / "parsed.json.gz"
PROGRAM = Path(__file__).parents[1] / "controlplane"
ATOMS = (
    "a", "b", "self", ".a", "in1", "as", "loop", "1", "-1", "2u", "1.5", "-2.5e3", "0x1F", "9223372036854775808", "'x'", '"y"', "b'z'",
    "true", "false", "null", "r'\\d'", "'\\n\\x41\\u00e9\\101'", "b'\\xff\\101'", "'''q'''", '"""w"w"""', "'é😀'", "'\\ud800'",
)  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in")
PIECES = (
    *OPERATORS, "[", "]", "{", "}", "(", ")", ".", ",", "!", "?", ":", "true", "null", "1", "1.5", "2u", "'s'", "b's'", "a", "`q`", " ",
    "=", "&", "|", "#", "'", '"', "\\", "é", "0x", "1e", "//", "\n", "as", "'\\q'", '"""', "'''", "r'", "\t", "$", "`", "a.b", "f(",
)  # fmt: skip
OPENINGS = (
    ("(", ")"), ("[", "]"), ("{", ":1}"), ("{1:", "}"), ("a.b{c:", "}"), ("f(", ")"), ("a.b(1,", ")"), ("a[", "]"), ("a[?", "]"),
    ("!(", ")"), ("-(", ")"), ("a?(", "):b"), ("a?b:", ""), ("1+(", ")"), ("a.all(x,", ")"), ("[a,", "]"), ("(a)+(", "<1)"), ("a&&", ""),
    ("a<b<", ""), ("a*", ""), ("a in ", ""), ("a.", ""), ("-", ""), ("! ", ""), (".", ""), ("a?", ""), ("a:", ""), ("[a", "]"), ("a{b:", "}"),
)  # fmt: skip
LOOPS = (".all(", ".exists(", ".exists_one(", ".filter(", ".map(", ".optMap(", ".optFlatMap(")


class Maker:
    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def any(self) -> str:
        return self._random.choice([self.right, self.mutant, self.soup])()

    def right(self) -> str:
        return self._expression(self._random.randrange(1, 5))

    def soup(self) -> str:
        choose = self._random.choice
        return "".join(choose(PIECES) + choose(("", " ")) for _ in range(self._random.randrange(1, 9)))

    def mutant(self) -> str:
        text = self._expression(3)
        for _ in range(self._random.randrange(1, 3)):
            at = self._random.randrange(len(text) + 1)
            cut = self._random.choice((0, 0, 1, 2, 3))
            text = text[:at] + self._random.choice(("", *PIECES)) + text[at + cut :]
        return text

    def deep(self) -> str:
        """One or two pieces that open something, many times; what closes them is often not all there."""
        choose, number = self._random.choice, self._random.randrange
        opened = [choose(OPENINGS) for _ in range(number(1, 3))] * choose((5, 20, 60, 120, 130))
        closed = [close for _, close in reversed(opened)]
        del closed[len(closed) - choose((0, 0, 1, number(len(closed)), len(closed))) :]
        return "".join(opening for opening, _ in opened) + choose(("", "1", "a", ")", "a b", "'")) + "".join(closed)

    def _expression(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.15:
            return self._random.choice(ATOMS)
        choose = self._random.choice

        def one() -> str:
            return self._expression(depth - 1)

        def several(most: int, form: str) -> str:
            parts = (form.replace("E", "\0") for _ in range(self._random.randrange(most)))
            return ", ".join(re.sub("\0", lambda _: one(), choose(("", "?")) + part) for part in parts) + choose(
                ("", ",")
            )

        match self._random.randrange(14):
            case 0 | 1 | 2 | 3:
                return one() + choose(("", " ", "\n", "\t", " // c\n")) + choose(OPERATORS) + " " + one()
            case 4:
                return f"{one()} ? {one()} : {one()}"
            case 5:
                return f"({one()})"
            case 6:
                return one() + "." + choose(("f", "g.h", "?o", "as", "size()", "m(1)", "startsWith('a')"))
            case 7:
                return f"{one()}[{choose(('', '?'))}{one()}]"
            case 8:
                return f"[{several(4, 'E')}]"
            case 9:
                return f"{{{several(3, 'E: E')}}}"
            case 10:
                return f"{choose(('A', 'a.B', '.a.B'))}{{{several(3, 'f: E')}}}"
            case 11:
                return choose("!-") * self._random.randrange(1, 4) + one()
            case 12:
                return f"{one()}{choose(LOOPS)}{choose(('x', 'x', 'x', '1', 'a.b', '__result__'))}, {one()})"
            case _:
                return choose(
                    ("has({}.f)", "has({})", "size({})", "f({}, 1)", ".g({})", "if({})", "b.map(x, {}, 1)")
                ).format(one())


# What a parser says


def ours(text: str) -> list[str]:
    try:
        node, source = read(text)
        return ["ok", shown(macros.expand(node, source), source)]
    except CompileError as error:
        return ["error", str(error)]


def shown(node: Node, source: Source) -> str:
    """Return a tree as facts/cel-parser writes it."""

    def below(*nodes: Node) -> str:
        return f"({','.join(shown(each, source) for each in nodes)})"

    at = source.offsets[node.id]
    match node:
        case Literal(value):
            return f"{at}{_value(value)}"
        case Identifier(name):
            return f"{at}i{name}"
        case Select():
            return f"{at}{'has' if node.tests else '.'}{node.field}{below(node.operand)}"
        case Call():
            target = "" if node.target is None else f"@{shown(node.target, source)}"
            return f"{at}c{node.function}{target}{below(*node.arguments)}"
        case ListLiteral():
            return f"{at}l[{' '.join(map(str, sorted(node.optional)))}]{below(*node.elements)}"
        case MapLiteral():
            kind = f"o{node.message}" if node.message else "m"
            return f"{at}{kind}({','.join(_entry(entry, node, source) for entry in node.entries)})"
        case Comprehension():
            parts = below(node.range, node.start, node.condition, node.step, node.result)
            return f"{at}f{node.variable}/{node.second}/{node.accumulator}{parts}"


def _entry(entry, node: MapLiteral, source: Source) -> str:
    key = entry.key.value if node.message else shown(entry.key, source)
    return f"{source.offsets[entry.id]}{str(entry.optional).lower()}{key}{shown(entry.value, source)}"


def _value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case UInt():
            return f"{int(value)}u"
        case int():
            return str(value)
        case float():
            return f"d{struct.unpack('>Q', struct.pack('>d', value))[0]}"
        case str():
            return f"s{value.encode().hex()}"
        case _:
            return f"b{value.hex()}"


def comparable(answer: list[str]) -> list[str]:
    """Return an answer without what differs on purpose: other errors beside syntax errors, and places inside of copies."""
    kind, text = answer
    if kind == "ok":
        return [kind, re.sub(r"\d+(true|false)", r"\1", text.replace(" ", ""))]
    found = re.split(r"\n(?=ERROR: <input>:)", text)
    syntax = [
        part for part in found if re.match(r"ERROR: <input>:[-\d]+:\d+: (Syntax error|expression recursion)", part)
    ]
    return [kind, "\n".join(syntax or dict.fromkeys(found))]


def of_cel_go(texts: Iterable[str]) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/cel-parser"
        subprocess.run(["go", "build", "-o", program, "./facts/cel-parser"], cwd=PROGRAM, check=True)
        text = "".join(json.dumps(each) + "\n" for each in texts)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(command: str, count: str = "600", seed: str = "recorded", sort: str = "any") -> None:
    make = getattr(Maker(seed), sort)
    texts = [make() for _ in range(int(count))]
    answers = of_cel_go(texts)
    if command == "record":
        content = json.dumps(dict(zip(texts, answers, strict=True)), ensure_ascii=False, indent=0)
        RECORDED.write_bytes(gzip.compress(content.encode(), mtime=0))
        return
    differ = 0
    for text, answer in zip(texts, answers, strict=True):
        found = ours(text)
        if comparable(found) != comparable(answer):
            differ += 1
            print(repr(text), *answer, *found, sep="\n", end="\n\n")
    print(f"{len(texts)} expressions, {differ} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
