"""Faults on demand, for tests of clients: lost history, cut watches, failing requests.

Call the methods from the server's own loop, or through `ServerThread.call`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctrlruntime.apiserver.storage import Store


@dataclass(slots=True)
class _Failure:
    method: str
    path: re.Pattern[str]
    status: int
    retry_after: float | None
    left: int


class Faults:
    """Switches that make the server misbehave as real ones do."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: list[_Failure] = []

    def expire_history(self) -> None:
        """Compact now: watches that resume from a version before this moment, and continue tokens, get 410 Expired."""
        self._store.next_revision()
        self._store.forget_history()

    def close_watches(self, group: str = "", resource: str = "") -> int:
        """End the watches of one resource, or of all when `resource` is empty; return how many there were."""
        tables = self._store.tables()
        chosen = [table for table in tables if not resource or (table.group, table.plural) == (group, resource)]
        return sum(table.close_subscriptions() for table in chosen)

    def fail_next(
        self, method: str, path: str, status: int, *, retry_after: float | None = None, times: int = 1
    ) -> None:
        """Answer the next `times` requests of this method whose path matches the regular expression with `status`.

        `retry_after` is in seconds. An empty method means any.
        """
        self._failures.append(_Failure(method, re.compile(path), status, retry_after, times))

    def clear(self) -> None:
        """Forget the failures that were asked for and did not happen yet."""
        self._failures.clear()

    def next_failure(self, method: str, path: str) -> tuple[int, float | None] | None:
        """Return (status, seconds to retry after) when this request is to fail."""
        if not self._failures:
            return None
        for failure in self._failures:
            if failure.method in {"", method} and failure.path.search(path):
                failure.left -= 1
                if not failure.left:
                    self._failures.remove(failure)
                return failure.status, failure.retry_after
        return None
