"""The verbs on objects and collections: get, create, update, patch, delete, deletecollection."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.discovery.openapi import patch_schema
from ctrlruntime.apiserver.encoding import copy_tree, decode, encode
from ctrlruntime.apiserver.http.answers import answer, document_answer
from ctrlruntime.apiserver.http.bodies import read_object, read_tree
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.lists import Match
from ctrlruntime.apiserver.http.negotiation import Representation, negotiate, patch_type
from ctrlruntime.apiserver.http.options import delete_options, list_options, write_options
from ctrlruntime.apiserver.http.views import View
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.patch import strategic_merge
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions, Written
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.errors import (
    BadRequest,
    Conflict,
    Invalid,
    NotAcceptable,
    NotFound,
    PatchError,
    RequestEntityTooLarge,
    StatusCause,
    UnsupportedMediaType,
)
from ctrlruntime.patch import apply_json_patch, apply_merge_patch

_WAIT = 3.0
_LARGEST_PATCH = 10_000


class Reader(Protocol):
    """Reads a body into the document to store; `old` is the present object."""

    def __call__(self, old: Document) -> Document: ...


def utc_now() -> datetime:
    return datetime.now(UTC)


class Objects:
    """Handlers of the generic verbs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def view(self, call: Call, resource: Resource, representation: Representation) -> View:
        return View(resource, representation.form, call.query.get("includeObject", ""), utc_now)

    def single_view(self, call: Call, resource: Resource) -> tuple[View, Representation]:
        representation = negotiate(call.headers.get("Accept", ""))
        if representation.is_list_form:
            raise NotAcceptable(
                "only the following media types are accepted: application/json, application/yaml, "
                "application/vnd.kubernetes.protobuf"
            )
        return self.view(call, resource, representation), representation

    async def get(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        version = call.query.get("resourceVersion", "")
        if version not in {"", "0"}:
            if not version.isdigit():
                raise failures.plain_internal(
                    f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": invalid syntax'
                )
            wanted = int(version)
            if not await self._registry.store.wait_for(wanted, _WAIT):
                raise failures.too_large_resource_version(wanted, self._registry.store.revision)
        record = self._registry.record(resource, target.namespace, target.name)
        return answer(call, view.single(record), is_yaml=representation.is_yaml)

    async def create(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = write_options(call, "CreateOptions")
        document = read_object(call, resource, options)
        return self._written(
            call, view, representation, self._registry.writer.create(resource, target.namespace, document, options)
        )

    async def update(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = write_options(call, "UpdateOptions")
        document = read_object(call, resource, options)
        if not (document.get("metadata") or {}).get("name"):
            raise BadRequest("name must be provided")
        written = self._registry.writer.update(
            resource, target.namespace, target.name, document, options, target.subresource
        )
        return self._written(call, view, representation, written)

    async def patch(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        reader = self.patch_reader(call, resource.group, resource.version, resource.kind, is_custom=resource.is_custom)
        options = write_options(call, "PatchOptions")
        options.is_patch = True
        record = self._registry.record(resource, target.namespace, target.name)
        old = resource.tree(record)
        document = patched(reader, old)
        _check_head(resource, document, old)
        written = self._update_patched(resource, target, document, options)
        return self._written(call, view, representation, written)

    def _update_patched(
        self, resource: Resource, target: ResourcePath, document: Document, options: WriteOptions
    ) -> Written:
        try:
            return self._registry.writer.update(
                resource, target.namespace, target.name, document, options, target.subresource
            )
        except BadRequest as error:
            if "cannot unmarshal" not in str(error):
                raise
            cause = failures.invalid_value("patch", encode(document).decode(), str(error))
            raise failures.invalid("", "", "", [cause]) from None

    def patch_reader(self, call: Call, group: str, version: str, kind: str, *, is_custom: bool) -> Reader:
        """Return the function that applies the body to an object. Raises: BadRequest, UnsupportedMediaType…"""
        form = patch_type(call.headers.get("Content-Type", ""), is_custom=is_custom)
        if form == "apply":
            raise UnsupportedMediaType(
                "server-side apply is not part of this embedded API server yet: use kubectl apply --server-side=false, or a "
                "merge, JSON or strategic merge patch"
            )
        try:
            patch: Any = decode(call.body)
        except (ValueError, msgspec.DecodeError) as error:
            raise BadRequest(f"error decoding patch: {error}") from None
        if form == "json":
            if not isinstance(patch, list):
                raise BadRequest(
                    "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
                )
            if len(patch) > _LARGEST_PATCH:
                raise RequestEntityTooLarge(
                    f"The allowed maximum operations in a JSON patch is {_LARGEST_PATCH}, got {len(patch)}"
                )
            return lambda old: _as_object(apply_json_patch(old, patch))
        if not isinstance(patch, dict):
            raise BadRequest(
                "Invalid JSON Patch" if patch is None else "error decoding patch: the patch must be an object"
            )
        body: Document = patch
        if form == "strategic":
            schema = patch_schema(group, version, kind)
            if schema is None:
                raise UnsupportedMediaType("415: Unsupported Media Type")
            return lambda old: copy_tree(strategic_merge(old, body, schema))
        return lambda old: copy_tree(apply_merge_patch(old, body))

    async def delete(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = delete_options(call, read_tree(call, "DeleteOptions"))
        written = self._registry.writer.delete(resource, target.namespace, target.name, options)
        if written.status is not None:
            return document_answer(call, written.status, written.code)
        return self._written(call, view, representation, written)

    async def delete_collection(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        representation = negotiate(call.headers.get("Accept", ""))
        view = self.view(call, resource, representation)
        selected = list_options(call)
        options = delete_options(call, read_tree(call, "DeleteOptions"))
        match = Match(resource, selected, None)
        table = self._registry.store.table(*resource.stored_as)
        keys = [key for key in table.keys(target.namespace) if match(table.records[key])]
        deleted: list[Record] = []
        for namespace, name in keys[: selected.limit or None]:
            try:
                deleted.append(self._registry.writer.delete(resource, namespace, name, options).record)
            except (NotFound, Conflict):  # another item's deletion, or a precondition, decided about it
                continue
        body = view.list(deleted, {"resourceVersion": str(self._registry.store.revision)})
        return answer(call, body, is_yaml=representation.is_yaml)

    @staticmethod
    def _written(call: Call, view: View, representation: Representation, written: Written) -> web.Response:
        return answer(call, view.single(written.record), written.code, is_yaml=representation.is_yaml)


def patched(reader: Reader, old: Document) -> Document:
    """Return the object with a patch applied. Raises: Invalid when it does not apply."""
    try:
        document = reader(old)
    except PatchError:
        raise Invalid("the server rejected our request due to an error in our request") from None
    if not isinstance(document.get("metadata"), dict):
        document["metadata"] = {}
    return document


def _check_head(resource: Resource, document: Document, old: Document) -> None:
    """Refuse a patch that changes what a custom resource is; a built-in object gets its head back."""
    kind, version = document.get("kind", ""), document.get("apiVersion", "")
    if (kind, version) == (resource.kind, resource.api_version):
        return
    if not resource.is_custom:
        document["kind"], document["apiVersion"] = resource.kind, resource.api_version
    elif version != resource.api_version:
        text = (
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )
        raise BadRequest(text)
    else:
        cause = StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
        raise failures.invalid(resource.kind, resource.group, old["metadata"]["name"], [cause])


def _as_object(document: Any) -> Document:
    if not isinstance(document, dict):
        raise PatchError("the patch turns the object into something else")
    return document
