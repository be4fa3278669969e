"""JSON values as Go prints them: messages of kube-apiserver have them."""

from __future__ import annotations

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


__all__ = ["GO_TYPES", "go_text"]
