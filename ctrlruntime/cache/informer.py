"""One kind in the cache: the one writer of its store.

Takes lists and changes from its reflectors (one for each namespace it covers, or one for all), puts bytes and
metadata records into the store, updates the indexes, and only then hands the event to each subscriber's buffer: whoever
hears of a change can read it. No user code runs here but transforms and index functions, and their failure concerns one
object.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Envelope, Metadata, envelope_of, metadata_of
from ctrlruntime.cache.managed_fields import cut_with_envelope
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.reflector import (
    Backoff,
    Change,
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
from ctrlruntime.cache.store import Entry, Index, Store
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import CacheError, ConfigError, CtrlError, Forbidden, NoMatchError, NotCachedError, NotFound
from ctrlruntime.event import CreateEvent, DeleteEvent, Snapshot, UpdateEvent
from ctrlruntime.selector import LabelSelector

T = TypeVar("T", default=Any)

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes an object's JSON tree before it is stored (for example drops a big field) and returns it; must be idempotent.

It must leave name, namespace, uid and resourceVersion as they are.
"""

MAX_LOGGED = 100
"""Objects of a kind that the log names because they cannot be stored, or their transform fails; the metric counts the others."""

_METADATA_ONLY: Final = ("meta.k8s.io/v1", "PartialObjectMetadata")

TURN = 256
"""Objects handled in a row before other tasks get their turn: a long list must not hold up reconciles and leases."""


class CacheMetrics(Protocol):
    """What an informer counts; `metrics.cache(kind)` is one."""

    objects: float
    size_bytes: float
    subscribers: float
    relists: float
    watch_restarts: dict[str, float]
    events_coalesced: float
    decode_errors: float
    last_proof_of_life: float | None


