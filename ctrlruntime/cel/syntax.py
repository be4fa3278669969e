"""The tree of an expression. The parser is cel-expr-python's (the C++ CEL); its tree comes as protobuf bytes and is read here.

The library is loaded on first use. Macros of one variable are expanded by the parser; those of two variables in `macros`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from ctrlruntime.cel.failures import CompileError, Issue, MissingLibraryError
from ctrlruntime.cel.values import UInt


@dataclass(slots=True, eq=False)
class Literal:
    value: Any
    id: int = 0


@dataclass(slots=True, eq=False)
class Identifier:
    name: str
    id: int = 0


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`, or `has(operand.field)` when it only tests."""

    operand: Node
    field: str
    tests: bool = False
    id: int = 0


@dataclass(slots=True, eq=False)
class Call:
    function: str
    target: Node | None
    arguments: list[Node]
    id: int = 0


@dataclass(slots=True, eq=False)
class ListLiteral:
    elements: list[Node]
    optional: frozenset[int] = frozenset()
    id: int = 0


@dataclass(slots=True, eq=False)
class Entry:
    """One entry of a map, or one field of a message (then `key` is a Literal)."""

    key: Node
    value: Node
    optional: bool = False
    id: int = 0


@dataclass(slots=True, eq=False)
class MapLiteral:
    entries: list[Entry]
    message: str = ""
    id: int = 0


@dataclass(slots=True, eq=False)
class Comprehension:
    """A loop: `accumulator` starts as `start`, becomes `step` for each item while `condition` is true, and returns `result`."""

    variable: str
    second: str
    range: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    id: int = 0


Node: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | Comprehension


@dataclass(slots=True)
class Source:
    """An expression's text and the position of each node in it."""

    text: str
    offsets: dict[int, int] = field(default_factory=dict[int, int])

    def issue(self, id: int, message: str) -> Issue:
        """Return a finding at a node."""
        offset = self.offsets.get(id, 0)
        before = self.text[:offset]
        return Issue(before.count("\n") + 1, offset - (before.rfind("\n") + 1), message)

    def at(self, id: int, further: int = 0) -> int:
        """Return a new id for a node at the position of this one, or some characters later."""
        fresh = max(self.offsets, default=0) + 1
        self.offsets[fresh] = self.offsets.get(id, 0) + further
        return fresh


def parse(text: str) -> tuple[Node, Source]:
    """Return the tree of an expression. Raises: CompileError, MissingLibraryError."""
    try:
        serialized: bytes = _environment().compile(text, disable_check=True).serialize()
    except RuntimeError as error:
        raise CompileError(text, text=_as_upstream(str(error))) from None
    wrapped = dict(_fields(serialized))
    parsed = dict(_fields(wrapped[2]))
    if "`" in text:
        _refuse_quoted_fields(text)
    return _node(parsed[2]), Source(text, dict(_positions(parsed.get(3, b""))))


