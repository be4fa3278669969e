"""Manifests as text: the bytes that controller-gen writes for the same content.

Its YAML comes from Go's yaml.v2, whose scanner of scalars and folding at column 80 are those of libyaml; what is here writes trees of
JSON values the same way. Keys are sorted in Go's natural order, lists are at the indent of their key, texts with line breaks are
literal blocks.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, cast

from ctrlruntime.generate.options import Document

__all__ = ["dump", "dump_all", "file_name"]

_WIDTH = 80


def file_name(definition: Mapping[str, Any]) -> str:
    """Return the name controller-gen gives the file of a definition: `GROUP_PLURAL.yaml`."""
    spec = definition["spec"]
    return f"{spec['group']}_{spec['names']['plural']}.yaml"


def dump(document: Mapping[str, Any]) -> str:
    """Return one document as YAML text that starts with `---`."""
    return "---\n" + "".join(_mapping(document, 0))


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return several documents as one text."""
    return "".join(dump(document) for document in documents)


# Blocks


def _mapping(tree: Mapping[str, Any], indent: int) -> Iterator[str]:
    for key in sorted(tree, key=functools.cmp_to_key(_compare)):
        head = _key(key)
        yield f"{' ' * indent}{head}:"
        yield from _value(tree[key], indent, " " * indent + head + ": ")


def _value(value: Any, indent: int, before: str) -> Iterator[str]:
    """What follows a key and its colon, the line break included; `before` is the line as far as a scalar would start."""
    if isinstance(value, Mapping) and value:
        yield "\n"
        yield from _mapping(cast("Document", value), indent + 2)
    elif isinstance(value, (list, tuple)) and value:
        yield "\n"
        yield from _sequence(cast("Sequence[Any]", value), indent)
    else:
        yield f" {_scalar(value, len(before), indent + 2)}\n"


def _sequence(items: Sequence[Any], indent: int) -> Iterator[str]:
    for item in items:
        yield f"{' ' * indent}- "
        if isinstance(item, Mapping) and item:
            yield "".join(_mapping(cast("Document", item), indent + 2))[indent + 2 :]
        elif isinstance(item, (list, tuple)) and item:
            yield "".join(_sequence(cast("Sequence[Any]", item), indent + 2))[indent + 2 :]
        else:
            yield f"{_scalar(item, indent + 2, indent + 2)}\n"


def _key(text: str) -> str:
    return _text(text, 0, 0, is_key=True)


def _scalar(value: Any, column: int, indent: int) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if -(2**63) <= value < 2**64 else _float(float(value))
        case float():
            return _float(value)
        case str():
            return _text(value, column, indent)
        case Mapping():
            return "{}"
        case _:
            return "[]"


