"""Requests to API servers, by response."""

from __future__ import annotations

import threading


class RestMetrics:
    """Counts requests. Safe in any thread."""

    __slots__ = ("_counts", "_lock", "_throttled", "_waited")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], int] = {}
        self._throttled: dict[str, float] = {}
        self._waited: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def throttled(self, seconds: float, host: str) -> None:
        """Add the time that a request waits because of 429 or 503 with Retry-After."""
        with self._lock:
            self._throttled[host] = self._throttled.get(host, 0.0) + seconds

    def throttled_seconds(self) -> dict[str, float]:
        """Return the seconds waited, by host."""
        with self._lock:
            return dict(self._throttled)

    def waited(self, seconds: float, reason: str, host: str) -> None:
        """Add the time that a request waited before it was sent.

        It waited for a "connection", or for the client's own "rate" limit.
        """
        key = (reason, host)
        with self._lock:
            self._waited[key] = self._waited.get(key, 0.0) + seconds

    def waited_seconds(self) -> dict[tuple[str, str], float]:
        """Return the seconds waited, by (reason, host)."""
        with self._lock:
            return dict(self._waited)

    def request(self, code: str, method: str, host: str) -> None:
        """Count one response; `code` is "<error>" if there was none."""
        key = (code, method, host)
        # Two event loops send requests, and reading and writing back are two steps.
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1

    def counts(self) -> dict[tuple[str, str, str], int]:
        """Return the number of requests by (code, method, host)."""
        with self._lock:
            return dict(self._counts)
