"""JSON values as Go prints them: messages of kube-apiserver have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.field_errors import go_float, quoted

GO_TYPES: Final[dict[type, str]] = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}


_NAMES: Final[dict[type, str]] = {str: "string", bool: "bool", list: "array", dict: "object", type(None): "null"}


def go_name(value: object) -> str:
    """Return how messages of encoding/json call a JSON value."""
    return _NAMES.get(type(value), "number")


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value of Go that JSON does not have, such as a uint64: no field takes it."""

    text: str
    """As `%v` prints it."""
    syntax: str
    """As `%#v` prints it."""
    go_type: str

    def __str__(self) -> str:
        return self.text


def go_text(value: Any) -> str:
    """Return a value as `%v` prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
        case list() | tuple():
            return f"[{' '.join(go_text(item) for item in value)}]"
        case float():
            return go_float(value)
        case None:
            return "<nil>"
        case _:
            return str(value)


def parse_int(text: str) -> int:
    """Return an integer of 64 bits. Raises: ValueError with the message of strconv.ParseInt."""
    return _parsed(text, "ParseInt", _INTEGER, range(-(2**63), 2**63))


def parse_uint(text: str) -> int:
    """Return an unsigned integer of 64 bits. Raises: ValueError with the message of strconv.ParseUint."""
    return _parsed(text, "ParseUint", _DIGITS, range(2**64))


_INTEGER: Final = re.compile("[+-]?[0-9]+")
_DIGITS: Final = re.compile("[0-9]+")
_MOST_DIGITS: Final = 20
"""Of a number of 64 bits, without zeros before it."""


def _parsed(text: str, function: str, form: re.Pattern[str], numbers: range) -> int:
    why = "invalid syntax"
    if form.fullmatch(text):
        sign, digits = ("-" if text[0] == "-" else ""), text.lstrip("+-").lstrip("0") or "0"
        if len(digits) <= _MOST_DIGITS and (number := int(sign + digits)) in numbers:
            return number
        why = "value out of range"
    raise ValueError(f"strconv.{function}: parsing {quoted(text)}: {why}")


def go_duration(seconds: float) -> str:
    """Return seconds as Go prints a duration: `10s`, `1m20s`, `1h5m0s`; without milliseconds and less."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


__all__ = ["GO_TYPES", "Foreign", "go_duration", "go_name", "go_text", "parse_int", "parse_uint"]
