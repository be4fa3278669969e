"""A write as admission sees it, and what mutating admission makes of it.

Takes a pending write (or a delete, or a body that is acted on and not stored), asks the webhooks about it, and puts their changes back.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime.apiserver.interfaces import NAMESPACES, Admission, AdmissionAttributes, Operation
from ctrlruntime.apiserver.registry.reading import read
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Pending, WriteOptions
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.schema.trees import Document


async def mutate(admission: Admission, pending: Pending) -> None:
    """Let the webhooks change what is about to be stored. Raises: APIStatusError of a denial."""
    changed = await admission.mutate(_attributes(pending))
    if changed is None:
        return
    if pending.view is not None:
        pending.view.put(pending.document, changed)
        return
    pending.document = read(pending.resource, changed, WriteOptions(field_validation="Ignore", is_apply=True))


async def validate(admission: Admission, pending: Pending) -> None:
    """Ask the webhooks about what is about to be stored. Raises: APIStatusError of a denial."""
    await admission.validate(_attributes(pending))


async def review_delete(admission: Admission, resource: Resource, record: Record, options: DeleteOptions) -> None:
    """Ask the webhooks about a delete. Raises: APIStatusError of a denial."""
    namespace, name = record.key
    attributes = AdmissionAttributes(
        operation="DELETE",
        resource=resource,
        subresource="",
        kind=(resource.group, resource.version, resource.kind),
        namespace=name if resource.stored_as == NAMESPACES else namespace,
        name="" if options.is_collection else name,
        object=None,
        old=resource.tree(record),
        user=options.user,
        dry_run=options.dry_run,
        options=options.document(),
        warnings=options.warnings,
    )
    await admission.mutate(attributes)
    await admission.validate(attributes)


async def review_body(
    admission: Admission,
    resource: Resource,
    namespace: str,
    name: str,
    document: Document,
    options: WriteOptions,
    check: Callable[[Document], None],
    *,
    subresource: str,
    operation: Operation,
) -> Document:
    """Ask the webhooks about a body that is not stored; return it as they left it. Raises: APIStatusError of a denial."""
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    attributes = AdmissionAttributes(
        operation=operation,
        resource=resource,
        subresource=subresource,
        kind=(group, version, str(document.get("kind", ""))),
        namespace=namespace,
        name=name,
        object=document,
        old=None,
        user=options.user,
        dry_run=options.dry_run,
        options=options.document("CreateOptions") if operation == "CREATE" else {},
        warnings=options.warnings,
    )
    attributes.object = await admission.mutate(attributes) or document
    check(attributes.object)
    await admission.validate(attributes)
    return attributes.object


def _attributes(pending: Pending) -> AdmissionAttributes:
    resource, options, view = pending.resource, pending.options, pending.view
    metadata: Document = pending.document["metadata"]
    old = pending.old
    return AdmissionAttributes(
        operation="CREATE" if old is None else "UPDATE",
        resource=resource,
        subresource=pending.subresource,
        kind=view.kind if view else (resource.group, resource.version, resource.kind),
        namespace=_namespace(resource, metadata, is_new=old is None),
        name=metadata.get("name", ""),
        object=view.show(pending.document) if view else pending.document,
        old=view.show(old) if view and old is not None else old,
        user=options.user,
        dry_run=options.dry_run,
        options=options.document("CreateOptions" if old is None else "UpdateOptions"),
        warnings=options.warnings,
        is_inside=options.is_inside,
        last_steps=pending.last_steps,
    )


def _namespace(resource: Resource, metadata: Document, *, is_new: bool) -> str:
    """The namespace of a request: of a Namespace its own name, unless that is generated (endpoints/handlers/create.go)."""
    if resource.stored_as != NAMESPACES:
        return str(metadata.get("namespace", ""))
    return "" if is_new and metadata.get("generateName") else str(metadata["name"])
