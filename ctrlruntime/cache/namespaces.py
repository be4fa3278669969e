"""The namespaces of a cache: set when it is created, added and removed later, or selected by labels.

A cache reads `current` when it plans its lists, and `on_change` is called when the set changes. A selector uses its own informer of
Namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio

from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.options import CacheOptions, NamespaceOptions, by_namespace, selecting
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import NotCachedError
from ctrlruntime.event import DeleteEvent
from ctrlruntime.selector import LabelSelector


class NamespaceSet:
    """The cached namespaces by name; `None` from `current` means all.

    `make_informer` returns an informer of the Namespaces with the given labels; `on_change` is called with a new set.
    """

    def __init__(
        self,
        options: CacheOptions,
        *,
        make_informer: Callable[[LabelSelector], Informer],
        on_change: Callable[[], None],
    ) -> None:
        self._given = by_namespace(options.namespaces)
        self._holds_all = options.namespace_selector is None and (not self._given or "" in self._given)
        self._make_informer = make_informer
        self._on_change = on_change
        self._follower: _Follower | None = None
        self._selected: frozenset[str] = frozenset()
        if options.namespace_selector is not None:
            self._follower = self._new_follower(selecting(options.namespace_selector))

    def current(self) -> Mapping[str, NamespaceOptions] | None:
        """Return the namespaces with their options, or None for all (or if the mapping of the options applies)."""
        if self._holds_all:
            return None
        return {**{name: NamespaceOptions() for name in sorted(self._selected)}, **self._given}

    def add(self, name: str, options: NamespaceOptions) -> None:
        """Add one. Raises: ValueError if all are cached, or for an empty name."""
        self._refuse_all(f"cannot add the namespace {name!r}")
        if not name:
            raise ValueError("cannot cache a namespace without a name. Leave out namespaces to cache all of them")
        self._given[name] = options
        self._on_change()

    def remove(self, name: str) -> None:
        """Remove one. Raises: ValueError if it was not added by name."""
        self._refuse_all(f"cannot remove the namespace {name!r}")
        if name not in self._given:
            why = (
                "is selected by its labels. Change them, or the selector" if name in self._selected else "is not cached"
            )
            raise ValueError(
                f"cannot remove the namespace {name!r}: it {why} (added by name: {', '.join(sorted(self._given)) or 'none'})"
            )
        del self._given[name]
        self._on_change()

    def select(self, labels: LabelSelector | None) -> _Follower | None:
        """Select by other labels, or by none. Return the coroutine that must run for it.

        The previous selection stays until the new one is known. Raises: ValueError if all are cached.
        """
        self._refuse_all("cannot select namespaces by labels")
        former, self._follower = self._follower, None if labels is None else self._new_follower(labels)
        if former is not None:
            former.stop()
        if self._follower is None:
            self._choose(frozenset())
        return self._follower

    @property
    def follower(self) -> _Follower | None:
        """The coroutine that must run while the cache runs, or None."""
        return self._follower

    async def settled(self) -> None:
        """Wait until the labels of the namespaces were read.

        Raises: as `Informer.wait_readable`.
        """
        while (follower := self._follower) is not None and not follower.is_known:
            try:
                await follower.wait_known()
            except NotCachedError:
                if follower is self._follower:
                    raise

    def _new_follower(self, labels: LabelSelector) -> _Follower:
        return _Follower(self._make_informer(labels), self._chosen)

    def _chosen(self, follower: _Follower) -> None:
        if follower is self._follower:
            self._choose(frozenset(follower.names))

    def _choose(self, names: frozenset[str]) -> None:
        if names != self._selected:
            self._selected = names
            self._on_change()

    def _refuse_all(self, what: str) -> None:
        if self._holds_all:
            raise ValueError(f"{what}: the cache has all namespaces. Create it with CacheOptions(namespaces=[…])")


class _Follower:
    """Keeps the names of the namespaces with some labels."""

    def __init__(self, informer: Informer, chosen: Callable[[_Follower], None]) -> None:
        self.names: set[str] = set()
        self.is_known = False
        self._informer = informer
        self._chosen = chosen
        self._known = anyio.Event()
        self._subscription: Subscription[Metadata] = informer.subscribe("namespace selector", metadata_of)

    async def run(self) -> None:
        """Run until stopped or cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._informer.run)
            while await self._subscription.ready():
                while (event := self._subscription.pop()) is not None:
                    if isinstance(event, DeleteEvent):
                        self.names.discard(event.meta.name)
                    else:
                        self.names.add(event.meta.name)
                if self._subscription.is_synced:
                    # First the set, then the word that it is known: whoever waits plans with it.
                    self._chosen(self)
                    self.is_known = True
                    self._known.set()

    async def wait_known(self) -> None:
        """Wait for the first list. Raises: as `Informer.wait_readable`."""
        await self._informer.wait_readable()
        await self._known.wait()

    def stop(self) -> None:
        self._informer.stop()
        self._known.set()
