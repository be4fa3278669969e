"""Converts the counters of a `Metrics` to Prometheus families.

Only this module imports prometheus_client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector as PrometheusCollector

from ctrlruntime.metrics.client import ClientMetrics
from ctrlruntime.metrics.controller import ControllerMetrics
from ctrlruntime.metrics.counters import Counters
from ctrlruntime.metrics.histogram import Histogram
from ctrlruntime.metrics.shards import ShardNumbers

Sample: TypeAlias = tuple[Sequence[str], float]

_VERSION: Final = re.compile(r"version\s*=\s*(?![0-9]+(\.[0-9]+)*$)", re.IGNORECASE)  # and then what is not a number


def make_registry() -> CollectorRegistry:
    """Return a registry with the metrics of the process, the interpreter and its garbage collector."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def render(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    encoder, content_type = choose_encoder(_readable(accept))
    return encoder(registry), content_type


def _readable(accept: str) -> str:
    """Return an Accept header without quotes and without formats of a version that is not a number: prometheus_client raises for both."""
    formats = accept.replace('"', "").split(",")
    return ",".join(each for each in formats if not any(_VERSION.match(part.strip()) for part in each.split(";")))


class Collector(PrometheusCollector):
    """The metric families of one manager."""

    def __init__(self, metrics: Counters) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        # The names, so that a metric of the user's own with one of them is refused by the registry.
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        yield from self._controllers()
        yield from self._workqueues()
        yield from self._rest()
        yield from self._leaders()
        yield from self._shards()
        yield _gauge(
            "ctrlruntime_fleet_clusters",
            "Clusters of the fleet by state",
            ("state",),
            [((state,), count) for state, count in self._metrics.clusters().items()],
        )
        yield from self._loop()
        yield from self._caches()
        yield from self._clients()
        yield from self._servers()
        yield _counter(
            "ctrlruntime_events_dropped_total",
            "Events that were dropped and not sent to the API server",
            ("controller", "cluster"),
            (((one.controller, one.cluster), one.dropped) for one in self._metrics.recorders),
        )

    def _controllers(self) -> Iterable[Metric]:
        all_ = self._metrics.controllers
        prefix = "controller_runtime"
        yield _counter(
            f"{prefix}_reconcile_total",
            "Reconciles, by controller and result",
            ("controller", "result"),
            (((c.name, result), count) for c in all_ for result, count in c.results.items()),
        )
        yield _histogram(
            f"{prefix}_reconcile_time_seconds",
            "Seconds a reconcile took",
            ("controller",),
            (((c.name,), c.time) for c in all_),
        )
        for family, name, text, number in _CONTROLLER_NUMBERS:
            yield family(f"{prefix}_{name}", text, ("controller",), [((c.name,), number(c)) for c in all_])

    def _workqueues(self) -> Iterable[Metric]:
        all_ = self._metrics.workqueues
        states = [(q, q.state()) for q in all_]
        labels = ("name", "controller")
        yield _gauge(
            "workqueue_depth",
            "Requests that are ready, by priority",
            (*labels, "priority"),
            (((q.name, q.name, label), depth) for q, state in states for label, depth in q.depths(state.ready)),
        )
        yield _counter(
            "workqueue_adds_total", "Requests that became ready", labels, (((q.name, q.name), q.adds) for q in all_)
        )
        yield _counter(
            "workqueue_retries_total",
            "Requests that were added with a delay",
            labels,
            (((q.name, q.name), q.retries) for q in all_),
        )
        yield _counter(
            "ctrlruntime_rate_limiter_errors_total",
            "Failures of a rate limiter; the default backoff is used",
            ("controller",),
            (((q.name,), q.limiter_failures) for q in all_),
        )
        yield _histogram(
            "workqueue_queue_duration_seconds",
            "Seconds a request was ready before a worker took it",
            labels,
            (((q.name, q.name), q.latency) for q in all_),
        )
        yield _histogram(
            "workqueue_work_duration_seconds",
            "Seconds a worker processed a request",
            labels,
            (((q.name, q.name), q.work) for q in all_),
        )
        yield _gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds that the requests in progress have taken so far, in total",
            labels,
            (((q.name, q.name), sum(state.in_work)) for q, state in states),
        )
        yield _gauge(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest request in progress has taken so far",
            labels,
            (((q.name, q.name), max(state.in_work, default=0.0)) for q, state in states),
        )

    def _rest(self) -> Iterable[Metric]:
        yield _counter(
            "rest_client_requests_total",
            "Requests to API servers, by status code, method and host",
            ("code", "method", "host"),
            self._metrics.requests().items(),
        )
        yield _counter(
            "ctrlruntime_rest_throttled_seconds_total",
            "Seconds requests waited because the API server responded with 429 or 503",
            ("host",),
            (((host,), seconds) for host, seconds in self._metrics.throttled_seconds().items()),
        )
        yield _counter(
            "ctrlruntime_rest_wait_seconds_total",
            "Seconds requests waited for a free connection, or for the client's own rate limit",
            ("reason", "host"),
            self._metrics.waited_seconds().items(),
        )

    def _leaders(self) -> Iterable[Metric]:
        all_ = self._metrics.leaders
        yield _gauge(
            "leader_election_master_status",
            "1 while this process is the leader, else 0",
            ("name",),
            (((leader.name,), float(leader.is_leader)) for leader in all_),
        )
        yield _counter(
            "leader_election_slowpath_total",
            "Renewals that had to read the Lease first",
            ("name",),
            (((leader.name,), leader.slow_paths) for leader in all_),
        )

    def _shards(self) -> Iterable[Metric]:
        all_ = [(shard.name, shard.read()) for shard in self._metrics.shards]
        yield _gauge(
            "ctrlruntime_shard_slots",
            "Slots by their state in this process, with sharding",
            ("name", "state"),
            (((name, state), count) for name, numbers in all_ for state, count in numbers.slots.items()),
        )
        for family, name, text, number in _SHARD_NUMBERS:
            yield family(f"ctrlruntime_shard_{name}", text, ("name",), [((each,), number(n)) for each, n in all_])

    def _loop(self) -> Iterable[Metric]:
        prefix, loop = "ctrlruntime_event_loop", self._metrics.loop
        yield _counter(
            "ctrlruntime_fenced_writes_total",
            "Writes that the fence rejected because this process was not the leader",
            ("controller",),
            (((name,), count) for name, count in self._metrics.refused_writes().items()),
        )
        yield _histogram(f"{prefix}_lag_seconds", "Seconds the main event loop took to respond", (), [((), loop.lag)])
        yield _counter(f"{prefix}_blocked_total", "Times code blocked the main event loop", (), [((), loop.blocked)])
        yield _gauge(
            f"{prefix}_blocked_seconds",
            "Seconds since the main event loop stopped responding; 0 while it responds",
            (),
            [((), loop.stalled)],
        )

    def _clients(self) -> Iterable[Metric]:
        all_ = self._metrics.clients
        prefix, labels = "ctrlruntime_client", ("kind", "cluster")
        for name, text, numbers in _READ_NUMBERS:
            yield _counter(
                f"{prefix}_{name}",
                text,
                labels,
                (((kind, c.cluster), number) for c in all_ for kind, number in list(numbers(c).items())),
            )
        for name, text, counts in _WRITE_NUMBERS:
            yield _counter(
                f"{prefix}_{name}",
                text,
                ("controller", "kind", "reason", "cluster"),
                (((*key, c.cluster), number) for c in all_ for key, number in list(counts(c).items())),
            )

    def _servers(self) -> Iterable[Metric]:
        all_ = self._metrics.servers
        prefix, labels = "ctrlruntime_server", ("server",)
        yield _gauge(
            f"{prefix}_connections",
            "Connections that are open or whose handler still runs",
            labels,
            (((s.name,), s.connections) for s in all_),
        )
        yield _gauge(
            f"{prefix}_request_bytes",
            "Bytes of requests without a response yet",
            labels,
            (((s.name,), s.request_bytes) for s in all_),
        )
        yield _counter(
            f"{prefix}_limited_total",
            "Connections closed or rejected at a limit of ServerLimits",
            (*labels, "limit"),
            (((s.name, limit), count) for s in all_ for limit, count in sorted(s.limited.items())),
        )

    def _caches(self) -> Iterable[Metric]:
        all_ = self._metrics.caches
        prefix, labels = "ctrlruntime_cache", ("kind", "cluster")
        yield _gauge(
            f"{prefix}_objects", "Objects in the cache", labels, (((c.kind, c.cluster), c.objects) for c in all_)
        )
        yield _gauge(
            f"{prefix}_bytes", "Bytes of JSON in the cache", labels, (((c.kind, c.cluster), c.size_bytes) for c in all_)
        )
        yield _gauge(
            f"{prefix}_subscribers",
            "Event handlers of the kind",
            labels,
            (((c.kind, c.cluster), c.subscribers) for c in all_),
        )
        yield _gauge(
            f"{prefix}_last_activity_age_seconds",
            "Seconds since the last activity of the watch, or since its start",
            labels,
            (
                ((c.kind, c.cluster), silence()) for c in all_ if (silence := c.silence) is not None
            ),  # a scrape has its own thread
        )
        yield _counter(
            f"{prefix}_relists_total",
            "Relists of the kind",
            labels,
            (((c.kind, c.cluster), c.relists) for c in all_),
        )
        yield _counter(
            f"{prefix}_watch_restarts_total",
            "Watches restarted, by the reason the previous one ended",
            (*labels, "reason"),
            (((c.kind, c.cluster, reason), n) for c in all_ for reason, n in list(c.watch_restarts.items())),
        )
        yield _counter(
            f"{prefix}_events_coalesced_total",
            "Events merged with later ones because an event handler was behind",
            labels,
            (((c.kind, c.cluster), c.events_coalesced) for c in all_),
        )
        yield _counter(
            f"{prefix}_decode_errors_total",
            "Objects that could not be decoded",
            labels,
            (((c.kind, c.cluster), c.decode_errors) for c in all_),
        )
        yield _counter(
            "ctrlruntime_shard_filtered_objects_total",
            "Objects of other replicas that the API server sent",
            labels,
            (((c.kind, c.cluster), c.filtered) for c in all_ if c.filtered is not None),
        )
        yield _gauge(
            "ctrlruntime_shard_server_ranges",
            "Ranges of uids in the requests of the kind, 0 for all objects",
            labels,
            (((c.kind, c.cluster), c.server_ranges) for c in all_ if c.server_ranges is not None),
        )


