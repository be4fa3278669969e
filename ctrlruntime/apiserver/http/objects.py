"""The verbs on objects and collections: get, create, update, patch, delete, deletecollection."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Protocol

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.apply import read_configuration
from ctrlruntime.apiserver.http.answers import answer
from ctrlruntime.apiserver.http.bodies import read_object
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.lists import Match, is_cached, read_version, take_page
from ctrlruntime.apiserver.http.negotiation import Representation, negotiate, patch_type
from ctrlruntime.apiserver.http.options import delete_options, list_options, write_options
from ctrlruntime.apiserver.http.patches import patched, read_patch
from ctrlruntime.apiserver.http.views import View
from ctrlruntime.apiserver.registry import DeleteOptions, Registry, Resource, WriteOptions, Written
from ctrlruntime.apiserver.registry.reading import check_named, read
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.errors import (
    APIStatusError,
    BadRequest,
    NotFound,
)
from ctrlruntime.schema.trees import Document, copy_tree, encode
from ctrlruntime.schema.undecodable import Undecodable

_WAIT = 3.0
_CHILDREN_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Reader(Protocol):
    """Reads a body into the document to store; `old` is the present object."""

    def __call__(self, old: Document) -> Document: ...


_WITHOUT_TABLES = frozenset({"ephemeralcontainers", "resize"})
"""Subresources that have no table (their storage has no ConvertToTable in pkg/registry/core/pod/storage)."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class Objects:
    """Handlers of the generic verbs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def view(self, call: Call, resource: Resource, representation: Representation) -> View:
        return View(resource, representation, call.query.get("includeObject", ""), utc_now)

    def single_view(self, call: Call, resource: Resource) -> tuple[View, Representation]:
        has_tables = call.target is None or call.target.subresource not in _WITHOUT_TABLES
        accept = call.headers.get("Accept", "")
        representation = negotiate(accept, is_custom=resource.is_custom, has_tables=has_tables)
        return self.view(call, resource, representation), representation

    async def get(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        if resource.computed is not None:
            made = resource.computed.record(target.namespace, target.name, call.warnings)
            return answer(call, view.single(made), is_yaml=representation.is_yaml)
        wanted = read_version(call.query.get("resourceVersion", ""))
        if wanted and not await self._registry.store.wait_for(wanted, _WAIT):
            raise failures.too_large_resource_version(
                wanted, self._registry.store.revision, is_cached=is_cached(resource)
            )
        record = self._registry.record(resource, target.namespace, target.name)
        if resource.conversion is not None:
            await resource.prepare((record,), is_fresh=True)
        return answer(call, view.single(record), is_yaml=representation.is_yaml)

    async def create(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = write_options(call, "CreateOptions")
        document = read_object(call, resource, options)
        written = await self._registry.writer.create(resource, target.namespace, document, options)
        return await self._written(call, view, representation, written)

    async def update(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = write_options(call, "UpdateOptions")

        unread = [read_object(call, resource, options)]

        def edit(old: Document | None) -> Document:
            if old is None and call.check_create is not None:
                call.check_create()
            # What is edited is taken over: another try needs another reading.
            return unread.pop() if unread else read_object(call, resource, options)

        try:
            check_path(unread[0], target)
            written = await self._registry.writer.update(
                resource, target.namespace, target.name, edit, options, target.subresource
            )
        except (BadRequest, NotFound):
            if unread:  # upstream decodes the body before it looks at the path and for the object
                read(resource, unread.pop(), options)
            raise
        return await self._written(call, view, representation, written)

    async def patch(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        if is_apply(call, resource):
            return await self._written(call, view, representation, await self._apply(call, resource, target))
        options = write_options(call, "PatchOptions")
        options.is_patch = True
        patch = read_patch(call, options, resource.group, resource.version, resource.kind, is_custom=resource.is_custom)
        options.order = patch.in_order

        def edit(old: Document | None) -> Document:
            assert old is not None
            return patched(resource, patch, old)

        try:
            written = await self._registry.writer.update(
                resource, target.namespace, target.name, edit, options, target.subresource
            )
        except Undecodable as error:
            old = resource.tree(self._registry.record(resource, target.namespace, target.name))
            raise patch.rejected(resource, old, error) from None
        return await self._written(call, view, representation, written)

    async def _apply(self, call: Call, resource: Resource, target: ResourcePath) -> Written:
        options = write_options(call, "PatchOptions")
        options.is_patch = options.is_apply = options.creates = True
        config, force = read_apply(call, options)
        fields = self._registry.extensions.fields
        assert fields is not None

        def edit(old: Document | None) -> Document:
            if old is None:
                if call.check_create is not None:
                    call.check_create()
                _check_new(resource, config, target.name)
            document = copy_tree(
                fields.apply(
                    resource,
                    old,
                    config,
                    manager=options.field_manager,
                    force=force,
                    subresource=target.subresource,
                )
            )
            if old is None:
                document["metadata"].pop("resourceVersion", None)
            elif uid := (config.get("metadata") or {}).get("uid"):
                document["metadata"]["uid"] = uid
            return document

        try:
            return await self._registry.writer.update(
                resource, target.namespace, target.name, edit, options, target.subresource
            )
        except Undecodable as error:
            raise _unconverted(resource, config, error) from None

    async def delete(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        view, representation = self.single_view(call, resource)
        options = delete_options(call)
        _warn_of_children(call, resource, options)
        written = await self._registry.writer.delete(resource, target.namespace, target.name, options)
        if written.status is not None:
            return answer(call, encode(written.status), written.code, is_yaml=representation.is_yaml)
        if (
            options.orphan_dependents is False
            and (target.namespace, target.name) in self._registry.store.table(*resource.stored_as).records
        ):
            written = replace(written, code=202)
        return await self._written(call, view, representation, written)

    async def delete_collection(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        representation = negotiate(call.headers.get("Accept", ""), is_custom=resource.is_custom)
        view = self.view(call, resource, representation)
        selected = list_options(call, self._registry.features)
        options = delete_options(call)
        match = Match(resource, selected, None)
        table = self._registry.store.table(*resource.stored_as)
        if resource.conversion is not None:
            await resource.prepare([table.records[key] for key in table.keys(target.namespace)])
        records = [table.records[key] for key in table.keys(target.namespace)]
        revision = self._registry.store.revision
        page, metadata = take_page(match, records, len(records), selected.limit, revision, target.namespace)
        _warn_of_children(call, resource, options)
        deleted: list[Record] = []
        options.is_collection = True
        for namespace, name in [record.key for record in page]:
            record = table.records.get((namespace, name))
            if record is None:
                continue
            try:
                await self._registry.writer.delete(resource, namespace, name, options)
                deleted.append(record)  # shown as it was
            except NotFound:  # gone already
                continue
        if resource.conversion is not None:
            await resource.prepare(deleted)
        body = view.list(deleted, metadata)
        return answer(call, body, is_yaml=representation.is_yaml)

    @staticmethod
    async def _written(call: Call, view: View, representation: Representation, written: Written) -> web.Response:
        if view.resource.conversion is not None:
            await view.resource.prepare((written.record,))
        return answer(call, view.single(written.record), written.code, is_yaml=representation.is_yaml)


def _unconverted(resource: Resource, config: Document, error: Undecodable) -> APIStatusError:
    """Return the error for an applied configuration that has the fields of its kind, but a value that they cannot hold.

    apimachinery's pkg/util/managedfields/internal/structuredmerge.go; there it is an error of the server.
    """
    if resource.is_custom or not (error.applied or error.is_conversion):
        return error
    metadata: Document = config.get("metadata") or {}
    version = resource.api_version if resource.group else f"/{resource.version}"
    kind = f"{version}, Kind={resource.kind}"
    shown = f"({metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind})"
    if error.is_conversion:
        return failures.plain_internal(f"failed to convert to unversioned {shown}: {error.why}")
    return failures.plain_internal(
        f"failed to convert new object {shown} to proper version: unable to convert unstructured object to {kind}: "
        f"{error.applied}"
    )


def is_apply(call: Call, resource: Resource) -> bool:
    """Tell whether the patch is an apply. Raises: UnsupportedMediaType when it is not a patch at all."""
    return patch_type(call.headers.get("Content-Type", ""), is_custom=resource.is_custom) == "apply"


def read_apply(call: Call, options: WriteOptions) -> tuple[Document, bool]:
    """Return the configuration that is applied, and whether it is forced. Raises: BadRequest."""
    config, repeated = read_configuration(call.body)
    if repeated and options.field_validation == "Strict":
        listed = "".join(f"\n  {line}" for line in repeated)
        raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{listed}")
    if options.field_validation == "Warn":
        options.warnings.extend(repeated)
    return config, call.asks("force")


def _check_new(resource: Resource, config: Document, name: str) -> None:
    """Refuse an apply that would create an object and names one that was there."""
    metadata = config.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise failures.conflict(resource.plural, resource.group, name, why)


def check_path(document: Document, target: ResourcePath) -> None:
    """Refuse a body that is about another object than the path. Raises: BadRequest."""
    metadata: Any = document.get("metadata")
    if metadata is None:
        metadata = {}
    if type(metadata) is not dict:
        return  # its type cannot hold it either, which is said when it is read
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not all(isinstance(one, str | None) for one in (name, namespace)):
        return
    if target.namespace and namespace and namespace != target.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    check_named(document, target.name)
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _warn_of_children(call: Call, resource: Resource, options: DeleteOptions) -> None:
    says_nothing = options.propagation_policy is None and options.orphan_dependents is None
    if says_nothing and resource.plural == "jobs" and resource.group == "batch":
        call.warnings.append(_CHILDREN_STAY)
