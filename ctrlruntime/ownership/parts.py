"""What a replica caches of the kinds of a sharded controller; see `ctrlruntime.cache.part`.

The roots are the objects that the controller reconciles: their key says which slot they are in. Children are in the slot of their owner, so
the key of a child that is not in the cache says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.errors import ForeignShardError
from ctrlruntime.ownership.shards import ControllerShard
from ctrlruntime.reconcile import Request


class Roots:
    """The objects of the kind that a controller reconciles."""

    is_of_roots = True

    def __init__(self, shard: ControllerShard[Request], kind: str) -> None:
        self._shard = shard
        self._kind = kind

    def keeps(self, meta: Metadata) -> bool:
        return self._shard.keeps(Request(meta.namespace, meta.name))

    def has(self, namespace: str, name: str) -> bool:
        return self._shard.has(Request(namespace, name))

    def foreign(self, namespace: str, name: str) -> ForeignShardError | None:
        request = Request(namespace, name)
        owner = self._shard.owner(request)
        who = f"the replica {owner.owner} reconciles it" if owner.owner else "no replica is known to reconcile it now"
        return ForeignShardError(
            f"{self._kind} {request} is not cached here: {who} (slot {owner.slot}). Read it with get(…, live_fallback=True)",
            slot=owner.slot,
            owner=owner.owner,
        )


class Children:
    """The objects of a kind that belong to the objects a controller reconciles.

    owners: returns the requests of the owners of an object. Too many do no harm.
    """

    is_of_roots = False

    def __init__(self, shard: ControllerShard[Request], owners: Callable[[Metadata], Sequence[Request]]) -> None:
        self._shard = shard
        self._owners = owners

    def keeps(self, meta: Metadata) -> bool:
        for owner in self._owners(meta):  # noqa: SIM110 - half the time of `any`, and it is asked for each event
            if self._shard.keeps(owner):
                return True
        return False

    def has(self, namespace: str, name: str) -> bool:
        return False

    def foreign(self, namespace: str, name: str) -> ForeignShardError | None:
        return None
