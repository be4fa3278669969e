"""Metrics of a replica that shares the objects with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class ShardNumbers(NamedTuple):
    """The state of a replica at a scrape."""

    members: int = 0
    """The number of replicas whose Leases have not expired."""

    unowned: int = 0
    """The number of slots without an owner."""

    slots: Mapping[str, int] = {}
    """The number of slots by their state in this process."""

    opened: int = 0
    """The number of slots that were opened here."""

    foreign_requests: int = 0
    """The number of requests that were dropped, because other replicas reconcile them."""

    foreign_writes: int = 0
    """The number of writes by reconciles to objects that other replicas reconcile."""

    failures: int = 0
    """The number of requests for Leases without a response."""


class ShardMetrics:
    """The metrics of the ring `name`. `read` returns the numbers, in any thread."""

    __slots__ = ("name", "read")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Callable[[], ShardNumbers] = ShardNumbers
