"""Random expressions with random values, and what kube-apiserver's CEL makes of them.

python tests/cel/values.py compare 5000 SEED   # builds facts/cel-values with Go, prints what differs
python tests/cel/values.py record              # writes evaluated.json.gz, which the suite reads
"""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from parsers import PROGRAM, Maker, comparable

from ctrlruntime import cel
from ctrlruntime.cel.types import DYN
from ctrlruntime.cel.values import Duration, Optional, Timestamp, TypeValue, UInt, kind_of

RECORDED = Path(__file__).parent / "evaluated.json.gz"
NAMES = ("a", "b", "self", "in1")
VALUES = (
    None, True, False, 0, 1, -5, 2.5, 1e300, "", "x", "1", "a/b", "é😀", [], [1], [1, "a", None], ["x", "x"], [[1], [1]], {}, {"f": 1},
    {"f": {"g": [1]}, "as": "x"}, {"x": None, "1": True}, 9223372036854775807, "9223372036854775808", "1.5Gi", "10.0.0.1", "PT1S", "1s",
    "2024-01-01T00:00:00Z",
)  # fmt: skip

CALLS = """
    E.size() size(E) E.matches(E) E.contains(E) E.startsWith(E) E.endsWith(E) int(E) string(E) double(E) uint(E) bool(E) bytes(E)
    duration(E) timestamp(E) type(E) dyn(E) E.split(E) E.split(E,E) E.join() E.join(E) E.lowerAscii() E.upperAscii() E.indexOf(E)
    E.indexOf(E,E) E.lastIndexOf(E) E.lastIndexOf(E,E) E.substring(E) E.substring(E,E) E.replace(E,E) E.replace(E,E,E) E.charAt(E) E.trim()
    E.sum() E.min() E.max() E.isSorted() E.sort() E.distinct() E.flatten() E.flatten(E) E.slice(E,E) E.reverse() E.first() E.last()
    lists.range(3) lists.range(-1) E.sortBy(x,E) sets.contains(E,E) sets.intersects(E,E) sets.equivalent(E,E) E.find(E) E.findAll(E) E.findAll(E,E)
    quantity(E) isQuantity(E) quantity(E).asInteger() quantity(E).isGreaterThan(quantity(E)) quantity(E).add(E) quantity(E).sign()
    ip(E) isIP(E) ip(E).family() ip(E).isLoopback() ip.isCanonical(E) cidr(E) isCIDR(E) cidr(E).containsIP(E) cidr(E).prefixLength()
    url(E) isURL(E) url(E).getHost() url(E).getQuery() semver(E) isSemver(E) semver(E).major() semver(E,E) E.format(E) strings.quote(E)
    E.orValue(E) E.or(E) E.hasValue() E.value() optional.of(E) optional.ofNonZeroValue(E) optional.none() optional.unwrap(E) E.unwrapOpt()
    E.getFullYear() E.getMonth() E.getDayOfWeek() E.getHours() E.getMinutes(E) E.getMilliseconds() E.map(x,E) E.filter(x,E) E.all(x,E)
    E.exists(x,E) E.exists_one(x,E) E.map(x,E,E) E.all(i,x,E) E.exists(i,x,E) E.existsOne(i,x,E) E.transformList(i,x,E)
    E.transformList(i,x,E,E) E.transformMap(i,x,E) E.transformMap(i,x,E,E) E.transformMapEntry(i,x,{E:E}) E.optMap(x,E) E.optFlatMap(x,E)
    E+E E-E E*E E/E E%E E<E E<=E E>E E>=E E==E E!=E E&&E E||E !E -E E[E] E[?E] E.f E.?f has(E.f) (E?E:E) [E,E] [E] {E:E} E.in1
    format.named(E) format.dns1123Label().validate(E) E.indexOf(E) E.lastIndexOf(E) math.abs(E)
    """.split()  # noqa: SIM905 - it is read more easily
OPERANDS = (
    *NAMES, *NAMES, "x", "i", "1", "-2", "0", "3u", "2.5", "'a'", "''", "'b,c'", "'1.5Gi'", "'10.0.0.1'", "'10.0.0.0/8'", "'https://a:1/b?c=d'",
    "'1.2.3'", "true", "false", "null", "[]", "[1,2]", "['b','a']", "[3,1,2,1]", "[1.5]", "{}", "{'f':1}", "{1:'x'}", "b'z'", "'1h2m'",
    "'2024-02-29T12:30:45.5Z'", "timestamp('2024-02-29T12:30:45.5Z')", "duration('90s')", "optional.of(1)", "'%s %d'", "'[a-b]+'", "[[1],[2]]",
)  # fmt: skip


