"""Hooks between a caller and a client, one for each verb: for tests that need a failure, a delay or a look.

    async def refuse(client, obj, **options):
        raise Conflict("somebody was faster")

    client = intercept(client, update=refuse)

A hook is called in place of the verb, with the wrapped client and the call's arguments: those a caller always gives by
position, options by keyword (all of them, defaults too). It passes the call on by calling the client itself. Verbs
without a hook pass through.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol, TypedDict

from typing_extensions import TypeVar, Unpack

from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.client.interfaces import (
    Client,
    Fields,
    FieldValidation,
    Items,
    Labels,
    Propagation,
    Reader,
    SubresourceClient,
    WatchEvent,
)
from ctrlruntime.client.patches import Patch
from ctrlruntime.errors import NotCachedError, NotFound, OutsideCacheError
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.scheme import Scheme

T = TypeVar("T")


class ListOptions(TypedDict):
    """What a list is narrowed by."""

    namespace: str | None
    labels: Labels | None
    fields: Fields | None
    limit: int | None
    continue_token: str


class WatchOptions(TypedDict):
    """What a watch is narrowed by."""

    namespace: str | None
    labels: Labels | None
    fields: Fields | None
    resource_version: str


class WriteOptions(TypedDict):
    """Options of create and update."""

    dry_run: bool
    field_owner: str
    field_validation: FieldValidation | None


class PatchOptions(WriteOptions):
    """Options of patch."""

    force: bool


class ApplyOptions(TypedDict):
    """Options of apply."""

    dry_run: bool
    field_owner: str
    force: bool


class DeleteOptions(TypedDict):
    """Options of delete."""

    dry_run: bool
    grace_period_seconds: int | None
    propagation: Propagation | None
    uid: str
    resource_version: str


class DeleteAllOfOptions(TypedDict):
    """Options of delete_all_of."""

    namespace: str | None
    labels: Labels | None
    fields: Fields | None
    dry_run: bool
    grace_period_seconds: int | None
    propagation: Propagation | None


class SubresourceCreateOptions(TypedDict):
    """Options of a create in a subresource."""

    dry_run: bool
    field_owner: str


class SubresourceUpdateOptions(WriteOptions):
    """Options of an update of a subresource."""

    body: object | None


class GetHook(Protocol):
    """Called for `get` and `find` (where its NotFound is None)."""

    async def __call__(self, client: Client, kind: type[Any], key: ObjectKey, /) -> Any: ...


class ListHook(Protocol):
    async def __call__(self, client: Client, kind: type[Any], /, **options: Unpack[ListOptions]) -> Items[Any]: ...


class WatchHook(Protocol):
    """Returns an iterator; an async generator function fits."""

    def __call__(
        self, client: Client, kind: type[Any], /, **options: Unpack[WatchOptions]
    ) -> AsyncIterator[WatchEvent[Any]]: ...


class WriteHook(Protocol):
    """Called for `create`, or for `update`."""

    async def __call__(self, client: Client, obj: Any, /, **options: Unpack[WriteOptions]) -> Any: ...


class PatchHook(Protocol):
    async def __call__(self, client: Client, obj: Any, patch: Patch, /, **options: Unpack[PatchOptions]) -> Any: ...


class ApplyHook(Protocol):
    async def __call__(self, client: Client, obj: Any, /, **options: Unpack[ApplyOptions]) -> Any: ...


class DeleteHook(Protocol):
    async def __call__(self, client: Client, obj: Any, /, **options: Unpack[DeleteOptions]) -> None: ...


class DeleteAllOfHook(Protocol):
    async def __call__(self, client: Client, kind: type[Any], /, **options: Unpack[DeleteAllOfOptions]) -> None: ...


class SubresourceGetHook(Protocol):
    """`name` is the subresource's, here and below."""

    async def __call__(self, client: Client, name: str, obj: Any, body: type[Any], /) -> Any: ...


