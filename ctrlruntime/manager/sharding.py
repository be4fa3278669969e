"""The part of a manager that shares its controllers' objects with other replicas: a member of the ring, on the second loop."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from typing import Any, Final

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, NamespacedName
from ctrlruntime.cache.part import Rule
from ctrlruntime.errors import ConfigError, ForeignShardError
from ctrlruntime.fleet.clusters import FleetClusters
from ctrlruntime.fleet.slots import FleetSlots
from ctrlruntime.handler import Owners
from ctrlruntime.healthz import UnhealthyError
from ctrlruntime.leaderelection.lease import namespace_of_pod
from ctrlruntime.leases.connection import LeaseConnection
from ctrlruntime.manager.sideloop import SideLoop
from ctrlruntime.metrics.shards import ShardNumbers
from ctrlruntime.ownership.leases import Leases
from ctrlruntime.ownership.machine import Change, Machine
from ctrlruntime.ownership.member import Member
from ctrlruntime.ownership.options import ShardBy, Sharding, ShardKey
from ctrlruntime.ownership.parts import Children, Roots
from ctrlruntime.ownership.shards import ControllerShard, KeyShard, Shards, UidShard, key_of
from ctrlruntime.ownership.state import RingState, SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import current_actor, lease_clock
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme

FIRST_SHARE: Final = 60.0
"""Seconds that a replica waits for its first share before it counts as ready: replicas of another layout may have all slots."""

_IDENTITY_BYTES: Final = 4

_log = log.get_logger("sharding")


class _Root:
    """The kind that a sharded controller reconciles."""

    __slots__ = ("by", "group", "is_told", "kind", "shard")

    def __init__(self, group: str, kind: str, by: ShardBy, shard: ControllerShard[Any]) -> None:
        self.group = group
        self.kind = kind
        self.by = by
        self.shard = shard
        self.is_told = False
        """Whether a write to an object of another replica was logged."""

    def owner(self, request: Request) -> SlotOwner | None:
        """Return who reconciles an object, or all of a namespace if the name is empty. None: not known, or several replicas."""
        if not request.name and not (self.by == "namespace" and request.namespace):
            return None
        return self.shard.owner(request)


def _rejected(what: str, owner: SlotOwner | None) -> ForeignShardError:
    if owner is None:
        return ForeignShardError(
            f"write to {what} rejected: other replicas reconcile some of them, and sharding has strict=True. Delete the own objects one by one"
        )
    who = f"the replica {owner.owner}" if owner.owner else "another replica"
    return ForeignShardError(
        f"write to {what} rejected: {who} reconciles slot {owner.slot}, and sharding has strict=True. Write only the own object and its "
        "children, or divide by a key that keeps both objects together",
        slot=owner.slot,
        owner=owner.owner,
    )


class Replica:
    """One of several replicas: this process.

    Its callbacks are those of `Shards`.
    """

    def __init__(
        self,
        options: Sharding,
        *,
        fill: Callable[[int], Awaitable[None]],
        free: Callable[[], Awaitable[None]],
        catch_up: Callable[[Collection[int]], None],
        lead: Callable[[], None],
        stop_leading: Callable[[], Coroutine[Any, Any, None]],
        lost: Callable[[], None],
    ) -> None:
        self.options = options
        self.shards = Shards(
            options.slots,
            self,
            drain_timeout=options.drain_timeout,
            fill=fill,
            free=free,
            catch_up=catch_up,
            lead=lead,
            stop_leading=stop_leading,
            lost=lost,
        )
        self._rules: list[str] = []
        self._roots: dict[object, _Root] = {}
        """What the controller of each share reconciles."""

        self._foreign_writes = 0
        self._side: SideLoop | None = None
        self._main: asyncio.AbstractEventLoop | None = None
        self._connection: LeaseConnection | None = None
        self._member: Member | None = None
        self._task: asyncio.Task[None] | None = None
        self._joined_at = 0.0

    def new_shard(
        self,
        controller: str,
        by: ShardBy,
        group: str,
        kind: str,
        known: Callable[[object, Request], Metadata | None],
    ) -> ControllerShard[Any]:
        """Return the share of a controller.

        `known`: returns the metadata of the object of a request, if it is cached for the controller of this share.

        Raises: ConfigError for an unknown rule, RuntimeError after the start.
        """
        if self._member is not None:
            raise RuntimeError(f"controller {controller} is sharded, so it must be added before the manager starts")
        if not isinstance(by, ShardKey) and by not in {"name", "namespace", "uid"}:
            raise ConfigError(
                f"controller {controller}: shard_by is {by!r}; give 'name', 'namespace', 'uid' or a ctrl.ShardKey"
            )
        if by == "uid" and not kind:
            raise ConfigError(f"controller {controller}: shard_by='uid' needs for_(): the uid is that of its objects")
        self._rules.append(f"{controller}:{by.name if isinstance(by, ShardKey) else by}")
        shard: ControllerShard[Any]
        if by == "uid":
            shard = UidShard(
                self.shards, lambda request: known(shard, request), server_ranges=self.options.server_ranges
            )
        else:
            shard = KeyShard(self.shards, key_of(by, group, kind))
        self._roots[shard] = _Root(group, kind, by, shard)
        return shard

    def add_fleet(self, fleet: FleetClusters) -> None:
        """Divide the clusters of a fleet among the replicas."""
        self._rules.append("fleet:cluster")
        slots = FleetSlots(fleet)
        self.shards.add_fleet(slots, slots)

    def rule(self, shard: object, kind: str, owners: Owners | None) -> Rule:
        """Return what is cached of a kind for the controller of a share; see `Manager.hold_part`."""
        assert isinstance(shard, ControllerShard)
        if owners is None:
            return Roots(shard, kind)
        if isinstance(shard, UidShard):
            return Children(shard.keeps, owners.owner_uids)
        assert isinstance(shard, KeyShard)
        return Children(shard.keeps, owners.owners)

    def check_write(self, gvk: GroupVersionKind, namespace: str, name: str) -> None:
        """Count a write by a reconcile to an object that another replica reconciles, and log the first one of each controller.

        An empty name is for all objects of the namespace, or of the cluster.
        Code outside the reconciles of sharded controllers may write any object.

        Raises: ForeignShardError with `Sharding(strict=True)`.
        """
        actor = current_actor()
        if actor is None or actor.grant is None:
            return
        root = self._roots.get(actor.share)
        request = Request(namespace, name)
        if root is None or (root.group, root.kind) != (gvk.group, gvk.kind) or request == actor.request:
            return
        owner = root.owner(request)
        if owner is None and name:  # divided by uid, and not in the cache
            return
        if (owner is not None and owner.is_here) or actor.grant.deadline() is None:
            return  # without a valid grant, the fence rejects the write
        self._foreign_writes += 1
        what = f"{gvk.kind} {request}" if name else f"all {gvk.kind} objects of {namespace or 'the cluster'}"
        if self.options.strict:
            raise _rejected(what, owner)
        if not root.is_told:
            root.is_told = True
            _log.warning(
                "a reconcile writes an object of another replica",
                controller=actor.controller,
                kind=gvk.kind,
                object=str(request) if name else f"{namespace}/*",
                owner=owner.owner if owner else "",
                slot=owner.slot if owner else "",
                hint="two replicas can write it at the same time. Sharding(strict=True) rejects such writes",
            )

    @property
    def layout(self) -> str:
        """The number of slots, and how the objects of each controller are divided."""
        text = ",".join(sorted(self._rules))
        return f"{self.options.slots}-{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"

    def start(
        self,
        side: SideLoop,
        transport: Transport,
        scheme: Scheme,
        *,
        stop_grace: float,
        blocked_reason: Callable[[], str],
    ) -> asyncio.Task[None]:
        """Join the ring. The task ends when this replica has left it."""
        options = self.options
        namespace = options.namespace or namespace_of_pod("sharding", "Sharding(namespace=…)")
        self._side, self._main = side, asyncio.get_running_loop()
        self._connection = LeaseConnection(transport, scheme=scheme)
        leases = Leases(
            self._connection.client,
            NamespacedName(namespace, options.id),
            pod=options.identity or os.environ.get("POD_NAME", "") or socket.gethostname(),
            labels=options.labels,
            lease_duration=options.lease_duration,
        )
        machine = Machine(
            lambda: f"{options.id}-{secrets.token_hex(_IDENTITY_BYTES)}",
            layout=self.layout,
            slots=options.slots,
            now=lease_clock(),
            weight=options.weight,
            timing=options.timing(stop_grace),
        )
        member = self._member = Member(
            machine,
            leases.send,
            pod_of=leases.pod_of,
            on_changes=self._on_changes,
            blocked_reason=blocked_reason,
        )
        self._joined_at = lease_clock()
        self._task = asyncio.ensure_future(side.run(member.run))
        return self._task

    def _on_changes(self, changes: Sequence[Change]) -> None:
        assert self._main is not None
        self._main.call_soon_threadsafe(self.shards.changed, changes)

    async def leave(self, within: float | None) -> None:
        """Give all slots away and leave the ring, at most for so many seconds. What is left then runs out by itself."""
        if self._task is None or self._member is None:
            return
        self._on_side(self._member.stop)
        if (await asyncio.wait({self._task}, timeout=within))[1]:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.shards.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None and self._side is not None:
            await self._side.run(self._connection.close)

    # --- what `Shards` calls ---------------------------------------------------------------------------------------

    def warmed(self, slots: Sequence[int]) -> None:
        assert self._member is not None
        self._on_side(self._member.warmed, slots)

    def caught_up(self, slots: Sequence[tuple[int, int]]) -> None:
        assert self._member is not None
        self._on_side(self._member.caught_up, slots)

    def drained(self, slots: Sequence[tuple[int, int]]) -> None:
        assert self._member is not None
        self._on_side(self._member.drained, slots)

    def deadline(self, slot: int, grant: int) -> float | None:
        assert self._member is not None
        machine = self._member.machine
        return machine.deadline() if machine.writable(slot, grant, lease_clock()) else None

    def owner(self, slot: int) -> SlotOwner:
        if self._member is None:
            return SlotOwner(slot=slot, of=0, owner="", member="", following="", is_here=False, state="foreign")
        return self._member.owner(slot)

    # --- what people ask -------------------------------------------------------------------------------------------

    def state(self) -> RingState | None:
        """Return the ring, or None before the start."""
        return None if self._member is None else self._member.state()

    def numbers(self) -> ShardNumbers:
        """Return the numbers of the metrics. Safe in any thread."""
        ring = self.state()
        return ShardNumbers(
            members=0 if ring is None else sum(each.state != "expired" for each in ring.replicas),
            unowned=0 if ring is None else ring.unowned,
            slots=self.shards.counts(),
            opened=self.shards.opened,
            foreign_requests=self.shards.foreign_requests,
            foreign_writes=self._foreign_writes,
            failures=0 if self._member is None else self._member.failures,
        )

    def check(self) -> None:
        """Raise UnhealthyError if this replica cannot work, or still waits for its first share. Safe in any thread."""
        if self._member is None:
            raise UnhealthyError("this replica has not joined the ring")
        if trouble := self._member.trouble():
            raise UnhealthyError(trouble)
        if not self.shards.has_opened and lease_clock() < self._joined_at + FIRST_SHARE:
            raise UnhealthyError("this replica waits for its first share of the objects")

    def _on_side(self, call: Callable[..., None], *arguments: object) -> None:
        assert self._side is not None
        if self._side.is_running:
            self._side.loop.call_soon_threadsafe(call, *arguments)
