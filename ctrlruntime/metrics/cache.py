"""What the cache of one kind holds and how its watches fare; controller-runtime has no such metrics."""

from __future__ import annotations


class CacheMetrics:
    """Plain numbers; the informer of the kind writes them."""

    __slots__ = (
        "cluster",
        "decode_errors",
        "events_coalesced",
        "kind",
        "last_activity",
        "objects",
        "relists",
        "size_bytes",
        "subscribers",
        "watch_restarts",
    )

    def __init__(self, kind: str, cluster: str = "") -> None:
        self.kind = kind
        self.cluster = cluster
        self.objects: float = 0
        self.size_bytes: float = 0
        """Bytes of the objects' JSON as stored."""
        self.subscribers: float = 0
        """Watches of controllers that get the events of the kind."""

        self.relists: float = 0
        self.watch_restarts: dict[str, float] = {}
        """Watches that ended and were begun anew, by why (ended, expired, stalled, cut, throttled, refused, failed)."""

        self.events_coalesced: float = 0
        """Events merged with later ones of their key because a subscriber was behind."""
        self.decode_errors: float = 0
        self.last_activity: float | None = None
        """When (by the monotonic clock) the server last proved that the watch is alive; None before the first time."""
