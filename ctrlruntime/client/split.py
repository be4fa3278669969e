"""The manager's client: reads from the cache and writes to the server.

Reads include this process's own writes.

These reads are live: subresources, kinds in `disable_cache_for`, and reads for which the cache does not contain an own write in time (see
`gate`). The last use the cache's own namespaces and selectors, so that they return what the cache will return. Unstructured kinds are read
from the cache
too: one store serves all classes of a kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from typing_extensions import TypeVar, override

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.client.api import APIClient
from ctrlruntime.client.codec import Codecs, refuse_text_key
from ctrlruntime.client.gate import Gate, InformerView
from ctrlruntime.client.interfaces import (
    Fields,
    Labels,
    ListResult,
    Reader,
    SubresourceClient,
)
from ctrlruntime.client.wrapped import WrappedClient
from ctrlruntime.errors import APIStatusError, NamespaceNotCachedError, NotCachedError, NotFound, TransportError

T = TypeVar("T")


class CachedReader(Reader, Protocol):
    """The part of a cache that this client uses."""

    async def view(self, kind: type[Any], namespace: str) -> tuple[InformerView, str]:
        """Return the view of a kind after the namespace has synced, and the namespace ("" for a cluster-scoped kind)."""
        ...

    async def get_live(self, kind: type[T], key: ObjectKey) -> T:
        """Read live what an up-to-date cache would return."""
        ...

    async def list_live(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
    ) -> ListResult[T]:
        """List live what an up-to-date cache would return."""
        ...


class SplitClient(WrappedClient):
    """A `Client` that reads through `cache` and writes through `api`.

    Args:
        disable_cache_for: classes that are always read live. `reads_live` returns the same for a class at the time of a read.

    """

    def __init__(
        self,
        api: APIClient,
        cache: CachedReader,
        gate: Gate,
        *,
        disable_cache_for: Collection[type[Any]] = (),
        reads_live: Callable[[type[Any]], bool] | None = None,
    ) -> None:
        super().__init__(api)
        self._api = api
        self._cache = cache
        self._gate = gate
        self._codecs = Codecs(api.scheme)
        self._reads_live = reads_live
        self._live: frozenset[GroupVersionKind] = frozenset(self._codecs.of(kind).gvk for kind in disable_cache_for)

    @override
    async def get(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T:
        gvk = self._codecs.of(kind).gvk
        refuse_text_key(kind, key)
        if self._is_live(gvk, kind):
            return await self._api.get(kind, key)
        try:
            if self._gate.is_idle(gvk, key) or await self._is_settled(gvk, kind, key.namespace, key.name):
                return await self._cache.get(kind, key)
            return await self._read_live(gvk, key.namespace, key.name, self._cache.get_live(kind, key))
        except NotCachedError:
            if not live_fallback:
                raise
        return await self._api.get(kind, key)

    @override
    def subresource(self, name: str) -> SubresourceClient:
        return self._api.subresource(name)  # nothing is changed on the way

    @override
    async def get_or_none(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T | None:
        gvk = self._codecs.of(kind).gvk
        refuse_text_key(kind, key)
        if not live_fallback and self._gate.is_idle(gvk, key) and not self._is_live(gvk, kind):
            return await self._cache.get_or_none(
                kind, key
            )  # an exception for what is missing would cost more than the read
        try:
            return await self.get(kind, key, live_fallback=live_fallback)
        except NamespaceNotCachedError:
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
    ) -> ListResult[T]:
        gvk = self._codecs.of(kind).gvk
        if self._is_live(gvk, kind):
            return await self._api.list(
                kind, namespace=namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token
            )
        if continue_token or self._gate.is_idle(gvk) or await self._is_settled(gvk, kind, namespace or "", None):
            return await self._cache.list(
                kind, namespace=namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token
            )
        live = self._cache.list_live(kind, namespace=namespace, labels=labels, fields=fields, limit=limit)
        return await self._read_live(gvk, namespace or "", None, live)

    async def _is_settled(self, gvk: GroupVersionKind, kind: type[Any], namespace: str, name: str | None) -> bool:
        view, space = await self._cache.view(kind, namespace)
        return await self._gate.wait_until_visible(gvk, view, space, name)

    async def _read_live(self, gvk: GroupVersionKind, namespace: str, name: str | None, live: Awaitable[T]) -> T:
        try:
            return await live
        except NotFound:
            raise
        except (APIStatusError, TransportError) as error:
            raise self._gate.stale(gvk, namespace, name, error) from error
