"""The state of the ring for people: debug pages, `ctrl why`, metrics."""

from __future__ import annotations

import msgspec


class SlotOwner(msgspec.Struct, kw_only=True):
    """Who reconciles the objects of a slot."""

    slot: int
    of: int
    """The number of slots."""

    owner: str
    """The Pod of the owner; empty if the slot has none, or it is not known."""

    member: str
    """The name of the owner's Lease."""

    following: str
    """The Pod that gets the slot next; empty if it stays."""

    is_here: bool
    """Whether this process is the owner."""

    state: str
    """The state of the slot in this process, such as "open" or "foreign"."""


class ReplicaState(msgspec.Struct, kw_only=True):
    """One replica, as its Lease and the ring say."""

    member: str
    """The name of its Lease."""

    pod: str
    is_here: bool
    """Whether it is this process."""

    state: str
    """"serving", "leaving", or "expired"."""

    slots: int
    """The number of its slots, without that of the leader."""

    coming: int
    """The number of slots that it gets next."""

    leads: bool
    weight: int
    layout: str
    """How it divides the objects. Only replicas with the layout of the ring get slots."""

    seconds: float
    """Since when this process has seen no renewal of its Lease."""


class RingState(msgspec.Struct, kw_only=True):
    """The ring, as this process saw it last."""

    slots: int
    layout: str
    epoch: int
    """The number of changes of the ring."""

    unowned: int
    """The number of slots without an owner."""

    replicas: list[ReplicaState]
    trouble: str
    """The reason why the Leases cannot be read or written now; empty without one."""
