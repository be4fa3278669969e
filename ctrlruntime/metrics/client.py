"""What the client of one cluster waited for, and which of its writes led nowhere; controller-runtime has no such metrics."""

from __future__ import annotations


class ClientMetrics:
    """Plain numbers; the gate and the loop detector of the cluster write them, on one event loop."""

    __slots__ = ("cluster", "live_reads", "loops", "read_wait_seconds", "read_waits", "wasted_writes")

    def __init__(self, cluster: str = "") -> None:
        self.cluster = cluster
        self.read_waits: dict[str, int] = {}
        """Cached reads that had to wait for this process's own writes, by kind."""

        self.read_wait_seconds: dict[str, float] = {}
        self.live_reads: dict[str, int] = {}
        """Cached reads that were answered by the server, since the cache had not caught up in time, by kind."""

        self.wasted_writes: dict[tuple[str, str, str], int] = {}
        """Writes that changed nothing or will be taken back, by (controller, kind, reason)."""

        self.loops: dict[tuple[str, str, str], int] = {}
        """Objects for which such writes were repeated, by (controller, kind, reason)."""

    def read_waited(self, kind: str, seconds: float, *, live: bool) -> None:
        """Count a read that waited, and whether the server had to answer it."""
        self.read_waits[kind] = self.read_waits.get(kind, 0) + 1
        self.read_wait_seconds[kind] = self.read_wait_seconds.get(kind, 0.0) + seconds
        if live:
            self.live_reads[kind] = self.live_reads.get(kind, 0) + 1

    def wasted(self, controller: str, kind: str, reason: str) -> None:
        """Count a write that led nowhere."""
        key = (controller, kind, reason)
        self.wasted_writes[key] = self.wasted_writes.get(key, 0) + 1

    def looped(self, controller: str, kind: str, reason: str) -> None:
        """Count an object whose writes are a loop."""
        key = (controller, kind, reason)
        self.loops[key] = self.loops.get(key, 0) + 1
