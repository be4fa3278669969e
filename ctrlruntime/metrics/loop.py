"""Metrics of the main event loop."""

from __future__ import annotations

from typing import Final

from ctrlruntime.metrics.histogram import Histogram

LAG_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)


class LoopMetrics:
    """Plain counters, written on the manager's second loop."""

    __slots__ = ("blocked", "lag", "stalled")

    def __init__(self) -> None:
        self.lag = Histogram(LAG_BOUNDS)
        """The seconds that the main loop took to respond, for each check."""
        self.blocked = 0
        """The number of times it was blocked long enough for a warning."""
        self.stalled = 0.0
        """The seconds for which it has not responded; 0 if it responds."""
