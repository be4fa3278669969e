"""OpenAPI v3: the recorded documents, one generated for every version of a custom group, and the index with their hashes.

kubectl needs three things of a generated document: the kind is found through `paths`; server-side validation is used only when PATCH has
the `fieldValidation` parameter; strategic merge only when PATCH accepts it (so it must not be listed for custom resources).
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from functools import cache
from typing import Any

from ctrlruntime.apiserver.discovery.openapi_paths import kind_of, paths_of
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.apiserver.interfaces import DEFINITIONS
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.apiserver.strategic_patch import PatchSchema
from ctrlruntime.data import open_data
from ctrlruntime.schema.trees import Document, encode

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_REFERENCE = "#/components/schemas/"
_REFERENCES = re.compile(f'"{_REFERENCE}([^"]+)"')
_OBJECT_META = f"{_REFERENCE}{_META}ObjectMeta"
_LIST_META = f"{_REFERENCE}{_META}ListMeta"
_GROUPS_WITH_OPTIONS: Mapping[str, str] = {
    "": "v1",
    "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
    "apps": "v1 v1beta1 v1beta2",
    "authentication.k8s.io": "v1 v1alpha1 v1beta1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v1 v2",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1alpha1 v1beta1",
    "coordination.k8s.io": "v1 v1alpha2 v1beta1",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
    "internal.apiserver.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1alpha1 v1beta1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
    "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
    "scheduling.k8s.io": "v1 v1alpha2 v1beta1",
    "storage.k8s.io": "v1 v1alpha1 v1beta1",
    "storagemigration.k8s.io": "v1beta1",
}
"""The groups and versions in which the document of a custom group names DeleteOptions: those of upstream's clients."""


