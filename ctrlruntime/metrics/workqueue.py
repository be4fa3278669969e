"""The counters of one work queue, and its state at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ctrlruntime.metrics.histogram import Histogram

DURATION_BOUNDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))

MAX_PRIORITIES: Final = 25
"""The number of priorities with their own depth; keys of other priorities are counted together."""

OTHER_PRIORITIES: Final = "exceeded_cardinality_limit"


class QueueState(NamedTuple):
    """The ready keys of a queue by priority, and the work time of its others."""

    ready: Mapping[int, int]
    in_work: tuple[float, ...]


class QueueMetrics:
    """Plain counters, written by the queue on its event loop.

    `watch` sets the state for gauges.
    """

    __slots__ = ("_labels", "_shared_label", "_state", "adds", "latency", "limiter_failures", "name", "retries", "work")

    def __init__(self, name: str) -> None:
        self.name = name
        self.adds = 0
        """Keys that became ready."""
        self.retries = 0
        """Adds with a delay."""
        self.limiter_failures = 0
        """Errors of the user's rate limiter."""
        self.latency = Histogram(DURATION_BOUNDS)
        """Seconds between ready and handed out."""
        self.work = Histogram(DURATION_BOUNDS)
        """Seconds between handed out and done."""
        self._state: Callable[[], QueueState] | None = None
        self._labels: dict[int, str] = {}
        self._shared_label: tuple[str, ...] = ()

    def watch(self, state: Callable[[], QueueState]) -> None:
        """Read gauges from `state` at each scrape.

        This can happen in another thread.
        """
        self._state = state

    def state(self) -> QueueState:
        return self._state() if self._state is not None else QueueState({}, ())

    def depths(self, ready: Mapping[int, int]) -> Iterable[tuple[str, int]]:
        """Return the depth for each label of `priority` seen so far; an empty level is 0."""
        for priority in ready:
            if priority not in self._labels and len(self._labels) < MAX_PRIORITIES:
                self._labels[priority] = str(priority)
        depths = dict.fromkeys((*self._labels.values(), *self._shared_label), 0)
        for priority, count in ready.items():
            label = self._labels.get(priority)
            if label is None:
                self._shared_label = (label := OTHER_PRIORITIES,)
            depths[label] = depths.get(label, 0) + count
        return depths.items()
