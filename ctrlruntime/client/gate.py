"""The gate every write passes: it knows what this process wrote, so that a read never shows a state older than that.

Before a write is sent its key is *opened*; the answer turns the opening into a *mark*: the version the cache must have
seen, or the uid that must be gone. A cached read of the key (or a list of its kind and namespace) first *settles* the
marks made before it. Marks are kept per kind and key and are dropped as soon as the cache has passed them.

The gate lies between the client's verbs and the transport and names neither cache nor manager: what the cache has seen
reaches it through `Horizon`, which is handed down.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata


class Horizon(Protocol):
    """What the cache has seen of one kind."""

    def version(self, namespace: str) -> int:
        """The resourceVersion seen in the namespace; 0 before the first list, -1 when versions do not parse."""
        ...

    def uid(self, namespace: str, name: str) -> str | None:
        """The uid of the cached object at a key, or None when there is none."""
        ...

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether such an object belongs to what is cached."""
        ...

    def changed(self) -> Coroutine[Any, Any, object]:
        """Wait until anything new has been seen since this call (and not only since the first step of the wait)."""
        ...


class WaitCounter(Protocol):
    """Counts reads that waited, by kind; `metrics.client(cluster)` is one."""

    def read_waited(self, kind: str, seconds: float, *, live: bool) -> None: ...


class _Unheld:
    """The horizon of a kind that no cache holds: whoever reads it next lists it then."""

    def version(self, namespace: str) -> int:
        return sys.maxsize

    def uid(self, namespace: str, name: str) -> str | None:
        return None

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        return False

    async def changed(self) -> None:
        await asyncio.get_running_loop().create_future()


_UNHELD = _Unheld()


class _Mark:
    """What a read has to wait for at one key."""

    __slots__ = ("gone", "lost", "open", "uid", "version")

    def __init__(self) -> None:
        self.open = 0
        """Writes under way."""
        self.version = 0
        """The version that must have been seen."""
        self.gone: set[str] = set()
        """Uids that must not be there any more."""
        self.lost = 0
        """The number of the last write of which nobody knows what became of it; 0 when all is known."""
        self.uid = ""
        """The object our last answered write stored."""

    def is_passed(self, horizon: Horizon, namespace: str, name: str) -> bool:
        return not self.open and not self.lost and self._is_seen(horizon, namespace, name)

    def is_pending_beside_one(self, horizon: Horizon, namespace: str, name: str) -> bool:
        """Whether there would be something to wait for without the one write that was just answered."""
        return self.open > 0 or self.lost > 0 or not self._is_seen(horizon, namespace, name)

    def _is_seen(self, horizon: Horizon, namespace: str, name: str) -> bool:
        if self.version > horizon.version(namespace):
            return False
        return not self.gone or horizon.uid(namespace, name) not in self.gone


_Kind = tuple[str, str]
_Key = tuple[str, str]
_WHOLE = ""  # in place of a name: the mark of all objects of a namespace

SWEEP_AT = 1024
"""Marks of a kind from which on passed ones are looked for at each write."""


class Ticket:
    """One write under way; exactly one of `stored`, `deleted`, `reached`, `failed` and `lost` ends it."""

    __slots__ = ("_gate", "_key", "_kind", "_known_uid", "_mark", "_since")

    def __init__(self, gate: Gate, kind: _Kind, key: _Key, mark: _Mark) -> None:
        self._gate = gate
        self._kind = kind
        self._key = key
        self._mark = mark
        self._since = gate.losses
        self._known_uid = gate.horizon(kind).uid(*key)

    def stored(self, meta: Metadata) -> None:
        """The server answered with the object."""
        mark, horizon = self._end()
        is_held = horizon.uid(*self._key) is not None
        if is_held or horizon.covers(self._key[0], meta.labels) or mark.is_pending_beside_one(horizon, *self._key):
            mark.uid = meta.uid
            self._reach(meta.resource_version)
        self._gate.ended(self._kind, self._key, horizon)

    def deleted(self, uid: str) -> None:
        """The server answered that the object with this uid is gone."""
        mark, horizon = self._end()
        if uid and uid in {self._known_uid, mark.uid, horizon.uid(*self._key)}:
            mark.gone.add(uid)
            self._forgive()
        elif horizon.covers(self._key[0], None):
            # A cache that shows no such uid may not have seen the object yet: it could still come up and go.
            mark.lost = self._gate.lose()
        self._gate.ended(self._kind, self._key, horizon)

    def reached(self, version: str) -> None:
        """The write took effect by `version`: the server's position after it (for a whole collection)."""
        _, horizon = self._end()
        self._reach(version)
        self._gate.ended(self._kind, self._key, horizon)

    def failed(self) -> None:
        """The server refused; nothing changed."""
        _, horizon = self._end()
        self._gate.ended(self._kind, self._key, horizon)

    def lost(self) -> None:
        """No answer came, or none that tells: the write may or may not have happened."""
        mark, horizon = self._end()
        mark.lost = self._gate.lose()
        self._gate.ended(self._kind, self._key, horizon)

    def _end(self) -> tuple[_Mark, Horizon]:
        self._mark.open -= 1
        return self._mark, self._gate.horizon(self._kind)

    def _reach(self, version: str) -> None:
        if version.isdecimal():
            self._mark.version = max(self._mark.version, int(version))
            self._forgive()
        else:
            self._mark.lost = self._gate.lose()

    def _forgive(self) -> None:
        """An earlier write without an answer is settled by one that began after it and has one."""
        if self._mark.lost <= self._since:
            self._mark.lost = 0


