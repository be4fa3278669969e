"""The life of a cluster in a fleet, as a pure state machine.

Its inputs are what the transport of the cluster has seen, and the time. `Life.look` returns the next state.

| state | reads | reconciles | next |
|---|---|---|---|
| Connecting | `ClusterNotReadyError` | none | Engaged (or Standby) when all watched kinds are listed |
| Standby | `ForeignShardError` | of another replica | Engaged when this replica may reconcile it |
| Engaged | from the cache | run | Degraded after three failures in a row, or a minute without a response; Standby when it moves |
| Degraded | from the cache | cancelled; their requests wait | Engaged with the next response |
| Gone | `ClusterGoneError` | cancelled | |
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from ctrlruntime.rest.contact import MAX_FAILURES

__all__ = ["ClusterState", "Life", "Seen"]

MAX_SILENCE: Final = 60.0
"""Seconds without a response after which a cluster is degraded."""

PROBE_AFTER: Final = 30.0
"""Seconds without a response after which a small request asks for one."""

FIRST_RETRY: Final = 1.0
LONGEST_RETRY: Final = 60.0
"""Seconds between two attempts to reach a cluster; the delay doubles each time."""


class ClusterState(enum.Enum):
    """The state of a cluster in a fleet."""

    CONNECTING = "Connecting"
    """The kinds that controllers watch are not listed yet."""

    STANDBY = "Standby"
    """Another replica reconciles its objects. This one has them in its cache, to take over or because it had them until now."""

    ENGAGED = "Engaged"
    """Its objects are reconciled."""

    DEGRADED = "Degraded"
    """It does not respond. Its requests wait, and reads return what the cache has."""

    GONE = "Gone"
    """It was removed."""


class Seen(msgspec.Struct, frozen=True):
    """What is known of a cluster at one moment."""

    answered: int
    """The number of responses so far."""

    failures: int
    """Failures since the last one."""

    is_listed: bool
    """All kinds that controllers watch are in the cache."""

    is_here: bool = True
    """This replica may reconcile its objects."""


class Life:
    """The state of one cluster.

    now: seconds on the clock of `look`.
    """

    def __init__(self, now: float) -> None:
        self.state = ClusterState.CONNECTING
        self.since = now
        self._answered = 0
        self._answered_at = now

    def look(self, seen: Seen, now: float) -> ClusterState:
        """Return the state that follows from what is seen."""
        if seen.answered != self._answered:
            self._answered, self._answered_at = seen.answered, now
        match self.state:
            case ClusterState.CONNECTING if seen.is_listed:
                self._enter(ClusterState.ENGAGED if seen.is_here else ClusterState.STANDBY, now)
            case ClusterState.ENGAGED | ClusterState.DEGRADED if not seen.is_here:
                self.stand_by(now)
            case ClusterState.STANDBY if seen.is_here:
                self._enter(ClusterState.ENGAGED, now)
            case ClusterState.ENGAGED if self._is_silent(seen, now):
                self._enter(ClusterState.DEGRADED, now)
            case ClusterState.DEGRADED if not self._is_silent(seen, now) and not seen.failures:
                self._enter(ClusterState.ENGAGED, now)
            case _:
                pass
        return self.state

    def end(self, now: float) -> None:
        """The cluster was removed."""
        self._enter(ClusterState.GONE, now)

    def stand_by(self, now: float) -> None:
        """Another replica reconciles its objects from now on."""
        if self.state in {ClusterState.ENGAGED, ClusterState.DEGRADED}:
            self._enter(ClusterState.STANDBY, now)

    def fail(self, now: float) -> None:
        """Its task has ended, so nothing of it is up to date any more."""
        self._enter(ClusterState.DEGRADED, now)

    def silence(self, now: float) -> float:
        """Return the seconds since the last response, or since the start."""
        return now - self._answered_at

    def _is_silent(self, seen: Seen, now: float) -> bool:
        return seen.failures >= MAX_FAILURES or now - self._answered_at >= MAX_SILENCE

    def _enter(self, state: ClusterState, now: float) -> None:
        self.state, self.since = state, now
