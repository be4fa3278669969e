"""Events (events.k8s.io/v1) about objects, written in the background.

`EventRecorder.event` only stores the Event; `run` writes it with a client. If the same happens again to the same object within six minutes,
the series of the first Event is counted up. Recording never waits, and a failed write does not affect the reconciler.
"""

from __future__ import annotations

import asyncio
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import anyio

from ctrlruntime import log
from ctrlruntime.api.object import Object, gvk_for
from ctrlruntime.client.patches import Patch, merge_patch
from ctrlruntime.errors import TRANSIENT_ERRORS, AlreadyExists, CtrlError, NotFound
from ctrlruntime.field import MicroTime
from ctrlruntime.metrics import EventMetrics
from ctrlruntime.name_rules import is_subdomain
from ctrlruntime.selector import label_key_problems

if TYPE_CHECKING:
    # Importing the kinds takes longer than an operator that records nothing should wait for.
    from ctrlruntime.api.core.v1 import ObjectReference
    from ctrlruntime.api.events.v1 import Event

T = TypeVar("T")

CAPACITY = 1000
FINISH_AFTER = 360.0
REFRESH_EVERY = 1800.0
ATTEMPTS = 12
RETRY_DELAY = 10.0
TEND_EVERY = 15.0
MAX_INSTANCE = 128
MAX_WORD = 128
MAX_NOTE = 1024
MAX_NAME = 253


class EventWriter(Protocol):
    """The part of a client that the recorder uses.

    It must not need leadership, so that a lost Lease can be an Event.
    """

    async def create(self, obj: T, /) -> T: ...

    async def patch(self, obj: T, patch: Patch, /) -> T: ...


@dataclass(slots=True, eq=False)
class _Series:
    """One Event, and its count."""

    key: tuple[object, ...]
    event: Event
    last: datetime
    seen: float
    count: int = 1
    written_count: int = 0
    written_at: float = 0.0
    is_pending: bool = False
    """Queued or being written.

    The writer checks afterwards whether it must be written again.
    """

    attempts: int = 0
    not_before: float = float("-inf")

    @property
    def unwritten(self) -> int:
        return self.count - self.written_count


