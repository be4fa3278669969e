"""The clusters of a manager besides its own: they come, fail and go while the manager runs.

Each cluster has a task of its own. A cluster that does not respond delays no other one, not the start of the manager, and not its leadership.

A controller with `on="fleet"` has templates of its watches. When a cluster is engaged, each template becomes a source of the cluster's
cache. So no request of a cluster is enqueued before its kinds are listed.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.api.metadata import Metadata, ObjectKey
from ctrlruntime.client.interfaces import Client, Reader
from ctrlruntime.client.wrapped import WrappedClient
from ctrlruntime.cluster import Cluster
from ctrlruntime.controller.controller import Controller, Watch
from ctrlruntime.errors import APIStatusError, ClusterGoneError, ClusterNotReadyError, ConfigError, CtrlError
from ctrlruntime.fleet.life import FIRST_RETRY, LONGEST_RETRY, MAX_SILENCE, PROBE_AFTER, ClusterState, Life, Seen
from ctrlruntime.handler import EventHandler
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.predicate import Predicate
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.fence import Grant
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.source import LOW_PRIORITY, Kind, Reason

__all__ = ["ClusterStatus", "FleetClusters", "FleetShare", "Template"]

FIRST_CONNECTS: Final = 50
"""The number of clusters that are connected for the first time at once."""

RETRIES: Final = 10
"""The number of clusters that are connected again at once."""

PROBE_TIMEOUT: Final = 10.0
"""Seconds that a probe waits for its response."""

CANCEL_AFTER: Final = 5.0
"""Seconds that running reconciles of a removed cluster have."""

MAP_AFTER: Final = 0.2
"""Seconds after which map functions are called again for a new cluster, so that several new ones cost one round."""

_PROBE: Final = "/version"
_HUB: Final = 0
"""The number of the manager's own cluster."""

