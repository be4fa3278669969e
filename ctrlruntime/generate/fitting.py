"""Checks a default against its schema: the API server rejects a CRD with a default that does not match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ctrlruntime.cel.failures import MissingLibraryError
from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.schema.trees import json_type

__all__ = ["misfit"]


def misfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Return the first thing that is wrong with a value; empty when it fits."""
    return next(_problems(value, schema, ""), "")


def _problems(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    where = f"{path.removeprefix('.')}: " if path else ""
    if value is None:
        if not schema.get("nullable"):
            yield f"{where}null is not allowed"
        return
    kind = schema.get("type")
    is_whole = isinstance(value, float) and value.is_integer()
    actual = "integer" if is_whole else json_type(value)
    if kind and actual != kind and not (kind == "number" and actual == "integer"):
        yield f"{where}it is of type {actual}, not {kind}"
        return
    if schema.get("x-kubernetes-int-or-string") and actual not in {"integer", "string"}:
        yield f"{where}it is of type {actual}, not integer or string"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}it is not one of {', '.join(map(repr, schema['enum']))}"
    for part in schema.get("allOf") or ():
        yield from _problems(value, part, path)
    match value:
        case bool():
            pass
        case str():
            yield from (f"{where}{problem}" for problem in _text(value, schema))
        case int() | float():
            yield from (f"{where}{problem}" for problem in _number(value, schema))
        case list():
            yield from _length(len(value), schema, "Items", where)
            for index, item in enumerate(value):
                yield from _problems(item, schema.get("items") or {}, f"{path}[{index}]")
        case _:
            yield from _object(cast("dict[str, Any]", value), schema, path, where)


def _object(value: dict[str, Any], schema: Mapping[str, Any], path: str, where: str) -> Iterator[str]:
    yield from _length(len(value), schema, "Properties", where)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    for name in schema.get("required") or ():
        if name not in value and "default" not in properties.get(name, {}):
            yield f"{where}{name} is required"
    extra = schema.get("additionalProperties")
    for name, item in value.items():
        child = properties.get(name, extra)
        if child is False:
            yield f"{where}{name} is not allowed"
        elif isinstance(child, Mapping):
            yield from _problems(item, cast("Mapping[str, Any]", child), f"{path}.{name}")


def _text(value: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _length(len(value), schema, "Length", "")
    pattern = schema.get("pattern")
    if pattern is not None:
        try:
            fits = compile_pattern(pattern).matches(value)
        except (ValueError, MissingLibraryError):
            return  # the pattern itself is judged elsewhere
        if not fits:
            yield f"it does not match {pattern!r}"


def _number(value: float, schema: Mapping[str, Any]) -> Iterator[str]:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if low is not None and (value < low or (value == low and schema.get("exclusiveMinimum"))):
        yield f"it is below the minimum {low}"
    if high is not None and (value > high or (value == high and schema.get("exclusiveMaximum"))):
        yield f"it is above the maximum {high}"
    if step and abs(value / step - round(value / step)) > 1e-9:
        yield f"it is not a multiple of {step}"
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield "it does not fit into 32 bits"


def _length(length: int, schema: Mapping[str, Any], what: str, where: str) -> Iterator[str]:
    if length < schema.get(f"min{what}", 0):
        yield f"{where}it is shorter than min{what} {schema[f'min{what}']}"
    if f"max{what}" in schema and length > schema[f"max{what}"]:
        yield f"{where}it is longer than max{what} {schema[f'max{what}']}"
