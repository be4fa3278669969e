"""A queue of queues: groups of keys take turns, and each has its own limit of keys in work.

Each group is a *lane* with a `PriorityQueue` of its own. The next key is from the lane with the highest priority. Among lanes with the same
priority, it is the one that was served longest ago. So a group with 10,000 keys delays a key of another group by one hand-over.

Ageing works over all lanes: every 20th key handed out is the one that has been ready longest, if it is overdue (see `priority`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush, nsmallest
from typing import Final, Generic

from typing_extensions import TypeVar

from ctrlruntime.metrics import QueueMetrics, QueueState
from ctrlruntime.reconcile import Request
from ctrlruntime.workqueue.priority import (
    AGED_SHARE,
    Item,
    Overview,
    Pending,
    PriorityQueue,
    QueueShutDownError,
    ThreadsafeAdd,
    Waiters,
    guarded,
)
from ctrlruntime.workqueue.rate_limiter import RateLimiter

R = TypeVar("R", default=Request)

AGING: Final = 10.0
_STALE_SLACK: Final = 64


class _Lane(Generic[R]):
    """One group of keys."""

    __slots__ = ("place", "queue", "turn")

    def __init__(self) -> None:
        self.queue: PriorityQueue[R]
        self.turn = 0
        """The turn in which it was served last."""

        self.place: tuple[int, int, int, _Lane[R]] | None = None
        """Its valid place in the heap: negative priority, turn, a number, and itself."""


class FairQueue(ThreadsafeAdd[R]):
    """A queue of keys, whose groups take turns. Use it on one event loop.

    Its methods are those of `PriorityQueue`.

    Args:
        group: returns the group of a key.
        most_in_work: the number of keys of one group in work at once.
        aging: seconds after which a ready key is overdue. None: low priorities may starve.
        admit: returns whether a key may be added. Others are dropped.
        clock: measures all delays in seconds.

    """

    def __init__(
        self,
        group: Callable[[R], Hashable],
        *,
        most_in_work: int,
        rate_limiter: RateLimiter[R] | None = None,
        metrics: QueueMetrics | None = None,
        aging: float | None = AGING,
        admit: Callable[[R], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._most_in_work = most_in_work
        self._metrics = metrics or QueueMetrics("")
        self._limiter: RateLimiter[R] = guarded(rate_limiter, self._metrics)
        self._aging = aging
        self._admit = admit
        self._clock = clock
        self._lanes: dict[Hashable, _Lane[R]] = {}
        self._places: list[tuple[int, int, int, _Lane[R]]] = []
        """A heap. A place is stale if its lane has another one."""

        self._numbers = 0
        self._turn = 0
        self._aged_turn = 0
        self._getters = Waiters()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_shut_down = False
        self._metrics.watch(self.state)

    def __len__(self) -> int:
        """Return the number of ready keys, with locked and without waiting ones."""
        return sum(len(lane.queue) for lane in self._lanes.values())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"FairQueue({len(self)} ready in {len(self._lanes)} lanes)"

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
        """Add a key, at once or later; see `PriorityQueue.add`."""
        if self._is_shut_down or (self._admit is not None and not self._admit(key)):
            return
        group = self._group(key)
        lane = self._lanes.get(group) or self._new_lane(group)
        lane.queue.add(key, priority=priority, after=after, rate_limited=rate_limited, trigger=trigger)

    def _new_lane(self, group: Hashable) -> _Lane[R]:
        lane: _Lane[R] = _Lane()
        lane.queue = PriorityQueue(
            rate_limiter=self._limiter,
            metrics=self._metrics,
            aging=self._aging,
            on_ready=lambda: self._ready(lane),
            clock=self._clock,
        )
        self._metrics.watch(self.state)  # and not that of the lane
        self._lanes[group] = lane
        return lane

    # --- taking ----------------------------------------------------------------------------------------------------

    async def get(self) -> Item[R]:
        """Wait for the next key and lock it until `done`. Raises: QueueShutDownError."""
        while (item := self.get_nowait()) is None:
            self._loop = asyncio.get_running_loop()
            await self._getters.wait(lambda: self._next_place() is not None)
        return item

    def get_nowait(self) -> Item[R] | None:
        """Take the next key and lock it until `done`.

        None if no key is available. Raises: QueueShutDownError.
        """
        if self._is_shut_down:
            raise QueueShutDownError
        lane = self._next_lane()
        if lane is None:
            return None
        item = lane.queue.get_nowait()
        lane.place = None
        self._turn = lane.turn = self._turn + 1
        self._list(lane)
        return item

    def done(self, key: R) -> None:
        """Unlock a key; see `PriorityQueue.done`."""
        lane = self._lanes.get(self._group(key))
        if lane is None:
            return
        lane.queue.done(key)
        if lane.place is None:
            self._ready(lane)  # the limit may have kept it

    def remove(self, matches: Callable[[R], bool]) -> list[R]:
        """Remove keys; see `PriorityQueue.remove`."""
        removed: list[R] = []
        for group, lane in list(self._lanes.items()):
            removed += lane.queue.remove(matches)
            if lane.queue.is_empty:
                lane.place = None
                del self._lanes[group]
        return removed

    def forget(self, key: R) -> None:
        """Reset the failures of the key."""
        self._limiter.forget(key)

    def num_requeues(self, key: R) -> int:
        """Return the number of consecutive failures of the key."""
        return self._limiter.num_requeues(key)

    # --- turns -----------------------------------------------------------------------------------------------------

    def _ready(self, lane: _Lane[R]) -> None:
        """Give a lane its place, and wake a caller of `get`."""
        self._list(lane)
        if lane.place is not None and self._getters:
            self._getters.wake_one()

    def _list(self, lane: _Lane[R]) -> None:
        """Give a lane its place, if it may hand out a key."""
        if lane.queue.in_work >= self._most_in_work or (top := lane.queue.top) is None:
            lane.place = None
            return
        if lane.place is not None and lane.place[0] == -top:
            return
        self._numbers += 1
        lane.place = (-top, lane.turn, self._numbers, lane)
        heappush(self._places, lane.place)
        if len(self._places) > 2 * len(self._lanes) + _STALE_SLACK:
            self._places = [place for place in self._places if place[3].place is place]
            heapify(self._places)

    def _next_place(self) -> tuple[int, int, int, _Lane[R]] | None:
        """Return the first place that holds; there may be stale ones before it."""
        while self._places:
            place = self._places[0]
            lane = place[3]
            if lane.place is place and lane.queue.top == -place[0]:
                return place
            heappop(self._places)
            if lane.place is place:  # its next key was removed
                lane.place = None
                self._list(lane)
        return None

    def _next_lane(self) -> _Lane[R] | None:
        if (place := self._next_place()) is None:
            return None
        self._aged_turn += 1
        if self._aged_turn >= AGED_SHARE:
            self._aged_turn = 0
            if (lane := self._overdue()) is not None:
                lane.queue.favor_oldest()
                return lane
        return place[3]

    def _overdue(self) -> _Lane[R] | None:
        """Return the lane with the key that has been ready longest, if it is overdue."""
        if self._aging is None:
            return None
        ready = [
            (since, number, lane)
            for number, lane in enumerate(self._lanes.values())
            if lane.place is not None and (since := lane.queue.oldest_ready_at) is not None
        ]
        if not ready:
            return None
        since, _, lane = min(ready)
        return lane if self._clock() - since >= self._aging else None

    # --- the rest --------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Make due keys ready."""
        for queue in self._queues():
            queue.tick()

    def shut_down(self) -> None:
        """Shut down: accept and hand out no more keys; see `PriorityQueue.shut_down`."""
        self._is_shut_down = True
        for queue in self._queues():
            queue.shut_down()
        self._getters.wake_all()

    async def wait_idle(self) -> None:
        """Wait until no key is in work and none is ready.

        After `shut_down`, wait until none is in work.
        """
        while busy := [queue for queue in self._queues() if not queue.is_idle]:
            await busy[0].wait_idle()

    def state(self) -> QueueState:
        """Return the number of ready keys by priority, and the work times of keys in work.

        Safe in any thread.
        """
        states = [queue.state() for queue in self._queues()]
        ready: dict[int, int] = {}
        for state in states:
            for priority, number in state.ready.items():
                ready[priority] = ready.get(priority, 0) + number
        return QueueState(ready, tuple(seconds for state in states for seconds in state.in_work))

    def pending(self, key: R) -> Pending[R] | None:
        """Return the state of a key in the queue, or None if it is not in the queue."""
        lane = self._lanes.get(self._group(key))
        return None if lane is None else lane.queue.pending(key)

    def overview(self, limit: int = 100) -> Overview[R]:
        """Return the state of the queue, with at most `limit` of its keys."""
        found = [queue.overview(limit) for queue in self._queues()]
        by_priority: dict[int, int] = {}
        for each in found:
            for priority, number in each.by_priority.items():
                by_priority[priority] = by_priority.get(priority, 0) + number
        keys = (key for each in found for key in each.keys)
        return Overview(
            ready=sum(each.ready for each in found),
            waiting=sum(each.waiting for each in found),
            in_work=sum(each.in_work for each in found),
            by_priority=by_priority,
            oldest_ready=max((each.oldest_ready for each in found if each.oldest_ready is not None), default=None),
            keys=tuple(nsmallest(limit, keys, key=lambda key: (key.in_work is None, key.ready_in or 0.0))),
        )

    def _queues(self) -> Iterator[PriorityQueue[R]]:
        return (lane.queue for lane in list(self._lanes.values()))
