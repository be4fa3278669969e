"""What this process owns, on the event loop of the controllers.

`Member` decides about slots on the second loop and reports each change here. This side does what the state of a slot says, for all sharded
controllers, and reports when it is done:

| state | here | reported to the member |
|---|---|---|
| `WARMING` | its objects are cached; requests are kept, not reconciled | `warmed`, once the caches have all of them |
| `CATCHING_UP` | each cached kind is compared with the API server before its next read | `caught_up` |
| `OPEN` | a new grant; what was kept and each cached object of the slot is enqueued | |
| `DRAINING` | nothing starts; running reconciles end; the grant is closed; open writes end | `drained` |
| `CLOSED` | the grant is closed; what runs is cancelled | |
| `FOREIGN` | the same; its objects leave the caches some time after another member has the slot | |
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, Literal, Protocol

from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.metadata import Metadata, NamespacedName
from ctrlruntime.ownership.machine import Change, SlotState
from ctrlruntime.ownership.options import ShardKey
from ctrlruntime.ownership.ring import ranges_of, slot_of, slot_of_uid
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import Grant
from ctrlruntime.shard_selectors import uid_selector

R = TypeVar("R", default=Request)

_HELD = frozenset({SlotState.OPEN, SlotState.DRAINING})
_KEPT = frozenset({SlotState.WARMING, SlotState.CATCHING_UP, SlotState.DRAINING})
_CACHED = frozenset({SlotState.CATCHING_UP, SlotState.OPEN, SlotState.DRAINING})
"""The states in which the caches have all objects of a slot."""

_TAKEN = _KEPT | {SlotState.OPEN}
"""The states in which requests are not dropped."""

MAX_RANGES: Final = 32
"""The number of ranges in a selector for the API server. Each is compared for each object of each watch."""

LINGER: Final = 60.0
"""Seconds that the objects of a lost slot stay in the caches. If it comes back, as after an outage, nothing is listed again."""


class Sharded(Protocol):
    """The part of a controller that is called here."""

    async def wait_synced(self) -> None: ...

    def show(self, slots: Collection[int], /) -> Coroutine[Any, Any, None]: ...

    def withdraw(self, slots: Collection[int], /) -> list[tuple[int, Any]]: ...

    def end_moved(self, slots: Collection[int], within: float, /) -> Coroutine[Any, Any, None]: ...

    @property
    def queue(self) -> Any: ...

    @property
    def shard(self) -> object: ...


class Share(Protocol):
    """What is known of the requests of one part of the program, by slots."""

    def forget(self, slots: Collection[int], /) -> None: ...


class Owner(Protocol):
    """The part of a member that is called here, from this loop."""

    def warmed(self, slots: Sequence[int], /) -> None: ...

    def caught_up(self, slots: Sequence[tuple[int, int]], /) -> None: ...

    def drained(self, slots: Sequence[tuple[int, int]], /) -> None: ...

    def deadline(self, slot: int, grant: int, /) -> float | None: ...

    def owner(self, slot: int, /) -> SlotOwner: ...


class _Slot:
    """One slot on this side."""

    __slots__ = ("changes", "grant", "kept", "release", "state")

    def __init__(self) -> None:
        self.state = SlotState.FOREIGN
        self.changes = 0
        """The number of changes so far: what was begun before the last one is out of date."""

        self.grant: Grant | None = None
        self.release: asyncio.TimerHandle | None = None
        """The time at which its objects leave the caches."""

        self.kept: dict[Share, set[Any]] = {}
        """The requests to enqueue when the slot opens: those that came while it was on its way, or that were not done when it was to move."""


class Shards:
    """The slots of this process.

    Args:
        slots: Their number, without that of the leader.
        owner: The member.
        drain_timeout: See `Sharding`.
        fill: Waits until the caches have the objects of the first so many gains.
        free: Removes objects of slots that are not cached any more.
        catch_up: Called with slots before they open: what other processes wrote must be seen by the next reads.
        lead: Called when the slot of the leader opens.
        stop_leading: Ends what only the leader runs; called when the slot of the leader is given away.
        lost: Called when the slot of the leader is lost.
        linger: The seconds that the objects of a lost slot stay in the caches.

    """

    def __init__(
        self,
        slots: int,
        owner: Owner,
        *,
        drain_timeout: float = 10.0,
        fill: Callable[[int], Awaitable[None]],
        free: Callable[[], Awaitable[None]],
        catch_up: Callable[[Collection[int]], None],
        lead: Callable[[], None],
        stop_leading: Callable[[], Coroutine[Any, Any, None]],
        lost: Callable[[], None],
        linger: float = LINGER,
    ) -> None:
        self.count = slots
        self._owner = owner
        self._drain_timeout = drain_timeout
        self._fill = fill
        self._free = free
        self._linger = linger
        self.cached: set[int] = set()
        """The slots whose objects are cached."""

        self.gains = 0
        """How often slots were added to them."""

        self._catch_up = catch_up
        self._lead = lead
        self._stop_leading = stop_leading
        self._lost = lost
        self._slots = [_Slot() for _ in range(slots + 1)]
        self._controllers: list[tuple[Sharded, Share]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._freeing: asyncio.Task[None] | None = None
        self._frees_again = False
        self._log = log.get_logger("sharding")
        self.foreign_requests = 0
        """The number of requests that were dropped, because another replica reconciles them."""

        self.opened = 0
        """The number of slots that opened here."""

    # --- what controllers and users ask ----------------------------------------------------------------------------

    def state(self, slot: int) -> SlotState:
        return self._slots[slot].state

    @property
    def keeps_nothing(self) -> bool:
        """Whether no slot is cached."""
        return not self.cached

    @property
    def has_opened(self) -> bool:
        """Whether a slot was open once."""
        return self.opened > 0

    def counts(self) -> dict[str, int]:
        """Return the number of slots in each state, without that of the leader."""
        found = dict.fromkeys((state.value for state in SlotState), 0)
        for slot in self._slots[: self.count]:
            found[slot.state.value] += 1
        return found

    def held(self) -> list[int]:
        """Return the slots whose objects are reconciled here."""
        return [number for number, slot in enumerate(self._slots) if slot.state in _HELD]

    def grant(self, slot: int) -> Grant | None:
        """Return the grant of a slot, or None if nothing of it may start."""
        found = self._slots[slot]
        return found.grant if found.state is SlotState.OPEN else None

    def owner(self, slot: int) -> SlotOwner:
        """Return who reconciles the objects of a slot, for people."""
        return self._owner.owner(slot)

    def leader_deadline(self) -> float | None:
        """Return the time until which this process may write as the leader. Safe in any thread."""
        grant = self._slots[self.count].grant
        return None if grant is None else grant.deadline()

    def add(self, controller: Sharded) -> None:
        """Add a controller with a share."""
        if isinstance(controller.shard, ControllerShard):
            self._controllers.append((controller, controller.shard))

    def add_fleet(self, fleet: Sharded, share: Share) -> None:
        """Add the clusters of a fleet: all of its controllers divide by cluster."""
        self._controllers.append((fleet, share))

    def takes(self, slot: int) -> bool:
        """Return whether requests of a slot are reconciled here now or soon. Others are counted."""
        if self._slots[slot].state in _TAKEN:
            return True
        self.foreign_requests += 1
        return False

    def admits(self, shard: ControllerShard[Any], slot: int | None, request: Any) -> bool:
        """Return whether a request may enter the queue; keep it if its slot is on its way, or may stay. None: it has no slot here."""
        if slot is None:
            self.foreign_requests += 1
            return False
        found = self._slots[slot]
        if found.state is SlotState.OPEN:
            return True
        if found.state in _KEPT:
            found.kept.setdefault(shard, set()).add(request)
        else:
            self.foreign_requests += 1
        return False

    # --- changes of slots ------------------------------------------------------------------------------------------

    def changed(self, changes: Iterable[Change]) -> None:
        """Do what the new states of slots say."""
        before = self.held()
        opened: list[int] = []
        ended: list[int] = []
        lost: list[int] = []
        drained: dict[int, int] = {}
        warming: list[int] = []
        caught_up: list[tuple[int, int]] = []
        for change in changes:
            slot = self._slots[change.slot]
            slot.state = change.state
            slot.changes += 1
            if slot.release is not None:
                slot.release.cancel()
                slot.release = None
            match change.state:
                case SlotState.WARMING:
                    warming.append(change.slot)
                case SlotState.CATCHING_UP:
                    caught_up.append((change.slot, change.grant))
                case SlotState.OPEN:
                    self._open(slot, change)
                    opened.append(change.slot)
                case SlotState.DRAINING:
                    drained[change.slot] = change.grant
                case SlotState.CLOSED | SlotState.FOREIGN:
                    if change.state is SlotState.FOREIGN:
                        self._release_later(change.slot)
                    slot.kept.clear()
                    ended.append(change.slot)
                    if slot.grant is not None:  # not given away by this process
                        slot.grant.close()
                        slot.grant = None
                        lost.append(change.slot)
        if warming:
            if gained := {*warming} - self.cached - {self.count}:
                self.cached |= gained
                self.gains += 1
            self._run(self._warm({number: self._slots[number].changes for number in warming}, self.gains))
        if caught_up:
            self._catch_up([number for number, _ in caught_up])
            self._owner.caught_up(caught_up)
        if lost:
            self._lose(lost)
        if ended:
            for _, share in self._controllers:
                share.forget(ended)
        if opened := [number for number in opened if self._slots[number].state is SlotState.OPEN]:
            self._opened(opened)
        if drained := {n: grant for n, grant in drained.items() if self._slots[n].state is SlotState.DRAINING}:
            for controller, shard in self._controllers:
                for number, request in controller.withdraw(drained):
                    # If the slot stays after all, nothing of it is lost.
                    self._slots[number].kept.setdefault(shard, set()).add(request)
            self._run(self._give_away(drained))
        if (held := self.held()) != before:
            leads = self.count in held
            self._log.info("slots changed", slots=len(held) - leads, of=self.count, leads=leads)

    def _run(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _warm(self, slots: Mapping[int, int], gains: int) -> None:
        """Report slots, with the number of their changes so far, once the caches have their objects."""
        for controller, _ in self._controllers:
            await controller.wait_synced()
        await self._fill(gains)
        # A slot that was lost meanwhile, and comes again, waits for its own list.
        if same := [number for number, changes in slots.items() if self._slots[number].changes == changes]:
            self._owner.warmed(same)

    def _release_later(self, number: int) -> None:
        if number in self.cached:
            loop = asyncio.get_running_loop()
            self._slots[number].release = loop.call_later(self._linger, self._release, number)

    def _release(self, number: int) -> None:
        """Free the objects of a slot that another member has."""
        if self._owner.owner(number).member:
            self._slots[number].release = None
            self.cached.discard(number)
            if self._freeing is None or self._freeing.done():
                self._freeing = self._run(self._free_all())
            else:
                self._frees_again = True
        else:
            # The ring is not known, or the slot has no owner: it may well come back.
            self._release_later(number)

    async def _free_all(self) -> None:
        await asyncio.sleep(0)  # many slots go at once
        self._frees_again = True
        while self._frees_again:
            self._frees_again = False
            await self._free()

    def _open(self, slot: _Slot, change: Change) -> None:
        if slot.grant is None:
            slot.grant = Grant(partial(self._owner.deadline, change.slot, change.grant))
        else:  # its successor has left, before it was given away
            slot.grant.reopen()

    def _opened(self, slots: list[int]) -> None:
        self.opened += len(slots)
        kept: dict[Share, set[Any]] = {}
        for number in slots:
            for shard, requests in self._slots[number].kept.items():
                kept.setdefault(shard, set()).update(requests)
            self._slots[number].kept.clear()
        if wanted := frozenset(slots) - {self.count}:
            for controller, shard in self._controllers:
                for request in kept.get(shard, ()):
                    controller.queue.add(request)
                self._run(controller.show(wanted))
        if self.count in slots:
            self._lead()

    async def _give_away(self, slots: Mapping[int, int]) -> None:
        """End the work for slots, close their grants, and report each slot once none of its writes is open."""
        numbers = frozenset(slots)
        begun = {number: self._slots[number].changes for number in numbers}
        work = [controller.end_moved(numbers, self._drain_timeout) for controller, _ in self._controllers]
        if self.count in numbers:
            work.append(self._stop_leading())
        await asyncio.gather(*work)
        settled: list[tuple[int, int]] = []
        for number, grant_number in slots.items():
            slot = self._slots[number]
            if slot.changes != begun[number]:
                continue  # it was lost, or stays
            if slot.grant is not None:
                slot.grant.close()
            if slot.grant is None or slot.grant.is_settled:
                slot.grant = None
                settled.append((number, grant_number))
            else:
                self._run(self._give_away_later(slot, slot.grant, number, grant_number))
        if settled:
            # In one call, so that one write of the ring gives all of them away.
            self._owner.drained(settled)

    async def _give_away_later(self, slot: _Slot, grant: Grant, number: int, grant_number: int) -> None:
        changes = slot.changes
        await grant.settled()
        if slot.changes == changes:
            slot.grant = None
            self._owner.drained([(number, grant_number)])

    def _lose(self, slots: list[int]) -> None:
        """End what runs for slots that another member took: their writes are refused from now on."""
        numbers = frozenset(slots)
        for controller, _ in self._controllers:
            controller.withdraw(numbers)
            self._run(controller.end_moved(numbers, 0.0))
        if self.count in numbers:
            self._lost()

    async def close(self) -> None:
        """End what runs here."""
        for slot in self._slots:
            if slot.release is not None:
                slot.release.cancel()
                slot.release = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


class ControllerShard(ABC, Generic[R]):
    """The share of one controller; see `ctrlruntime.controller.sharding`."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    @abstractmethod
    def slot(self, request: R) -> int | None: ...

    @abstractmethod
    def slot_of_object(self, meta: Metadata) -> int:
        """Return the slot of an object that the controller reconciles."""

    @property
    def is_divided(self) -> bool:
        return True

    @property
    def has_lanes(self) -> bool:
        return False

    def owner_by_key(self, request: R) -> SlotOwner | None:
        """Return who reconciles a request, whether its object is cached here or not. None: its key does not say it."""
        return self.owner(request)

    @abstractmethod
    def has(self, request: R) -> bool:
        """Return whether the object of a request is cached if it exists. False: not known."""

    def keeps_object(self, meta: Metadata) -> bool:
        """Return whether an object that the controller reconciles, and its children, are cached."""
        return self.slot_of_object(meta) in self._shards.cached

    def is_in(self, slots: Collection[int], request: R) -> bool:
        return self.slot(request) in slots

    def admits(self, request: R) -> bool:
        return self._shards.admits(self, self.slot(request), request)

    def owner(self, request: R) -> SlotOwner | None:
        slot = self.slot(request)
        return None if slot is None else self._shards.owner(slot)

    def owner_of_object(self, meta: Metadata) -> SlotOwner:
        return self._shards.owner(self.slot_of_object(meta))

    def grant(self, request: R) -> Grant | None:
        slot = self.slot(request)
        return None if slot is None else self._shards.grant(slot)

    def deleted(self, meta: Metadata) -> None: ...

    def done(self, request: R) -> None: ...

    def forget(self, slots: Collection[int]) -> None:
        """Forget what is known of these slots."""

    def server_ranges(self) -> str:
        """Return the selector of the cached objects for the API server; empty if it cannot select them."""
        return ""


