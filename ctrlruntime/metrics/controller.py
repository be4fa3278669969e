"""The counters of one controller."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ctrlruntime.metrics.histogram import Histogram

ReconcileResult: TypeAlias = Literal["success", "error", "requeue", "requeue_after"]

RESULTS: Final[tuple[ReconcileResult, ...]] = ("success", "error", "requeue", "requeue_after")

# fmt: off
TIME_BOUNDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75,
    2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)
# fmt: on


class ControllerMetrics:
    """Plain counters, for the event loop of the controller."""

    __slots__ = (
        "active_workers",
        "errors",
        "max_concurrent_reconciles",
        "name",
        "panics",
        "results",
        "terminal_errors",
        "time",
        "timeouts",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.results: dict[ReconcileResult, int] = dict.fromkeys(RESULTS, 0)
        self.time = Histogram(TIME_BOUNDS)
        """The seconds of each reconcile."""
        self.errors = 0
        """Failed reconciles, including terminal errors."""
        self.terminal_errors = 0
        self.panics = 0
        self.timeouts = 0
        """Reconciles that timed out."""
        self.active_workers = 0
        self.max_concurrent_reconciles = 0

    def count(self, result: ReconcileResult) -> None:
        """Count one reconcile by its result."""
        self.results[result] += 1

    def observe(self, seconds: float) -> None:
        """Record the time of one reconcile."""
        self.time.observe(seconds)
