"""The queue between sources and workers: one entry for each key, by priority, with delays, never twice in work.

Sources add keys. The workers of a controller take them, and call `done`. A key in the queue has one of these states:

- *waiting*: it becomes ready later;
- *ready*: it is in the level of its priority, and is handed out in order;
- *in work*: it was handed out and is not done. It is locked: if it is added again meanwhile, it becomes ready (or waits), but is not handed
  out before it is done.

Everything happens on one event loop, and only `get` and `wait_idle` await, so that no state is ever half changed.

*Order.* The highest level comes first; in a level, the key that became ready first. So that steady work on high levels does not starve low
ones, every 20th key handed out is the one that has been ready longest, in any level, if it has been ready for `aging` seconds. A key with n
older ready keys is handed out at the latest after `aging` seconds and then 20·(n+1) hand-overs. An overdue backlog delays new keys of a
high level by one in twenty.

Metrics are plain counters. A scrape reads depth and work times from the queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush, nsmallest
from typing import Final, Generic, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.errors import CtrlError
from ctrlruntime.metrics import QueueMetrics, QueueState
from ctrlruntime.reconcile import Request
from ctrlruntime.workqueue.rate_limiter import Guarded, ItemExponentialFailureRateLimiter, RateLimiter

R = TypeVar("R", default=Request)

MAX_TRIGGERS: Final = 16
"""The number of triggers that an item keeps, the earliest ones."""

AGED_SHARE: Final = 20
"""One of this many hand-overs is for the key that has been ready longest, if it is overdue."""

_KEPT_LEVELS = 32  # levels there may be before empty ones are removed
_STALE_SLACK = 64  # stale places a list may hold whatever its length


class QueueShutDownError(CtrlError):
    """The queue was shut down, and has no more keys."""


class Item(msgspec.Struct, Generic[R], frozen=True, gc=False):
    """A key that was handed out for work.

    It has its priority, its triggers, and the number of consecutive failures.
    """

    key: R
    priority: int
    triggers: tuple[object, ...]
    attempts: int
    omitted: int = 0
    """The number of triggers that are not stored."""


class Pending(msgspec.Struct, Generic[R], frozen=True):
    """The state of a key in the queue; times are seconds."""

    key: R
    priority: int
    ready_in: float | None
    """The time until it becomes ready, negative if it is ready.

    None: it is in work and was not added again.
    """

    in_work: float | None
    """The time that it has been in work; None: it is not in work."""

    triggers: tuple[object, ...]
    omitted: int
    attempts: int


class Overview(msgspec.Struct, Generic[R], frozen=True):
    """The state of the whole queue."""

    ready: int
    waiting: int
    in_work: int
    by_priority: dict[int, int]
    """The number of ready keys by priority."""

    oldest_ready: float | None
    """Seconds since the oldest ready key became ready."""

    keys: tuple[Pending[R], ...]
    """The keys in work, then those that have been ready longest, then those that become ready next."""


class _Entry(msgspec.Struct, Generic[R], eq=False, gc=False):
    """A key in the queue.

    `sequence` is its place in the order of becoming ready; 0 if it is not ready.
    """

    key: R
    priority: int
    sequence: int = 0
    ready_at: float = 0.0  # while waiting: when it will be
    # The priority of the level it can be taken from. Not the level itself: that would be a cycle nobody collects
    # (gc=False).
    standing: int | None = None
    triggers: list[object] | None = None
    omitted: int = 0
    is_pending: bool = True  # to be handed out (again)
    is_locked: bool = False
    taken_at: float = 0.0


class _Level(Generic[R]):
    """The ready keys of one priority.

    An entry that moved to another level is skipped at its old place.
    """

    __slots__ = ("fifo", "is_listed", "late", "priority", "ready")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.fifo: deque[_Entry[R]] = deque()
        # Entries that became ready while their key was in work: they keep their turn, so they cannot be appended.
        self.late: list[tuple[int, _Entry[R]]] = []
        self.ready = 0
        self.is_listed = False

    def has_next(self) -> bool:
        """Whether the level has an entry. Removes stale places before it."""
        fifo, late, priority = self.fifo, self.late, self.priority
        while fifo and fifo[0].standing != priority:
            fifo.popleft()
        while not fifo and late and late[0][1].standing != priority:
            heappop(late)
        return bool(fifo or late)

    def pop(self) -> _Entry[R] | None:
        """Remove and return the next entry, or None if the level is empty."""
        fifo, late, priority = self.fifo, self.late, self.priority
        while fifo and fifo[0].standing != priority:
            fifo.popleft()
        if late:
            while late and late[0][1].standing != priority:
                heappop(late)
            if late and (not fifo or late[0][0] < fifo[0].sequence):
                return heappop(late)[1]
        return fifo.popleft() if fifo else None

    def sweep(self) -> None:
        """Remove stale places if they outnumber the ready keys; an unused level would grow without limit."""
        if len(self.fifo) + len(self.late) > 2 * self.ready + _STALE_SLACK:
            self.fifo = deque(entry for entry in self.fifo if entry.standing == self.priority)
            self.late = [place for place in self.late if place[1].standing == self.priority]
            heapify(self.late)


def guarded(limiter: RateLimiter[R] | None, metrics: QueueMetrics) -> RateLimiter[R]:
    """Return the rate limiter of a queue. Errors of a user's own are counted."""
    if limiter is None:
        return ItemExponentialFailureRateLimiter()
    # The one that cannot fail is asked for each request, and needs no guard.
    if type(cast("object", limiter)) is ItemExponentialFailureRateLimiter or isinstance(limiter, Guarded):
        return limiter

    def count() -> None:
        metrics.limiter_failures += 1

    return Guarded(limiter, count)


