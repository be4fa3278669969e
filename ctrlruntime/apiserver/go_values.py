"""JSON values as Go prints them: messages of kube-apiserver have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.field_errors import go_float

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


def go_duration(seconds: float) -> str:
    """Return seconds as Go prints a duration: `10s`, `1m20s`, `1h5m0s`; without milliseconds and less."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


__all__ = ["GO_TYPES", "Foreign", "go_duration", "go_name", "go_text"]
