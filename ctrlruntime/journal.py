"""What happened lately, by key: bounded facts for people who ask why something was, or was not, reconciled.

Sources make triggers, controllers write runs, the client's gate writes calls; `explain` and the log read. Nothing in here decides anything,
and nothing grows: each key keeps its last few facts, the keys touched longest ago are forgotten, and objects' bytes are held for the latest
changes only. Use it on one event loop.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

import msgspec

KEYS: Final = 10_000
"""Keys the journal remembers, over all controllers."""

FACTS: Final = 8
"""Runs it keeps for each of them, at most."""

TOGETHER: Final = 8_192
"""Runs, and calls, it keeps of all of them together; the last run of each is kept beside them."""

CALLS: Final = 16
"""Calls it keeps for each of them."""

CHANGES: Final = 256
"""Updates of each source whose old and new bytes are kept, so that the changed fields can be named."""

CHANGES_BYTES: Final = 1024 * 1024
"""And the most they may take together."""


class Trigger(msgspec.Struct, eq=False, gc=False):
    """Why a request was enqueued: `event` (create, update, delete, generic) of which object at which version, seen by which source."""

    event: str
    source: str
    namespace: str
    name: str
    resource_version: str
    cluster: str = ""
    old_version: str = ""
    """The version before an update."""

    seen_at: float = 0.0
    """When the source handed it on, in seconds since 1970."""

    old: bytes | None = None
    """The object before and after an update, as long as it belongs to the latest changes of its source."""

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
    """Lets the triggers of one source hold their objects' bytes, but only the latest `count` of them and `size` bytes in all."""

    __slots__ = ("_bytes", "_count", "_size", "_triggers")

    def __init__(self, count: int = CHANGES, size: int = CHANGES_BYTES) -> None:
        self._count = count
        self._size = size
        self._bytes = 0
        self._triggers: deque[tuple[Trigger, int]] = deque()

    def hold(self, trigger: Trigger, old: bytes, new: bytes) -> None:
        """Give the trigger the bytes of its update, and take those of the oldest ones where they are too many."""
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
    """ "success", "error", "requeue_after", "terminal", "timeout", or what the controller calls it."""

    error: str = ""
    attempts: int = 0
    """Failures in a row before this run."""

    priority: int = 0
    triggers: tuple[object, ...] = ()
    omitted: int = 0
    """Triggers there were beside those kept."""

    wakes_at: float | None = None
    """When the key is to be reconciled again even if nothing happens; None: when something happens."""


class Call(msgspec.Struct, frozen=True, gc=False, kw_only=True):
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


class History(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of what is known of one key, oldest first."""

    runs: Sequence[Run] = ()
    calls: Sequence[Call] = ()

    @property
    def wakes_at(self) -> float | None:
        """When the key comes again by itself, as its last run said."""
        return self.runs[-1].wakes_at if self.runs else None


class _Facts(msgspec.Struct, eq=False, gc=False):
    """What is known of a key. No lists before they hold something: most keys have run once and called nobody."""

    last: Run | None = None
    number: int = 0
    """Which one of all runs the last one was."""

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
    """Keeps the last `facts` runs and `calls` calls of the last `keys` keys, but of all runs, and calls, together the last
    `together`, and the last run of each key. `clock` gives seconds since 1970. Raises: ValueError.
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
        """Return the journal's time, for `started` of runs and calls."""
        return self._clock()

    def ran(self, controller: str, key: Hashable, run: Run) -> None:
        """Note a reconcile that has ended."""
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
        """Note a request that has ended."""
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
        """Return what is known of a key; nothing of one that was never seen or is forgotten."""
        facts = self._facts.get((controller, key))
        return History() if facts is None else History(runs=facts.runs, calls=tuple(facts.calls or ()))

    def keys(self, controller: str) -> list[Hashable]:
        """Return the keys a controller has facts about, the one touched last at the end."""
        return [key for name, key in self._facts if name == controller]

    def latest(self) -> Iterator[tuple[str, Hashable, Sequence[Run]]]:
        """Iterate over controller, key and runs of all keys, the one touched last first. Write nothing meanwhile."""
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
