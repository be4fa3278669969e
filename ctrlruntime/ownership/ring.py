"""The ring: which member owns each slot, and which one gets it next.

A ring is a value. Each function returns the ring after one transition, and members write it by compare-and-swap:

| transition | by | effect |
|---|---|---|
| `planned` | any member | sets `next` of the slots that move, and `owner` of slots without an owner |
| `released` | the owner only | gives slots to their next owner, or to no member |
| `evicted` | any member, after the Lease of the owner expired | takes all slots of a member |

Slots 0 to `slots - 1` are parts of the hash space. The slot `leader` is for work that one member does for all keys; it never moves for
balance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from ctrlruntime.shard_selectors import BITS, fnv64a


class Ring(msgspec.Struct, frozen=True, kw_only=True):
    """One state of the ring. `""` in `owners` and `nexts` is: no member."""

    layout: str
    """The number of slots, and how keys are hashed. Only members with this layout own slots."""

    owners: tuple[str, ...]
    nexts: tuple[str, ...]
    """The members that get the slots: each is the owner's successor, and warms its caches."""

    epoch: int = 0
    """The number of transitions. A ring without any has never had an owner."""

    @classmethod
    def empty(cls, slots: int, layout: str) -> Ring:
        """Return the ring of a new operator: no slot has an owner."""
        free = ("",) * (slots + 1)
        return cls(layout=layout, owners=free, nexts=free)

    @property
    def slots(self) -> int:
        """The number of slots without the leader's, which is the last one."""
        return len(self.owners) - 1

    @property
    def leader(self) -> int:
        """The slot of the leader."""
        return len(self.owners) - 1

    def owned_by(self, member: str) -> list[int]:
        return [slot for slot, owner in enumerate(self.owners) if owner == member]

    def members(self) -> set[str]:
        """Return the members that own a slot, or get one next."""
        return {*self.owners, *self.nexts} - {""}


