"""A client around another: passes every call on, and lets a subclass change options, keys or objects on the way.

The split client, the scoped clients and whoever else adds one thing to a client build on `WrappedClient` and write only what differs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from typing_extensions import TypeVar

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
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.scheme import Scheme

T = TypeVar("T")


class WriteOptions(msgspec.Struct, frozen=True, gc=False):
    """What a write sends besides the object."""

    dry_run: bool = False
    field_owner: str = ""
    field_validation: FieldValidation | None = None


class WrappedReader:
    def __init__(self, wrapped: Client) -> None:
        self._wrapped = wrapped

    @property
    def scheme(self) -> Scheme:
        return self._wrapped.scheme

    @property
    def mapper(self) -> RESTMapper:
        return self._wrapped.mapper

    @property
    def api_reader(self) -> Reader:
        return self._wrapped.api_reader

    async def bound_key(self, kind: type[Any], key: ObjectKey) -> ObjectKey:
        return key

    async def bound_namespace(self, kind: type[Any], namespace: str | None) -> str | None:
        return namespace

    async def get(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T:
        return await self._wrapped.get(kind, await self.bound_key(kind, key), or_live=or_live)

    async def find(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T | None:
        return await self._wrapped.find(kind, await self.bound_key(kind, key), or_live=or_live)

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
        return await self._wrapped.list(
            kind,
            namespace=await self.bound_namespace(kind, namespace),
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
        )

    async def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        space = await self.bound_namespace(kind, namespace)
        async for event in self._wrapped.watch(
            kind, namespace=space, labels=labels, fields=fields, resource_version=resource_version
        ):
            yield event


class WrappedClient(WrappedReader):
    """Passes everything on; subclasses change options or the object on the way."""

    def _options(self, options: WriteOptions) -> WriteOptions:
        return options

    async def _prepare(self, obj: object) -> None:
        return

    @property
    def status(self) -> SubresourceClient:
        return self.subresource("status")

    def subresource(self, name: str) -> SubresourceClient:
        return _WrappedSubresource(self._wrapped.subresource(name), self._options, self._prepare)

    async def create(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner, field_validation))
        return await self._wrapped.create(
            obj, dry_run=o.dry_run, field_owner=o.field_owner, field_validation=o.field_validation
        )

    async def update(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner, field_validation))
        return await self._wrapped.update(
            obj, dry_run=o.dry_run, field_owner=o.field_owner, field_validation=o.field_validation
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
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner, field_validation))
        return await self._wrapped.patch(
            obj, patch, dry_run=o.dry_run, field_owner=o.field_owner, force=force, field_validation=o.field_validation
        )

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner))
        return await self._wrapped.apply(obj, field_owner=o.field_owner, force=force, dry_run=o.dry_run)

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
        await self._prepare(obj)
        await self._wrapped.delete(
            obj,
            dry_run=self._options(WriteOptions(dry_run)).dry_run,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
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
        propagation: Propagation | None = None,
    ) -> None:
        await self._wrapped.delete_all_of(
            kind,
            namespace=await self.bound_namespace(kind, namespace),
            labels=labels,
            fields=fields,
            dry_run=self._options(WriteOptions(dry_run)).dry_run,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
        )


class _WrappedSubresource:
    def __init__(
        self,
        wrapped: SubresourceClient,
        options: Callable[[WriteOptions], WriteOptions],
        prepare: Callable[[object], Awaitable[None]],
    ) -> None:
        self._wrapped = wrapped
        self._options = options
        self._prepare = prepare

    async def get(self, obj: object, body: type[T]) -> T:
        await self._prepare(obj)
        return await self._wrapped.get(obj, body)

    async def create(self, obj: object, body: T, *, dry_run: bool = False, field_owner: str = "") -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner))
        return await self._wrapped.create(obj, body, dry_run=o.dry_run, field_owner=o.field_owner)

    async def update(
        self,
        obj: T,
        *,
        body: object | None = None,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner, field_validation))
        return await self._wrapped.update(
            obj, body=body, dry_run=o.dry_run, field_owner=o.field_owner, field_validation=o.field_validation
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
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner, field_validation))
        return await self._wrapped.patch(
            obj, patch, dry_run=o.dry_run, field_owner=o.field_owner, force=force, field_validation=o.field_validation
        )

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        await self._prepare(obj)
        o = self._options(WriteOptions(dry_run, field_owner))
        return await self._wrapped.apply(obj, field_owner=o.field_owner, force=force, dry_run=o.dry_run)
