"""The string and regular expression libraries: `charAt`, `split`, `format`, `find` … and `strings.quote`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ctrlruntime.addresses import ESCAPES
from ctrlruntime.cel.failures import EvaluationError
from ctrlruntime.cel.functions import Declared
from ctrlruntime.cel.library.standard import compiled
from ctrlruntime.cel.patterns import Pattern
from ctrlruntime.cel.values import Duration, Timestamp, TypeValue, kind_of, show

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def declared() -> Iterator[Declared]:
    """Yield the functions of strings and regular expressions."""
    yield Declared("charAt", "string.(int) -> string", _char_at)
    yield Declared("format", "string.(list(dyn)) -> string", _format)
    for name, find in (("indexOf", _index_of), ("lastIndexOf", _last_index_of)):
        yield Declared(name, "string.(string) -> int", find)
        yield Declared(name, "string.(string, int) -> int", find)
    yield Declared("join", "list(string).() -> string", lambda parts: _join(parts, ""))
    yield Declared("join", "list(string).(string) -> string", _join)
    yield Declared("lowerAscii", "string.() -> string", lambda text: text.translate(_LOWER))
    yield Declared("upperAscii", "string.() -> string", lambda text: text.translate(_UPPER))
    yield Declared("strings.quote", "(string) -> string", _quote)
    yield Declared("replace", "string.(string, string) -> string", lambda text, old, new: text.replace(old, new))
    yield Declared("replace", "string.(string, string, int) -> string", _replace)
    yield Declared("split", "string.(string) -> list(string)", _split)
    yield Declared("split", "string.(string, int) -> list(string)", _split)
    yield Declared("substring", "string.(int) -> string", lambda text, start: _substring(text, start, len(text)))
    yield Declared("substring", "string.(int, int) -> string", _substring)
    yield Declared("trim", "string.() -> string", str.strip)
    yield Declared("find", "string.(string) -> string", _find)
    yield Declared("findAll", "string.(string) -> list(string)", _find_all)
    yield Declared("findAll", "string.(string, int) -> list(string)", _find_all)


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _join(parts: list[Any], separator: str) -> str:
    if not all(type(part) is str for part in parts):
        raise EvaluationError("no such overload")
    return separator.join(parts)


def _quote(text: str) -> str:
    return '"' + "".join(ESCAPES.get(char, char) for char in text) + '"'


def _replace(text: str, old: str, new: str, count: int) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int, end: int) -> str:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise EvaluationError(f"index out of range: {end}")
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    return text[start:end]


def _find(text: str, pattern: str) -> str:
    return _compiled(pattern).find(text) or ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return _compiled(pattern).find_all(text, limit)


def _compiled(pattern: str) -> Pattern:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


# Formatting

NO_STRING = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"


def _format(template: str, arguments: list[Any]) -> str:
    parts: list[str] = []
    at = used = 0
    while at < len(template):
        if template[at] != "%":
            parts.append(template[at])
            at += 1
            continue
        at += 1
        if at >= len(template):
            raise EvaluationError("unexpected end of format string")
        if template[at] == "%":
            parts.append("%")
            at += 1
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        precision, at = _precision(template, at)
        parts.append(_clause(template[at : at + 1], precision, arguments[used]))
        used += 1
        at += 1
    return "".join(parts)


def _precision(template: str, at: int) -> tuple[int | None, int]:
    if template[at] != ".":
        return None, at
    end = at + 1
    while end < len(template) and template[end].isdigit():
        end += 1
    if end == at + 1 or end >= len(template):
        raise EvaluationError("error while parsing precision: unable to find end of precision specifier")
    return int(template[at + 1 : end]), end


def _clause(verb: str, precision: int | None, value: Any) -> str:
    match verb:
        case "s":
            return _as_string(value)
        case "d":
            if isinstance(value, int) and not isinstance(value, bool):
                return str(int(value))
            return _special(value) or _refuse("decimal clause can only be used on integers", value)
        case "f":
            number = _double(value)
            if number is None:
                return _special(value) or _refuse("fixed-point clause can only be used on doubles", value)
            return f"{number:.{6 if precision is None else precision}f}"
        case "e":
            number = _double(value)
            if number is None:
                return _special(value) or _refuse("scientific clause can only be used on doubles", value)
            return _scientific(f"{number:.{6 if precision is None else precision}e}")
        case "b":
            if isinstance(value, int):
                return f"{int(value):b}"
            return _refuse("only integers and bools can be formatted as binary", value)
        case "o":
            if isinstance(value, int) and not isinstance(value, bool):
                return f"{int(value):o}"
            return _refuse("octal clause can only be used on integers", value)
        case "x" | "X":
            text = _hexadecimal(value)
            return text.upper() if verb == "X" else text
        case _:
            raise EvaluationError(f'error during formatting: unrecognized formatting clause "{verb}"')


_SUPERSCRIPTS = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻\x00")


def _scientific(text: str) -> str:
    mantissa, _, power = text.partition("e")
    return f"{mantissa}\u00d710{power.translate(_SUPERSCRIPTS).replace(chr(0), '')}"


def _double(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return None if number != number or number in {float("inf"), float("-inf")} else number  # noqa: PLR0124 - NaN


def _special(value: Any) -> str:
    if not isinstance(value, float):
        return ""
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, "")


def _hexadecimal(value: Any) -> str:
    match value:
        case bool():
            return _refuse("only integers, byte buffers, and strings can be formatted as hex", value)
        case int():
            return f"{int(value):x}"
        case str():
            return value.encode().hex()
        case bytes():
            return value.hex()
        case _:
            return _refuse("only integers, byte buffers, and strings can be formatted as hex", value)


def _refuse(what: str, value: Any) -> str:
    raise EvaluationError(f"error during formatting: {what}, was given {kind_of(value)}")


def _as_string(value: Any, *, quoted: bool = False) -> str:
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False) if quoted else value
        case list():
            return "[" + ", ".join(_as_string(item, quoted=True) for item in value) + "]"
        case dict():
            pairs = sorted((_as_string(key, quoted=True), _as_string(item, quoted=True)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
        case bytes():
            return value.decode(errors="replace")
        case None | bool() | int() | float() | Timestamp() | Duration() | TypeValue():
            return show(value)
        case _:
            return _refuse(NO_STRING, value)
