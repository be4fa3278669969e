"""The cached objects of one kind: writes the store, and then delivers each change to subscribers.

It stores bytes and metadata, updates the indexes, and only then adds the event to the buffer of each subscriber, so that a handler can read
the object of its event. The only user code here are transforms and index functions, and an error in them affects one object. It does not
know reflectors and versions; `informer` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Envelope, Metadata, envelope_of, metadata_of
from ctrlruntime.cache.managed_fields import cut_with_envelope
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.reflector import Change, Replaced
from ctrlruntime.cache.scope import Scope, Transform
from ctrlruntime.cache.store import Entry, Store
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.event import CreateEvent, DeleteEvent, Snapshot, UpdateEvent
from ctrlruntime.log import Logger

T = TypeVar("T", default=Any)

MAX_LOGGED = 100
"""The number of objects of a kind named in the log for a failing transform; the metric counts the others."""

_METADATA_ONLY: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")

TURN = 256
"""The number of objects handled in a row before other tasks run, so that a long list does not delay reconciles and leases."""


class CacheMetrics(Protocol):
    """The counters of an informer, such as `metrics.cache(kind)`."""

    objects: float
    size_bytes: float
    subscribers: float
    relists: float
    watch_restarts: dict[str, float]
    events_coalesced: float
    decode_errors: float
    filtered: float | None
    server_ranges: float | None
    silence: Callable[[], float] | None


class _Subscriber(NamedTuple):
    subscription: Subscription[Any]
    decode: Callable[[bytes], Any]


class _List:
    """A list that is being received in pages."""

    __slots__ = ("changed", "fills", "is_initial", "missing", "taken")

    def __init__(self, *, is_initial: bool, fills: bool, missing: set[tuple[str, str]]) -> None:
        self.is_initial = is_initial
        """No reader uses the scope yet: its objects are stored as they arrive."""
        self.fills = fills
        """It brings objects that were left out before: they are those of an initial list."""
        self.missing = missing
        """The stored objects that were not in a page so far."""
        self.changed: list[Entry] = []
        """The objects to store when the list is complete and known to be the newest."""
        self.taken = 0


class Contents:
    """The stored objects of one kind and their subscribers."""

    def __init__(
        self,
        kind: GroupVersionKind,
        log: Logger,
        *,
        metadata_only: bool = False,
        keep_managed_fields: bool = False,
        keeps: Callable[[Metadata], bool] | None = None,
        observer: CacheObserver | None = None,
        on_other_scope: Callable[[], None] = lambda: None,
        metrics: CacheMetrics | None = None,
    ) -> None:
        self.store = Store()
        self.namespaced: bool | None = None
        """Whether the kind is namespaced, as far as known.

        An object that contradicts it shows that the CRD was replaced.
        """

        self._on_other_scope = on_other_scope
        self.is_synced = False
        self._kind = kind
        self._api_version = kind.api_version
        self._metadata_only = metadata_only
        self._keep_managed_fields = keep_managed_fields
        self._keeps = keeps
        self._observer = observer
        self._metrics = metrics
        self._scope_of: dict[str, Scope] = {}
        """The scopes by their namespace."""

        self._transforms = 0
        """How many scopes have a transform."""

        self._lists: dict[Scope, _List] = {}
        self._subscribers: list[_Subscriber] = []
        self._coalesced = 0
        self.filtered = 0
        """The number of objects that were not stored, because other replicas have them."""

        self._is_stopped = False
        self._bad: set[tuple[str, str]] = set()
        self._skipped = 0
        self._log = log

    @property
    def holds_whole_objects(self) -> bool:
        """Whether complete objects are stored, except for managedFields."""
        return not self._metadata_only and not self._transforms

    # --- scopes ----------------------------------------------------------------------------------------------------

    def hold(self, scope: Scope) -> None:
        """Store the objects of a scope with its options."""
        self._scope_of[scope.namespace] = scope
        self._transforms += scope.transform is not None

    def drop(self, scope: Scope) -> int:
        """Free the objects of a scope, and deliver them as deleted with an unknown state.

        Return their number.
        """
        del self._scope_of[scope.namespace]
        self._transforms -= scope.transform is not None
        self.abandon_list(scope)
        keys = self._keys(scope)
        self._remove_missing(keys)
        return len(keys)

    def _keeping(self, namespace: str) -> Scope | None:
        """Return the scope whose options hold for objects of a namespace."""
        return self._scope_of.get(namespace) or self._scope_of.get("")

    def mark_synced(self) -> None:
        """Record that every scope was listed once, and notify the subscribers."""
        self.is_synced = True
        for subscriber in self._subscribers:
            subscriber.subscription.put_synced()

    async def show_again(self, period: float) -> None:
        """Deliver each object of the scopes with this sync period as an update without a change."""
        if self._observer is not None:
            self._observer.showing_again(self._kind)
        for count, entry in enumerate(list(self.store), 1):
            if count % TURN == 0:
                await asyncio.sleep(0)
            scope = self._keeping(entry.meta.namespace)
            if scope is None or scope.sync_period != period:
                continue
            if self.store.get(entry.meta.namespace, entry.meta.name) is entry:
                self._deliver_update(entry, entry)

    # --- subscribers -----------------------------------------------------------------------------------------------

    def subscribe(self, name: str, decode: Callable[[bytes], T]) -> Subscription[T]:
        """Return a subscription that first gets each stored object as a create event, then every change."""
        subscription: Subscription[T] = Subscription(name, on_stop=self._forget, on_show=self._show)
        if self._is_stopped:
            subscription.stop()
            return subscription
        for entry in self.store:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), is_in_initial_list=True))
        if self.is_synced:
            subscription.put_synced()
        self._subscribers.append(_Subscriber(subscription, decode))
        self._count_subscribers()
        return subscription

    async def _show(self, subscription: Subscription[Any], wanted: Callable[[Metadata], bool]) -> None:
        (decode,) = [one.decode for one in self._subscribers if one.subscription is subscription]
        for count, entry in enumerate(list(self.store), 1):
            if count % TURN == 0:
                await asyncio.sleep(0)
            # An object that was changed or deleted meanwhile has its own event.
            if wanted(entry.meta) and self.store.get(entry.meta.namespace, entry.meta.name) is entry:
                subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), is_in_initial_list=True))

    def _forget(self, subscription: Subscription[Any]) -> None:
        self._coalesced += subscription.coalesced
        self._subscribers = [s for s in self._subscribers if s.subscription is not subscription]
        self._count_subscribers()

    def _count_subscribers(self) -> None:
        if self._metrics is not None:
            self._metrics.subscribers = len(self._subscribers)

    def adopt(self, other: Contents) -> None:
        """Take over the subscribers of other contents of the kind, and deliver the differences between the two stores.

        This store must have seen everything that the other has.
        """
        subscribers, other._subscribers = other._subscribers, []
        other._metrics = None  # the counters of the kind are ours from here on
        for subscriber in subscribers:
            subscription, decode = subscriber
            for entry in self.store:
                known = other.store.get(entry.meta.namespace, entry.meta.name)
                snapshot = Snapshot(entry.raw, entry.meta, decode)
                if known is not None and known.meta.uid != entry.meta.uid:
                    subscription.put(DeleteEvent(Snapshot(known.raw, known.meta, decode), delete_state_unknown=True))
                    known = None
                if known is None:
                    subscription.put(CreateEvent(snapshot, is_in_initial_list=not other.is_synced))
                elif known.meta.resource_version != entry.meta.resource_version:
                    subscription.put(UpdateEvent(Snapshot(known.raw, known.meta, decode), snapshot))
            for known in other.store:
                if self.store.get(known.meta.namespace, known.meta.name) is None:
                    subscription.put(DeleteEvent(Snapshot(known.raw, known.meta, decode), delete_state_unknown=True))
            if self.is_synced:
                subscription.put_synced()
            subscription.transfer(self._forget, self._show)
            self._subscribers.append(subscriber)
        self._count_subscribers()

    @property
    def subscribers(self) -> list[str]:
        """The names of the subscribers."""
        return [subscriber.subscription.name for subscriber in self._subscribers]

    @property
    def coalesced(self) -> int:
        """The number of merged events, including those of former subscribers."""
        return self._coalesced + sum(s.subscription.coalesced for s in self._subscribers)

    def stop(self) -> None:
        """End every subscription, including later ones."""
        self._is_stopped = True
        for subscriber in list(self._subscribers):
            subscriber.subscription.stop()

    # --- writing the store -----------------------------------------------------------------------------------------

    def abandon_list(self, scope: Scope) -> None:
        """Drop the pages of an unfinished list."""
        self._lists.pop(scope, None)

    async def take_page(
        self, scope: Scope, number: int, items: list[bytes], *, is_initial: bool, fills: bool = False
    ) -> None:
        """Add a page of a list.

        `is_initial`: it is the first list of the scope, which is stored as it arrives. `fills`: it brings objects that were left out before.
        """
        await self._take(self._list(scope, number, is_initial=is_initial, fills=fills), items)

    def _list(self, scope: Scope, number: int, *, is_initial: bool, fills: bool) -> _List:
        """Return the list that a page of this number belongs to."""
        if number == 0:
            self._lists[scope] = _List(is_initial=is_initial, fills=fills, missing=self._keys(scope))
        return self._lists[scope]

    async def _take(self, listing: _List, items: list[bytes]) -> None:
        for position, raw in enumerate(items):
            listing.taken += 1
            if listing.taken % TURN == 0:
                await asyncio.sleep(0)
            items[position] = b""  # the page's copy goes as the store's comes
            entry = self._entry_to_store(raw)
            if entry is None:
                continue
            if listing.is_initial:
                self._put(entry, is_listed=True, initial=True)
            elif self._is_new(entry):
                listing.changed.append(entry)
            if listing.missing:
                listing.missing.discard((entry.meta.namespace, entry.meta.name))

    async def replace(self, scope: Scope, listed: Replaced, *, is_initial: bool, fills: bool = False) -> None:
        """Make the store equal to a complete list.

        A missing object becomes a delete event with an unknown state.
        """
        listing = self._list(scope, listed.pages, is_initial=is_initial, fills=fills)
        await self._take(listing, listed.items)
        self.abandon_list(scope)
        for count, entry in enumerate(listing.changed, 1):
            if count % TURN == 0:
                await asyncio.sleep(0)
            self._put(entry, is_listed=True, initial=listing.fills)
        for change in listed.changes:
            meta = self.change(change)
            if meta is not None:
                listing.missing.discard((meta.namespace, meta.name))
        self._remove_missing(listing.missing)

    def _remove_missing(self, keys: set[tuple[str, str]]) -> None:
        for namespace, name in keys:
            old = self.store.remove(namespace, name)
            if old is not None:
                self._deliver_delete(old, delete_state_unknown=True)

    def _is_new(self, entry: Entry) -> bool:
        """Whether the store has not this version of an object."""
        meta = entry.meta
        old = self.store.get(meta.namespace, meta.name)
        if old is None or old.meta.uid != meta.uid:
            return True
        return old.meta.resource_version != meta.resource_version or not meta.resource_version

    def _keys(self, scope: Scope) -> set[tuple[str, str]]:
        keys = self.store.keys(scope.namespace)
        return {key for key in keys if key[0] not in scope.besides} if scope.besides else keys

    def change(self, change: Change) -> Metadata | None:
        """Store a change of a watch.

        Return the metadata of the object, or None if it was skipped.
        """
        entry = self._entry_to_store(change.raw)
        if entry is None:
            return None
        if self._observer is not None and not self._metadata_only:
            self._observer.changed(self._kind, entry.meta, change.raw)
        if change.type == "DELETED":
            self._remove(entry)
        else:
            self._put(entry, is_listed=False, initial=False)
        return entry.meta

    def _put(self, entry: Entry, *, is_listed: bool, initial: bool) -> None:
        meta = entry.meta
        is_kept = self._keeps is None or self._keeps(meta)
        if is_kept or self.store.get(meta.namespace, meta.name) is not None:
            self._update(entry, is_listed=is_listed, initial=initial)
        if not is_kept:
            # A child that has another owner now, or an object whose slot has moved: its last change was delivered.
            self.store.remove(meta.namespace, meta.name)

    def _update(self, entry: Entry, *, is_listed: bool, initial: bool) -> None:
        meta = entry.meta
        if (not meta.namespace) is self.namespaced:
            self.namespaced = bool(meta.namespace)
            self._on_other_scope()
        old = self.store.get(meta.namespace, meta.name)
        if old is None:
            self.store.put(entry)
            self._deliver_create(entry, initial=initial)
            return
        if not is_listed and _is_older(meta, old.meta):
            # A watch that repeats itself: what we have seen since must not be taken back. A list is the truth.
            return
        if old.meta.uid != meta.uid:
            # The deletion of the former object was missed; whoever keeps state by uid has to hear of it.
            self.store.put(entry)
            self._deliver_delete(old, delete_state_unknown=True)
            self._deliver_create(entry, initial=False)
        elif old.meta.resource_version != meta.resource_version or not meta.resource_version:
            self.store.put(entry)
            self._deliver_update(old, entry)

    def _remove(self, entry: Entry) -> None:
        meta = entry.meta
        old = self.store.get(meta.namespace, meta.name)
        if old is None:
            return
        if old.meta.uid == meta.uid:
            self.store.remove(meta.namespace, meta.name)
            self._deliver_delete(entry, delete_state_unknown=False)
        elif not _is_older(meta, old.meta):
            # Another life ended, which we never saw begin: so ours had ended before.
            self.store.remove(meta.namespace, meta.name)
            self._deliver_delete(old, delete_state_unknown=True)

    def _deliver_create(self, entry: Entry, *, initial: bool) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), initial))

    def _deliver_update(self, old: Entry, new: Entry) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(UpdateEvent(Snapshot(old.raw, old.meta, decode), Snapshot(new.raw, new.meta, decode)))

    def _deliver_delete(self, entry: Entry, *, delete_state_unknown: bool) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(DeleteEvent(Snapshot(entry.raw, entry.meta, decode), delete_state_unknown))

    async def release(self) -> int:
        """Remove the objects that are not kept any more, without an event. Return their number."""
        count = 0
        for position, entry in enumerate(list(self.store), 1):
            if position % TURN == 0:
                await asyncio.sleep(0)
            meta = entry.meta
            if self._keeps is None or self._keeps(meta) or self.store.get(meta.namespace, meta.name) is not entry:
                continue
            self.store.remove(meta.namespace, meta.name)
            count += 1
        return count

    def _entry_to_store(self, raw: bytes) -> Entry | None:
        """Return the entry of an object, or None if it is not kept, or has no readable metadata."""
        if self._keeps is not None:
            try:
                meta = metadata_of(raw)
            except ValueError:
                return self.entry(raw)  # which says what is wrong
            # The last change of an object that is in the store still has its event.
            if not self._keeps(meta) and self.store.get(meta.namespace, meta.name) is None:
                self.filtered += 1
                return None
        return self.entry(raw)

    def entry(self, raw: bytes) -> Entry | None:
        """Return the entry of an object, or None without readable metadata, because it has no key then."""
        try:
            cut, envelope = (raw, envelope_of(raw)) if self._keep_managed_fields else cut_with_envelope(raw)
        except ValueError as error:
            self._skip("object without readable metadata skipped", error=str(error), bytes=len(raw))
            return None
        if (envelope.kind != self._kind.kind or envelope.api_version != self._api_version) and self._is_other(envelope):
            self._skip(
                "object of another kind skipped",
                object=str(envelope.metadata.key),
                found=f"{envelope.api_version}, Kind={envelope.kind}",
                hint="see which proxy or aggregated API server answers the requests for this kind",
            )
            return None
        entry = Entry(cut, envelope.metadata)
        scope = self._keeping(entry.meta.namespace) if self._transforms else None
        return entry if scope is None or scope.transform is None else self._transformed(entry, scope.transform)

    def _is_other(self, envelope: Envelope) -> bool:
        """Whether an object says that it is of another kind."""
        if not envelope.kind and not envelope.api_version:
            return False  # an item of a list, which says it for all of them
        return not (self._metadata_only and (envelope.api_version, envelope.kind) == _METADATA_ONLY)

    def _skip(self, event: str, **fields: object) -> None:
        """Count an object that cannot be stored, and log it unless there were many."""
        self._failed_to_decode()
        if self._skipped < MAX_LOGGED:
            self._log.error(event, **fields)
        self._skipped += 1

    def _transformed(self, entry: Entry, transform: Transform) -> Entry:
        """Return the transformed entry; the untransformed one where the transform fails: it is user code."""
        key = (entry.meta.namespace, entry.meta.name)
        try:
            raw = msgspec.json.encode(transform(msgspec.json.decode(entry.raw)))
            meta = metadata_of(raw)
            if _identity(meta) != _identity(entry.meta):
                raise ValueError(
                    "cannot store the result of the transform: it must keep name, namespace, uid and resourceVersion"
                )
        except Exception as error:  # noqa: BLE001 - the other objects must not wait for this one
            self._failed_to_decode()
            if key not in self._bad and len(self._bad) < MAX_LOGGED:
                self._bad.add(key)
                self._log.warning(
                    "transform failed, caching the object unchanged", object=str(entry.meta.key), error=repr(error)
                )
            return entry
        self._bad.discard(key)
        return Entry(raw, meta)

    def _failed_to_decode(self) -> None:
        if self._metrics is not None:
            self._metrics.decode_errors += 1


def _is_older(new: Metadata, old: Metadata) -> bool:
    a, b = new.resource_version, old.resource_version
    return a.isdecimal() and b.isdecimal() and int(a) < int(b)


def _identity(meta: Metadata) -> tuple[str, str, str, str]:
    return meta.namespace, meta.name, meta.uid, meta.resource_version
