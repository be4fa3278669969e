"""The scale subresource: one small kind, Scale, over a part of Deployments, ReplicaSets, StatefulSets and custom resources."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.http.answers import answer
from ctrlruntime.apiserver.http.bodies import read_object
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.negotiation import Representation, negotiate, not_a_list
from ctrlruntime.apiserver.http.objects import (
    Objects,
    Reader,
    check_path,
    is_apply,
    read_apply,
    utc_now,
)
from ctrlruntime.apiserver.http.options import write_options
from ctrlruntime.apiserver.http.patches import patched, read_patch
from ctrlruntime.apiserver.http.views import included
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.apiserver.registry.reading import read
from ctrlruntime.apiserver.registry.scales import SCALES, scale_of, write_scale
from ctrlruntime.apiserver.registry.update import precondition_failed
from ctrlruntime.apiserver.tables import custom_cells, custom_columns
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.trees import Document, copy_tree, encode
from ctrlruntime.schema.undecodable import Undecodable


class Scales:
    """Handlers of `/scale`."""

    def __init__(self, registry: Registry, objects: Objects) -> None:
        self._registry = registry
        self._objects = objects

    async def handle(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        match call.method:
            case "GET":
                representation = negotiate(call.headers.get("Accept", ""), is_custom=resource.is_custom)
                record = self._registry.record(resource, target.namespace, target.name)
                await resource.prepare((record,), is_fresh=True)
                return _answer(call, resource, scale_of(resource, resource.tree(record)), representation)
            case "PUT" | "PATCH":
                return await self._update(call, resource, target)
            case _:
                raise failures.method_not_allowed()

    async def _update(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        representation = negotiate(call.headers.get("Accept", ""), is_custom=resource.is_custom)
        options = write_options(call, "PatchOptions" if call.method == "PATCH" else "UpdateOptions")
        change, force = self._change(call, resource, target, options)
        registry = self._registry
        place = (resource, target.namespace, target.name)
        written = await write_scale(registry.writer, registry.extensions.fields, *place, change, options, force=force)
        await resource.prepare((written.record,))
        return _answer(call, resource, scale_of(resource, resource.tree(written.record)), representation)

    def _change(
        self, call: Call, resource: Resource, target: ResourcePath, options: WriteOptions
    ) -> tuple[Reader, bool | None]:
        """Return what makes the new Scale of the shown one; of an apply what is applied, and whether it is forced."""
        if call.method == "PUT":
            return self._put(call, resource, target, options), None
        if is_apply(call, resource):
            config, force = read_apply(call, options)
            return lambda old: config, force  # noqa: ARG005 - a Reader
        return self._patch(call, resource, target, options), None

    def _put(self, call: Call, resource: Resource, target: ResourcePath, options: WriteOptions) -> Reader:
        try:
            given = read(SCALES, read_object(call, SCALES, options), options)
        except BadRequest:
            if not resource.is_custom:
                raise
            text = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
            raise BadRequest(text) from None
        _place(given, target)
        key = (target.namespace, target.name)

        def change(old: Document) -> Document:
            uid, found = given["metadata"].get("uid"), old["metadata"].get("uid", "")
            if uid and uid != found:
                raise precondition_failed(resource, key, uid, found)
            return copy_tree(given)

        return change

    def _patch(self, call: Call, resource: Resource, target: ResourcePath, options: WriteOptions) -> Reader:
        patch = read_patch(call, options, SCALES.group, SCALES.version, SCALES.kind, is_custom=resource.is_custom)
        options.order = patch.in_order

        def change(old: Document) -> Document:
            try:
                scale = read(SCALES, patched(SCALES, patch, old), options)
            except Undecodable as error:
                raise patch.rejected(SCALES, old, error) from None
            _place(scale, target)
            return scale

        return change


_COLUMNS: Final[tuple[Document, ...]] = (
    {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "Number of desired replicas"},
    {
        "name": "Available",
        "type": "integer",
        "jsonPath": ".status.replicas",
        "description": "Number of actual replicas",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)


def _answer(call: Call, resource: Resource, scale: Document, representation: Representation) -> web.Response:
    """Respond with a Scale in the form that was asked for. Raises: NotAcceptable, BadRequest."""
    include = included(call.query.get("includeObject", ""))
    version, shown = representation.version, scale
    partial_object = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": scale["metadata"]}
    if representation.is_list_form:
        raise not_a_list("*v1.Scale" if resource.is_custom else "*autoscaling.Scale")
    if representation.form == "metadata":
        shown = partial_object
    elif representation.form == "table":
        columns = custom_columns(_COLUMNS)
        if not resource.is_custom:  # the printer of built-in kinds
            columns = [{**one, "format": "", "type": one["type"].replace("date", "string")} for one in columns]
        row: Document = {"cells": custom_cells(_COLUMNS, scale, utc_now())}
        row["object"] = {"Object": scale, "Metadata": partial_object, "None": None}[include]
        metadata = {"resourceVersion": scale["metadata"].get("resourceVersion", "")}
        shown = {
            "kind": "Table",
            "apiVersion": version,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": [row],
        }
    return answer(call, encode(shown), is_yaml=representation.is_yaml)


def _place(scale: Document, target: ResourcePath) -> None:
    """Give a Scale the namespace of the request. Raises: BadRequest when it has another place than the path."""
    check_path(scale, target)
    scale["metadata"]["namespace"] = target.namespace


__all__ = ["Scales"]
