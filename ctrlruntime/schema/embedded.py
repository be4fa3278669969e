"""Whole objects inside custom resources (`x-kubernetes-embedded-resource`): their own fields are read and judged as every object's are.

Walks follow the schema, as upstream's do (schema/objectmeta in apiextensions-apiserver); no other field is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value, required, too_long
from ctrlruntime.schema.metadata import metadata_causes, segment_problems
from ctrlruntime.schema.trees import Document, encode_sorted, json_type, settled
from ctrlruntime.schema.typed import Misfit, object_meta
from ctrlruntime.schema.values import kind_causes
from ctrlruntime.selector import utf8_length

if TYPE_CHECKING:
    from ctrlruntime.schema.structural import Structural

_LONGEST_MANAGER, _LONGEST_SUBRESOURCE = 128, 256
_GO_WORDS = {"array": "array", "string": "string", "boolean": "bool"}


def embedded_objects(schema: Structural, value: Any, path: str) -> Iterator[tuple[Document, str]]:
    """Yield the objects inside a value with their paths, outer ones first; paths have the keys of maps in brackets."""
    if not schema.has_embedded:
        return
    if type(value) is dict:
        if schema.embedded:
            yield value, path
        prefix = f"{path}." if path else ""
        for name, item in value.items():
            if name in schema.properties:
                yield from embedded_objects(schema.properties[name], item, prefix + name)
            elif schema.extra is not None:
                yield from embedded_objects(schema.extra, item, f"{path}[{name}]")
    elif type(value) is list and schema.items is not None:
        for index, item in enumerate(value):
            yield from embedded_objects(schema.items, item, f"{path}[{index}]")


class EmbeddedMisfit(Misfit):
    """An own field of an embedded object has a wrong type."""

    def __init__(self, cause: StatusCause) -> None:
        super().__init__(f"{cause.field}: {cause.message}")
        self.cause = cause


def read_embedded(value: Document, path: str, unknown: list[str], *, keeps_nulls: bool = False) -> None:
    """Give an embedded object's own fields the types every object's have. Raises: EmbeddedMisfit."""
    prefix = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name in value and type(value[name]) is not str and not (keeps_nulls and value[name] is None):
            raise EmbeddedMisfit(invalid_value(f"{prefix}{name}", value[name], "must be a string"))
    if "metadata" not in value:
        return
    metadata = settled(value["metadata"])
    if type(metadata) is not dict and metadata is not None:
        kind = _GO_WORDS.get(json_type(metadata), "number")
        text = f"json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta"
        raise EmbeddedMisfit(invalid_value(f"{prefix}metadata", metadata, text))
    own: list[str] = []
    try:
        value["metadata"] = object_meta().read(metadata or {}, "", own)
    except Misfit as misfit:
        text = f"Invalid value: {encode_sorted(metadata).decode()}: {misfit}"
        raise EmbeddedMisfit(StatusCause("FieldValueInvalid", text, f"{prefix}metadata")) from None
    unknown.extend(f"{prefix}metadata.{name}" for name in own)


def embedded_causes(schema: Structural, value: Any, path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with the objects inside a value. Upstream tolerates nothing of it for having been there before."""
    for document, place in embedded_objects(schema, value, path):
        yield from _causes(document, f"{place}." if place else "")


def _causes(value: Document, prefix: str) -> Iterator[StatusCause]:
    yield from (required(f"{prefix}{name}") for name in ("apiVersion", "kind") if name not in value)
    version, kind, metadata = value.get("apiVersion"), value.get("kind"), value.get("metadata")
    for name in ("apiVersion", "kind"):
        if name in value and value[name] is None:
            yield invalid_value(f"{prefix}{name}", None, "must be a string")
    if type(version) is str:
        if not version:
            yield invalid_value(f"{prefix}apiVersion", version, "must not be empty")
        elif version.count("/") > 1:
            yield invalid_value(f"{prefix}apiVersion", version, f"unexpected GroupVersion string: {version}")
    if type(kind) is str:
        if not kind:
            yield invalid_value(f"{prefix}kind", kind, "must not be empty")
        else:
            yield from kind_causes(kind, f"{prefix}kind")
    if type(metadata) is dict:
        # A name is not needed here, a namespace is judged.
        named = metadata if metadata.get("name") else {**metadata, "name": "unnamed"}
        for cause in (*metadata_causes(named, segment_problems), *_managed_fields(metadata)):
            yield StatusCause(cause.reason, cause.message, prefix + cause.field)


def manager_causes(manager: str, path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with the name of a field manager."""
    if utf8_length(manager) > _LONGEST_MANAGER:
        yield too_long(path, _LONGEST_MANAGER)
    for place, character in enumerate(manager):
        if not character.isprintable():
            at = utf8_length(manager[:place])
            yield invalid_value(path, manager, f"invalid character U+{ord(character):04X} (at position {at})")


def _managed_fields(metadata: Document) -> Iterator[StatusCause]:
    """What the server itself writes into stored objects is checked here only (ValidateManagedFields in apimachinery)."""
    for index, entry in enumerate(metadata.get("managedFields") or ()):
        path = f"metadata.managedFields[{index}]"
        operation, fields_type, manager = (entry.get(key, "") for key in ("operation", "fieldsType", "manager"))
        if operation not in {"Apply", "Update"}:
            yield invalid_value(f"{path}.operation", operation, "must be `Apply` or `Update`")
        if fields_type not in {"", "FieldsV1"}:
            yield invalid_value(f"{path}.fieldsType", fields_type, "must be `FieldsV1`")
        yield from manager_causes(manager, f"{path}.manager")
        if utf8_length(entry.get("subresource", "")) > _LONGEST_SUBRESOURCE:
            yield too_long(f"{path}.subresource", _LONGEST_SUBRESOURCE)
