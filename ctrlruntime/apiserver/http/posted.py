"""Bodies that are posted to be acted on and are not stored: Binding, Eviction, TokenRequest, reviews.

One way for all of them, that of createHandler in apiserver's pkg/endpoints/handlers: read, complete the metadata, ask mutating admission,
check, ask validating admission, act, respond.
"""

from __future__ import annotations

from aiohttp import web

from ctrlruntime.apiserver.http.answers import answer
from ctrlruntime.apiserver.http.bodies import read_fitted
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.negotiation import Representation, go_type, negotiate, not_a_list
from ctrlruntime.apiserver.http.options import write_options
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.apiserver.registry.reading import set_namespace
from ctrlruntime.schema.trees import Document, encode
from ctrlruntime.schema.typed import object_meta

_SYSTEM = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "uid", "selfLink")
"""What a client does not say of a new object (WipeObjectMetaSystemFields in apiserver's pkg/registry/rest)."""


class Posted:
    """What is done with one kind of such bodies."""

    kind: Resource
    """By it the bodies are read; no path needs to name it."""
    also: tuple[str, ...] = ()
    """Versions of the kind that are read like its own."""
    keeps_system: bool = False
    """Whether a client may say what else the server sets, as a precondition (SubresourceObjectMetaPreserver)."""

    def default(self, body: Document) -> None:
        """Set the defaults of a body that was read."""

    def check(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> None:
        """Complete what is admitted, in place. Raises: APIStatusError of a body that is refused."""

    def act(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> Document | None:
        """Do it; return the object of the answer, or None for a Status. Raises: APIStatusError."""
        raise NotImplementedError


async def post(
    registry: Registry, call: Call, resource: Resource, target: ResourcePath, posted: Posted
) -> web.Response:
    """Respond to a body that was posted to a path of the resource. Raises: APIStatusError."""
    kind = posted.kind
    representation = negotiate(call.headers.get("Accept", ""), has_tables=False)
    options = write_options(call, "CreateOptions")
    body = read_fitted(call, kind, options, also=posted.also)
    posted.default(body)
    metadata: Document = body.get("metadata") or {}
    if not (posted.keeps_system and target.subresource):
        for key in _SYSTEM:
            metadata.pop(key, None)
    metadata.pop("managedFields", None)
    set_namespace(kind, metadata, target.namespace)
    body["metadata"] = _in_order(metadata)
    tracker = registry.extensions.fields
    if tracker is not None:
        tracker.track(kind, None, body, manager=options.field_manager, subresource=target.subresource)
    name = target.name or metadata.get("name", "")
    body = await registry.writer.admit(
        resource,
        target.namespace,
        name,
        body,
        options,
        subresource=target.subresource,
        check=lambda admitted: posted.check(call, target, admitted, options),
    )
    made = posted.act(call, target, body, options)
    return _answer(call, kind, made, representation)


def _answer(call: Call, kind: Resource, made: Document | None, representation: Representation) -> web.Response:
    if made is None:
        made = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    else:
        if representation.is_list_form:
            raise not_a_list(go_type(kind, kind.kind))
        made["metadata"] = _in_order(made["metadata"])
        if representation.form == "metadata":
            made = {"kind": "PartialObjectMetadata", "apiVersion": representation.version, "metadata": made["metadata"]}
    return answer(call, encode(made), 201, is_yaml=representation.is_yaml)


def _in_order(metadata: Document) -> Document:
    """Return metadata in the order of the Go struct, in which messages and answers show it."""
    return object_meta().read(metadata, "metadata", [])


__all__ = ["Posted", "post"]
