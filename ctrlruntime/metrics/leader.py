"""Metrics of one elector, and of rejected writes."""

from __future__ import annotations

import threading


class LeaderMetrics:
    """`is_leader`: whether this process holds the Lease `name`.

    `slow_paths`: renewals that had to read the Lease first.
    """

    __slots__ = ("is_leader", "name", "slow_paths")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_leader = False
        self.slow_paths = 0


class FenceMetrics:
    """Counts the writes that the fence rejected, by controller.

    The controller is "" for other callers. Safe in any thread.
    """

    __slots__ = ("_counts", "_lock")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {"": 0}
        self._lock = threading.Lock()

    def refused(self, controller: str) -> None:
        """Count one rejected write."""
        with self._lock:
            self._counts[controller] = self._counts.get(controller, 0) + 1

    def counts(self) -> dict[str, int]:
        """Return the number of rejected writes by controller."""
        with self._lock:
            return dict(self._counts)
