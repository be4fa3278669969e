"""The direct client: all methods, without a cache, for every kind of class.

It converts calls to requests, and responses to objects. The mapper has the names of resources, the scheme the classes, and the codec the
encoding. Each write passes the gate.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, NamespacedName, ObjectKey, metadata_of
from ctrlruntime.client.codec import Codec, Codecs, check_key, check_object
from ctrlruntime.client.gate import Gate, Ticket
from ctrlruntime.client.interfaces import (
    Fields,
    FieldValidation,
    Labels,
    ListResult,
    PropagationPolicy,
    Reader,
    SubresourceClient,
    WatchEvent,
)
from ctrlruntime.client.observers import CallObservers, Ended, Write
from ctrlruntime.client.options import WriteParams, default_owner, delete_options, write_options
from ctrlruntime.client.patches import APPLY, Patch
from ctrlruntime.client.selectors import fields_text, labels_of
from ctrlruntime.client.unchanged import DECIDING_GROUPS, UnchangedWrites
from ctrlruntime.errors import (
    AlreadyExists,
    APIStatusError,
    ConfigError,
    FencedError,
    NoMatchError,
    NotFound,
    TransportError,
)
from ctrlruntime.rest.collection import Collection, resource_path
from ctrlruntime.rest.content import JSON, UNREADABLE, unreadable
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme

T = TypeVar("T")

NAME_TRIES = 8
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_BASE = 58  # with five random letters a label's 63 (k8s.io/apiserver/pkg/storage/names/generate.go)


class APIClient:
    """Reads and writes one cluster without a cache.

    `cluster` is its name in requests; "" is the manager's own.

    Raises (every method): NotRegisteredError, NoMatchError, APIStatusError, TransportError; ValueError for an object without a required
    name or namespace, and for a key of another cluster.
    """

    def __init__(
        self,
        transport: Transport,
        mapper: RESTMapper,
        scheme: Scheme,
        *,
        gate: Gate | None = None,
        observers: CallObservers | None = None,
        cluster: str = "",
        random_letter: Callable[[str], str] = random.choice,
    ) -> None:
        self._transport = transport
        self._mapper = mapper
        self._scheme = scheme
        self._gate = gate or Gate()
        self._observers = observers or CallObservers()
        self._cluster = cluster
        self.check_write: Callable[[GroupVersionKind, str, str], None] | None = None
        """Called with kind, namespace and name before a write of one object is sent. An error that it raises is the result."""

        self._random_letter = random_letter
        self._codecs = Codecs(scheme, cluster)
        self.unchanged_writes = UnchangedWrites(self._observers.left_out)

    @property
    def scheme(self) -> Scheme:
        return self._scheme

    @property
    def mapper(self) -> RESTMapper:
        return self._mapper

    @property
    def api_reader(self) -> Reader:
        return self

    @property
    def status(self) -> SubresourceClient:
        return _Subresource(self, "status")

    def subresource(self, name: str) -> SubresourceClient:
        return _Subresource(self, name)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def get(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T:
        codec = self._codecs.of(kind)
        check_key(kind, key, self._cluster)
        raw = await self._get(codec, key.namespace, key.name)
        return codec.decode(raw)

    async def get_or_none(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T | None:
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str = "",
    ) -> ListResult[T]:
        """List objects.

        Without `limit`, read all of them in pages of 500; with it, read one page.
        """
        codec = self._codecs.of(kind)
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return ListResult((), codec.decode)
        resource = await self._mapper.resource_for(codec.gvk)
        ended = self._observers.record("list", resource.group, resource.plural, "", namespace or "", "")
        collection = Collection(
            self._transport,
            resource,
            namespace=namespace or "",
            labels="" if selector is None else str(selector),
            fields=fields_text(fields),
            metadata_only=codec.metadata_only,
        )
        with self._unserved(resource, ended=ended):
            if limit or continue_token:
                page = await collection.page(limit=limit, continue_token=continue_token)
                raws, version, token = page.items, page.resource_version, page.continue_token
                remaining = page.remaining_item_count
            else:
                raws, version = await collection.all()
                token, remaining = "", None
        return ListResult(
            raws, codec.decode, resource_version=version, continue_token=token, remaining_item_count=remaining
        )

    async def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str = "",
        timeout: float = 300.0,
    ) -> AsyncIterator[WatchEvent[T]]:
        """Iterate over changes for `timeout` seconds, or until the server ends the watch."""
        codec = self._codecs.of(kind)
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return
        resource = await self._mapper.resource_for(codec.gvk)
        ended = self._observers.record("watch", resource.group, resource.plural, "", namespace or "", "")
        collection = Collection(
            self._transport,
            resource,
            namespace=namespace or "",
            labels="" if selector is None else str(selector),
            fields=fields_text(fields),
            metadata_only=codec.metadata_only,
        )
        batches = collection.watch(resource_version=resource_version, timeout=timeout)
        with self._unserved(resource, ended=ended):
            async with contextlib.aclosing(batches):
                async for batch in batches:
                    for frame in batch:
                        type_ = cast('Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]', frame.type)
                        yield WatchEvent(type_, codec.decode(frame.object))

    # --- writing -----------------------------------------------------------------------------------------------------

    async def create(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        codec = self._codec_for(obj)
        codec.refuse_metadata_only("created")
        tree = codec.tree(obj)
        metadata = tree.setdefault("metadata", {})
        base = "" if metadata.get("name") else str(metadata.get("generateName") or "")
        params = write_options(dry_run, field_owner, field_validation)
        for attempt in range(NAME_TRIES):
            if base:
                # Completed here and not by the server: a create whose answer is lost can then be found again and is never doubled.
                metadata["name"] = self._generated_name(base)
            name = str(metadata.get("name") or "")
            namespace = str(metadata.get("namespace") or "")
            try:
                raw = await self._send(
                    "create", "POST", codec.gvk, namespace, name, body=msgspec.json.encode(tree), params=params,
                    dry_run=dry_run, on_collection=True,
                )  # fmt: skip
            except AlreadyExists:
                if not base or attempt == NAME_TRIES - 1:
                    raise
            else:
                return codec.answer(obj, raw, keep=dry_run)
        raise AssertionError("unreachable")

    async def update(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        return await self.write(
            "update", "PUT", obj, dry_run=dry_run, params=write_options(dry_run, field_owner, field_validation)
        )

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        force: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> T:
        return await self.write_patch(
            obj, patch, "", write_options(dry_run, field_owner, field_validation, force=force), dry_run=dry_run
        )

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        return await self.write_apply(obj, "", field_owner, force=force, dry_run=dry_run)

    async def delete(
        self,
        obj: object,
        *,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        codec = self._codec_for(obj)
        key = codec.key(obj)
        options = delete_options(dry_run, grace_period_seconds, propagation_policy, uid, resource_version)
        await self._send(
            "delete",
            "DELETE",
            codec.gvk,
            key.namespace,
            _named(key),
            body=options,
            params=[],
            dry_run=dry_run,
        )

    async def delete_all_of(
        self,
        kind: type[Any],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
    ) -> None:
        codec = self._codecs.of(kind)
        resource = await self._mapper.resource_for(codec.gvk)
        if resource.namespaced and not namespace:
            resource = await self._mapper.ask_again(codec.gvk)
        if resource.namespaced and not namespace:
            raise ValueError(
                f"cannot delete all {kind.__name__}: the API deletes a collection in one namespace. Pass namespace="
            )
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return
        params = [("labelSelector", str(selector))] if selector else []
        if fields is not None:
            params.append(("fieldSelector", fields_text(fields)))
        space = (namespace or "") if resource.namespaced else ""
        if self.check_write is not None and not dry_run:
            self.check_write(codec.gvk, space, "")
        ended = self._observers.record("deletecollection", resource.group, resource.plural, "", space, "")
        ticket = None if dry_run else self._gate.open_all(codec.gvk, space)
        with self._unserved(resource, ended=ended), _Ending(ticket):
            response = await self._transport.request(
                "DELETE",
                resource_path(resource, space),
                params=params,
                body=delete_options(dry_run, grace_period_seconds, propagation_policy, "", ""),
            )
        if ticket is not None:
            _settle_collection(ticket, response.body)

    def _codec_for(self, obj: T) -> Codec[T]:
        """Return the codec of an object that is written. Raises: WrongClusterError if it was read from another cluster."""
        check_object(obj, self._cluster)
        return self._codecs.for_object(obj)

    # --- what subresources and wrappers build on -----------------------------------------------------------------------

    async def write(
        self,
        verb: str,
        method: str,
        obj: T,
        *,
        params: WriteParams,
        dry_run: bool,
        subresource: str = "",
    ) -> T:
        """Send the whole object, and update it from the response.

        It is sent to its path, or to a subresource.
        """
        codec = self._codec_for(obj)
        codec.refuse_metadata_only("updated")
        key = codec.key(obj)
        raw = await self._send(
            verb, method, codec.gvk, key.namespace, _named(key), body=codec.encode(obj), params=params,
            dry_run=dry_run, subresource=subresource,
        )  # fmt: skip
        return codec.answer(obj, raw, keep=dry_run)

    async def write_patch(self, obj: T, patch: Patch, subresource: str, params: WriteParams, *, dry_run: bool) -> T:
        codec = self._codec_for(obj)
        key = codec.key(obj)
        raw = await self._send(
            "patch", "PATCH", codec.gvk, key.namespace, _named(key), body=patch.data(codec.wire(obj)),
            params=params, dry_run=dry_run, subresource=subresource, content_type=patch.content_type,
            accept=codec.accept,
        )  # fmt: skip
        return codec.answer(obj, raw, keep=dry_run)

    async def write_apply(self, obj: T, subresource: str, field_owner: str, *, force: bool, dry_run: bool) -> T:
        codec = self._codec_for(obj)
        key = codec.key(obj)
        owner = field_owner or default_owner()
        if not owner:
            raise ValueError(
                "cannot apply: field_owner is not set. Pass the name of the field manager that owns these fields"
            )
        raw = await self._send(
            "patch", "PATCH", codec.gvk, key.namespace, _named(key),
            body=msgspec.json.encode(codec.apply_payload(obj, subresource)),
            params=write_options(dry_run, owner, None, force=force), dry_run=dry_run, subresource=subresource,
            content_type=APPLY,
        )  # fmt: skip
        return codec.answer(obj, raw, keep=dry_run)

    async def read_subresource(self, obj: object, subresource: str, body: type[T]) -> T:
        codec = self._codec_for(obj)
        codec.refuse_metadata_only("asked for a subresource")
        key = codec.key(obj)
        resource, namespace = await self._placed(codec.gvk, key.namespace, key.name)
        path = resource_path(resource, namespace, _named(key), subresource)
        ended = self._observers.record("get", resource.group, resource.plural, subresource, namespace, key.name)
        with self._unserved(resource, subresource, ended):
            response = await self._transport.request("GET", path)
        return self._codecs.of(body).decode(response.body)

    async def write_subresource_body(
        self, verb: str, method: str, obj: object, subresource: str, body: T, params: WriteParams, *, dry_run: bool
    ) -> T:
        """Send an object of another kind to a subresource of `obj`.

        The kind is Scale, Eviction or TokenRequest, for example. It gets the name of `obj`.
        """
        codec, inner = self._codec_for(obj), self._codecs.for_object(body)
        key = codec.key(obj)
        resource, namespace = await self._placed(codec.gvk, key.namespace, key.name)
        tree = inner.tree(body)
        metadata = tree.setdefault("metadata", {})
        metadata.setdefault("name", key.name)
        if resource.namespaced:
            metadata.setdefault("namespace", namespace)
        raw = await self._send(
            verb, method, codec.gvk, key.namespace, _named(key), body=msgspec.json.encode(tree),
            params=params, dry_run=dry_run, subresource=subresource,
        )  # fmt: skip
        return inner.answer(body, raw, keep=dry_run) if inner.is_kind_of(raw) else body

    # --- parts -----------------------------------------------------------------------------------------------------------

    async def _placed(self, gvk: GroupVersionKind, namespace: str, name: str) -> tuple[APIResource, str]:
        """Return the resource, and the namespace to ask in. Raises: ValueError when there must be one and is none."""
        resource = await self._mapper.resource_for(gvk)
        if resource.namespaced and not namespace:
            # The definition may have been replaced by one of another scope: no request would ever show that.
            resource = await self._mapper.ask_again(gvk)
        if not resource.namespaced:
            return resource, ""
        if not namespace:
            raise ValueError(
                f"{resource.kind} {name!r} has no namespace, but {resource.plural} are namespaced. "
                "Set metadata.namespace, or the namespace of the key"
            )
        return resource, namespace

    async def _get(self, codec: Codec[Any], namespace: str, name: str) -> bytes:
        resource, namespace = await self._placed(codec.gvk, namespace, name)
        path = resource_path(resource, namespace, _named(NamespacedName(namespace, name)))
        ended = self._observers.record("get", resource.group, resource.plural, "", namespace, name)
        with self._unserved(resource, ended=ended):
            response = await self._transport.request("GET", path, accept=codec.accept)
        return response.body

    async def _send(
        self,
        verb: str,
        method: str,
        gvk: GroupVersionKind,
        namespace: str,
        name: str,
        *,
        body: bytes,
        params: WriteParams,
        dry_run: bool,
        subresource: str = "",
        content_type: str = JSON,
        accept: str = JSON,
        on_collection: bool = False,
    ) -> bytes:
        resource, namespace = await self._placed(gvk, namespace, name)
        if self.check_write is not None and not dry_run:
            self.check_write(gvk, namespace, name)
        path = resource_path(resource, namespace, "" if on_collection else name, subresource)
        ended = self._observers.record(verb, resource.group, resource.plural, subresource, namespace, name, body=body)
        before = b"" if dry_run else self._observers.cached(gvk, namespace, name)
        ticket = None if dry_run else self._gate.open(gvk, namespace, name)
        with self._unserved(resource, subresource, ended), _Ending(ticket):
            response = await self._transport.request(
                method, path, params=params, body=body, content_type=content_type, accept=accept
            )
        if resource.group in DECIDING_GROUPS and not dry_run:
            self.unchanged_writes.forget()
        if response.status == 201 and verb != "create":
            # An apply that creates needs the permission for both (k8s.io/apiserver, the patch handler).
            self._observers.record("create", resource.group, resource.plural, subresource, namespace, name)
        if ticket is not None:
            try:
                stored = _settle(ticket, verb, subresource, response.body)
            except UNREADABLE as error:
                ticket.lost()
                raise TransportError(
                    f"{method} {path}: the response is not an object: {unreadable(error, response.body)}"
                ) from error
            # Of metadata alone nobody can tell what changed.
            if stored is not None and verb != "delete" and accept == JSON:
                manager = next((value for option, value in params if option == "fieldManager"), "")
                self._observers.wrote(
                    Write(
                        verb,
                        gvk,
                        namespace,
                        name,
                        subresource,
                        manager,
                        content_type == APPLY,
                        before,
                        body,
                        response.body,
                        stored,
                    )
                )
        return response.body

    def _generated_name(self, base: str) -> str:
        return base[:_LONGEST_BASE] + "".join(self._random_letter(_SUFFIX_ALPHABET) for _ in range(5))

    def _unserved(self, resource: APIResource, subresource: str = "", ended: Ended | None = None) -> _Unserved:
        return _Unserved(self._mapper, resource, subresource, ended)


class _Subresource:
    """The methods of one subresource."""

    def __init__(self, client: APIClient, name: str) -> None:
        self._client = client
        self._name = name

    async def get(self, obj: object, body: type[T]) -> T:
        return await self._client.read_subresource(obj, self._name, body)

    async def create(self, obj: object, body: T, *, dry_run: bool = False, field_owner: str = "") -> T:
        params = write_options(dry_run, field_owner, None)
        return await self._client.write_subresource_body(
            "create", "POST", obj, self._name, body, params, dry_run=dry_run
        )

    async def update(
        self,
        obj: T,
        *,
        body: object | None = None,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        params = write_options(dry_run, field_owner, field_validation)
        if body is not None:
            await self._client.write_subresource_body("update", "PUT", obj, self._name, body, params, dry_run=dry_run)
            return obj
        return await self._client.write("update", "PUT", obj, params=params, dry_run=dry_run, subresource=self._name)

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        force: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> T:
        params = write_options(dry_run, field_owner, field_validation, force=force)
        return await self._client.write_patch(obj, patch, self._name, params, dry_run=dry_run)

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        return await self._client.write_apply(obj, self._name, field_owner, force=force, dry_run=dry_run)


class _Unserved:
    """Wraps a request: raises NoMatchError instead of NotFound if the kind or subresource is not served.

    It also reports the outcome to observers.
    """

    __slots__ = ("_ended", "_mapper", "_resource", "_subresource")

    def __init__(self, mapper: RESTMapper, resource: APIResource, subresource: str, ended: Ended | None) -> None:
        self._ended = ended
        self._mapper = mapper
        self._resource = resource
        self._subresource = subresource

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._ended is not None:
            self._ended(error)
        if not isinstance(error, NotFound):
            return
        resource = self._resource
        # Asked for a subresource that a custom resource does not have, the server says that the object is not there.
        exists = not self._subresource or self._subresource in resource.subresources
        if exists and error.details.get("name"):
            return
        self._mapper.invalidate(resource.group)
        what = f"the subresource {self._subresource!r} of {resource.gvk}" if self._subresource else str(resource.gvk)
        ask = "does its CustomResourceDefinition declare it?" if self._subresource else "is its CRD still installed?"
        raise NoMatchError(f"the API server does not serve {what}; {ask}") from error


class _DeleteAnswer(msgspec.Struct, gc=False):
    kind: str = ""
    metadata: Metadata | None = None
    details: _DeleteDetails | None = None


class _DeleteDetails(msgspec.Struct, gc=False):
    uid: str = ""


class _DeletedItem(msgspec.Struct, gc=False):
    metadata: Metadata


class _DeletedList(msgspec.Struct, gc=False):
    kind: str = ""
    items: list[_DeletedItem] | None = None


class _Grace(msgspec.Struct, gc=False, rename="camel"):
    deletion_grace_period_seconds: int | None = None


class _Leaving(msgspec.Struct, gc=False, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: _Grace | None = None


_decode_delete = msgspec.json.Decoder(_DeleteAnswer).decode
_decode_deleted = msgspec.json.Decoder(_DeletedList).decode
_decode_leaving = msgspec.json.Decoder(_Leaving).decode


def _settle(ticket: Ticket, verb: str, subresource: str, body: bytes) -> Metadata | None:
    """End a ticket as its answer says; return the metadata of the answer if that is the object as it is stored now."""
    if verb != "delete" and not subresource:
        return _settle_stored(ticket, metadata_of(body), body)
    answer = _decode_delete(body)
    if answer.kind == "Status":
        if verb == "delete" and answer.details is not None and answer.details.uid:
            ticket.deleted(answer.details.uid)
        else:
            # An eviction or a binding: done, but nobody says at which version.
            ticket.lost()
    elif answer.metadata is None or not answer.metadata.name:
        ticket.failed()  # a review: nothing is stored
    elif verb == "delete" and answer.metadata.deletion_timestamp is None:
        ticket.deleted(answer.metadata.uid, answer.metadata.resource_version)
    else:
        return _settle_stored(ticket, answer.metadata, body)
    return None


def _settle_collection(ticket: Ticket, body: bytes) -> None:
    """End a ticket by the answer to a collection delete: a list of the objects as they were before it."""
    try:
        answer = _decode_deleted(body)
    except UNREADABLE:
        ticket.lost()
        return
    if answer.kind.endswith("List"):
        ticket.deleted_all(item.metadata for item in answer.items or ())
    else:
        ticket.lost()  # a Status: it does not tell which objects matched


class _Ending:
    """Wraps a request: ends the ticket of a failed write, as failed, or as lost if the write may have happened."""

    __slots__ = ("_ticket",)

    def __init__(self, ticket: Ticket | None) -> None:
        self._ticket = ticket

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or self._ticket is None:
            return
        match error:
            case APIStatusError() if error.code < 500:
                self._ticket.failed()
            case FencedError() | ConfigError():
                self._ticket.failed()  # never sent: fenced, or without a credential or certificate
            case _:
                self._ticket.lost()  # no answer, cancelled while waiting for it, or a server that fails


def _settle_stored(ticket: Ticket, meta: Metadata, body: bytes) -> Metadata | None:
    if _is_last(meta, body):
        # The server deletes it with this very write, and answers with the version before: no version to wait for.
        ticket.deleted(meta.uid, meta.resource_version)
        return None
    ticket.stored(meta)
    return meta


def _is_last(meta: Metadata, body: bytes) -> bool:
    """Whether the object was deleted by the write that took its last finalizer away."""
    if meta.deletion_timestamp is None or meta.finalizers:
        return False
    answer = _decode_leaving(body)
    if (answer.api_version, answer.kind) == ("v1", "Namespace"):
        return False  # its finalizers stand in its spec
    return answer.metadata is None or not answer.metadata.deletion_grace_period_seconds


def _named(key: NamespacedName) -> str:
    if not key.name:
        raise ValueError("the object has no metadata.name. Set it, or read the object first")
    return key.name