class CallMaker(Maker):
    def calls(self) -> str:
        """A few calls of functions in each other."""
        return self._call(self._random.randrange(1, 4))

    def _call(self, depth: int) -> str:
        if depth <= 0:
            return self._random.choice(OPERANDS)
        form = self._random.choice(CALLS)
        parts = form.split("E")
        return parts[0] + "".join(self._call(self._random.choice((0, 0, depth - 1))) + part for part in parts[1:])


def ours(text: str, variables: dict[str, Any]) -> list[str]:
    try:
        program = cel.compile(text, variables=dict.fromkeys(NAMES, DYN))
    except cel.InstantiationError as error:
        return ["program", str(error)]
    except cel.CompileError as error:
        return ["compile", str(error)]
    try:
        return ["value", shown(program.evaluate(**variables))]
    except cel.EvaluationError as error:
        return ["failed", str(error)]


def shown(value: Any) -> str:
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
            return f"d{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"
        case str():
            return f"s{value.encode().hex()}"
        case bytes():
            return f"b{value.hex()}"
        case Duration():
            return f"duration {value.nanoseconds}"
        case Timestamp():
            return f"timestamp {value.nanoseconds}"
        case Optional():
            return f"optional {shown(value.value())}" if value.present else "none"
        case TypeValue():
            return f"type {value.name}"
        case dict():
            return "{" + ",".join(sorted(f"{shown(key)}:{shown(each)}" for key, each in value.items())) + "}"
        case list():
            return "[" + ",".join(map(shown, value)) + "]"
        case _:
            return kind_of(value)


def of_kubernetes(cases: Sequence[tuple[str, dict[str, Any]]]) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/cel-values"
        subprocess.run(["go", "build", "-o", program, "./facts/cel-values"], cwd=PROGRAM, check=True)
        lines = "".join(json.dumps({"text": text, "variables": variables}) + "\n" for text, variables in cases)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def without_known_differences(answer: list[str]) -> list[str]:
    """Return an answer without what differs on purpose.

    Of an expression with a syntax error only such errors count. Constant parts are not evaluated beforehand, but when the expression runs.
    The type of a key that cannot be one is not named as in Go. A map or a list is no key of a map here; bytes are, where cel-go panics.
    """
    kind, text = answer
    kind = "failed" if kind == "program" else kind
    if kind == "compile":
        return comparable(["error", text])
    if text.startswith("invalid qualifier type"):
        return ["failed", "invalid qualifier type"]
    if kind == "panic" or text.startswith("internal error") or re.search(r"unsupported key type|[{,][\[{].*:", text):
        return ["not compared"]
    return [kind, re.sub(r"^no such overload: .*flatten.*", "no such overload: flatten", text)]


def are_equal(ours: list[str], theirs: list[str]) -> bool:
    one, other = without_known_differences(ours), without_known_differences(theirs)
    return one == other or other == ["not compared"]


def main(command: str, count: str = "5000", seed: str = "recorded") -> None:
    maker, random = CallMaker(seed), Random(seed)
    cases = [
        (random.choice((maker.right, maker.calls))(), {name: random.choice(VALUES) for name in NAMES})
        for _ in range(int(count))
    ]
    answers = of_kubernetes(cases)
    found = [(text, variables, answer) for (text, variables), answer in zip(cases, answers, strict=True)]
    if command == "record":
        kept = [case for case in found if case[2][0] not in {"compile", "panic"}]
        kept += [case for case in found if case[2][0] == "compile"][:500]
        RECORDED.write_bytes(gzip.compress(json.dumps(kept, ensure_ascii=False, indent=0).encode(), mtime=0))
        return
    differ = 0
    for text, variables, theirs in found:
        if not are_equal(ours(text, variables), theirs):
            differ += 1
            print(repr(text), variables, *theirs, *ours(text, variables), sep="\n", end="\n\n")
    print(f"{len(cases)} expressions, {differ} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
