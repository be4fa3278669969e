"""Recent facts by key, with limits: triggers, runs and calls, to explain why an object was reconciled.

Sources create triggers, controllers record runs, the client's gate records calls; `explain` and the log read them. Nothing grows without a
limit: each key has its last few facts, the least recently used keys are dropped, and the bytes of objects are kept only for the latest
changes. Use it on one event loop.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

import msgspec

KEYS: Final = 10_000
"""The number of keys, over all controllers."""

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


class _Facts(msgspec.Struct, eq=False, gc=False):
    """The facts about a key.

    Lists are created on demand, because most keys have one run and no calls.
    """

    last: Run | None = None
    number: int = 0
    """The number of the last run among all runs."""

    earlier: list[Run] | None = None
    calls: list[Call] | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        return () if self.last is None else (*(self.earlier or ()), self.last)


def _least(earlier: list[Run]) -> int:
    """Return the run that tells least: the oldest mere repetition; so that what a row of failures began with is not forgotten."""
    for position, run in enumerate(earlier):
        if run.attempts and not run.triggers:
            return position
    return 0


class Journal:
    """Keeps the facts about keys.

    The last `facts` runs and `calls` calls of the last `keys` keys, at most `together` runs and calls in total, and the last run of each
    key. `clock` returns seconds since 1970. Raises: ValueError.
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
        self._runs = facts
        self._calls = calls
        self._clock = clock
        self._facts: OrderedDict[tuple[str, Hashable], _Facts] = OrderedDict()
        self._together = together
        self._count = 0
        # Runs that are not their key's last one any more: those that may be too old, each with its number.
        self._earlier: deque[tuple[int, _Facts, Run]] = deque()
        self._latest_calls: deque[tuple[_Facts, Call]] = deque()

    def now(self) -> float:
        """Return the time of the journal, for `started` of runs and calls."""
        return self._clock()

    def ran(self, controller: str, key: Hashable, run: Run) -> None:
        """Record a finished reconcile."""
        facts = self._of(controller, key)
        self._count = count = self._count + 1
        oldest = count - self._together  # a run up to this number is kept only while it is its key's last one
        if facts.last is not None and facts.number > oldest:
            earlier = facts.earlier
            if earlier is None:
                earlier = facts.earlier = []
            earlier.append(facts.last)
            if len(earlier) >= self._runs:
                del earlier[_least(earlier) if run.attempts else 0]
            self._earlier.append((facts.number, facts, facts.last))
        facts.last = run
        facts.number = count
        aside = self._earlier
        while aside and aside[0][0] <= oldest:
            _, old, shed = aside.popleft()
            if old.earlier and old.earlier[0] is shed:  # of one key they come here in the order they ran in
                del old.earlier[0]

    def called(self, controller: str, key: Hashable, call: Call) -> None:
        """Record a finished request."""
        facts = self._of(controller, key)
        if facts.calls is None:
            facts.calls = []
        facts.calls.append(call)
        if len(facts.calls) > self._calls:
            del facts.calls[0]
        latest = self._latest_calls
        latest.append((facts, call))
        if len(latest) > self._together:
            old, oldest = latest.popleft()
            if old.calls and old.calls[0] is oldest:
                del old.calls[0]

    def history(self, controller: str, key: Hashable) -> History:
        """Return the facts about a key; empty for an unknown key."""
        facts = self._facts.get((controller, key))
        return History() if facts is None else History(runs=facts.runs, calls=tuple(facts.calls or ()))

    def keys(self, controller: str) -> list[Hashable]:
        """Return the keys of a controller, the most recently used last."""
        return [key for name, key in self._facts if name == controller]

    def latest(self) -> Iterator[tuple[str, Hashable, Sequence[Run]]]:
        """Iterate over controller, key and runs of all keys, the most recently used first.

        Do not write meanwhile.
        """
        for (controller, key), facts in reversed(self._facts.items()):
            yield controller, key, facts.runs

    def _of(self, controller: str, key: Hashable) -> _Facts:
        name = (controller, key)
        facts = self._facts.get(name)
        if facts is None:
            facts = self._facts[name] = _Facts()
            if len(self._facts) > self._keys:
                self._facts.popitem(last=False)
        else:
            self._facts.move_to_end(name)
        return facts
