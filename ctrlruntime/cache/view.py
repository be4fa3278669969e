"""The view of one informer for reads: its current objects, and the same objects read live.

A cached read that must not be older than this process's own writes uses it (`ctrlruntime.client.gate`). A live read uses the informer's own
namespaces and selectors, applies its transform, and uses its indexes. So it returns what an up-to-date cache would return, and needs no
other permission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.part import Part
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Store
from ctrlruntime.client.marks import NOT_CACHED, WHOLE, Key, Listing
from ctrlruntime.rest.collection import Collection
from ctrlruntime.selector import LabelSelector, from_fields

Collections: TypeAlias = Callable[[Scope, bool], Awaitable[Collection]]
"""Returns the collection of a scope; True: of metadata only."""


class KindView:
    """See `ctrlruntime.client.gate.InformerView`."""

    __slots__ = ("_collections", "_part", "_scopes_now", "informer", "metadata_only")

    def __init__(
        self,
        informer: Informer,
        collections: Collections,
        *,
        metadata_only: bool,
        scopes: Callable[[], Iterable[Scope]],
        part: Callable[[], Part | None],
    ) -> None:
        self.informer = informer
        self.metadata_only = metadata_only
        self._collections = collections
        self._scopes_now = scopes
        self._part = part
        """Returns the part of the kind that is cached for sharded controllers, here or in another informer."""

    # --- what it shows -------------------------------------------------------------------------------------------------

    def position(self, namespace: str) -> int:
        informer = self.informer
        if not informer.has_scopes or (namespace and not informer.has_namespace(namespace)):
            return NOT_CACHED  # what is not cached, or not listed so far, is not read from here before a list
        return informer.version(namespace)

    def entry(self, namespace: str, name: str) -> Metadata | None:
        found = self.informer.store.get(namespace, name)
        return None if found is None else found.meta

    def entries(self, namespace: str) -> Iterable[Metadata]:
        return [entry.meta for entry in self.informer.store.select(namespace)]

    def covers(self, namespace: str, meta: Metadata | None) -> bool:
        return self.informer.covers(namespace, meta)

    @property
    def is_part(self) -> bool:
        return self.informer.part is not None

    @property
    def is_filtered_by_fields(self) -> bool:
        return any(scope.selects_fields for scope in self.informer.scopes)

    def changed(self) -> Coroutine[Any, Any, object]:
        return self.informer.changed()

    def refresh(self, namespace: str) -> None:
        self.informer.refresh(namespace)

    # --- the server ------------------------------------------------------------------------------------------------------

    async def compare(self, key: Key) -> Listing:
        """List the metadata of a key, or of a namespace (its name is WHOLE.

        "" = all). Raises: CtrlError.
        """
        versions: dict[Key, str] = {}
        kept: set[Key] = set()
        positions: list[str] = []
        part = self._part()
        for scope in self._scopes(*key):
            items, position = await (await self._collections(scope, True)).all()
            for meta in map(metadata_of, items):
                versions[meta.key] = meta.resource_version
                if part is not None and part.keeps(meta):
                    kept.add(meta.key)
            positions.append(position)
        return Listing(_least(positions), versions, None if part is None else frozenset(kept))

    async def fetch(self, namespace: str, name: str = WHOLE, labels: LabelSelector | None = None) -> tuple[Store, str]:
        """Return a store with objects from the server, the informer's indexes, and its version.

        One object is read even if the informer has only a part of the kind, without it. Raises: CtrlError.
        """
        part = self.informer.part if name == WHOLE else None
        store = self.informer.store.new_like_this()
        positions: list[str] = []
        for scope in self._scopes(namespace, name, labels):
            items, position = await (await self._collections(scope, self.metadata_only)).all()
            for raw in items:
                entry = self.informer.entry(raw)
                if entry is not None and (part is None or part.keeps(entry.meta)):
                    store.put(entry)
            positions.append(position)
        return store, _least(positions)

    def _scopes(self, namespace: str, name: str, labels: LabelSelector | None = None) -> Iterator[Scope]:
        """Return the informer's scopes, restricted to a namespace, a name and labels."""
        for scope in self._scopes_now():
            if namespace and not scope.holds(namespace):
                continue
            terms = [scope.fields, str(from_fields({"metadata.name": name})) if name != WHOLE else ""]
            selectors = [one for one in (scope.labels, labels) if one is not None]
            yield replace(
                scope,
                namespace=namespace or scope.namespace,
                labels=None if not selectors else selectors[0] if len(selectors) == 1 else selectors[0] & selectors[1],
                fields=",".join(term for term in terms if term),
            )


def _least(positions: list[str]) -> str:
    """Return the version all of several lists have: that of the earliest."""
    return min(positions, key=lambda text: int(text) if text.isdecimal() else -1, default="")
