"""The clusters of a manager besides its own: they come, fail and go while the manager runs.

Each cluster has a task of its own. A cluster that does not respond delays no other one, not the start of the manager, and not its leadership.

A controller with `on="fleet"` has templates of its watches. When a cluster is engaged, each template becomes a source of the cluster's
cache. So no request of a cluster is enqueued before its kinds are listed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import dataclasses
import math
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.api.metadata import Metadata, ObjectKey, metadata_of
from ctrlruntime.cache.cache import IndexFunction
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.client.interfaces import Client, Reader
from ctrlruntime.client.scoped import namespaced
from ctrlruntime.client.wrapped import WrappedClient
from ctrlruntime.cluster import Cluster
from ctrlruntime.controller.controller import Controller, Watch
from ctrlruntime.errors import (
    APIStatusError,
    ClusterGoneError,
    ClusterNotReadyError,
    ConfigError,
    CtrlError,
    ForeignShardError,
)
from ctrlruntime.explain import facts
from ctrlruntime.fleet.life import FIRST_RETRY, LONGEST_RETRY, MAX_SILENCE, PROBE_AFTER, ClusterState, Life, Seen
from ctrlruntime.fleet.provider import ClusterSource, Inventory, Provider
from ctrlruntime.handler import EventHandler
from ctrlruntime.ownership.ring import slot_of
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.predicate import Predicate
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.content import METADATA_ITEM
from ctrlruntime.rest.fence import Grant
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.source import LOW_PRIORITY, Kind, Reason

if TYPE_CHECKING:
    from ctrlruntime.ownership.shards import Shards

__all__ = ["ClusterStatus", "FleetClusters", "FleetShare", "Template"]

FIRST_CONNECTS: Final = 50
"""The number of clusters that are connected for the first time at once."""

RETRIES: Final = 10
"""The number of clusters that are connected again at once."""

PROBE_TIMEOUT: Final = 10.0
"""Seconds that a probe waits for its response."""

CANCEL_AFTER: Final = 5.0
"""Seconds that running reconciles of a removed cluster have."""

FILL_TIMEOUT: Final = 10.0
"""Seconds that a replica waits for the clusters that it is to take over. Then they are connected after the hand-over."""

MAP_AFTER: Final = 0.2
"""Seconds after which map functions are called again for a cluster that comes or goes, so that several cost one round."""

_PROBE: Final = "/version"
_KUBE_SYSTEM: Final = "/api/v1/namespaces/kube-system"
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

    labels: Mapping[str, str]
    """The labels that its provider has set."""


class Fleet:
    """The providers of other clusters, and the options of these clusters.

    Pass it to `new_manager`.

    Args:
        providers: they name the clusters, also while the manager runs.
        scheme: the classes of your kinds; None: that of the manager.
        cache: namespaces, selectors and transforms of the cache of each cluster.
        disable_cache_for: classes that clients always read live.
        read_your_writes_timeout: seconds that a cached read waits for this process's own writes.
        sharded: divide the clusters among the replicas. The manager needs `sharding`. Each replica connects only its own clusters, and
            reconciles all their requests.

    Raises: ConfigError for two providers with the same name.

    """

    def __init__(
        self,
        *providers: Provider,
        scheme: Scheme | None = None,
        cache: CacheOptions | None = None,
        disable_cache_for: Collection[type[Any]] = (),
        read_your_writes_timeout: float = 5.0,
        sharded: bool = False,
    ) -> None:
        self.providers = _distinct(*providers)
        self.scheme = scheme
        self.cache = cache
        self.disable_cache_for = disable_cache_for
        self.read_your_writes_timeout = read_your_writes_timeout
        self.sharded = sharded

    def with_provider(self, provider: Provider) -> Self:
        """Return a copy with one more provider.

        Raises: ConfigError if there is a provider with its name.
        """
        changed = copy.copy(self)
        changed.providers = _distinct(*self.providers, provider)
        return changed


def _distinct(*providers: Provider) -> tuple[Provider, ...]:
    names = [provider.name for provider in providers]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"the fleet has two providers named {twice!r}. Give one of them another name")
    return providers


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


class Lane:
    """The requests of one cluster, also of the manager's own, in all controllers of the fleet.

    name: of the cluster.
    deadline: that of the leadership.
    ring: divides the clusters; None: all are here.
    """

    def __init__(self, name: str, number: int, deadline: Callable[[], float | None], ring: Shards | None) -> None:
        self.name = name
        self.number = number
        """Its place among all clusters that there were, so that one with a former name is another one."""

        self.slot = None if ring is None else slot_of(name, ring.count)
        self.grants: Mapping[bool, Grant] = {}
        """The right to write for reconciles of its requests: of controllers that need leadership, and of others."""

        self.parked: dict[FleetShare, dict[Request, None]] = {}
        """The requests of each controller that wait until it is engaged again."""

        self.has_dropped = False
        """Requests were dropped, because another replica had the cluster: when it is here again, all of its objects are shown."""

        self._deadline = deadline
        self._ring = ring

    @property
    def is_here(self) -> bool:
        """Whether this replica may reconcile its requests."""
        return self._ring is None or self.slot is None or self._ring.grant(self.slot) is not None

    @property
    def is_engaged(self) -> bool:
        """Whether its requests are reconciled."""
        return self.is_here

    @property
    def is_gone(self) -> bool:
        return False

    def open(self) -> None:
        """Let reconciles of its requests write. Earlier ones may not write any more."""
        if self._ring is None or self.slot is None:
            self.grants = {True: Grant(self._deadline), False: Grant(_always)}
        elif (whole := self._ring.grant(self.slot)) is not None:
            grant = Grant(whole.deadline, whole=whole)
            self.grants = {True: grant, False: grant}

    def close(self) -> None:
        for grant in self.grants.values():
            grant.close()

    def park(self, share: FleetShare, request: Request) -> None:
        """Keep a request until the cluster is engaged, unless another replica has it."""
        if self.is_gone:
            return
        if self._ring is None or self.slot is None or self._ring.takes(self.slot):
            self.parked.setdefault(share, {})[request] = None
        else:
            self.has_dropped = True


class _Member(Lane):
    """One cluster of the fleet, and what the controllers have of it."""

    def __init__(
        self,
        cluster: Cluster,
        number: int,
        now: float,
        deadline: Callable[[], float | None],
        source: ClusterSource | None,
        ring: Shards | None,
    ) -> None:
        super().__init__(cluster.name, number, deadline, ring)
        self.cluster = cluster
        self.source = source
        """The access, from its provider; None for a cluster that was added by hand."""

        self.life = Life(now)
        self.error = ""
        self.is_listed = False
        self.has_failed = False
        """Its task ended by a bug."""

        self.tried = asyncio.Event()
        """Set when its kinds are listed, or when it did not respond."""

        self.watches: dict[Controller[Any], list[Watch[Any]]] = {}
        self.uid = ""
        """That of its Namespace kube-system, which tells it from another cluster; empty if it is not known."""

        self.turned = asyncio.Event()
        """Set when something happened that may change its state."""

        self.hurried = asyncio.Event()
        """Set when it should be asked for a response at once."""

        self.task: asyncio.Task[None] | None = None
        self.group: asyncio.TaskGroup | None = None
        self.client: Client = _MemberClient(self, ring)

    @property
    @override
    def is_engaged(self) -> bool:
        return self.life.state is ClusterState.ENGAGED and self.is_here

    @property
    @override
    def is_gone(self) -> bool:
        return self.life.state is ClusterState.GONE

    def has(self, wanted: ClusterSource) -> bool:
        """Return whether the cluster works with the access that its provider wants."""
        return not self.has_failed and self.source is not None and self.source.fingerprint == wanted.fingerprint

    def wake(self) -> None:
        """Look at its state, and ask it for a response."""
        self.turned.set()
        self.hurried.set()

    def reason(self) -> str:
        """Return why it is not engaged."""
        if self.error or self.life.state is ClusterState.ENGAGED:
            return self.error
        if self.life.state is ClusterState.DEGRADED:
            failures = self.cluster.contact.failures
            return f"{failures} failures in a row" if failures else f"no response for {MAX_SILENCE:g} s"
        return "; ".join(f"{kind} is not listed: {why}" for kind, why in self.cluster.cache.unsynced().items() if why)


def _always() -> float:
    return math.inf


class FleetShare:
    """What a controller with `on="fleet"` reconciles: the requests of engaged clusters, and of the manager's own.

    See `ctrlruntime.controller.sharding`. A slot is the number of a cluster.
    """

    def __init__(self, lane: Callable[[str], Lane | None], ring: Shards | None, *, needs_leadership: bool) -> None:
        self._lane = lane
        self._ring = ring
        self._needs_leadership = needs_leadership

    @property
    def is_divided(self) -> bool:
        return self._ring is not None

    @property
    def has_lanes(self) -> bool:
        return True

    def slot(self, request: Request) -> int | None:
        lane = self._lane(request.cluster)
        return None if lane is None else lane.number

    def admits(self, request: Request) -> bool:
        lane = self._lane(request.cluster)
        if lane is None:
            return False
        if not lane.is_engaged:
            lane.park(self, request)
        return lane.is_engaged

    def owner(self, request: Request) -> SlotOwner | None:
        return None if self._ring is None else self._ring.owner(slot_of(request.cluster, self._ring.count))

    def grant(self, request: Request) -> Grant | None:
        lane = self._lane(request.cluster)
        return lane.grants.get(self._needs_leadership) if lane is not None and lane.is_engaged else None

    def deleted(self, meta: Metadata) -> None: ...

    def done(self, request: Request) -> None: ...


class FleetClusters:
    """The clusters of a manager besides its own. It is `mgr.fleet`; use it on the event loop of the manager.

    hub: the manager's own cluster.
    prepare: called with each cluster before its first request.
    forget: called with each cluster that was removed.
    ring: divides the clusters among replicas. None: all are here.
    """

    def __init__(
        self,
        hub: Cluster,
        options: Fleet | None = None,
        *,
        prepare: Callable[[Cluster], None],
        forget: Callable[[Cluster], None],
        ring: Shards | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._hub = hub
        self._options = options or Fleet()
        self._prepare = prepare
        self._forget = forget
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._members: dict[str, _Member] = {}
        self._ring = ring
        self._home = Lane("", _HUB, hub.fence.deadline, ring)
        self._home.open()
        self._number = _HUB
        self._templates: list[_Templates] = []
        self._indexes: dict[tuple[type[Any], str], IndexFunction | None] = {}
        """The values of each index, by kind and field."""

        self._first_connects = asyncio.Semaphore(FIRST_CONNECTS)
        self._retries = asyncio.Semaphore(RETRIES)
        self._context: contextvars.Context | None = None
        self._wanted: dict[str, ClusterSource | None] = {}
        """What the providers say about each name; None: the cluster is to be removed."""

        self._changes: dict[str, asyncio.Task[None]] = {}
        """The tasks that add, replace or remove a cluster of a provider, by name."""

        self._inventories = [(each, _Inventory(self, each.name)) for each in self._options.providers]
        self._named = asyncio.Event()
        """Set when each provider has named all its clusters."""

        self._providing: list[asyncio.Task[None]] = []
        self._mappings: dict[Controller[Any], asyncio.Task[None]] = {}
        """Controllers that are shown the objects of the hub again."""

    # --- what users ask ----------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all clusters, without the manager's own. With `sharded=True`, of those that are connected here."""
        return [name for name, member in self._members.items() if not member.is_gone]

    def cluster(self, name: str) -> Cluster:
        """Return a cluster. Raises: ClusterGoneError for an unknown name, ForeignShardError for a cluster of another replica."""
        return self._member(name).cluster

    def client(self, where: Request | str) -> Client:
        """Return the client of the cluster of a request, or of a cluster by name. "" is the manager's own.

        Its calls raise ClusterNotReadyError until the cluster is engaged for the first time, ForeignShardError while another replica
        reconciles it, and ClusterGoneError once it is removed.

        Raises: ClusterGoneError for an unknown name, ForeignShardError for a cluster of another replica.
        """
        name = where if isinstance(where, str) else where.cluster
        return self._member(name).client if name else self._hub.client

    def status(self, name: str) -> ClusterStatus:
        """Return what is known about a cluster.

        Raises: ClusterGoneError for an unknown name, ForeignShardError for a cluster of another replica.
        """
        member, now = self._member(name), self._clock()
        return ClusterStatus(
            name=name,
            state=member.life.state,
            seconds=now - member.life.since,
            reason=member.reason(),
            silence=member.life.silence(now),
            labels={} if member.source is None else member.source.labels,
        )

    def explained(self) -> list[facts.FleetCluster]:
        """Return what the debug page shows."""
        found = ((self.status(name), self._member(name)) for name in self.names())
        here = [
            facts.FleetCluster(
                name=each.name,
                state=each.state.value,
                seconds=each.seconds,
                silence=each.silence,
                reason=each.reason,
                labels=dict(each.labels),
                waiting=sum(map(len, member.parked.values())),
                owner=self._owner(each.name),
            )
            for each, member in found
        ]
        return here + [
            facts.FleetCluster(
                name=name,
                state="Foreign",
                seconds=0.0,
                silence=0.0,
                reason="",
                labels=dict(source.labels),
                waiting=0,
                owner=self._owner(name),
            )
            for name, source in self._wanted.items()
            if source is not None and not self._is_kept(name) and name not in self._members
        ]

    def _owner(self, name: str) -> str:
        """Return the Pod that reconciles a cluster; empty without sharding."""
        return "" if self._ring is None else self._ring.owner(slot_of(name, self._ring.count)).owner

    def counts(self) -> dict[str, int]:
        """Return the number of clusters by state; empty without a fleet. Safe in any thread."""
        states = [member.life.state for member in list(self._members.values())]
        if not states and not self._options.providers:
            return {}
        return {state.value: states.count(state) for state in ClusterState if state is not ClusterState.GONE}

    @property
    def is_synced(self) -> bool:
        """Whether each provider has named all its clusters, and `names` returns them."""
        missing = {name for name in self._changes if self._wanted.get(name) is not None}.difference(self.names())
        return not missing and self._are_named

    @property
    def _are_named(self) -> bool:
        """Whether each provider has named all its clusters."""
        return all(inventory.is_synced for _, inventory in self._inventories)

    def note_named(self) -> None:
        """Note that a provider has named all its clusters. Called by its inventory."""
        if self._are_named:
            self._named.set()

    def _member(self, name: str) -> _Member:
        member = self._members.get(name)
        if member is not None and not member.is_gone:
            return member
        if self._ring is not None and self._wanted.get(name) is not None:
            raise foreign(name, self._ring)
        raise ClusterGoneError(f"the fleet has no cluster {name!r}")

    def lane(self, name: str) -> Lane | None:
        """Return the requests of a cluster; "" is the manager's own. None: it is not here."""
        lane = self._members.get(name) if name else self._home
        return None if lane is None or lane.is_gone else lane

    def index_field(self, kind: type[Any], field: str, values: IndexFunction | None = None) -> None:
        """Index a kind by a field in each cluster, also in those that are added later.

        See `Cache.index_field`. The index of the manager's own cluster is `mgr.cache.index_field`.

        Raises: ValueError if the index exists, or if the field needs no index.
        """
        if (kind, field) in self._indexes:
            raise ValueError(f"cannot index {kind.__name__} by {field}: this index of the fleet exists")
        for cluster in self.clusters:
            cluster.cache.index_field(kind, field, values)
        self._indexes[kind, field] = values

    # --- clusters come and go ----------------------------------------------------------------------------------------

    @property
    def clusters(self) -> list[Cluster]:
        """All clusters, without the manager's own."""
        return [member.cluster for member in self._members.values()]

    def add(self, cluster: Cluster) -> None:
        """Connect a cluster, and watch it for the controllers of the fleet. Returns at once.

        Raises: ConfigError for a name in use, or if the clusters are divided among replicas.
        """
        if self._ring is not None:
            raise ConfigError(
                f"cannot add the cluster {cluster.name!r}: replicas divide the clusters of this fleet, so each connects only its own. "
                "Name it by a provider: Fleet(Static({name: config}), sharded=True)"
            )
        self._add(cluster, None)

    def _add(self, cluster: Cluster, source: ClusterSource | None) -> None:
        if not cluster.name or cluster.name in self._members:
            named = f"a cluster named {cluster.name!r}" if cluster.name else "a cluster without a name, its own"
            raise ConfigError(
                f"cannot add the cluster {shown_url(cluster.config.host)}: the manager has {named}. "
                "Add each cluster once, with its own name: Cluster(config, name=…)"
            )
        for (kind, field), values in self._indexes.items():
            cluster.cache.index_field(kind, field, values)
        self._prepare(cluster)
        self._number += 1
        member = self._members[cluster.name] = _Member(
            cluster, self._number, self._clock(), self._hub.fence.deadline, source, self._ring
        )
        cluster.contact.on_turn = member.wake
        if self._context is not None:
            self._begin(member)

    async def remove(self, name: str) -> None:
        """End a cluster: no new reconcile of it starts, running ones are cancelled after 5 s, and its connections are closed.

        Raises: ClusterGoneError for an unknown name, ForeignShardError for a cluster of another replica.
        """
        member = self._member(name)
        member.life.end(self._clock())  # from here on no request of it is enqueued
        member.parked.clear()
        _log.info("cluster removed" if self._is_kept(name) else "cluster left to another replica", cluster=name)
        self.withdraw(member)
        for watches in member.watches.values():
            for watch in watches:
                await watch.stop()
        await self.end_reconciles(member, within=CANCEL_AFTER)
        self.withdraw(member)  # what reconciles that ended meanwhile have enqueued again
        await _cancel(member.task)
        await member.cluster.close()
        del self._members[name]
        self._forget(member.cluster)
        for templates in self._templates:
            self._map_soon(templates)

    # --- providers ---------------------------------------------------------------------------------------------------

    async def _provide(self, provider: Provider, inventory: Inventory) -> None:
        """Run a provider, again and again: what it has set stays while it fails."""
        delay = FIRST_RETRY
        while True:
            began = self._clock()
            try:
                await provider.run(inventory)
                error = "it returned"
            except Exception as failure:  # noqa: BLE001 - user code
                error = log.describe(failure)
            if self._clock() - began > LONGEST_RETRY:
                delay = FIRST_RETRY
            _log.error("provider failed, running it again", provider=provider.name, error=error, retryIn=delay)
            await self._sleep(delay)
            delay = min(2 * delay, LONGEST_RETRY)

    def want(self, name: str, source: ClusterSource | None) -> None:
        """Note what a provider says about a cluster. Called by its inventory."""
        if self._context is None:
            return  # the fleet ends
        self._wanted[name] = source
        self._settle(name)

    def _settle(self, name: str) -> None:
        """Begin to make a cluster what its provider said last."""
        if name not in self._changes and self._context is not None:
            self._changes[name] = asyncio.create_task(self._change(name), context=self._context)

    async def _change(self, name: str) -> None:
        """Make a cluster what its provider said last."""
        try:
            while True:
                said, member = self._wanted.get(name), self._members.get(name)
                wanted = said if self._is_kept(name) else None
                if member is not None and member.source is None:
                    _log.error("cluster of a provider ignored, its name is in use", cluster=name)
                    return
                if wanted is None and member is None:
                    if said is None:
                        self._wanted.pop(name, None)
                    return
                if wanted is None:
                    await self.remove(name)
                elif member is not None and not member.has(wanted):
                    if not await self._replace_credentials(member, wanted):
                        await self.remove(name)
                elif member is None:
                    self._add(self._make(name, wanted), wanted)
                else:
                    member.source = wanted
                    return
        except Exception as error:  # noqa: BLE001 - the other clusters must not end with this one
            _log.error("cluster not changed", cluster=name, exc_info=error)
        finally:
            del self._changes[name]

    async def _replace_credentials(self, member: _Member, wanted: ClusterSource) -> bool:
        """Give a cluster its new access while it runs. Returns False if it must begin anew: it may be another cluster."""
        cluster, tls = member.cluster, wanted.config.tls
        if member.has_failed or not cluster.config.differs_in_credentials_only(wanted.config):
            return False
        transport = Transport(wanted.config)
        try:
            uid = await _uid_of(transport)
        finally:
            await transport.close()
        present = cluster.config.tls
        has_same_authority = (tls.ca_data, tls.ca_file) == (present.ca_data, present.ca_file)
        if uid != member.uid if uid and member.uid else not has_same_authority:
            return False
        if member.is_gone or not cluster.replace_credentials(wanted.config):
            return False
        _log.info("credentials of the cluster replaced", cluster=member.name)
        member.source = wanted
        member.wake()
        return True

    def _make(self, name: str, source: ClusterSource) -> Cluster:
        options, cache = self._options, self._options.cache
        if source.namespace:
            cache = dataclasses.replace(cache or CacheOptions(), namespaces=[source.namespace])
        cluster = Cluster(
            source.config,
            name=name,
            scheme=options.scheme or self._hub.scheme,
            cache=cache,
            disable_cache_for=options.disable_cache_for,
            read_your_writes_timeout=options.read_your_writes_timeout,
        )
        if source.namespace:
            cluster.client = namespaced(cluster.client, source.namespace)
        return cluster

    # --- controllers -------------------------------------------------------------------------------------------------

    def new_share(self, *, needs_leadership: bool) -> FleetShare:
        """Return the share of a controller with `on="fleet"`. Builders call it."""
        return FleetShare(self.lane, self._ring, needs_leadership=needs_leadership)

    def watch(self, controller: Controller[Any], share: object, watches: Sequence[Template]) -> None:
        """Watch kinds in each cluster, now and later. Builders call it."""
        assert isinstance(share, FleetShare)
        templates = _Templates(controller, share, tuple(watches))
        self._templates.append(templates)
        for member in self._members.values():
            if member.is_listed and member.group is not None:
                self._spawn(member, self._watch(member, templates))

    async def _watch(self, member: _Member, templates: _Templates) -> None:
        """Add the watches of a controller to a cluster, once it runs. A cluster must not delay its start."""
        controller = templates.controller
        await controller.wait_synced()
        if member.is_gone or controller.is_stopping or controller in member.watches:
            return
        member.watches[controller] = [
            controller.watch(self._source(member, controller, each)) for each in templates.watches
        ]

    def _map_soon(self, templates: _Templates) -> None:
        """Show the objects of the hub to a controller again, after other clusters that come or go now."""
        if templates.controller not in self._mappings and self._context is not None:
            mapping = asyncio.create_task(self._map_again(templates), context=self._context)
            self._mappings[templates.controller] = mapping

    async def _map_again(self, templates: _Templates) -> None:
        """Show the objects of the hub again: map functions may return requests of a cluster that is new.

        An object in `for_` of the hub only may have parts in each cluster.
        """
        await self._sleep(MAP_AFTER)
        del self._mappings[templates.controller]
        reasons = {"watches"} if any(each.reason == "for" for each in templates.watches) else {"for", "watches"}
        for watch in templates.controller.watches:
            source = watch.source
            if isinstance(source, Kind) and not source.cluster and source.reason in reasons:
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

    def withdraw(self, lane: Lane) -> None:
        """Take the requests of a cluster from all controllers. While it is not gone, they wait until it is engaged again."""
        for templates in self._templates:
            for _, request in templates.controller.withdraw({lane.number}):
                lane.park(templates.share, request)

    async def end_reconciles(self, lane: Lane, *, within: float) -> None:
        """Cancel the reconciles of withdrawn requests after `within` seconds, and let no later write of them start."""
        grants = lane.grants  # a cluster that is engaged again meanwhile has others
        ends = (templates.controller.end_moved({lane.number}, within) for templates in self._templates)
        await asyncio.gather(*ends)
        for grant in grants.values():
            grant.close()

    def add_parked(self, lane: Lane) -> None:
        """Enqueue the requests that waited until a cluster is engaged."""
        parked, lane.parked = lane.parked, {}
        for templates in self._templates:
            for request in parked.pop(templates.share, ()):
                templates.controller.queue.add(request, priority=LOW_PRIORITY)

    # --- which clusters this replica has -----------------------------------------------------------------------------

    @property
    def lanes(self) -> list[Lane]:
        """The requests of all clusters that are here, and of the manager's own."""
        return [self._home, *self._members.values()]

    def _is_kept(self, name: str) -> bool:
        """Return whether a cluster is connected here."""
        return self._ring is None or slot_of(name, self._ring.count) in self._ring.cached

    def settle_all(self) -> None:
        """Connect and remove clusters, after the slots of this replica have changed."""
        for name in {*self._wanted, *self._members}:
            if (name in self._members) != self._is_kept(name):
                self._settle(name)

    async def fill(self) -> None:
        """Wait until the kinds of all clusters that belong here are listed. One that does not respond is not waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FILL_TIMEOUT):
                if not self._are_named:
                    await self._named.wait()
                if changes := [change for name, change in self._changes.items() if self._is_kept(name)]:
                    await asyncio.wait(changes)
                for member in list(self._members.values()):
                    await member.tried.wait()

    def catch_up(self, slots: Collection[int]) -> None:
        """Compare the cached kinds of the clusters of slots (of all, if they are not divided) with their API servers before the next reads."""
        for member in self._members.values():
            if self._ring is None or member.slot in slots:
                member.cluster.distrust_cache()

    def stand_by(self, lane: Lane) -> None:
        """Start no reconcile of a cluster: it moves to another replica."""
        self.withdraw(lane)
        lane.has_dropped = True  # its objects may change there
        if isinstance(lane, _Member):
            lane.life.stand_by(self._clock())
            lane.turned.set()

    async def resume(self, lane: Lane) -> None:
        """Reconcile all objects of a cluster: it is here from now on."""
        if isinstance(lane, _Member):
            lane.turned.set()
            return
        lane.open()
        self.add_parked(lane)
        for templates in self._templates:
            for watch in templates.controller.watches:
                if isinstance(watch.source, Kind) and not watch.source.cluster:
                    await watch.source.show(lambda _meta: True)

    # --- the life of a cluster ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all clusters until cancelled. The manager calls it."""
        self._context = contextvars.copy_context()
        try:
            for member in self._members.values():
                self._begin(member)
            self._providing = [
                asyncio.create_task(self._provide(each, inventory), name=f"provider {each.name}")
                for each, inventory in self._inventories
            ]
            await asyncio.get_running_loop().create_future()
        finally:
            self._context = None
            lives = [member.task for member in self._members.values()]
            await asyncio.gather(*map(_cancel, [*lives, *self._changes.values(), *self._mappings.values()]))
            await asyncio.gather(*map(_cancel, self._providing))  # which may run the servers

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
            member.error, member.has_failed = log.describe(error), True
            member.life.fail(self._clock())
            _log.error("cluster failed", cluster=member.name, exc_info=error)
            self.withdraw(member)
            await self.end_reconciles(member, within=0.0)
            if member.source is not None:
                await self._sleep(LONGEST_RETRY)
                self.want(member.name, member.source)  # which makes a new one

    async def _follow(self, member: _Member) -> None:
        """Do what follows from each change of the state."""
        while True:
            member.turned.clear()
            before, now = member.life.state, self._clock()
            contact = member.cluster.contact
            seen = Seen(contact.answers, contact.failures, member.is_listed, member.is_here)
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
            _log.warning("cluster does not respond, its reconciles wait", error=member.reason(), **fields)
            self.withdraw(member)
            await self.end_reconciles(member, within=0.0)
            return
        for templates in self._templates:
            self._spawn(member, self._watch(member, templates))
        if after is ClusterState.STANDBY:
            return
        _log.info("cluster engaged", **fields)
        member.open()
        if before is ClusterState.DEGRADED:
            member.cluster.distrust_cache()
        self.add_parked(member)
        if member.has_dropped:
            member.has_dropped = False
            for watch in [watch for watches in member.watches.values() for watch in watches]:
                self._spawn(member, _show(watch))
        if before is not ClusterState.DEGRADED:
            for templates in self._templates:
                self._map_soon(templates)

    async def _reach(self, member: _Member) -> None:
        """Connect, list the kinds of all controllers, and ask for a response when none came for a while."""
        delay, connects = FIRST_RETRY, self._first_connects
        while True:
            silence = member.life.silence(self._clock())
            if member.is_engaged and not member.cluster.contact.failures and silence < PROBE_AFTER:
                await self._pause(member, max(PROBE_AFTER - silence, 0.1))
                continue
            async with connects:
                has_answered = await self._probe(member)
            connects = self._retries
            if not has_answered:
                member.tried.set()
                await self._pause(member, delay * (1.0 + 0.2 * self._rng()))
                delay = min(2 * delay, LONGEST_RETRY)
                continue
            delay = FIRST_RETRY
            if not member.is_listed:
                member.uid = await _uid_of(member.cluster.transport)
                await self._list(member)
            member.turned.set()
            await self._sleep(FIRST_RETRY)

    async def _pause(self, member: _Member, seconds: float) -> None:
        """Wait, but not longer than until something happens."""
        waits = [asyncio.ensure_future(self._sleep(seconds)), asyncio.ensure_future(member.hurried.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            member.hurried.clear()

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
        member.tried.set()

    @staticmethod
    def _spawn(member: _Member, work: Coroutine[Any, Any, None]) -> None:
        assert member.group is not None
        member.group.create_task(work)


class _Inventory:
    """The inventory of one provider."""

    def __init__(self, clusters: FleetClusters, provider: str) -> None:
        self._clusters = clusters
        self._prefix = f"{provider}/"
        self._names: set[str] = set()
        self.is_synced = False

    @property
    def hub(self) -> Cluster:
        return self._clusters._hub  # noqa: SLF001 - the other half of this class

    def set(self, name: str, source: ClusterSource, /) -> None:
        self._names.add(name)
        self._clusters.want(self._prefix + name, source)

    def remove(self, name: str, /) -> None:
        self._names.discard(name)
        self._clusters.want(self._prefix + name, None)

    def names(self) -> list[str]:
        return sorted(self._names)

    def synced(self) -> None:
        self.is_synced = True
        self._clusters.note_named()


class _MemberClient(WrappedClient):
    """The client of a cluster of a fleet, for callers that have only its name."""

    def __init__(self, member: _Member, ring: Shards | None) -> None:
        super().__init__(member.cluster.client)
        self._member = member
        self._ring = ring

    @property
    @override
    def mapper(self) -> RESTMapper:
        self._refuse()
        return super().mapper

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
        if self._ring is not None and not self._member.is_here:
            raise foreign(name, self._ring)


def foreign(name: str, ring: Shards) -> ForeignShardError:
    """Return the error of a call for a cluster of another replica."""
    owner = ring.owner(slot_of(name, ring.count))
    who = f"the replica {owner.owner}" if owner.owner and not owner.is_here else "another replica"
    return ForeignShardError(
        f"{who} reconciles the cluster {name!r} (slot {owner.slot}), and this one is not connected to it",
        slot=owner.slot,
        owner=owner.owner,
    )


async def _show(watch: Watch[Any]) -> None:
    if isinstance(watch.source, Kind):
        await watch.source.show(lambda _meta: True)


async def _uid_of(transport: Transport) -> str:
    """Return the uid of the Namespace kube-system; empty if it cannot be read."""
    try:
        answer = await transport.request("GET", _KUBE_SYSTEM, accept=METADATA_ITEM, timeout=PROBE_TIMEOUT)
        return metadata_of(answer.body).uid
    except (CtrlError, ValueError):
        return ""


async def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.wait({task})