class SubresourceCreateHook(Protocol):
    async def __call__(
        self, client: Client, name: str, obj: Any, body: Any, /, **options: Unpack[SubresourceCreateOptions]
    ) -> Any: ...


class SubresourceUpdateHook(Protocol):
    async def __call__(
        self, client: Client, name: str, obj: Any, /, **options: Unpack[SubresourceUpdateOptions]
    ) -> Any: ...


class SubresourcePatchHook(Protocol):
    async def __call__(
        self, client: Client, name: str, obj: Any, patch: Patch, /, **options: Unpack[PatchOptions]
    ) -> Any: ...


class SubresourceApplyHook(Protocol):
    async def __call__(self, client: Client, name: str, obj: Any, /, **options: Unpack[ApplyOptions]) -> Any: ...


class _Hooks(TypedDict):
    get: GetHook | None
    list: ListHook | None
    create: WriteHook | None
    update: WriteHook | None
    patch: PatchHook | None
    apply: ApplyHook | None
    delete: DeleteHook | None
    delete_all_of: DeleteAllOfHook | None
    watch: WatchHook | None
    subresource_get: SubresourceGetHook | None
    subresource_create: SubresourceCreateHook | None
    subresource_update: SubresourceUpdateHook | None
    subresource_patch: SubresourcePatchHook | None
    subresource_apply: SubresourceApplyHook | None


def intercept(
    client: Client,
    *,
    get: GetHook | None = None,
    list: ListHook | None = None,
    create: WriteHook | None = None,
    update: WriteHook | None = None,
    patch: PatchHook | None = None,
    apply: ApplyHook | None = None,
    delete: DeleteHook | None = None,
    delete_all_of: DeleteAllOfHook | None = None,
    watch: WatchHook | None = None,
    subresource_get: SubresourceGetHook | None = None,
    subresource_create: SubresourceCreateHook | None = None,
    subresource_update: SubresourceUpdateHook | None = None,
    subresource_patch: SubresourcePatchHook | None = None,
    subresource_apply: SubresourceApplyHook | None = None,
) -> Client:
    """Return a client that calls these hooks in place of the verbs; `client.status` goes through the subresource ones."""
    hooks = _Hooks(
        get=get,
        list=list,
        create=create,
        update=update,
        patch=patch,
        apply=apply,
        delete=delete,
        delete_all_of=delete_all_of,
        watch=watch,
        subresource_get=subresource_get,
        subresource_create=subresource_create,
        subresource_update=subresource_update,
        subresource_patch=subresource_patch,
        subresource_apply=subresource_apply,
    )
    return _Intercepted(client, hooks)


