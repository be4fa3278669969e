"""The Scale of an object: how it shows a part of the object, and how it is written back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import FieldTracker
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.writer import Writer
from ctrlruntime.apiserver.registry.writes import SubresourceView, WriteOptions, Written
from ctrlruntime.errors import BadRequest
from ctrlruntime.schema.metadata import metadata_causes, name_problems
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector, from_labels

SCALES: Final = Resource("autoscaling", "v1", "scales", "scale", "Scale", namespaced=True, verbs=())
"""A resource that no path names: by it the bodies are read."""
_KIND: Final = (SCALES.group, SCALES.version, SCALES.kind)
_NO_COUNT: Final = -(2**31)
"""What a Scale shows of a custom resource that has no count (apiextensions-apiserver's pkg/registry/customresource/etcd.go)."""


async def write_scale(
    writer: Writer,
    fields: FieldTracker | None,
    resource: Resource,
    namespace: str,
    name: str,
    change: Callable[[Document], Document],
    options: WriteOptions,
    *,
    force: bool | None = None,
) -> Written:
    """Change the Scale of an object; `force` is given for an apply. Raises: APIStatusError."""
    assert fields is not None

    def edit(old: Document | None) -> Document:
        assert old is not None
        shown = scale_of(resource, old, needs_count=False)
        if resource.scale and _value_at(old, resource.scale.spec_replicas) is None:
            shown["spec"] = {"replicas": _NO_COUNT}
        scale, owners = fields.scale(resource, old, shown, change, manager=options.field_manager, force=force)
        put_scale(resource, old, scale)
        metadata: Document = old["metadata"]
        if version := (scale.get("metadata") or {}).get("resourceVersion"):
            metadata["resourceVersion"] = version
        metadata.pop("managedFields", None)
        if owners:
            metadata["managedFields"] = owners
        return old

    show = partial(scale_of, resource, needs_count=False)  # what is asked about may have no count yet
    view = SubresourceView(_KIND, show, lambda *pair: put_scale(resource, *pair))
    whole = replace(options, is_apply=True, is_patch=True, field_validation="Ignore")
    return await writer.update(resource, namespace, name, edit, whole, "scale", view)


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
    causes = metadata_causes(metadata, partial(name_problems, SCALES.group, SCALES.kind))
    if not metadata.get("namespace"):
        causes.append(field_errors.required("metadata.namespace"))
    if replicas < 0:
        causes.append(field_errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0"))
    if causes:
        raise failures.invalid(SCALES.kind, SCALES.group, name, causes)
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


__all__ = ["SCALES", "put_scale", "scale_of", "write_scale"]
