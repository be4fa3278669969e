"""The words of cel-go for values whose kind is known only at run time, and does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlruntime.cel.values import kind_of

_TIMES: Final = frozenset({"google.protobuf.Duration", "google.protobuf.Timestamp"})
_NUMBERS: Final = frozenset({"double", "int", "uint"})
_COMPARED: Final = _NUMBERS | _TIMES | {"bool", "bytes", "string"}
_RECEIVERS: Final = _TIMES | {"string"}
_KNOWN_BY: Final[Mapping[str, frozenset[str]]] = {
    "_+_": _RECEIVERS | _NUMBERS | {"bytes", "list"},
    "_-_": _RECEIVERS | _NUMBERS,
    "_*_": _RECEIVERS | _NUMBERS,
    "_/_": _RECEIVERS | _NUMBERS,
    "_%_": _RECEIVERS | {"int", "uint"},
    "-_": _RECEIVERS | {"bool", "double", "int"},
    "_<_": _COMPARED,
    "_<=_": _COMPARED,
    "_>_": _COMPARED,
    "_>=_": _COMPARED,
    "size": _RECEIVERS,
    "sort": _RECEIVERS,
    "matches": _RECEIVERS,
}
"""The kinds that know an operation (the traits of cel-go's types); for a first value of another kind the message has its name."""
CONSTANT_PATTERN: Final = ""
"""In place of a function's name: cel-go compiles a constant pattern beforehand, and calls another implementation."""
_SINGLE: Final = frozenset({"!_", "@in", "_==_", "_!=_", "contains", "endsWith", "startsWith", CONSTANT_PATTERN})
"""Functions of one implementation; the message of the others has the kinds of all values."""
_OF_ITEMS: Final[Mapping[str, frozenset[str]]] = {
    "sum": _NUMBERS | {"google.protobuf.Duration"},
    **dict.fromkeys(("isSorted", "max", "min"), _COMPARED),
}
"""Functions of lists of one kind: only for a first item of another kind the message has the kinds."""
_GO_TYPES: Final[Mapping[str, str]] = {
    "null_type": "types.Null",
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
}
_OF_JSON: Final = {"null_type": "<nil>", "list": "[]interface {}", "map": "map[string]interface {}"}
"""The Go types of what JSON has and keys are not."""


def no_overload(name: str, values: Sequence[Any]) -> str:
    """Return the message for a function that has no overload for these values."""
    known_by = _KNOWN_BY.get(name)
    if known_by is not None:
        return "no such overload" if kind_of(values[0]) in known_by else f"no such overload: {name}"
    first = values[0] if values else None
    is_plain = name in _SINGLE
    if name in _OF_ITEMS and isinstance(first, list) and first:
        is_plain = kind_of(first[0]) in _OF_ITEMS[name]
    return "no such overload" if is_plain else f"no such overload: {name}({', '.join(map(kind_of, values))})"


def no_key(value: Any) -> str:
    """Return the message for what cannot be a key or an index."""
    kind = kind_of(value)
    return f"invalid qualifier type: {_OF_JSON.get(kind) or _GO_TYPES.get(kind, kind)}"


def no_range(value: Any, *, two: bool) -> str:
    """Return the message for a loop, of one or two variables, over what is neither a list nor a map."""
    kind = kind_of(value)
    name = _GO_TYPES.get(kind, kind)
    return f"unsupported comprehension range type: {name}" if two else f"got '{name}', expected iterable type"


__all__ = ["CONSTANT_PATTERN", "no_key", "no_overload", "no_range"]
