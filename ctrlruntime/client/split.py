"""The manager's client: reads from the cache, writes to the server, and reads that are never older than this process's own writes.

Live whatever happens: subresources, kinds in `live_kinds`, and a read whose marks the cache does not pass in time (see `gate`). Unstructured
kinds are read from the cache too: there is one store for all representations of a kind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection
from typing import Any

from typing_extensions import TypeVar, override

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.api.object import Object
from ctrlruntime.api.object import key as key_of
from ctrlruntime.client.api import APIClient
from ctrlruntime.client.codec import Codecs, refuse_text_key
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.interfaces import (
    Fields,
    Items,
    Labels,
    Reader,
    SubresourceClient,
)
from ctrlruntime.client.wrapped import WrappedClient
from ctrlruntime.errors import CtrlError, NotCachedError, NotFound, OutsideCacheError

T = TypeVar("T")


class SplitClient(WrappedClient):
    """A `Client` that reads through `cache` and writes through `api`.

    `live_kinds`: classes whose reads go to the server. `reads_live` says the same of a class at the moment it is read.
    """

    def __init__(
        self,
        api: APIClient,
        cache: Reader,
        gate: Gate,
        *,
        live_kinds: Collection[type[Any]] = (),
        reads_live: Callable[[type[Any]], bool] | None = None,
    ) -> None:
        super().__init__(api)
        self._api = api
        self._cache = cache
        self._gate = gate
        self._codecs = Codecs(api.scheme)
        self._reads_live = reads_live
        self._live: frozenset[GroupVersionKind] = frozenset(self._codecs.of(kind).gvk for kind in live_kinds)

    @override
    async def get(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T:
        gvk = self._codecs.of(kind).gvk
        refuse_text_key(kind, key)
        if self._is_live(gvk, kind):
            return await self._api.get(kind, key)
        if not await self._gate.settle(gvk, key.namespace, key.name):
            return await self._get_live(kind, gvk, key)
        try:
            return await self._cache.get(kind, key)
        except NotCachedError:
            if not or_live:
                raise
        return await self._api.get(kind, key)

    @override
    def subresource(self, name: str) -> SubresourceClient:
        return self._api.subresource(name)  # nothing is changed on the way

    @override
    async def find(self, kind: type[T], key: ObjectKey, *, or_live: bool = False) -> T | None:
        try:
            return await self.get(kind, key, or_live=or_live)
        except OutsideCacheError:
            raise
        except NotFound:
            return None

    def _is_live(self, gvk: GroupVersionKind, kind: type[Any]) -> bool:
        return (bool(self._live) and gvk in self._live) or (self._reads_live is not None and self._reads_live(kind))

    @override
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
        if self._is_live(gvk, kind) or continue_token:
            return await self._api.list(
                kind, namespace=namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token
            )
        # An index the server does not know cannot be asked there: such a read stays with the cache after the wait.
        if await self._gate.settle(gvk, namespace or "") or fields is not None:
            return await self._cache.list(kind, namespace=namespace, labels=labels, fields=fields, limit=limit)
        since = self._gate.losses
        items = await self._api.list(kind, namespace=namespace, labels=labels, limit=limit)
        self._gate.settled_live(gvk, namespace or "", None, items.resource_version, since=since)
        return items

    async def _get_live(self, kind: type[T], gvk: GroupVersionKind, key: ObjectKey) -> T:
        since = self._gate.losses
        try:
            obj = await self._api.get(kind, key)
        except NotFound:
            if not self._gate.settled_live(gvk, key.namespace, key.name, "", since=since):
                # There is no version in "not found"; a list says at which the object was gone.
                with contextlib.suppress(CtrlError):
                    page = await self._api.list(kind, namespace=key.namespace or None, limit=1)
                    self._gate.settled_live(gvk, key.namespace, key.name, page.resource_version, since=since)
            raise
        if isinstance(obj, Object):
            self._gate.settled_live(gvk, *key_of(obj), obj.metadata.resource_version, since=since)
        return obj
