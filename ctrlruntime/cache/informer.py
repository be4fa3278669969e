"""One kind in the cache: the one writer of its store.

Takes `Replaced` and `Changed` from its reflectors (one for each namespace it covers, or one for all), puts bytes and metadata records into
the store, updates the indexes, and only then hands the event to each subscriber's buffer: whoever hears of a change can read it. No user code
runs here but transforms and index functions, and their failure concerns one object.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import anyio
import msgspec
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.cache.reflector import Backoff, Changed, Failed, Progressed, Reflector, Replaced, State, WatchOptions
from ctrlruntime.cache.store import Entry, Index, Store
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import CtrlError, Forbidden, NoMatchError, NotFound
from ctrlruntime.event import CreateEvent, DeleteEvent, Snapshot, UpdateEvent
from ctrlruntime.selector import LabelSelector

T = TypeVar("T", default=Any)

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes an object's JSON tree before it is stored (for example drops a big field) and returns it; must be idempotent."""


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
    """What one reflector covers: a namespace ("" = all) and selectors as text."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: str = ""


class Position(NamedTuple):
    """How far a scope has been seen."""

    version: int
    synced: bool


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
        self.last_error: CtrlError | None = None
        self._plan = plan
        self._reflectors: Mapping[Scope, Reflector] = {}
        self._backoff = Backoff(watch or WatchOptions(), clock=clock, rng=rng)
        self._absent_poll = (watch or WatchOptions()).absent_poll
        self._keep_managed_fields = keep_managed_fields
        self._transform = transform
        self._resync_period = resync_period
        self._install_hint = install_hint
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._subscribers: list[_Subscriber] = []
        self._versions: dict[str, int] = {}
        self._synced = asyncio.Event()
        self._changed = asyncio.Event()
        self._troubled = asyncio.Event()
        self._reported: set[str] = set()
        self._bad: set[tuple[str, str]] = set()
        self._scope: anyio.CancelScope | None = None
        self._log = log.get_logger("cache").bind(kind=name)

    # --- readers ---------------------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether every scope was listed once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def wait_readable(self) -> None:
        """Wait for the first list, but not for somebody's help. Raises: Forbidden, NoMatchError, NotFound."""
        while not self.is_synced:
            if isinstance(self.last_error, Forbidden | NoMatchError | NotFound):
                raise self.last_error
            reported, synced = (asyncio.ensure_future(event.wait()) for event in (self._troubled, self._synced))
            try:
                await asyncio.wait((reported, synced), return_when=asyncio.FIRST_COMPLETED)
            finally:
                reported.cancel()
                synced.cancel()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return tuple(self._reflectors)

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Whether an object of this namespace with these labels belongs to what is cached (field selectors are not judged)."""
        return any(
            scope.namespace in {"", namespace} and (scope.labels is None or scope.labels.matches(labels))
            for scope in self._reflectors
        )

    def has_namespace(self, namespace: str) -> bool:
        """Whether objects of the namespace ("" = all) are cached."""
        names = {scope.namespace for scope in self._reflectors}
        return "" in names or namespace in names

    def version(self, namespace: str) -> int:
        """The resourceVersion up to which changes in the namespace have been seen; 0 before the first list, -1 if it does not parse."""
        if "" in self._versions:
            return self._versions[""]
        return self._versions.get(namespace, 0)

    async def changed(self) -> None:
        """Wait until the cache has seen anything new: a change, a list or a bookmark."""
        await self._changed.wait()

    @property
    def proof_of_life(self) -> float:
        """When (by the clock) the scope that was silent longest last proved that it is alive."""
        return min((reflector.last_proof_of_life for reflector in self._reflectors.values()), default=float("-inf"))

    # --- subscribers ----------------------------------------------------------------------------------------------------

    def subscribe(self, name: str, decode: Callable[[bytes], T]) -> Subscription[T]:
        """Return a subscription that first gets every stored object as a create event of the initial list, then every change."""
        subscription: Subscription[T] = Subscription(name, on_stop=self._forget)
        for entry in self.store:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), is_in_initial_list=True))
        if self.is_synced:
            subscription.put_synced()
        self._subscribers.append(_Subscriber(subscription, decode))
        return subscription

    def _forget(self, subscription: Subscription[Any]) -> None:
        self._subscribers = [s for s in self._subscribers if s.subscription is not subscription]

    def adopt(self, other: Informer) -> None:
        """Take over the subscribers of another informer of the kind, and tell them what differs between the two stores."""
        for subscription, decode in other._subscribers:
            for entry in self.store:
                known = other.store.get(entry.meta.namespace, entry.meta.name)
                snapshot = Snapshot(entry.raw, entry.meta, decode)
                if known is None:
                    subscription.put(CreateEvent(snapshot))
                elif known.meta.resource_version != entry.meta.resource_version:
                    subscription.put(UpdateEvent(Snapshot(known.raw, known.meta, decode), snapshot))
            for known in other.store:
                if self.store.get(known.meta.namespace, known.meta.name) is None:
                    subscription.put(DeleteEvent(Snapshot(known.raw, known.meta, decode), delete_state_unknown=True))
            if self.is_synced:
                subscription.put_synced()
            subscription.transfer(self._forget)
            self._subscribers.append(_Subscriber(subscription, decode))
        other._subscribers = []

    @property
    def subscriber_count(self) -> int:
        return len(self._subscribers)

    # --- life -----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow all scopes until cancelled or stopped."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            self._reflectors = await self._planned()
            async with anyio.create_task_group() as group:
                for covered, reflector in self._reflectors.items():
                    group.start_soon(self._follow, covered, reflector)
                if self._resync_period:
                    group.start_soon(self._resync, self._resync_period)

    async def _planned(self) -> Mapping[Scope, Reflector]:
        """Ask which scopes there are until the kind is known to the server."""
        while True:
            try:
                return await self._plan()
            except CtrlError as error:
                self._report(Scope(), error, State.RESOLVING)
                await self._sleep(self._backoff.next(self._absent_poll))

    def stop(self) -> None:
        """End `run` and every subscription."""
        if self._scope is not None:
            self._scope.cancel()
        for subscriber in list(self._subscribers):
            subscriber.subscription.stop()

    async def _follow(self, scope: Scope, reflector: Reflector) -> None:
        async for update in reflector.updates():
            match update:
                case Changed(changes):
                    for change in changes:
                        self._change(change.type, change.raw)
                    self._advance(scope, reflector.version)
                case Progressed(version):
                    self._advance(scope, version)
                case Replaced(items, version):
                    await self._replace(scope, items)
                    self._advance(scope, version)
                    self._recovered(scope)
                    if not self.is_synced and len(self._versions) == len(self._reflectors):
                        self._sync()
                case Failed(error, state):
                    self._report(scope, error, state)
            if self._metrics is not None:
                self._count(self._metrics)

    def _sync(self) -> None:
        self._synced.set()
        for subscriber in self._subscribers:
            subscriber.subscription.put_synced()
        self._log.info("synced", objects=len(self.store))

    def _advance(self, scope: Scope, version: str) -> None:
        self._versions[scope.namespace] = int(version) if version.isdecimal() else -1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _resync(self, period: float) -> None:
        while True:
            await self._sleep(period * (0.9 + 0.2 * self._rng()))
            for entry in list(self.store):
                for subscription, decode in self._subscribers:
                    subscription.put(
                        UpdateEvent(Snapshot(entry.raw, entry.meta, decode), Snapshot(entry.raw, entry.meta, decode))
                    )

    # --- writing the store ------------------------------------------------------------------------------------------------

    async def _replace(self, scope: Scope, items: list[bytes]) -> None:
        """Make the store equal to a complete list; what is gone without a word becomes a delete of unknown state."""
        missing = self.store.keys(scope.namespace)
        for count, raw in enumerate(items):
            if count % 256 == 255:
                # A list of tens of thousands must not hold the loop: leases, probes and reconciles go on in between.
                await asyncio.sleep(0)
            meta = self._change("ADDED", raw)
            if meta is not None:
                missing.discard((meta.namespace, meta.name))
        items.clear()
        for namespace, name in missing:
            old = self.store.remove(namespace, name)
            if old is not None:
                self._deliver_delete(old, delete_state_unknown=True)

    def _change(self, type: Literal["ADDED", "MODIFIED", "DELETED"], raw: bytes) -> Metadata | None:
        entry = self._entry(raw)
        if entry is None:
            return None
        meta = entry.meta
        if type == "DELETED":
            old = self.store.remove(meta.namespace, meta.name)
            if old is not None:
                self._deliver_delete(entry, delete_state_unknown=False)
            return meta
        old = self.store.get(meta.namespace, meta.name)
        if old is not None:
            if _is_older(meta, old.meta):
                # A list served from a lagging replica: what we have seen since must not be taken back.
                return meta
            if old.meta.uid != meta.uid:
                # The deletion of the former object was missed; whoever keeps state by uid has to hear of it.
                self.store.put(entry)
                self._deliver_delete(old, delete_state_unknown=True)
                self._deliver_create(entry)
                return meta
            if old.meta.resource_version == meta.resource_version:
                return meta
        self.store.put(entry)
        if old is None:
            self._deliver_create(entry)
        else:
            for subscription, decode in self._subscribers:
                subscription.put(UpdateEvent(Snapshot(old.raw, old.meta, decode), Snapshot(entry.raw, meta, decode)))
        return meta

    def _deliver_create(self, entry: Entry) -> None:
        initial = not self.is_synced
        for subscription, decode in self._subscribers:
            subscription.put(CreateEvent(Snapshot(entry.raw, entry.meta, decode), is_in_initial_list=initial))

    def _deliver_delete(self, entry: Entry, *, delete_state_unknown: bool) -> None:
        for subscription, decode in self._subscribers:
            subscription.put(DeleteEvent(Snapshot(entry.raw, entry.meta, decode), delete_state_unknown))

    def _entry(self, raw: bytes) -> Entry | None:
        try:
            if self._transform is not None:
                raw = msgspec.json.encode(self._transform(msgspec.json.decode(raw)))
            if not self._keep_managed_fields:
                raw = cut_managed_fields(raw)
            return Entry(raw, metadata_of(raw))
        except Exception as error:  # noqa: BLE001 - a transform is user code; the other objects must not wait for this one
            if self._metrics is not None:
                self._metrics.decode_errors += 1
            return self._untransformed(raw, error)

    def _untransformed(self, raw: bytes, error: Exception) -> Entry | None:
        """Keep an object as the server sent it when the transform fails; give up only on one without readable metadata."""
        try:
            meta = metadata_of(raw)
        except ValueError as undecodable:
            self._log.error("an object without readable metadata is skipped", error=str(undecodable), start=raw[:120])
            return None
        if (meta.namespace, meta.name) not in self._bad:
            self._bad.add((meta.namespace, meta.name))
            self._log.warning(
                "the transform failed, the object is kept as it came", object=str(meta.key), error=repr(error)
            )
        return Entry(raw, meta)

    # --- what people are told ------------------------------------------------------------------------------------------------

    def _report(self, scope: Scope, error: CtrlError, state: State) -> None:
        """Say once, in one line, what stands in the way and what to do; repeat only after a recovery."""
        self.last_error = error
        troubled, self._troubled = self._troubled, asyncio.Event()
        troubled.set()
        where = f"namespace {scope.namespace}" if scope.namespace else "all namespaces"
        text = f"{scope.namespace}:{type(error).__name__}"
        if text in self._reported:
            self._log.debug("still failing", error=str(error), while_=state.value)
            return
        self._reported.add(text)
        match error:
            case NoMatchError() | NotFound():
                self._log.warning(
                    "the kind is not served by the API server; waiting for it",
                    error=str(error),
                    hint=self._install_hint(),
                )
            case Forbidden():
                self._log.error(
                    "not permitted to list and watch; waiting for the permission", where=where, error=str(error)
                )
            case _:
                self._log.warning(
                    "cannot be read at the moment, trying again", where=where, state=state.value, error=str(error)
                )

    def _recovered(self, scope: Scope) -> None:
        prefix = (f"{scope.namespace}:", ":")
        if any(text.startswith(prefix) for text in self._reported):
            self._log.info("readable again", namespace=scope.namespace or "all")
        self._reported = {text for text in self._reported if not text.startswith(prefix)}
        self.last_error = None

    def _count(self, metrics: CacheMetrics) -> None:
        metrics.objects = len(self.store)
        metrics.size_bytes = self.store.size_bytes
        metrics.relists = sum(reflector.relists for reflector in self._reflectors.values())
        metrics.watch_restarts = sum(reflector.watches for reflector in self._reflectors.values())
        metrics.events_coalesced = sum(s.subscription.coalesced for s in self._subscribers)
        metrics.last_proof_of_life = self.proof_of_life

    def add_index(self, index: Index) -> None:
        self.store.add_index(index)


def _is_older(new: Metadata, old: Metadata) -> bool:
    if new.uid != old.uid:
        return False
    a, b = new.resource_version, old.resource_version
    return a.isdecimal() and b.isdecimal() and int(a) < int(b)


class _Managed(msgspec.Struct, gc=False, rename="camel"):
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _ManagedEnvelope(msgspec.Struct, gc=False):
    metadata: _Managed


_decode_managed = msgspec.json.Decoder(_ManagedEnvelope).decode
_KEY = b'"managedFields":'


def cut_managed_fields(raw: bytes) -> bytes:
    """Return an object's JSON without `metadata.managedFields`, commonly a third to a half of it. Raises: ValueError for bad JSON."""
    if _KEY not in raw:
        return raw
    value = _decode_managed(raw).metadata.managed_fields
    if isinstance(value, msgspec.UnsetType):
        return raw
    member = _KEY + bytes(value)
    start = raw.find(member)
    if start < 0:
        return _without_managed_fields(raw)
    end = start + len(member)
    if raw[end : end + 1] == b",":
        end += 1
    elif raw[start - 1 : start] == b",":
        start -= 1
    return raw[:start] + raw[end:]


def _without_managed_fields(raw: bytes) -> bytes:
    # White space between key and value: not what API servers write, so the slow way is good enough.
    tree: dict[str, Any] = msgspec.json.decode(raw)
    tree["metadata"].pop("managedFields", None)
    return msgspec.json.encode(tree)
