"""Watches: the present state or the missed events, then live frames, bookmarks, a clean end.

A watch subscribes to its table and reads what it missed in one step, so nothing falls between. It ends when its time is over, when it
is too slow, when its resource goes or changes, or when the server stops.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from random import Random

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.http.answers import failure_status
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.lists import Match, named_key, read_version
from ctrlruntime.apiserver.http.options import ListOptions
from ctrlruntime.apiserver.http.views import View, error_frame
from ctrlruntime.apiserver.registry import Registry
from ctrlruntime.apiserver.storage import Event, Record, Subscription, Table
from ctrlruntime.errors import APIStatusError

_BOOKMARK_INTERVAL = 60.0
_CHUNK = 128 * 1024


class Watch:
    """One watch request; iterate `frames()` and write what it yields."""

    def __init__(
        self,
        registry: Registry,
        call: Call,
        options: ListOptions,
        view: View,
        *,
        clock: Callable[[], float],
        rng: Random,
        bookmark_interval: float = _BOOKMARK_INTERVAL,
    ) -> None:
        assert call.target is not None
        self._store = registry.store
        self._table: Table = registry.store.table(*view.resource.stored_as)
        self._namespace = call.target.namespace
        self._options = options
        self._view = view
        key = named_key(call, options)
        if call.target.name:
            key = (call.target.namespace, call.target.name)
        self._key = key
        self._match = Match(view.resource, options, key)
        self._clock = clock
        self._length = options.timeout or 1800.0 + 1800.0 * rng.random()
        self._interval = bookmark_interval
        self._start = read_version(options.resource_version)
        self._sent_columns = False
        self.cut: Callable[[], object] = lambda: None
        """Called when the watcher is too slow: ends its connection."""

    async def frames(self) -> AsyncIterator[bytes]:
        """Yield chunks of whole frames until the watch ends."""
        if self._length < 0:  # it has ended already
            return
        begin = self._clock()
        subscription = self._table.subscribe(self._namespace, self._key)
        subscription.cut = self.cut
        try:
            try:
                if self._view.resource.conversion is not None:
                    await self._prepare_beginning(subscription)
                pending = self._beginning()
            except APIStatusError as error:
                yield error_frame(failure_status(error))
                return
            for chunk in pending:
                yield chunk
            async for chunk in self._live(subscription, begin + self._length):
                yield chunk
        finally:
            self._table.unsubscribe(subscription)

    async def _prepare_beginning(self, subscription: Subscription) -> None:
        """Let the webhook convert what the beginning will show; events that come meanwhile become part of it."""
        resource = self._view.resource
        while True:
            records = [self._table.records[key] for key in self._table.keys(self._namespace)]
            missed = (self._table.since(self._start) or []) if self._start else []
            records += [record for event in missed for record in (event.record, event.old) if record is not None]
            if not resource.needs_preparation(records):
                subscription.clear()
                return
            await resource.prepare(records)

    def _beginning(self) -> Iterator[bytes]:
        """Return what comes before live events, as chunks; taken now, so that later writes come from the subscription."""
        options = self._options
        initial = options.initial_events
        sends_state = initial if initial is not None else not self._start
        if sends_state:
            frames = self._state()
        elif not self._start:
            frames = []
        else:
            missed = self._table.since(self._start)
            if missed is None:
                text = f"too old resource version: {self._start} ({self._table.compacted})"
                raise failures.too_old(text)
            frames = [frame for event in missed if self._concerns(event) and (frame := self._render(event))]
        if initial and options.allows_bookmarks:
            frames.append(self._view.bookmark(self._store.revision, ends_initial=True))
        return _chunks(frames)

    def _concerns(self, event: Event) -> bool:
        key = event.record.key
        return key == self._key if self._key is not None else not self._namespace or key[0] == self._namespace

    def _state(self) -> list[bytes]:
        records = self._table.records
        keys = [self._key] if self._key is not None else self._table.keys(self._namespace)
        present = [records[key] for key in keys if key in records]
        return [self._loose("ADDED", record) for record in present if self._match(record)]

    def _loose(self, type: str, record: Record) -> bytes:
        # Only the first Table of a watch has column definitions.
        has_columns, self._sent_columns = not self._sent_columns, True
        return self._view.loose_frame(type, record, columns=has_columns)

    async def _live(self, subscription: Subscription, end: float) -> AsyncIterator[bytes]:
        options = self._options
        # A bookmark shortly before the end; a watch that is too short for that has none.
        next_bookmark = self._clock() + self._interval
        if self._clock() < end - 2.0 < next_bookmark:
            next_bookmark = end - 2.0
        while True:
            events = subscription.events
            if events:
                if self._view.resource.conversion is not None and not await self._prepare_events(events):
                    return
                frames: list[bytes] = []
                while events:
                    event = subscription.take()
                    if event.revision > self._start:
                        frame = self._render(event)
                        if frame:
                            frames.append(frame)
                for chunk in _chunks(frames):
                    yield chunk
                continue
            if subscription.closed:
                return
            now = self._clock()
            if now >= end:
                return
            if options.allows_bookmarks and now >= next_bookmark:
                yield self._view.bookmark(self._store.revision)
                next_bookmark = now + self._interval
                if next_bookmark > end - 2.0 > now:
                    next_bookmark = end - 2.0
                continue
            subscription.wake.clear()
            until = min(end, next_bookmark) if options.allows_bookmarks else end
            await _wait(subscription.wake, until - now)

    async def _prepare_events(self, events: deque[Event]) -> bool:
        """Let the webhook convert what the events show; where it fails the watch ends, and the client's next list says why."""
        resource = self._view.resource
        while True:
            records = [record for event in events for record in (event.record, event.old) if record is not None]
            if not resource.needs_preparation(records):
                return True
            try:
                await resource.prepare(records)
            except APIStatusError:
                return False

    def _render(self, event: Event) -> bytes | None:
        """Return the event as this watcher's selectors see it: an object that leaves them is deleted, one that enters added."""
        match = self._match
        if match.is_trivial:
            return self._frame(event.type, event, event.record)
        now_matches = event.type != "DELETED" and match(event.record)
        did_match = event.old is not None and match(event.old)
        if now_matches:
            return self._frame("MODIFIED" if did_match else "ADDED", event, event.record)
        if not did_match:
            return None
        if event.type == "DELETED":
            return self._frame("DELETED", event, event.record)
        assert event.old is not None
        return self._frame("DELETED", event, self._left(event, event.old))

    @staticmethod
    def _left(event: Event, old: Record) -> Record:
        """Return the old state under the revision of the event that took it out of the selector."""
        document = old.writer.tree(old)
        document["metadata"]["resourceVersion"] = str(event.revision)
        return Record(old.key, event.revision, old.writer.encode(document), old.writer, old.labels, old.uid)

    def _frame(self, type: str, event: Event, record: Record) -> bytes:
        if self._view.form == "table":
            return self._loose(type, record)
        return self._view.frame(type, event, record)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _chunks(frames: list[bytes]) -> Iterator[bytes]:
    """Join frames into writes of moderate size."""
    start, size = 0, 0
    for index, frame in enumerate(frames):
        size += len(frame)
        if size >= _CHUNK:
            yield b"".join(frames[start : index + 1])
            start, size = index + 1, 0
    if start < len(frames):
        yield b"".join(frames[start:])