class KeyShard(ControllerShard[Request]):
    """Divides by a text that follows from the key of an object.

    key: returns the text of a request.
    """

    def __init__(self, shards: Shards, key: Callable[[Request], str]) -> None:
        super().__init__(shards)
        self._key = key

    def slot(self, request: Request) -> int:
        return slot_of(self._key(request), self._shards.count)

    def slot_of_object(self, meta: Metadata) -> int:
        return slot_of(self._key(Request(meta.namespace, meta.name)), self._shards.count)

    def has(self, request: Request) -> bool:
        return self._shards.state(self.slot(request)) in _CACHED

    def keeps(self, request: Request) -> bool:
        """Return whether the object of a request, and its children, are cached."""
        return slot_of(self._key(request), self._shards.count) in self._shards.cached


class UidShard(ControllerShard[Request]):
    """Divides by the uid of an object.

    So a request belongs to a slot only while its object is in the cache, or while the reconcile after its deletion is not done.

    find: returns the metadata of the cached object of a request.
    """

    def __init__(
        self, shards: Shards, find: Callable[[Request], Metadata | None], *, server_ranges: bool = True
    ) -> None:
        super().__init__(shards)
        self._find = find
        self._has_ranges = server_ranges
        self._deleted: dict[Request, int] = {}
        """The slots of deleted objects, until their reconcile is done."""

    def slot(self, request: Request) -> int | None:
        meta = self._find(request)
        return self._deleted.get(request) if meta is None else slot_of_uid(meta.uid, self._shards.count)

    def slot_of_object(self, meta: Metadata) -> int:
        return slot_of_uid(meta.uid, self._shards.count)

    def owner_by_key(self, request: Request) -> SlotOwner | None:
        return None

    def has(self, request: Request) -> bool:
        return False

    def keeps(self, uid: str) -> bool:
        """Return whether the object with this uid, and its children, are cached."""
        return slot_of_uid(uid, self._shards.count) in self._shards.cached

    def deleted(self, meta: Metadata) -> None:
        slot = self.slot_of_object(meta)
        if self._shards.state(slot) in _TAKEN:
            self._deleted[Request(meta.namespace, meta.name)] = slot

    def done(self, request: Request) -> None:
        self._deleted.pop(request, None)

    def forget(self, slots: Collection[int]) -> None:
        for request in [request for request, slot in self._deleted.items() if slot in slots]:
            del self._deleted[request]

    def server_ranges(self) -> str:
        if not self._has_ranges:
            return ""
        return uid_selector(ranges_of(self._shards.cached, self._shards.count, most=MAX_RANGES))


def key_of(by: Literal["name", "namespace"] | ShardKey, group: str, kind: str) -> Callable[[Request], str]:
    """Return the text of a request that decides about its slot."""
    root = f"{group}/{kind}/"
    if isinstance(by, ShardKey):
        function = by.function
        return lambda request: function(NamespacedName(request.namespace, request.name))
    if by == "namespace":
        return lambda request: request.namespace or request.name
    return lambda request: f"{root}{request.namespace}/{request.name}"
