"""The gate every write passes: it knows what this process wrote, so that a read never shows a state older than that.

Before a write is sent its key is *opened*; the answer turns the opening into a *mark*: the version the cache must have seen, or the uid that
must be gone. A cached read of the key (or a list of its kind and namespace) first *settles* the marks made before it. Marks are kept per
kind and key and are dropped as soon as the cache has passed them.

The gate lies between the client's verbs and the transport and names neither cache nor manager: what the cache has seen reaches it through
`Horizon`, which is handed down.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.rest.fence import Actor, current_actor


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

    async def changed(self) -> None:
        """Wait until anything new has been seen."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the gate saw it: what audits, loop detection and explanations are made from."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    actor: Actor | None


class _Mark:
    """What a read has to wait for at one key. `version`: seen at least; `gone`: this uid no longer there; `lost`: nobody knows."""

    __slots__ = ("gone", "lost", "open", "version")

    def __init__(self) -> None:
        self.open = 0
        self.version = 0
        self.gone = ""
        self.lost = False

    def is_passed(self, horizon: Horizon, namespace: str, name: str) -> bool:
        if self.open or self.lost:
            return False
        if self.version > horizon.version(namespace):
            return False
        return not self.gone or horizon.uid(namespace, name) != self.gone


_Key = tuple[str, str]

SWEEP_AT = 1024
"""Marks of a kind from which on passed ones are looked for at each write."""


class Ticket:
    """One write under way; exactly one of `stored`, `deleted`, `failed` and `lost` ends it."""

    __slots__ = ("_gate", "_key", "_kind", "_mark")

    def __init__(self, gate: Gate, kind: tuple[str, str], key: _Key, mark: _Mark) -> None:
        self._gate = gate
        self._kind = kind
        self._key = key
        self._mark = mark

    def stored(self, meta: Metadata) -> None:
        """The server answered with the object."""
        self._mark.open -= 1
        if meta.resource_version.isdecimal():
            self._mark.version = max(self._mark.version, int(meta.resource_version))
            self._mark.lost = False
        self._gate.close(self._kind, self._key, meta)

    def deleted(self, uid: str) -> None:
        """The server answered that the object with this uid is gone."""
        self._mark.open -= 1
        self._mark.gone = uid
        self._mark.lost = False
        self._gate.close(self._kind, self._key, None)

    def failed(self) -> None:
        """The server refused; nothing changed."""
        self._mark.open -= 1
        self._gate.close(self._kind, self._key, None)

    def lost(self) -> None:
        """No answer came: the write may or may not have happened."""
        self._mark.open -= 1
        self._mark.lost = True
        self._gate.close(self._kind, self._key, None)


class Gate:
    """Keeps the marks of one cluster. `wait`: seconds a read may wait for the cache before it goes to the server instead."""

    def __init__(
        self,
        *,
        wait: float = 5.0,
        observe: Callable[[Call], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wait = wait
        self._observe = observe
        self._clock = clock
        self._marks: dict[tuple[str, str], dict[_Key, _Mark]] = {}
        self._answered = asyncio.Event()
        self._horizon: Callable[[tuple[str, str]], Horizon | None] = lambda _kind: None
        self._sweep_at = SWEEP_AT
        self.waits = 0
        self.live_reads = 0

    def watch_horizons(self, horizon: Callable[[tuple[str, str]], Horizon | None]) -> None:
        """Be told where to look up what the cache has seen of a (group, kind); None for a kind it does not hold."""
        self._horizon = horizon

    def record(self, verb: str, group: str, resource: str, subresource: str, namespace: str, name: str) -> None:
        """Note a call for whoever observes."""
        if self._observe is not None:
            self._observe(Call(verb, group, resource, subresource, namespace, name, current_actor()))

    def open(self, gvk: GroupVersionKind, namespace: str, name: str) -> Ticket:
        """Say that a write to this key is about to be sent."""
        kind = (gvk.group, gvk.kind)
        marks = self._marks.setdefault(kind, {})
        mark = marks.get((namespace, name))
        if mark is None:
            mark = marks[namespace, name] = _Mark()
        mark.open += 1
        return Ticket(self, kind, (namespace, name), mark)

    def close(self, kind: tuple[str, str], key: _Key, meta: Metadata | None) -> None:
        """Called by a ticket when its write has ended: drop the mark if nothing has to be waited for."""
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()
        horizon = self._horizon(kind)
        marks = self._marks[kind]
        self._sweep(marks, horizon)
        mark = marks.get(key)
        if mark is None or mark.open:
            return
        outside = horizon is None or (meta is not None and not horizon.covers(key[0], meta.labels))
        if outside or (horizon is not None and mark.is_passed(horizon, *key)):
            del marks[key]

    def _sweep(self, marks: dict[_Key, _Mark], horizon: Horizon | None) -> None:
        """Drop passed marks once there are many: keys that are written and never read again must not pile up."""
        if len(marks) < self._sweep_at or horizon is None:
            return
        self._unpassed(marks, horizon, list(marks.items()))
        self._sweep_at = max(SWEEP_AT, 2 * len(marks))

    async def settle(self, gvk: GroupVersionKind, namespace: str, name: str | None = None) -> bool:
        """Wait until the cache has seen what was written before this call: to one key, or (name None) to all keys of the namespace.

        Returns False when it has not after the time to wait, or an answer was lost: then the caller reads live.
        """
        kind = (gvk.group, gvk.kind)
        marks = self._marks.get(kind)
        if not marks:
            return True
        horizon = self._horizon(kind)
        if horizon is None:
            return True
        waiting = self._pending(marks, horizon, namespace, name)
        if not waiting:
            return True
        self.waits += 1
        deadline = self._clock() + self._wait
        while waiting:
            left = deadline - self._clock()
            unknowable = horizon.version(namespace) < 0 or any(mark.lost and not mark.open for _, mark in waiting)
            if left <= 0 or unknowable:
                self.live_reads += 1
                return False
            await self._either(horizon, left)
            waiting = [(key, mark) for key, mark in waiting if marks.get(key) is mark]
            waiting = self._unpassed(marks, horizon, waiting)
        return True

    def settled_live(self, gvk: GroupVersionKind, namespace: str, name: str, version: str) -> None:
        """A live read told what a lost answer left open: the object's present version, or "" when there is no object."""
        marks = self._marks.get((gvk.group, gvk.kind), {})
        mark = marks.get((namespace, name))
        if mark is None or mark.open:
            return
        mark.lost = False
        if not version:
            del marks[namespace, name]
        elif version.isdecimal():
            mark.version = max(mark.version, int(version))

    def _pending(
        self, marks: dict[_Key, _Mark], horizon: Horizon, namespace: str, name: str | None
    ) -> list[tuple[_Key, _Mark]]:
        if name is not None:
            mark = marks.get((namespace, name))
            return [] if mark is None else self._unpassed(marks, horizon, [((namespace, name), mark)])
        keys = [(key, mark) for key, mark in marks.items() if not namespace or key[0] == namespace]
        return self._unpassed(marks, horizon, keys)

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
        changed = asyncio.ensure_future(horizon.changed())
        answered = asyncio.ensure_future(self._answered.wait())
        try:
            await asyncio.wait((changed, answered), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            answered.cancel()