_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(`)""")


def _refuse_quoted_fields(text: str) -> None:
    """The parser reads a field in backticks, the API server does not."""
    source = Source(text, {at: found.start(1) for at, found in enumerate(_QUOTED.finditer(text)) if found[1]})
    issues = [source.issue(at, "unsupported syntax: '`'") for at in source.offsets]
    if issues:
        raise CompileError(text, issues[::2])


@cache
def _environment() -> Any:
    try:
        cel: Any = import_module("cel_expr_python.cel")
        ext_optional: Any = import_module("cel_expr_python.ext.ext_optional")
    except ImportError:
        raise MissingLibraryError(
            "cannot use CEL rules: the package cel-expr-python is not installed. Run pip install 'ctrlruntime[apiserver]'"
        ) from None
    return cel.NewEnv(extensions=[ext_optional.ExtOptional()])


_NOWHERE = re.compile(r"\n?ERROR: <input>:4294967295:\d+: [^\n]*")
_TEXTS = (
    ("has() argument must be a field selection", "invalid argument to has() macro"),
    ("map() variable name must be a simple identifier", "argument is not an identifier"),
    ("filter() variable name must be a simple identifier", "argument is not an identifier"),
    ("all() variable name must be a simple identifier", "argument must be a simple name"),
    ("exists() variable name must be a simple identifier", "argument must be a simple name"),
    ("exists_one() variable name must be a simple identifier", "argument must be a simple name"),
    ("Invalid bytes literal: Illegal escape sequence: Unicode escape sequence \\u cannot be used in bytes literals",
     "unable to unescape string"),
    ("CANCELLED: Expression recursion limit exceeded. limit: 32",
     "ERROR: <input>:-1:0: expression recursion limit exceeded: 32"),
    ("ERROR: <input>:1:1: Syntax error: mismatched input '<EOF>'", "ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'"),
)  # fmt: skip
"""The C++ parser and cel-go word these differently; the API server speaks as cel-go does."""


def _as_upstream(text: str) -> str:
    text = text.removeprefix("INVALID_ARGUMENT: ")
    text = text.removesuffix(" [INVALID_ARGUMENT]").removesuffix(" [CANCELLED]")
    for theirs, ours in _TEXTS:
        text = text.replace(theirs, ours)
    return _NOWHERE.sub("", text)


# Reading the parser's protobuf: the messages of cel.expr (syntax.proto), by field number.


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            size, at = _varint(data, at)
            yield number, data[at : at + size]
            at += size
        else:
            width = 8 if wire == 1 else 4
            yield number, data[at : at + width]
            at += width


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _positions(data: bytes) -> Iterator[tuple[int, int]]:
    for number, value in _fields(data):
        if number == 4:
            entry = dict(_fields(value))
            yield entry.get(1, 0), entry.get(2, 0)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _node(data: bytes) -> Node:
    at, kind, body = 0, 0, b""
    for number, value in _fields(data):
        if number == 2:
            at = value
        else:
            kind, body = number, value
    match kind:
        case 3:
            return Literal(_literal(body), at)
        case 4:
            return Identifier(dict(_fields(body)).get(1, b"").decode(), at)
        case 5:
            return _select(body, at)
        case 6:
            return _call(body, at)
        case 7:
            return _list(body, at)
        case 8:
            return _map(body, at)
        case _:
            return _comprehension(body, at)


def _literal(body: bytes) -> Any:
    for number, value in _fields(body):
        match number:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return _signed(value)
            case 4:
                return UInt(value)
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return value.decode()
            case _:
                return bytes(value)
    return None


def _select(body: bytes, id: int) -> Select:
    found = dict(_fields(body))
    return Select(_node(found[1]), found[2].decode(), bool(found.get(3, 0)), id)


def _call(body: bytes, id: int) -> Call:
    call = Call("", None, [], id)
    for number, value in _fields(body):
        match number:
            case 1:
                call.target = _node(value)
            case 2:
                call.function = value.decode()
            case _:
                call.arguments.append(_node(value))
    return call


def _list(body: bytes, id: int) -> ListLiteral:
    elements: list[Node] = []
    optional: set[int] = set()
    for number, value in _fields(body):
        if number == 1:
            elements.append(_node(value))
        elif isinstance(value, int):
            optional.add(value)
        else:
            at = 0
            while at < len(value):
                index, at = _varint(value, at)
                optional.add(index)
    return ListLiteral(elements, frozenset(optional), id)


def _map(body: bytes, id: int) -> MapLiteral:
    literal = MapLiteral([], "", id)
    for number, value in _fields(body):
        if number == 1:
            literal.message = value.decode()
            continue
        found = dict(_fields(value))
        key: Node = _node(found[3]) if 3 in found else Literal(found[2].decode())
        literal.entries.append(Entry(key, _node(found[4]), bool(found.get(5, 0)), found.get(1, 0)))
    return literal


def _comprehension(body: bytes, id: int) -> Comprehension:
    found = dict(_fields(body))
    return Comprehension(
        found.get(1, b"").decode(),
        found.get(8, b"").decode(),
        _node(found[2]),
        found.get(3, b"").decode(),
        _node(found[4]),
        _node(found[5]),
        _node(found[6]),
        _node(found[7]),
        id,
    )
