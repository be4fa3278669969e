"""The first hand-over: from an informer's one writer to one subscriber.

The informer calls `put` for each change, right after its store has it; the subscriber's own task takes events out, in order. Nothing between
them awaits. A subscriber that falls behind is coalesced per key rather than kept growing: level-triggered users need the first old and the
last new state, and a deletion followed by a creation stays two events.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from typing_extensions import TypeVar

from ctrlruntime.event import CreateEvent, DeleteEvent, Event, Snapshot, UpdateEvent

T = TypeVar("T", default=Any)

MAX_EVENTS = 1_000
MAX_BYTES = 16 * 1024 * 1024


class Subscription(Generic[T]):
    """An ordered buffer of events for one subscriber; take with `get`, or `await ready()` and then `pop()` until it returns None.

    `is_synced` turns true when the informer's initial list has been put *and* everything of it was taken and marked by `pop` or `get`:
    the taker calls pop again only after it has handled the event before.
    """

    def __init__(self, name: str, *, on_stop: Callable[[Subscription[T]], None] | None = None) -> None:
        self.name = name
        self.coalesced = 0
        self._events: deque[Event[T] | None] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self._has_marker = False
        self._max_events = MAX_EVENTS
        self._max_bytes = MAX_BYTES
        self._stopped = False
        self._on_stop = on_stop

    def __len__(self) -> int:
        return len(self._events)

    # --- the informer's side -------------------------------------------------------------------------------------

    def put(self, event: Event[T]) -> None:
        """Append an event; called by the informer only."""
        if self._stopped:
            return
        self._events.append(event)
        if self._synced.is_set():
            self._bytes += _size(event)
            if len(self._events) > self._max_events or self._bytes > self._max_bytes:
                self._coalesce()
        self._wake.set()

    def put_synced(self) -> None:
        """Mark the end of the initial list; called by the informer once."""
        if not self._has_marker:
            self._has_marker = True
            self._events.append(None)
            self._wake.set()

    def transfer(self, on_stop: Callable[[Subscription[T]], None]) -> None:
        """Say that another informer feeds this subscription from now on."""
        self._on_stop = on_stop

    # --- the subscriber's side -----------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def ready(self) -> bool:
        """Wait until there is an event to take; False when the subscription was stopped."""
        while not self._events:
            if self._stopped:
                return False
            self._wake.clear()
            await self._wake.wait()
        return not self._stopped

    def pop(self) -> Event[T] | None:
        """Take the next event, or return None when there is none. Taking says that the events before were handled."""
        while self._events:
            event = self._events.popleft()
            if event is None:
                self._synced.set()
                continue
            if self._synced.is_set():
                self._bytes -= _size(event)
            return event
        return None

    async def get(self) -> Event[T] | None:
        """Wait for the next event; None when the subscription was stopped."""
        while await self.ready():
            if (event := self.pop()) is not None:
                return event
        return None

    def stop(self) -> None:
        """End the subscription: what was not taken is dropped, waiters wake up, the informer forgets it. May be called twice."""
        if self._stopped:
            return
        self._stopped = True
        self._events.clear()
        self._wake.set()
        if self._on_stop is not None:
            self._on_stop(self)

    # --- coalescing ----------------------------------------------------------------------------------------------

    def _coalesce(self) -> None:
        merged: dict[tuple[str, str, int], Event[T] | None] = {}
        life: dict[tuple[str, str], int] = {}
        before = len(self._events)
        for event in self._events:
            if event is None:
                merged["", "", -1] = None
                continue
            key = (event.meta.namespace, event.meta.name)
            epoch = life.get(key, 0)
            previous = merged.get((*key, epoch))
            joined = event if previous is None else _join(previous, event)
            if joined is None:
                epoch += 1
                life[key] = epoch
                joined = event
            merged[(*key, epoch)] = joined
        self._events = deque(merged.values())
        self.coalesced += before - len(self._events)
        self._bytes = sum(_size(event) for event in self._events if event is not None)
        # Many different keys cannot be merged further: look again only when the backlog has doubled, or each put would cost a pass.
        self._max_events = max(MAX_EVENTS, 2 * len(self._events))
        self._max_bytes = max(MAX_BYTES, 2 * self._bytes)


def _join(first: Event[T], second: Event[T]) -> Event[T] | None:
    """Return one event that stands for two of the same key, or None when they must stay apart (a new life after a deletion)."""
    match first, second:
        case CreateEvent(), UpdateEvent():
            return CreateEvent(second.new_snapshot, first.is_in_initial_list)
        case UpdateEvent(), UpdateEvent():
            return UpdateEvent(first.old_snapshot, second.new_snapshot)
        case ((CreateEvent() | UpdateEvent()), DeleteEvent()):
            return second
        case _:
            return None


def _size(event: Event[Any]) -> int:
    snapshots: tuple[Snapshot[Any], ...] = (
        (event.old_snapshot, event.new_snapshot) if isinstance(event, UpdateEvent) else (event.snapshot,)
    )
    return sum(len(snapshot.raw) for snapshot in snapshots)
