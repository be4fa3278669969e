"""pydantic's constraints as keywords of a schema. Two values for one keyword are in allOf: both apply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctrlruntime.api.annotations import Limit
from ctrlruntime.generate.options import Document, Place

__all__ = ["add_limit", "apply_limits"]

_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_NUMERIC: Final = {"integer", "number"}


def apply_limits(limits: Iterable[Limit], schema: Document, place: Place) -> None:
    """Add constraints to a schema. Raises: GenerateError where one does not fit the type."""
    for limit in limits:
        add_limit(schema, _keywords(limit, schema, place))


def add_limit(schema: Document, keywords: Document) -> None:
    """Add keywords that belong together; if the first is already set to another value, both go into allOf."""
    name = next(iter(keywords))
    present = {key: schema[key] for key in (name, _exclusive(name)) if key in schema}
    if present == keywords:
        return
    both = schema.get("allOf", [])
    if not present and not any(name in one for one in both):
        schema.update(keywords)
        return
    for key in present:
        del schema[key]
    for one in (present, keywords) if present else (keywords,):
        free = next((other for other in both if name not in other), None)
        if free is None:
            both = [*both, one]
        else:
            free.update(one)
    schema["allOf"] = both


def _exclusive(name: str) -> str:
    return f"exclusive{name[:1].upper()}{name[1:]}"


def _keywords(limit: Limit, schema: Document, place: Place) -> Document:
    match limit.kind:
        case "ge" | "gt":
            return _bound("minimum", limit, schema, place)
        case "le" | "lt":
            return _bound("maximum", limit, schema, place)
        case "multiple_of":
            return _bound("multipleOf", limit, schema, place)
        case "pattern":
            if schema.get("type") != "string" and not _is_int_or_string(schema):
                raise place.error(f"pattern is for strings, but the field has the type {_type(schema)}")
            return {"pattern": limit.value}
        case _:
            return _length(limit, schema, place)


def _bound(name: str, limit: Limit, schema: Document, place: Place) -> Document:
    if schema.get("type") not in _NUMERIC:
        raise place.error(f"{limit.kind}={limit.value!r} is for numbers, but the field has the type {_type(schema)}")
    value = limit.value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise place.error(f"{limit.kind}={value!r} is not a number")
    if schema["type"] == "integer" and isinstance(value, float) and not value.is_integer():
        raise place.error(f"{limit.kind}={value!r} is not an integer, but the field is an int")
    return {name: _number(value), **({_exclusive(name): True} if limit.kind in {"gt", "lt"} else {})}


def _number(value: float) -> float:
    """The number as a float64 holds it, which is how the API keeps bounds."""
    if float(value).is_integer() and abs(value) < 2**53:
        return int(value)
    return float(value)


def _length(limit: Limit, schema: Document, place: Place) -> Document:
    side = limit.kind.removesuffix("_length")
    if schema.get("type") not in _LENGTHS and not _is_int_or_string(schema):
        raise place.error(f"{limit.kind}={limit.value!r} is for strings, lists and dicts, not for type {_type(schema)}")
    if limit.value < 0:
        raise place.error(f"{limit.kind}={limit.value!r} is below zero")
    # The server counts the letters of base64.
    value = (limit.value + 2) // 3 * 4 if schema.get("format") == "byte" else limit.value
    return {f"{side}{_LENGTHS.get(schema.get('type', 'string'), 'Length')}": value}


def _is_int_or_string(schema: Document) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string"))


def _type(schema: Document) -> Any:
    return schema.get("type") or ("int or string" if _is_int_or_string(schema) else "unknown")
