"""How well the main event loop answers."""

from __future__ import annotations

from typing import Final

from ctrlruntime.metrics.histogram import Histogram

LAG_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0)


class LoopMetrics:
    """Plain counters; the manager's second loop adds to them."""

    __slots__ = ("blocked", "lag", "stalled")

    def __init__(self) -> None:
        self.lag = Histogram(LAG_BOUNDS)
        """Seconds the main loop took to answer, each time it was asked."""
        self.blocked = 0
        """Times it did not answer for so long that a warning was due."""
        self.stalled = 0.0
        """Seconds it has not answered now; 0 while it does."""