class Waiters(deque["asyncio.Future[None]"]):
    """The callers of `get` that wait for a key, the longest waiting one first."""

    async def wait(self, is_available: Callable[[], bool]) -> None:
        """Wait to be woken. `is_available`: whether another caller would find a key."""
        waiter = asyncio.get_running_loop().create_future()
        self.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError):
                self.remove(waiter)
            if waiter.done() and not waiter.cancelled() and is_available():
                # Woken and cancelled in one go: somebody else must take what was meant for this one.
                self.wake_one()
            raise

    def wake_one(self) -> None:
        while self:
            waiter = self.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def wake_all(self) -> None:
        while self:
            self.wake_one()


class ThreadsafeAdd(Generic[R]):
    """A queue whose event loop is known once it has waited."""

    _loop: asyncio.AbstractEventLoop | None = None

    def add(
        self,
        key: R,
        *,
        priority: int = 0,
        after: float = 0.0,
        rate_limited: bool = False,
        trigger: object | None = None,
    ) -> None:
        raise NotImplementedError

    def add_threadsafe(
        self,
        key: R,
        *,
        priority: int = 0,
        after: float = 0.0,
        rate_limited: bool = False,
        trigger: object | None = None,
    ) -> None:
        """Add a key from another thread.

        Raises: RuntimeError before a worker has waited for a key or a delay.
        """
        if self._loop is None:
            raise RuntimeError("the queue has no event loop yet: no worker has waited for a key or a delay")
        self._loop.call_soon_threadsafe(
            lambda: self.add(key, priority=priority, after=after, rate_limited=rate_limited, trigger=trigger)
        )


