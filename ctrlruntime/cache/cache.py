"""The cache: one informer for each kind, shared by all readers and controllers of a manager.

A read decodes the stored object for each caller. An informer starts with the first reader or subscriber of its kind, and can be removed. A
kind is cached completely or as metadata only, as its widest reader needs. If a wider reader comes later, a full informer starts next to the
narrow one. Readers and subscribers of the narrow one move over when the full one has synced.

A sharded controller has its kinds in part: only its own objects and their children (`hold_part`). Its reads and watches use this part, which
has an informer of its own. Everybody else reads the whole kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio
from anyio.abc import TaskGroup
from typing_extensions import TypeVar

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind, KindInfo
from ctrlruntime.api.metadata import Metadata, ObjectKey
from ctrlruntime.cache.contents import CacheMetrics
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.namespaces import NamespaceSet
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.options import ByObject, CacheOptions, NamespaceOptions, selecting
from ctrlruntime.cache.part import Part, Rule, Selection
from ctrlruntime.cache.reflector import Reflector
from ctrlruntime.cache.refusals import no_index, not_found, outside, unsynced
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Entry, Index, Store, field_path_index
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.cache.unreadable import UnreadableObjects
from ctrlruntime.cache.view import KindView
from ctrlruntime.client.codec import Codec, Codecs, check_key
from ctrlruntime.client.interfaces import Fields, Labels, ListResult
from ctrlruntime.client.selectors import fields_of, labels_of
from ctrlruntime.errors import (
    CacheError,
    CacheNotStartedError,
    CacheSyncTimeoutError,
    ConfigError,
    DecodeError,
    NotCachedError,
    NotFound,
)
from ctrlruntime.healthz import UnhealthyError
from ctrlruntime.rest.collection import Collection
from ctrlruntime.rest.fence import current_actor
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.selector import LabelSelector

T = TypeVar("T")

IndexFunction: TypeAlias = Callable[[Any], Iterable[str]]
_Entries: TypeAlias = list[Entry]
_Pairs: TypeAlias = list[tuple[str, str]]
_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_FREE_FIELDS = frozenset({"metadata.name", "metadata.namespace"})

MAX_TOLD = 100
"""The number of objects named in the log for a failing index function; others are only counted."""


class CacheMeters(Protocol):
    """Returns the counters of one kind, as `Metrics` does."""

    def cache(self, kind: str, cluster: str = "") -> CacheMetrics: ...


class _Indexes:
    """The index functions of one kind, whole and in part."""

    __slots__ = ("functions", "needs_all")

    def __init__(self) -> None:
        self.functions: dict[str, Callable[[Entry], Iterable[str]]] = {}
        self.needs_all = False
        """Whether an index reads more than metadata."""


class _Held:
    """The cached state of one kind, whole or in part: its informer, its width, and its indexes."""

    __slots__ = ("indexes", "informer", "metadata_only", "namespaced", "narrow", "part", "plural", "views")

    def __init__(self, indexes: _Indexes, part: Part | None = None) -> None:
        self.informer: Informer | None = None
        self.metadata_only = False
        self.narrow: Informer | None = None
        """The metadata-only informer, while a full one syncs next to it."""
        self.views: dict[Informer, KindView] = {}
        """The view of each of the two informers for reads."""
        self.indexes = indexes
        self.part = part
        """Which objects there are; None: all."""
        self.namespaced: bool | None = None
        self.plural = ""

    def informers(self) -> list[Informer]:
        return [informer for informer in (self.informer, self.narrow) if informer is not None]

    def reader(self, *, metadata_only: bool) -> Informer | None:
        """Return the informer for a reader of this width, or None if one must be started first."""
        if not metadata_only:
            return None if self.metadata_only else self.informer
        # Until the full informer is filled, the narrow one serves those for whom it is wide enough.
        return self.narrow or self.informer


class Cache:
    """Reads objects of any kind from memory; see `Reader`.

    The manager starts it with `run`.
    """

    def __init__(
        self,
        transport: Transport,
        mapper: RESTMapper,
        scheme: Scheme,
        *,
        options: CacheOptions | None = None,
        metrics: CacheMeters | None = None,
        cluster: str = "",
        observer: CacheObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.options = options or CacheOptions()
        self._transport = transport
        self._mapper = mapper
        self._codecs = Codecs(scheme, cluster)
        self._metrics = metrics
        self._cluster = cluster
        self._observer = observer or CacheObserver()
        self._unreadable = UnreadableObjects(self._observer.unreadable)
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._held: dict[GroupVersionKind, _Held] = {}
        self._parts: dict[GroupVersionKind, _Held] = {}
        """What sharded controllers have of a kind."""

        self._warned: set[object] = set()
        """The shares of controllers that were warned by `_warn_of_part`."""

        self._versions_of: dict[tuple[str, str], list[_Held]] = {}
        """The same by group and kind: each write asks for them."""

        self._kind_options = {self._codecs.of(kind).gvk: own for kind, own in self.options.by_object.items()}
        for kind, own in self.options.by_object.items():
            _refuse_namespaces_of_cluster_kind(kind, own)
        self._namespaces = NamespaceSet(
            self.options, make_informer=self._new_namespace_informer, on_change=self._rescope
        )
        self._group: TaskGroup | None = None
        self._was_started = False
        self._running = asyncio.Event()
        self._log = log.get_logger("cache")

    # --- life --------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run all informers until cancelled. Raises: CacheError if it was started before."""
        if self._was_started:
            raise CacheError("cannot start the cache: it was started before. Create a new cache")
        self._was_started = True
        async with anyio.create_task_group() as group:
            self._group = group
            self._running.set()
            try:
                if self._namespaces.follower is not None:
                    group.start_soon(self._namespaces.follower.run)
                for _, held in self._all():
                    if held.informer is not None:
                        group.start_soon(held.informer.run)
                await anyio.sleep_forever()
            finally:
                self._group = None
                for _, held in self._all():
                    for informer in held.informers():
                        informer.stop()

    @property
    def is_running(self) -> bool:
        return self._group is not None

    async def wait_running(self) -> None:
        """Wait until reads are accepted."""
        await self._running.wait()

    async def wait_for_cache_sync(self) -> None:
        """Wait until every current informer has synced.

        An informer that is removed meanwhile is ignored.
        """
        for _, held in self._all():
            if held.informer is not None:
                with contextlib.suppress(NotCachedError):
                    await held.informer.wait_for_sync()

    def unsynced(self) -> dict[str, str]:
        """Return {kind: cause} for the kinds that have not synced yet."""
        return {
            str(gvk): "" if held.informer.last_error is None else str(held.informer.last_error)
            for gvk, held in self._all()
            if held.informer is not None and not held.informer.has_listed()
        }

    def check(self) -> None:
        """Raise UnhealthyError if a kind had no activity for `stale_after`.

        The error names these kinds and the causes.

        A reconnect counts as activity. Safe in any thread. The manager's readiness probe calls it.
        """
        stale = self.stale()
        if stale:
            raise UnhealthyError("; ".join(f"{kind}: {why}" for kind, why in stale.items()))

    def stale(self) -> dict[str, str]:
        """Return {kind: time without activity and cause} for the kinds of `check`."""
        if self.options.stale_after is None or self._group is None:
            return {}
        found: dict[str, str] = {}
        for gvk, held in self._all():
            informer, watch = held.informer, self.options.for_kind(self._kind_options.get(gvk)).watch
            limit = max(self.options.stale_after, 2 * (watch.timeout[1] + watch.timeout_grace))
            if informer is not None and informer.silence() > limit:
                why = f" ({error})" if (error := informer.last_error) is not None else ""
                found[str(gvk)] = f"no activity for {informer.silence():.0f} s{why}"
        return found

    def informers(self) -> Mapping[GroupVersionKind, Informer]:
        """Return the current informers by kind.

        Of a kind that is cached whole and in part, it is that of the whole kind.
        """
        return {
            gvk: held.informer
            for kinds in (self._parts, self._held)
            for gvk, held in kinds.items()
            if held.informer is not None
        }

    def all_informers(self) -> Sequence[tuple[GroupVersionKind, Informer]]:
        """Return the current informers. A kind that is cached whole and in part has two."""
        return [(gvk, held.informer) for gvk, held in self._all() if held.informer is not None]

    def _all(self) -> list[tuple[GroupVersionKind, _Held]]:
        return [*self._held.items(), *self._parts.items()]

    async def remove_informer(self, kind: type[Any]) -> None:
        """Stop the informer of a kind and free its objects.

        The next read or watch of the kind starts a new informer.

        Raises: CacheError while a watch is subscribed to the kind, because its controller would get no more events.
        """
        gvk = self._codecs.of(kind).gvk
        both = [held for held in (self._held.get(gvk), self._parts.get(gvk)) if held is not None]
        informers = [informer for held in both for informer in held.informers()]
        if names := sorted({name for informer in informers for name in informer.subscribers}):
            raise CacheError(
                f"cannot remove {kind.__name__} from the cache: watched by {', '.join(names)}. "
                "Stop these watches first (`await watch.stop()`, with what `controller.watch` returned)"
            )
        for held in both:
            held.informer = held.narrow = None
            held.views.clear()
        for informer in informers:
            informer.stop()

    # --- namespaces --------------------------------------------------------------------------------------------------

    @property
    def namespaces(self) -> frozenset[str] | None:
        """The cached namespaces, or None for all namespaces."""
        current = self._namespaces.current()
        return None if current is None else frozenset(current)

    async def add_namespace(self, name: str, options: NamespaceOptions | None = None) -> None:
        """Cache one more namespace, for every kind without its own namespaces.

        May be called before and after the start. Handlers receive its objects as created, and a read waits for its first list. Connections
        of other namespaces are not affected. Raises: ValueError if the cache has all namespaces.
        """
        self._namespaces.add(name, options or NamespaceOptions())

    async def remove_namespace(self, name: str) -> None:
        """Stop caching a namespace and free its objects.

        Handlers receive the objects as deleted with an unknown state. Raises: ValueError if it was not added by name, or the cache has all
        namespaces.
        """
        self._namespaces.remove(name)

    async def select_namespaces(self, labels: Labels | None) -> None:
        """Cache the namespaces with these labels, and no others.

        This replaces the previous selector.

        None: none.

        Namespaces that were added by name stay. Raises: ValueError if the cache has all namespaces, or the selector matches nothing.
        """
        follower = self._namespaces.select(None if labels is None else selecting(labels))
        if follower is not None and self._group is not None:
            self._group.start_soon(follower.run)

    def _rescope(self) -> None:
        for gvk, held in self._all():
            if held.namespaced:
                self._follow(gvk, held, self._scopes_of(gvk, held))

    def _follow(self, gvk: GroupVersionKind, held: _Held, scopes: Sequence[Scope]) -> None:
        """Have the informers of a kind follow exactly these scopes."""
        options = self.options.for_kind(self._kind_options.get(gvk))
        for informer, metadata_only in ((held.informer, held.metadata_only), (held.narrow, True)):
            if informer is not None:
                reflector = partial(self._reflector, gvk, options=options, metadata_only=metadata_only, part=held.part)
                informer.rescope(scopes, reflector)

    def _note_scope(self, gvk: GroupVersionKind, held: _Held, *, namespaced: bool, plural: str) -> None:
        """Take note of where objects of a kind live: a definition that was replaced may put them elsewhere."""
        before, held.namespaced, held.plural = held.namespaced, namespaced, plural
        if before is namespaced:
            return
        for informer in held.informers():
            informer.expect_scope(namespaced=namespaced)
        if before is not None and self._group is not None:
            self._log.info("scope of the kind changed, relisting", kind=_label(gvk), namespaced=namespaced)
            # In a task of its own: whoever found out may be one of those that end.
            self._group.start_soon(self._rescope_kind, gvk, held)

    async def _rescope_kind(self, gvk: GroupVersionKind, held: _Held) -> None:
        own = self._kind_options.get(gvk)
        if held.namespaced and (own is None or own.namespaces is None):
            await self._namespaces.settled()
        try:
            scopes = self._scopes_of(gvk, held)
        except ValueError as error:
            self._log.error("kind is no longer cached", kind=_label(gvk), error=str(error))
            scopes = []
        self._follow(gvk, held, scopes)

    def _other_scope(self, gvk: GroupVersionKind, held: _Held) -> None:
        """An object shows that discovery, as it is remembered, is of a former definition."""
        self._mapper.invalidate(gvk.group)
        self._note_scope(gvk, held, namespaced=not held.namespaced, plural=held.plural)

    def _scopes_of(self, gvk: GroupVersionKind, held: _Held) -> list[Scope]:
        """Return the scopes to follow: none while this process has no object. Raises: ValueError."""
        return [] if held.part is not None and held.part.selection.keeps_nothing else self._scopes(gvk, held)

    def _scopes(self, gvk: GroupVersionKind, held: _Held) -> list[Scope]:
        return self.options.scopes(
            self._kind_options.get(gvk), namespaced=bool(held.namespaced), namespaces=self._namespaces.current()
        )

    # --- parts of a kind -----------------------------------------------------------------------------------------------

    def hold_part(self, kind: type[Any], share: object, rule: Rule, selection: Selection) -> None:
        """Cache only what `rule` keeps for the reads and watches of a sharded controller.

        The actor of a call knows `share`. Call it before the start.
        """
        gvk = self._codecs.of(kind).gvk
        held = self._parts.get(gvk)
        if held is None:
            held = self._parts[gvk] = _Held(self._hold(gvk).indexes, Part(selection))
            self._versions_of[gvk.group, gvk.kind].append(held)
        assert held.part is not None
        held.part.add(share, rule)

    def known(self, kind: type[Any], share: object, namespace: str, name: str) -> Metadata | None:
        """Return the metadata of an object that is cached for a controller.

        `share`: that of the controller. Starts no informer.
        """
        gvk = self._codecs.of(kind).gvk
        held = self._part_of(gvk, share) or self._held.get(gvk)
        informer = None if held is None else held.narrow or held.informer
        entry = None if informer is None else informer.store.get(namespace, name)
        return None if entry is None else entry.meta

    async def fill_parts(self, gains: int) -> None:
        """Wait until the parts of all kinds have all objects that they should have.

        `gains`: the number of gains of the selection that they must include.
        """
        async with anyio.create_task_group() as group:
            for gvk, held in self._parts.items():
                for informer in held.informers():
                    options = self.options.for_kind(self._kind_options.get(gvk))
                    reflector = partial(
                        self._reflector,
                        gvk,
                        options=options,
                        metadata_only=held.metadata_only or informer is held.narrow,
                        part=held.part,
                    )
                    group.start_soon(informer.fill, gains, partial(self._scopes_of, gvk, held), reflector)

    async def release_parts(self) -> None:
        """Free the objects that the parts do not keep any more."""
        for gvk, held in self._parts.items():
            for informer in held.informers():
                await informer.release()
            if held.namespaced is not None:
                self._follow(gvk, held, self._scopes_of(gvk, held))

    def _of_reader(self, gvk: GroupVersionKind) -> _Held | None:
        """Return what the running code reads of a kind."""
        return self._part_of(gvk, _share()) or self._held.get(gvk)

    def _part_of(self, gvk: GroupVersionKind, share: object) -> _Held | None:
        """Return what a sharded controller has of a kind, if that is a part."""
        held = None if share is None else self._parts.get(gvk)
        return held if held is not None and held.part is not None and held.part.is_of(share) else None

    def _new_namespace_informer(self, labels: LabelSelector) -> Informer:
        """Return an informer of the Namespaces with some labels, which is none of those for readers."""

        async def plan() -> Mapping[Scope, Reflector]:
            scope = Scope(labels=labels)
            return {scope: self._reflector(_NAMESPACE, scope, options=self.options, metadata_only=True)}

        return Informer(
            f"namespaces with {labels}",
            _NAMESPACE,
            plan,
            watch=self.options.watch,
            metadata_only=True,
            cluster=self._cluster,
            clock=self._clock,
            rng=self._rng,
            sleep=self._sleep,
        )

    # --- subscribers -------------------------------------------------------------------------------------------------

    async def subscribe(self, kind: type[T], *, name: str, share: object = None) -> Subscription[T]:
        """Return the events of a kind for one subscriber.

        Returns at once, even if the kind is not served yet. `share`: that of a sharded controller, which gets the events of its objects only
        (see `hold_part`).

        Raises: CacheError if the cache has stopped.
        """
        codec = self._codecs.of(kind)
        if self._was_started and self._group is None:
            raise CacheError(f"cannot subscribe {name} to {kind.__name__}: the cache has stopped")
        held = self._part_of(codec.gvk, share) or self._hold(codec.gvk)
        return self._informer(codec, held).subscribe(name, self._decoder(codec))

    def index_field(self, kind: type[Any], field: str, values: IndexFunction | None = None) -> None:
        """Index a kind by a field, so that `list(fields={field: value})` needs no scan.

        Args:
            kind: the class of the kind.
            field: a path of JSON names (`spec.nodeName`), or any name together with `values`.
            values: a function that returns the values of a decoded object.

        May be called before and after the start. An index over more than metadata makes the cache store the complete kind.

        Raises: ValueError if the index exists, or if the field needs no index.

        """
        codec = self._codecs.of(kind)
        indexes = self._hold(codec.gvk).indexes
        if field in indexes.functions:
            raise ValueError(
                f"cannot index {codec.gvk.kind} by {field}: this index exists. Call index_field once for each field"
            )
        if field in _FREE_FIELDS:
            raise ValueError(
                f"cannot index {field}: the cache can list by this field without an index. Remove this call"
            )
        extract = field_path_index(field) if values is None else self._decoding(codec, values)
        indexes.functions[field] = extract
        indexes.needs_all |= not codec.metadata_only and not (values is None and field.startswith("metadata."))
        for held in (self._held[codec.gvk], self._parts.get(codec.gvk)):
            if held is None or held.informer is None:
                continue
            if indexes.needs_all and held.metadata_only:
                self._widen(codec.gvk, held, held.informer)
            else:
                held.informer.add_index(self._index(field, extract, codec.gvk))

    # --- Reader ------------------------------------------------------------------------------------------------------

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        codec = self._codecs.of(kind)
        held, informer = self._listed(codec, kind, key) or await self._ready(codec, kind, key.namespace)
        namespace = key.namespace if held.namespaced else ""
        entry = informer.store.get(namespace, key.name)
        if entry is None and not self._is_missing(held, namespace, key.name):
            entry = await self._fetch(held, informer, namespace, key.name)
        if entry is None:
            raise not_found(codec.gvk, held.plural, namespace, key.name, informer)
        return self._decode(codec, entry.raw)

    async def get_or_none(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return the object, or None if it is missing.

        Raises: NamespaceNotCachedError if the namespace is not cached, because nothing is known of the object.
        """
        codec = self._codecs.of(kind)
        try:
            held, informer = self._listed(codec, kind, key) or await self._ready(codec, kind, key.namespace)
        except NotFound:
            return None  # its first list says so: the definition of the kind was just deleted
        namespace = key.namespace if held.namespaced else ""
        entry = informer.store.get(namespace, key.name)
        if entry is None and not self._is_missing(held, namespace, key.name):
            entry = await self._fetch(held, informer, namespace, key.name)
        if entry is not None:
            return self._decode(codec, entry.raw)
        if namespace and not informer.has_namespace(namespace):
            raise not_found(codec.gvk, held.plural, namespace, key.name, informer)
        return None

    def _is_missing(self, held: _Held, namespace: str, name: str) -> bool:
        """Return whether an object that is not in the cache does not exist, as far as the cache knows; else the server must be asked.

        Raises: ForeignShardError.
        """
        if held.part is None:
            return True
        actor = current_actor()
        assert actor is not None
        if held.part.has(actor.share, namespace, name):
            return True
        # A handler maps events for all replicas, so it may read what it will not reconcile.
        if actor.grant is not None and (error := held.part.foreign(actor.share, namespace, name)) is not None:
            raise error
        return False

    async def _fetch(self, held: _Held, informer: Informer, namespace: str, name: str) -> Entry | None:
        """Return an object from the server, or None. Raises: ForeignShardError in a reconcile, if another replica has it; CtrlError."""
        store, _ = await held.views[informer].fetch(namespace, name)
        entry = store.get(namespace, name)
        if entry is not None and held.part is not None:
            actor = current_actor()
            assert actor is not None
            if actor.grant is not None and (error := held.part.foreign_object(actor.share, entry.meta)) is not None:
                raise error
        return entry

    def _listed(self, codec: Codec[Any], kind: type[Any], key: ObjectKey) -> tuple[_Held, Informer] | None:
        """Return the informer of a kind if the namespace of the key is listed, which is the usual case; it must not cost a coroutine."""
        check_key(kind, key, self._cluster)
        held = self._of_reader(codec.gvk) if self._parts else self._held.get(codec.gvk)
        if held is None or self._group is None or held.namespaced is None:
            return None
        informer = held.reader(metadata_only=codec.metadata_only)
        return (held, informer) if informer is not None and informer.has_listed(key.namespace) else None

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str = "",
    ) -> ListResult[T]:
        """List objects.

        Field selectors must be exact and name an indexed field; `metadata.name` and `metadata.namespace` always work.

        Raises: CacheError for a continue token, a field without an index, or a namespace that is not cached.
        """
        if continue_token:
            raise CacheError(
                "cannot continue a list of the cache: it returns all objects at once. Use mgr.api_reader for pages"
            )
        codec = self._codecs.of(kind)
        held, informer = await self._ready(codec, kind, namespace or "")
        if held.part is not None:
            self._warn_of_part(codec.gvk, held.part)
        space = (namespace or "") if held.namespaced else ""
        return self._items(
            codec, held, informer, informer.store, space, labels, fields, limit, informer.resource_version(space)
        )

    def _warn_of_part(self, gvk: GroupVersionKind, part: Part) -> None:
        """Say once for each controller that its reconciles list only a part of what it reconciles. Handlers need no more."""
        actor = current_actor()
        if actor is None or actor.grant is None or actor.share in self._warned or not part.has_roots(actor.share):
            return
        self._warned.add(actor.share)
        self._log.warning(
            "list returns only the objects of this replica",
            kind=_label(gvk),
            controller=actor.controller,
            hint="mgr.api_reader lists all objects",
        )

    def _items(
        self,
        codec: Codec[T],
        held: _Held,
        informer: Informer,
        store: Store,
        space: str,
        labels: Labels | None,
        fields: Fields | None,
        limit: int | None,
        version: str,
    ) -> ListResult[T]:
        """Select from a store: the informer's own, or one filled by a live read."""
        if space and not informer.has_namespace(space):
            raise NotCachedError(outside(codec.gvk, space, informer))
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return ListResult((), codec.decode)
        entries = self._select(informer, store, codec, space, selector, fields)
        if (part := held.part) is not None and part.is_shared:
            share = _share()
            entries = [entry for entry in entries if part.keeps_for(share, entry.meta)]
        if limit:
            entries = entries[:limit]
        return ListResult(
            [entry.raw for entry in entries],
            self._decoder(codec),
            metadata=[entry.meta for entry in entries],
            resource_version=version,
        )

    def _select(
        self,
        informer: Informer,
        store: Store,
        codec: Codec[Any],
        namespace: str,
        labels: LabelSelector | None,
        fields: Fields | None,
    ) -> _Entries:
        if fields is None:
            return store.select(namespace, labels)
        if isinstance(fields, dict) and len(fields) == 1:  # what nearly every list by an index asks for
            ((path, value),) = fields.items()
            if value.__class__ is str and store.index(path) is not None:
                return store.select(namespace, labels, [(path, value)])
        names: set[str] = set()
        spaces = {namespace} if namespace else set[str]()
        indexed = _Pairs()
        for term in fields_of(fields).terms:
            if term.negated:
                raise CacheError(
                    f"cannot list from the cache by {term}: it supports only `=` in a field selector. Use mgr.api_reader"
                )
            if term.path == "metadata.name":
                names.add(term.value)
            elif term.path == "metadata.namespace":
                spaces.add(term.value)
            elif store.index(term.path) is None:
                raise CacheError(no_index(codec.gvk, term.path, informer))
            else:
                indexed.append((term.path, term.value))
        if len(names) > 1 or len(spaces) > 1:
            return []
        space = next(iter(spaces), "")
        if space and space != namespace and not informer.has_namespace(space):
            raise NotCachedError(outside(codec.gvk, space, informer))
        entries = store.select(space, labels, indexed)
        return [entry for entry in entries if not names or entry.meta.name in names]

    def reads_live(self, kind: type[Any]) -> bool:
        """Return whether a read of the kind is a live read.

        `on_missing_informer` decides this.
        """
        if self.options.on_missing_informer != "live":
            return False
        codec = self._codecs.of(kind)
        held = self._of_reader(codec.gvk)
        return held is None or held.reader(metadata_only=codec.metadata_only) is None

    # --- reads that must show own writes -----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Replace silent watches, because their connections may be dead."""
        for _, informer in self.all_informers():
            informer.refresh()

    def contents(self) -> Sequence[tuple[tuple[str, str], str]]:
        """Return the (group, kind) and namespace of everything that is cached.

        The namespace is "" for all others.
        """
        return [
            (kind, scope.namespace)
            for kind, versions in self._versions_of.items()
            for scope in {scope for held in versions for informer in held.views for scope in informer.scopes}
        ]

    def views(self, kind: tuple[str, str]) -> Sequence[KindView]:
        """Return the views of the informers of a (group, kind), in all versions.

        Empty before the cache runs.
        """
        if self._group is None:
            return ()
        return [view for held in self._versions_of.get(kind, ()) for view in held.views.values()]

    async def view(self, kind: type[Any], namespace: str) -> tuple[KindView, str]:
        """Wait until the namespace has synced; return the view and the namespace.

        The namespace is "" for a cluster-scoped kind.

        Raises: as `get`.
        """
        held, informer = await self._ready(self._codecs.of(kind), kind, namespace)
        return held.views[informer], namespace if held.namespaced else ""

    async def get_live(self, kind: type[T], key: ObjectKey) -> T:
        """Read live what `get` would return from an up-to-date cache.

        Raises: as `get`; APIStatusError, TransportError.
        """
        codec = self._codecs.of(kind)
        check_key(kind, key, self._cluster)
        held, informer = await self._ready(codec, kind, key.namespace)
        namespace = key.namespace if held.namespaced else ""
        entry = await self._fetch(held, informer, namespace, key.name)
        if entry is None:
            raise not_found(codec.gvk, held.plural, namespace, key.name, informer)
        return self._decode(codec, entry.raw)

    async def list_live(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
    ) -> ListResult[T]:
        """List live what `list` would return from an up-to-date cache. Indexes work.

        Raises: as `list`; APIStatusError, TransportError.
        """
        codec = self._codecs.of(kind)
        held, informer = await self._ready(codec, kind, namespace or "")
        space = (namespace or "") if held.namespaced else ""
        selector = None if labels is None else labels_of(labels)
        if selector is not None and selector.is_nothing:
            return ListResult((), codec.decode)
        store, version = await held.views[informer].fetch(space, labels=selector)
        return self._items(codec, held, informer, store, space, labels, fields, limit, version)

    def whole_object(self, kind: GroupVersionKind, namespace: str, name: str) -> bytes | None:
        """Return an object's JSON as the server sent it, or None.

        The JSON has no managedFields. The result is None if the object is not cached completely.

        Any cached version of the kind is used. Starts no informer.
        """
        if self._group is None:
            return None
        for held in self._versions_of.get((kind.group, kind.kind), ()):
            informer = held.informer
            if informer is not None and informer.holds_whole_objects:
                entry = informer.store.get(namespace, name)
                if entry is not None:
                    return entry.raw
        return None

    # --- parts -------------------------------------------------------------------------------------------------------

    async def _ready(self, codec: Codec[Any], kind: type[Any], namespace: str) -> tuple[_Held, Informer]:
        """Return the informer of a kind, starting it if need be, when the namespace ("" = all that are cached) is listed.

        Raises: CacheError and its subclasses.
        """
        held = self._of_reader(codec.gvk) or self._hold(codec.gvk)
        if self._group is None:
            when = "after the cache has stopped" if self._was_started else "before the cache was started"
            raise CacheNotStartedError(
                f"cannot read {kind.__name__} {when}. Outside mgr.start() read with mgr.api_reader"
            )
        if self.options.on_missing_informer != "start" and held.reader(metadata_only=codec.metadata_only) is None:
            have = "only the metadata of its objects is cached" if held.informer is not None else "it has no informer"
            raise NotCachedError(
                f"cannot read {kind.__name__}: {have} and on_missing_informer is {self.options.on_missing_informer!r}. "
                "Watch it, or read with mgr.api_reader"
            )
        if held.namespaced is None:
            # Asked first: a read of a kind that is not served fails at once and leaves no informer behind.
            resource = await self._mapper.resource_for(codec.gvk)
            self._note_scope(codec.gvk, held, namespaced=resource.namespaced, plural=resource.plural)
            assert held.namespaced is not None
        informer = self._informer(codec, held)
        space = namespace if held.namespaced else ""
        if not informer.has_listed(space):
            try:
                async with asyncio.timeout(self.options.sync_timeout):
                    await informer.wait_readable(space)
            except TimeoutError as error:
                raise CacheSyncTimeoutError(unsynced(codec.gvk, informer, self.options.sync_timeout)) from error
        return held, informer

    def _hold(self, gvk: GroupVersionKind) -> _Held:
        held = self._held.get(gvk)
        if held is None:
            held = self._held[gvk] = _Held(_Indexes())
            self._versions_of.setdefault((gvk.group, gvk.kind), []).append(held)
        return held

    def _decoder(self, codec: Codec[T]) -> Callable[[bytes], T]:
        return partial(self._decode, codec)

    def _decoding(self, codec: Codec[Any], values: IndexFunction) -> Callable[[Entry], Iterable[str]]:
        return lambda entry: values(self._decode(codec, entry.raw))

    def _decode(self, codec: Codec[T], raw: bytes) -> T:
        try:
            return codec.decode(raw)
        except DecodeError as error:
            self._note_unreadable(codec, raw, error)
            raise

    def _note_unreadable(self, codec: Codec[Any], raw: bytes, error: DecodeError) -> None:
        counter = None if self._metrics is None else self._metrics.cache(_label(codec.gvk), self._cluster)
        self._unreadable.note(codec.gvk, raw, error, counter)

    def _informer(self, codec: Codec[Any], held: _Held) -> Informer:
        """Return the informer for a reader or subscriber, new or widened if need be."""
        if held.informer is None:
            if held.part is None and codec.gvk in self._parts:
                actor = current_actor()
                self._log.info(
                    "caching all objects of a sharded kind",
                    kind=_label(codec.gvk),
                    reader="" if actor is None else actor.controller,
                    hint="a reader that is not a sharded controller of the kind needs them",
                )
            held.metadata_only = codec.metadata_only and not held.indexes.needs_all
            held.informer = self._new_informer(codec.gvk, held)
            if self._group is not None:
                self._group.start_soon(held.informer.run)
        elif held.metadata_only and not codec.metadata_only:
            self._widen(codec.gvk, held, held.informer)
        informer = held.reader(metadata_only=codec.metadata_only)
        assert informer is not None
        return informer

    def _widen(self, gvk: GroupVersionKind, held: _Held, narrow: Informer) -> None:
        """Put a full informer in the place of a metadata-only one; subscribers move over when it is synced."""
        held.metadata_only = False
        wide = held.informer = self._new_informer(gvk, held)
        if self._group is None:
            wide.adopt(narrow)
            return
        held.narrow = narrow
        self._group.start_soon(wide.run)
        self._group.start_soon(self._move_over, held, narrow, wide)

    async def _move_over(self, held: _Held, narrow: Informer, wide: Informer) -> None:
        """Hand the subscribers over once the full informer has seen all that the narrow one has told them."""
        try:
            await wide.wait_for_sync()
            while not wide.has_caught_up(narrow) and not wide.is_stopped:
                await wide.changed()
        except NotCachedError:
            return  # removed meanwhile, both of them
        if wide.is_stopped:
            return
        wide.adopt(narrow)
        held.narrow = None
        del held.views[narrow]
        narrow.stop()

    def _new_informer(self, gvk: GroupVersionKind, held: _Held) -> Informer:
        own = self._kind_options.get(gvk)
        options = self.options.for_kind(own)
        metadata_only = held.metadata_only
        label = _label(gvk) if held.part is None else f"{_label(gvk)} (share)"
        informer = Informer(
            label,
            gvk,
            lambda: self._plan(gvk, held, own, options, metadata_only=metadata_only),
            watch=options.watch,
            metadata_only=metadata_only,
            keep_managed_fields=options.keep_managed_fields,
            part=held.part,
            observer=self._observer,
            on_other_scope=lambda: self._other_scope(gvk, held),
            install_hint=lambda: f"install the CustomResourceDefinition of {gvk.kind} in group {gvk.group or 'core'}",
            metrics=None if self._metrics is None else self._metrics.cache(label, self._cluster),
            cluster=self._cluster,
            clock=self._clock,
            rng=self._rng,
            sleep=self._sleep,
        )
        if held.namespaced is not None:
            informer.expect_scope(namespaced=held.namespaced)
        for name, extract in held.indexes.functions.items():
            informer.add_index(self._index(name, extract, gvk))
        held.views[informer] = KindView(
            informer,
            lambda scope, only_metadata: self._collection(gvk, scope, metadata_only=only_metadata, verbs=("list",)),
            metadata_only=metadata_only,
            scopes=lambda: informer.scopes if informer.has_scopes else self._scopes(gvk, held),
            part=lambda: None if (found := self._parts.get(gvk)) is None else found.part,
        )
        return informer

    async def _plan(
        self,
        gvk: GroupVersionKind,
        held: _Held,
        own: ByObject | None,
        options: CacheOptions,
        *,
        metadata_only: bool,
    ) -> Mapping[Scope, Reflector]:
        resource = await self._mapper.resource_for(gvk)
        self._note_scope(gvk, held, namespaced=resource.namespaced, plural=resource.plural)
        if resource.namespaced and (own is None or own.namespaces is None):
            await self._namespaces.settled()
        try:
            scopes = self._scopes_of(gvk, held)
        except ValueError as error:
            raise ConfigError(f"the cache options of {gvk.kind}: {error}") from error
        return {
            scope: self._reflector(gvk, scope, options=options, metadata_only=metadata_only, part=held.part)
            for scope in scopes
        }

    def _reflector(
        self,
        gvk: GroupVersionKind,
        scope: Scope,
        *,
        options: CacheOptions,
        metadata_only: bool,
        part: Part | None = None,
    ) -> Reflector:
        return Reflector(
            partial(self._collection, gvk, scope, metadata_only=metadata_only, part=part),
            options=options.watch,
            clock=self._clock,
            rng=self._rng,
            sleep=self._sleep,
            forget=lambda: self._mapper.invalidate(gvk.group),
            name=_label(gvk) + (f" in {scope.namespace}" if scope.namespace else ""),
            cluster=self._cluster,
        )

    async def _collection(
        self,
        gvk: GroupVersionKind,
        scope: Scope,
        *,
        metadata_only: bool,
        verbs: tuple[str, ...] = ("list", "watch"),
        part: Part | None = None,
    ) -> Collection:
        """Return the collection of a scope. `part`: only what it keeps, as far as the API server can select it."""
        resource: APIResource = await self._mapper.resource_for(gvk)
        for held in (self._held.get(gvk), self._parts.get(gvk)):
            if held is not None:
                self._note_scope(gvk, held, namespaced=resource.namespaced, plural=resource.plural)
        for verb in verbs:
            self._observer.requesting(verb, resource, scope.namespace)
        return Collection(
            self._transport,
            resource,
            namespace=scope.namespace,
            labels="" if scope.labels is None else str(scope.labels),
            fields=scope.fields,
            shards="" if part is None else part.server_ranges(),
            metadata_only=metadata_only,
        )

    def _index(self, name: str, extract: Callable[[Entry], Iterable[str]], gvk: GroupVersionKind) -> Index:
        told: set[tuple[str, str]] = set()

        def on_failure(index: str, entry: Entry, error: Exception) -> None:
            key = (entry.meta.namespace, entry.meta.name)
            if key in told or len(told) >= MAX_TOLD:
                return
            told.add(key)
            self._log.warning(
                "index function failed", hint="the object is missing from this index, reads by key return it",
                index=index, kind=gvk.kind, object=str(entry.meta.key), error=repr(error),
            )  # fmt: skip

        return Index(name, extract, on_failure=on_failure)


@contextlib.asynccontextmanager
async def running(cache: Cache) -> AsyncGenerator[Cache]:
    """Run a cache inside a block, for tests and scripts without a manager."""
    task = asyncio.create_task(cache.run(), name="cache")
    try:
        await cache.wait_running()
        yield cache
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _share() -> object:
    actor = current_actor()
    return None if actor is None else actor.share


def _label(gvk: GroupVersionKind) -> str:
    return f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}"


def _refuse_namespaces_of_cluster_kind(kind: type[Any], own: ByObject) -> None:
    info: object = getattr(kind, "__kind_info__", None)
    if own.namespaces and isinstance(info, KindInfo) and info.scope == "Cluster":
        raise ValueError(f"{kind.__name__} is cluster-scoped: remove the namespaces from its ByObject")