class _Intercepted:
    def __init__(self, wrapped: Client, hooks: _Hooks) -> None:
        self._wrapped = wrapped
        self._hooks = hooks

    @property
    def scheme(self) -> Scheme:
        return self._wrapped.scheme

    @property
    def mapper(self) -> RESTMapper:
        return self._wrapped.mapper

    @property
    def api_reader(self) -> Reader:
        return self._wrapped.api_reader

    @property
    def status(self) -> SubresourceClient:
        return self.subresource("status")

    def subresource(self, name: str) -> SubresourceClient:
        return _InterceptedSubresource(self._wrapped, self._hooks, name)

    async def get(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T:
        hook = self._hooks["get"]
        if hook is None:
            return await self._wrapped.get(kind, key, or_live=or_live)
        try:
            answer: T = await hook(self._wrapped, kind, key)
        except NotCachedError:
            if not or_live:
                raise
            return await self._wrapped.api_reader.get(kind, key)
        return answer

    async def find(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T | None:
        if self._hooks["get"] is None:
            return await self._wrapped.find(kind, key, or_live=or_live)
        try:
            return await self.get(kind, key, or_live=or_live)
        except OutsideCacheError:
            raise
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
    ) -> Items[T]:
        options = ListOptions(
            namespace=namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token
        )
        hook = self._hooks["list"]
        if hook is None:
            return await self._wrapped.list(kind, **options)
        return await hook(self._wrapped, kind, **options)

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        options = WatchOptions(namespace=namespace, labels=labels, fields=fields, resource_version=resource_version)
        hook = self._hooks["watch"]
        return self._wrapped.watch(kind, **options) if hook is None else hook(self._wrapped, kind, **options)

    async def create(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        options = WriteOptions(dry_run=dry_run, field_owner=field_owner, field_validation=field_validation)
        hook = self._hooks["create"]
        if hook is None:
            return await self._wrapped.create(obj, **options)
        answer: T = await hook(self._wrapped, obj, **options)
        return answer

    async def update(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        options = WriteOptions(dry_run=dry_run, field_owner=field_owner, field_validation=field_validation)
        hook = self._hooks["update"]
        if hook is None:
            return await self._wrapped.update(obj, **options)
        answer: T = await hook(self._wrapped, obj, **options)
        return answer

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
        options = PatchOptions(dry_run=dry_run, field_owner=field_owner, force=force, field_validation=field_validation)
        hook = self._hooks["patch"]
        if hook is None:
            return await self._wrapped.patch(obj, patch, **options)
        answer: T = await hook(self._wrapped, obj, patch, **options)
        return answer

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        options = ApplyOptions(dry_run=dry_run, field_owner=field_owner, force=force)
        hook = self._hooks["apply"]
        if hook is None:
            return await self._wrapped.apply(obj, **options)
        answer: T = await hook(self._wrapped, obj, **options)
        return answer

    async def delete(
        self,
        obj: object,
        *,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation: Propagation | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        options = DeleteOptions(
            dry_run=dry_run,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
        )
        hook = self._hooks["delete"]
        if hook is None:
            await self._wrapped.delete(obj, **options)
        else:
            await hook(self._wrapped, obj, **options)

    async def delete_all_of(
        self,
        kind: type[Any],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        options = DeleteAllOfOptions(
            namespace=namespace,
            labels=labels,
            fields=fields,
            dry_run=dry_run,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
        )
        hook = self._hooks["delete_all_of"]
        if hook is None:
            await self._wrapped.delete_all_of(kind, **options)
        else:
            await hook(self._wrapped, kind, **options)


class _InterceptedSubresource:
    def __init__(self, client: Client, hooks: _Hooks, name: str) -> None:
        self._client = client
        self._hooks = hooks
        self._name = name
        self._wrapped = client.subresource(name)

    async def get(self, obj: object, body: type[T]) -> T:
        hook = self._hooks["subresource_get"]
        if hook is None:
            return await self._wrapped.get(obj, body)
        answer: T = await hook(self._client, self._name, obj, body)
        return answer

    async def create(self, obj: object, body: T, *, dry_run: bool = False, field_owner: str = "") -> T:
        options = SubresourceCreateOptions(dry_run=dry_run, field_owner=field_owner)
        hook = self._hooks["subresource_create"]
        if hook is None:
            return await self._wrapped.create(obj, body, **options)
        answer: T = await hook(self._client, self._name, obj, body, **options)
        return answer

    async def update(
        self,
        obj: T,
        *,
        body: object | None = None,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        options = SubresourceUpdateOptions(
            body=body, dry_run=dry_run, field_owner=field_owner, field_validation=field_validation
        )
        hook = self._hooks["subresource_update"]
        if hook is None:
            return await self._wrapped.update(obj, **options)
        answer: T = await hook(self._client, self._name, obj, **options)
        return answer

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
        options = PatchOptions(dry_run=dry_run, field_owner=field_owner, force=force, field_validation=field_validation)
        hook = self._hooks["subresource_patch"]
        if hook is None:
            return await self._wrapped.patch(obj, patch, **options)
        answer: T = await hook(self._client, self._name, obj, patch, **options)
        return answer

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        options = ApplyOptions(dry_run=dry_run, field_owner=field_owner, force=force)
        hook = self._hooks["subresource_apply"]
        if hook is None:
            return await self._wrapped.apply(obj, **options)
        answer: T = await hook(self._client, self._name, obj, **options)
        return answer