_log = log.get_logger("fleet")


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a cluster of a fleet."""

    name: str
    state: ClusterState
    seconds: float
    """The seconds that it has been in this state."""

    reason: str
    """Why it is not engaged, or the last failure."""

    silence: float
    """Seconds since the last response."""


class Template(msgspec.Struct, frozen=True, eq=False):
    """A watch that a controller has in each cluster of the fleet."""

    kind: type[Any]
    handler: EventHandler[Any, Any]
    predicates: tuple[Predicate[Any], ...]
    reason: Reason


class _Templates(msgspec.Struct, eq=False):
    """The templates of one controller."""

    controller: Controller[Any]
    share: FleetShare
    watches: Sequence[Template]


class _Member:
    """One cluster, and what the controllers have of it."""

    def __init__(self, cluster: Cluster, number: int, now: float, deadline: Callable[[], float | None]) -> None:
        self.cluster = cluster
        self.number = number
        """Its place among all clusters that there were, so that one with a former name is another one."""

        self.life = Life(now)
        self.error = ""
        self.is_listed = False
        self.grants = {True: Grant(deadline), False: Grant(_always)}
        """The right to write for reconciles of its requests: of controllers that need leadership, and of others."""

        self.watches: dict[Controller[Any], list[Watch[Any]]] = {}
        self.parked: dict[FleetShare, dict[Request, None]] = {}
        """The requests of each controller that wait until it responds again."""

        self.turned = asyncio.Event()
        """Set when something happened that may change its state."""

        self.task: asyncio.Task[None] | None = None
        self.group: asyncio.TaskGroup | None = None
        self.client: Client = _MemberClient(self)

    @property
    def name(self) -> str:
        return self.cluster.name

    @property
    def is_engaged(self) -> bool:
        return self.life.state is ClusterState.ENGAGED

    def park(self, share: FleetShare, request: Request) -> None:
        self.parked.setdefault(share, {})[request] = None

    def reason(self) -> str:
        """Return why it is not engaged."""
        if self.error or self.life.state is not ClusterState.CONNECTING:
            return self.error
        return "; ".join(f"{kind} is not listed: {why}" for kind, why in self.cluster.cache.unsynced().items() if why)


def _always() -> float:
    return math.inf


class FleetShare:
    """What a controller with `on="fleet"` reconciles: the requests of engaged clusters, and of the manager's own.

    See `ctrlruntime.controller.sharding`. A slot is the number of a cluster.
    """

    def __init__(
        self, members: Mapping[str, _Member], hub: Callable[[], float | None], *, needs_leadership: bool
    ) -> None:
        self._members = members
        self._hub = Grant(hub if needs_leadership else _always)
        self._needs_leadership = needs_leadership

    @property
    def is_divided(self) -> bool:
        return False

    def slot(self, request: Request) -> int | None:
        if not request.cluster:
            return _HUB
        member = self._members.get(request.cluster)
        return None if member is None else member.number

    def admits(self, request: Request) -> bool:
        if not request.cluster:
            return True
        member = self._members.get(request.cluster)
        if member is None or member.life.state is ClusterState.GONE:
            return False
        if not member.is_engaged:
            member.park(self, request)
        return member.is_engaged

    def owner(self, request: Request) -> SlotOwner | None:
        return None

    def grant(self, request: Request) -> Grant | None:
        if not request.cluster:
            return self._hub
        member = self._members.get(request.cluster)
        return None if member is None else member.grants[self._needs_leadership]

    def deleted(self, meta: Metadata) -> None: ...

    def done(self, request: Request) -> None: ...


class FleetClusters:
    """The clusters of a manager besides its own. It is `mgr.fleet`; use it on the event loop of the manager.

    hub: the manager's own cluster.
    prepare: called with each cluster before its first request.
    forget: called with each cluster that was removed.
    """

    def __init__(
        self,
        hub: Cluster,
        *,
        prepare: Callable[[Cluster], None],
        forget: Callable[[Cluster], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._hub = hub
        self._prepare = prepare
        self._forget = forget
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._members: dict[str, _Member] = {}
        self._number = _HUB
        self._templates: list[_Templates] = []
        self._first_connects = asyncio.Semaphore(FIRST_CONNECTS)
        self._retries = asyncio.Semaphore(RETRIES)
        self._context: contextvars.Context | None = None
        self._mappings: dict[Controller[Any], asyncio.Task[None]] = {}
        """Controllers whose map functions of the hub are called again."""

    # --- what users ask ----------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all clusters, without the manager's own."""
        return [name for name, member in self._members.items() if member.life.state is not ClusterState.GONE]

    def cluster(self, name: str) -> Cluster:
        """Return a cluster. Raises: ClusterGoneError for an unknown name."""
        return self._member(name).cluster

    def client(self, where: Request | str) -> Client:
        """Return the client of the cluster of a request, or of a cluster by name. "" is the manager's own.

        Its calls raise ClusterNotReadyError until the cluster is engaged for the first time, and ClusterGoneError once it is removed.

        Raises: ClusterGoneError for an unknown name.
        """
        name = where if isinstance(where, str) else where.cluster
        return self._member(name).client if name else self._hub.client

    def status(self, name: str) -> ClusterStatus:
        """Return what is known about a cluster. Raises: ClusterGoneError for an unknown name."""
        member, now = self._member(name), self._clock()
        return ClusterStatus(
            name=name,
            state=member.life.state,
            seconds=now - member.life.since,
            reason=member.reason(),
            silence=member.life.silence(now),
        )

    def _member(self, name: str) -> _Member:
        member = self._members.get(name)
        if member is None or member.life.state is ClusterState.GONE:
            raise ClusterGoneError(f"the fleet has no cluster {name!r}")
        return member

    # --- clusters come and go ----------------------------------------------------------------------------------------

    @property
    def clusters(self) -> list[Cluster]:
        """All clusters, without the manager's own."""
        return [member.cluster for member in self._members.values()]

    def add(self, cluster: Cluster) -> None:
        """Connect a cluster, and watch it for the controllers of the fleet. Returns at once.

        Raises: ConfigError for a name in use.
        """
        if not cluster.name or cluster.name in self._members:
            named = f"a cluster named {cluster.name!r}" if cluster.name else "a cluster without a name, its own"
            raise ConfigError(
                f"cannot add the cluster {shown_url(cluster.config.host)}: the manager has {named}. "
                "Add each cluster once, with its own name: Cluster(config, name=…)"
            )
        self._prepare(cluster)
        self._number += 1
        member = self._members[cluster.name] = _Member(cluster, self._number, self._clock(), self._hub.fence.deadline)
        cluster.contact.on_turn = member.turned.set
        if self._context is not None:
            self._begin(member)

    async def remove(self, name: str) -> None:
        """End a cluster: no new reconcile of it starts, running ones are cancelled after 5 s, and its connections are closed.

        Raises: ClusterGoneError for an unknown name.
        """
        member = self._member(name)
        member.life.end(self._clock())  # from here on no request of it is enqueued
        member.parked.clear()
        _log.info("cluster removed", cluster=name)
        self._withdraw(member)
        for watches in member.watches.values():
            for watch in watches:
                await watch.stop()
        await self._end_reconciles(member, within=CANCEL_AFTER)
        await _cancel(member.task)
        await member.cluster.close()
        del self._members[name]
        self._forget(member.cluster)

    # --- controllers -------------------------------------------------------------------------------------------------

    def new_share(self, *, needs_leadership: bool) -> FleetShare:
        """Return the share of a controller with `on="fleet"`. Builders call it."""
        return FleetShare(self._members, self._hub.fence.deadline, needs_leadership=needs_leadership)

    def watch(self, controller: Controller[Any], share: object, watches: Sequence[Template]) -> None:
        """Watch kinds in each cluster, now and later. Builders call it."""
        assert isinstance(share, FleetShare)
        templates = _Templates(controller, share, tuple(watches))
        self._templates.append(templates)
        for member in self._members.values():
            if member.is_engaged:
                self._spawn(member, self._watch(member, templates))

    async def _watch(self, member: _Member, templates: _Templates) -> None:
        """Add the watches of a controller to a cluster, once it runs. A cluster must not delay its start."""
        controller = templates.controller
        await controller.wait_synced()
        if member.life.state is ClusterState.GONE or controller.is_stopping or controller in member.watches:
            return
        member.watches[controller] = [
            controller.watch(self._source(member, controller, each)) for each in templates.watches
        ]
        if controller not in self._mappings:
            self._mappings[controller] = asyncio.create_task(self._map_again(controller), context=self._context)

    async def _map_again(self, controller: Controller[Any]) -> None:
        """Call the map functions for the objects of the hub again: they may return requests of a cluster that is new."""
        await self._sleep(MAP_AFTER)
        del self._mappings[controller]
        for watch in controller.watches:
            source = watch.source
            if isinstance(source, Kind) and not source.cluster and source.reason == "watches":
                await source.show(lambda _meta: True)

    @staticmethod
    def _source(member: _Member, controller: Controller[Any], template: Template) -> Kind[Any, Any]:
        return Kind(
            member.cluster.cache,
            template.kind,
            template.handler,
            predicates=template.predicates,
            name=controller.name,
            reason=template.reason,
            cluster=member.name,
        )

    def _withdraw(self, member: _Member) -> None:
        """Take the requests of a cluster from all controllers. While it is not gone, they wait until it is engaged again."""
        for templates in self._templates:
            for _, request in templates.controller.withdraw({member.number}):
                if member.life.state is not ClusterState.GONE:
                    member.park(templates.share, request)

    async def _end_reconciles(self, member: _Member, *, within: float) -> None:
        """Cancel the reconciles of withdrawn requests after `within` seconds, and let no later write of them start."""
        ends = (templates.controller.end_moved({member.number}, within) for templates in self._templates)
        await asyncio.gather(*ends)
        for grant in member.grants.values():
            grant.close()

    # --- the life of a cluster ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all clusters until cancelled. The manager calls it."""
        self._context = contextvars.copy_context()
        try:
            for member in self._members.values():
                self._begin(member)
            await asyncio.get_running_loop().create_future()
        finally:
            self._context = None
            tasks = [*(member.task for member in self._members.values()), *self._mappings.values()]
            await asyncio.gather(*map(_cancel, tasks))

    def _begin(self, member: _Member) -> None:
        member.task = asyncio.create_task(self._live(member), name=f"cluster {member.name}", context=self._context)

    async def _live(self, member: _Member) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                member.group = group
                group.create_task(member.cluster.start())
                group.create_task(self._reach(member))
                group.create_task(self._follow(member))
        except Exception as error:  # noqa: BLE001 - a bug; it must not end the other clusters
            member.error = log.describe(error)
            _log.error("cluster failed", cluster=member.name, exc_info=error)
            member.group = None
            self._withdraw(member)
            await self._end_reconciles(member, within=0.0)

    async def _follow(self, member: _Member) -> None:
        """Do what follows from each change of the state."""
        while True:
            member.turned.clear()
            before, now = member.life.state, self._clock()
            seen = Seen(member.cluster.contact.answers, member.cluster.contact.failures, member.is_listed)
            if (after := member.life.look(seen, now)) is not before:
                await self._enter(member, before, after)
            left = None
            if member.is_engaged:
                left = max(MAX_SILENCE - member.life.silence(now), 0.1)
            try:
                async with asyncio.timeout(left):
                    await member.turned.wait()
            except TimeoutError:
                continue

    async def _enter(self, member: _Member, before: ClusterState, after: ClusterState) -> None:
        fields = {"cluster": member.name, "after": before.value}
        if after is ClusterState.DEGRADED:
            _log.warning("cluster does not respond, its reconciles wait", error=member.error, **fields)
            self._withdraw(member)
            await self._end_reconciles(member, within=0.0)
            return
        _log.info("cluster engaged", **fields)
        for grant in member.grants.values():
            grant.reopen()
        if before is ClusterState.DEGRADED:
            member.cluster.distrust_cache()
        for templates in self._templates:
            self._spawn(member, self._watch(member, templates))
        parked, member.parked = member.parked, {}
        for templates in self._templates:
            for request in parked.pop(templates.share, ()):
                templates.controller.queue.add(request, priority=LOW_PRIORITY)

    async def _reach(self, member: _Member) -> None:
        """Connect, list the kinds of all controllers, and ask for a response when none came for a while."""
        delay, connects = FIRST_RETRY, self._first_connects
        while True:
            silence = member.life.silence(self._clock())
            if member.is_engaged and not member.cluster.contact.failures and silence < PROBE_AFTER:
                await self._sleep(max(PROBE_AFTER - silence, 0.1))
                continue
            async with connects:
                has_answered = await self._probe(member)
            connects = self._retries
            if not has_answered:
                await self._sleep(delay * (1.0 + 0.2 * self._rng()))
                delay = min(2 * delay, LONGEST_RETRY)
                continue
            delay = FIRST_RETRY
            if not member.is_listed:
                await self._list(member)
            member.turned.set()
            await self._sleep(FIRST_RETRY)

    async def _probe(self, member: _Member) -> bool:
        """Return whether the API server responds."""
        cluster = member.cluster
        try:
            await cluster.transport.request("GET", _PROBE, timeout=PROBE_TIMEOUT)
        except APIStatusError as error:
            if error.code == 401:
                member.error = str(error)
                return False
        except CtrlError as error:
            member.error = str(error)
            return False
        member.error = ""
        return True

    async def _list(self, member: _Member) -> None:
        """Wait until the cache has each kind that a controller watches in the clusters."""
        for templates in self._templates:
            for each in templates.watches:
                await self._source(member, templates.controller, each).warm()
        await member.cluster.cache.wait_running()
        await member.cluster.cache.wait_for_cache_sync()
        member.is_listed = True

    @staticmethod
    def _spawn(member: _Member, work: Any) -> None:
        assert member.group is not None
        member.group.create_task(work)


class _MemberClient(WrappedClient):
    """The client of a cluster of a fleet, for callers that have only its name."""

    def __init__(self, member: _Member) -> None:
        super().__init__(member.cluster.client)
        self._member = member

    @property
    @override
    def api_reader(self) -> Reader:
        self._refuse()
        return super().api_reader

    @override
    async def bound_key(self, kind: type[Any], key: ObjectKey) -> ObjectKey:
        self._refuse()
        return key

    @override
    async def bound_namespace(self, kind: type[Any], namespace: str | None) -> str | None:
        self._refuse()
        return namespace

    @override
    async def _call(self, verb: str, *args: Any, subresource: str | None = None, options: Mapping[str, Any]) -> Any:
        self._refuse()
        return await super()._call(verb, *args, subresource=subresource, options=options)

    def _refuse(self) -> None:
        name, state = self._member.name, self._member.life.state
        if state is ClusterState.GONE:
            raise ClusterGoneError(f"the cluster {name!r} was removed")
        if state is ClusterState.CONNECTING:
            why = self._member.reason() or "its kinds are not listed yet"
            raise ClusterNotReadyError(f"the cluster {name!r} is not connected: {why}")


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
