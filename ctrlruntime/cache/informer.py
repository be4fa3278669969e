"""One kind in the cache: the one writer of its store.

Takes `Replaced` and `Changed` from its reflectors (one for each namespace it covers, or one for all), puts bytes and
metadata records into the store, updates the indexes, and only then hands the event to each subscriber's buffer: whoever
hears of a change can read it. No user code runs here but transforms and index functions, and their failure concerns one
object.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import anyio
import msgspec
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.cache.reflector import (
    Backoff,
    Change,
    Changed,
    Failed,
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

TURN = 256
"""Objects handled in a row before other tasks get their turn: a long list must not hold up reconciles and leases."""


class CacheMetrics(Protocol):
    """What an informer counts; `metrics.cache(kind)` is one."""

    objects: float
    size_bytes: float
    relists: float
    watch_restarts: float
    events_coalesced: float
    decode_errors: float
    last_proof_of_life: float | None


@dataclass(frozen=True, slots=True)
class Scope:
    """What one reflector covers: a namespace ("" = all but those `besides`) and selectors."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: str = ""
    besides: tuple[str, ...] = ()
    """Namespaces that have a scope of their own; `fields` leaves their objects out."""

    def holds(self, namespace: str) -> bool:
        """Whether objects of the namespace belong to this scope."""
        return namespace == self.namespace if self.namespace else namespace not in self.besides


class _Subscriber(NamedTuple):
    subscription: Subscription[Any]
    decode: Callable[[bytes], Any]


