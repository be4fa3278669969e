"""One member of the ring, as a pure state machine: it gets responses, times and news of its process, and returns requests and slot changes.

What always holds, whatever is slow, lost, frozen or partitioned (`tests/ownership/test_member_histories.py` tries it):

1. At most one member may write for a slot at a time: `writable` is true for one grant of a slot in the whole operator.
2. Only the owner gives a slot away, after its grant is closed. Others take it only after they expired the owner's Lease: by a write that makes
   each later renewal of the owner fail, 15 s or more after its last one. The owner's grants end 10 s after that.
3. A view of the ring can be old, but it never goes back. So it does no harm, because of 2, and because each write of the ring names the
   version that it replaces.
4. A write without a response may be stored later. Its slots stay closed until the ring has another version.
5. A ring whose Lease did not exist before gives its first slots after one Lease duration in which all Leases named it: another client may
   have deleted the Leases of members that still write. A ring that an elector or the last member gave back does not wait.

`tick` returns the requests to send now, and `answered` takes their responses. At most one request of each type is open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final

import msgspec

from ctrlruntime.ownership.messages import (
    RING,
    DeleteMember,
    ExpireMember,
    GetMember,
    Listing,
    ListLeases,
    MemberLease,
    NoResponse,
    PutMember,
    PutRing,
    Rejected,
    Request,
    Response,
    RingLease,
    State,
    Stored,
)
from ctrlruntime.ownership.ring import Ring, evicted, planned, released

RANK_DELAY: Final = 2.0
"""The member of rank r does what any member may do r times this later, so that they do not all try at once."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    renew_period: float = 4.0
    retry_period: float = 1.0
    list_period: float = 1.0
    settle: float = 2.0
    """A join is planned this long after it was seen."""

    plan_period: float = 5.0
    """Between two plans that only balance."""

    ring_duration: float = 60.0
    """An elector takes the Lease of a ring that was not renewed for so long."""

    ring_deadline: float = 45.0
    """Slots are closed if the ring was not renewed for so long."""

    ring_renewal: float = 10.0
    stop_grace: float = 30.0


class SlotState(Enum):
    FOREIGN = "foreign"
    """The member has nothing of the slot."""

    WARMING = "warming"
    """The member gets the slot, and fills its caches."""

    CATCHING_UP = "catching up"
    """The member owns the slot, and compares its caches with the API server. Then it opens."""

    OPEN = "open"
    DRAINING = "draining"
    """Nothing new starts. The grant is open, because reconciles run."""

    CLOSED = "closed"
    """The grant is closed, and the slot is to be given away."""


class Slot(msgspec.Struct):
    """A slot as this member has it."""

    state: SlotState = SlotState.FOREIGN
    grant: int = 0
    """The right to work, from the opening to the closing. The number is never used again."""

    is_warm: bool = False


class Change(msgspec.Struct, frozen=True):
    """A slot has another state: the process must do what the state says."""

    slot: int
    state: SlotState
    grant: int