def slot_of(text: str, slots: int) -> int:
    """Return the slot of a key."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest) * slots >> 64


def slot_of_uid(uid: str, slots: int) -> int:
    """Return the slot of an object that is divided by its uid: a range of the hashes by which the API server selects."""
    return fnv64a(uid) * slots >> BITS


def ranges_of(slots: Collection[int], of: int, *, most: int) -> list[tuple[int, int]]:
    """Return the ranges of hashes of these slots, each from its start to before its end.

    If there are more than `most`, the smallest gaps between them are filled.
    """
    runs: list[list[int]] = []
    for slot in sorted(slots):
        if runs and runs[-1][1] == slot:
            runs[-1][1] += 1
        else:
            runs.append([slot, slot + 1])
    while len(runs) > most:
        gap = min(range(1, len(runs)), key=lambda number: runs[number][0] - runs[number - 1][1])
        runs[gap - 1][1] = runs.pop(gap)[1]
    return [((start << BITS) // of, (end << BITS) // of) for start, end in runs]


def shares(weights: Mapping[str, int], slots: int, held: Mapping[str, int]) -> dict[str, int]:
    """Return the number of slots for each member, in proportion to its weight.

    Remainders go to members that hold more already, so that fewer slots move.
    """
    total = sum(weights.values())
    if not total:
        return {}
    exact = {member: slots * weight / total for member, weight in weights.items()}
    found = {member: int(share) for member, share in exact.items()}
    rest = slots - sum(found.values())
    by_claim = sorted(exact, key=lambda member: (held.get(member, 0) <= found[member], -(exact[member] % 1), member))
    for member in by_claim[:rest]:
        found[member] += 1
    return found


def planned(ring: Ring, weights: Mapping[str, int], *, leaving: Collection[str] = (), balance: bool = True) -> Ring:
    """Return the ring with the moves that give each member its share.

    Args:
        ring: The ring.
        weights: The weight of each member that can own slots. Other members lose their successions; their slots stay until they release them
            or are evicted.
        leaving: Members whose slots move, of any weight.
        balance: Whether slots of members that stay can move. Slots without an owner always get one.

    """
    weights = {member: weight for member, weight in weights.items() if member not in leaving and weight > 0}
    owners, nexts = list(ring.owners), list(ring.nexts)
    for slot, following in enumerate(nexts):
        if following and (following not in weights or following == owners[slot]):
            nexts[slot] = ""
    if not weights:
        return _after(ring, owners, nexts)
    leader = ring.leader
    future = [following or owner for owner, following in zip(owners, nexts, strict=True)]
    if future[leader] not in weights:
        _give(leader, min(weights), owners, nexts)
    held = _counts(future[:leader], weights)
    wanted = shares(weights, ring.slots, held)
    free = [slot for slot in range(ring.slots) if future[slot] not in weights and _can_move(future[slot], leaving)]
    if balance:
        for member in sorted(weights):
            surplus = held[member] - wanted[member]
            if surplus > 0:
                # A slot that is on its way to this member is withdrawn first, because it has not arrived.
                mine = [slot for slot in range(ring.slots) if future[slot] == member]
                arriving = [slot for slot in mine if nexts[slot] == member]
                staying = _ends_first([slot for slot in mine if nexts[slot] != member])
                free += [*arriving, *staying][:surplus]
                held[member] -= surplus
    for slot in sorted(free):
        member = max(weights, key=lambda each: (*_claim(wanted[each] - held[each], slot, each, future), each))
        if wanted[member] <= held[member] and future[slot] in weights:
            continue
        held[member] += 1
        future[slot] = member
        _give(slot, member, owners, nexts)
    return _after(ring, owners, nexts)


def released(ring: Ring, member: str, slots: Iterable[int]) -> Ring:
    """Return the ring after a member gave slots away: to their next owner, or to no member."""
    owners, nexts = list(ring.owners), list(ring.nexts)
    for slot in slots:
        if owners[slot] == member:
            owners[slot], nexts[slot] = nexts[slot], ""
    return _after(ring, owners, nexts)


def evicted(ring: Ring, members: Collection[str]) -> Ring:
    """Return the ring without members whose Leases expired: their slots go to the next owner, or to no member."""
    owners, nexts = list(ring.owners), list(ring.nexts)
    for slot, owner in enumerate(owners):
        if nexts[slot] in members:
            nexts[slot] = ""
        if owner in members:
            owners[slot], nexts[slot] = nexts[slot], ""
    return _after(ring, owners, nexts)


def replaced(ring: Ring, slots: Iterable[int]) -> Ring:
    """Return the ring without the successions of slots, whose next owners did not get ready."""
    nexts = list(ring.nexts)
    for slot in slots:
        nexts[slot] = ""
    return _after(ring, list(ring.owners), nexts)


def _after(ring: Ring, owners: Sequence[str], nexts: Sequence[str]) -> Ring:
    if tuple(owners) == ring.owners and tuple(nexts) == ring.nexts:
        return ring
    return Ring(layout=ring.layout, owners=tuple(owners), nexts=tuple(nexts), epoch=ring.epoch + 1)


def _give(slot: int, member: str, owners: list[str], nexts: list[str]) -> None:
    """Make a member the next owner; of a slot without an owner, the owner."""
    if owners[slot] == member:
        nexts[slot] = ""
    elif owners[slot]:
        nexts[slot] = member
    else:
        owners[slot], nexts[slot] = member, ""


def _can_move(owner: str, leaving: Collection[str]) -> bool:
    return not owner or owner in leaving


def _counts(owners: Sequence[str], members: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(members, 0)
    for owner in owners:
        if owner in found:
            found[owner] += 1
    return found


def _ends_first(slots: Sequence[int]) -> list[int]:
    """Return slots in the order to give them away: from the ends of the shortest runs, so that those that stay are neighbours."""
    runs: list[list[int]] = []
    for slot in slots:
        if runs and runs[-1][-1] == slot - 1:
            runs[-1].append(slot)
        else:
            runs.append([slot])
    return [slot for run in sorted(runs, key=len) for slot in reversed(run)]


def _claim(lacking: int, slot: int, member: str, future: Sequence[str]) -> tuple[bool, bool, int]:
    """Return the order in which members get a slot: one that lacks slots and has a neighbour of it, then the one that lacks the most."""
    return lacking > 0, _is_next_to(slot, member, future), lacking


def _is_next_to(slot: int, member: str, future: Sequence[str]) -> bool:
    return (slot > 0 and future[slot - 1] == member) or (slot + 1 < len(future) - 1 and future[slot + 1] == member)
