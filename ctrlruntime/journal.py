"""Recent facts by key, with limits: triggers, runs and calls, to explain why an object was reconciled.

Sources create triggers, controllers record runs, the client's gate records calls; `explain` and the log read them. Nothing grows without a
limit: each key has its last few facts, keys without a recent run are dropped, and the bytes of objects are kept only for the latest
changes. Use it on one event loop.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

KEYS: Final = 10_000
"""The number of keys, over all controllers; up to twice as many can be kept."""

FACTS: Final = 8
"""The maximum number of runs of one key."""

TOGETHER: Final = 8_192
"""The maximum number of runs, and of calls, in total, in addition to the last run of each key."""

CALLS: Final = 16
"""The maximum number of calls of one key."""

CHANGES: Final = 256
"""The number of updates of each source whose old and new bytes are kept, to name the changed fields."""

CHANGES_BYTES: Final = 1024 * 1024
"""The maximum size of these bytes."""


class Trigger(msgspec.Struct, eq=False, gc=False):
    """Why a request was enqueued: `event` (create, update, delete, generic) of an object in a version, from a source."""

    event: str
    source: str
    namespace: str
    name: str
    resource_version: str
    cluster: str = ""
    old_version: str = ""
    """The version before an update."""

    seen_at: float = 0.0
    """The time at which the source enqueued it, in seconds since 1970."""

    old: bytes | None = None
    """The object before and after an update, while it is one of the latest changes of its source."""

    new: bytes | None = None

    def __str__(self) -> str:
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        where = f"{self.cluster}:" if self.cluster else ""
        event, moved = self.event, self.resource_version
        if self.old_version == moved != "":
            event = "resync"
        elif self.old_version:
            moved = f"{self.old_version}→{moved}"
        return f"{event} {self.source} {where}{key}" + (f"@{moved}" if moved else "")


class Changes:
    """Keeps the bytes of the latest `count` triggers of one source, at most `size` bytes in total."""

    __slots__ = ("_bytes", "_count", "_size", "_triggers")

    def __init__(self, count: int = CHANGES, size: int = CHANGES_BYTES) -> None:
        self._count = count
        self._size = size
        self._bytes = 0
        self._triggers: deque[tuple[Trigger, int]] = deque()

    def hold(self, trigger: Trigger, old: bytes, new: bytes) -> None:
        """Add the bytes of an update to the trigger, and drop those of the oldest triggers above the limits."""
        trigger.old = old
        trigger.new = new
        size = len(old) + len(new)
        triggers = self._triggers
        triggers.append((trigger, size))
        self._bytes += size
        while self._bytes > self._size or len(triggers) > self._count:
            before, size = triggers.popleft()
            before.old = before.new = None
            self._bytes -= size


class Run(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One reconcile. Times are seconds since 1970."""

    id: str
    started: float
    seconds: float
    outcome: str
    """"success", "error", "requeue_after", "terminal", "timeout", or another name of the controller."""

    error: str = ""
    reason: str = ""
    """What the request waits for, from `Result.reason`."""

    attempts: int = 0
    """The number of consecutive failures before this run."""

    priority: int = 0
    triggers: tuple[object, ...] = ()
    omitted: int = 0
    """The number of triggers that are not stored."""

    wakes_at: float | None = None
    """The time of the next reconcile without a change; None: only after a change."""