class Machine:
    """One member.

    Args:
        new_identity: Makes the name of a Lease. Each Lease of a member has another one.
        layout: See `Ring.layout`.
        slots: The number of slots of a new ring.
        now: The time of the start, in seconds.
        weight: The share of the slots, in proportion to that of others.
        timing: The times.

    """

    def __init__(
        self,
        new_identity: Callable[[], str],
        *,
        layout: str,
        slots: int,
        now: float,
        weight: int = 1,
        timing: Timing = Timing(),  # noqa: B008 - a value
    ) -> None:
        self.timing = timing
        self.layout = layout
        self.weight = weight
        self._new_identity = new_identity
        self._new_slots = slots
        self._grants = 0
        self._changes: list[Change] = []
        self._open: set[type[Request]] = set()
        # The own Lease.
        self.identity = new_identity()
        self._lease: MemberLease | None = None  # as stored, with its version
        self._is_in_doubt = False  # whether a write of the Lease had no response, or was rejected
        self._renewed_at = -math.inf  # the start of the last renewal that was stored
        self._next_renewal = now
        self._state: State = "serving"
        self._renewals = 0
        # What lists showed.
        self._view: Listing | None = None
        self._listed = (-math.inf, -math.inf)  # the start and the end of the last list
        self._next_list = now
        self._ages: dict[str, _Age] = {}
        self._ring_seen = _Age("")
        self._ring_alive_at = -math.inf
        self._ring_stored_at = -math.inf  # the end of the last own write of the ring
        self._ring_write: tuple[str, frozenset[int]] | None = (
            None  # the version it replaces, and the slots that it gives away
        )
        self._due_since: dict[str, float] = {}
        self._planned_at = -math.inf
        self._slots: list[Slot] = []
        self._ring_uid = ""
        self._agreed: float | None = None  # for how long lists showed that all Leases name this ring
        self._stop_at: float | None = None
        self.is_done = False

    # --- what the process asks -------------------------------------------------------------------------------------

    @property
    def ring(self) -> Ring | None:
        """The ring as it was seen last."""
        lease = None if self._view is None else self._view.ring
        return None if lease is None or lease.holder != RING else lease.ring

    def members(self) -> tuple[MemberLease, ...]:
        """Return the Leases of all members, as they were seen last."""
        return () if self._view is None else self._view.members

    def age(self, member: str) -> float:
        """Return the seconds for which lists showed no renewal of a member's Lease."""
        found = self._ages.get(member)
        return 0.0 if found is None else found.seconds

    def deadline(self) -> float:
        """Return the time until which this member may write for its open slots."""
        if self._lease is None:
            return -math.inf
        return min(self._renewed_at + self.timing.renew_deadline, self._ring_alive_at + self.timing.ring_deadline)

    def slot(self, number: int) -> Slot:
        return self._slots[number] if number < len(self._slots) else Slot()

    def writable(self, number: int, grant: int, now: float) -> bool:
        """Return whether a write for a slot may start: the grant is open, and the Lease is valid."""
        slot = self.slot(number)
        return slot.grant == grant and slot.state in {SlotState.OPEN, SlotState.DRAINING} and now < self.deadline()

    def changes(self) -> list[Change]:
        """Return the slot changes since the last call, in order."""
        found, self._changes = self._changes, []
        return found

    # --- news of the process ---------------------------------------------------------------------------------------

    def warmed(self, number: int) -> None:
        """Note that the caches of a slot are filled."""
        slot = self.slot(number)
        if slot.state in {SlotState.WARMING, SlotState.CATCHING_UP} and not slot.is_warm:
            slot.is_warm = True
            self._next_renewal = -math.inf  # others wait for it

    def caught_up(self, number: int, grant: int) -> None:
        """Note that the caches of a slot have all that was stored before the grant."""
        slot = self.slot(number)
        if slot.state is SlotState.CATCHING_UP and slot.grant == grant:
            self._set(number, SlotState.OPEN)

    def drained(self, number: int, grant: int) -> None:
        """Note that no reconcile of a grant runs, and none of its writes is open. The grant is closed."""
        slot = self.slot(number)
        if slot.state is SlotState.DRAINING and slot.grant == grant:
            self._set(number, SlotState.CLOSED)

    def stop(self, now: float) -> None:
        """Give all slots away, then delete the Lease."""
        if self._stop_at is None:
            self._stop_at = now
            self._state = "leaving"
            self._next_renewal = -math.inf

    # --- time ------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> list[Request]:
        """Return the requests to send now."""
        self._advance(now)
        return list(self._requests(now))

    def _requests(self, now: float) -> Iterator[Request]:
        if self.is_done:
            return
        if self._may_send(PutMember, GetMember, DeleteMember):
            yield from self._own_lease(now)
        if self._may_send(ListLeases) and now >= self._next_list:
            yield self._send(ListLeases())
        if self._view is None or self._lease is None or self.identity not in self._live():
            return
        if self._may_send(ExpireMember) and (lease := self._run_out(now)) is not None:
            yield self._send(ExpireMember(lease))
        if self._may_send(PutRing) and (request := self._ring_request(now)) is not None:
            yield self._send(request)

    def _may_send(self, *types: type[Request]) -> bool:
        return not self._open & set(types)

    def _send(self, request: Request) -> Request:
        self._open.add(type(request))
        return request

    def _own_lease(self, now: float) -> Iterator[Request]:
        if self._is_in_doubt:
            if now >= self._next_renewal:
                yield self._send(GetMember(self.identity))
        elif self._has_left(now):
            if self._lease is None:
                self.is_done = True
            else:
                yield self._send(DeleteMember(self.identity, self._lease.uid))
        elif now >= self._next_renewal and self._view is not None:
            self._renewals += 1
            yield self._send(PutMember(self._content()))

    def _has_left(self, now: float) -> bool:
        """Return whether a member that stops has nothing any more, or has no time."""
        if self._stop_at is None or any(slot.state is not SlotState.FOREIGN for slot in self._slots):
            return False
        if self._lease is None or now >= self._stop_at + self.timing.stop_grace:
            return True
        return not self._is_in_ring() and not self._gives_back()

    def _gives_back(self) -> bool:
        """Return whether this member leaves as the last one: then an elector or a new ring can have the Lease at once."""
        if self._stop_at is None or self.ring is None or self.ring.members():
            return False
        assert self._view is not None
        return not any(lease.holder and lease.identity != self.identity for lease in self._view.members)

    def _is_in_ring(self) -> bool:
        return self.ring is not None and self.identity in self.ring.members()

    def _content(self) -> MemberLease:
        """Return the own Lease as it is written next."""
        stored = self._lease
        warm = frozenset(number for number, slot in enumerate(self._slots) if slot.is_warm)
        return MemberLease(
            identity=self.identity,
            holder=self.identity,
            state=self._state,
            weight=self.weight,
            layout=self.layout,
            ring_uid=self._ring_uid,
            warm=warm,
            renewal=self._renewals,
            uid="" if stored is None else stored.uid,
            version="" if stored is None else stored.version,
        )

    # --- responses -------------------------------------------------------------------------------------------------

    def answered(self, request: Request, response: Response, *, started: float, now: float) -> None:
        """Take the response to a request that was sent at `started`."""
        self._open.discard(type(request))
        match request:
            case PutMember(lease):
                self._renewal_answered(lease, response, started, now)
            case GetMember():
                self._own_lease_read(response, now)
            case DeleteMember():
                if not isinstance(response, NoResponse):
                    self._lease = None
                    self.is_done = self._stop_at is not None
            case ExpireMember():
                self._next_list = now
            case ListLeases():
                self._see(response, started, now)
            case PutRing(lease):
                self._ring_written(lease, response, started, now)
        self._advance(now)

    def _renewal_answered(self, lease: MemberLease, response: Response, started: float, now: float) -> None:
        if lease.identity != self.identity:
            return  # of a Lease that was given up
        if isinstance(response, Stored):
            self._lease = msgspec.structs.replace(lease, uid=response.uid, version=response.version)
            self._renewed_at = started
            is_current = self._content() == msgspec.structs.replace(lease, uid=response.uid, version=response.version)
            self._next_renewal = started + self.timing.renew_period if is_current else now
            return
        self._is_in_doubt = True
        self._next_renewal = now if isinstance(response, Rejected) else now + self.timing.retry_period

    def _own_lease_read(self, response: Response, now: float) -> None:
        if isinstance(response, NoResponse):
            self._next_renewal = now + self.timing.retry_period
        elif isinstance(response, MemberLease) and response.holder == self.identity and self._is_same(response):
            self._is_in_doubt = False
            self._lease = response
            self._next_renewal = now
        else:
            self._rejoin(now)

    def _is_same(self, found: MemberLease) -> bool:
        return self._lease is None or found.uid == self._lease.uid

    def _rejoin(self, now: float) -> None:
        """Give up the Lease, which another member expired, and all grants. Continue as another member."""
        for number in range(len(self._slots)):
            self._drop(number)
        self._lease = None
        self._is_in_doubt = False
        self._renewed_at = -math.inf
        self._ring_write = None
        if self._stop_at is not None:
            self.is_done = True
            return
        self.identity = self._new_identity()
        self._next_renewal = now

    def _see(self, response: Response, started: float, now: float) -> None:
        self._next_list = started + self.timing.list_period
        if not isinstance(response, Listing) or started < self._ring_stored_at:
            return  # no list, or one that can show the ring before the own write: a slot that was given away would come back
        # Between two lists, an age grows by two periods at most: during an outage, it is not known who renews.
        last_start, last_end = self._listed
        passed = max(0.0, min(started - last_end, 2 * self.timing.list_period))
        self._listed = started, now
        self._view = response
        seen = {lease.identity: lease.version for lease in response.members}
        if response.ring is not None and response.ring.ring is not None:
            seen |= dict.fromkeys(response.ring.ring.members() - seen.keys(), "")
        ages = self._ages
        self._ages = {name: ages.get(name, _Age(version)).seen(version, passed) for name, version in seen.items()}
        self._see_ring(response.ring, stored_after=last_start, passed=passed)
        if not all(lease.ring_uid == self._ring_uid for lease in response.members if lease.holder):
            self._agreed = None
        else:
            self._agreed = 0.0 if self._agreed is None else self._agreed + passed

    def _see_ring(self, ring: RingLease | None, *, stored_after: float, passed: float) -> None:
        """Take what is known of the ring. A new version of it was stored after `stored_after`."""
        version = "" if ring is None else ring.version
        if version != self._ring_seen.version:
            self._ring_alive_at = max(self._ring_alive_at, stored_after)
        self._ring_seen = self._ring_seen.seen(version, passed)
        if self._ring_write is not None and self._ring_write[0] != version:
            self._ring_write = None  # it is stored, or never will be
        uid = ring.uid if ring is not None and ring.holder == RING else ""
        if uid != self._ring_uid:
            self._ring_uid = uid
            self._agreed = None
            for number in range(len(self._slots)):
                self._drop(number)
            self._next_renewal = -math.inf  # others wait until the Lease names the new ring
        if self.ring is not None and len(self._slots) != len(self.ring.owners):
            for number in range(len(self._slots)):
                self._drop(number)
            self._slots = [Slot() for _ in self.ring.owners]

    def _ring_written(self, lease: RingLease, response: Response, started: float, now: float) -> None:
        self._next_list = now
        base = "" if self._view is None or self._view.ring is None else self._view.ring.version
        if isinstance(response, Stored) and self._view is not None and base == lease.version:
            stored = msgspec.structs.replace(lease, uid=response.uid, version=response.version)
            self._ring_stored_at = now
            self._view = Listing(self._view.members, stored)
            self._see_ring(stored, stored_after=started, passed=0.0)

    # --- the ring --------------------------------------------------------------------------------------------------

    def _live(self) -> dict[str, MemberLease]:
        """Return the members whose Leases have not expired, as far as is known."""
        assert self._view is not None
        return {
            lease.identity: lease
            for lease in self._view.members
            if lease.holder and self._ages[lease.identity].seconds < self.timing.lease_duration
        }

    def _ring_request(self, now: float) -> Request | None:
        """Return the next write of the ring, or of a Lease that has run out."""
        assert self._view is not None
        live = self._live()
        if self._ring_write is not None:
            return self._release_again()
        lease = self._view.ring
        if lease is None or self.ring is None or self._is_of_a_past_layout(live):
            return None if self._stop_at is not None else self._new_ring(lease, live, now)
        ring = self.ring
        if self._gives_back():
            self._ring_write = lease.version, frozenset()
            return PutRing(msgspec.structs.replace(lease, holder="", ring=None, renewal=lease.renewal + 1))
        if ring.epoch == 0 and (self._agreed is None or self._agreed < self.timing.lease_duration):
            return self._renewal(lease, ring, live, now)
        after = self._without_closed(ring)
        gone = self._gone(ring)
        if gone and self._is_due("evict", live, now):
            after = evicted(after, gone)
        weights = {
            identity: each.weight
            for identity, each in live.items()
            if each.state == "serving" and each.layout == ring.layout
        }
        leaving = {identity for identity, each in live.items() if each.state == "leaving"}
        urgent = planned(after, weights, leaving=leaving, balance=False)
        if urgent != after:
            if self._is_due("assign", live, now):
                after = urgent
        elif (balanced := planned(after, weights, leaving=leaving)) != after:
            if (
                self._is_due("balance", live, now, self.timing.settle)
                and now >= self._planned_at + self.timing.plan_period
            ):
                after = balanced
                self._planned_at = now
        else:
            self._due_since.pop("assign", None)
            self._due_since.pop("balance", None)
        return self._write(lease, after) if after != ring else self._renewal(lease, ring, live, now)

    def _renewal(self, lease: RingLease, ring: Ring, live: Iterable[str], now: float) -> PutRing | None:
        if self._ring_seen.seconds >= self.timing.ring_renewal and self._is_due("renew", live, now):
            return self._write(lease, ring)
        return None

    def _write(self, lease: RingLease, ring: Ring) -> PutRing:
        assert lease.ring is not None
        given = frozenset(
            slot for slot in range(len(ring.owners)) if lease.ring.owners[slot] == self.identity != ring.owners[slot]
        )
        self._ring_write = lease.version, given
        for name in ("evict", "assign", "balance", "renew"):
            self._due_since.pop(name, None)
        return PutRing(msgspec.structs.replace(lease, ring=ring, renewal=lease.renewal + 1))

    def _release_again(self) -> PutRing | None:
        """Repeat a write that gave slots away and had no response: only another version of the ring tells what became of it."""
        assert self._view is not None
        assert self._ring_write is not None
        lease = self._view.ring
        version, given = self._ring_write
        if not given:
            self._ring_write = None
            return None
        if lease is None or lease.ring is None or lease.version != version:
            return None
        return PutRing(
            msgspec.structs.replace(lease, ring=released(lease.ring, self.identity, given), renewal=lease.renewal + 1)
        )

    def _without_closed(self, ring: Ring) -> Ring:
        closed = [number for number, slot in enumerate(self._slots) if slot.state is SlotState.CLOSED]
        return released(ring, self.identity, closed) if closed else ring

    def _gone(self, ring: Ring) -> set[str]:
        """Return the members of the ring whose Leases were expired or deleted for long enough."""
        assert self._view is not None
        leases = {lease.identity: lease for lease in self._view.members}
        expired = {member for member in ring.members() if member in leases and not leases[member].holder}
        absent = {
            member
            for member in ring.members() - leases.keys()
            if member in self._ages and self._ages[member].seconds >= self.timing.lease_duration
        }
        return expired | absent

    def _run_out(self, now: float) -> MemberLease | None:
        """Return a Lease that has run out."""
        assert self._view is not None
        live = self._live()
        out = [lease for lease in self._view.members if lease.holder and lease.identity not in live]
        if not out:
            self._due_since.pop("expire", None)
            return None
        if not self._is_due("expire", live, now):
            return None
        self._due_since.pop("expire", None)
        return msgspec.structs.replace(out[0], holder="")

    def _is_of_a_past_layout(self, live: dict[str, MemberLease]) -> bool:
        ring = self.ring
        if ring is None or ring.layout == self.layout:
            return False
        holders = ring.members()
        return not holders and not any(each.layout == ring.layout for each in live.values())

    def _new_ring(self, lease: RingLease | None, live: dict[str, MemberLease], now: float) -> Request | None:
        """Return the first write of a ring, once no elector holds the Lease."""
        if lease is not None and lease.holder not in {"", RING} and self._ring_seen.seconds < lease.duration:
            return None
        if not self._is_due("ring", live, now):
            return None
        self._due_since.pop("ring", None)
        ring = Ring.empty(self._new_slots, self.layout)
        if lease is not None:
            ring = planned(
                ring, {identity: each.weight for identity, each in live.items() if each.layout == self.layout}
            )
        known = RingLease(holder=RING, ring=ring) if lease is None else lease
        self._ring_write = known.version, frozenset()
        return PutRing(
            msgspec.structs.replace(
                known, holder=RING, ring=ring, duration=self.timing.ring_duration, renewal=known.renewal + 1
            )
        )

    def _is_due(self, what: str, live: Iterable[str], now: float, after: float = 0.0) -> bool:
        """Return whether this member's turn has come to do what any member may do."""
        since = self._due_since.setdefault(what, now)
        rank = sorted(live).index(self.identity)
        return now >= since + after + RANK_DELAY * rank

    # --- slots -----------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        """Give each slot the state that follows from the ring."""
        ring = self.ring
        if ring is None or self._lease is None:
            for number in range(len(self._slots)):
                self._drop(number)
            return
        if now >= self._ring_alive_at + self.timing.ring_deadline:
            for number in range(len(self._slots)):
                self._drop(number)
            return
        for number, slot in enumerate(self._slots):
            self._advance_slot(number, slot, ring, now)

    def _advance_slot(self, number: int, slot: Slot, ring: Ring, now: float) -> None:
        is_mine = ring.owners[number] == self.identity
        is_coming = ring.nexts[number] == self.identity
        is_stopping = self._stop_at is not None
        match slot.state:
            case SlotState.FOREIGN:
                if (is_mine or is_coming) and not is_stopping:
                    self._set(number, SlotState.WARMING)
                elif is_mine:
                    self._set(number, SlotState.CLOSED)
            case SlotState.WARMING:
                if not (is_mine or is_coming):
                    self._drop(number)
                elif is_stopping:
                    if is_mine:
                        self._set(number, SlotState.CLOSED)
                    else:
                        self._drop(number)
                elif is_mine and slot.is_warm and now < self.deadline():
                    self._grants += 1
                    slot.grant = self._grants
                    self._set(number, SlotState.CATCHING_UP)
            case SlotState.CATCHING_UP:
                if not is_mine:
                    self._drop(number)
                elif is_stopping:
                    self._set(number, SlotState.CLOSED)
            case SlotState.OPEN:
                if not is_mine:
                    self._drop(number)
                elif self._gives_away(ring.nexts[number], number, now):
                    self._set(number, SlotState.DRAINING)
            case SlotState.DRAINING:
                if not is_mine:
                    self._drop(number)
                elif not ring.nexts[number] and not is_stopping:
                    self._set(number, SlotState.OPEN)
            case SlotState.CLOSED:
                if not is_mine:
                    self._drop(number)
                elif not ring.nexts[number] and not is_stopping and self._ring_write is None:
                    self._set(number, SlotState.WARMING)

    def _gives_away(self, following: str, number: int, now: float) -> bool:
        if following and self._view is not None:
            leases = {lease.identity: lease for lease in self._view.members}
            if following in leases and number in leases[following].warm:
                return True
        if self._stop_at is None:
            return False
        is_alone = not any(lease.state == "serving" for lease in self._live().values())
        return is_alone or now >= self._stop_at + self.timing.stop_grace / 2

    def _set(self, number: int, state: SlotState) -> None:
        slot = self._slots[number]
        slot.state = state
        self._changes.append(Change(number, state, slot.grant))

    def _drop(self, number: int) -> None:
        slot = self._slots[number]
        if slot.state is not SlotState.FOREIGN:
            slot.is_warm = False
            self._set(number, SlotState.FOREIGN)


class _Age(msgspec.Struct, frozen=True):
    """How long lists showed one version of a Lease."""

    version: str
    seconds: float = 0.0

    def seen(self, version: str, passed: float) -> _Age:
        return _Age(version, self.seconds + passed) if version == self.version else _Age(version)
