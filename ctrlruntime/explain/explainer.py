"""Reads the state of controllers, queues, caches and the journal on the event loop, and returns facts.

It costs nothing until it is called. Each call has limits, because it blocks the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

from ctrlruntime import journal as record
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.reflector import Reflector
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cluster import Cluster
from ctrlruntime.controller import Reconcile
from ctrlruntime.controller.controller import Controller
from ctrlruntime.errors import CtrlError
from ctrlruntime.explain import facts
from ctrlruntime.explain.loops import WriteLoop, WriteLoops
from ctrlruntime.explain.naming import is_event_of, is_kind, is_write_of, kind_and_group, without_metadata
from ctrlruntime.explain.records import (
    calls_of,
    led_to_of,
    loop_of,
    queued_of,
    reason_of,
    recent_of,
    runs_of,
    scope_of,
    triggers_of,
)
from ctrlruntime.journal import Journal
from ctrlruntime.ownership.state import RingState, SlotOwner
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.source import Kind
from ctrlruntime.spelling import did_you_mean
from ctrlruntime.workqueue import Pending

AnyController: TypeAlias = "Controller[Any]"

MAX_KEYS: Final = 50
"""The maximum number of listed keys of each queue, and of reconciles."""

MAX_SCANNED: Final = 2_000
"""The maximum number of keys of the journal that are searched for reconciles triggered by an object."""


class QuestionError(CtrlError):
    """A query that cannot be answered; the message has a fix."""


class Explainer:
    """Answers queries about controllers and clusters.

    `clock` is the clock of their caches.
    """

    def __init__(
        self,
        journal: Journal,
        controllers: Callable[[], Sequence[AnyController]],
        clusters: Callable[[], Sequence[Cluster]],
        *,
        loops: Callable[[], Sequence[WriteLoops]] = tuple,
        ring: Callable[[], RingState | None] = lambda: None,
        fleet: Callable[[], list[facts.FleetCluster]] = list,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = journal
        self._controllers = controllers
        self._clusters = clusters
        self._write_loops = loops
        self._ring = ring
        self._fleet = fleet
        self._clock = clock

    # --- lists ------------------------------------------------------------------------------------------------------

    def overview(self) -> facts.Overview:
        return facts.Overview(
            now=self._journal.now(),
            controllers=self.controllers().controllers,
            queues=self.queues().queues,
            watches=self.watches().watches,
            loops=[loop for _, loop in self._loops()],
            recent=self._recent(),
            ring=self._ring(),
            fleet=self._fleet(),
        )

    def controllers(self) -> facts.Controllers:
        found = [self._controller(controller) for controller in self._controllers()]
        return facts.Controllers(now=self._journal.now(), controllers=found)

    def queues(self) -> facts.Queues:
        found = [self._queue(controller) for controller in self._controllers()]
        return facts.Queues(now=self._journal.now(), queues=found)

    def watches(self) -> facts.Watches:
        found: list[facts.Watch] = []
        for cluster in self._clusters():
            for gvk, informer in cluster.cache.all_informers():
                kind = gvk.group_kind
                # Before the server has said what the kind is, there is no reflector.
                followed: Mapping[Scope, Reflector | None] = informer.reflectors or {Scope(): None}
                found += [self._watch(cluster, kind, informer, *each) for each in followed.items()]
        return facts.Watches(now=self._journal.now(), watches=found)

    def shards(self) -> facts.Shards:
        return facts.Shards(now=self._journal.now(), ring=self._ring())

    def fleet(self) -> facts.Fleet:
        return facts.Fleet(now=self._journal.now(), clusters=self._fleet())

    def _controller(self, controller: AnyController) -> facts.Controller:
        return facts.Controller(
            name=controller.name,
            group=controller.group,
            kind=controller.kind,
            is_started=controller.is_started,
            workers=controller.workers,
            sources=[facts.Source(name=_source_name(w.source), is_synced=w.is_synced) for w in controller.watches],
            running=[self._running(controller.name, reconcile) for reconcile in controller.reconciles()],
        )

    def _queue(self, controller: AnyController) -> facts.Queue:
        seen = controller.queue.overview(MAX_KEYS)
        return facts.Queue(
            controller=controller.name,
            ready=seen.ready,
            waiting=seen.waiting,
            in_work=seen.in_work,
            oldest_ready=seen.oldest_ready,
            by_priority={str(priority): count for priority, count in sorted(seen.by_priority.items(), reverse=True)},
            keys=[queued_of(pending) for pending in seen.keys],
        )

    def _watch(
        self, cluster: Cluster, kind: str, informer: Informer, scope: Scope, reflector: Reflector | None
    ) -> facts.Watch:
        proof = float("-inf") if reflector is None else reflector.last_activity
        return facts.Watch(
            kind=kind,
            cluster=cluster.name,
            scope=" ".join(filter(None, (scope_of(scope), "" if informer.part is None else "(share of this replica)"))),
            state="resolving" if reflector is None else reflector.state.name.lower(),
            is_synced=informer.is_synced,
            objects=len(informer.store),
            size_bytes=informer.store.size_bytes,
            alive=None if proof == float("-inf") else max(0.0, self._clock() - proof),
            watches=0 if reflector is None else reflector.watches,
            lists=0 if reflector is None else reflector.relists,
            version="" if reflector is None else reflector.version,
            trouble=informer.trouble(scope),
            subscribers=informer.subscriber_count,
        )

    def _recent(self) -> list[facts.Recent]:
        kinds = {controller.name: controller.kind for controller in self._controllers()}
        found = [
            recent_of(controller, kinds.get(controller, ""), key, run)
            for controller, key, runs in islice(self._journal.latest(), MAX_KEYS)
            for run in runs
        ]
        return sorted(found, key=lambda recent: -recent.started)[:MAX_KEYS]

    # --- one object -------------------------------------------------------------------------------------------------

    def why(self, kind: str, namespace: str, name: str, controller: str = "", cluster: str = "") -> facts.Why:
        """Return the facts about an object's reconciles, and about those it triggered.

        `kind` may be a short name. Without `namespace`, a namespaced kind is searched in the namespace of the configuration. Without `cluster`,
        it is searched in all clusters.

        Raises: QuestionError.
        """
        if not name:
            raise QuestionError("name the object: kind=…&namespace=…&name=…")
        kind = self._full_name(kind)
        asked = self._asked(kind, controller)
        clusters = self._named(cluster)
        keys = self._keys_of(asked, namespace, name, clusters)
        if not keys and not namespace and self._is_namespaced(kind):
            namespace = self._clusters()[0].config.namespace
            keys = self._keys_of(asked, namespace, name, clusters)
        led_to = self._led_to(kind, namespace, name, clusters)
        answers = [self._answer(each, key) for each, key in keys]
        if not answers and not led_to:
            raise QuestionError(self._never_seen(kind, namespace, name, asked, clusters))
        return facts.Why(
            now=self._journal.now(),
            kind=kind,
            namespace=namespace,
            name=name,
            watches=self._watches_of(kind, clusters),
            answers=answers,
            led_to=led_to,
        )

    def _named(self, cluster: str) -> Collection[str]:
        """Return the names of the clusters that are meant."""
        names = {"", *(each.name for each in self._clusters()), *(each.name for each in self._fleet())}
        if cluster not in names:
            raise QuestionError(f"the fleet has no cluster {cluster!r}" + did_you_mean(cluster, sorted(names - {""})))
        return {cluster} if cluster else names

    def _watches_of(self, kind: str, clusters: Collection[str]) -> list[facts.Watch]:
        return [
            watch
            for watch in self.watches().watches
            if watch.cluster in clusters and is_kind(kind, *kind_and_group(watch.kind))
        ]

    def _asked(self, kind: str, name: str) -> list[AnyController]:
        """Return the controllers that are meant; none when the kind is one that is only watched."""
        controllers = list(self._controllers())
        if not controllers:
            raise QuestionError("this process has no controllers")
        if name:
            named = [controller for controller in controllers if controller.name == name]
            if not named:
                raise QuestionError(
                    f"controller {name!r} does not exist" + did_you_mean(name, [each.name for each in controllers])
                )
            return named
        found = [controller for controller in controllers if is_kind(kind, controller.kind, controller.group)]
        if found or any(is_kind(kind, *watched) for watched in self._watched_kinds()):
            return found
        known = [each.kind for each in controllers if each.kind] + [each for each, _ in self._watched_kinds()]
        raise QuestionError(f"no controller reconciles or watches the kind {kind!r}" + did_you_mean(kind, known))

    def _full_name(self, kind: str) -> str:
        """Return the kind with this short name, as discovery has it; else the text itself."""
        name, dot, rest = kind.lower().partition(".")
        known = {(each.kind, each.group) for each in self._controllers()} | set(self._watched_kinds())
        if not any(is_kind(kind, *each) for each in known):
            for each in self._resources():
                if name in each.short_names and rest in {"", each.group} and (each.kind, each.group) in known:
                    return each.kind + dot + rest
        return kind

    def _is_namespaced(self, kind: str) -> bool:
        return any(each.namespaced for each in self._resources() if is_kind(kind, each.kind, each.group))

    def _resources(self) -> Iterator[APIResource]:
        for cluster in self._clusters():
            yield from cluster.mapper.loaded()

    def _watched_kinds(self) -> list[tuple[str, str]]:
        return [(gvk.kind, gvk.group) for cluster in self._clusters() for gvk in cluster.cache.informers()]

    def _keys_of(
        self, controllers: Sequence[AnyController], namespace: str, name: str, clusters: Collection[str]
    ) -> list[tuple[AnyController, Hashable]]:
        return [(each, key) for each in controllers for key in self._keys(each, namespace, name, clusters)]

    def _keys(
        self, controller: AnyController, namespace: str, name: str, clusters: Collection[str]
    ) -> Iterator[Hashable]:
        """Find the requests that mean this object: those the journal, the queue or the cache knows."""
        wanted = [Request(namespace, name, cluster) for cluster in sorted(clusters)]
        for key in wanted:
            is_cached = self._cached(controller, key) is not None
            if is_cached or self._journal.history(controller.name, key).runs or controller.queue.pending(key):
                yield key
            elif self._is_elsewhere(controller, key) and (not key.cluster or len(clusters) == 1):
                yield key  # it is not cached here, and this replica knows which one has it
        if "" not in clusters:
            return
        text = f"{namespace}/{name}" if namespace else name
        others = (key for key in self._journal.keys(controller.name) if not isinstance(key, Request))
        yield from (key for key in others if str(key) == text)

    def _is_elsewhere(self, controller: AnyController, key: Request) -> bool:
        """Return whether another replica reconciles a request, if it exists."""
        if controller.shard is None or (not key.namespace and self._is_namespaced(controller.kind)):
            return False
        if controller.shard.has_lanes != bool(key.cluster):
            return False  # they divide the clusters, or the objects of the hub
        owner = controller.shard.owner(key)
        return owner is None or not owner.is_here

    def _answer(self, controller: AnyController, key: Hashable) -> facts.Answer:
        history = self._journal.history(controller.name, key)
        pending = controller.queue.pending(key)
        running = next((each for each in controller.reconciles() if each.request == key), None)
        request = key if isinstance(key, Request) else Request("", str(key))
        shard = None if controller.shard is None else controller.shard.owner(key)
        words, at = self._next(controller, history, pending, running)
        if controller.shard is not None and pending is None and running is None:
            if shard is None:
                words = 'in the replica that has the object, if it exists: shard_by="uid" divides by its uid'
            elif not shard.is_here:
                words = f"in the replica that has {'its cluster' if controller.shard.has_lanes else 'its slot'}"
        return facts.Answer(
            controller=controller.name,
            group=controller.group,
            kind=controller.kind,
            request=str(key),
            namespace=request.namespace,
            name=request.name,
            cluster=request.cluster,
            is_started=controller.is_started,
            cached_version=self._cached(controller, request),
            unseen=self._unseen(controller, request),
            unsynced=[_source_name(watch.source) for watch in controller.watches if not watch.is_synced],
            loops=self._loops_of(controller, request, history),
            running=None if running is None else self._running(controller.name, running),
            queued=None if pending is None or pending.ready_in is None else queued_of(pending),
            failures=controller.queue.num_requeues(key),
            next=words,
            next_at=at,
            runs=runs_of(history),
            shard=shard,
            elsewhere=self._elsewhere(controller, shard, is_busy=pending is not None or running is not None),
        )

    def _elsewhere(self, controller: AnyController, shard: SlotOwner | None, *, is_busy: bool) -> list[str]:
        """Return the Pods of the other replicas that have a request, or may have it."""
        if controller.shard is None or is_busy:
            return []
        if shard is not None:
            return [shard.owner] if shard.owner and not shard.is_here else []
        ring = self._ring()
        if ring is None:
            return []
        return [each.pod for each in ring.replicas if not each.is_here and each.state != "expired"]

    def _cached(self, controller: AnyController, request: Request) -> str | None:
        for cluster in self._clusters():
            for gvk, informer in cluster.cache.informers().items():
                if cluster.name == request.cluster and (gvk.kind, gvk.group) == (controller.kind, controller.group):
                    entry = informer.store.get(request.namespace, request.name)
                    return None if entry is None else entry.meta.resource_version
        return None

    def _unseen(self, controller: AnyController, request: Request) -> str:
        for cluster in self._clusters():
            if cluster.name == request.cluster:
                return cluster.gate.pending((controller.group, controller.kind), request.namespace, request.name)
        return ""

    def _loops(self) -> list[tuple[WriteLoop, facts.Loop]]:
        return [(loop, loop_of(loop, each.cluster)) for each in self._write_loops() for loop in each.loops()]

    def _loops_of(self, controller: AnyController, request: Request, history: record.History) -> list[facts.Loop]:
        """Return the loops a request has to do with: at its object, or at one its runs wrote."""
        itself = (controller.group, controller.kind, request.namespace, request.name)
        written = {call.what for call in history.calls}
        return [
            shown
            for loop, shown in self._loops()
            if loop.controller == controller.name
            and (
                itself == (loop.group, loop.kind, loop.namespace, loop.name)
                or any(is_write_of(what, loop) for what in written)
            )
        ]

    def _next(
        self,
        controller: AnyController,
        history: record.History,
        pending: Pending[Any] | None,
        running: Reconcile[Any] | None,
    ) -> tuple[str, float | None]:
        now = self._journal.now()
        if pending is not None and pending.ready_in is not None:
            reason = reason_of(pending, history)
            if pending.ready_in > 0:
                return f"in {pending.ready_in:.1f} s: {reason}", now + pending.ready_in
            if running is not None:
                return f"as soon as the present run ends: {reason}", now
            waits = f"waits for a free worker since {-pending.ready_in:.1f} s"
            if not controller.is_started:
                waits = f"waits since {-pending.ready_in:.1f} s for its controller, which has not started"
            return f"{waits}: {reason}", now
        if running is not None:
            return "running now; after that when something changes, or as its outcome says", None
        if not history.runs:
            return "when something changes; no event of it has passed the predicates and handlers yet", None
        if history.runs[-1].outcome == "terminal":
            return "when something changes: the last run failed for good", None
        return "when something changes", None

    def _running(self, controller: str, reconcile: Reconcile[Any]) -> facts.Running:
        history = self._journal.history(controller, reconcile.request)
        return facts.Running(
            id=reconcile.id,
            request=str(reconcile.request),
            seconds=reconcile.seconds,
            stands_at=reconcile.stands_at,
            attempts=reconcile.attempts,
            priority=reconcile.priority,
            triggers=triggers_of(reconcile.triggers),
            omitted=reconcile.omitted,
            calls=calls_of(history, reconcile.id),
        )

    def _led_to(self, kind: str, namespace: str, name: str, clusters: Collection[str]) -> list[facts.LedTo]:
        """Find reconciles of other objects that this one led to."""
        kinds = {controller.name: (controller.kind, controller.group) for controller in self._controllers()}
        found: list[facts.LedTo] = []
        for controller, key, runs in islice(self._journal.latest(), MAX_SCANNED):
            own, group = kinds.get(controller, ("", ""))
            is_itself = isinstance(key, Request) and (key.namespace, key.name) == (namespace, name)
            if is_itself and is_kind(kind, own, group):
                continue
            found += [
                led_to_of(controller, own, key, run, trigger)
                for run in runs
                for trigger in run.triggers
                if is_event_of(trigger, kind, namespace, name, clusters)
            ]
        return sorted(found, key=lambda led: -led.started)[:MAX_KEYS]

    def _never_seen(
        self, kind: str, namespace: str, name: str, asked: Sequence[AnyController], clusters: Collection[str]
    ) -> str:
        text = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        elsewhere = {
            str(key)
            for controller in asked
            for key in self._journal.keys(controller.name)
            if isinstance(key, Request) and key.name == name
        }
        hint = f"; there is {', '.join(sorted(elsewhere)[:5])}" if elsewhere else ""
        waiting = [each.name for each in asked if not each.is_started]
        if waiting:
            hint += f"; the controller {waiting[0]} has not started in this process (it may not be the leader)"
        for watch in self._watches_of(kind, clusters):
            if watch.trouble or not watch.is_synced:
                hint += f"; the watch of {watch.kind} is not synced: {watch.trouble or watch.state}"
        who = "its controllers" if len(asked) != 1 else f"the controller {asked[0].name}"
        return f"{text} was never seen by {who}: not in the cache, not in the queue, not reconciled lately{hint}"


def _source_name(source: object) -> str:
    if not isinstance(source, Kind):
        return repr(source)
    name = source.kind.__name__
    kind = without_metadata(name)
    return f"{source.reason} {kind}" + (" (metadata)" if kind != name else "")