class PriorityQueue(ThreadsafeAdd[R]):
    """A queue of keys (any hashable values). Use it on one event loop.

    Args:
        aging: seconds after which a ready key is overdue (see the module). None: low priorities may starve.
        admit: returns whether a key may be added. Others are dropped.
        on_ready: called when a key becomes available while `get` has no caller.
        clock: measures all delays in seconds. After you change a test clock, call `tick` to wake callers of `get`.

    Raises: ValueError for a negative aging.

    """

    def __init__(
        self,
        *,
        rate_limiter: RateLimiter[R] | None = None,
        metrics: QueueMetrics | None = None,
        aging: float | None = 10.0,
        admit: Callable[[R], bool] | None = None,
        on_ready: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if aging is not None and aging < 0:
            raise ValueError(f"aging is {aging}: give seconds, or None for no aging")
        self._metrics = metrics or QueueMetrics("")
        self._limiter: RateLimiter[R] = guarded(rate_limiter, self._metrics)
        self._observe_latency = self._metrics.latency.observe
        self._observe_work = self._metrics.work.observe
        self._aging = aging
        self._admit = admit
        self._on_ready = on_ready
        self._clock = clock
        self._entries: dict[R, _Entry[R]] = {}
        self._in_work: set[_Entry[R]] = set()
        self._levels: dict[int, _Level[R]] = {}
        self._listed: list[tuple[int, _Level[R]]] = []  # a heap, highest priority first; may hold empty levels
        self._level_limit = _KEPT_LEVELS
        self._by_age: deque[_Entry[R]] = deque()
        self._waiting: list[tuple[float, int, _Entry[R]]] = []  # a heap by moment; stale when the entry has another one
        self._waiting_count = 0
        self._available = 0  # entries that stand on a level
        self._ready = 0  # these, and those that are ready but locked
        self._sequence = 0
        self._turn = 0
        self._getters = Waiters()
        self._idlers: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._is_shut_down = False
        self._metrics.watch(self.state)

    def __len__(self) -> int:
        """Return the number of ready keys, with locked and without waiting ones."""
        self.tick()
        return self._ready

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"PriorityQueue({self._ready} ready, {self._waiting_count} waiting, {len(self._in_work)} in work)"

    @property
    def is_shut_down(self) -> bool:
        return self._is_shut_down

    # --- adding ----------------------------------------------------------------------------------------------------

    def add(
        self,
        key: R,
        *,
        priority: int = 0,
        after: float = 0.0,
        rate_limited: bool = False,
        trigger: object | None = None,
    ) -> None:
        """Add a key, at once or later.

        `after` is a delay in seconds. `rate_limited` uses the delay of the rate limiter. With both, the shorter delay counts.

        A key in the queue keeps one entry, with the higher priority and the earlier time, and the triggers of both. Does nothing after
        `shut_down`.
        """
        if self._is_shut_down or (self._admit is not None and not self._admit(key)):
            return
        if rate_limited:
            delay = self._limiter.when(key)
            after = min(after, delay) if after > 0 else delay
        now = self._clock()
        if self._waiting and self._waiting[0][0] <= now:
            self._promote(now)  # these became ready before this one
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = _Entry(key, priority)
            if trigger is not None:
                entry.triggers = [trigger]
            if after > 0:
                self._wait(entry, now + after)
            else:
                self._become_ready(entry, now)
        else:
            self._merge(entry, priority, now, after, trigger)

    def _merge(self, entry: _Entry[R], priority: int, now: float, after: float, trigger: object | None) -> None:
        if not entry.is_pending:
            entry = self._renew(entry, priority)
        if trigger is not None:
            if entry.triggers is None:
                entry.triggers = [trigger]
            elif len(entry.triggers) < MAX_TRIGGERS:
                entry.triggers.append(trigger)
            else:
                entry.omitted += 1
        if priority > entry.priority:
            self._raise(entry, priority)
        if after > 0:
            if entry.sequence:
                self._metrics.retries += 1
            else:
                self._wait(entry, now + after)
        elif not entry.sequence:
            if entry.ready_at:
                self._waiting_count -= 1
            self._become_ready(entry, now)

    def _renew(self, old: _Entry[R], priority: int) -> _Entry[R]:
        """Replace the entry of a key in work by one that is to be handed out again."""
        # A new one, because places the old one left on lower levels must stay stale.
        entry = _Entry(old.key, priority, is_locked=True, taken_at=old.taken_at)
        self._entries[old.key] = entry
        self._in_work.remove(old)
        self._in_work.add(entry)
        return entry

    def _wait(self, entry: _Entry[R], moment: float) -> None:
        """Let an entry that is not ready become so at `moment`, unless it will earlier."""
        self._metrics.retries += 1
        if entry.ready_at:
            if moment >= entry.ready_at:
                return
        else:
            self._waiting_count += 1
        entry.ready_at = moment
        self._sequence += 1
        heappush(self._waiting, (moment, self._sequence, entry))
        if len(self._waiting) > 2 * self._waiting_count + _STALE_SLACK:
            self._waiting = [place for place in self._waiting if _is_waiting(place)]
            heapify(self._waiting)
        self._arm()

    def _become_ready(self, entry: _Entry[R], now: float) -> None:
        self._sequence = sequence = self._sequence + 1
        entry.sequence = sequence
        entry.ready_at = now
        self._metrics.adds += 1
        self._ready += 1
        level = self._levels.get(entry.priority) or self._new_level(entry.priority)
        level.ready += 1
        if not entry.is_locked:
            level.fifo.append(entry)
            self._place(entry, level)

    def _place(self, entry: _Entry[R], level: _Level[R]) -> None:
        """Make an entry that stands on a level available."""
        entry.standing = level.priority
        if not level.is_listed:
            self._list(level)
        self._by_age.append(entry)
        self._available += 1
        if self._getters:
            self._getters.wake_one()
        elif self._on_ready is not None:
            self._on_ready()

    def _raise(self, entry: _Entry[R], priority: int) -> None:
        """Move an entry to a higher level, behind those that stand there."""
        if entry.sequence:
            left = self._levels[entry.priority]
            left.ready -= 1
            level = self._levels.get(priority) or self._new_level(priority)
            level.ready += 1
            self._sequence += 1
            entry.sequence = self._sequence
            if entry.standing is not None:
                entry.standing = priority
                left.sweep()
                level.fifo.append(entry)
                if not level.is_listed:
                    self._list(level)
                if self._on_ready is not None:
                    self._on_ready()
        entry.priority = priority

    def _list(self, level: _Level[R]) -> None:
        level.is_listed = True
        heappush(self._listed, (-level.priority, level))

    def _new_level(self, priority: int) -> _Level[R]:
        if len(self._levels) >= self._level_limit:
            self._levels = {level.priority: level for level in self._levels.values() if level.ready}
            self._listed = [(-level.priority, level) for level in self._levels.values() if level.is_listed]
            heapify(self._listed)
            self._level_limit = 2 * len(self._levels) + _KEPT_LEVELS
        level = self._levels[priority] = _Level(priority)
        return level

    # --- taking ----------------------------------------------------------------------------------------------------

    async def get(self) -> Item[R]:
        """Wait for the next key and lock it until `done`. Raises: QueueShutDownError."""
        while (item := self.get_nowait()) is None:
            self._loop = asyncio.get_running_loop()
            self._arm()
            await self._getters.wait(lambda: bool(self._available))
        return item

    def get_nowait(self) -> Item[R] | None:
        """Take the next key and lock it until `done`.

        None if no key is available. Raises: QueueShutDownError.
        """
        if self._is_shut_down:
            raise QueueShutDownError
        now = self._clock()
        if self._waiting and self._waiting[0][0] <= now:
            self._promote(now)
        if not self._available:
            return None
        entry = self._next(now)
        level = self._levels[entry.priority]
        level.ready -= 1
        entry.standing = None
        self._available -= 1
        self._ready -= 1
        entry.is_pending = False
        entry.is_locked = True
        entry.taken_at = now
        self._in_work.add(entry)
        self._observe_latency(now - entry.ready_at)
        triggers = entry.triggers
        return Item(
            entry.key,
            entry.priority,
            () if triggers is None else tuple(triggers),
            self._limiter.num_requeues(entry.key),
            entry.omitted,
        )

    def done(self, key: R) -> None:
        """Unlock a key.

        If it was added meanwhile, it is handed out again. Does nothing for a key that is not in work.
        """
        entry = self._entries.get(key)
        if entry is None or not entry.is_locked:
            return
        self._observe_work(self._clock() - entry.taken_at)
        self._in_work.remove(entry)
        if not entry.is_pending:
            del self._entries[key]
        else:
            entry.is_locked = False
            if entry.sequence:
                level = self._levels[entry.priority]
                heappush(level.late, (entry.sequence, entry))
                self._place(entry, level)
        if self._idlers:
            self._tell_idlers()

    def remove(self, matches: Callable[[R], bool]) -> list[R]:
        """Remove keys that are ready or wait, and forget their failures.

        Keys in work end, and are not handed out again. Return the removed keys.
        """
        removed: list[R] = []
        for entry in list(self._entries.values()):
            if not entry.is_pending or not matches(entry.key):
                continue
            removed.append(entry.key)
            entry.is_pending = False  # so its place among the waiting ones is stale
            if entry.sequence:
                level = self._levels[entry.priority]
                level.ready -= 1
                self._ready -= 1
                if entry.standing is not None:
                    entry.standing = None
                    self._available -= 1
                    level.sweep()
            else:
                self._waiting_count -= 1
            self._limiter.forget(entry.key)
            if not entry.is_locked:
                del self._entries[entry.key]
        self._tell_idlers()
        return removed

    def forget(self, key: R) -> None:
        """Reset the failures of the key.

        Its next rate-limited add waits the first delay.
        """
        self._limiter.forget(key)

    def num_requeues(self, key: R) -> int:
        """Return the number of consecutive failures of the key."""
        return self._limiter.num_requeues(key)

    def _next(self, now: float) -> _Entry[R]:
        """Remove the entry whose turn it is from its level. There is one."""
        self._turn += 1
        if self._turn >= AGED_SHARE:
            self._turn = 0
            if (entry := self._overdue(now)) is not None:
                return entry
        while True:
            level = self._listed[0][1]
            entry = level.pop()
            if entry is not None:
                return entry
            heappop(self._listed)
            level.is_listed = False

    def _overdue(self, now: float) -> _Entry[R] | None:
        oldest = self.oldest_ready_at
        if self._aging is None or oldest is None or now - oldest < self._aging:
            return None
        entry = self._by_age.popleft()
        # Its place on the level goes stale with this.
        entry.standing = None
        self._levels[entry.priority].sweep()
        return entry

    # --- for a queue of queues -------------------------------------------------------------------------------------

    @property
    def top(self) -> int | None:
        """The priority of the next key, or None if no key is available."""
        if not self._available:
            return None
        while not (level := self._listed[0][1]).has_next():
            heappop(self._listed)
            level.is_listed = False
        return level.priority

    @property
    def oldest_ready_at(self) -> float | None:
        """The time at which the key became ready that has been available longest."""
        by_age = self._by_age
        if len(by_age) > 2 * self._available + _STALE_SLACK:
            self._by_age = by_age = deque(entry for entry in by_age if entry.standing is not None)
        while by_age and by_age[0].standing is None:
            by_age.popleft()
        return by_age[0].ready_at if by_age else None

    def favor_oldest(self) -> None:
        """Hand out the key next that has been ready longest, if it is overdue."""
        self._turn = AGED_SHARE

    @property
    def in_work(self) -> int:
        """The number of keys in work."""
        return len(self._in_work)

    @property
    def is_empty(self) -> bool:
        """Whether no key is in the queue or in work."""
        return not self._entries

    @property
    def is_idle(self) -> bool:
        """Whether no key is in work and none is ready.

        After `shut_down`: whether none is in work.
        """
        return not self._in_work and (self._is_shut_down or not self._ready)

    # --- time ------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Make due keys ready. The queue calls it in its timer and in every other method."""
        if self._waiting and not self._is_shut_down:
            self._promote(self._clock())

    def _promote(self, now: float) -> None:
        waiting = self._waiting
        while waiting and (waiting[0][0] <= now or not _is_waiting(waiting[0])):
            place = heappop(waiting)
            if _is_waiting(place):
                self._waiting_count -= 1
                # Latency counts from the moment the key was due, as nobody may have looked since.
                self._become_ready(place[2], place[0])
        self._arm()

    def _arm(self) -> None:
        """Have the timer fire when the first waiting key is due."""
        if not self._waiting or self._is_shut_down:
            return
        moment = self._waiting[0][0]
        if self._timer is not None:
            if self._timer_at <= moment:
                return
            self._timer.cancel()
            self._timer = None
        if self._loop is None:
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # not on a loop yet: whoever waits in `get` arms the timer
        self._timer_at = moment
        self._timer = self._loop.call_later(max(0.0, moment - self._clock()), self._fire)

    def _fire(self) -> None:
        self._timer = None
        # A loop's timer may fire a little early; then nothing is due and it is armed again.
        self._promote(self._clock())

    # --- ending ----------------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Shut down: accept and hand out no more keys.

        `get` raises QueueShutDownError. Keys in work may still be `done`.
        """
        self._is_shut_down = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._getters.wake_all()
        self._tell_idlers()

    async def wait_idle(self) -> None:
        """Wait until no key is in work and none is ready.

        After `shut_down`, wait until none is in work.
        """
        while not self.is_idle:
            idler = asyncio.get_running_loop().create_future()
            self._idlers.append(idler)
            await idler

    def state(self) -> QueueState:
        """Return the number of ready keys by priority, and the work times of keys in work.

        Safe in any thread.
        """
        now = self._clock()
        ready = {level.priority: level.ready for level in list(self._levels.values())}
        return QueueState(ready, tuple(now - entry.taken_at for entry in list(self._in_work)))

    def pending(self, key: R) -> Pending[R] | None:
        """Return the state of a key in the queue, or None if it is not in the queue."""
        entry = self._entries.get(key)
        return None if entry is None else self._look_at(entry, self._clock())

    def overview(self, limit: int = 100) -> Overview[R]:
        """Return the state of the queue, with at most `limit` of its keys."""
        self.tick()
        now = self._clock()
        first = nsmallest(limit, self._entries.values(), key=lambda entry: (not entry.is_locked, entry.ready_at))
        ready = [entry.ready_at for entry in self._entries.values() if entry.sequence and entry.is_pending]
        return Overview(
            ready=self._ready,
            waiting=self._waiting_count,
            in_work=len(self._in_work),
            by_priority={level.priority: level.ready for level in self._levels.values() if level.ready},
            oldest_ready=now - min(ready) if ready else None,
            keys=tuple(self._look_at(entry, now) for entry in first),
        )

    def _look_at(self, entry: _Entry[R], now: float) -> Pending[R]:
        return Pending(
            key=entry.key,
            priority=entry.priority,
            ready_in=entry.ready_at - now if entry.is_pending else None,
            in_work=now - entry.taken_at if entry.is_locked else None,
            triggers=tuple(entry.triggers or ()),
            omitted=entry.omitted,
            attempts=self._limiter.num_requeues(entry.key),
        )

    def _tell_idlers(self) -> None:
        if self.is_idle:
            for idler in self._idlers:
                if not idler.done():
                    idler.set_result(None)
            self._idlers.clear()


def _is_waiting(place: tuple[float, int, _Entry[R]]) -> bool:
    """Say whether an entry still waits for this moment."""
    moment, _, entry = place
    return not entry.sequence and entry.is_pending and entry.ready_at == moment