def _float(value: float) -> str:
    """A number as Go's FormatFloat(value, 'g', -1, 64) writes it; a whole one that JSON writes without a point as an int."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else "-.inf" if value < 0 else ".inf"
    if value.is_integer() and abs(value) < 1e21 and -(2**63) <= int(_digits(value)) < 2**64:
        return _digits(value)
    sign, digits, exponent = "-" if value < 0 else "", *_decompose(abs(value))
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _digits(value: float) -> str:
    """A whole number by its shortest digits: 2**63 is 9223372036854775807 rounded, 9223372036854776000."""
    digits, exponent = _decompose(abs(value))
    return ("-" if value < 0 else "") + (digits + "0" * exponent)[: exponent + 1]


def _decompose(value: float) -> tuple[str, int]:
    """The shortest digits of a number, and the power of ten of the first."""
    mantissa, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if float(text) == value:
            mantissa, _, exponent = text.partition("e")
            break
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = (digits + "0" * exponent)[: exponent + 1]
    rest = digits[exponent + 1 :]
    return f"{whole}.{rest}" if rest else whole


# Texts


def _text(text: str, column: int, indent: int, *, is_key: bool = False) -> str:
    allowed = _allowed(text)
    if "\n" in text and not is_key:
        return _literal(text, indent) if "block" in allowed else _double(text, column, indent)
    if "\n" in text or not _stays_text(text):
        return _double(text, column, indent, folds=not is_key)
    if "plain" in allowed:
        return _fold(text, column, indent) if not is_key else text
    if "single" in allowed:
        return _single(text, column, indent, folds=not is_key)
    return _double(text, column, indent, folds=not is_key)


def _literal(text: str, indent: int) -> str:
    hint = "2" if text[0] in " \n" else ""
    chomp = "-" if not text.endswith("\n") else "+" if text == "\n" or text.endswith("\n\n") else ""
    body = text.removesuffix("\n")
    lines = [f"{' ' * indent}{line}" if line else "" for line in body.split("\n")]
    return "\n".join([f"|{hint}{chomp}", *lines])


def _fold(text: str, column: int, indent: int) -> str:
    """Break at single blanks once the line is longer than 80 columns."""
    parts: list[str] = []
    start = 0
    for at, char in enumerate(text):
        single = char == " " and text[at - 1 : at] != " " and text[at + 1 : at + 2] not in {" ", ""}
        if single and at and column + (at - start) > _WIDTH:
            parts.append(text[start:at])
            start, column = at + 1, indent
    parts.append(text[start:])
    return f"\n{' ' * indent}".join(parts)


def _single(text: str, column: int, indent: int, *, folds: bool) -> str:
    if not folds:
        return "'" + text.replace("'", "''") + "'"
    quoted: list[str] = ["'"]
    column += 1
    for at, char in enumerate(text):
        inside = 0 < at < len(text) - 1
        if char == " " and inside and column > _WIDTH and text[at - 1] != " " and text[at + 1] != " ":
            quoted.append(f"\n{' ' * indent}")
            column = indent
        else:
            piece = "''" if char == "'" else char
            quoted.append(piece)
            column += len(piece)
    return "".join([*quoted, "'"])


_ESCAPES = {
    "\0": "0", "\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", "\x1b": "e", '"': '"', "\\": "\\",
    "\x85": "N", "\xa0": "_", "\u2028": "L", "\u2029": "P",
}  # fmt: skip


def _double(text: str, column: int, indent: int, *, folds: bool = True) -> str:
    quoted: list[str] = ['"']
    column += 1
    after_blank = False
    for at, char in enumerate(text):
        if char in '"\\' or not _is_printable(char) or char in _BREAKS:
            piece, after_blank = _escape(char), False
        elif char == " " and folds and not after_blank and column > _WIDTH and 0 < at < len(text) - 1:
            piece = f"\n{' ' * indent}" + ("\\" if text[at + 1] == " " else "")
            after_blank, column = True, indent - len(piece)
            column += 1 if piece.endswith("\\") else 0
        else:
            piece, after_blank = char, char == " "
        quoted.append(piece)
        column += len(piece)
    return "".join([*quoted, '"'])


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return f"\\{_ESCAPES[char]}"
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _is_printable(char: str) -> bool:
    code = ord(char)
    return (
        code == 0x0A
        or 0x20 <= code <= 0x7E
        or (0xA0 <= code <= 0xD7FF)
        or (0xE000 <= code <= 0xFFFD and code != 0xFEFF)
    )


_BREAKS = "\r\n\x85\u2028\u2029"
_STARTS = "#,[]{}&*!|>'\"%@`"


def _allowed(text: str) -> frozenset[str]:
    """The styles that write a text so that it is read again: what libyaml finds when it looks through a scalar."""
    if not text:
        return frozenset({"single"})
    before = {text[at - 1] for at, char in enumerate(text) if char == " " and at}
    after = {text[at - 1] for at, char in enumerate(text) if char in _BREAKS and at}
    if " " in after or any(
        char in "\r\x85\u2028\u2029" for char in text
    ):  # breaks to a reader, which only escapes keep
        return frozenset()
    if not all(_is_printable(char) or char in _BREAKS for char in text):
        return frozenset()
    styles = {"plain", "single", "block"}
    if text[-1] == " ":
        styles -= {"plain", "block"}
    if text[0] in f" {_BREAKS}" or any(char in _BREAKS for char in text) or _has_indicators(text):
        styles.discard("plain")
    if before & set(_BREAKS):
        styles -= {"plain", "single"}
    return frozenset(styles)


def _has_indicators(text: str) -> bool:
    if text.startswith(("---", "...")) or text[0] in _STARTS:
        return True
    if text[0] in "?:-" and (len(text) == 1 or text[1] in f" \t{_BREAKS}"):
        return True
    return bool(re.search(r":(?=[ \t\r\n\x85\u2028\u2029]|$)|(?<=[ \t\r\n\x85\u2028\u2029])#", text))


_WORDS = {
    *(
        [
            "y",
            "Y",
            "yes",
            "Yes",
            "YES",
            "true",
            "True",
            "TRUE",
            "on",
            "On",
            "ON",
            "n",
            "N",
            "no",
            "No",
            "NO",
            "false",
            "False",
            "FALSE",
            "off",
            "Off",
            "OFF",
        ]
    ),
    *(
        [
            "null",
            "Null",
            "NULL",
            "~",
            ".nan",
            ".NaN",
            ".NAN",
            ".inf",
            ".Inf",
            ".INF",
            "+.inf",
            "+.Inf",
            "+.INF",
            "-.inf",
            "-.Inf",
            "-.INF",
        ]
    ),
    "",
}
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_PREFIXED = re.compile(r"[-+]?0(?:b[01]+|o[0-7]+|x[0-9a-fA-F]+)", re.IGNORECASE)
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_MOMENT = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:\.\d*)?(?:Z|[-+]\d\d:\d\d)|"
    r" (\d\d?):(\d\d?):(\d\d?)(?:\.\d*)?)?"
)


def _stays_text(text: str) -> bool:
    """Whether a YAML 1.1 reader, as Go's is, reads the bare text as text."""
    if text in _WORDS or _BASE_60.fullmatch(text):
        return False
    if text[0] in "+-.0123456789":
        bare = text.replace("_", "")
        if _NUMBER.fullmatch(bare):
            return not math.isfinite(float(bare))
        if _PREFIXED.fullmatch(bare):
            return False
        moment = _MOMENT.fullmatch(text)
        return moment is None or not _is_moment([int(part or 0) for part in moment.groups()])
    return True


