"""What callers of one HTTP server cost it now, and how often a limit was met."""

from __future__ import annotations


class ServerMetrics:
    """`connections` and `request_bytes` (of requests without an answer) are of now; `limited` counts by name of the limit."""

    __slots__ = ("connections", "limited", "name", "request_bytes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.connections = 0
        self.request_bytes = 0
        self.limited: dict[str, int] = {}
