"""The gate that every write passes, so that no cached read is older than this process's own writes.

The client opens a ticket before it sends a write, and ends it with the outcome. Before a cached read, the gate waits for the earlier writes
that concern it. `marks` has the rules; this module waits, compares with the server, and counts.

The gate is in a layer below the cache. The reader passes an `InformerView` with the state of an informer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, Protocol

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, ObjectKey
from ctrlruntime.client.marks import (
    WHOLE,
    Key,
    Kind,
    Listing,
    Mark,
    Marks,
    State,
    Verdict,
    View,
    doubt,
    unknown,
    verdict,
)
from ctrlruntime.errors import CtrlError, StaleReadError

DOUBT_AFTER: Final = 0.5
"""Seconds until a cache with field selectors is compared with the server, which alone can tell whether an object matches."""


class InformerView(View, Protocol):
    """The part of an informer that a read needs."""

    @property
    def is_filtered_by_fields(self) -> bool:
        """Whether field selectors exclude objects that `covers` cannot know."""
        ...

    def changed(self) -> Coroutine[Any, Any, object]:
        """Wait until the informer has changed since this call, and not only since the first step of the wait."""
        ...

    def refresh(self, namespace: str) -> None:
        """Replace silent watches of the namespace ("": all), because their connections may be dead."""
        ...

    async def compare(self, key: Key) -> Listing:
        """List a key, or a namespace (its name is WHOLE), with the informer's scopes and selectors. Raises: CtrlError."""
        ...


class WaitCounter(Protocol):
    """Counts reads that waited, by kind, such as `metrics.client(cluster)`."""

    def read_waited(self, kind: str, seconds: float, *, live: bool) -> None: ...


class Ticket:
    """One open write.

    Exactly one of `stored`, `deleted`, `deleted_all`, `failed` and `lost` ends it.
    """

    __slots__ = ("_gate", "_kind", "_mark")

    def __init__(self, gate: Gate, kind: Kind, mark: Mark) -> None:
        self._gate = gate
        self._kind = kind
        self._mark = mark

    def stored(self, meta: Metadata) -> None:
        """The server returned the stored object."""
        self._gate.marks.stored(self._kind, self._mark, meta)
        self._gate.wake()

    def deleted(self, uid: str, version: str = "") -> None:
        """The object with this uid was deleted.

        `version`: its last version, if the response has it.
        """
        self._gate.marks.deleted(self._kind, self._mark, uid, version)
        self._gate.wake()

    def deleted_all(self, items: Iterable[Metadata]) -> None:
        """The server returned the objects of a deleted collection, in their last state."""
        self._gate.marks.deleted_all(self._kind, self._mark, items)
        self._gate.wake()

    def failed(self) -> None:
        """The server rejected the write, or it was not sent."""
        self._gate.marks.failed(self._kind, self._mark)
        self._gate.wake()

    def lost(self) -> None:
        """The outcome is unknown, because the response is missing or not conclusive.

        The write may have happened.
        """
        self._gate.marks.unknown(self._kind, self._mark)
        self._gate.wake()


