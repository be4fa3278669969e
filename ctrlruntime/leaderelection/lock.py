"""What an elector needs to know and to be able to do: a record that says who leads, kept where all candidates see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """Who leads. The times are by the clock of the holder and are shown, never calculated with."""

    holder: str = ""
    """Identity of the leader; empty when the lease was given back."""

    lease_duration: int = 0
    """Seconds after which the lease runs out if it is not renewed."""

    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    transitions: int = 0
    """How many times the lease went to another holder."""


class Lock(Protocol):
    """Keeps one LeaseRecord, with a guard against simultaneous writes. Implement it to elect by something other than a
    Lease.
    """

    @property
    def name(self) -> str:
        """What to call the lock in log lines."""
        ...

    async def get(self) -> LeaseRecord | None:
        """Read the record; None if it does not exist yet."""
        ...

    async def create(self, record: LeaseRecord) -> None:
        """Write the first record. Raises: AlreadyExists."""
        ...

    async def update(self, record: LeaseRecord) -> None:
        """Replace the record this lock read or wrote last. Raises: Conflict when it has changed since, NotFound when
        it is gone.
        """
        ...
