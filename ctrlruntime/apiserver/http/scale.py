"""The scale subresource: one small kind, Scale, over a part of Deployments, ReplicaSets, StatefulSets and custom resources."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.http.answers import answer
from ctrlruntime.apiserver.http.bodies import read_object
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.negotiation import Representation, negotiate, not_a_list, patch_type
from ctrlruntime.apiserver.http.objects import (
    Objects,
    Reader,
    check_path,
    is_apply,
    read_apply,
    rejected_patch,
    utc_now,
)
from ctrlruntime.apiserver.http.options import write_options
from ctrlruntime.apiserver.http.views import included
from ctrlruntime.apiserver.registry import Registry, Resource, SubresourceView, WriteOptions
from ctrlruntime.apiserver.registry.reading import read
from ctrlruntime.apiserver.registry.update import precondition_failed
from ctrlruntime.apiserver.tables import custom_cells, custom_columns
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.metadata import metadata_causes, name_problems
from ctrlruntime.schema.trees import Document, copy_tree, encode
from ctrlruntime.schema.undecodable import Undecodable
from ctrlruntime.selector import from_label_selector, from_labels

_SCALES: Final = Resource("autoscaling", "v1", "scales", "scale", "Scale", namespaced=True, verbs=())
"""A resource that no path names: by it the bodies are read."""
_KIND: Final = (_SCALES.group, _SCALES.version, _SCALES.kind)
_NO_COUNT: Final = -(2**31)
"""What a Scale shows of a custom resource that has no count (apiextensions-apiserver's pkg/registry/customresource/etcd.go)."""


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
        fields = self._registry.extensions.fields
        assert fields is not None

        def edit(old: Document | None) -> Document:
            assert old is not None
            shown = scale_of(resource, old, needs_count=False)
            if resource.scale and _value_at(old, resource.scale.spec_replicas) is None:
                shown["spec"] = {"replicas": _NO_COUNT}
            scale, owners = fields.scale(resource, old, shown, change, manager=options.field_manager, force=force)
            put_scale(resource, old, scale)
            metadata: Document = old["metadata"]
            metadata["resourceVersion"] = (scale.get("metadata") or {}).get("resourceVersion", "")
            metadata.pop("managedFields", None)
            if owners:
                metadata["managedFields"] = owners
            return old

        show = partial(scale_of, resource, needs_count=False)  # what is asked about may have no count yet
        view = SubresourceView(_KIND, show, lambda *pair: put_scale(resource, *pair))
        whole = replace(options, is_apply=True, is_patch=True, field_validation="Ignore")
        written = await self._registry.writer.update(
            resource, target.namespace, target.name, edit, whole, "scale", view
        )
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
            given = read(_SCALES, read_object(call, _SCALES, options), options)
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
        form = patch_type(call.headers.get("Content-Type", ""), is_custom=resource.is_custom)
        reader = self._objects.patch_reader(
            call, _SCALES.group, _SCALES.version, _SCALES.kind, is_custom=resource.is_custom
        )

        def change(old: Document) -> Document:
            try:
                scale = read(_SCALES, self._objects.patched(_SCALES, reader, old, form, target.name), options)
            except Undecodable as error:
                raise rejected_patch(call, reader, old, form, error) from None
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


def put_scale(resource: Resource, document: Document, scale: Document) -> None:
    """Write what a Scale asks for into the object it shows. Raises: BadRequest, Conflict, Invalid."""
    replicas: int = (scale.get("spec") or {}).get("replicas", 0)
    if resource.scale is not None:  # the rest is for the rules of the object
        if replicas == _NO_COUNT:
            raise BadRequest(f'the spec replicas field "{resource.scale.spec_replicas}" cannot be empty')
        _set(document, resource.scale.spec_replicas, replicas)
        return
    metadata: Document = scale.get("metadata") or {}
    name, uid = document["metadata"]["name"], document["metadata"]["uid"]
    causes = metadata_causes(metadata, partial(name_problems, _SCALES.group, _SCALES.kind))
    if not metadata.get("namespace"):
        causes.append(field_errors.required("metadata.namespace"))
    if replicas < 0:
        causes.append(field_errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0"))
    if causes:
        raise failures.invalid(_SCALES.kind, _SCALES.group, name, causes)
    if (metadata.get("uid") or uid) != uid:
        why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {uid}"
        raise failures.conflict(f"{resource.plural}/scale", resource.group, name, why)
    document["spec"]["replicas"] = replicas


def _value_at(document: Any, path: str) -> Any:
    node = document
    for key in path.lstrip(".").split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _set(document: Document, path: str, value: Any) -> None:
    *parents, last = path.lstrip(".").split(".")
    node = document
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value


def scale_of(resource: Resource, document: Document, *, needs_count: bool = True) -> Document:
    """Return the Scale that shows the object.

    Raises: APIStatusError (500) when a custom resource has no replicas field and one is needed.
    """
    metadata: Document = document["metadata"]
    shown = {
        key: metadata[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in metadata
    }
    if resource.scale is not None:
        replicas = _value_at(document, resource.scale.spec_replicas)
        if replicas is None and needs_count:
            raise failures.internal(f'the spec replicas field "{resource.scale.spec_replicas}" does not exist')
        current = _value_at(document, resource.scale.status_replicas) or 0
        selector = _value_at(document, resource.scale.label_selector) if resource.scale.label_selector else None
    else:
        replicas = document["spec"].get("replicas", 0)
        current = (document.get("status") or {}).get("replicas", 0)
        selector = _selector_text(resource, document["spec"].get("selector"))
    status: Document = {"replicas": current}
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status}


def _selector_text(resource: Resource, selector: Any) -> str:
    if not selector:
        return ""
    return str(from_labels(selector) if resource.kind == "ReplicationController" else from_label_selector(selector))


__all__ = ["Scales", "put_scale", "scale_of"]