class Gate:
    """Keeps the marks of one cluster.

    Args:
        wait: seconds a read may wait for the cache before it goes to the server instead.
        waits: told of each read that had to wait.
        clock: the time by which `wait` is measured.

    """

    def __init__(
        self,
        *,
        wait: float = 5.0,
        waits: WaitCounter | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wait = wait
        self._wait_counter = waits
        self._clock = clock
        self._marks: dict[_Kind, dict[_Key, _Mark]] = {}
        self._answered: asyncio.Event | None = None  # while a read waits
        self._horizon: Callable[[_Kind], Horizon | None] = lambda _kind: None
        self._sweep_at: dict[_Kind, int] = {}
        self.waits = 0
        self.live_reads = 0
        self.losses = 0
        """Writes so far whose outcome nobody knows; note it before a live read, for `settled_live`."""

    def watch_horizons(self, horizon: Callable[[_Kind], Horizon | None]) -> None:
        """Be told where to look up what the cache has seen of a (group, kind); None for a kind it does not hold."""
        self._horizon = horizon

    # --- writes ----------------------------------------------------------------------------------------------------

    def open(self, gvk: GroupVersionKind, namespace: str, name: str) -> Ticket:
        """Say that a write to this key is about to be sent."""
        kind = (gvk.group, gvk.kind)
        marks = self._marks.setdefault(kind, {})
        mark = marks.get((namespace, name))
        if mark is None:
            mark = marks[namespace, name] = _Mark()
        mark.open += 1
        return Ticket(self, kind, (namespace, name), mark)

    def open_all(self, gvk: GroupVersionKind, namespace: str) -> Ticket:
        """Say that a write to all objects of a namespace ("" = of all) is about to be sent; end it with `reached`."""
        return self.open(gvk, namespace, _WHOLE)

    def horizon(self, kind: _Kind) -> Horizon:
        """Return what has been seen of a (group, kind)."""
        return self._horizon(kind) or _UNHELD

    def lose(self) -> int:
        """Count a write whose outcome nobody knows; called by its ticket."""
        self.losses += 1
        return self.losses

    def ended(self, kind: _Kind, key: _Key, horizon: Horizon) -> None:
        """Drop the mark of a write that has ended if nothing has to be waited for; called by its ticket."""
        if self._answered is not None:
            self._answered.set()
            self._answered = None
        marks = self._marks[kind]
        self._sweep(kind, marks, horizon)
        mark = marks.get(key)
        if mark is not None and mark.is_passed(horizon, *key):
            del marks[key]

    def _sweep(self, kind: _Kind, marks: dict[_Key, _Mark], horizon: Horizon) -> None:
        """Drop passed marks once there are many: keys that are written and never read again must not pile up."""
        if len(marks) >= self._sweep_at.get(kind, SWEEP_AT):
            self._unpassed(marks, horizon, list(marks.items()))
            self._sweep_at[kind] = max(SWEEP_AT, 2 * len(marks))

    # --- reads -----------------------------------------------------------------------------------------------------

    async def settle(self, gvk: GroupVersionKind, namespace: str, name: str | None = None) -> bool:
        """Wait until the cache has seen what was written before this call.

        That is what was written to one key, or (name None) to all keys of the namespace ("" = of all). Returns False
        when it has not after the time to wait, or the outcome of a write is unknown: then the caller reads live.
        """
        kind = (gvk.group, gvk.kind)
        marks = self._marks.get(kind)
        if not marks:
            return True
        candidates = _candidates(marks, namespace, name)
        if not candidates:
            return True
        waiting = self._unpassed(marks, self.horizon(kind), candidates)
        if not waiting:
            return True
        started = self._clock()
        is_settled = await self._wait_for(kind, marks, waiting, started + self._wait)
        self.waits += 1
        self.live_reads += not is_settled
        if self._wait_counter is not None:
            self._wait_counter.read_waited(gvk.group_kind, self._clock() - started, live=not is_settled)
        return is_settled

    async def _wait_for(
        self, kind: _Kind, marks: dict[_Key, _Mark], waiting: list[tuple[_Key, _Mark]], deadline: float
    ) -> bool:
        while waiting:
            horizon = self.horizon(kind)  # the informer may have been removed, or started anew
            left = deadline - self._clock()
            if left <= 0 or any(_is_unknowable(mark, horizon, key) for key, mark in waiting):
                return False
            await self._either(horizon, left)
            pending = [(key, mark) for key, mark in waiting if marks.get(key) is mark]
            waiting = self._unpassed(marks, self.horizon(kind), pending)
        return True

    def unseen(self, kind: _Kind, namespace: str, name: str) -> str:
        """Return in words what reads of a key of a (group, kind) still have to wait for; empty for nothing."""
        mark = self._marks.get(kind, {}).get((namespace, name))
        if mark is None or mark.is_passed(self.horizon(kind), namespace, name):
            return ""
        if mark.open:
            return "a write is under way"
        if mark.lost:
            return "a write had no answer; the next read asks the server"
        return f"version {mark.version} was written" if mark.version else "a deletion was written"

    def settled_live(
        self, gvk: GroupVersionKind, namespace: str, name: str | None, version: str, *, since: int | None = None
    ) -> bool:
        """Say what a live read told: the version of the object at a key, or (name None) that of a list.

        `since` is `losses` as it was before the live read was sent: a write lost later is not settled by it. Returns
        False when there was no object, hence no version ("") to wait for, and an outcome is still unknown: then list
        one item live and say that list's version here. Without it a cache that lags behind could still show an object
        which has come and gone.
        """
        kind = (gvk.group, gvk.kind)
        marks = self._marks.get(kind, {})
        until = self.losses if since is None else since
        horizon = self.horizon(kind)
        is_settled = True
        for key, mark in _candidates(marks, namespace, name):
            if mark.open or not 0 < mark.lost <= until:
                continue
            if version.isdecimal():
                mark.lost = 0
                mark.version = max(mark.version, int(version))
            else:
                is_settled = is_settled and bool(version)
            if mark.is_passed(horizon, *key):
                del marks[key]
        return is_settled

    def _unpassed(
        self, marks: dict[_Key, _Mark], horizon: Horizon, candidates: list[tuple[_Key, _Mark]]
    ) -> list[tuple[_Key, _Mark]]:
        left: list[tuple[_Key, _Mark]] = []
        for key, mark in candidates:
            if mark.is_passed(horizon, *key):
                del marks[key]
            else:
                left.append((key, mark))
        return left

    async def _either(self, horizon: Horizon, seconds: float) -> None:
        """Wait until the cache has seen something or a write was answered, at most `seconds`."""
        if self._answered is None:
            self._answered = asyncio.Event()
        changed = asyncio.ensure_future(horizon.changed())
        answered = asyncio.ensure_future(self._answered.wait())
        try:
            await asyncio.wait((changed, answered), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            answered.cancel()


def _candidates(marks: dict[_Key, _Mark], namespace: str, name: str | None) -> list[tuple[_Key, _Mark]]:
    """Return the marks a read has to look at."""
    if name is None:
        spaces = {namespace, ""}
        return [(key, mark) for key, mark in marks.items() if not namespace or key[0] in spaces]
    keys = dict.fromkeys(((namespace, name), (namespace, _WHOLE), ("", _WHOLE)))
    return [(key, mark) for key in keys if (mark := marks.get(key)) is not None]


def _is_unknowable(mark: _Mark, horizon: Horizon, key: _Key) -> bool:
    return not mark.open and (mark.lost > 0 or horizon.version(key[0]) < 0)
