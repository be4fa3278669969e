"""The paths of a custom kind in its OpenAPI document, as apiextensions builds them (pkg/controller/openapi/builder)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from ctrlruntime.apiserver.registry import Resource
from ctrlruntime.schema.trees import Document

_REFERENCE: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_TYPES: Final = ("application/json", "application/yaml")
_PATCH_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_LIST: Final = (
    "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion resourceVersionMatch sendInitialEvents "
    "shardSelector timeoutSeconds watch"
)
_WRITE: Final = "dryRun fieldManager fieldValidation"
_BOOLEANS: Final = frozenset(
    {
        "allowWatchBookmarks",
        "force",
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        "orphanDependents",
        "sendInitialEvents",
        "watch",
    }
)
_INTEGERS: Final = frozenset({"gracePeriodSeconds", "limit", "timeoutSeconds"})
_CODES: Final = {200: "OK", 201: "Created", 202: "Accepted"}


@dataclass(frozen=True, slots=True)
class _Operation:
    """What one verb takes and gives; `{what}` is the kind, or the part of it that a subresource shows."""

    action: str
    id: str
    """The operation id; `{0}` is group and version, `{1}` "Namespaced" or nothing."""
    description: str
    parameters: str
    shows: str = "object"
    """The schema of the response: object, list or Status."""
    codes: tuple[int, ...] = (200,)
    takes: str = ""
    """The schema of the body: object, Patch, DeleteOptions, or none."""


_LISTING: Final = _Operation("list", "list{0}{1}{kind}", "list objects of kind {kind}", _LIST, "list")
_CREATION: Final = _Operation(
    "post", "create{0}{1}{kind}", "create {article} {kind}", _WRITE, codes=(200, 201, 202), takes="object"
)
_COLLECTION_DELETION: Final = _Operation(
    "deletecollection", "delete{0}Collection{1}{kind}", "delete collection of {kind}", _LIST, "Status"
)
_READING: Final = _Operation("get", "read{0}{1}{kind}", "read {what}", "resourceVersion")
_REPLACEMENT: Final = _Operation(
    "put", "replace{0}{1}{kind}", "replace {what}", _WRITE, codes=(200, 201), takes="object"
)
_DELETION: Final = _Operation(
    "delete",
    "delete{0}{1}{kind}",
    "delete {article} {kind}",
    "dryRun gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents propagationPolicy",
    "Status",
    codes=(200, 202),
    takes="DeleteOptions",
)
_PATCHING: Final = _Operation("patch", "patch{0}{1}{kind}", "partially update {what}", f"{_WRITE} force", takes="Patch")
_COLLECTION: Final = {"get": _LISTING, "post": _CREATION, "delete": _COLLECTION_DELETION}
_ITEM: Final = {"get": _READING, "put": _REPLACEMENT, "delete": _DELETION, "patch": _PATCHING}
_VERBS: Final = {"post": "create", "put": "update"}
"""Actions that are not called as their verbs."""
_PART: Final = {"get": _READING, "put": _REPLACEMENT, "patch": _PATCHING}


def kind_of(resource: Resource) -> Document:
    """Return group, version and kind."""
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def paths_of(resource: Resource, name: str) -> Iterator[tuple[str, Document]]:
    """Yield each path of a custom kind whose schema is `name`, and its operations."""
    base = f"/apis/{resource.group}/{resource.version}"
    collection = f"{base}/{resource.plural}"
    place: tuple[str, ...] = ()
    if resource.namespaced:
        everywhere = _operation(resource, _LISTING, name, suffix="ForAllNamespaces")
        listed = sorted((*_LIST.split(), "pretty"))
        yield collection, {"get": everywhere, "parameters": [_parameter(each) for each in listed]}
        collection, place = f"{base}/namespaces/{{namespace}}/{resource.plural}", ("namespace",)
    yield collection, _operations(resource, _COLLECTION, name, place)
    yield f"{collection}/{{name}}", _operations(resource, _ITEM, name, ("name", *place))
    for part in resource.subresources:
        schema = _SCALE if part == "scale" else name
        yield f"{collection}/{{name}}/{part}", _operations(resource, _PART, schema, ("name", *place), part)


def _operations(
    resource: Resource, table: Mapping[str, _Operation], schema: str, place: tuple[str, ...], part: str = ""
) -> Document:
    found = {
        method: _operation(resource, each, schema, part)
        for method, each in table.items()
        if _VERBS.get(each.action, each.action) in resource.verbs
    }
    return {**found, "parameters": [*(_parameter(name, "path") for name in place), _parameter("pretty")]}


def _operation(resource: Resource, operation: _Operation, schema: str, part: str = "", suffix: str = "") -> Document:
    words = [word.capitalize() for word in re.split(r"[.-]", resource.group)]
    kind = resource.kind
    version, scope = "".join(words) + resource.version.capitalize(), "Namespaced" if resource.namespaced else ""
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    what = f"{part} of the specified {kind}" if part else f"the specified {kind}"
    shown = {"list": f"{schema}List", "Status": f"{_META}Status"}.get(operation.shows, schema)
    found: Document = {
        "tags": [f"{version[0].lower()}{''.join(words)[1:]}_{resource.version}"],
        "description": operation.description.format(kind=kind, article=article, what=what),
        "operationId": operation.id.format(version, "" if suffix else scope, kind=kind) + (suffix or part.capitalize()),
        "responses": {
            **{str(code): {"description": _CODES[code], "content": _content(shown)} for code in operation.codes},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": kind_of(resource),
    }
    if not suffix:
        found["parameters"] = [_parameter(name) for name in operation.parameters.split()]
    if operation.takes:
        taken = schema if operation.takes == "object" else f"{_META}{operation.takes}"
        body: Document = {"content": _content(taken, _PATCH_TYPES if operation.takes == "Patch" else _TYPES)}
        if operation.takes != "DeleteOptions":
            body["required"] = True
        found["requestBody"] = body
    return found


def _content(schema: str, types: tuple[str, ...] = _TYPES) -> Document:
    return {key: {"schema": {"$ref": f"{_REFERENCE}{schema}"}} for key in types}


@cache
def _parameter(name: str, place: str = "query") -> Document:
    kind = "boolean" if name in _BOOLEANS else "integer" if name in _INTEGERS else "string"
    found: Document = {"name": name, "in": place, "schema": {"type": kind, "uniqueItems": True}}
    return {**found, "required": True} if place == "path" else found


__all__ = ["kind_of", "paths_of"]