class Call(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One request to an API server for a key."""

    started: float
    seconds: float
    verb: str
    what: str
    """The kind and the key, as text."""

    outcome: str = ""
    """"ok", or the reason of the failure."""

    run: str = ""
    """The ID of the reconcile."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the facts about one key, oldest first."""

    runs: Sequence[Run] = ()
    calls: Sequence[Call] = ()

    @property
    def wakes_at(self) -> float | None:
        """The time of the next run, from the last run."""
        return self.runs[-1].wakes_at if self.runs else None


class Journal:
    """Keeps the facts about keys.

    It has the last run of at least the last `keys` keys, and at most of twice as many. Of all runs and all calls it has the last `together`,
    of one key at most `facts` runs and `calls` calls. `clock` returns seconds since 1970. Raises: ValueError.

    To record a fact takes two steps of a constant cost, because it happens in each reconcile; a reader selects the facts of its key.
    """

    def __init__(
        self,
        *,
        keys: int = KEYS,
        facts: int = FACTS,
        calls: int = CALLS,
        together: int = TOGETHER,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if keys < 1 or facts < 1 or calls < 1:
            raise ValueError(
                f"a journal of {keys} keys with {facts} runs and {calls} calls each: give 1 or more of all"
            )
        self._keys = keys
        self._facts = facts
        self._calls_of_one = calls
        self._clock = clock
        self._runs: deque[tuple[_Name, Run]] = deque(maxlen=together)
        self._calls: deque[tuple[_Name, Call]] = deque(maxlen=together)
        # The last run of each key, in two generations: when the younger one is full, the older one is forgotten.
        self._younger: dict[_Name, Run] = {}
        self._older: dict[_Name, Run] = {}

    def now(self) -> float:
        """Return the time of the journal, for `started` of runs and calls."""
        return self._clock()

    def ran(self, controller: str, key: Hashable, run: Run) -> None:
        """Record a finished reconcile."""
        name = (controller, key)
        self._runs.append((name, run))
        self._younger[name] = run
        if len(self._younger) >= self._keys:
            self._older, self._younger = self._younger, {}

    def called(self, controller: str, key: Hashable, call: Call) -> None:
        """Record a finished request."""
        self._calls.append(((controller, key), call))

    def forget(self, matches: Callable[[Hashable], bool]) -> None:
        """Remove the facts about the keys that match."""
        for kept in (self._younger, self._older):
            for name in [name for name in kept if matches(name[1])]:
                del kept[name]
        self._runs = deque((each for each in self._runs if not matches(each[0][1])), self._runs.maxlen)
        self._calls = deque((each for each in self._calls if not matches(each[0][1])), self._calls.maxlen)

    def history(self, controller: str, key: Hashable) -> History:
        """Return the facts about a key; empty for an unknown key."""
        name = (controller, key)
        runs = self._kept(name, [run for other, run in self._runs if other == name])
        calls = [call for other, call in self._calls if other == name]
        return History(runs=runs, calls=tuple(calls[-self._calls_of_one :]))

    def keys(self, controller: str) -> list[Hashable]:
        """Return the keys of a controller that have a run, the most recent run last."""
        return [key for name, key in self._by_age() if name == controller]

    def latest(self) -> Iterator[tuple[str, Hashable, Sequence[Run]]]:
        """Iterate over controller, key and runs of all keys, the most recent run first."""
        runs: dict[_Name, list[Run]] = {}
        for name, run in self._runs:
            runs.setdefault(name, []).append(run)
        for name in reversed(self._by_age()):
            yield *name, self._kept(name, runs.get(name, []))

    def _by_age(self) -> dict[_Name, None]:
        """Return the names of all keys, the most recent run last."""
        names = dict.fromkeys([*self._older, *self._younger])
        for name, _ in self._runs:
            if name in names:
                del names[name]
                names[name] = None
        return names

    def _kept(self, name: _Name, runs: Sequence[Run]) -> tuple[Run, ...]:
        """Return the runs to show of a key, from its runs among the last ones of all."""
        last = self._younger.get(name) or self._older.get(name)
        if last is None:
            return ()
        earlier: list[Run] = []
        for before, run in itertools.pairwise(runs):
            earlier.append(before)
            if len(earlier) >= self._facts:
                del earlier[_least(earlier) if run.attempts else 0]
        return (*earlier, last)


_Name: TypeAlias = tuple[str, Hashable]
"""A controller and a key."""


def _least(earlier: list[Run]) -> int:
    """Return the position of the run that tells least.

    It is the oldest repetition in a row of failures, because the first run of the row has the triggers.
    """
    for position, run in enumerate(earlier):
        if run.attempts and not run.triggers:
            return position
    return 0