@cache
def recorded() -> Mapping[str, bytes]:
    """Return the recorded documents by their key in the index (`apis/apps/v1`)."""
    documents: dict[str, bytes] = {}
    packed = io.BytesIO(open_data("kubernetes-1.36/openapi-v3.tar.xz"))
    with tarfile.open(fileobj=packed, mode="r:xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                documents[member.name.removeprefix("openapi-v3/").removesuffix(".json")] = file.read()
    return documents


@cache
def _schemas(key: str) -> Mapping[str, Any]:
    document: Document = decode(recorded()[key])
    schemas: Mapping[str, Any] = (document.get("components") or {}).get("schemas") or {}
    return schemas


@cache
def patch_schema(group: str, version: str, kind: str) -> PatchSchema | None:
    """Return the schema of a built-in kind for strategic merge patches."""
    key = f"apis/{group}/{version}" if group else f"api/{version}"
    if key not in recorded():
        return None
    wanted = {"group": group, "version": version, "kind": kind}
    for schema in _schemas(key).values():
        if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
            return PatchSchema(_schemas(key), schema)
    return None


class OpenAPI:
    """Index and documents as bytes; those of custom groups are made again when a definition changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._documents: dict[str, bytes] = {}
        self._hashes: dict[str, str] = {}
        self._fixed: dict[str, str] = {}

    def index(self) -> bytes:
        self._refresh()
        paths = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={self._hashes[key]}"} for key in sorted(self._hashes)
        }
        return encode({"paths": paths})

    def document(self, key: str) -> tuple[bytes, str] | None:
        """Return (body, hash) of a document, or None if it does not exist."""
        self._refresh()
        body = self._documents.get(key)
        return None if body is None else (body, self._hashes[key])

    def generated(self) -> dict[str, bytes]:
        """Return the documents of custom groups by their key in the index."""
        self._refresh()
        return {key: body for key, body in self._documents.items() if key not in self._fixed}

    def _refresh(self) -> None:
        if self._generation == self._registry.generation:
            return
        if not self._fixed:
            self._fixed = {key: _hash(body) for key, body in recorded().items()}
        self._generation = self._registry.generation
        self._documents = dict(recorded())
        self._hashes = dict(self._fixed)
        groups: dict[str, list[Resource]] = {}
        for resource in self._registry.custom_resources():
            groups.setdefault(f"apis/{resource.group}/{resource.version}", []).append(resource)
        for key, resources in groups.items():
            body = encode(_generate(resources, [self._schema_of(resource) for resource in resources]))
            self._documents[key] = body
            self._hashes[key] = _hash(body)

    def _schema_of(self, resource: Resource) -> Document:
        if resource.computed is not None:
            return resource.computed.schema
        record: Record | None = self._registry.store.table(*DEFINITIONS).records.get(("", resource.definition_name))
        if record is None:
            return {"type": "object"}
        for version in decode(record.body)["spec"]["versions"]:
            if version["name"] == resource.version:
                schema: Document = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
                return schema
        return {"type": "object"}


def _hash(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


def _generate(resources: list[Resource], schemas: list[Document]) -> Document:
    components: Document = {}
    paths: Document = {}
    for resource, schema in zip(resources, schemas, strict=True):
        name = schema_name(resource)
        components[name] = _published(resource, schema)
        components[f"{name}List"] = _published_list(resource, name)
        paths.update(paths_of(resource, name))
    components.update(_common_schemas(with_scale=any("scale" in resource.subresources for resource in resources)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components},
    }


@cache
def _common_schemas(*, with_scale: bool) -> Mapping[str, Document]:
    """Return the schemas that every group shares, with all that they refer to."""
    known = _schemas("apis/apps/v1")
    found: Document = {}
    waiting = [f"{_META}{name}" for name in ("ObjectMeta", "ListMeta", "DeleteOptions", "Patch", "Status")]
    waiting += ["io.k8s.api.autoscaling.v1.Scale"] * with_scale
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting += _REFERENCES.findall(encode(known[name]).decode())
    options = f"{_META}DeleteOptions"
    kinds = [
        {"group": group, "kind": "DeleteOptions", "version": version}
        for group, versions in _GROUPS_WITH_OPTIONS.items()
        for version in versions.split()
    ]
    found[options] = {**found[options], "x-kubernetes-group-version-kind": kinds}
    return found


def schema_name(resource: Resource) -> str:
    """Return the name of a custom kind's schema: its group reversed, version, kind."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


_METADATA: Document = {"allOf": [{"$ref": _OBJECT_META}]}
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_SWITCHES = frozenset(
    {
        "exclusiveMaximum",
        "exclusiveMinimum",
        "nullable",
        "uniqueItems",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    }
)
"""Fields of Go that are left out when they are false."""


def _published(resource: Resource, schema: Document) -> Document:
    """Return the schema of a custom kind as apiextensions publishes it (builder.go in its pkg/controller/openapi/builder)."""
    published = _unfolded(schema)
    properties: Document = dict(published.get("properties") or {})
    properties.update({"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA})
    published = {**published, "properties": properties, "x-kubernetes-group-version-kind": [kind_of(resource)]}
    if resource.selectable_fields:
        paths = [{"fieldPath": path} for path in resource.selectable_fields]
        published["x-kubernetes-selectable-fields"] = paths
    return published


def _unfolded(schema: Document) -> Document:
    """Return a schema that says in full what an int-or-string and an embedded resource are."""
    found = {key: value for key, value in schema.items() if value not in ([], {}) and (value or key not in _SWITCHES)}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found[key] = _unfolded(schema[key])
    if schema.get("properties"):
        found["properties"] = {name: _unfolded(child) for name, child in schema["properties"].items()}
    if schema.get("x-kubernetes-int-or-string"):
        branches: list[Document] = found.get("allOf") or []
        says_so = found.get("anyOf") == _INTEGER_OR_STRING or (
            branches and branches[0].get("anyOf") == _INTEGER_OR_STRING
        )
        if not says_so and "anyOf" not in found:
            found["anyOf"] = _INTEGER_OR_STRING
        elif not says_so:
            found["allOf"] = [{"anyOf": _INTEGER_OR_STRING}, *branches]
    if schema.get("x-kubernetes-embedded-resource"):
        own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}
        found["properties"] = {**(found.get("properties") or {}), **own}
        required: list[str] = found.get("required") or []
        found["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return found


def _published_list(resource: Resource, name: str) -> Document:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": f"{_REFERENCE}{name}"}},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": _LIST_META}]},
        },
        "x-kubernetes-group-version-kind": [{**kind_of(resource), "kind": resource.list_kind}],
    }
