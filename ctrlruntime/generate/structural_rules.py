"""The API server's checks of a schema, done before it gets one (apiextensions: structural schemas).

The walk over classes cannot make most of these mistakes; hooks, overrides and markers can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from ctrlruntime.cel.failures import MissingLibraryError
from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.generate.marks import RULES
from ctrlruntime.generate.options import Place, Warn
from ctrlruntime.generate.rules import RuleChecks

__all__ = ["check_schema"]

_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED, _LIST, _KEYS, _MAP = (
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_TYPES: Final = ("string", "integer", "number", "boolean", "array", "object")
_SCALARS: Final = ("string", "integer", "number", "boolean")
_UNKNOWN_TO_SERVER: Final = (
    "$ref",
    "$defs",
    "definitions",
    "const",
    "patternProperties",
    "prefixItems",
    "dependencies",
    "id",
)
_NOT_IN_BRANCHES: Final = (
    "type", "default", "title", "description", "nullable", "additionalProperties", RULES,
    _PRESERVE, _INT_OR_STRING, _EMBEDDED, _LIST, _KEYS, _MAP,
)  # fmt: skip
_FORMATS: Final = frozenset(
    (
        "int32",
        "int64",
        "float",
        "double",
        "uri",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "cidr",
        "mac",
        "uuid",
        "uuid3",
        "uuid4",
        "uuid5",
        "isbn",
        "isbn10",
        "isbn13",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "byte",
        "password",
        "date",
        "duration",
        "datetime",
        "date-time",
        "bsonobjectid",
        "k8s-short-name",
        "k8s-long-name",
    )
)


def check_schema(schema: Mapping[str, Any], place: Place, warn: Warn) -> None:
    """Raise GenerateError for what the server refuses; warn of what it ignores or what costs too much."""
    if schema.get("type") != "object" or "additionalProperties" in schema or schema.get("nullable"):
        raise place.error("the root of a schema must be an object with properties, and not nullable")
    _node(schema, place, warn)
    RuleChecks(place, warn).check(schema)


def _node(schema: Mapping[str, Any], place: Place, warn: Warn) -> None:
    for key in _UNKNOWN_TO_SERVER:
        if key in schema:
            raise place.error(f"the API server does not support {key}. Leave it out")
    _type(schema, place)
    _form(schema, place, warn)
    _branches(schema, place)
    if schema.get("type") == "array":
        _list(schema, place)
    if _MAP in schema and schema.get("type") != "object":
        raise place.error("only objects and dicts have a map type")
    if schema.get(_EMBEDDED):
        _embedded(schema, place)
    for step, child in _children(schema):
        _node(child, place.below(step), warn)


def _children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, child in (schema.get("properties") or {}).items():
        yield f".{name}", child
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), Mapping):
            yield step, schema[key]


def _type(schema: Mapping[str, Any], place: Place) -> None:
    kind = schema.get("type")
    if kind is None:
        if not schema.get(_INT_OR_STRING) and not schema.get(_PRESERVE):
            raise place.error("the schema has no type here. Add SchemaType('…') or PreserveUnknownFields")
    elif kind not in _TYPES:
        raise place.error(f"{kind!r} is not a type. Use one of {', '.join(_TYPES)}")
    if schema.get(_INT_OR_STRING) and kind is not None:
        raise place.error("an int-or-string must not have a type")
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        raise place.error("the list has no type for its items. Use list[X]")
    if "properties" in schema and "additionalProperties" in schema:
        raise place.error("an object cannot have both properties and additionalProperties")


def _form(schema: Mapping[str, Any], place: Place, warn: Warn) -> None:
    form = schema.get("format")
    if form and form not in _FORMATS:
        warn(f"{place}: the API server does not support the format {form!r}, so it does not check the value")
    if schema.get("uniqueItems"):
        raise place.error("the API server rejects uniqueItems. Use set[X], or ListSet")
    if (pattern := schema.get("pattern")) is not None:
        try:
            compile_pattern(pattern)
        except ValueError as error:
            raise place.error(f"the API server does not support the pattern {pattern!r}: {error}") from error
        except MissingLibraryError as error:
            warn(f"{place}: the pattern was not checked: {error}")
    for low, high in (("minimum", "maximum"), *((f"min{x}", f"max{x}") for x in ("Length", "Items", "Properties"))):
        if low in schema and high in schema and schema[low] > schema[high]:
            raise place.error(f"{low} {schema[low]} is above {high} {schema[high]}, so no value is valid")


def _branches(schema: Mapping[str, Any], place: Place) -> None:
    for key in ("allOf", "anyOf", "oneOf", "not"):
        present = schema.get(key) or ()
        branches = cast("list[Mapping[str, Any]]", [present] if isinstance(present, Mapping) else present)
        if key == "anyOf" and schema.get(_INT_OR_STRING):
            continue  # the one place where branches say types
        for branch in branches:
            for word in _NOT_IN_BRANCHES:
                if word in branch:
                    raise place.error(f"{word} is not allowed inside {key}")
            _branches(branch, place)


def _list(schema: Mapping[str, Any], place: Place) -> None:
    items: Mapping[str, Any] = schema["items"]
    if items.get("nullable") and schema.get(_LIST) in {"set", "map"}:
        raise place.error("the items of a set, and of a list with keys, cannot be nullable")
    match schema.get(_LIST):
        case "set":
            is_atomic = items.get(_LIST) == "atomic" or items.get(_MAP) == "atomic"
            if items.get("type") not in _SCALARS and not items.get(_INT_OR_STRING) and not is_atomic:
                raise place.error("the items of a set must be scalars, or atomic lists and objects. Use ListMap('key')")
        case "map":
            _map_keys(schema, items, place)
        case None | "atomic":
            if _KEYS in schema:
                raise place.error("only a list of type map has keys")
        case other:
            raise place.error(f"{other!r} is not a list type. Use set, map or atomic")


def _map_keys(schema: Mapping[str, Any], items: Mapping[str, Any], place: Place) -> None:
    properties: Mapping[str, Mapping[str, Any]] = items.get("properties") or {}
    if items.get("type") != "object":
        raise place.error("the items of a list with keys must be objects")
    for key in schema.get(_KEYS) or ():
        child = properties.get(key)
        if child is None or child.get("type") not in _SCALARS:
            raise place.error(f"the key {key!r} must be a field of the items, of a scalar type")
        if key not in (items.get("required") or ()) and "default" not in child:
            raise place.error(
                f"the key {key!r} must be required or have a default: items without it could not be distinguished"
            )
        if child.get("nullable"):
            raise place.error(f"the key {key!r} cannot be nullable")


def _embedded(schema: Mapping[str, Any], place: Place) -> None:
    if schema.get("type") != "object" or not (schema.get("properties") or schema.get(_PRESERVE)):
        raise place.error("an embedded resource must be an object with fields, or preserve unknown fields")
    metadata: Mapping[str, Any] = (schema.get("properties") or {}).get("metadata") or {}
    restricted = set(metadata.get("properties") or {}) - {"name", "generateName"}
    if restricted:
        raise place.error(
            f"the metadata of an embedded resource may only restrict name and generateName, not {', '.join(sorted(restricted))}"
        )
