"""Markers as keywords of a schema, in the order controller-gen applies them, and with its checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctrlruntime.api.fields import camel, wire_names
from ctrlruntime.api.model import Model
from ctrlruntime.generate.immutable import property_of
from ctrlruntime.generate.limits import add_limit
from ctrlruntime.generate.options import Document, Place
from ctrlruntime.markers import (
    CEL,
    Default,
    ExternalDocs,
    Flag,
    Format,
    ListMap,
    ListType,
    MapType,
    Marker,
    MaxProperties,
    MinProperties,
    OLMDescriptor,
    SchemaType,
    Title,
    class_markers,
)

__all__ = ["RULES", "add_rule", "apply_class_marks", "apply_marks"]

RULES: Final = "x-kubernetes-validations"
_ON_FIELDS: Final = {
    "Nullable",
    "Required",
    "Immutable",
    "Schemaless",
    "EmbeddedResource",
    "ListMap",
    "ListType",
    "Default",
    "OLMDescriptor",
    "SchemaType",
}


def apply_marks(markers: Iterable[Marker], schema: Document, place: Place) -> None:
    """Add what the markers of a field say. Raises: GenerateError for a marker that does not fit the type."""
    rules: list[Document] = []
    # The type of a list first: its keys are checked against it.
    for marker in sorted(markers, key=lambda one: not isinstance(one, (ListMap, ListType))):
        if isinstance(marker, CEL):
            rules.append(_rule(marker))
        elif isinstance(marker, Flag) and marker.name == "Immutable":
            rules.append({"rule": "self == oldSelf", "message": "field is immutable"})
        else:
            _apply(marker, schema, place)
    if rules:
        schema[RULES] = [*rules, *schema.get(RULES, ())]


def apply_class_marks(cls: type[Any], schema: Document, place: Place) -> None:
    """Add what decorators and class keywords say of a whole object. Raises: GenerateError."""
    markers = class_markers(cls)
    for marker in reversed(markers):  # the nearest to the class speaks last
        name = marker.name if isinstance(marker, Flag) else type(marker).__name__
        if name in _ON_FIELDS:
            raise place.error(f"{name} has no effect on a class. Use it for a field: Annotated[…, {name}]")
        if not isinstance(marker, CEL):
            _apply(marker, schema, place)
    if rules := [_rule(marker) for marker in markers if isinstance(marker, CEL)]:
        schema.setdefault(RULES, []).extend(rules)
    if issubclass(cls, Model):
        _apply_keywords(cls, schema, place)


def add_rule(schema: Document, rule: str, message: str) -> None:
    """Append a rule to those a schema has."""
    schema.setdefault(RULES, []).append({"message": message, "rule": rule})


def _apply(marker: Marker, schema: Document, place: Place) -> None:
    match marker:
        case Format():
            schema["format"] = marker.name
        case Title():
            schema["title"] = marker.text
        case ExternalDocs():
            link = {"description": marker.description} if marker.description else {}
            schema["externalDocs"] = {**link, "url": marker.url}
        case ListType() | ListMap():
            _list_type(marker, schema, place)
        case MapType():
            _need(schema, "object", marker, place)
            schema["x-kubernetes-map-type"] = marker.name
        case MaxProperties() | MinProperties():
            _need(schema, "object", marker, place)
            add_limit(schema, {f"{type(marker).__name__[:3].lower()}Properties": marker.count})
        case Flag():
            _flag(marker, schema)
        case SchemaType() | Default() | OLMDescriptor():
            pass  # said before: the type decides what else fits; later: a default is checked against all of it; and elsewhere
        case _:
            raise place.error(f"{marker!r} is an unknown marker")


def _flag(marker: Flag, schema: Document) -> None:
    match marker.name:
        case "Nullable":
            schema["nullable"] = True
        case "PreserveUnknownFields":
            schema["x-kubernetes-preserve-unknown-fields"] = True
        case "EmbeddedResource":
            schema["x-kubernetes-embedded-resource"] = True
        case _:
            pass


def _list_type(marker: ListType | ListMap, schema: Document, place: Place) -> None:
    _need(schema, "array", marker, place)
    if isinstance(marker, ListType):
        schema["x-kubernetes-list-type"] = marker.name
        return
    known: Document = schema["items"].get("properties") or {}
    keys: list[str] = []
    for key in marker.keys:
        wire = key if key in known else camel(key)
        if wire not in known:
            have = ", ".join(sorted(known)) or "none, because they are not objects"
            raise place.error(f"ListMap({key!r}): the items have no field {key!r}. Their fields are {have}")
        keys.append(wire)
    schema["x-kubernetes-list-type"] = "map"
    schema["x-kubernetes-list-map-keys"] = keys


def _need(schema: Document, type: str, marker: Marker, place: Place) -> None:
    if schema.get("type") != type:
        what = {"array": "a list", "object": "an object or a dict"}[type]
        raise place.error(f"{marker!r} is for {what}, but this has the type {schema.get('type', 'unknown')}")


def _rule(marker: CEL) -> Document:
    said: Document = {
        "fieldPath": marker.field_path,
        "message": marker.message,
        "messageExpression": marker.message_expression,
        "reason": marker.reason,
        "rule": marker.rule,
    }
    rule = {key: value for key, value in said.items() if value}
    if marker.optional_old_self is not None:
        rule["optionalOldSelf"] = marker.optional_old_self
    return rule


# Class keywords


def _apply_keywords(cls: type[Model], schema: Document, place: Place) -> None:
    if cls.__struct_type__:
        schema["x-kubernetes-map-type"] = cls.__struct_type__
    for keyword in ("at_most_one_of", "exactly_one_of", "at_least_one_of"):
        for group in (names for word, names in cls.__one_of__ if word == keyword):
            wires = [_member(cls, keyword, name, schema, place) for name in group]
            add_rule(schema, *_one_of(keyword, wires, place))


def _member(cls: type[Model], keyword: str, name: str, schema: Document, place: Place) -> str:
    if "." in name and name not in wire_names(cls).values():
        raise place.error(f"{keyword}: {name!r} is not a field of {cls.__name__} itself")
    wire = wire_names(cls).get(name, name)
    if wire not in (schema.get("properties") or {}):
        raise place.error(f"{keyword}: the class has no field {name!r}")
    if wire in (schema.get("required") or ()):
        raise place.error(f"{keyword}: {name!r} is required. Make it optional: `| None = None`")
    return wire


def _one_of(keyword: str, wires: list[str], place: Place) -> tuple[str, str]:
    shown = f"[{' '.join(wires)}]"
    present = [f"has({property_of('self', wire, place)})" for wire in wires]
    count = "+".join(f"({one}?1:0)" for one in present)
    match keyword:
        case "at_most_one_of":
            return f"{count} <= 1", f"at most one of the fields in {shown} may be set"
        case "exactly_one_of":
            return f"{count} == 1", f"exactly one of the fields in {shown} must be set"
        case _:
            return "||".join(present), f"at least one of the fields in {shown} must be set"
