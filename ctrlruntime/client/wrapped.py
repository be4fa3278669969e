"""A client that wraps another: it forwards every call, and subclasses change options, keys or objects.

`interfaces` documents the methods. All of them use `_call`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from typing_extensions import TypeVar, Unpack

from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.client.interfaces import Client, Fields, Labels, ListResult, Reader, SubresourceClient, WatchEvent
from ctrlruntime.client.options import (
    ApplyOptions,
    DeleteAllOfOptions,
    DeleteOptions,
    PatchOptions,
    SubresourceCreateOptions,
    SubresourceUpdateOptions,
    WatchOptions,
    WriteOptions,
)
from ctrlruntime.client.patches import Patch
from ctrlruntime.client.unchanged import UnchangedWrites, unchanged_writes_of
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.scheme import Scheme

T = TypeVar("T")


class WrappedReader:
    """Forwards reads. Subclasses change the key or the namespace."""

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

    @property
    def unchanged_writes(self) -> UnchangedWrites:
        return unchanged_writes_of(self._wrapped)

    async def bound_key(self, kind: type[Any], key: ObjectKey) -> ObjectKey:
        return key

    async def bound_namespace(self, kind: type[Any], namespace: str | None) -> str | None:
        return namespace

    async def get(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T:
        return await self._wrapped.get(kind, await self.bound_key(kind, key), live_fallback=live_fallback)

    async def get_or_none(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T | None:
        return await self._wrapped.get_or_none(kind, await self.bound_key(kind, key), live_fallback=live_fallback)

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
        space = await self.bound_namespace(kind, namespace)
        return await self._wrapped.list(
            kind, namespace=space, labels=labels, fields=fields, limit=limit, continue_token=continue_token
        )

    async def watch(self, kind: type[T], **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent[T]]:
        options["namespace"] = await self.bound_namespace(kind, options.get("namespace"))
        async for event in self._wrapped.watch(kind, **options):
            yield event


class WrappedClient(WrappedReader):
    """Forwards all calls.

    Subclasses change options or the object, or return a result themselves.
    """

    async def _prepare(self, obj: object) -> None:
        return

    async def _call(self, verb: str, *args: Any, subresource: str | None = None, options: Mapping[str, Any]) -> Any:
        """Make one call that writes (or reads a subresource): the object first among `args`, then the options the caller gave."""
        if verb != "delete_all_of":
            await self._prepare(args[0])
        target = self._wrapped if subresource is None else self._wrapped.subresource(subresource)
        return await getattr(target, verb)(*args, **options)

    @property
    def status(self) -> SubresourceClient:
        return self.subresource("status")

    def subresource(self, name: str) -> SubresourceClient:
        return _WrappedSubresource(self, name)

    async def create(self, obj: T, **options: Unpack[WriteOptions]) -> T:
        created: T = await self._call("create", obj, options=options)
        return created

    async def update(self, obj: T, **options: Unpack[WriteOptions]) -> T:
        updated: T = await self._call("update", obj, options=options)
        return updated

    async def patch(self, obj: T, patch: Patch, **options: Unpack[PatchOptions]) -> T:
        patched: T = await self._call("patch", obj, patch, options=options)
        return patched

    async def apply(self, obj: T, **options: Unpack[ApplyOptions]) -> T:
        applied: T = await self._call("apply", obj, options=options)
        return applied

    async def delete(self, obj: object, **options: Unpack[DeleteOptions]) -> None:
        await self._call("delete", obj, options=options)

    async def delete_all_of(self, kind: type[Any], **options: Unpack[DeleteAllOfOptions]) -> None:
        options["namespace"] = await self.bound_namespace(kind, options.get("namespace"))
        await self._call("delete_all_of", kind, options=options)

    async def call_subresource(self, name: str, verb: str, *args: Any, options: Mapping[str, Any]) -> Any:
        return await self._call(verb, *args, subresource=name, options=options)


class _WrappedSubresource:
    def __init__(self, client: WrappedClient, name: str) -> None:
        self._client = client
        self._name = name

    async def get(self, obj: object, body: type[T]) -> T:
        found: T = await self._client.call_subresource(self._name, "get", obj, body, options={})
        return found

    async def create(self, obj: object, body: T, **options: Unpack[SubresourceCreateOptions]) -> T:
        created: T = await self._client.call_subresource(self._name, "create", obj, body, options=options)
        return created

    async def update(self, obj: T, **options: Unpack[SubresourceUpdateOptions]) -> T:
        updated: T = await self._client.call_subresource(self._name, "update", obj, options=options)
        return updated

    async def patch(self, obj: T, patch: Patch, **options: Unpack[PatchOptions]) -> T:
        patched: T = await self._client.call_subresource(self._name, "patch", obj, patch, options=options)
        return patched

    async def apply(self, obj: T, **options: Unpack[ApplyOptions]) -> T:
        applied: T = await self._client.call_subresource(self._name, "apply", obj, options=options)
        return applied
