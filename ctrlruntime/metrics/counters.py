"""The counters of one manager, by name. Counting adds to plain attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from ctrlruntime.metrics.cache import CacheMetrics
from ctrlruntime.metrics.client import ClientMetrics
from ctrlruntime.metrics.controller import ControllerMetrics
from ctrlruntime.metrics.events import EventMetrics
from ctrlruntime.metrics.leader import FenceMetrics, LeaderMetrics
from ctrlruntime.metrics.loop import LoopMetrics
from ctrlruntime.metrics.rest import RestMetrics
from ctrlruntime.metrics.server import ServerMetrics
from ctrlruntime.metrics.shards import ShardMetrics
from ctrlruntime.metrics.workqueue import QueueMetrics


class Counters:
    """Returns counters by name, always the same ones for the same name.

    Their series then exist with the value zero.
    """

    def __init__(self) -> None:
        self._controllers: dict[str, ControllerMetrics] = {}
        self._workqueues: dict[str, QueueMetrics] = {}
        self._leaders: dict[str, LeaderMetrics] = {}
        self._shards: dict[str, ShardMetrics] = {}
        self._caches: dict[tuple[str, str], CacheMetrics] = {}
        self._clients: dict[str, ClientMetrics] = {}
        self._events: dict[tuple[str, str], EventMetrics] = {}
        self._servers: dict[str, ServerMetrics] = {}
        self.rest = RestMetrics()
        self.fence = FenceMetrics()
        self.loop = LoopMetrics()
        self.clusters: Callable[[], Mapping[str, int]] = dict
        """Returns the number of other clusters by state, in any thread; empty without a fleet."""

        self._included: list[Counters] = []

    def include(self, other: Counters) -> None:
        """Also serve the metrics of another cluster (requests, client, caches, Events, rejected writes)."""
        if other is not self and other not in self._included:
            self._included.append(other)

    def exclude(self, other: Counters) -> None:
        """Do not serve the metrics of a cluster any more, because it was removed."""
        if other in self._included:
            self._included.remove(other)

    def controller(self, name: str) -> ControllerMetrics:
        """Return the counters of the controller `name`."""
        return self._controllers.get(name) or self._controllers.setdefault(name, ControllerMetrics(name))

    def workqueue(self, name: str) -> QueueMetrics:
        """Return the counters of the queue of controller `name`."""
        return self._workqueues.get(name) or self._workqueues.setdefault(name, QueueMetrics(name))

    def leader(self, name: str) -> LeaderMetrics:
        """Return the state of the leader election for the Lease `name`."""
        return self._leaders.get(name) or self._leaders.setdefault(name, LeaderMetrics(name))

    def shard(self, name: str) -> ShardMetrics:
        """Return the metrics of the ring `name`, with sharding."""
        return self._shards.get(name) or self._shards.setdefault(name, ShardMetrics(name))

    def cache(self, kind: str, cluster: str = "") -> CacheMetrics:
        """Return the metrics of the cache of one kind (`Deployment.v1.apps`) in one cluster ("" is the manager's own)."""
        key = (kind, cluster)
        return self._caches.get(key) or self._caches.setdefault(key, CacheMetrics(kind, cluster))

    def client(self, cluster: str = "") -> ClientMetrics:
        """Return the metrics of the client of one cluster ("" is the manager's own)."""
        return self._clients.get(cluster) or self._clients.setdefault(cluster, ClientMetrics(cluster))

    def events(self, controller: str, cluster: str = "") -> EventMetrics:
        """Return the counters of the event recorder of `controller` in one cluster ("" is the manager's own)."""
        key = (controller, cluster)
        return self._events.get(key) or self._events.setdefault(key, EventMetrics(controller, cluster))

    def server(self, name: str) -> ServerMetrics:
        """Return the metrics of the HTTP server `name` of the operator."""
        return self._servers.get(name) or self._servers.setdefault(name, ServerMetrics(name))

    # Copies: a scrape runs in another thread than the one that adds.

    @property
    def controllers(self) -> list[ControllerMetrics]:
        return list(self._controllers.values())

    @property
    def workqueues(self) -> list[QueueMetrics]:
        return list(self._workqueues.values())

    @property
    def leaders(self) -> list[LeaderMetrics]:
        return list(self._leaders.values())

    @property
    def shards(self) -> list[ShardMetrics]:
        return list(self._shards.values())

    @property
    def servers(self) -> list[ServerMetrics]:
        return list(self._servers.values())

    @property
    def clients(self) -> list[ClientMetrics]:
        return [*list(self._clients.values()), *(each for other in self._included for each in other.clients)]

    @property
    def recorders(self) -> list[EventMetrics]:
        return [*list(self._events.values()), *(each for other in self._included for each in other.recorders)]

    @property
    def caches(self) -> list[CacheMetrics]:
        return [*list(self._caches.values()), *(each for other in self._included for each in other.caches)]

    def requests(self) -> dict[tuple[str, str, str], int]:
        """Return the number of requests by (code, method, host)."""
        return _sum(self.rest.counts(), *(other.requests() for other in self._included))

    def throttled_seconds(self) -> dict[str, float]:
        """Return the seconds that requests waited because of Retry-After, by host."""
        return _sum(self.rest.throttled_seconds(), *(other.throttled_seconds() for other in self._included))

    def waited_seconds(self) -> dict[tuple[str, str], float]:
        """Return the seconds that requests waited before they were sent, by (reason, host)."""
        return _sum(self.rest.waited_seconds(), *(other.waited_seconds() for other in self._included))

    def refused_writes(self) -> dict[str, int]:
        """Return the number of writes that the fence rejected, by controller."""
        return _sum(self.fence.counts(), *(other.refused_writes() for other in self._included))


_Key = TypeVar("_Key")
_Number = TypeVar("_Number", int, float)


def _sum(*parts: Mapping[_Key, _Number]) -> dict[_Key, _Number]:
    total: dict[_Key, _Number] = {}
    for part in parts:
        for key, number in part.items():
            total[key] = total.get(key, 0) + number
    return total
