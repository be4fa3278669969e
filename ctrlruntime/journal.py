"""What happened lately, by key: bounded facts for people who ask why something was, or was not, reconciled.

Controllers write runs, the client writes calls, caches write signs of life; `explain` and debug pages read. Nothing in
here decides anything, and nothing grows: each key keeps its last few facts, and the keys touched longest ago are
forgotten. Use it on one event loop.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

KEYS: Final = 10_000
"""Keys the journal remembers, over all controllers."""

FACTS: Final = 16
"""Runs, and calls, it keeps for each of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One reconcile. Times are seconds since 1970."""

    id: str
    started: float
    seconds: float
    outcome: str
    """ "success", "error", "requeue_after", "terminal", "timeout", or what the controller calls it."""

    error: str = ""
    attempts: int = 0
    """Failures in a row before this run."""

    priority: int = 0
    triggers: tuple[object, ...] = ()
    wakes_at: float | None = None
    """When the key is to be reconciled again even if nothing happens; None: when something happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request to an API server, made for a key."""

    started: float
    seconds: float
    verb: str
    what: str
    """Kind and key, as text."""

    outcome: str = ""
    """"ok", or the reason it failed for."""

    run: str = ""
    """The id of the reconcile that made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A copy of what is known of one key, oldest first."""

    runs: Sequence[Run] = ()
    calls: Sequence[Call] = ()
    waiting_since: float | None = None
    """When the key was queued for a run that has not begun."""

    @property
    def wakes_at(self) -> float | None:
        """When the key comes again by itself, as its last run said."""
        return self.runs[-1].wakes_at if self.runs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAge:
    """When a watch last proved to be alive, in seconds since 1970, and what it waits for if it does not work."""

    kind: str
    cluster: str
    alive_at: float
    trouble: str = ""


class _Facts:
    __slots__ = ("calls", "queued_at", "runs")

    def __init__(self, size: int) -> None:
        self.runs: deque[Run] = deque(maxlen=size)
        self.calls: deque[Call] = deque(maxlen=size)
        self.queued_at: float | None = None


class Journal:
    """Keeps the last `facts` runs and calls of the last `keys` keys. `clock` gives seconds since 1970."""

    def __init__(self, *, keys: int = KEYS, facts: int = FACTS, clock: Callable[[], float] = time.time) -> None:
        if keys < 1 or facts < 1:
            raise ValueError(f"a journal of {keys} keys with {facts} facts each: give 1 or more of both")
        self._size = keys
        self._per_key = facts
        self._clock = clock
        self._facts: OrderedDict[tuple[str, Hashable], _Facts] = OrderedDict()
        self._watches: dict[tuple[str, str], WatchAge] = {}

    def now(self) -> float:
        """Return the journal's time, for `started` of runs and calls."""
        return self._clock()

    def queued(self, controller: str, key: Hashable) -> None:
        """Note that the key waits for a run; kept until one is written."""
        facts = self._of(controller, key)
        if facts.queued_at is None:
            facts.queued_at = self._clock()

    def ran(self, controller: str, key: Hashable, run: Run) -> None:
        """Note a reconcile that has ended."""
        facts = self._of(controller, key)
        facts.runs.append(run)
        if facts.queued_at is not None and facts.queued_at <= run.started:
            facts.queued_at = None

    def called(self, controller: str, key: Hashable, call: Call) -> None:
        """Note a request that has ended."""
        self._of(controller, key).calls.append(call)

    def watch_alive(self, kind: str, *, cluster: str = "") -> None:
        """Note that the watch of a kind has proved to be alive just now."""
        self._watches[kind, cluster] = WatchAge(kind=kind, cluster=cluster, alive_at=self._clock())

    def watch_troubled(self, kind: str, trouble: str, *, cluster: str = "") -> None:
        """Note why the watch of a kind does not work; the next sign of life takes it back."""
        before = self._watches.get((kind, cluster))
        alive_at = before.alive_at if before is not None else 0.0
        self._watches[kind, cluster] = WatchAge(kind=kind, cluster=cluster, alive_at=alive_at, trouble=trouble)

    def history(self, controller: str, key: Hashable) -> History:
        """Return what is known of a key; nothing of one that was never seen or is forgotten."""
        facts = self._facts.get((controller, key))
        if facts is None:
            return History()
        return History(runs=tuple(facts.runs), calls=tuple(facts.calls), waiting_since=facts.queued_at)

    def keys(self, controller: str) -> list[Hashable]:
        """Return the keys a controller has facts about, the one touched last at the end."""
        return [key for name, key in self._facts if name == controller]

    def watches(self) -> list[WatchAge]:
        return list(self._watches.values())

    def _of(self, controller: str, key: Hashable) -> _Facts:
        name = (controller, key)
        facts = self._facts.get(name)
        if facts is None:
            facts = self._facts[name] = _Facts(self._per_key)
            if len(self._facts) > self._size:
                self._facts.popitem(last=False)
        else:
            self._facts.move_to_end(name)
        return facts
