"""The object of a request on its way through admission: shown in the version that each plugin asks for, changed, and read again."""

from __future__ import annotations

from typing import Any

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.matching import has_own_kind
from ctrlruntime.apiserver.admission.reviews import internal
from ctrlruntime.apiserver.go_json import read_head
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.resources import Resource, built_in
from ctrlruntime.errors import BadRequest, StatusCause
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.schema import Misfit
from ctrlruntime.schema.messages import message_of
from ctrlruntime.schema.trees import Document, encode_sorted, is_same
from ctrlruntime.schema.typed import object_meta, typed


class Shown:
    """The object in the version that the last plugin saw."""

    def __init__(self, attributes: AdmissionAttributes) -> None:
        self.resource: Resource = attributes.resource
        self.object = attributes.object
        self.is_changed = False
        self._attributes = attributes
        self.is_fixed = has_own_kind(attributes)
        """Whether it is of a subresource's own kind, in one version."""

    @property
    def kind(self) -> tuple[str, str, str]:
        """Group, version and kind of the object."""
        resource = self.resource
        return self._attributes.kind if self.is_fixed else (resource.group, resource.version, resource.kind)

    async def show_as(self, resource: Resource) -> None:
        """Convert the object to a version, unless the body is of a kind of its own."""
        if self.resource is not resource and self.object is not None and not self.is_fixed:
            self.object = await self.resource.convert(self.object, resource)
        self.resource = resource

    def patch(self, operations: list[Document], *, is_strict: bool = False) -> bool:
        """Apply a JSON patch; tell whether the object changed.

        Unknown fields are dropped, or refused by `is_strict`.
        Raises: PatchError, and APIStatusError when the result cannot be read.
        """
        assert self.object is not None
        changed = apply_json_patch(self.object, operations)
        return self.become(changed, is_strict=is_strict)

    def become(self, changed: Document, *, is_strict: bool = False) -> bool:
        """Take a changed object, read as its kind; tell whether it differs. Raises: APIStatusError."""
        try:
            read_head(changed)
        except ValueError as error:
            raise internal(str(error)) from None
        if self.resource.is_custom and not self.is_fixed:
            changed = _read_custom(self.resource, changed)
        else:
            unknown: list[str] = []
            changed = _read_built_in(self.kind, changed, unknown)
            if is_strict and unknown:
                listed = ", ".join(f'unknown field "{path}"' for path in unknown)
                raise internal(f"strict decoding error: {listed}")
        if is_same(changed, self.object):
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


def _read_built_in(expected: tuple[str, str, str], document: Document, unknown: list[str]) -> Document:
    """Return a changed object as its kind; fields that this does not have are added to `unknown`. Raises: APIStatusError."""
    group, version, expected_kind = expected
    expected_version = f"{group}/{version}" if group else version
    kind = document.pop("kind", None) or expected_kind
    api_version = document.pop("apiVersion", None) or expected_version
    if (kind, api_version) != (expected_kind, expected_version):
        if api_version == expected_version and any(
            (one.group, one.version, one.kind) == (group, version, kind) for one in built_in()
        ):
            internal_group = group.partition(".")[0] or "core"
            text = f"converting ({version}.{kind}) to ({internal_group}.{expected_kind}): unknown conversion"
            raise failures.plain_internal(text)
        text = f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        raise internal(text)
    head = {"kind": kind, "apiVersion": api_version}
    message = message_of(api_version, kind)
    try:
        found = head | (document if message is None else typed(message.name).read(document, "", unknown))
    except Misfit as misfit:
        raise internal(str(misfit)) from None
    default(group, kind, found)
    return found


def _read_custom(resource: Resource, document: Document) -> Document:
    kind, version = document.get("kind") or "", document.get("apiVersion") or ""
    if not kind:
        raise internal(f"Object 'Kind' is missing in '{encode_sorted(document).decode()}'")
    if version != resource.api_version:
        named = f"{version if '/' in version else f'/{version}'}, Kind={kind}"
        text = f'failed to convert object: {named} is unstructured and is not suitable for converting to "{resource.api_version}"'
        raise internal(text)
    if kind != resource.kind:
        name = str((document.get("metadata") or {}).get("name", ""))
        cause = StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
        raise failures.invalid(kind, resource.group, name, [cause])
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise internal("system metadata was not initialized")
    document["metadata"] = {name: value for name, value in metadata.items() if _is_readable(name, value)}
    if resource.schema is not None:
        resource.schema.fit(document, "", [], is_root=True, keeps_nulls=True)
    return document


def _is_readable(name: str, value: Any) -> bool:
    """Tell whether a field of the metadata has its type. Another one is as good as absent: nothing reads it (unstructured.go)."""
    try:
        object_meta().read({name: value}, "", [])
    except Misfit:
        return False
    return True


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
