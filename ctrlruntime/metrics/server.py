"""Metrics of one HTTP server: connections, bytes, and limits reached."""

from __future__ import annotations


class ServerMetrics:
    """`connections` and `request_bytes` (of requests without a response) are current values; `limited` counts by limit."""

    __slots__ = ("connections", "limited", "name", "request_bytes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.connections = 0
        self.request_bytes = 0
        self.limited: dict[str, int] = {}
