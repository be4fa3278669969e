"""Metrics of the cache of one kind and its watches. controller-runtime has none."""

from __future__ import annotations

from collections.abc import Callable


class CacheMetrics:
    """Plain counters, written by the informer of the kind."""

    __slots__ = (
        "cluster",
        "decode_errors",
        "events_coalesced",
        "filtered",
        "kind",
        "objects",
        "relists",
        "server_ranges",
        "silence",
        "size_bytes",
        "subscribers",
        "watch_restarts",
    )

    def __init__(self, kind: str, cluster: str = "") -> None:
        self.kind = kind
        self.cluster = cluster
        self.objects: float = 0
        self.size_bytes: float = 0
        """The size of the stored JSON in bytes."""
        self.subscribers: float = 0
        """Watches of controllers that receive the events of the kind."""

        self.relists: float = 0
        self.watch_restarts: dict[str, float] = {}
        """Restarts of watches by reason (ended, expired, stalled, cut, throttled, refused, failed)."""

        self.events_coalesced: float = 0
        """Events merged with later ones of their object because a subscriber was slow."""
        self.decode_errors: float = 0
        self.silence: Callable[[], float] | None = None
        """Returns the seconds since the last activity of the watch, or since it started. None: it does not run."""
        self.filtered: float | None = None
        """Objects of other replicas that the server sent in lists and watches. None: the kind is cached whole."""
        self.server_ranges: float | None = None
        """The ranges of uids that the server is asked for; 0: all. None: the kind is cached whole."""
