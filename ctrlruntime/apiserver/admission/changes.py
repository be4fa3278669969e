"""The object of a request on its way through admission: shown in the version that each plugin asks for, changed, and read again."""

from __future__ import annotations

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.matching import has_own_kind
from ctrlruntime.apiserver.admission.reviews import internal, no_object
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.patch import json_patch
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.resources import Resource, built_in
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.schema import Misfit
from ctrlruntime.schema.trees import Document, copy_tree, encode


class Shown:
    """The object in the version that the last plugin saw."""

    def __init__(self, attributes: AdmissionAttributes) -> None:
        self.resource: Resource = attributes.resource
        self.object = attributes.object
        self.is_changed = False
        self._attributes = attributes
        self._is_fixed = has_own_kind(attributes)

    async def show_as(self, resource: Resource) -> None:
        """Convert the object to a version, unless the body is of a kind of its own."""
        if self.resource is not resource and self.object is not None and not self._is_fixed:
            self.object = await self.resource.convert(self.object, resource)
        self.resource = resource

    def patch(self, operations: list[Document]) -> bool:
        """Apply a JSON patch; tell whether the object changed. Raises: PatchError, and APIStatusError when the result cannot be read."""
        assert self.object is not None
        changed = json_patch.apply(copy_tree(self.object), operations)
        if not isinstance(changed, dict):
            raise internal(no_object(changed))
        return self.become(changed)

    def become(self, changed: Document) -> bool:
        """Take a changed object, read as its kind; tell whether it differs. Raises: APIStatusError."""
        if not self._is_fixed:
            changed = _read(self.resource, changed)
        if changed == self.object:
            return False
        self.object, self.is_changed = changed, True
        return True

    async def finished(self) -> Document | None:
        """Return the changed object in the version of the request, None when nothing changed. Raises: APIStatusError."""
        if not self.is_changed or self.object is None:
            return None
        await self.show_as(self._attributes.resource)
        _check_identity(self._attributes, self.object)
        _restore_fields(self._attributes, self.object)
        return self.object


async def shown_as(attributes: AdmissionAttributes, document: Document | None, resource: Resource) -> Document | None:
    """Return the object or the old object of a request in a version."""
    asked: Resource = attributes.resource
    if document is None or resource is asked or has_own_kind(attributes):
        return document
    return await asked.convert(document, resource)


def _read(resource: Resource, document: Document) -> Document:
    if resource.is_custom:
        return _read_custom(resource, document)
    kind = document.pop("kind", None) or resource.kind
    version = document.pop("apiVersion", None) or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        if version == resource.api_version and any(
            (one.group, one.version, one.kind) == (resource.group, resource.version, kind) for one in built_in()
        ):
            internal_group = resource.group.partition(".")[0] or "core"
            raise failures.plain_internal(
                f"converting ({resource.version}.{kind}) to ({internal_group}.{resource.kind}): unknown conversion"
            )
        raise internal(f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"')
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    shape = resource.shape
    try:
        found = head | (document if shape is None else shape.read(document, "", []))
    except Misfit as misfit:
        raise internal(str(misfit)) from None
    default(resource.group, resource.kind, found)
    return found


def _read_custom(resource: Resource, document: Document) -> Document:
    kind = document.get("kind") or ""
    if not kind:
        raise internal(f"Object 'Kind' is missing in '{encode(document).decode()}'")
    if kind != resource.kind:
        name = str((document.get("metadata") or {}).get("name", ""))
        cause = StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
        raise failures.invalid(str(kind), resource.group, name, [cause])
    document["apiVersion"] = resource.api_version
    if resource.schema is not None:
        resource.schema.fit(document, "", [], is_root=True)
    return document


def _check_identity(attributes: AdmissionAttributes, document: Document) -> None:
    """Refuse what a webhook may not change, as the steps after it do upstream."""
    resource: Resource = attributes.resource
    metadata: Document = document.get("metadata") or {}
    if resource.namespaced and metadata.get("namespace", "") not in {"", attributes.namespace}:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    version = str(metadata.get("resourceVersion") or "")
    if attributes.operation == "CREATE" and version:
        raise failures.plain_internal("resourceVersion should not be set on objects to be created")
    before: Document = (attributes.old or {}).get("metadata") or {}
    if attributes.operation != "UPDATE" or has_own_kind(attributes):
        return
    if version and version != before.get("resourceVersion"):
        raise failures.conflict(resource.plural, resource.group, attributes.name)
    causes = [
        field_errors.invalid_value(f"metadata.{key}", metadata[key], "field is immutable")
        for key in ("name", "uid")
        if metadata.get(key) and metadata[key] != before.get(key)
    ]
    if causes:
        raise failures.invalid(resource.kind, resource.group, str(metadata.get("name", "")), [*causes, *causes])


def _restore_fields(attributes: AdmissionAttributes, document: Document) -> None:
    """Bring back the managedFields as they were before the webhooks, when these left what cannot be read."""
    metadata: Document = document.get("metadata") or {}
    entries = metadata.get("managedFields") or ()
    problem = next((text for entry in entries if (text := _entry_problem(entry))), "")
    if not problem:
        return
    before: Document = (attributes.object or {}).get("metadata") or {}
    metadata["managedFields"] = before.get("managedFields") or []
    attributes.warnings.append(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission "
        f"controller; please fix your requests: {problem}"
    )


def _entry_problem(entry: Document) -> str:
    if entry.get("operation") not in {"Apply", "Update"}:
        return "operation must be `Apply` or `Update`"
    if entry.get("fieldsType") != "FieldsV1":
        return "fieldsType must be `FieldsV1`"
    return "" if isinstance(entry.get("fieldsV1", {}), dict) else "fieldsV1 must be an object"


__all__ = ["Shown", "shown_as"]