class EventRecorder:
    """Records Events of `controller` (`reportingController`). Safe in any thread.

    Nothing is written until `run` runs. If `capacity` Events wait, further ones are dropped, logged and counted in `dropped`, as are failed
    writes. The same number of Events is remembered for counting; an older one is recorded as a new Event.

    Args:
        clock: measures intervals (seconds).
        now: the time of Events.

    Raises: ValueError for an invalid controller name. It must be a qualified name (`example.com/backup`), see ValidateEventCreate in
    k8s.io/kubernetes/pkg/apis/core/validation/events.go.

    """

    def __init__(
        self,
        writer: EventWriter,
        controller: str,
        *,
        instance: str | None = None,
        capacity: int = CAPACITY,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], MicroTime] = MicroTime.now,
        rng: Callable[[], float] = random.random,
        metrics: EventMetrics | None = None,
    ) -> None:
        if not controller:
            raise ValueError("cannot create an event recorder without the name of the reporting controller")
        if problems := label_key_problems(controller):
            raise ValueError(f"cannot report events as {controller!r}: {'; '.join(problems)}")
        self.controller = controller
        self.instance = _shortened(instance or f"{controller}-{socket.gethostname()}", MAX_INSTANCE)
        self._metrics = metrics or EventMetrics(controller)
        self._untold = 0
        self._told_at = float("-inf")
        self._writer = writer
        self._capacity = capacity
        self._clock = clock
        self._now = now
        self._rng = rng
        self._lock = threading.Lock()
        self._series: dict[tuple[object, ...], _Series] = {}
        self._queue: deque[_Series] = deque()
        self._tended_at = float("-inf")
        self._is_closed = False
        self._wake: Callable[[], None] = _nothing
        self._log = log.get_logger("recorder")

    def event(
        self,
        obj: Object,
        *,
        type: Literal["Normal", "Warning"] = "Normal",
        reason: str,
        action: str,
        note: str,
        related: Object | None = None,
    ) -> None:
        """Record that `action` was taken on `obj` for `reason`.

        Both are short words in CamelCase (Create, Created). A repeated Event increases the count of the first one, whose note stays. It is
        repeated if type, reason, action and the objects are the same.

        Args:
            obj: the object that the Event is about.
            type: "Warning" if a person should look at it.
            reason: the cause, in the past tense.
            action: the action, as a verb.
            note: text for people, cut after 1 KiB.
            related: another object that took part.

        Returns at once. Raises: ValueError for an invalid Event: reason and action have 1 to 128 bytes.

        """
        if type not in {"Normal", "Warning"}:
            raise ValueError(f"an event's type is Normal or Warning, not {type!r}")
        for name, value in (("reason", reason), ("action", action)):
            size = len(value.encode("utf-8", "replace"))
            if not 1 <= size <= MAX_WORD:
                raise ValueError(f"an event's {name} has 1 to {MAX_WORD} bytes; {value!r} has {size}")
        key = (type, reason, action, _identity(obj), None if related is None else _identity(related))
        with self._lock:
            if self._is_closed:
                self._overflow("the recorder has ended")
                return
            known = self._series.get(key)
            if known is not None:
                self._count(known)
            elif self._has_room():
                event = self._build(obj, type, reason, action, note, related)
                series = _Series(key, event, event.event_time or self._now(), self._clock())
                if len(self._series) >= self._capacity:
                    self._finish(next(iter(self._series.values())))
                self._series[key] = series
                self._put(series)
            else:
                self._overflow(f"{self._capacity} Events wait to be written")

    async def run(self, *, flush_within: float = 2.0) -> None:
        """Write Events until cancelled.

        Then write the remaining ones, for at most `flush_within` seconds.

        The remaining ones are queued Events, retries, and counts of series.
        """
        loop = asyncio.get_running_loop()
        wake = asyncio.Event()
        with self._lock:
            self._wake = lambda: _call(loop, wake)
            self._is_closed = False
        try:
            while True:
                wake.clear()
                await self.flush()
                try:
                    async with asyncio.timeout(self._pause(TEND_EVERY)):
                        await wake.wait()
                except TimeoutError:
                    continue
        finally:
            with self._lock:
                self._is_closed = True
                self._wake = _nothing
                for series in list(self._series.values()):
                    self._finish(series)
            with anyio.move_on_after(flush_within, shield=True):
                await self._write_queue(is_last=True)
            self._give_up_rest()

    async def flush(self) -> None:
        """Write the queued Events and the series that are due.

        A series is due if it has no recent event, or was last written half an hour ago.

        `run` calls it. Call it yourself if you record without `run`, one call at a time.
        """
        self._tend()
        await self._write_queue()

    @property
    def dropped(self) -> int:
        """The number of Events that were recorded and not written."""
        return self._metrics.dropped

    @property
    def pending(self) -> int:
        """The number of Events and series that wait to be written."""
        return len(self._queue)

    # --- noting -----------------------------------------------------------------------------------------------------

    def _count(self, series: _Series) -> None:
        series.count += 1
        series.last = self._now()
        series.seen = self._clock()
        # To the end: the first one is forgotten first.
        self._series[series.key] = self._series.pop(series.key)
        # The second time is told at once; from the third on the count is written when it is refreshed or finished.
        # Without room it is told when the next round finds some: the count is kept.
        if series.written_count < 2 and self._has_room():
            self._put(series)

    def _has_room(self) -> bool:
        return len(self._queue) < self._capacity

    def _overflow(self, why: str) -> None:
        """Count an Event that is dropped unwritten, and say so now and then."""
        self._metrics.dropped += 1
        self._untold += 1
        now = self._clock()
        if now - self._told_at >= TEND_EVERY:
            count, self._untold, self._told_at = self._untold, 0, now
            self._log.warning("events dropped", reporter=self.controller, count=count, reason=why)

    def _finish(self, series: _Series) -> None:
        """Forget a series; what was counted since it was written is still written."""
        del self._series[series.key]
        if series.unwritten:
            self._put(series)

    def _put(self, series: _Series) -> None:
        if not series.is_pending:
            series.is_pending = True
            self._queue.append(series)
            self._wake()

    def _build(self, obj: Object, type: str, reason: str, action: str, note: str, related: Object | None) -> Event:
        from ctrlruntime.api.events.v1 import Event
        from ctrlruntime.api.meta.v1 import ObjectMeta

        moment = self._now()
        return Event(
            metadata=ObjectMeta(
                name=_event_name(obj.metadata.name, moment, self._rng), namespace=obj.metadata.namespace or "default"
            ),
            event_time=moment,
            regarding=_reference(obj),
            related=None if related is None else _reference(related),
            type=type,
            reason=_shortened(reason, MAX_WORD),
            action=_shortened(action, MAX_WORD),
            note=_shortened(note, MAX_NOTE, "…"),
            reporting_controller=self.controller,
            reporting_instance=self.instance,
        )

    # --- writing ----------------------------------------------------------------------------------------------------

    def _tend(self) -> None:
        now = self._clock()
        if now - self._tended_at < TEND_EVERY:
            return  # it looks at all series, which is too much to do for each Event
        self._tended_at = now
        with self._lock:
            for series in list(self._series.values()):
                is_due = series.written_count < 2 or now - series.written_at >= REFRESH_EVERY
                if not self._has_room():
                    return
                if now - series.seen >= FINISH_AFTER:
                    self._finish(series)
                elif series.unwritten and is_due:
                    self._put(series)

    def _pause(self, longest: float) -> float:
        now = self._clock()
        with self._lock:
            waits = [max(0.0, series.not_before - now) for series in self._queue]
        return min([longest, *waits])

    async def _write_queue(self, *, is_last: bool = False) -> None:
        """Try each queued series once; but for the last time, only those that may be tried again by now."""
        for _ in range(len(self._queue)):
            with self._lock:
                if not self._queue:
                    return
                series = self._queue.popleft()
                if series.not_before > self._clock() and not is_last:
                    self._queue.append(series)
                    continue
            try:
                await self._write(series)
            except asyncio.CancelledError:
                # The last flush tries it again; whether this try arrived is unknown.
                with self._lock:
                    series.attempts += 1
                    self._queue.appendleft(series)
                raise

    async def _write(self, series: _Series) -> None:
        count = series.count
        try:
            if series.written_count == 0:
                await self._create(series, count)
            else:
                await self._patch(series, count)
        except TRANSIENT_ERRORS as error:
            self._retry(series, error)
        except CtrlError as error:
            self._drop(series, error)
        except Exception as error:  # noqa: BLE001 - a writer that is broken must not end the recorder
            self._drop(series, error)
        else:
            with self._lock:
                series.attempts, series.not_before = 0, float("-inf")
                series.written_count, series.written_at = count, self._clock()
                series.is_pending = False
                is_finished = self._series.get(series.key) is not series
                if series.unwritten and (is_finished or count < 2):
                    self._put(series)

    async def _create(self, series: _Series, count: int) -> None:
        from ctrlruntime.api.events.v1 import EventSeries

        event = series.event
        if count > 1:
            event.series = EventSeries(count=count, last_observed_time=MicroTime.of(series.last))
        try:
            await self._writer.create(event)
        except AlreadyExists:
            if series.attempts == 0:
                raise
            # The answer of an earlier try was lost. The Event is there, with the count of that try.
            if count > 1:
                await self._patch(series, count)

    async def _patch(self, series: _Series, count: int) -> None:
        change = {"series": {"count": count, "lastObservedTime": MicroTime.of(series.last).text}}
        try:
            await self._writer.patch(series.event, merge_patch(change))
        except NotFound:
            # Events live for an hour by default; the series begins anew under another name.
            series.event = series.event.deep_copy()
            metadata = series.event.metadata
            metadata.name = _event_name(series.event.regarding.name, self._now(), self._rng)
            metadata.uid = metadata.resource_version = ""
            metadata.creation_timestamp = None
            await self._create(series, count)

    def _retry(self, series: _Series, error: Exception) -> None:
        series.attempts += 1
        if series.attempts >= ATTEMPTS:
            self._drop(series, error)
            return
        with self._lock:
            # The first delay is a random part, so that a restarted API server is not met by all recorders at once.
            delay = RETRY_DELAY * (self._rng() if series.attempts == 1 else 1.0)
            series.not_before = self._clock() + delay
            self._queue.append(series)

    def _drop(self, series: _Series, error: Exception) -> None:
        with self._lock:
            count = series.unwritten
            self._metrics.dropped += count
            if self._series.get(series.key) is series:
                del self._series[series.key]
        event = series.event
        self._log.warning(
            "event dropped",
            regarding=f"{event.regarding.kind} {event.metadata.namespace}/{event.regarding.name}",
            reason=event.reason,
            note=event.note,
            count=count,
            error=str(error),
        )

    def _give_up_rest(self) -> None:
        with self._lock:
            rest = sum(series.unwritten for series in self._queue)
            self._metrics.dropped += rest
            self._queue.clear()
        if rest:
            self._log.warning(
                "events dropped at shutdown", hint="the API server did not accept them in time", count=rest
            )


