"""`mgr.shards`: what your code can ask about the objects that replicas share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.sharding import Shard
from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.fence import Fence, current_actor


class SharedObjects:
    """Says which replica reconciles an object. Without sharding, this process reconciles all objects.

    Use it on the event loop of the manager.
    """

    def __init__(self, controllers: Callable[[], Sequence[Controller[Any]]], fence: Fence) -> None:
        self._controllers = controllers
        self._fence = fence

    def owns(self, request: object, *, controller: str = "") -> bool:
        """Return whether this process reconciles a request now.

        controller: the name of a controller with `sharded=True`. Default: the one that calls, or the only one.

        Raises: ConfigError if it is not clear which controller is meant.
        """
        shard = self._shard(controller)
        return shard is None or shard.grant(request) is not None

    def owner_of(self, request: object, *, controller: str = "") -> str:
        """Return the replica that reconciles a request, as `pod/lease`. Empty without sharding, and if no replica is known.

        controller: see `owns`. Raises: ConfigError if it is not clear which controller is meant.
        """
        shard = self._shard(controller)
        owner = None if shard is None else shard.owner(request)
        return "" if owner is None or not owner.member else f"{owner.owner}/{owner.member}"

    def time_left(self) -> float | None:
        """Return the seconds for which the caller has the right to write, or None without a limit.

        In a reconcile it is the right to its object, elsewhere the leadership. Use it to limit calls to other systems, because no fence
        stops those. It is never more than `renew_deadline`.

        Raises: FencedError if the right has ended.
        """
        return self._fence.time_left()

    def _shard(self, name: str) -> Shard[Any] | None:
        sharded = {each.name: each.shard for each in self._controllers() if each.shard is not None}
        actor = current_actor()
        if not name and actor is not None and actor.controller in sharded:
            return sharded[actor.controller]
        if not name and len(sharded) <= 1:
            return next(iter(sharded.values()), None)
        if name in sharded:
            return sharded[name]
        if name in {each.name for each in self._controllers()}:
            return None
        raise ConfigError(
            f"the manager has no controller {name}"
            if name
            else "give the name of a controller, because the manager has several"
        )