class Informer:
    """The cached objects of one kind; `run` keeps them up to date until it is cancelled."""

    def __init__(
        self,
        name: str,
        plan: Callable[[], Awaitable[Mapping[Scope, Reflector]]],
        *,
        watch: WatchOptions | None = None,
        keep_managed_fields: bool = False,
        transform: Transform | None = None,
        resync_period: float | None = None,
        install_hint: Callable[[], str] = str,
        metrics: CacheMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.store = Store()
        self._plan = plan
        self._reflectors: Mapping[Scope, Reflector] = {}
        self._backoff = Backoff(watch or WatchOptions(), clock=clock, rng=rng)
        self._absent_poll = (watch or WatchOptions()).absent_poll
        self._keep_managed_fields = keep_managed_fields
        self._transform = transform
        self._resync_period = resync_period
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
    def last_error(self) -> CtrlError | None:
        """What stands in the way of one of its scopes at the moment, or None."""
        return next(iter(self._errors.values()), None)

    async def wait_synced(self) -> None:
        """Wait for the first list of every scope. Raises: NotCachedError when the informer is stopped before that."""
        while not self._is_synced:
            self._refuse_stopped()
            await self._news.wait()

    async def wait_readable(self) -> None:
        """Wait for the first list, but not for somebody's help.

        Raises:
            Forbidden, NoMatchError, NotFound, ConfigError: what somebody has to mend first.
            NotCachedError: the informer was stopped.

        """
        while not self._is_synced:
            self._refuse_stopped()
            for error in self._errors.values():
                if isinstance(error, Forbidden | NoMatchError | NotFound | ConfigError):
                    # The same error is raised for each reader: without this its traceback would grow with each.
                    raise error.with_traceback(None)
            await self._news.wait()

    def _refuse_stopped(self) -> None:
        if self._is_stopped:
            raise NotCachedError(f"the informer of {self.name} was removed before it had synced; read again")

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(self._reflectors)

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether an object of this namespace with these labels is cached (field selectors are not judged)."""
        return any(
            scope.holds(namespace) and (scope.labels is None or scope.labels.matches(labels))
            for scope in self._reflectors
        )

    def has_namespace(self, namespace: str) -> bool:
        """Whether objects of the namespace ("" = all) are cached."""
        if not namespace:
            return any(not scope.namespace for scope in self._reflectors)
        return any(scope.holds(namespace) for scope in self._reflectors)

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
        return subscription

    def _forget(self, subscription: Subscription[Any]) -> None:
        self._coalesced += subscription.coalesced
        self._subscribers = [s for s in self._subscribers if s.subscription is not subscription]

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

    def has_caught_up(self, other: Informer) -> bool:
        """Whether this informer has seen, in each scope, all that the other has."""
        return self._is_synced and all(
            number < 0 or self._numbers.get(namespace, 0) >= number for namespace, number in other._numbers.items()
        )

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
            self._reflectors = await self._planned()
            self._numbers = {covered.namespace: 0 for covered in self._reflectors}
            async with anyio.create_task_group() as group:
                for covered, reflector in self._reflectors.items():
                    group.start_soon(self._follow, covered, reflector)
                if self._resync_period is not None:
                    group.start_soon(self._resync, self._resync_period)

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

    async def _follow(self, scope: Scope, reflector: Reflector) -> None:
        while True:
            try:
                async with aclosing(reflector.updates()) as updates:
                    async for update in updates:
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
            case Replaced(_, version):
                await self._replace(scope, update)
                self._advance(scope, version)
                if not self._is_synced and len(self._versions) == len(self._reflectors):
                    self._sync()
            case Failed(error, state):
                self._report(scope.namespace, error, state)

    def _sync(self) -> None:
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
        while True:
            await self._sleep(period * (0.9 + 0.2 * self._rng()))
            if not self._is_synced:
                continue
            for count, entry in enumerate(list(self.store), 1):
                if count % TURN == 0:
                    await asyncio.sleep(0)
                if self.store.get(entry.meta.namespace, entry.meta.name) is entry:
                    self._deliver_update(entry, entry)

    # --- writing the store -----------------------------------------------------------------------------------------

    async def _replace(self, scope: Scope, listed: Replaced) -> None:
        """Make the store equal to a complete list; what is gone without a word becomes a delete of unknown state."""
        initial = scope.namespace not in self._versions
        missing = self._keys(scope)
        items = listed.items
        for count, raw in enumerate(items):
            if count % TURN == TURN - 1:
                await asyncio.sleep(0)
            items[count] = b""  # the list's copy goes as the store's comes
            entry = self._entry(raw)
            if entry is None:
                continue
            self._put(entry, is_listed=True, initial=initial)
            if missing:
                missing.discard((entry.meta.namespace, entry.meta.name))
        for change in listed.changes:
            meta = self._change(change)
            if meta is not None:
                missing.discard((meta.namespace, meta.name))
        for namespace, name in missing:
            old = self.store.remove(namespace, name)
            if old is not None:
                self._deliver_delete(old, delete_state_unknown=True)

    def _keys(self, scope: Scope) -> set[tuple[str, str]]:
        keys = self.store.keys(scope.namespace)
        return {key for key in keys if key[0] not in scope.besides} if scope.besides else keys

    def _change(self, change: Change) -> Metadata | None:
        entry = self._entry(change.raw)
        if entry is None:
            return None
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

    def _entry(self, raw: bytes) -> Entry | None:
        """Return what is stored of an object, or None for one without readable metadata: there is no key to put it at."""
        try:
            entry = _cut(raw) if not self._keep_managed_fields else Entry(raw, metadata_of(raw))
        except ValueError as error:
            self._failed_to_decode()
            self._log.error("an object without readable metadata is skipped", error=str(error), start=raw[:120])
            return None
        return entry if self._transform is None else self._transformed(entry, self._transform)

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
            if key not in self._bad:
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

    def _count(self, metrics: CacheMetrics, update: Update) -> None:
        metrics.objects = len(self.store)
        metrics.size_bytes = self.store.size_bytes
        metrics.last_proof_of_life = self.proof_of_life
        metrics.events_coalesced = self._coalesced + sum(s.subscription.coalesced for s in self._subscribers)
        if not isinstance(update, Changed):
            metrics.relists = sum(reflector.relists for reflector in self._reflectors.values())
            metrics.watch_restarts = sum(reflector.watches for reflector in self._reflectors.values())

    def add_index(self, index: Index) -> None:
        """Add an index and fill it. Raises: ValueError when there is one of that name."""
        self.store.add_index(index)


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


class _Managed(msgspec.Struct, gc=False, rename="camel"):
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _ManagedEnvelope(msgspec.Struct, gc=False):
    metadata: _Managed


_decode_managed = msgspec.json.Decoder(_ManagedEnvelope).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_KEY = b'"managedFields"'


def _cut(raw: bytes) -> Entry:
    cut = cut_managed_fields(raw)
    return Entry(cut, metadata_of(cut))


def cut_managed_fields(raw: bytes) -> bytes:
    """Return an object's JSON without `metadata.managedFields`, commonly a third to a half of it.

    Raises:
        ValueError: the bytes are no JSON object with metadata.

    """
    start = raw.find(_KEY)
    if start < 0:
        return raw
    managed = _decode_managed(raw).metadata.managed_fields
    if isinstance(managed, msgspec.UnsetType):
        return raw
    value = bytes(managed)
    begin = start + len(_KEY) + 1
    end = begin + len(value)
    before, after = raw[start - 1 : start], raw[end : end + 1]
    # Found where it was looked for, and no field of that name after it: then it is the one in metadata.
    if raw[begin - 1 : begin] == b":" and raw.startswith(value, begin) and raw.find(_KEY, end) < 0:
        if after == b"," and before in {b",", b"{"}:
            return raw[:start] + raw[end + 1 :]
        if after == b"}" and before == b",":
            return raw[: start - 1] + raw[end:]
    # White space around it, or a field of the same name elsewhere: not what API servers write every day.
    return _without_managed_fields(raw)


def _without_managed_fields(raw: bytes) -> bytes:
    members = _decode_members(raw)
    metadata = _decode_members(members["metadata"])
    del metadata["managedFields"]
    members["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(members)
