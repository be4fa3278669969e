"""Who leads, as seen by one elector."""

from __future__ import annotations


class LeaderMetrics:
    """`is_leader`: whether this process holds the lease `name`; `slow_paths`: renewals that had to read the lease
    first.
    """

    __slots__ = ("is_leader", "name", "slow_paths")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_leader = False
        self.slow_paths = 0
