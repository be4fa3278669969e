"""OpenAPI v3: the recorded documents, one generated for every version of a custom group, and the index with their hashes.

kubectl needs three things of a generated document: the kind is found through `paths`; server-side validation is used only when PATCH has
the `fieldValidation` parameter; strategic merge only when PATCH accepts it (so it must not be listed for custom resources).
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.apiserver.interfaces import DEFINITIONS
from ctrlruntime.apiserver.patch import PatchSchema
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.data import open_data
from ctrlruntime.schema.trees import Document, encode

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_OBJECT_META = f"#/components/schemas/{_META}ObjectMeta"
_LIST_META = f"#/components/schemas/{_META}ListMeta"


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
    components = {name: schema for name, schema in _schemas("apis/apps/v1").items() if name.startswith(_META)}
    components.update({n: s for n, s in _schemas("apis/apps/v1").items() if n == "io.k8s.api.autoscaling.v1.Scale"})
    components.update(
        {n: s for n, s in _schemas("apis/apps/v1").items() if n.startswith("io.k8s.api.autoscaling.v1.Scale")}
    )
    paths: Document = {}
    for resource, schema in zip(resources, schemas, strict=True):
        name = schema_name(resource)
        components[name] = _published(resource, schema)
        components[f"{name}List"] = _published_list(resource, name)
        paths.update(_paths(resource, name))
    group, version = resources[0].group, resources[0].version
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": {f"/apis/{group}/{version}/": _group_path(group, version), **dict(sorted(paths.items()))},
        "components": {"schemas": components},
    }


def schema_name(resource: Resource) -> str:
    """Return the name of a custom kind's schema: its group reversed, version, kind."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _kind_of(resource: Resource) -> Document:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _published(resource: Resource, schema: Document) -> Document:
    properties = dict(schema.get("properties") or {})
    for key in ("apiVersion", "kind"):
        properties.setdefault(key, {"type": "string"})
    properties["metadata"] = {"allOf": [{"$ref": _OBJECT_META}]}
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_kind_of(resource)]}


def _published_list(resource: Resource, name: str) -> Document:
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": _LIST_META}]},
        },
        "x-kubernetes-group-version-kind": [{**_kind_of(resource), "kind": resource.list_kind}],
    }


def _group_path(group: str, version: str) -> Document:
    return {"get": {"operationId": f"get{group}{version}APIResources", "responses": {"200": {"description": "OK"}}}}


def _paths(resource: Resource, name: str) -> Iterator[tuple[str, Document]]:
    base = f"/apis/{resource.group}/{resource.version}"
    collection = (
        f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )
    scope = ["namespace"] if resource.namespaced else []
    one, many = f"#/components/schemas/{name}", f"#/components/schemas/{name}List"
    if resource.namespaced:
        yield (
            f"{base}/{resource.plural}",
            {"get": _operation(resource, "listForAllNamespaces", many), "parameters": _path_parameters([])},
        )
    yield (
        collection,
        {
            "get": _operation(resource, "list", many),
            "post": _operation(resource, "post", one, has_body=True),
            "delete": _operation(resource, "deletecollection", f"#/components/schemas/{_META}Status"),
            "parameters": _path_parameters(scope),
        },
    )
    item = {
        "get": _operation(resource, "get", one),
        "put": _operation(resource, "put", one, has_body=True),
        "delete": _operation(resource, "delete", f"#/components/schemas/{_META}Status"),
        "patch": _operation(resource, "patch", one, has_body=True),
        "parameters": _path_parameters(["name", *scope]),
    }
    yield f"{collection}/{{name}}", item
    for sub in resource.subresources:
        shown = one if sub == "status" else "#/components/schemas/io.k8s.api.autoscaling.v1.Scale"
        operations = {
            "get": _operation(resource, "get", shown, subresource=sub),
            "put": _operation(resource, "put", shown, has_body=True, subresource=sub),
            "patch": _operation(resource, "patch", shown, has_body=True, subresource=sub),
            "parameters": _path_parameters(["name", *scope]),
        }
        yield f"{collection}/{{name}}/{sub}", operations


_QUERY_TYPES = {"force": "boolean"}


def _path_parameters(names: list[str]) -> list[Document]:
    listed = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in names
    ]
    return [*listed, {"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": True}}]


_VERBS = {"get": "read", "put": "replace", "post": "create", "deletecollection": "deleteCollection"}


def _operation_id(resource: Resource, action: str, subresource: str) -> str:
    group = "".join(part.capitalize() for part in re.split(r"[.-]", resource.group))
    scope = "Namespaced" if resource.namespaced else ""
    if action.endswith("ForAllNamespaces"):
        return f"list{group}{resource.version.capitalize()}{resource.kind}ForAllNamespaces"
    sub = subresource.capitalize()
    return f"{_VERBS.get(action, action)}{group}{resource.version.capitalize()}{scope}{resource.kind}{sub}"


def _operation(
    resource: Resource, action: str, schema: str, *, has_body: bool = False, subresource: str = ""
) -> Document:
    content = {"schema": {"$ref": schema}}
    types = ("application/json", "application/yaml")
    operation: Document = {
        "operationId": _operation_id(resource, action, subresource),
        "responses": {"200": {"description": "OK", "content": dict.fromkeys(types, content)}},
        "x-kubernetes-action": action.removesuffix("ForAllNamespaces"),
        "x-kubernetes-group-version-kind": _kind_of(resource),
    }
    if has_body:
        names = ["dryRun", "fieldManager", "fieldValidation", *(["force"] if action == "patch" else [])]
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": _QUERY_TYPES.get(name, "string"), "uniqueItems": True}}
            for name in names
        ]
        body_types: tuple[str, ...] = types
        if action == "patch":
            content = {"schema": {"$ref": f"#/components/schemas/{_META}Patch"}}
            body_types = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
        operation["requestBody"] = {"content": dict.fromkeys(body_types, content), "required": True}
    return operation