@dataclass(frozen=True, slots=True)
class Scope:
    """What one reflector covers: a namespace ("" = all but those `besides`) and selectors; and how its objects are kept."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: str = ""
    besides: tuple[str, ...] = ()
    """Namespaces that have a scope of their own; `fields` leaves their objects out."""

    transform: Transform | None = None
    sync_period: float | None = None
    """Seconds after which each object is shown to the subscribers again; None: never."""

    @property
    def selects_fields(self) -> bool:
        """Whether a field selector other than that of `besides` leaves objects out."""
        besides = {f"metadata.namespace!={name}" for name in self.besides}
        return any(term not in besides for term in self.fields.split(",") if term)

    def holds(self, namespace: str) -> bool:
        """Whether objects of the namespace belong to this scope."""
        return namespace == self.namespace if self.namespace else namespace not in self.besides


class _Subscriber(NamedTuple):
    subscription: Subscription[Any]
    decode: Callable[[bytes], Any]


class _List:
    """A list whose pages are coming in."""

    __slots__ = ("changed", "is_initial", "missing", "taken")

    def __init__(self, *, is_initial: bool, missing: set[tuple[str, str]]) -> None:
        self.is_initial = is_initial
        """Nobody reads the scope yet: its objects are stored as they come."""
        self.missing = missing
        """What is stored and was not in a page so far."""
        self.changed: list[Entry] = []
        """What is to be stored when the list is complete and known to be the newest."""
        self.taken = 0


class Informer:
    """The cached objects of one kind; `run` keeps them up to date until it is cancelled."""

    def __init__(
        self,
        name: str,
        kind: GroupVersionKind,
        plan: Callable[[], Awaitable[Mapping[Scope, Reflector]]],
        *,
        watch: WatchOptions | None = None,
        metadata_only: bool = False,
        keep_managed_fields: bool = False,
        observer: CacheObserver | None = None,
        install_hint: Callable[[], str] = str,
        metrics: CacheMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.store = Store()
        self._kind = kind
        self._api_version = kind.api_version
        self._plan = plan
        self._reflectors: dict[Scope, Reflector] = {}
        self._followers: dict[Scope, anyio.CancelScope] = {}
        self._group: TaskGroup | None = None
        self._clock = clock
        self._started_at: float | None = None
        self._begun_at: dict[Scope, float] = {}
        self._former_lists = 0
        self._former_restarts: dict[str, int] = {}
        """What scopes that were dropped had counted, with the lists."""

        self._backoff = Backoff(watch or WatchOptions(), clock=clock, rng=rng)
        self._absent_poll = (watch or WatchOptions()).absent_poll
        self._metadata_only = metadata_only
        self._keep_managed_fields = keep_managed_fields
        self._observer = None if metadata_only else observer
        self._scope_of: dict[str, Scope] = {}
        """The scopes by their namespace."""

        self._transforms = 0
        """How many scopes have a transform."""

        self._resyncing: set[float] = set()
        """The periods in which a task shows objects again."""

        self._install_hint = install_hint
        self._metrics = metrics
        self._rng = rng
        self._sleep = sleep
        self._subscribers: list[_Subscriber] = []
        self._coalesced = 0
        self._versions: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._is_synced = False
        self._is_stopped = False
        self._news = asyncio.Event()
        self._changed = asyncio.Event()
        self._errors: dict[str | None, CtrlError] = {}
        self._reported: set[tuple[str | None, str]] = set()
        self._bad: set[tuple[str, str]] = set()
        self._skipped = 0
        self._lists: dict[Scope, _List] = {}
        self._scope: anyio.CancelScope | None = None
        self._log = log.get_logger("cache").bind(kind=name)

    # --- readers ---------------------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether every scope was listed once."""
        return self._is_synced

    @property
    def is_stopped(self) -> bool:
        return self._is_stopped

    @property
    def holds_whole_objects(self) -> bool:
        """Whether objects rest as the server sent them, but for managedFields."""
        return not self._metadata_only and not self._transforms

    @property
    def last_error(self) -> CtrlError | None:
        """What stands in the way of one of its scopes at the moment, or None."""
        return next(iter(list(self._errors.values())), None)

    def has_listed(self, namespace: str = "") -> bool:
        """Whether what is cached of the namespace ("" = of all) was listed: a scope may be younger than the informer."""
        if self._group is None:
            return False
        if len(self._versions) == len(self._reflectors):
            return True
        return bool(namespace) and all(
            scope.namespace in self._versions for scope in self._reflectors if scope.holds(namespace)
        )

    async def wait_synced(self) -> None:
        """Wait for the first list of every scope. Raises: NotCachedError when the informer is stopped before that."""
        while not self.has_listed():
            self._refuse_stopped()
            await self._news.wait()

    async def wait_readable(self, namespace: str = "") -> None:
        """Wait for the first list of the namespace ("" = of all that are cached), but not for somebody's help.

        Raises:
            Forbidden, NoMatchError, NotFound, ConfigError: what somebody has to mend first.
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
            raise NotCachedError(f"the informer of {self.name} was removed before it had synced; read again")

    @property
    def has_scopes(self) -> bool:
        """Whether it is known what to list and watch; no list was sent before that."""
        return bool(self._reflectors)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(self._reflectors)

    @property
    def reflectors(self) -> Mapping[Scope, Reflector]:
        """Who follows each scope, for people who ask how the watches are."""
        return dict(self._reflectors)

    def trouble(self, scope: Scope) -> str:
        """What stands in the way of a scope at the moment; empty when nothing does."""
        error = self._errors.get(scope.namespace) or self._errors.get(None)
        return "" if error is None else str(error)

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether an object of this namespace with these labels is cached (field selectors are not judged)."""
        return any(
            scope.holds(namespace) and (scope.labels is None or scope.labels.matches(labels))
            for scope in self._reflectors
        )

    def has_namespace(self, namespace: str) -> bool:
        """Whether objects of the namespace ("" = all) are cached."""
        for scope in self._reflectors:  # noqa: SIM110 - half the time of `any`, and each write asks two or three times
            if scope.holds(namespace) if namespace else not scope.namespace:
                return True
        return False

    def version(self, namespace: str) -> int:
        """The resourceVersion up to which changes in the namespace ("" = all that are cached) have been seen.

        0 before the first list, -1 when it does not parse.
        """
        numbers = self._numbers
        if namespace:
            return numbers.get(namespace, numbers.get("", 0))
        return min(numbers.values(), default=0)

    def resource_version(self, namespace: str) -> str:
        """The same as the server wrote it; empty before the first list."""
        if not namespace and len(self._versions) > 1:
            number = self.version("")
            return str(number) if number > 0 else ""
        return self._versions.get(namespace) or self._versions.get("") or next(iter(self._versions.values()), "")

    def changed(self) -> Coroutine[Any, Any, object]:
        """Wait until the cache has seen anything new since this call: a change, a list or a bookmark."""
        # No coroutine function: that would begin to listen with its first step, and miss what is seen before.
        return self._changed.wait()

    @property
    def proof_of_life(self) -> float:
        """When (by the clock) the scope that was silent longest last proved that it is alive."""
        return min((reflector.last_proof_of_life for reflector in self._reflectors.values()), default=float("-inf"))

    @property
    def silence(self) -> float:
        """Seconds since the scope that was silent longest last proved that it is alive, or began to be followed. Safe in any thread."""
        if self._started_at is None or self._is_stopped:
            return 0.0
        followed = list(self._reflectors.items())
        if self._group is None:
            return self._clock() - self._started_at  # the kind itself is not known yet
        now = self._clock()
        return max(
            (now - max(one.last_proof_of_life, self._begun_at.get(scope, now)) for scope, one in followed), default=0.0
        )

    # --- subscribers -----------------------------------------------------------------------------------------------

    def subscribe(self, name: str, decode: Callable[[bytes], T]) -> Subscription[T]:
        """Return a subscription that first gets each stored object as a create event, then every change."""
        subscription: Subscription[T] = Subscription(name, on_stop=self._forget)
        if self._is_stopped:
            subscription.stop()
            return subscription
        for entry in self.store:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), is_in_initial_list=True))
        if self._is_synced:
            subscription.put_synced()
        self._subscribers.append(_Subscriber(subscription, decode))
        self._count_subscribers()
        return subscription

    def _forget(self, subscription: Subscription[Any]) -> None:
        self._coalesced += subscription.coalesced
        self._subscribers = [s for s in self._subscribers if s.subscription is not subscription]
        self._count_subscribers()

    def _count_subscribers(self) -> None:
        if self._metrics is not None:
            self._metrics.subscribers = len(self._subscribers)

    def adopt(self, other: Informer) -> None:
        """Take over the subscribers of another informer of the kind, and tell them what differs between the two stores.

        This one must have seen all that the other has (`has_caught_up`).
        """
        subscribers, other._subscribers = other._subscribers, []
        other._metrics = None  # the counters of the kind are ours from here on
        for subscriber in subscribers:
            subscription, decode = subscriber
            for entry in self.store:
                known = other.store.get(entry.meta.namespace, entry.meta.name)
                snapshot = Snapshot(entry.raw, entry.meta, decode)
                if known is not None and known.meta.uid != entry.meta.uid:
                    subscription.put(DeleteEvent(Snapshot(known.raw, known.meta, decode), delete_state_unknown=True))
                    known = None
                if known is None:
                    subscription.put(CreateEvent(snapshot, is_in_initial_list=not other.is_synced))
                elif known.meta.resource_version != entry.meta.resource_version:
                    subscription.put(UpdateEvent(Snapshot(known.raw, known.meta, decode), snapshot))
            for known in other.store:
                if self.store.get(known.meta.namespace, known.meta.name) is None:
                    subscription.put(DeleteEvent(Snapshot(known.raw, known.meta, decode), delete_state_unknown=True))
            if self._is_synced:
                subscription.put_synced()
            subscription.transfer(self._forget)
            self._subscribers.append(subscriber)
        self._count_subscribers()

    def has_caught_up(self, other: Informer) -> bool:
        """Whether this informer has seen, in each scope, all that the other has."""
        return self._is_synced and all(
            number < 0 or self._numbers.get(namespace, 0) >= number for namespace, number in other._numbers.items()
        )

    @property
    def subscribers(self) -> list[str]:
        """The names of the subscribers."""
        return [subscriber.subscription.name for subscriber in self._subscribers]

    @property
    def subscriber_count(self) -> int:
        return len(self._subscribers)

    # --- life ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow all scopes until cancelled or stopped."""
        if self._is_stopped:
            return
        with anyio.CancelScope() as scope:
            self._scope = scope
            self._started_at = self._clock()
            planned = await self._planned()
            async with anyio.create_task_group() as group:
                self._group = group
                for covered, reflector in planned.items():
                    self._begin(covered, reflector)
                self._check_synced()
                await anyio.sleep_forever()  # scopes may come later, the first one, too

    def rescope(self, scopes: Iterable[Scope], reflector: Callable[[Scope], Reflector]) -> None:
        """Follow exactly these scopes from now on; those that stay keep their connections.

        What a dropped scope held is freed and told as deleted, in a state nobody knows. Before the plan is made nothing
        is done: it will say so itself.
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

    def _begin(self, scope: Scope, reflector: Reflector) -> None:
        assert self._group is not None
        self._begun_at[scope] = self._clock()
        self._reflectors[scope] = reflector
        self._numbers[scope.namespace] = 0
        self._scope_of[scope.namespace] = scope
        self._transforms += scope.transform is not None
        if scope.sync_period is not None and scope.sync_period not in self._resyncing:
            self._resyncing.add(scope.sync_period)
            self._group.start_soon(self._resync, scope.sync_period)
        follower = self._followers[scope] = anyio.CancelScope()
        self._group.start_soon(self._follow_until, scope, reflector, follower)

    def _end(self, scope: Scope) -> None:
        self._followers.pop(scope).cancel()
        keys = self._keys(scope)
        reflector = self._reflectors.pop(scope)
        self._former_lists += reflector.relists
        _add(self._former_restarts, reflector.restarts)
        self._versions.pop(scope.namespace, None)
        self._numbers.pop(scope.namespace, None)
        self._scope_of.pop(scope.namespace, None)
        self._transforms -= scope.transform is not None
        self._begun_at.pop(scope, None)
        self._lists.pop(scope, None)
        self._errors.pop(scope.namespace, None)
        self._reported = {told for told in self._reported if told[0] != scope.namespace}
        for namespace, name in keys:
            old = self.store.remove(namespace, name)
            if old is not None:
                self._deliver_delete(old, delete_state_unknown=True)
        if self._metrics is not None:
            self._count(self._metrics)
        self._log.info("no longer cached", namespace=scope.namespace or "all", objects=len(keys))

    async def _follow_until(self, scope: Scope, reflector: Reflector, follower: anyio.CancelScope) -> None:
        with follower:
            await self._follow(scope, reflector, follower)

    async def _planned(self) -> Mapping[Scope, Reflector]:
        """Ask which scopes there are until the kind is known to the server."""
        while True:
            try:
                planned = await self._plan()
            except CtrlError as error:
                self._report(None, error, State.RESOLVING)
                await self._sleep(self._backoff.next(self._absent_poll))
            else:
                self._recovered(None)
                return planned

    def stop(self) -> None:
        """End `run` and every subscription."""
        self._is_stopped = True
        if self._scope is not None:
            self._scope.cancel()
        for subscriber in list(self._subscribers):
            subscriber.subscription.stop()
        if self._metrics is not None:
            self._metrics.objects = self._metrics.size_bytes = 0
            self._metrics.last_proof_of_life = None
        self._tell()
        self._wake()

    async def _follow(self, scope: Scope, reflector: Reflector, follower: anyio.CancelScope) -> None:
        while True:
            try:
                async with aclosing(reflector.updates()) as updates:
                    async for update in updates:
                        if follower.cancel_called:
                            return  # what was dropped must not come back with an update that was under way
                        await self._take(scope, update)
                        if self._metrics is not None:
                            self._count(self._metrics, update)
            except Exception as error:  # noqa: BLE001 - whatever it is, it concerns this kind alone: the others go on
                self._log.exception("following the kind failed, listing again", namespace=scope.namespace or "all")
                failure = CacheError(f"following {self.name} failed: {error!r}")
                self._report(scope.namespace, failure, reflector.state)
                reflector.restart()
                await self._sleep(self._backoff.next())

    async def _take(self, scope: Scope, update: Update) -> None:
        match update:
            case Changed(changes, version):
                for change in changes:
                    self._change(change)
                self._advance(scope, version)
            case Progressed(version):
                self._advance(scope, version)
            case Listed(items, number):
                await self._take_page(self._list(scope, number), items)
            case Replaced(_, version):
                await self._replace(scope, update)
                is_first = scope.namespace not in self._versions
                self._advance(scope, version)
                self._check_synced()
                if is_first:
                    self._tell()
            case Failed(error, state):
                self._lists.pop(scope, None)
                self._report(scope.namespace, error, state)

    def _check_synced(self) -> None:
        if self._is_synced or len(self._versions) < len(self._reflectors):
            return
        self._is_synced = True
        for subscriber in self._subscribers:
            subscriber.subscription.put_synced()
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
            if not self._is_synced:
                continue
            for count, entry in enumerate(list(self.store), 1):
                if count % TURN == 0:
                    await asyncio.sleep(0)
                scope = self._keeping(entry.meta.namespace)
                if scope is None or scope.sync_period != period:
                    continue
                if self.store.get(entry.meta.namespace, entry.meta.name) is entry:
                    self._deliver_update(entry, entry)

    # --- writing the store -----------------------------------------------------------------------------------------

    def _list(self, scope: Scope, page: int) -> _List:
        """Return the list that a page of this number belongs to."""
        if page == 0:
            self._lists[scope] = _List(is_initial=scope.namespace not in self._versions, missing=self._keys(scope))
        return self._lists[scope]

    async def _take_page(self, listing: _List, items: list[bytes]) -> None:
        for position, raw in enumerate(items):
            listing.taken += 1
            if listing.taken % TURN == 0:
                await asyncio.sleep(0)
            items[position] = b""  # the page's copy goes as the store's comes
            entry = self.entry(raw)
            if entry is None:
                continue
            if listing.is_initial:
                self._put(entry, is_listed=True, initial=True)
            elif self._is_new(entry):
                listing.changed.append(entry)
            if listing.missing:
                listing.missing.discard((entry.meta.namespace, entry.meta.name))

    async def _replace(self, scope: Scope, listed: Replaced) -> None:
        """Make the store equal to a complete list; what is gone without a word becomes a delete of unknown state."""
        listing = self._list(scope, listed.pages)
        await self._take_page(listing, listed.items)
        self._lists.pop(scope, None)
        for count, entry in enumerate(listing.changed, 1):
            if count % TURN == 0:
                await asyncio.sleep(0)
            self._put(entry, is_listed=True, initial=False)
        for change in listed.changes:
            meta = self._change(change)
            if meta is not None:
                listing.missing.discard((meta.namespace, meta.name))
        for namespace, name in listing.missing:
            old = self.store.remove(namespace, name)
            if old is not None:
                self._deliver_delete(old, delete_state_unknown=True)

    def _is_new(self, entry: Entry) -> bool:
        """Whether the store has not this version of an object."""
        meta = entry.meta
        old = self.store.get(meta.namespace, meta.name)
        if old is None or old.meta.uid != meta.uid:
            return True
        return old.meta.resource_version != meta.resource_version or not meta.resource_version

    def _keys(self, scope: Scope) -> set[tuple[str, str]]:
        keys = self.store.keys(scope.namespace)
        return {key for key in keys if key[0] not in scope.besides} if scope.besides else keys

    def _change(self, change: Change) -> Metadata | None:
        entry = self.entry(change.raw)
        if entry is None:
            return None
        if self._observer is not None:
            self._observer.changed(self._kind, entry.meta, change.raw)
        if change.type == "DELETED":
            self._remove(entry)
        else:
            self._put(entry, is_listed=False, initial=False)
        return entry.meta

    def _put(self, entry: Entry, *, is_listed: bool, initial: bool) -> None:
        meta = entry.meta
        old = self.store.get(meta.namespace, meta.name)
        if old is None:
            self.store.put(entry)
            self._deliver_create(entry, initial=initial)
            return
        if not is_listed and _is_older(meta, old.meta):
            # A watch that repeats itself: what we have seen since must not be taken back. A list is the truth.
            return
        if old.meta.uid != meta.uid:
            # The deletion of the former object was missed; whoever keeps state by uid has to hear of it.
            self.store.put(entry)
            self._deliver_delete(old, delete_state_unknown=True)
            self._deliver_create(entry, initial=False)
        elif old.meta.resource_version != meta.resource_version or not meta.resource_version:
            self.store.put(entry)
            self._deliver_update(old, entry)

    def _remove(self, entry: Entry) -> None:
        meta = entry.meta
        old = self.store.get(meta.namespace, meta.name)
        if old is None:
            return
        if old.meta.uid == meta.uid:
            self.store.remove(meta.namespace, meta.name)
            self._deliver_delete(entry, delete_state_unknown=False)
        elif not _is_older(meta, old.meta):
            # Another life ended, which we never saw begin: so ours had ended before.
            self.store.remove(meta.namespace, meta.name)
            self._deliver_delete(old, delete_state_unknown=True)

    def _deliver_create(self, entry: Entry, *, initial: bool) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), initial))

    def _deliver_update(self, old: Entry, new: Entry) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(UpdateEvent(Snapshot(old.raw, old.meta, decode), Snapshot(new.raw, new.meta, decode)))

    def _deliver_delete(self, entry: Entry, *, delete_state_unknown: bool) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(DeleteEvent(Snapshot(entry.raw, entry.meta, decode), delete_state_unknown))

    def entry(self, raw: bytes) -> Entry | None:
        """Return what is stored of an object, or None for one without readable metadata: there is no key to put it at."""
        try:
            cut, envelope = (raw, envelope_of(raw)) if self._keep_managed_fields else cut_with_envelope(raw)
        except ValueError as error:
            self._skip("an object without readable metadata is skipped", error=str(error), start=raw[:120])
            return None
        if (envelope.kind != self._kind.kind or envelope.api_version != self._api_version) and self._is_other(envelope):
            self._skip(
                "an object of another kind is skipped",
                object=str(envelope.metadata.key),
                found=f"{envelope.api_version}, Kind={envelope.kind}",
                hint="see which proxy or aggregated API server answers the requests for this kind",
            )
            return None
        entry = Entry(cut, envelope.metadata)
        scope = self._keeping(entry.meta.namespace) if self._transforms else None
        return entry if scope is None or scope.transform is None else self._transformed(entry, scope.transform)

    def _keeping(self, namespace: str) -> Scope | None:
        """Return the scope whose options hold for objects of a namespace."""
        return self._scope_of.get(namespace) or self._scope_of.get("")

    def _is_other(self, envelope: Envelope) -> bool:
        """Whether an object says that it is of another kind."""
        if not envelope.kind and not envelope.api_version:
            return False  # an item of a list, which says it for all of them
        return not (self._metadata_only and (envelope.api_version, envelope.kind) == _METADATA_ONLY)

    def _skip(self, event: str, **fields: object) -> None:
        """Count an object that cannot be stored, and log it unless there were many."""
        self._failed_to_decode()
        if self._skipped < MAX_LOGGED:
            self._log.error(event, **fields)
        self._skipped += 1

    def _transformed(self, entry: Entry, transform: Transform) -> Entry:
        """Return the transformed entry; the untransformed one where the transform fails: it is user code."""
        key = (entry.meta.namespace, entry.meta.name)
        try:
            raw = msgspec.json.encode(transform(msgspec.json.decode(entry.raw)))
            meta = metadata_of(raw)
            if _identity(meta) != _identity(entry.meta):
                raise ValueError("a transform must keep name, namespace, uid and resourceVersion")
        except Exception as error:  # noqa: BLE001 - the other objects must not wait for this one
            self._failed_to_decode()
            if key not in self._bad and len(self._bad) < MAX_LOGGED:
                self._bad.add(key)
                self._log.warning(
                    "the transform failed, the object is kept as it came", object=str(entry.meta.key), error=repr(error)
                )
            return entry
        self._bad.discard(key)
        return Entry(raw, meta)

    def _failed_to_decode(self) -> None:
        if self._metrics is not None:
            self._metrics.decode_errors += 1

    # --- what people are told --------------------------------------------------------------------------------------

    def _report(self, namespace: str | None, error: CtrlError, state: State) -> None:
        """Say once, in one line, what stands in the way and what to do; repeat only after a recovery."""
        self._errors[namespace] = error
        self._tell()
        told = (namespace, type(error).__name__)
        where = f"namespace {namespace}" if namespace else "all namespaces"
        if told in self._reported:
            self._log.debug("still failing", where=where, state=state.value, error=str(error))
            return
        self._reported.add(told)
        match error:
            case NoMatchError() | NotFound():
                self._log.warning(
                    "the kind is not served by the API server; waiting for it",
                    error=str(error),
                    hint=self._install_hint(),
                )
            case Forbidden():
                self._log.error(
                    "not permitted to list and watch; waiting for the permission",
                    where=where,
                    error=str(error),
                    add=_missing_rule(error, namespace),
                )
            case _:
                self._log.warning(
                    "cannot be read at the moment, trying again", where=where, state=state.value, error=str(error)
                )

    def _recovered(self, namespace: str | None) -> None:
        if self._errors.pop(namespace, None) is not None:
            self._log.info("readable again", namespace=namespace or "all")
            self._reported = {told for told in self._reported if told[0] != namespace}

    def _count(self, metrics: CacheMetrics, update: Update | None = None) -> None:
        metrics.objects = len(self.store)
        metrics.size_bytes = self.store.size_bytes
        metrics.last_proof_of_life = self.proof_of_life if self._reflectors else None
        metrics.events_coalesced = self._coalesced + sum(s.subscription.coalesced for s in self._subscribers)
        if not isinstance(update, Changed):
            metrics.relists = self._former_lists + sum(reflector.relists for reflector in self._reflectors.values())
            metrics.watch_restarts = self._restarts()

    def _restarts(self) -> dict[str, float]:
        counts = dict(self._former_restarts)
        for reflector in self._reflectors.values():
            _add(counts, reflector.restarts)
        return dict[str, float](counts)

    def add_index(self, index: Index) -> None:
        """Add an index and fill it. Raises: ValueError when there is one of that name."""
        self.store.add_index(index)


def _add(sums: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count


def _is_older(new: Metadata, old: Metadata) -> bool:
    a, b = new.resource_version, old.resource_version
    return a.isdecimal() and b.isdecimal() and int(a) < int(b)


def _identity(meta: Metadata) -> tuple[str, str, str, str]:
    return meta.namespace, meta.name, meta.uid, meta.resource_version


def _missing_rule(error: Forbidden, namespace: str | None) -> str:
    """Return what somebody has to add to a role, from what the server says was asked for."""
    group, resource = error.details.get("group", ""), error.details.get("kind", "")
    role = f"a Role in namespace {namespace}" if namespace else "a ClusterRole"
    if not resource:
        return f"{role} that permits to get, list and watch the kind"
    rule = {"apiGroups": [group], "resources": [resource], "verbs": ["get", "list", "watch"]}
    return f"{role} with the rule {msgspec.json.encode(rule).decode()}"
