"""The paths in a CRD (`.status.replicas`): whether they exist in the schema, and with which type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ctrlruntime.api.kind import KindInfo
from ctrlruntime.generate.options import Document, Place
from ctrlruntime.jsonpath import Constant, Deep, Every, Field, Filter, JSONPathError, Slice, Step, Union, Word, parse
from ctrlruntime.markers import PrinterColumn

__all__ = ["columns", "scale", "selectable_fields"]

_SIMPLE_PATH = re.compile(r"(?:\.[A-Za-z_][\w-]*)+")
_TEXT: Mapping[str, Any] = {"type": "string"}
_NUMBER: Mapping[str, Any] = {"type": "integer"}
_MOMENT: Mapping[str, Any] = {"type": "string", "format": "date-time"}
_TEXTS: Mapping[str, Any] = {"type": "object", "additionalProperties": _TEXT}
_OBJECTS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_METADATA: Mapping[str, Mapping[str, Any]] = {
    "annotations": _TEXTS,
    "creationTimestamp": _MOMENT,
    "deletionGracePeriodSeconds": _NUMBER,
    "deletionTimestamp": _MOMENT,
    "finalizers": {"type": "array", "items": _TEXT},
    "generateName": _TEXT,
    "generation": _NUMBER,
    "labels": _TEXTS,
    "managedFields": _OBJECTS,
    "name": _TEXT,
    "namespace": _TEXT,
    "ownerReferences": _OBJECTS,
    "resourceVersion": _TEXT,
    "selfLink": _TEXT,
    "uid": _TEXT,
}
_MOST_FIELDS = 8


def columns(wanted: tuple[PrinterColumn, ...], schema: Document, place: Place) -> list[Document]:
    """Return the columns of a version. Raises: GenerateError for a path without a field, or one without a type."""
    return [_column(column, schema, place) for column in wanted]


def _column(column: PrinterColumn, schema: Document, place: Place) -> Document:
    what = f"printcolumn {column.name!r}"
    if not column.name:
        raise place.error("printcolumn requires a name")
    target = _follow(column.json_path, schema, place, what)
    column_type = column.type or _column_type(target)
    if not column_type:
        raise place.error(f"{what}: {column.json_path} has no type. Set one: printcolumn(…, type='string')")
    said: Document = {
        "description": column.description,
        "format": column.format,
        "jsonPath": column.json_path,
        "name": column.name,
        "priority": column.priority,
        "type": column_type,
    }
    return {key: value for key, value in said.items() if value}


def _column_type(target: Mapping[str, Any] | None) -> str:
    match target:
        case None:
            return ""
        case {"type": "string", "format": "date-time"}:
            return "date"
        case {"type": "integer" | "number" | "string" | "boolean" as known}:
            return cast("str", known)
        case {"x-kubernetes-int-or-string": True}:
            return "string"
        case _:
            return ""


def scale(info: KindInfo, schema: Document, place: Place) -> Document:
    """Return the scale subresource. Raises: GenerateError for paths that the server rejects or that have no field."""
    assert info.scale is not None
    wanted = {
        "labelSelectorPath": (info.scale.label_selector, (".spec.", ".status."), "string"),
        "specReplicasPath": (info.scale.spec_replicas, (".spec.",), "integer"),
        "statusReplicasPath": (info.scale.status_replicas, (".status.",), "integer"),
    }
    result: Document = {}
    for key, (path, roots, wanted_type) in wanted.items():
        if not path and key == "labelSelectorPath":
            continue
        if not path.startswith(roots) or not _SIMPLE_PATH.fullmatch(path):
            raise place.error(
                f"scale: {path!r} is not a path below {' or '.join(roots).rstrip('.')}, like {roots[0]}replicas"
            )
        target = _follow(path, schema, place, "scale")
        if target is not None and target.get("type") != wanted_type:
            raise place.error(f"scale: {path} must have the type {wanted_type}, not {target.get('type')}")
        result[key] = path
    return result


def selectable_fields(info: KindInfo, schema: Document, place: Place) -> list[Document]:
    """Return the fields that field selectors may name. Raises: GenerateError for one the server refuses."""
    paths = info.selectable_fields
    if len(paths) > _MOST_FIELDS:
        raise place.error(f"selectable_fields: the API server allows at most {_MOST_FIELDS}, not {len(paths)}")
    for path in paths:
        if not _SIMPLE_PATH.fullmatch(path):
            raise place.error(f"selectable_fields: {path!r} is not a path like .spec.color")
        if path.startswith(".metadata"):
            raise place.error(
                f"selectable_fields: {path} is metadata, which is not allowed. Name and namespace can always be selected"
            )
        target = _follow(path, schema, place, "selectable_fields") or {}
        if target.get("type") not in {"string", "boolean", "integer"}:
            raise place.error(f"selectable_fields: {path} must be a string, a boolean or an integer")
    if len(set(paths)) < len(paths):
        raise place.error("selectable_fields: duplicate path")
    return [{"jsonPath": path} for path in paths]


def _follow(path: str, schema: Document, place: Place, what: str) -> Mapping[str, Any] | None:
    """The schema a path leads to; None where the schema says nothing (unknown fields are kept there)."""
    try:
        steps = parse(path)
    except JSONPathError as error:
        raise place.error(f"{what}: {error}. Write a path like .status.phase") from error
    metadata = {"type": "object", "properties": _METADATA}
    node: Mapping[str, Any] | None = {**schema, "properties": {**schema.get("properties", {}), "metadata": metadata}}
    passed = ""
    for step in steps:
        node = _step(cast("Mapping[str, Any]", node), step)
        if node is None:
            return None
        passed += f".{step.name}" if isinstance(step, Field) else "[]"
        if not node:
            escape = ". Write a dot in a name as \\." if "['" in path else ""
            raise place.error(f"{what}: {path} is not in the schema: it has no {passed}{escape}")
    return node


def _step(node: Mapping[str, Any], step: Step) -> Mapping[str, Any] | None:
    """One step down: empty when there is nothing, None when nobody knows."""
    found: Any = None
    match step:
        case Field(name):
            found = (node.get("properties") or {}).get(name) or node.get("additionalProperties")
        case Slice() | Filter():
            found = node.get("items")
        case Every() if node.get("type") == "array":
            found = node.get("items")
        case Every() | Deep() | Union():
            return None
        case Constant() | Word():
            return {}
    if isinstance(found, Mapping):
        known = cast("Mapping[str, Any]", found)
        return known if known.keys() - {"x-kubernetes-preserve-unknown-fields"} else None
    return None if node.get("x-kubernetes-preserve-unknown-fields") else {}
