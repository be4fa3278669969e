"""The counters of one event recorder."""

from __future__ import annotations


class EventMetrics:
    """Plain counters, written by the recorder under its lock."""

    __slots__ = ("cluster", "controller", "dropped")

    def __init__(self, controller: str, cluster: str = "") -> None:
        self.controller = controller
        self.cluster = cluster
        self.dropped = 0
        """Events that were recorded and not written."""
