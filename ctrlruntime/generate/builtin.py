"""The schemas of the built-in types (Container, LabelSelector, ResourceRequirements …), as controller-gen prints them.

The recorded OpenAPI documents of Kubernetes give structure, formats and list types; references are expanded. They differ from what
controller-gen reads from the Go sources in four ways, which are corrected here: enums are left out, zero defaults are set if a field is
always sent, types with a JSON form of their own are described loosely, and the few kubebuilder markers of the sources are missing.
Descriptions are in neither: the recorded data has none.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import re
import tarfile
from collections.abc import Mapping
from typing import Any

from ctrlruntime.conditions import NAME, RULES
from ctrlruntime.data import open_data
from ctrlruntime.generate.options import Document, Place
from ctrlruntime.generate.texts import DURATION

__all__ = [
    "EMBEDDED_METADATA",
    "INT_OR_STRING",
    "LOOSE_QUANTITY",
    "QUANTITY",
    "builtin_name",
    "builtin_schema",
    "builtin_schemas",
]

_DATA = "kubernetes-1.36"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_KEPT = ("type", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_ZEROS = ("", 0, False)

INT_OR_STRING: Mapping[str, Any] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
QUANTITY: Mapping[str, Any] = {
    **INT_OR_STRING,
    "pattern": (r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"),
}
LOOSE_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern that controller-gen writes for quantities: it takes `1e3.5`, which no client in Go or here can read."""
_TEXTS: Mapping[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
EMBEDDED_METADATA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
_SPECIAL: Mapping[str, Mapping[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": INT_OR_STRING,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", _PRESERVE: True},
    _EXTENSIONS + "JSON": {_PRESERVE: True},
    _META + "Time": {"type": "string", "format": "date-time"},
    _META + "MicroTime": {"type": "string", "format": "date-time"},
    _META + "Duration": DURATION,
    _META + "FieldsV1": {"type": "object"},
}
_CONDITION = _META + "Condition"
_MARKED: Mapping[tuple[str, str], Mapping[str, Any]] = {
    **{(_CONDITION, field): rule for field, rule in RULES.items()},
    ("io.k8s.api.core.v1.PortStatus", "error"): NAME,
    ("io.k8s.api.networking.v1.IngressPortStatus", "error"): NAME,
    ("io.k8s.api.core.v1.ImageVolumeStatus", "imageRef"): {"maxLength": 256},
    ("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef"): {"x-kubernetes-map-type": "granular"},
}
"""What markers on fields of the Go sources add: (type, field) → keys."""
_BY_NAME = {
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "cachingMode"),
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", "kind"),
}
"""Defaults that the Go sources give as the name of a constant, which controller-gen does not look up."""


def builtin_name(cls: type[Any]) -> str | None:
    """Return the name of a class's schema in the OpenAPI documents; None for a class that is not built in."""
    found = re.fullmatch(r"ctrlruntime\.api\.([a-z]+)\.(v\d\w*)", cls.__module__)
    if found is None:
        return None
    group, version = found.groups()
    if group == "meta":
        return f"{_META}{cls.__name__}"
    suffix = f".{group}.{version}.{cls.__name__}"
    return next((name for name in builtin_schemas() if name.endswith(suffix)), None)


def builtin_schema(name: str, place: Place, *, embedded_metadata: bool) -> Document:
    """Return the expanded schema of a type. Raises: GenerateError for one that contains itself."""
    return _Expansion(place, embedded_metadata).expand(name)