def _is_moment(parts: list[int]) -> bool:
    year, month, day, *clock = parts
    try:
        date(year, month, day)
    except ValueError:
        return False
    return all(hour < 24 and minute < 60 and second < 60 for hour, minute, second in (clock[:3], clock[3:]))


# The order of keys


def _compare(left: str, right: str) -> int:
    """Letters by code, numbers by value, other characters before letters."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one == other:
            continue
        if one.isalpha() and other.isalpha():
            return -1 if one < other else 1
        if one.isalpha() or other.isalpha():
            return -1 if other.isalpha() else 1
        return _compare_numbers(left, right, at)
    return len(left) - len(right)


def _compare_numbers(left: str, right: str, at: int) -> int:
    head = 0
    if "0" in {left[at], right[at]}:
        before = re.search(r"[0-9]*$", left[:at])
        head = 1 if before and before[0].strip("0") else 0
    one, other = (re.match(r"[0-9]*", text[at:]) for text in (left, right))
    digits = (one[0] if one else "", other[0] if other else "")
    values = tuple(int(f"{head}{text}") for text in digits)
    if values[0] != values[1]:
        return -1 if values[0] < values[1] else 1
    if len(digits[0]) != len(digits[1]):
        return len(digits[0]) - len(digits[1])
    return -1 if left[at] < right[at] else 1
