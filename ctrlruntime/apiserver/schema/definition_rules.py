"""The rules a CRD's schema must keep to be structural, with upstream's texts and paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlruntime.apiserver.failures import forbidden_field, invalid_value, required
from ctrlruntime.apiserver.schema.structural import Structural, compile_pattern
from ctrlruntime.errors import StatusCause

_VALUE_KEYS = ("description", "type", "default", "additionalProperties", "nullable")
_TYPES = frozenset({"array", "boolean", "integer", "number", "object", "string"})


def check_schema(schema: Mapping[str, Any], path: str) -> list[StatusCause]:
    """Return what keeps the schema at `path` from being structural; empty when it is."""
    causes: list[StatusCause] = []
    kind = schema.get("type", "")
    if not kind:
        causes.append(required(f"{path}.type", "must not be empty at the root"))
    elif kind != "object":
        causes.append(invalid_value(f"{path}.type", kind, "must be object at the root"))
    if "x-kubernetes-preserve-unknown-fields" in schema and schema["x-kubernetes-preserve-unknown-fields"] is not True:
        causes.append(invalid_value(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined"))
    _check_metadata(schema, path, causes)
    _check_node(schema, path, causes)
    if not causes:
        _check_defaults(schema, path, causes)
    return causes


def _check_metadata(schema: Mapping[str, Any], path: str, causes: list[StatusCause]) -> None:
    metadata = (schema.get("properties") or {}).get("metadata")
    if not isinstance(metadata, Mapping):
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type", "object") != "object":
        causes.append(invalid_value(f"{where}.type", metadata["type"], "must be object"))
    if set(metadata.get("properties") or {}) - {"name", "generateName"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        causes.append(forbidden_field(where, text))


def _check_node(schema: Mapping[str, Any], path: str, causes: list[StatusCause]) -> None:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        listed = ", ".join(f'"{name}"' for name in sorted(_TYPES))
        text = f'Unsupported value: "{kind}": supported values: {listed}'
        causes.append(StatusCause("FieldValueNotSupported", text, f"{path}.type"))
    if schema.get("$ref"):
        causes.append(forbidden_field(f"{path}.$ref", "$ref is not supported"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.append(forbidden_field(f"{path}.uniqueItems", text))
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            causes.append(invalid_value(f"{path}.pattern", schema["pattern"], text))
    _check_list(schema, kind, path, causes)
    if schema.get("additionalProperties") and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        causes.append(forbidden_field(f"{path}.additionalProperties", text))
    if schema.get("x-kubernetes-embedded-resource"):
        if kind != "object":
            causes.append(
                invalid_value(f"{path}.type", kind, "must be object if x-kubernetes-embedded-resource is true")
            )
        if not schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties"):
            text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
            causes.append(required(f"{path}.properties", text))
    for name, child in (schema.get("properties") or {}).items():
        _check_child(child, f"{path}.properties[{name}]", "must not be empty for specified object fields", causes)
    items = schema.get("items")
    if isinstance(items, Mapping):
        _check_child(items, f"{path}.items", "must not be empty for specified array items", causes)
    elif isinstance(items, list):
        causes.append(forbidden_field(f"{path}.items", "items must be a schema object and not an array"))
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        _check_child(extra, f"{path}.additionalProperties", "must not be empty for specified object fields", causes)
    for name in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(name) or ()):
            _check_value_only(child, f"{path}.{name}[{index}]", bool(schema.get("x-kubernetes-int-or-string")), causes)
    if isinstance(schema.get("not"), Mapping):
        _check_value_only(schema["not"], f"{path}.not", False, causes)


def _check_child(child: Mapping[str, Any], path: str, message: str, causes: list[StatusCause]) -> None:
    typeless = child.get("x-kubernetes-int-or-string") or child.get("x-kubernetes-preserve-unknown-fields")
    if not child.get("type") and not typeless:
        causes.append(required(f"{path}.type", message))
    if child.get("type") and child.get("x-kubernetes-int-or-string"):
        text = "must be empty if x-kubernetes-int-or-string is true"
        causes.append(invalid_value(f"{path}.type", child["type"], text))
    _check_node(child, path, causes)


def _check_list(schema: Mapping[str, Any], kind: str, path: str, causes: list[StatusCause]) -> None:
    if kind == "array" and schema.get("items") is None and not schema.get("x-kubernetes-preserve-unknown-fields"):
        causes.append(required(f"{path}.items", "must be specified"))
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is None:
        return
    if list_type not in {"atomic", "set", "map"}:
        text = f'Unsupported value: "{list_type}": supported values: "atomic", "map", "set"'
        causes.append(StatusCause("FieldValueNotSupported", text, f"{path}.x-kubernetes-list-type"))
    if kind != "array":
        causes.append(invalid_value(f"{path}.type", kind, "must be array if x-kubernetes-list-type is specified"))
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if list_type == "map":
        if not keys:
            text = "must not be empty if x-kubernetes-list-type is map"
            causes.append(required(f"{path}.x-kubernetes-list-map-keys", text))
        properties = (schema.get("items") or {}).get("properties") or {}
        needed = (schema.get("items") or {}).get("required") or ()
        for index, key in enumerate(keys):
            where = f"{path}.x-kubernetes-list-map-keys[{index}]"
            if key not in properties:
                text = "entries must all be names of item properties"
                causes.append(invalid_value(where, key, text))
            elif key not in needed and "default" not in properties[key]:
                text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
                causes.append(required(f"{path}.items.properties[{key}].default", text))
    elif keys:
        text = "must be empty if x-kubernetes-list-type is not map"
        causes.append(forbidden_field(f"{path}.x-kubernetes-list-map-keys", text))


def _check_value_only(schema: Mapping[str, Any], path: str, int_or_string: bool, causes: list[StatusCause]) -> None:
    """Below allOf, anyOf, oneOf and not a schema may judge values and not describe structure."""
    for key in _VALUE_KEYS:
        if not schema.get(key) or (int_or_string and key == "type"):
            continue
        causes.append(forbidden_field(f"{path}.{key}", "must be empty to be structural"))
    for name, child in (schema.get("properties") or {}).items():
        _check_value_only(child, f"{path}.properties[{name}]", False, causes)
    if isinstance(schema.get("items"), Mapping):
        _check_value_only(schema["items"], f"{path}.items", False, causes)


def _check_defaults(schema: Mapping[str, Any], path: str, causes: list[StatusCause]) -> None:
    if "default" in schema:
        node = Structural(schema)
        causes.extend(
            StatusCause(cause.reason, cause.message.replace(" in body", ""), f"{path}.default{_below(cause.field)}")
            for cause in node.validate(schema["default"], "")
        )
    for name, child in (schema.get("properties") or {}).items():
        _check_defaults(child, f"{path}.properties[{name}]", causes)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            _check_defaults(schema[name], f"{path}.{name}", causes)


def _below(field: str) -> str:
    return f".{field}" if field and not field.startswith("[") else field
