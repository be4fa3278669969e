"""Python source as a tree of expressions, and its lines: an expression is on one line if it fits, else each part has a line.

A part on a line of its own ends with a comma, which ruff and black leave as it is; so the text needs no formatter.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from unicodedata import east_asian_width

__all__ = [
    "WIDTH",
    "Atom",
    "Expression",
    "Group",
    "Text",
    "call",
    "docstring",
    "flat",
    "lines",
    "subscript",
    "value",
    "width",
]

WIDTH = 120
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of source that is never broken."""

    source: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string; a long one is broken between words into several that Python joins. Raises: TypeError for anything else."""

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            raise TypeError(f"{self.text!r} is not a string, so it cannot be quoted")


@dataclass(frozen=True, slots=True)
class Group:
    """Parts between brackets; each is a prefix (`name=`, `"key": `, or nothing) and an expression."""

    opening: str
    parts: tuple[tuple[str, Expression], ...]
    closing: str


Expression: TypeAlias = Atom | Text | Group


def call(name: str, *parts: Expression, **named: Expression) -> Group:
    """Return a call."""
    return Group(f"{name}(", (*(("", part) for part in parts), *((f"{key}=", one) for key, one in named.items())), ")")


def subscript(name: str, *parts: Expression) -> Group:
    """Return `name[parts]`."""
    return Group(f"{name}[", tuple(("", part) for part in parts), "]")


def value(tree: Any) -> Expression:
    """Return a JSON value as source."""
    match tree:
        case str():
            return Text(tree)
        case float():
            return Atom(_number(tree))
        case Mapping():
            known = cast("Mapping[str, Any]", tree)
            return Group("{", tuple((f"{flat(Text(key))}: ", value(one)) for key, one in known.items()), "}")
        case list() | tuple():
            return Group("[", tuple(("", value(one)) for one in cast("Sequence[Any]", tree)), "]")
        case None | bool() | int():
            return Atom(repr(tree))
        case _:
            raise TypeError(f"{tree!r} is not a JSON value, so it cannot be written as source")


def _number(number: float) -> str:
    if not math.isfinite(number):
        return f'float("{number}")'
    if number.is_integer() and abs(number) < 2**53:
        return str(int(number))
    return repr(number).replace("e+", "e")


def width(line: str) -> int:
    """Return the columns a line takes: two for a letter of East Asia, as ruff counts."""
    return len(line) if line.isascii() else sum(2 if east_asian_width(char) in "WF" else 1 for char in line)


def flat(expression: Expression) -> str:
    """Return an expression on one line."""
    match expression:
        case Atom():
            return expression.source
        case Text():
            return _quoted(expression.text)
        case Group():
            return (
                expression.opening
                + ", ".join(prefix + flat(part) for prefix, part in expression.parts)
                + expression.closing
            )


def lines(expression: Expression, *, before: str = "", after: str = "", indent: int = 0) -> list[str]:
    """Return the lines of an expression that starts after `before` and is followed by `after`; the first has the indent, too."""
    whole = f"{_INDENT * indent}{before}{flat(expression)}{after}"
    if width(whole) <= WIDTH:
        return [whole]
    match expression:
        case Group() if expression.parts:
            comma = "" if expression.opening.endswith("[") and len(expression.parts) == 1 and before else ","
            inside = [
                line
                for prefix, part in expression.parts
                for line in lines(part, before=prefix, after=comma, indent=indent + 1)
            ]
            head = f"{_INDENT * indent}{before}{expression.opening}"
            return [head, *inside, f"{_INDENT * indent}{expression.closing}{after}"]
        case Text():
            room = WIDTH - 4 * (indent + 1)
            whole_fits = width(_quoted(expression.text)) <= room
            pieces = [expression.text] if whole_fits else _pieces(expression.text, room - 2)
            if whole_fits or len(pieces) > 1:
                inside = [f"{_INDENT * (indent + 1)}{_quoted(piece)}" for piece in pieces]
                return [f"{_INDENT * indent}{before}(", *inside, f"{_INDENT * indent}){after}"]
        case _:
            pass
    return [whole]


# Texts


def _quoted(text: str) -> str:
    """A string as ruff writes it: in double quotes, unless single ones need fewer escapes; raw where that saves backslashes."""
    printable = all(char.isprintable() for char in text)
    if "\\" in text and printable and '"' not in text and not text.endswith("\\"):
        return f'r"{text}"'
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + "".join(_escaped(char, quote) for char in text) + quote


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def _escaped(char: str, quote: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == quote:
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _pieces(text: str, room: int) -> list[str]:
    """Pieces that are at most `room` wide as source, broken after a line break or a blank where there is one."""
    result: list[str] = []
    piece = ""
    for word in _words(text):
        if piece and (width(_quoted(piece + word)) - 2 > room or piece.endswith("\n")):
            result.append(piece)
            piece = ""
        piece += word
    return [*result, piece]


def _words(text: str) -> list[str]:
    """The words of a text, each with the blanks and breaks after it."""
    words: list[str] = []
    start = 0
    for at in range(1, len(text)):
        if text[at - 1] in " \n" and text[at] not in " \n":
            words.append(text[start:at])
            start = at
    return [*words, text[start:]]


def docstring(text: str, *, indent: int) -> list[str]:
    """Return the lines of a docstring; lines that are too long are broken between words."""
    margin = _INDENT * indent
    clean = "\n".join(line.rstrip() for line in inspect.cleandoc(text).split("\n"))
    safe = "".join(char if char == "\n" else _escaped(char, "") for char in clean).replace('"""', '\\"\\"\\"')
    if safe.startswith('"'):
        safe = f" {safe}"  # as formatters have it; it is not part of what is read
    rows = [row for line in safe.split("\n") for row in _rows(line, WIDTH - len(margin))]
    ending = rows[-1]
    one_line = len(rows) == 1 and len(margin) + width(ending) + 6 <= WIDTH
    if one_line and ending.endswith('"') and not ending.endswith('\\"'):
        rows[-1] = f'{ending[:-1]}\\"'
    first, *others = rows
    if one_line:
        return [f'{margin}"""{rows[0]}"""']
    return [f'{margin}"""{first}', *(f"{margin}{row}".rstrip() for row in others), f'{margin}"""']


_DROPPED = ("TODO", "---", "```", "~~~")
"""A line that starts with this has another meaning to the generator, so no line may be broken before it."""


def _rows(line: str, room: int) -> list[str]:
    if width(line) <= room - 3:
        return [line]
    margin = line[: len(line) - len(line.lstrip())]
    rows: list[str] = []
    row = ""
    for word in line.split(" "):
        wider = f"{row} {word}" if row else word
        if row.strip() and width(wider) > room - 3 and word and not word.startswith(_DROPPED):
            rows.append(row.rstrip())
            wider = margin + word
        row = wider
    return [*rows, row.rstrip()]