def _counter(name: str, text: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    family = CounterMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _gauge(name: str, text: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _histogram(
    name: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], Histogram]]
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=labels)
    for values, histogram in samples:
        family.add_metric(values, histogram.buckets(), histogram.sum)
    return family


_READ_NUMBERS: tuple[tuple[str, str, Callable[[ClientMetrics], Mapping[str, float]]], ...] = (
    ("read_waits_total", "Cached reads that waited for own writes", lambda c: c.read_waits),
    ("read_wait_seconds_total", "Seconds such reads waited", lambda c: c.read_wait_seconds),
    (
        "read_fallbacks_total",
        "Cached reads that fell back to a live read",
        lambda c: c.read_fallbacks,
    ),
)

_WRITE_NUMBERS: tuple[tuple[str, str, Callable[[ClientMetrics], Mapping[tuple[str, str, str], float]]], ...] = (
    ("redundant_writes_total", "Writes that changed nothing or were reverted", lambda c: c.redundant_writes),
    ("write_loops_total", "Objects with a write loop", lambda c: c.loops),
)

_CONTROLLER_NUMBERS: tuple[
    tuple[
        Callable[[str, str, Sequence[str], Iterable[Sample]], Metric], str, str, Callable[[ControllerMetrics], float]
    ],
    ...,
] = (
    (_counter, "reconcile_errors_total", "Reconciles that raised an error", lambda c: c.errors),
    (_counter, "terminal_reconcile_errors_total", "Reconciles that raised TerminalError", lambda c: c.terminal_errors),
    (
        _counter,
        "reconcile_panics_total",
        "Reconciles that raised an error that is not an Exception",
        lambda c: c.panics,
    ),
    (_counter, "reconcile_timeouts_total", "Reconciles that exceeded their timeout", lambda c: c.timeouts),
    (_gauge, "max_concurrent_reconciles", "Workers of the controller", lambda c: c.max_concurrent_reconciles),
    (_gauge, "active_workers", "Workers that are reconciling", lambda c: c.active_workers),
)

_SHARD_NUMBERS: tuple[
    tuple[Callable[[str, str, Sequence[str], Iterable[Sample]], Metric], str, str, Callable[[ShardNumbers], float]],
    ...,
] = (
    (_gauge, "members", "Replicas that share the objects", lambda n: n.members),
    (_gauge, "unowned_slots", "Slots that no replica owns", lambda n: n.unowned),
    (_counter, "opened_total", "Slots that were opened in this process", lambda n: n.opened),
    (
        _counter,
        "foreign_requests_total",
        "Requests that were dropped because other replicas reconcile them",
        lambda n: n.foreign_requests,
    ),
    (
        _counter,
        "foreign_writes_total",
        "Writes by reconciles to objects that other replicas reconcile",
        lambda n: n.foreign_writes,
    ),
    (_counter, "request_failures_total", "Requests for Leases of replicas without a response", lambda n: n.failures),
)
