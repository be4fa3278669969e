"""What a cache shows of its work to diagnostics above it, which the cache does not know."""

from __future__ import annotations

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.cache.unreadable import Unreadable
from ctrlruntime.rest.mapper import APIResource


class CacheObserver:
    """Observes one cache. Override what you need; by default nothing happens.

    Methods are called synchronously on the event loop of the cache. They must be fast and must not raise.
    """

    def requesting(self, verb: str, resource: APIResource, namespace: str) -> None:
        """An informer is about to `list` or `watch` a namespace ("" = all)."""

    def changed(self, kind: GroupVersionKind, meta: Metadata, raw: bytes) -> None:
        """A watch brought a change; `raw` is the object as the server sent it. Not called for metadata-only informers."""

    def showing_again(self, kind: GroupVersionKind) -> None:
        """The objects of a kind are about to be delivered to all subscribers again, unchanged (`sync_period`)."""

    def unreadable(self, found: Unreadable) -> None:
        """An object does not fit the class a reader asked for; called once for each version of the object."""
