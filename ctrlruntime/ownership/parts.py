"""What a replica caches of the kinds of a sharded controller; see `ctrlruntime.cache.part`.

The roots are the objects that the controller reconciles: their key, or their uid, says which slot they are in. Children are in the slot of
their owner, so the key of a child that is not in the cache says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.errors import ForeignShardError
from ctrlruntime.ownership.shards import ControllerShard
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.reconcile import Request

K = TypeVar("K", default=Request)


class Roots:
    """The objects of the kind that a controller reconciles."""

    is_of_roots = True

    def __init__(self, shard: ControllerShard[Request], kind: str) -> None:
        self._shard = shard
        self._kind = kind
        self.keeps = shard.keeps_object

    def has(self, namespace: str, name: str) -> bool:
        return self._shard.has(Request(namespace, name))

    def foreign(self, namespace: str, name: str) -> ForeignShardError | None:
        owner = self._shard.owner_by_key(Request(namespace, name))
        return None if owner is None else self._error(namespace, name, owner)

    def foreign_object(self, meta: Metadata) -> ForeignShardError | None:
        owner = self._shard.owner_of_object(meta)
        if owner.is_here:
            return None
        # The name was given to another object, so nothing is left to do here for one of this name that was deleted.
        self._shard.done(Request(meta.namespace, meta.name))
        return self._error(meta.namespace, meta.name, owner)

    def server_ranges(self) -> str:
        return self._shard.server_ranges()

    def _error(self, namespace: str, name: str, owner: SlotOwner) -> ForeignShardError:
        who = f"the replica {owner.owner} reconciles it" if owner.owner else "no replica is known to reconcile it now"
        return ForeignShardError(
            f"{self._kind} {Request(namespace, name)} is not cached here: {who} (slot {owner.slot}). Read it with get(…, live_fallback=True)",
            slot=owner.slot,
            owner=owner.owner,
        )


class Children(Generic[K]):
    """The objects of a kind that belong to the objects a controller reconciles.

    owners: returns the owners of an object, by request or uid. Too many do no harm.
    keeps: returns whether the children of an owner are cached.
    """

    is_of_roots = False

    def __init__(self, keeps: Callable[[K], bool], owners: Callable[[Metadata], Sequence[K]]) -> None:
        self._keeps = keeps
        self._owners = owners

    def keeps(self, meta: Metadata) -> bool:
        for owner in self._owners(meta):  # noqa: SIM110 - half the time of `any`, and it is asked for each event
            if self._keeps(owner):
                return True
        return False

    def has(self, namespace: str, name: str) -> bool:
        return False

    def foreign(self, namespace: str, name: str) -> ForeignShardError | None:
        return None

    def foreign_object(self, meta: Metadata) -> ForeignShardError | None:
        return None

    def server_ranges(self) -> str:
        return ""
