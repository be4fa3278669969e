"""The cache: one informer for each kind, shared by all readers and controllers of a manager.

Reads decode what the store holds, freshly for each caller. An informer starts with the first reader or subscriber of its kind and may be
removed again. A kind is held either whole or as metadata only, by the widest reader that asked for it; a wider reader that comes later gets a
full informer beside the narrow one, and the subscribers move over when it is synced.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.cache.informer import CacheMetrics, Informer, Scope
from ctrlruntime.cache.options import CacheOptions, KindOptions
from ctrlruntime.cache.reflector import Reflector
from ctrlruntime.cache.store import Entry, Index, field_path_index
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.client.codec import Codec, Codecs
from ctrlruntime.client.interfaces import Fields, Items, Labels
from ctrlruntime.client.selectors import fields_of, labels_of
from ctrlruntime.errors import CacheError, CacheNotStartedError, CacheSyncTimeoutError, NotCachedError, NotFound
from ctrlruntime.rest.collection import Collection
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme

T = TypeVar("T")

IndexFunction: TypeAlias = Callable[[Any], Iterable[str]]
_Entries: TypeAlias = list[Entry]
_Pairs: TypeAlias = list[tuple[str, str]]


class CacheMeters(Protocol):
    """Gives the counters of one kind; `Metrics` does."""

    def cache(self, kind: str) -> CacheMetrics: ...


class _Held:
    """What the cache has of one kind: its informer, how wide it is, and the indexes asked for."""

    __slots__ = ("indexes", "informer", "metadata_only", "namespaced", "plural")

    def __init__(self) -> None:
        self.informer: Informer | None = None
        self.metadata_only = False
        self.indexes: dict[str, Callable[[Entry], Iterable[str]]] = {}
        self.namespaced: bool | None = None
        self.plural = ""


class Cache:
    """Reads objects of any kind from memory; see `Reader`. Run it (the manager does) with `run`."""

    def __init__(
        self,
        transport: Transport,
        mapper: RESTMapper,
        scheme: Scheme,
        *,
        options: CacheOptions | None = None,
        metrics: CacheMeters | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.options = options or CacheOptions()
        self._transport = transport
        self._mapper = mapper
        self._codecs = Codecs(scheme)
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._held: dict[GroupVersionKind, _Held] = {}
        self._kind_options = {self._codecs.of(kind).gvk: own for kind, own in self.options.by_kind.items()}
        self._group: TaskGroup | None = None
        self._was_started = False
        self._running = asyncio.Event()
        self._log = log.get_logger("cache")

    # --- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all informers until cancelled. Raises: CacheError when it was started before."""
        if self._was_started:
            raise CacheError("the cache was started already; a cache runs once")
        self._was_started = True
        async with anyio.create_task_group() as group:
            self._group = group
            self._running.set()
            try:
                for held in self._held.values():
                    if held.informer is not None:
                        group.start_soon(held.informer.run)
                await anyio.sleep_forever()
            finally:
                self._group = None
                for held in self._held.values():
                    if held.informer is not None:
                        held.informer.stop()

    @property
    def is_running(self) -> bool:
        return self._group is not None

    async def wait_running(self) -> None:
        """Wait until reads are accepted."""
        await self._running.wait()

    async def wait_synced(self) -> None:
        """Wait until every informer there is now has its first list."""
        for held in list(self._held.values()):
            if held.informer is not None:
                await held.informer.wait_synced()

    def unsynced(self) -> dict[str, str]:
        """Return {kind: what stands in its way} for the kinds that have not synced yet."""
        return {
            str(gvk): "" if held.informer.last_error is None else str(held.informer.last_error)
            for gvk, held in self._held.items()
            if held.informer is not None and not held.informer.is_synced
        }

    def informers(self) -> Mapping[GroupVersionKind, Informer]:
        """Return the informers there are now, by kind."""
        return {gvk: held.informer for gvk, held in self._held.items() if held.informer is not None}

    async def remove(self, kind: type[Any]) -> None:
        """Stop the informer of a kind and free its objects; its subscriptions end. The next read starts it anew."""
        held = self._held.get(self._codecs.of(kind).gvk)
        if held is not None and held.informer is not None:
            informer, held.informer = held.informer, None
            informer.stop()

    # --- subscribers -----------------------------------------------------------------------------------------------------

    async def subscribe(self, kind: type[T], *, name: str) -> Subscription[T]:
        """Return the events of a kind for one subscriber; returns at once, also while the kind is not served."""
        codec = self._codecs.of(kind)
        informer = self._informer(codec)
        return informer.subscribe(name, codec.decode)

    def index_field(self, kind: type[Any], field: str, values: IndexFunction | None = None) -> None:
        """Index a kind by a field, so that `list(fields={field: value})` finds objects without a scan.

        `field` is a path in wire names (`spec.nodeName`), cut from the bytes; or any name, with `values` a function from the decoded object
        to its values. May be called before and after the start. Raises: ValueError when the field is indexed already.
        """
        codec = self._codecs.of(kind)
        held = self._held.setdefault(codec.gvk, _Held())
        if field in held.indexes:
            raise ValueError(f"{codec.gvk.kind} is indexed by {field} already; index a field once")
        extract = field_path_index(field) if values is None else _decoding(codec, values)
        held.indexes[field] = extract
        if held.informer is not None:
            held.informer.add_index(self._index(field, extract, codec.gvk))

    # --- Reader ---------------------------------------------------------------------------------------------------------------

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        codec = self._codecs.of(kind)
        held = self._held.get(codec.gvk)
        informer = None if held is None else held.informer
        if informer is None or not informer.is_synced or self._group is None or held is None or held.namespaced is None:
            held, informer = await self._ready(codec, kind)
        namespace = key.namespace if held.namespaced else ""
        entry = informer.store.get(namespace, key.name)
        if entry is None:
            if held.namespaced and not informer.has_namespace(namespace):
                raise NotCachedError(_outside(codec.gvk, namespace, informer))
            raise _not_found(codec.gvk, held.plural, key.name)
        return codec.decode(entry.raw)

    async def find(self, kind: type[T], key: ObjectKey) -> T | None:
        try:
            return await self.get(kind, key)
        except NotFound:
            return None

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Items[T]:
        """Field selectors must be exact and name an indexed field (`metadata.name` and `metadata.namespace` always work).

        Raises: CacheError for a continue token, a field without index or a namespace that is not cached.
        """
        if continue_token:
            raise CacheError("the cache has no continue tokens: it lists everything at once; use api_reader for pages")
        codec = self._codecs.of(kind)
        held, informer = await self._ready(codec, kind)
        space = (namespace or "") if held.namespaced else ""
        if space and not informer.has_namespace(space):
            raise NotCachedError(_outside(codec.gvk, space, informer))
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return Items((), codec.decode)
        entries = self._select(informer, codec, space, selector, fields)
        if limit:
            entries = entries[:limit]
        return Items(
            [entry.raw for entry in entries],
            codec.decode,
            metas=[entry.meta for entry in entries],
            resource_version=str(informer.version(space)),
        )

    def _select(
        self, informer: Informer, codec: Codec[Any], namespace: str, labels: Any, fields: Fields | None
    ) -> _Entries:
        indexed = _Pairs()
        name = None
        for path in () if fields is None else fields_of(fields).paths:
            value = fields_of(cast("Fields", fields)).exact(path)
            if value is None:
                raise CacheError(
                    f"the cache answers only exact field selectors ({path}=value); use api_reader for {fields!s}"
                )
            if path == "metadata.name":
                name = value
            elif path == "metadata.namespace":
                if namespace and namespace != value:
                    return []
                namespace = value
            elif informer.store.index(path) is None:
                have = ", ".join(informer.store.index_names) or "none"
                raise CacheError(
                    f"{codec.gvk.kind} is not indexed by {path} (indexed: {have}); call cache.index_field({codec.gvk.kind}, {path!r})"
                )
            else:
                indexed.append((path, value))
        entries = informer.store.select(namespace, labels, indexed)
        return entries if name is None else [entry for entry in entries if entry.meta.name == name]

    # --- Horizon: what the gate asks ----------------------------------------------------------------------------------------

    def horizon(self, kind: tuple[str, str]) -> CacheHorizon | None:
        """Return what has been seen of a (group, kind), or None when no version of it is held."""
        found = [
            held.informer
            for gvk, held in self._held.items()
            if (gvk.group, gvk.kind) == kind and held.informer is not None
        ]
        return CacheHorizon(found) if found and self._group is not None else None

    # --- parts -----------------------------------------------------------------------------------------------------------------

    async def _ready(self, codec: Codec[Any], kind: type[Any]) -> tuple[_Held, Informer]:
        """Return the synced informer of a kind, starting it if need be. Raises: CacheError and its subclasses."""
        held = self._held.setdefault(codec.gvk, _Held())
        if self._group is None:
            raise CacheNotStartedError(
                f"{kind.__name__} was read before the cache was started; before mgr.start() read with mgr.api_reader"
            )
        if held.informer is None and not self.options.start_on_read:
            raise NotCachedError(
                f"{kind.__name__} has no informer and start_on_read is off; watch it, or read with mgr.api_reader"
            )
        if held.namespaced is None:
            # Asked first: a read of a kind that is not served fails at once and leaves no informer behind.
            resource = await self._mapper.resource_for(codec.gvk)
            held.namespaced, held.plural = resource.namespaced, resource.plural
        informer = self._informer(codec)
        if not informer.is_synced:
            try:
                async with asyncio.timeout(self.options.sync_timeout):
                    await informer.wait_readable()
            except TimeoutError as error:
                raise CacheSyncTimeoutError(_unsynced(codec.gvk, informer, self.options.sync_timeout)) from error
        return held, informer

    def _informer(self, codec: Codec[Any]) -> Informer:
        held = self._held.setdefault(codec.gvk, _Held())
        if held.informer is None:
            held.metadata_only = codec.metadata_only
            held.informer = self._new_informer(codec.gvk, held)
            if self._group is not None:
                self._group.start_soon(held.informer.run)
        elif held.metadata_only and not codec.metadata_only:
            self._widen(codec.gvk, held, held.informer)
        return held.informer

    def _widen(self, gvk: GroupVersionKind, held: _Held, narrow: Informer) -> None:
        """Put a full informer in the place of a metadata-only one; subscribers move over when it is synced."""
        held.metadata_only = False
        wide = held.informer = self._new_informer(gvk, held)
        if self._group is None:
            wide.adopt(narrow)
            return
        self._group.start_soon(wide.run)
        self._group.start_soon(self._move_over, narrow, wide)

    async def _move_over(self, narrow: Informer, wide: Informer) -> None:
        await wide.wait_synced()
        wide.adopt(narrow)
        narrow.stop()

    def _new_informer(self, gvk: GroupVersionKind, held: _Held) -> Informer:
        own = self._kind_options.get(gvk)
        options = self.options.for_kind(own)
        informer = Informer(
            _label(gvk),
            lambda: self._plan(gvk, held, own, options),
            watch=options.watch,
            keep_managed_fields=options.keep_managed_fields,
            transform=options.transform,
            resync_period=options.sync_period,
            install_hint=lambda: f"install the CustomResourceDefinition of {gvk.kind} in group {gvk.group or 'core'}",
            metrics=None if self._metrics is None else self._metrics.cache(_label(gvk)),
            clock=self._clock,
            rng=self._rng,
            sleep=self._sleep,
        )
        for name, extract in held.indexes.items():
            informer.add_index(self._index(name, extract, gvk))
        return informer

    async def _plan(
        self, gvk: GroupVersionKind, held: _Held, own: KindOptions | None, options: CacheOptions
    ) -> Mapping[Scope, Reflector]:
        resource = await self._mapper.resource_for(gvk)
        held.namespaced, held.plural = resource.namespaced, resource.plural
        scopes = self.options.scopes(own, namespaced=resource.namespaced)
        return {scope: self._reflector(gvk, held, scope, options) for scope in scopes}

    def _reflector(self, gvk: GroupVersionKind, held: _Held, scope: Scope, options: CacheOptions) -> Reflector:
        metadata_only = held.metadata_only

        async def resolve() -> Collection:
            resource: APIResource = await self._mapper.resource_for(gvk)
            return Collection(
                self._transport,
                resource,
                namespace=scope.namespace,
                labels="" if scope.labels is None else str(scope.labels),
                fields=scope.fields,
                metadata_only=metadata_only,
            )

        return Reflector(
            resolve,
            options=options.watch,
            clock=self._clock,
            rng=self._rng,
            sleep=self._sleep,
            forget=lambda: self._mapper.invalidate(gvk.group),
            name=_label(gvk) + (f" in {scope.namespace}" if scope.namespace else ""),
        )

    def _index(self, name: str, extract: Callable[[Entry], Iterable[str]], gvk: GroupVersionKind) -> Index:
        def on_failure(index: str, entry: Entry, error: Exception) -> None:
            self._log.warning(
                "an index function failed, the object stays readable by key",
                index=index, kind=gvk.kind, object=str(entry.meta.key), error=str(error),
            )  # fmt: skip

        return Index(name, extract, on_failure=on_failure)


