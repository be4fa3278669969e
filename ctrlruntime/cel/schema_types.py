"""`self` from a structural schema: its type for the checker, and the JSON value as CEL sees it.

Kubernetes' rules: formats date-time, date, duration and byte become CEL's own types, int-or-string is dyn, a null in an object counts as
absent, lists of type set and map compare without order. A schema without such parts costs nothing: its values are used as they are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from ctrlruntime.cel import types
from ctrlruntime.cel.escaping import spellings
from ctrlruntime.cel.types import Type
from ctrlruntime.cel.values import MapList, SetList, parse_timestamp, read_duration

_REQUEST_SIZE = 3 * 1024 * 1024
"""The largest request the API server reads, in bytes: what bounds a list or string without a limit of its own."""
_METADATA = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}

Converter = Callable[[Any], Any]


def declare(schema: Mapping[str, Any], *, is_resource: bool = False, name: str = "self") -> Type | None:
    """Return the type of values of a schema; None if the schema has no type for them.

    `is_resource` adds apiVersion, kind and metadata, as the root of a custom resource and embedded resources have them.
    """
    return _declared(schema, is_resource, name)


def smallest(schema: Mapping[str, Any], *, is_resource: bool = False) -> int:
    """Return the length in bytes of the shortest JSON a value of the schema can have."""
    return _smallest(schema, is_resource)


def _declared(schema: Mapping[str, Any], is_resource: bool, name: str) -> Type | None:
    if schema.get("x-kubernetes-int-or-string"):
        limit = schema.get("maxLength")
        return Type("dyn", largest=max(0, limit) * 4 if limit is not None else _REQUEST_SIZE - 2)
    if is_resource:
        schema = as_resource(schema)
    match schema.get("type"):
        case "array":
            return _list(schema, name)
        case "object":
            return _object(schema, name)
        case "string":
            return _string(schema)
        case "boolean":
            return types.BOOL
        case "number":
            return types.DOUBLE
        case "integer":
            return types.INT
        case _:
            return None


def as_resource(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema with the fields of every resource; its own metadata is replaced."""
    own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
    return {**schema, "properties": {**(schema.get("properties") or {}), **own}}


def _is_embedded(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def _list(schema: Mapping[str, Any], name: str) -> Type | None:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return None
    element = _declared(items, _is_embedded(items), f"{name}.@idx")
    if element is None:
        return None
    limit = schema.get("maxItems")
    return types.list_of(element, max(0, limit) if limit is not None else most_items(items))


def most_items(items: Mapping[str, Any]) -> int:
    """Return how many items fit into a request."""
    return (_REQUEST_SIZE - 2) // (_smallest(items, _is_embedded(items)) + 1)


def most_properties(values: Mapping[str, Any]) -> int:
    """Return how many properties of a map fit into a request."""
    return (_REQUEST_SIZE - 2) // (_smallest(values, _is_embedded(values)) + 6)


def _object(schema: Mapping[str, Any], name: str) -> Type | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        value = _declared(extra, _is_embedded(extra), f"{name}.@elem")
        if value is None:
            return None
        limit = schema.get("maxProperties")
        return types.map_of(types.STRING, value, max(0, limit) if limit is not None else most_properties(extra))
    fields: dict[str, Type] = {}
    for key, child in (schema.get("properties") or {}).items():
        escaped = spellings(key)
        field = _declared(child, _is_embedded(child), f"{name}.{escaped[0]}") if escaped else None
        if field is not None:
            fields.update(dict.fromkeys(escaped, field))
    return types.object_of(name, fields)


def _string(schema: Mapping[str, Any]) -> Type:
    limit = schema.get("maxLength")
    match schema.get("format"):
        case "byte":
            return Type("bytes", largest=max(0, limit) if limit is not None else _REQUEST_SIZE - 2)
        case "duration":
            return Type("duration", largest=32)
        case "date":
            return Type("timestamp", largest=12)
        case "date-time":
            return Type("timestamp", largest=37)
        case _:
            pass
    if limit is not None:
        return Type("string", largest=max(0, limit) * 4)
    texts = [value for value in schema.get("enum") or () if isinstance(value, str)]
    longest = max((len(text.encode()) for text in texts), default=0)
    return Type("string", largest=longest if schema.get("enum") else _REQUEST_SIZE - 2)


def _smallest(schema: Mapping[str, Any], is_resource: bool) -> int:
    if schema.get("x-kubernetes-int-or-string"):
        return 1
    if is_resource:
        schema = as_resource(schema)
    match schema.get("type"):
        case "array":
            return 2
        case "object":
            if isinstance(schema.get("additionalProperties"), Mapping):
                return 2
            properties = schema.get("properties") or {}
            return 2 + sum(
                len(key) + _smallest(properties[key], _is_embedded(properties[key])) + 4
                for key in dict.fromkeys(schema.get("required") or ())
                if key in properties and properties[key].get("default") is None
            )
        case "string":
            return {"duration": 4, "date": 12, "date-time": 12}.get(schema.get("format", ""), 2)
        case "boolean":
            return 4
        case _:
            return 1


# Values


def converter(schema: Mapping[str, Any], *, is_resource: bool = False) -> Converter | None:
    """Return the function that converts a JSON value of the schema to a CEL value; None if it needs no conversion."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    if is_resource:
        schema = as_resource(schema)
    match schema.get("type"):
        case "array":
            return _list_converter(schema)
        case "object":
            return _object_converter(schema)
        case "number":
            return _to_double
        case "string":
            return _FORMATS.get(schema.get("format", ""))
        case _:
            return None


def _list_converter(schema: Mapping[str, Any]) -> Converter | None:
    items = schema.get("items")
    inner = converter(items, is_resource=_is_embedded(items)) if isinstance(items, Mapping) else None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return lambda value: MapList(_each(value, inner), keys) if isinstance(value, list) else value
        case "set":
            return lambda value: SetList(_each(value, inner)) if isinstance(value, list) else value
        case _:
            pass
    return None if inner is None else lambda value: _each(value, inner) if isinstance(value, list) else value


def _each(items: list[Any], inner: Converter | None) -> list[Any]:
    return items if inner is None else [inner(item) for item in items]


def _object_converter(schema: Mapping[str, Any]) -> Converter | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        inner = converter(extra, is_resource=_is_embedded(extra))
        if inner is None:
            return None
        convert = inner
        return lambda value: {k: convert(v) for k, v in value.items()} if isinstance(value, dict) else value
    properties: Mapping[str, Any] = schema.get("properties") or {}
    inside = {key: converter(child, is_resource=_is_embedded(child)) for key, child in properties.items()}
    some = {key: found for key, found in inside.items() if found is not None}
    nullable = [key for key, child in properties.items() if child.get("nullable")]
    if not some and not nullable:
        return None

    def convert_object(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        result = dict(value)
        for key in nullable:
            if key in result and result[key] is None:
                del result[key]
        for key, found in some.items():
            if key in result and result[key] is not None:
                result[key] = found(result[key])
        return result

    return convert_object


def _to_double(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _to_timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = parse_timestamp(value if "T" in value.upper() else f"{value}T00:00:00Z")
    return value if found is None else found


def _to_duration(value: Any) -> Any:
    found = read_duration(value) if isinstance(value, str) else None
    return value if found is None else found


def _to_bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except (binascii.Error, ValueError):
        return value


_FORMATS: Mapping[str, Converter] = {
    "byte": _to_bytes,
    "date": _to_timestamp,
    "date-time": _to_timestamp,
    "duration": _to_duration,
}
