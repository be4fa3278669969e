"""The requests of a member to the API server, and the responses. Both are values: the machine makes and reads them, another part sends them."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from ctrlruntime.ownership.ring import Ring

RING: Final = "ring"
"""The holder of the ring's Lease. An elector of the same Lease has another one."""

State: TypeAlias = Literal["serving", "leaving"]


class MemberLease(msgspec.Struct, frozen=True, kw_only=True):
    """The Lease of one member. `holder` is its identity, or "" after it expired."""

    identity: str
    holder: str
    state: State = "serving"
    weight: int = 1
    layout: str = ""
    ring_uid: str = ""
    """The ring whose slots the member may hold."""

    warm: frozenset[int] = frozenset()
    """The slots that the member gets next and is ready for."""

    renewal: int = 0
    """Differs in each renewal, so that each is a change."""

    uid: str = ""
    version: str = ""


class RingLease(msgspec.Struct, frozen=True, kw_only=True):
    """The Lease of the ring. `ring` is None while an elector holds it."""

    holder: str
    ring: Ring | None
    duration: float = 60.0
    """The seconds after which another holder can take it, if it is not renewed."""

    renewal: int = 0
    uid: str = ""
    version: str = ""


class Listing(msgspec.Struct, frozen=True):
    """All Leases of an operator, at one moment."""

    members: tuple[MemberLease, ...]
    ring: RingLease | None


# Requests. Each write has the version that it replaces in its Lease; "" creates it.


class PutMember(msgspec.Struct, frozen=True):
    lease: MemberLease


class GetMember(msgspec.Struct, frozen=True):
    identity: str


class ExpireMember(msgspec.Struct, frozen=True):
    """Take the holder from the Lease of another member, in the version that was seen."""

    lease: MemberLease


class DeleteMember(msgspec.Struct, frozen=True):
    identity: str
    uid: str


class ListLeases(msgspec.Struct, frozen=True):
    pass


class PutRing(msgspec.Struct, frozen=True):
    lease: RingLease


Request: TypeAlias = PutMember | GetMember | ExpireMember | DeleteMember | ListLeases | PutRing


# Responses.


class Stored(msgspec.Struct, frozen=True):
    """The write is stored."""

    uid: str
    version: str


class Rejected(msgspec.Struct, frozen=True):
    """The write is not stored, and never will be: the Lease has another version, exists already, or does not exist."""


class NoResponse(msgspec.Struct, frozen=True):
    """No response in time, or one that does not tell. A write may be stored, also later."""


Response: TypeAlias = Stored | Rejected | NoResponse | Listing | MemberLease | None
"""None: the Lease does not exist (`GetMember`), or is deleted."""