class CacheHorizon:
    """See `ctrlruntime.client.gate.Horizon`: what several informers of one group and kind (its versions) have all seen."""

    __slots__ = ("_informers",)

    def __init__(self, informers: list[Informer]) -> None:
        self._informers = informers

    def version(self, namespace: str) -> int:
        return min(informer.version(namespace) for informer in self._informers)

    def uid(self, namespace: str, name: str) -> str | None:
        for informer in self._informers:
            entry = informer.store.get(namespace, name)
            if entry is not None:
                return entry.meta.uid
        return None

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        return any(informer.covers(namespace, labels) for informer in self._informers)

    async def changed(self) -> None:
        tasks = [asyncio.ensure_future(informer.changed()) for informer in self._informers]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[Cache]:
    """Run a cache inside a block, for tests and scripts without a manager."""
    async with anyio.create_task_group() as group:
        group.start_soon(cache.run)
        await cache.wait_running()
        try:
            yield cache
        finally:
            group.cancel_scope.cancel()


def _decoding(codec: Codec[Any], values: IndexFunction) -> Callable[[Entry], Iterable[str]]:
    return lambda entry: values(codec.decode(entry.raw))


def _label(gvk: GroupVersionKind) -> str:
    return f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}"


def _outside(gvk: GroupVersionKind, namespace: str, informer: Informer) -> str:
    cached = ", ".join(sorted(scope.namespace for scope in informer.scopes))
    return f"{gvk.kind} in namespace {namespace!r} is outside the cache, which holds {cached}; read it with api_reader, or add the namespace"


def _unsynced(gvk: GroupVersionKind, informer: Informer, timeout: float) -> str:
    why = f": {informer.last_error}" if informer.last_error is not None else ""
    return f"{gvk.kind} has not synced within {timeout:g} s{why}"


def _not_found(gvk: GroupVersionKind, plural: str, name: str) -> NotFound:
    resource = f"{plural}.{gvk.group}" if gvk.group else plural
    return NotFound(f'{resource} "{name}" not found', details={"name": name, "group": gvk.group, "kind": plural})