class _Expansion:
    def __init__(self, place: Place, embedded_metadata: bool) -> None:
        self._place = place
        self._embedded_metadata = embedded_metadata
        self._open: list[str] = []

    def expand(self, name: str) -> Document:
        if name in _SPECIAL:
            return dict(_SPECIAL[name])
        if name == f"{_META}ObjectMeta":
            return dict(EMBEDDED_METADATA) if self._embedded_metadata else {"type": "object"}
        if name in self._open:
            cycle = " -> ".join(step.rpartition(".")[2] for step in [*self._open[self._open.index(name) :], name])
            raise self._place.error(
                f"the built-in type contains itself ({cycle}), which a schema does not support. "
                f"Use Annotated[…, crd.Schemaless, crd.SchemaType('object'), crd.PreserveUnknownFields]"
            )
        self._open.append(name)
        schema = self._node(builtin_schemas()[name], name)
        self._open.pop()
        if _inlines_atomic(name):
            schema["x-kubernetes-map-type"] = "atomic"
        return schema

    def _node(self, source: Mapping[str, Any], name: str) -> Document:
        if reference := _reference(source):
            return self.expand(reference)
        schema: Document = {key: source[key] for key in _KEPT if key in source}
        if "required" in schema:
            schema["required"] = sorted(schema["required"])
        if "items" in source:
            schema["items"] = self._node(source["items"], name)
        if "additionalProperties" in source:
            schema["additionalProperties"] = self._node(source["additionalProperties"], name)
        if "properties" in source:
            schema["properties"] = {
                key: self._property(child, name, key) for key, child in source["properties"].items()
            }
        return schema

    def _property(self, source: Mapping[str, Any], name: str, key: str) -> Document:
        schema = self._node(source, name)
        default = source.get("default")
        implicit = default in _ZEROS and _is_always_sent(name, key)
        if default not in (None, {}) and not implicit and (name, key) not in _BY_NAME:
            schema["default"] = default
        schema.update(_MARKED.get((name, key), {}))
        return schema


def _reference(source: Mapping[str, Any]) -> str:
    target = source.get("$ref") or next((part["$ref"] for part in source.get("allOf", ()) if "$ref" in part), "")
    return str(target).rpartition("/")[2]


@functools.cache
def builtin_schemas() -> Mapping[str, Mapping[str, Any]]:
    """Return the recorded schemas of all types by name, with their references."""
    schemas: dict[str, Mapping[str, Any]] = {}
    packed = io.BytesIO(open_data(f"{_DATA}/openapi-v3.tar.xz"))
    with tarfile.open(fileobj=packed, mode="r:xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if re.search(r"/v[0-9]+\.json$", member.name) else None
            if file is not None:
                schemas.update(json.loads(file.read())["components"].get("schemas") or {})
    return schemas


@functools.cache
def _fields(message: str) -> Mapping[str, str]:
    """Wire name → flags of a protobuf message's fields, inline messages opened."""
    result: dict[str, str] = {}
    for name, kind, flags in _messages().get(message, {}).values():
        result.update(_fields(kind) if "i" in flags else {name: flags})
    return result


@functools.cache
def _messages() -> Mapping[str, Mapping[str, tuple[str, str, str]]]:
    tables: Mapping[str, Mapping[str, tuple[str, str, str]]] = json.loads(
        gzip.decompress(open_data(f"{_DATA}/protobuf-tables.json.gz"))
    )
    return tables


def _is_always_sent(name: str, key: str) -> bool:
    """Whether the Go field is not a pointer and has no omitempty: OpenAPI gives such fields their zero as a default, which nobody wrote."""
    return not {"o", "p"} & set(_fields(_message_name(name)).get(key, "o"))


def _inlines_atomic(name: str) -> bool:
    """Whether the Go type embeds one that is atomic (LocalObjectReference); OpenAPI does not say so."""
    inlined = [kind for _, kind, flags in _messages().get(_message_name(name), {}).values() if "i" in flags]
    return any(
        builtin_schemas().get(_schema_name(kind), {}).get("x-kubernetes-map-type") == "atomic" for kind in inlined
    )


def _message_name(schema: str) -> str:
    return schema.replace("io.k8s.", "k8s.io.", 1).replace("-", "_")


def _schema_name(message: str) -> str:
    return message.replace("k8s.io.", "io.k8s.", 1).replace("_", "-")