class Gate:
    """Makes cached reads of one cluster wait for earlier writes.

    Args:
        wait: seconds a read may wait for the cache before it falls back to a live read.
        waits: counts the reads that waited.
        clock: measures `wait`.

    """

    def __init__(
        self, *, wait: float = 5.0, waits: WaitCounter | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wait = wait
        self._wait_counter = waits
        self._clock = clock
        self.marks = Marks()
        self._ended: asyncio.Event | None = None  # while a read waits
        self._comparing: dict[tuple[InformerView, Key], asyncio.Future[None]] = {}
        self.waits = 0
        self.read_fallbacks = 0

    def watch_views(self, views: Callable[[Kind], Sequence[View]]) -> None:
        """Set the function that returns the informers of a kind."""
        self.marks.views = views

    # --- writes ------------------------------------------------------------------------------------------------------

    def open(self, gvk: GroupVersionKind, namespace: str, name: str) -> Ticket:
        """Open the ticket of a write to this key, before it is sent."""
        kind = (gvk.group, gvk.kind)
        return Ticket(self, kind, self.marks.open(kind, namespace, name, self._clock()))

    def open_all(self, gvk: GroupVersionKind, namespace: str) -> Ticket:
        """Open the ticket of a write to all objects of a namespace ("": all namespaces)."""
        return self.open(gvk, namespace, WHOLE)

    def distrust(self, contents: Iterable[tuple[Kind, str]]) -> None:
        """Compare these kinds with the server before the next read of each.

        Use it if another process wrote until now. A namespace of "" means all namespaces.
        """
        for kind, namespace in contents:
            self.marks.unknown(kind, self.marks.open(kind, namespace, WHOLE, self._clock()))

    def wake(self) -> None:
        """Let waiting reads check again; called when a ticket ends."""
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    # --- reads -------------------------------------------------------------------------------------------------------

    def is_idle(self, gvk: GroupVersionKind, key: ObjectKey | None = None) -> bool:
        """Return whether reads of this kind, or of one object, wait for no write.

        This is the usual case.
        """
        if key is None:
            return not self.marks.has(gvk.group, gvk.kind)
        return not self.marks.concerns((gvk.group, gvk.kind), key.namespace, key.name)

    async def wait_until_visible(
        self, gvk: GroupVersionKind, view: InformerView, namespace: str, name: str | None = None
    ) -> bool:
        """Wait until `view` contains the writes before this call.

        `name` None waits for all writes in the namespace, and "" for those in all namespaces.

        Return False on timeout; then read live. Raises: StaleReadError if the outcome of a write is unknown and the server does not
        respond.
        """
        kind = (gvk.group, gvk.kind)
        needed = self.marks.needed(kind, namespace, name)
        key = (namespace, name or WHOLE)
        if not needed:
            return True
        if verdict(needed, view, key) is Verdict.READ:
            self.marks.drop_shown(kind, needed)
            return True
        started = self._clock()
        is_settled = False
        try:
            is_settled = await self._wait_for(gvk, needed, view, key, started)
        finally:
            self.waits += 1
            self.read_fallbacks += not is_settled
            if self._wait_counter is not None:
                self._wait_counter.read_waited(gvk.group_kind, self._clock() - started, live=not is_settled)
        if not is_settled:
            view.refresh(namespace)
        self.marks.drop_shown(kind, needed)
        return is_settled

    async def _wait_for(
        self, gvk: GroupVersionKind, needed: list[Mark], view: InformerView, key: Key, started: float
    ) -> bool:
        doubt_at = started + DOUBT_AFTER if view.is_filtered_by_fields else None
        while True:
            now = self._clock()
            left = started + self._wait - now
            found = verdict(needed, view, key)
            if found is Verdict.READ:
                return True
            if found is Verdict.COMPARE:
                for compared in unknown(needed, view):
                    await self._settle_unknown(gvk, view, compared, key, max(left, 0.0))
            elif left <= 0 or view.position(key[0]) < 0:
                return False
            elif doubt_at is not None and now >= doubt_at:
                doubt_at = None
                doubt(needed, view)
            else:
                await self._either(view, left if doubt_at is None else min(left, doubt_at - now))

    async def _settle_unknown(
        self, gvk: GroupVersionKind, view: InformerView, compared: Key, read: Key, seconds: float
    ) -> None:
        """Learn from the server what became of the unknown writes to a key. Raises: StaleReadError."""
        try:
            async with asyncio.timeout(seconds):
                await self._compare((gvk.group, gvk.kind), view, compared)
        except (CtrlError, TimeoutError) as error:
            raise self.stale(gvk, read[0], read[1] or None, error) from error

    async def _compare(self, kind: Kind, view: InformerView, key: Key) -> None:
        """Compare a key with the server; readers that come meanwhile wait for the same list, and look again."""
        running = self._comparing.get((view, key))
        if running is not None:
            await asyncio.wait((running,))
            if not running.cancelled() and (error := running.exception()) is not None:
                raise error
            return
        result = self._comparing[view, key] = asyncio.get_running_loop().create_future()
        try:
            steps = self.marks.steps
            self.marks.compared(kind, key, await view.compare(key), steps)
            result.set_result(None)
        except CtrlError as error:
            result.set_exception(error)
            result.exception()  # there may be no other reader to take it
            raise
        finally:
            result.cancel()  # of a reader that was cancelled: the next one asks for itself
            del self._comparing[view, key]

    def stale(self, gvk: GroupVersionKind, namespace: str, name: str | None, error: BaseException) -> StaleReadError:
        """Return the error of a read that neither the cache nor the server can serve."""
        needed = self.marks.needed((gvk.group, gvk.kind), namespace, name)
        now = self._clock()
        age = now - min((mark.opened_at for mark in needed), default=now)
        return StaleReadError(
            f"cannot read {gvk.kind} from the cache: since {age:.1f} s it may lack a write, of this process or the last leader, "
            f"and the live read failed: "
            f"{str(error) or type(error).__name__}. Retry; the next read compares again",
            kind=gvk.group_kind,
            age=age,
        )

    def pending(self, kind: Kind, namespace: str, name: str) -> str:
        """Return the write that a read of this key would wait for, or ""."""
        waiting = [
            mark
            for mark in self.marks.needed(kind, namespace, name)
            if not all(mark.is_shown(view, (namespace, name)) for view in self.marks.views(kind))
        ]
        if not waiting:
            return ""
        return _PENDING[waiting[-1].state].format(waiting[-1].version)

    async def _either(self, view: InformerView, seconds: float) -> None:
        """Wait until the cache shows something new or a write ends, at most `seconds`."""
        if self._ended is None:
            self._ended = asyncio.Event()
        changed = asyncio.ensure_future(view.changed())
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((changed, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            ended.cancel()


_PENDING: Final = {
    State.OPEN: "a write has no response yet",
    State.STORED: "the cache does not show version {} yet",
    State.DELETED: "the cache does not show a deletion yet",
    State.UNKNOWN: "the result of a write, here or in another process, is not known; the next read compares with the server",
    State.LISTED: "the cache does not show what a list returned yet",
    State.FAILED: "",
}