def _nothing() -> None:
    return


def _call(loop: asyncio.AbstractEventLoop, wake: asyncio.Event) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(wake.set)


def _identity(obj: Object) -> tuple[object, ...]:
    metadata = obj.metadata
    return (gvk_for(obj), metadata.namespace, metadata.name, metadata.uid)


def _reference(obj: Object) -> ObjectReference:
    from ctrlruntime.api.core.v1 import ObjectReference

    kind, metadata = gvk_for(obj), obj.metadata
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def _event_name(about: str, moment: datetime, rng: Callable[[], float]) -> str:
    """Return a name of its own for an Event; the moment makes it unique, and what it lacks of nanoseconds is drawn."""
    nanoseconds = int(moment.timestamp() * 1_000_000) * 1000 + int(rng() * 1000)
    suffix = f".{nanoseconds:x}"
    name = about[: MAX_NAME - len(suffix)].rstrip("-.")
    # Some kinds (ClusterRole system:admin) have names an Event may not bear.
    return (name if is_subdomain(name) else "event") + suffix


def _shortened(text: str, limit: int, mark: str = "") -> str:
    """Return the text, cut at a character to `limit` bytes (so the API counts) and ended with `mark` then.

    A lone surrogate, which no JSON holds, becomes a question mark.
    """
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > limit:
        encoded = encoded[: limit - len(mark.encode())].decode("utf-8", "ignore").encode() + mark.encode()
    return encoded.decode()
