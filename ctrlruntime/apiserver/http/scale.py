"""The scale subresource: one small kind, Scale, over a part of Deployments, ReplicaSets, StatefulSets and custom resources."""

from __future__ import annotations

from functools import partial
from typing import Any

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.http.answers import document_answer
from ctrlruntime.apiserver.http.bodies import read_object
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.objects import Objects, Reader, check_path, is_apply, patched, read_apply
from ctrlruntime.apiserver.http.options import write_options
from ctrlruntime.apiserver.registry import Registry, Resource, SubresourceView, WriteOptions
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.metadata import metadata_causes, name_problems
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector, from_labels

_KIND = ("autoscaling", "v1", "Scale")


class Scales:
    """Handlers of `/scale`."""

    def __init__(self, registry: Registry, objects: Objects) -> None:
        self._registry = registry
        self._objects = objects

    async def handle(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        match call.method:
            case "GET":
                record = self._registry.record(resource, target.namespace, target.name)
                await resource.prepare((record,), is_fresh=True)
                return document_answer(call, scale_of(resource, resource.tree(record)))
            case "PUT" | "PATCH":
                return await self._update(call, resource, target)
            case _:
                raise failures.method_not_allowed()

    async def _update(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        options = write_options(call, "PatchOptions" if call.method == "PATCH" else "UpdateOptions")
        change, force = self._change(call, resource, target, options)
        fields = self._registry.extensions.fields
        assert fields is not None

        def edit(old: Document | None) -> Document:
            assert old is not None
            shown = scale_of(resource, old, needs_count=False)
            scale, owners = fields.scale(resource, old, shown, change, manager=options.field_manager, force=force)
            put_scale(resource, old, scale)
            metadata: Document = old["metadata"]
            metadata["resourceVersion"] = (scale.get("metadata") or {}).get("resourceVersion", "")
            metadata.pop("managedFields", None)
            if owners:
                metadata["managedFields"] = owners
            return old

        options.is_apply = True
        options.is_patch = True
        options.field_validation = "Ignore"
        show = partial(scale_of, resource, needs_count=False)  # what is asked about may have no count yet
        view = SubresourceView(_KIND, show, lambda *pair: put_scale(resource, *pair))
        written = await self._registry.writer.update(
            resource, target.namespace, target.name, edit, options, "scale", view
        )
        await resource.prepare((written.record,))
        return document_answer(call, scale_of(resource, resource.tree(written.record)))

    def _change(
        self, call: Call, resource: Resource, target: ResourcePath, options: WriteOptions
    ) -> tuple[Reader, bool | None]:
        """Return what makes the new Scale of the shown one; of an apply what is applied, and whether it is forced."""
        if call.method == "PUT":
            return lambda old: _read_scale(call, resource, target, options), None  # noqa: ARG005 - a Reader
        if is_apply(call, resource):
            config, force = read_apply(call, options)
            return lambda old: config, force  # noqa: ARG005 - a Reader
        reader = self._objects.patch_reader(call, "autoscaling", "v1", "Scale", is_custom=resource.is_custom)
        return lambda old: patched(reader, old), None


def _read_scale(call: Call, resource: Resource, target: ResourcePath, options: WriteOptions) -> Document:
    try:
        scale = read_object(call, resource, options, kind="Scale", api_version="autoscaling/v1")
    except BadRequest as error:
        if not resource.is_custom or "is registered for version" not in str(error):
            raise
        raise BadRequest('no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"') from None
    check_path(scale, target)
    scale["metadata"]["namespace"] = target.namespace
    return scale


def put_scale(resource: Resource, document: Document, scale: Document) -> None:
    """Write what a Scale asks for into the object it shows. Raises: BadRequest, Invalid."""
    name = document["metadata"]["name"]
    metadata: Document = scale.get("metadata") or {}
    causes = metadata_causes(metadata, partial(name_problems, resource.group, resource.kind))
    if not metadata.get("namespace"):
        causes.append(field_errors.required("metadata.namespace"))
    spec: Any = scale.get("spec") or {}
    replicas: Any = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas must be an integer')
    if replicas < 0 and resource.scale is None:  # of a custom resource the object is checked
        causes.append(field_errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0"))
    if causes:
        raise failures.invalid("Scale", "autoscaling", name, causes)
    _set(document, resource.scale.spec_replicas if resource.scale else ".spec.replicas", replicas)


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
