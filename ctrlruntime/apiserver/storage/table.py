"""One stored resource: its records, their history, and who watches it.

Records have bytes. A write replaces the record, appends an event and notifies the subscriptions, without an await in between, so it needs no
locks. Nothing is older than the history: a read of an older revision returns None.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ctrlruntime.apiserver.interfaces import Change, EventType

Key: TypeAlias = tuple[str, str]
_LARGEST_HISTORY = 128 * 1024 * 1024
"""Bytes of objects that the history of one resource keeps; what is older goes, whatever its number."""
_LARGEST_QUEUE = 64 * 1024 * 1024
"""Bytes of objects that may wait for one watcher."""


class Record:
    """One state of one object: its bytes in the version that wrote it, and what selectors ask for."""

    __slots__ = ("body", "key", "labels", "revision", "uid", "views", "writer")

    def __init__(
        self, key: Key, revision: int, body: bytes, writer: Any, labels: dict[str, str] | None = None, uid: str = ""
    ) -> None:
        self.key = key
        self.revision = revision
        self.body = body
        self.writer = writer
        self.labels = labels
        self.uid = uid
        self.views: dict[Any, Any] | None = None


class Event:
    """One write: `old` is the record before it (None for a create), `record` the one after (for a delete the last state)."""

    __slots__ = ("frames", "old", "record", "revision", "type")

    def __init__(self, type: EventType, record: Record, old: Record | None, revision: int) -> None:
        self.type = type
        self.record = record
        self.old = old
        self.revision = revision
        self.frames: dict[Any, bytes] | None = None


class Subscription:
    """A watcher's queue. When the watcher is too slow the queue is emptied, `closed` is set, and `cut` ends a write that hangs."""

    __slots__ = ("closed", "cut", "events", "key", "limit", "namespace", "size", "wake")

    def __init__(self, namespace: str, key: Key | None, limit: int) -> None:
        self.namespace = namespace
        self.key = key
        self.limit = limit
        self.events: deque[Event] = deque()
        self.size = 0
        self.wake = asyncio.Event()
        self.closed = False
        self.cut: Callable[[], object] = lambda: None

    def wants(self, key: Key) -> bool:
        if self.key is not None:
            return key == self.key
        return not self.namespace or key[0] == self.namespace

    def put(self, event: Event) -> None:
        if self.closed:
            return
        self.size += len(event.record.body)
        self.events.append(event)
        if len(self.events) > self.limit or self.size > _LARGEST_QUEUE:
            self.close()
            self.clear()
            self.cut()
        self.wake.set()

    def take(self) -> Event:
        event = self.events.popleft()
        self.size -= len(event.record.body)
        return event

    def clear(self) -> None:
        self.events.clear()
        self.size = 0

    def close(self) -> None:
        self.closed = True
        self.wake.set()


class Table:
    """All objects of one resource, by (namespace, name)."""

    def __init__(self, group: str, plural: str, *, history: int, revision: int) -> None:
        self.group = group
        self.plural = plural
        self.records: dict[Key, Record] = {}
        self.compacted = revision
        self._keys: list[Key] = []
        self._history: deque[Event] = deque()
        self._history_size = 0
        self._limit = history
        self._subscriptions: set[Subscription] = set()
        self._listeners: list[Callable[[Change], None]] = []

    def __len__(self) -> int:
        return len(self.records)

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def write(self, event: Event, change: Change | None) -> None:
        """Make the event's record the present state, remember the event and wake everybody."""
        key = event.record.key
        if event.type == "DELETED":
            del self.records[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if event.old is None:
                insort(self._keys, key)
            self.records[key] = event.record
        self._history.append(event)
        self._history_size += len(event.record.body)
        while len(self._history) > self._limit or self._history_size > _LARGEST_HISTORY:
            oldest = self._history.popleft()
            self._history_size -= len(oldest.record.body)
            self.compacted = oldest.revision
        for subscription in self._subscriptions:
            if subscription.wants(key):
                subscription.put(event)
        if change is not None:
            for listener in tuple(self._listeners):
                listener(change)

    def replace(self, records: Iterable[Record], revision: int) -> None:
        """Hold these records and nothing else, without events: watches end, and nothing before `revision` can be read."""
        self.close_subscriptions()
        self.forget_history(revision)
        self.records.clear()
        self.records.update((record.key, record) for record in records)
        self._keys[:] = sorted(self.records)

    def tell(self, change: Change) -> None:
        """Notify the listeners of a change without a write."""
        for listener in tuple(self._listeners):
            listener(change)

    def keys(self, namespace: str = "") -> Iterator[Key]:
        """Yield the keys in order, of one namespace or of all; the table must not change meanwhile."""
        if not namespace:
            return iter(self._keys)
        return iter(
            self._keys[bisect_left(self._keys, (namespace, "")) : bisect_left(self._keys, (namespace + "\0", ""))]
        )

    def read(
        self, namespace: str = "", *, start: Key | None = None, revision: int | None = None
    ) -> tuple[Iterator[Record], int] | None:
        """Return the records by key from `start` on, and their number; as they were at `revision`, or are. The table must not change meanwhile.

        None when the revision is out of the history. It costs as much as is read of it, and a look at each event since the revision.
        """
        if revision is not None and revision < self.compacted:
            return None
        first, last = (namespace, ""), (namespace + "\0", "")
        if start is not None:
            first = max(first, start)
        low = bisect_left(self._keys, first)
        high = bisect_left(self._keys, last) if namespace else len(self._keys)
        before: dict[Key, Record | None] = {}
        for event in (self.since(revision) or ()) if revision is not None else ():
            key = event.record.key
            if key >= first and (not namespace or key < last):
                before.setdefault(key, event.old)
        gone = sorted(key for key, record in before.items() if record is not None and key not in self.records)
        count = (
            max(0, high - low)
            + len(gone)
            - sum(1 for key, record in before.items() if record is None and key in self.records)
        )
        return self._merged(low, high, before, gone), count

    def _merged(
        self, low: int, high: int, before: Mapping[Key, Record | None], gone: Sequence[Key]
    ) -> Iterator[Record]:
        """Yield the records of a part of the keys, some as they were before, with those that are gone in their places."""
        at = 0
        for index in range(low, high):
            key = self._keys[index]
            while at < len(gone) and gone[at] < key:
                yield from _given(before[gone[at]])
                at += 1
            yield from _given(before[key] if key in before else self.records[key])
        for key in gone[at:]:
            yield from _given(before[key])

    def since(self, revision: int) -> list[Event] | None:
        """Return the events after `revision`; None when some of them are forgotten."""
        if revision < self.compacted:
            return None
        events: list[Event] = []
        for event in reversed(self._history):
            if event.revision <= revision:
                break
            events.append(event)
        events.reverse()
        return events

    def forget_history(self, revision: int) -> None:
        """Compact: nothing before `revision` can be read any more."""
        self._history.clear()
        self._history_size = 0
        self.compacted = revision

    def subscribe(self, namespace: str = "", key: Key | None = None, *, limit: int = 20_000) -> Subscription:
        subscription = Subscription(namespace, key, limit)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def close_subscriptions(self) -> int:
        """End every watch of this resource; return how many there were."""
        for subscription in self._subscriptions:
            subscription.close()
        return len(self._subscriptions)

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` with every change, in order, inside the write; return what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None


def _given(record: Record | None) -> tuple[Record, ...]:
    return () if record is None else (record,)
