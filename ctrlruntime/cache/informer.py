"""The informer of one kind: its scopes, the version of each, and their errors.

It runs one reflector for each namespace, or one for all, and passes lists and changes to its `contents`, which stores and delivers them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.cache.contents import CacheMetrics, Contents
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.part import Part
from ctrlruntime.cache.reflector import (
    Backoff,
    Changed,
    Failed,
    Listed,
    Progressed,
    Reflector,
    Replaced,
    State,
    Update,
    WatchOptions,
)
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Entry, Index
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import CacheError, ConfigError, CtrlError, Forbidden, NoMatchError, NotCachedError, NotFound

T = TypeVar("T", default=Any)


class Informer:
    """The cached objects of one kind; `run` keeps them current until it is cancelled."""

    def __init__(
        self,
        name: str,
        kind: GroupVersionKind,
        plan: Callable[[], Awaitable[Mapping[Scope, Reflector]]],
        *,
        watch: WatchOptions | None = None,
        metadata_only: bool = False,
        keep_managed_fields: bool = False,
        part: Part | None = None,
        observer: CacheObserver | None = None,
        on_other_scope: Callable[[], None] = lambda: None,
        install_hint: Callable[[], str] = str,
        metrics: CacheMetrics | None = None,
        cluster: str = "",
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self._log = log.get_logger("cache").bind(kind=name, **({"cluster": cluster} if cluster else {}))
        self._contents = Contents(
            kind,
            self._log,
            metadata_only=metadata_only,
            keep_managed_fields=keep_managed_fields,
            keeps=None if part is None else part.keeps,
            observer=observer,
            on_other_scope=on_other_scope,
            metrics=metrics,
        )
        self.part = part
        """The part of the kind that is cached; None: all objects of the scopes."""

        self.store = self._contents.store
        self._plan = plan
        self._reflectors: dict[Scope, Reflector] = {}
        self._followers: dict[Scope, anyio.CancelScope] = {}
        self._ends: dict[Scope, asyncio.Event] = {}
        """Set when the follower has ended."""

        self._gains: dict[Scope, int] = {}
        """The number of gains of the part when the last list of a scope started."""

        self._filled: dict[Scope, int] = {}
        """The same of the last complete list."""

        self._group: TaskGroup | None = None
        self._clock = clock
        self._started_at: float | None = None
        self._begun_at: dict[Scope, float] = {}
        self._backoff = Backoff(watch or WatchOptions(), clock=clock, rng=rng)
        self._missing_kind_retry_interval = (watch or WatchOptions()).missing_kind_retry_interval
        self._resyncing: set[float] = set()
        """The periods in which a task shows objects again."""

        self._install_hint = install_hint
        self._metrics = metrics
        self._rng = rng
        self._sleep = sleep
        self._versions: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._is_stopped = False
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        self._errors: dict[str | None, CtrlError] = {}
        self._reported: set[tuple[str | None, str]] = set()
        self._scope: anyio.CancelScope | None = None

    # --- readers ---------------------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether every scope was listed once."""
        return self._contents.is_synced

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    @property
    def holds_whole_objects(self) -> bool:
        """Whether complete objects are stored, except for managedFields."""
        return self._contents.holds_whole_objects

    @property
    def last_error(self) -> CtrlError | None:
        """The current error of one of its scopes, or None."""
        return next(iter(list(self._errors.values())), None)

    def has_listed(self, namespace: str = "") -> bool:
        """Return whether the namespace ("" = all) was listed.

        A scope may be newer than the informer.
        """
        if self._group is None:
            return False
        if len(self._versions) == len(self._reflectors):
            return True
        return bool(namespace) and all(
            scope.namespace in self._versions for scope in self._reflectors if scope.holds(namespace)
        )

    async def wait_for_sync(self) -> None:
        """Wait for the first list of every scope.

        Raises: NotCachedError if the informer is stopped before.
        """
        while not self.has_listed():
            self._refuse_stopped()
            await self._news.wait()

    async def wait_readable(self, namespace: str = "") -> None:
        """Wait for the first list of the namespace ("" = all cached ones), unless a person must fix something first.

        Raises:
            Forbidden, NoMatchError, NotFound, ConfigError: the problem to fix.
            NotCachedError: the informer was stopped.

        """
        while not self.has_listed(namespace):
            self._refuse_stopped()
            for where, error in self._errors.items():
                if namespace and where and where != namespace:
                    continue
                if isinstance(error, Forbidden | NoMatchError | NotFound | ConfigError):
                    # The same error is raised for each reader: without this its traceback would grow with each.
                    raise error.with_traceback(None)
            await self._news.wait()

    def _refuse_stopped(self) -> None:
        if self._is_stopped:
            raise NotCachedError(f"cannot read {self.name}: its informer was removed before it synced. Retry the read")

    @property
    def has_scopes(self) -> bool:
        """Whether the scopes are known; before that no list was sent."""
        return bool(self._reflectors)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(self._reflectors)

    @property
    def reflectors(self) -> Mapping[Scope, Reflector]:
        """The reflector of each scope, for diagnostics."""
        return dict(self._reflectors)

    def trouble(self, scope: Scope) -> str:
        """Return the current error of a scope; empty without one."""
        error = self._errors.get(scope.namespace) or self._errors.get(None)
        return "" if error is None else str(error)

    def covers(self, namespace: str, meta: Metadata | None) -> bool:
        """Return whether an object of this namespace with this metadata is cached (ignoring field selectors)."""
        if self.part is not None and meta is not None and not self.part.keeps(meta):
            return False
        labels = None if meta is None else meta.labels
        return any(
            scope.holds(namespace) and (scope.labels is None or scope.labels.matches(labels))
            for scope in self._reflectors
        )

    def has_namespace(self, namespace: str) -> bool:
        """Return whether objects of the namespace ("" = all) are cached."""
        if self.part is not None and not self._reflectors:
            return True  # it follows nothing, because this process has no object
        for scope in self._reflectors:  # noqa: SIM110 - half the time of `any`, and each write asks two or three times
            if scope.holds(namespace) if namespace else not scope.namespace:
                return True
        return False

    def version(self, namespace: str) -> int:
        """Return the resourceVersion up to which changes in the namespace ("" = all cached ones) have been seen.

        0 before the first list, -1 if it is not an integer.
        """
        numbers = self._numbers
        if namespace:
            return numbers.get(namespace, numbers.get("", 0))
        return min(numbers.values(), default=0)

    def resource_version(self, namespace: str) -> str:
        """Return the same as the server wrote it; empty before the first list."""
        if not namespace and len(self._versions) > 1:
            number = self.version("")
            return str(number) if number > 0 else ""
        return self._versions.get(namespace) or self._versions.get("") or next(iter(self._versions.values()), "")

    def changed(self) -> Coroutine[Any, Any, object]:
        """Wait until the cache has received something since this call: a change, a list or a bookmark."""
        # No coroutine function: that would begin to listen with its first step, and miss what is seen before.
        return self._changed.wait()

    def silence(self) -> float:
        """Return the seconds since the oldest last activity of a scope, or since it was started.

        Safe in any thread.
        """
        if self._started_at is None or self._is_stopped:
            return 0.0
        followed = list(self._reflectors.items())
        if self._group is None:
            return self._clock() - self._started_at  # the kind itself is not known yet
        now = self._clock()
        return max(
            (now - max(one.last_activity, self._begun_at.get(scope, now)) for scope, one in followed), default=0.0
        )

    # --- objects and subscribers -----------------------------------------------------------------------------------

    def expect_scope(self, *, namespaced: bool) -> None:
        """Set whether the kind is namespaced.

        `on_other_scope` is called if an object contradicts it.
        """
        self._contents.namespaced = namespaced

    def subscribe(self, name: str, decode: Callable[[bytes], T]) -> Subscription[T]:
        """Return a subscription that first gets each stored object as a create event, then every change."""
        return self._contents.subscribe(name, decode)

    @property
    def subscribers(self) -> list[str]:
        """The names of the subscribers."""
        return self._contents.subscribers

    @property
    def subscriber_count(self) -> int:
        return len(self._contents.subscribers)

    def add_index(self, index: Index) -> None:
        """Add an index and fill it. Raises: ValueError if an index of this name exists."""
        self.store.add_index(index)

    def entry(self, raw: bytes) -> Entry | None:
        """Return the entry of an object of this kind, or None if it cannot be stored."""
        return self._contents.entry(raw)

    def adopt(self, other: Informer) -> None:
        """Take over the subscribers of another informer of the kind, and deliver the differences between the two stores.

        This informer must have seen everything that the other has (`has_caught_up`).
        """
        self._contents.adopt(other._contents)
        other._metrics = None  # the counters of the kind are ours from here on
        if self._metrics is not None:
            self._metrics.silence = self.silence

    def has_caught_up(self, other: Informer) -> bool:
        """Return whether this informer has seen, in each scope, everything that the other has."""
        return self.is_synced and all(
            number < 0 or self._numbers.get(namespace, 0) >= number for namespace, number in other._numbers.items()
        )

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all scopes until cancelled or stopped."""
        if self._is_stopped:
            return
        with anyio.CancelScope() as scope:
            self._scope = scope
            self._started_at = self._clock()
            if self._metrics is not None:
                self._metrics.silence = self.silence
            planned = await self._planned()
            async with anyio.create_task_group() as group:
                self._group = group
                for covered, reflector in planned.items():
                    self._begin(covered, reflector)
                self._check_synced()
                self._tell()
                await anyio.sleep_forever()  # scopes may come later, the first one, too

    def rescope(self, scopes: Iterable[Scope], reflector: Callable[[Scope], Reflector]) -> None:
        """Run exactly these scopes from now on. Unchanged scopes keep their connections.

        The objects of a dropped scope are freed, and delivered as deleted with an unknown state. Before the first plan of scopes it does
        nothing.
        """
        if self._group is None or self._is_stopped:
            return
        wanted = dict.fromkeys(scopes)
        for scope in [scope for scope in self._reflectors if scope not in wanted]:
            self._end(scope)
        for scope in wanted:
            if scope not in self._reflectors:
                self._begin(scope, reflector(scope))
        self._check_synced()
        self._tell()
        self._wake()

    async def fill(
        self, gains: int, scopes: Callable[[], Iterable[Scope]], reflector: Callable[[Scope], Reflector]
    ) -> None:
        """Wait until a list is complete that started after so many gains of the part. List again if need be.

        Its new objects are delivered like those of the first list.
        """
        while self._group is None and not self._is_stopped:
            await self._news.wait()
        self.rescope(scopes(), reflector)
        for scope, followed in self._reflectors.items():
            if self._gains[scope] < gains:
                self._followers[scope].cancel()
                self._follow_scope(scope, followed, after=self._ends[scope])
        while not self._is_stopped and any(self._filled.get(scope, -1) < gains for scope in self._reflectors):
            await self._news.wait()

    def refresh(self, namespace: str = "") -> None:
        """Replace silent watches of the namespace ("": all), because their connections may be dead."""
        for scope, reflector in self._reflectors.items():
            if not namespace or scope.holds(namespace):
                reflector.refresh()

    async def release(self) -> None:
        """Remove the objects that the part does not keep any more."""
        count = await self._contents.release()
        if self._metrics is not None:
            self._count(self._metrics)
        if count:
            self._log.info("objects of other replicas removed", objects=count)

    def _begin(self, scope: Scope, reflector: Reflector) -> None:
        assert self._group is not None
        self._begun_at[scope] = self._clock()
        self._reflectors[scope] = reflector
        self._numbers[scope.namespace] = 0
        self._contents.hold(scope)
        if scope.sync_period is not None and scope.sync_period not in self._resyncing:
            self._resyncing.add(scope.sync_period)
            self._group.start_soon(self._resync, scope.sync_period)
        self._follow_scope(scope, reflector)

    def _follow_scope(self, scope: Scope, reflector: Reflector, after: asyncio.Event | None = None) -> None:
        """Follow a scope, or list it again `after` its former follower has ended: what that still takes belongs to the list before."""
        assert self._group is not None
        gains = self._gains[scope] = 0 if self.part is None else self.part.selection.gains
        follower = self._followers[scope] = anyio.CancelScope()
        ended = self._ends[scope] = asyncio.Event()
        self._group.start_soon(self._follow_until, scope, reflector, follower, gains, after, ended)

    def _end(self, scope: Scope) -> None:
        self._followers.pop(scope).cancel()
        del self._reflectors[scope]
        self._versions.pop(scope.namespace, None)
        self._numbers.pop(scope.namespace, None)
        self._begun_at.pop(scope, None)
        self._filled.pop(scope, None)
        self._errors.pop(scope.namespace, None)
        self._reported = {told for told in self._reported if told[0] != scope.namespace}
        count = self._contents.drop(scope)
        if self._metrics is not None:
            self._count(self._metrics)
        self._log.info("no longer cached", namespace=scope.namespace or "all", objects=count)

    async def _follow_until(
        self,
        scope: Scope,
        reflector: Reflector,
        follower: anyio.CancelScope,
        gains: int,
        after: asyncio.Event | None,
        ended: asyncio.Event,
    ) -> None:
        try:
            if after is not None:
                with anyio.CancelScope(shield=True):  # it was cancelled, so it ends
                    await after.wait()
                reflector.restart()
            with follower:
                await self._follow(scope, reflector, follower, gains)
        finally:
            ended.set()

    async def _planned(self) -> Mapping[Scope, Reflector]:
        """Ask which scopes there are until the kind is known to the server."""
        while True:
            try:
                planned = await self._plan()
            except CtrlError as error:
                self._report(None, error, State.RESOLVING)
                await self._sleep(self._backoff.next(self._missing_kind_retry_interval))
            else:
                self._recovered(None)
                return planned

    def stop(self) -> None:
        """End `run` and every subscription."""
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()
        self._contents.stop()
        if self._metrics is not None:
            self._metrics.objects = self._metrics.size_bytes = 0
            self._metrics.silence = None
        self._tell()
        self._wake()

    async def _follow(self, scope: Scope, reflector: Reflector, follower: anyio.CancelScope, gains: int) -> None:
        requests = _Requests(reflector)
        while True:
            try:
                async with aclosing(reflector.updates()) as updates:
                    async for update in updates:
                        if follower.cancel_called:
                            return  # what was dropped must not come back with an update that was under way
                        await self._take(scope, update, gains)
                        if self._metrics is not None:
                            self._count(self._metrics)
                            if not isinstance(update, Changed):
                                requests.count(self._metrics)
            except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this kind alone: the others go on
                self._log.exception("informer failed, relisting", namespace=scope.namespace or "all")
                failure = CacheError(f"following {self.name} failed: {error!r}")
                self._report(scope.namespace, failure, reflector.state)
                reflector.restart()
                await self._sleep(self._backoff.next())

    async def _take(self, scope: Scope, update: Update, gains: int) -> None:
        is_first = scope.namespace not in self._versions
        fills = self._filled.get(scope, gains) < gains
        match update:
            case Changed(changes, version):
                for change in changes:
                    self._contents.change(change)
                self._advance(scope, version)
            case Progressed(version):
                self._advance(scope, version)
            case Listed(items, number):
                await self._contents.take_page(scope, number, items, is_initial=is_first, fills=fills)
            case Replaced(_, version):
                await self._contents.replace(scope, update, is_initial=is_first, fills=fills)
                self._filled[scope] = gains
                self._advance(scope, version)
                self._check_synced()
                if is_first or fills:
                    self._tell()
            case Failed(error, state):
                self._contents.abandon_list(scope)
                self._report(scope.namespace, error, state)

    def _check_synced(self) -> None:
        if self.is_synced or len(self._versions) < len(self._reflectors):
            return
        self._contents.mark_synced()
        self._log.info("synced", objects=len(self.store))
        self._tell()

    def _advance(self, scope: Scope, version: str) -> None:
        self._versions[scope.namespace] = version
        self._numbers[scope.namespace] = int(version) if version.isdecimal() else -1
        if self._errors:
            self._recovered(scope.namespace)
        self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _resync(self, period: float) -> None:
        """Show the objects of all scopes with this period again, until there is no such scope."""
        while True:
            await self._sleep(period * (0.9 + 0.2 * self._rng()))
            if all(scope.sync_period != period for scope in self._reflectors):
                self._resyncing.discard(period)
                return
            if self.is_synced:
                await self._contents.show_again(period)

    # --- what people are told --------------------------------------------------------------------------------------

    def _report(self, namespace: str | None, error: CtrlError, state: State) -> None:
        """Say once, in one line, what stands in the way and what to do; repeat only after a recovery."""
        self._errors[namespace] = error
        self._tell()
        told = (namespace, type(error).__name__)
        where = f"namespace {namespace}" if namespace else "all namespaces"
        if told in self._reported:
            self._log.debug("list-watch still failing", scope=where, state=state.value, error=str(error))
            return
        self._reported.add(told)
        match error:
            case NoMatchError() | NotFound():
                self._log.warning(
                    "kind is not served by the API server, waiting",
                    error=str(error),
                    hint=self._install_hint(),
                )
            case Forbidden():
                self._log.error(
                    "forbidden to list and watch, waiting for permission",
                    scope=where,
                    error=str(error),
                    missingRule=_missing_rule(error, namespace),
                )
            case _:
                self._log.warning("list-watch failed, retrying", scope=where, state=state.value, error=str(error))

    def _recovered(self, namespace: str | None) -> None:
        if self._errors.pop(namespace, None) is not None:
            self._log.info("list-watch recovered", namespace=namespace or "all")
            self._reported = {told for told in self._reported if told[0] != namespace}

    def _count(self, metrics: CacheMetrics) -> None:
        metrics.objects = len(self.store)
        metrics.size_bytes = self.store.size_bytes
        metrics.events_coalesced = self._contents.coalesced
        if self.part is not None:
            metrics.filtered = self._contents.filtered
            metrics.server_ranges = max((each.server_ranges for each in self._reflectors.values()), default=0)


class _Requests:
    """Adds what one reflector has counted since the last time to the counters of its kind."""

    def __init__(self, reflector: Reflector) -> None:
        self._reflector = reflector
        self._lists = 0
        self._restarts: dict[str, int] = {}

    def count(self, metrics: CacheMetrics) -> None:
        lists, restarts = self._reflector.relists, self._reflector.restarts
        if lists != self._lists:
            metrics.relists += lists - self._lists
            self._lists = lists
        if restarts != self._restarts:
            for reason, number in restarts.items():
                more = number - self._restarts.get(reason, 0)
                metrics.watch_restarts[reason] = metrics.watch_restarts.get(reason, 0) + more
            self._restarts = dict(restarts)


def _missing_rule(error: Forbidden, namespace: str | None) -> str:
    """Return what somebody has to add to a role, from what the server says was asked for."""
    group, resource = error.details.get("group", ""), error.details.get("kind", "")
    role = f"a Role in namespace {namespace}" if namespace else "a ClusterRole"
    if not resource:
        return f"{role} that permits to get, list and watch the kind"
    rule = {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}
    return f"{role} with the rule {msgspec.json.encode(rule).decode()}"
