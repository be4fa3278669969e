"""Metrics of the client of one cluster: waits of reads, and redundant writes. controller-runtime has none."""

from __future__ import annotations


class ClientMetrics:
    """Plain counters of a cluster's client.

    The gate and the loop detector write them on one event loop.
    """

    __slots__ = ("cluster", "loops", "read_fallbacks", "read_wait_seconds", "read_waits", "redundant_writes")

    def __init__(self, cluster: str = "") -> None:
        self.cluster = cluster
        self.read_waits: dict[str, int] = {}
        """Cached reads that waited for this process's own writes, by kind."""

        self.read_wait_seconds: dict[str, float] = {}
        self.read_fallbacks: dict[str, int] = {}
        """Cached reads that fell back to a live read because the cache was not current in time, by kind."""

        self.redundant_writes: dict[tuple[str, str, str], int] = {}
        """No-op, reverted and contested writes, by (controller, kind, reason)."""

        self.loops: dict[tuple[str, str, str], int] = {}
        """Objects for which such writes were repeated, by (controller, kind, reason)."""

    def read_waited(self, kind: str, seconds: float, *, live: bool) -> None:
        """Count a read that waited, and whether it became a live read."""
        self.read_waits[kind] = self.read_waits.get(kind, 0) + 1
        self.read_wait_seconds[kind] = self.read_wait_seconds.get(kind, 0.0) + seconds
        if live:
            self.read_fallbacks[kind] = self.read_fallbacks.get(kind, 0) + 1

    def wasted(self, controller: str, kind: str, reason: str) -> None:
        """Count a redundant write."""
        key = (controller, kind, reason)
        self.redundant_writes[key] = self.redundant_writes.get(key, 0) + 1

    def looped(self, controller: str, kind: str, reason: str) -> None:
        """Count an object with a write loop."""
        key = (controller, kind, reason)
        self.loops[key] = self.loops.get(key, 0) + 1
