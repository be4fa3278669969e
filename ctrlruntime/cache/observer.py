"""Reports events of a cache to diagnostics, which are in a higher layer."""

from __future__ import annotations

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.cache.unreadable import Unreadable
from ctrlruntime.rest.mapper import APIResource


class CacheObserver:
    """Observes one cache. Override methods; by default they do nothing.

    Methods are called synchronously on the event loop of the cache. They must be fast and must not raise.
    """

    def requesting(self, verb: str, resource: APIResource, namespace: str) -> None:
        """An informer is about to `list` or `watch` a namespace ("" = all)."""

    def changed(self, kind: GroupVersionKind, meta: Metadata, raw: bytes) -> None:
        """A watch delivered a change.

        `raw` is the object as the server sent it. Not called for metadata-only informers.
        """

    def showing_again(self, kind: GroupVersionKind) -> None:
        """A resync is about to deliver the objects of a kind to all subscribers (`sync_period`)."""

    def unreadable(self, found: Unreadable) -> None:
        """An object does not match the class of a reader; called once for each version of the object."""
