"""The first hand-over: from an informer to one subscriber.

The informer calls `put` for each change, right after it is stored; the subscriber's own task takes events in order. Nothing between them
awaits. If a subscriber is slow, events are merged by key instead of growing without limit: level-triggered users need the first old and the
last new state. A deletion followed by a creation stays two events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeAlias

from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.event import CreateEvent, DeleteEvent, Event, UpdateEvent

T = TypeVar("T", default=Any)

Show: TypeAlias = "Callable[[Subscription[Any], Callable[[Metadata], bool]], Awaitable[None]]"
"""Puts the stored objects that match into a subscription."""

MAX_EVENTS = 1_000
MAX_BYTES = 16 * 1024 * 1024


class Subscription(Generic[T]):
    """An ordered buffer of events for one subscriber.

    Use `get`, or `await ready()` and then `pop()` until None.

    `is_synced` becomes true when the initial list was put *and* all of it was handled: the subscriber calls `pop` again only after it has
    handled the previous event.

    Args:
        name: the subscriber, for logs.
        on_stop: called when the subscription is stopped.
        on_show: called by `show`.
        max_events: the number of events (without those of the initial list) above which they are merged by key.
        max_bytes: the same in bytes of the objects' JSON.

    """

    def __init__(
        self,
        name: str,
        *,
        on_stop: Callable[[Subscription[T]], None] | None = None,
        on_show: Show | None = None,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.name = name
        self.coalesced = 0
        self._events: deque[Event[T] | None] = deque()
        self._sizes: deque[int] = deque()
        """Bytes of each event that waits, in the same order."""

        # What the initial list brings stands in the store anyway and cannot be merged: its size is 0, it counts in neither sum.
        self._counted = 0
        self._bytes = 0
        self._least = (max_events, max_bytes)
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._wake = asyncio.Event()
        self._is_waited_for = False
        self._is_synced = False
        self._settled = asyncio.Event()
        self._has_marker = False
        self._stopped = False
        self._on_stop = on_stop
        self._on_show = on_show

    def __len__(self) -> int:
        return len(self._events)

    # --- the informer's side ---------------------------------------------------------------------------------------

    def put(self, event: Event[T]) -> None:
        """Append an event. Called only by the informer."""
        if self._stopped:
            return
        size = _size(event)
        self._events.append(event)
        self._sizes.append(size)
        if size:
            self._counted += 1
            self._bytes += size
            if self._counted > self._max_events or self._bytes > self._max_bytes:
                self._coalesce()
        if self._is_waited_for:
            self._wake.set()

    def put_synced(self) -> None:
        """Mark the end of the initial list.

        Called by the informer; only the first call counts.
        """
        if not self._has_marker and not self._stopped:
            self._has_marker = True
            self._events.append(None)
            self._sizes.append(0)
            self._wake.set()

    def transfer(self, on_stop: Callable[[Subscription[T]], None], on_show: Show) -> None:
        """Set another informer as the source of this subscription."""
        self._on_stop = on_stop
        self._on_show = on_show

    # --- the subscriber's side -------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        return self._is_synced

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    async def wait_for_sync(self) -> None:
        """Wait until the initial list was handled, or the subscription was stopped (see `is_stopped`)."""
        await self._settled.wait()

    async def show(self, wanted: Callable[[Metadata], bool]) -> None:
        """Get the stored objects that are wanted once more, as those of the initial list."""
        if self._on_show is not None and not self._stopped:
            await self._on_show(self, wanted)

    async def ready(self) -> bool:
        """Wait until there is an event. Return False if the subscription was stopped."""
        while not self._events:
            if self._stopped:
                return False
            self._wake.clear()
            self._is_waited_for = True
            await self._wake.wait()
        self._is_waited_for = False
        return not self._stopped

    def pop(self) -> Event[T] | None:
        """Return the next event, or None without one.

        The call means that the previous events were handled.
        """
        while self._events:
            event = self._events.popleft()
            size = self._sizes.popleft()
            if event is None:
                self._is_synced = True
                self._settled.set()
                continue
            if size:
                self._counted -= 1
                self._bytes -= size
                if not self._counted:
                    self._max_events, self._max_bytes = self._least
            return event
        return None

    async def get(self) -> Event[T] | None:
        """Wait for the next event; None if the subscription was stopped."""
        while await self.ready():
            if (event := self.pop()) is not None:
                return event
        return None

    def stop(self) -> None:
        """End the subscription: remaining events are dropped, waiting callers return, and the informer removes it.

        May be called twice.
        """
        if self._stopped:
            return
        self._stopped = True
        self._events.clear()
        self._sizes.clear()
        self._counted = self._bytes = 0
        self._wake.set()
        self._settled.set()
        if self._on_stop is not None:
            self._on_stop(self)

    def _coalesce(self) -> None:
        before = len(self._events)
        self._events = _merged(self._events)
        self.coalesced += before - len(self._events)
        self._sizes = deque(0 if event is None else _size(event) for event in self._events)
        self._counted, self._bytes = len(self._sizes) - self._sizes.count(0), sum(self._sizes)
        # Different keys cannot be merged: look again only when the backlog has doubled, or each put would cost a pass.
        self._max_events = max(self._least[0], 2 * self._counted)
        self._max_bytes = max(self._least[1], 2 * self._bytes)


def _merged(events: deque[Event[T] | None]) -> deque[Event[T] | None]:
    """Return the events with those of each key made one, or a deletion and the new life after it."""
    by_key: dict[tuple[str, str] | None, list[Event[T]]] = {}
    for event in events:
        if event is None:
            by_key[None] = []
        else:
            _append(by_key.setdefault((event.meta.namespace, event.meta.name), []), event)
    merged: deque[Event[T] | None] = deque()
    for key, kept in by_key.items():
        if key is None:
            merged.append(None)
        merged.extend(kept)
    return merged


def _append(kept: list[Event[T]], event: Event[T]) -> None:
    """Add an event to what is kept of its key: at most a deletion and one event of the life after it."""
    last = kept[-1] if kept else None
    match last, event:
        case None, _:
            kept.append(event)
        case DeleteEvent(), DeleteEvent():
            pass
        case DeleteEvent(), _:
            kept.append(event)
        case _, DeleteEvent():
            # A life that began and ended unheard of, after a deletion that is still to be told, is left out.
            kept[-1:] = [] if len(kept) > 1 else [event]
        case CreateEvent(), UpdateEvent():
            kept[-1] = CreateEvent(event.new_snapshot, last.is_in_initial_list)
        case UpdateEvent(), UpdateEvent():
            kept[-1] = UpdateEvent(last.old_snapshot, event.new_snapshot)
        case _:
            kept[-1] = event


def _size(event: Event[Any]) -> int:
    """Return the bytes an event holds on to; 0 for one of the initial list."""
    if isinstance(event, UpdateEvent):
        return len(event.old_snapshot.raw) + len(event.new_snapshot.raw)
    if isinstance(event, CreateEvent) and event.is_in_initial_list:
        return 0
    return len(event.snapshot.raw)
