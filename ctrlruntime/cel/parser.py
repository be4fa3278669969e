"""The parser of expressions: from text to the tree of `syntax`, macros not yet expanded.

It reads what is right, in one pass, and finds errors of meaning (reserved names, numbers that are too large). An expression that is not in
the grammar is read again by `syntax_errors`, which says where and why in the words of cel-go.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final

from ctrlruntime.cel.failures import CompileError, Issue
from ctrlruntime.cel.syntax import Call, Entry, Identifier, ListLiteral, Literal, MapLiteral, Node, Select, Source
from ctrlruntime.cel.tokens import (
    BYTES,
    DEEPEST,
    END,
    FLOAT,
    INT,
    NAME,
    QUOTED_NAME,
    SPACE,
    STRING,
    UINT,
    Token,
    read_tokens,
)
from ctrlruntime.cel.values import UInt

_LONGEST: Final = 100_000
_FRAMES: Final = 12
"""Calls of Python for each level, in whatever goes through the tree."""
_RESERVED: Final = frozenset(
    {
        "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return",
        "var", "void", "while",
    }
)  # fmt: skip
_OPERATORS: Final[Mapping[str, tuple[int, str]]] = {
    "||": (1, "_||_"),
    "&&": (2, "_&&_"),
    "<": (3, "_<_"),
    "<=": (3, "_<=_"),
    ">=": (3, "_>=_"),
    ">": (3, "_>_"),
    "==": (3, "_==_"),
    "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
_RELATION: Final = 3
_NUMBERS: Final = frozenset({INT, FLOAT})
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_LEVELS: Final = frozenset(name for precedence, name in _OPERATORS.values() if precedence >= _RELATION) | {
    "_?_:_", "_[_]", "_[?_]", "_?._",
}  # fmt: skip
"""Calls that are a level of the tree, like selections and calls of members."""


class NotInGrammarError(Exception):
    """The expression has a syntax error."""


def parse(text: str) -> Node:
    """Return the tree of an expression, macros as calls. Raises: CompileError."""
    node, source = read(text)
    if source.issues:
        raise CompileError(text, source.issues)
    return node


def read(text: str) -> tuple[Node, Source]:
    """Return the tree of an expression; `Source.issues` has errors of meaning. Raises: CompileError for one that is not in the grammar."""
    if len(text) > _LONGEST:
        raise _without_place(f"expression code point size exceeds limit: size: {len(text)}, limit {_LONGEST}")
    tokens, bad = read_tokens(text)
    source = Source(text)
    if not bad:
        _allow_depth(len(tokens))
        parser = _Parser([token for token in tokens if token.kind != SPACE], source)
        try:
            node = parser.parse()
        except NotInGrammarError:
            pass
        else:
            if len(tokens) > DEEPEST and _depth(node) > DEEPEST:
                raise _without_place("max recursion depth exceeded")
            return node, source
    from ctrlruntime.cel.syntax_errors import find_syntax_errors

    raise CompileError(text, find_syntax_errors(source, tokens, bad))


def _without_place(message: str) -> CompileError:
    return CompileError("", [Issue.without_place(message)])


def _allow_depth(tokens: int) -> None:
    """Let Python go as deep as the deepest expression. The limit is raised for good: another thread may be deep in a tree."""
    needed = _FRAMES * min(tokens, DEEPEST) + 500
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


def _depth(node: Node) -> int:
    deepest, waiting = 0, [(node, 0)]
    while waiting:
        node, depth = waiting.pop()
        match node:
            case Select():
                depth += 1
                children = [node.operand]
            case Call():
                depth += node.target is not None or node.function in _LEVELS
                children = [*([node.target] if node.target is not None else []), *node.arguments]
            case ListLiteral():
                children = node.elements
            case MapLiteral():
                children = [part for entry in node.entries for part in (entry.key, entry.value)]
            case _:
                children = []
        deepest = max(deepest, depth)
        waiting.extend((child, depth) for child in children)
    return deepest


class _Parser:
    """Recursive descent, with precedence climbing for the operators of two operands."""

    def __init__(self, tokens: list[Token], source: Source) -> None:
        self._tokens = tokens
        self._next = 0
        self._source = source
        self._depth = 0
        self._relations = 0
        self._calculations = 0

    def parse(self) -> Node:
        """Return the tree. Raises: NotInGrammarError, and CompileError for too many levels."""
        node = self._expression()
        self._take(END)
        return node

    # Tokens

    @property
    def _kind(self) -> str:
        return self._tokens[self._next].kind

    def _kind_after(self, count: int) -> str:
        index = self._next + count
        return self._tokens[index].kind if index < len(self._tokens) else END

    def _take(self, kind: str) -> Token:
        token = self._tokens[self._next]
        if token.kind != kind:
            raise NotInGrammarError
        self._next += 1
        return token

    def _skip(self, kind: str) -> bool:
        if self._kind != kind:
            return False
        self._next += 1
        return True

    def _id(self, token: Token) -> int:
        return self._source.new_id(token.at)

    def _wrong(self, token: Token, message: str) -> Node:
        at = self._id(token)
        self._source.report(at, message)
        return Literal(None, at)

    # Operators

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _without_place(f"expression recursion limit exceeded: {DEEPEST}")
        node = self._operation(1)
        if self._kind == "?":
            at = self._id(self._take("?"))
            chosen = self._operation(1)
            self._take(":")
            node = Call("_?_:_", None, [node, chosen, self._expression()], at)
        self._depth -= 1
        return node

    def _operation(self, least: int) -> Node:
        """Return an operand with the operators that follow and bind at least so much.

        cel-go counts how deep it is in each rule: in the grammar, a relation and a calculation call themselves for the operand on the right.
        """
        relations, calculations = self._relations, self._calculations
        inside = self._relations = relations + (least <= _RELATION + 1)
        self._calculations += 1
        if inside > DEEPEST or self._calculations > DEEPEST:
            raise _without_place(f"expression recursion limit exceeded: {DEEPEST}")
        left = self._operand()
        while True:
            sign = self._kind
            precedence, name = _OPERATORS.get(sign, (0, ""))
            is_last = precedence < least or not precedence
            self._relations = inside if precedence >= _RELATION and not is_last else relations
            self._calculations = calculations + (precedence > _RELATION and not is_last)
            if is_last:
                return left
            if precedence < _RELATION:
                terms, ids = [left], list[int]()
                while self._kind == sign:
                    token = self._take(sign)
                    terms.append(self._operation(precedence + 1))
                    ids.append(self._id(token))
                left = _balanced(name, terms, ids, 0, len(ids) - 1)
            else:
                at = self._id(self._take(sign))
                left = Call(name, None, [left, self._operation(precedence + 1)], at)

    def _operand(self) -> Node:
        sign = self._kind
        if sign != "!" and (sign != "-" or self._kind_after(1) in _NUMBERS):  # `-1` is a number
            return self._member()
        first = self._take(sign)
        count = 1
        while self._skip(sign):
            count += 1
        at = self._id(first)
        operand = self._member()
        return Call(f"{sign}_", None, [operand], at) if count % 2 else operand

    # Members

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._kind == ".":
                node = self._selection(node)
            elif self._kind == "[":
                at = self._id(self._take("["))
                name = "_[?_]" if self._skip("?") else "_[_]"
                node = Call(name, None, [node, self._expression()], at)
                self._take("]")
            else:
                return node

    def _selection(self, operand: Node) -> Node:
        dot = self._take(".")
        if self._skip("?"):
            token = self._tokens[self._next]
            field = self._field()
            return Call("_?._", None, [operand, Literal(field, self._id(token))], self._id(dot))
        if self._kind == NAME and self._kind_after(1) == "(":
            name = self._take(NAME)
            at = self._id(self._tokens[self._next])
            return Call(name.text, operand, self._arguments(), at)
        field = self._field()
        return Select(operand, field, id=self._id(dot))

    def _field(self) -> str:
        if self._kind == QUOTED_NAME:
            self._wrong(self._take(QUOTED_NAME), "unsupported syntax: '`'")
            return ""
        return self._take(NAME).text

    def _arguments(self) -> list[Node]:
        self._take("(")
        return self._items(")", self._expression, extra_comma=False)

    def _items(self, end: str, read: Callable[[], Node], *, extra_comma: bool = True) -> list[Node]:
        found: list[Node] = []
        goes_on = self._kind != end and not (extra_comma and self._skip(","))
        while goes_on:
            found.append(read())
            goes_on = self._skip(",") and not (extra_comma and self._kind == end)
        self._take(end)
        return found

    # What stands alone

    def _primary(self) -> Node:
        token = self._tokens[self._next]
        match token.kind:
            case "(":
                self._next += 1
                node = self._expression()
                self._take(")")
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "IDENTIFIER":
                return self._name()
            case "true" | "false" | "null":
                self._next += 1
                return Literal(_CONSTANTS[token.kind], self._id(token))
            case _:
                return self._literal()

    def _name(self) -> Node:
        first = self._tokens[self._next]
        dot = "." if self._skip(".") else ""
        length = self._message_length()
        if length:
            parts = [token.text for token in self._tokens[self._next : self._next + length]]
            self._next += length
            return self._message(dot + "".join(parts))
        name = self._take(NAME)
        is_call = self._kind == "("
        if name.text in _RESERVED:
            wrong = self._wrong(first, f"reserved identifier: {name.text}")
            if is_call:
                self._quiet_arguments()
            return wrong
        if is_call:
            at = self._id(self._tokens[self._next])
            return Call(dot + name.text, None, self._arguments(), at)
        return Identifier(dot + name.text, self._id(name))

    def _quiet_arguments(self) -> None:
        """Read arguments of which nothing is reported: the call is wrong itself."""
        before = len(self._source.issues)
        self._arguments()
        del self._source.issues[before:]

    def _message_length(self) -> int:
        """Return the number of tokens of the name of a message, if a name and a brace follow."""
        count = 0
        while self._kind_after(count) == NAME:
            follows = self._kind_after(count + 1)
            if follows == "{":
                return count + 1
            if follows != ".":
                return 0
            count += 2
        return 0

    def _list(self) -> Node:
        at = self._id(self._take("["))
        optional: set[int] = set()
        count = 0

        def read() -> Node:
            nonlocal count
            if self._skip("?"):
                optional.add(count)
            count += 1
            return self._expression()

        elements = self._items("]", read)
        return ListLiteral(elements, frozenset(optional), at)

    def _map(self) -> Node:
        literal = MapLiteral([], "", self._id(self._take("{")))

        def read() -> Node:
            is_optional = self._skip("?")
            key = self._expression()
            at = self._id(self._take(":"))
            literal.entries.append(Entry(key, self._expression(), is_optional, at))
            return key

        self._items("}", read)
        return literal

    def _message(self, name: str) -> Node:
        literal = MapLiteral([], name, self._id(self._take("{")))
        first = self._tokens[self._next]

        def read() -> Node:
            is_optional = self._skip("?")
            token = self._tokens[self._next]
            if token.kind == QUOTED_NAME:
                self._next += 1
                self._wrong(first, "unsupported syntax: '`'")
                field = ""
            else:
                field = self._take(NAME).text
            at = self._id(self._take(":"))
            value = self._expression()
            literal.entries.append(Entry(Literal(field, self._id(token)), value, is_optional, at))
            return value

        self._items("}", read)
        return literal

    def _literal(self) -> Node:
        first = self._tokens[self._next]
        sign = "-" if self._skip("-") else ""
        token = self._tokens[self._next]
        read = _LITERALS.get(token.kind)
        if read is None or (sign and token.kind not in _NUMBERS):
            raise NotInGrammarError
        self._next += 1
        try:
            return Literal(read(sign + token.text), self._id(first))
        except ValueError as error:
            return self._wrong(first, str(error))


def _balanced(name: str, terms: list[Node], ids: list[int], low: int, high: int) -> Node:
    """Return a chain of `&&` or `||` as a tree of little depth, as cel-go does."""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(name, terms, ids, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(name, terms, ids, middle + 1, high)
    return Call(name, None, [left, right], ids[middle])


# Literals


def _whole(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.removeprefix("-")
    if len(digits) > 1000:
        raise ValueError("invalid int literal")
    value = sign * (int(digits, 16 if digits.startswith("0x") else 10))
    if not -(2**63) <= value < 2**63:
        raise ValueError("invalid int literal")
    return value


def _unsigned(text: str) -> UInt:
    digits = text[:-1]
    if len(digits) <= 1000:
        value = int(digits, 16 if digits.startswith("0x") else 10)
        if value < 2**64:
            return UInt(value)
    raise ValueError("invalid uint literal")


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return value


_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPED: Final = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3][0-7]{2})|(.))|([^\\]+)", re.DOTALL)


def _inside(text: str) -> tuple[str, bool]:
    """Return what is between the quotes, and whether it has escapes."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    width = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    return text[width:-width], not is_raw and "\\" in text


def _text(text: str) -> str:
    inside, has_escapes = _inside(text)
    return inside if not has_escapes else "".join(map(_character, _ESCAPED.finditer(inside)))


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    number = int(code, 16) if code else int(found[4], 8) if found[4] else None
    if number is None:
        return found[6] if found[6] is not None else _ESCAPES[found[5]]
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise ValueError("invalid unicode code point")
    return chr(number)


def _bytes(text: str) -> bytes:
    inside, has_escapes = _inside(text[1:])
    return inside.encode() if not has_escapes else b"".join(map(_byte, _ESCAPED.finditer(inside)))


def _byte(found: re.Match[str]) -> bytes:
    if found[2] or found[3]:
        raise ValueError("unable to unescape string")
    if found[1] or found[4]:
        return bytes((int(found[1], 16) if found[1] else int(found[4], 8),))
    return (found[6] if found[6] is not None else _ESCAPES[found[5]]).encode()


_LITERALS: Final[Mapping[str, Callable[[str], str | bytes | int | float | UInt]]] = {
    INT: _whole, UINT: _unsigned, FLOAT: _real, STRING: _text, BYTES: _bytes,
}  # fmt: skip


__all__ = ["parse", "read"]
