"""The manager's client: reads from the cache, writes to the server, and reads that are never older than this process's own writes.

Live whatever happens: subresources, kinds in `live_kinds`, and a read whose marks the cache does not pass in time (see `gate`). Unstructured
kinds are read from the cache too: there is one store for all representations of a kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from typing_extensions import TypeVar

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.api.object import Object
from ctrlruntime.api.object import key as key_of
from ctrlruntime.client.api import APIClient
from ctrlruntime.client.codec import Codecs
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.interfaces import (
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
from ctrlruntime.errors import NotFound
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.scheme import Scheme

T = TypeVar("T")


class SplitClient:
    """A `Client` that reads through `cache` and writes through `api`. `live_kinds`: classes whose reads go to the server."""

    def __init__(self, api: APIClient, cache: Reader, gate: Gate, *, live_kinds: Collection[type[Any]] = ()) -> None:
        self._api = api
        self._cache = cache
        self._gate = gate
        self._codecs = Codecs(api.scheme)
        self._live: frozenset[GroupVersionKind] = frozenset(self._codecs.of(kind).gvk for kind in live_kinds)

    @property
    def scheme(self) -> Scheme:
        return self._api.scheme

    @property
    def mapper(self) -> RESTMapper:
        return self._api.mapper

    @property
    def api_reader(self) -> Reader:
        return self._api

    # --- reads ---------------------------------------------------------------------------------------------------------

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        gvk = self._codecs.of(kind).gvk
        if self._live and gvk in self._live:
            return await self._api.get(kind, key)
        if await self._gate.settle(gvk, key.namespace, key.name):
            return await self._cache.get(kind, key)
        return await self._get_live(kind, gvk, key)

    async def find(self, kind: type[T], key: ObjectKey) -> T | None:
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
    ) -> Items[T]:
        gvk = self._codecs.of(kind).gvk
        live = gvk in self._live or bool(continue_token)
        if not live:
            # An index the server does not know cannot be asked there: such a read stays with the cache after the wait.
            live = not await self._gate.settle(gvk, namespace or "") and fields is None
        reader: Reader = self._api if live else self._cache
        return await reader.list(
            kind, namespace=namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token
        )

    async def _get_live(self, kind: type[T], gvk: GroupVersionKind, key: ObjectKey) -> T:
        try:
            obj = await self._api.get(kind, key)
        except NotFound:
            self._gate.settled_live(gvk, key.namespace, key.name, "")
            raise
        if isinstance(obj, Object):
            self._gate.settled_live(gvk, *key_of(obj), obj.metadata.resource_version)
        return obj

    # --- everything else is live --------------------------------------------------------------------------------------------

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        return self._api.watch(
            kind, namespace=namespace, labels=labels, fields=fields, resource_version=resource_version
        )

    @property
    def status(self) -> SubresourceClient:
        return self._api.status

    def subresource(self, name: str) -> SubresourceClient:
        return self._api.subresource(name)

    async def create(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        return await self._api.create(obj, dry_run=dry_run, field_owner=field_owner, field_validation=field_validation)

    async def update(
        self, obj: T, *, dry_run: bool = False, field_owner: str = "", field_validation: FieldValidation | None = None
    ) -> T:
        return await self._api.update(obj, dry_run=dry_run, field_owner=field_owner, field_validation=field_validation)

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
        return await self._api.patch(
            obj, patch, dry_run=dry_run, field_owner=field_owner, force=force, field_validation=field_validation
        )

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        return await self._api.apply(obj, field_owner=field_owner, force=force, dry_run=dry_run)

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
        await self._api.delete(
            obj,
            dry_run=dry_run,
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
        await self._api.delete_all_of(
            kind,
            namespace=namespace,
            labels=labels,
            fields=fields,
            dry_run=dry_run,
            grace_period_seconds=grace_period_seconds,
            propagation=propagation,
        )
