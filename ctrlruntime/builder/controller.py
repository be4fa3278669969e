"""The controller builder: `new_controller_managed_by(mgr).for_(Memcached).owns(apps.Deployment).complete(reconciler)`.

It creates the parts of a controller. `Manager` lists what it uses of the manager. A mistake in one call is raised by that call; others are
raised by `build` and `complete`, before anything is registered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast, get_args, overload

from typing_extensions import TypeVar as TypeVarWithDefault
from typing_extensions import Unpack

from ctrlruntime.api import GroupVersionKind, Object, PartialObjectMetadata, Unstructured, gvk_for, kind_of
from ctrlruntime.controller import LogFields, OptionKeywords
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerDefaults, ControllerOptions
from ctrlruntime.controller.sharding import Shard
from ctrlruntime.errors import ConfigError
from ctrlruntime.event import DeleteEvent, Event
from ctrlruntime.fleet.clusters import Template
from ctrlruntime.handler import (
    Enqueue,
    EnqueueRequestForObject,
    EventHandler,
    Owners,
    enqueue_request_for_owner,
    owners_of,
)
from ctrlruntime.journal import Journal
from ctrlruntime.manager.declarations import Declarations, Watch
from ctrlruntime.metrics import Metrics
from ctrlruntime.ownership.options import ShardBy
from ctrlruntime.predicate import Predicate, PredicateLike, predicate_of
from ctrlruntime.reconcile import Reconciler, Request
from ctrlruntime.scheme import Scheme
from ctrlruntime.source import Informers, Kind, Reason, Source
from ctrlruntime.tracing import Tracing

T = TypeVar("T", bound=Object)
R = TypeVarWithDefault("R", default=Request)

On: TypeAlias = Literal["hub", "fleet", "all"]
"""Where a kind is watched: in the manager's own cluster, in all other clusters, or in both."""


class Mapper(Protocol):
    """The part of the RESTMapper that the builder uses."""

    async def is_namespaced(self, gvk: GroupVersionKind, /) -> bool: ...


class Manager(Protocol):
    """The part of the manager that a controller uses."""

    @property
    def scheme(self) -> Scheme: ...

    @property
    def mapper(self) -> Mapper: ...

    @property
    def cache(self) -> Informers: ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def tracing(self) -> Tracing | None: ...

    @property
    def controller_defaults(self) -> ControllerDefaults: ...

    @property
    def declarations(self) -> Declarations: ...

    def new_shard(self, controller: str, by: ShardBy, kind: type[Any] | None, /) -> Shard[Any] | None:
        """Return the share of a sharded controller of a kind, or None if this process reconciles everything."""
        ...

    def new_fleet_share(self, *, needs_leadership: bool) -> Shard[Any]:
        """Return the share of a controller that watches kinds in the clusters of the fleet."""
        ...

    def watch_fleet(self, controller: Controller[Any], share: Shard[Any], watches: Sequence[Template], /) -> None:
        """Watch kinds for a controller with a share of `new_fleet_share` in each cluster of the fleet, now and later."""
        ...

    def hold_part(self, kind: type[Any], shard: Shard[Any], owners: Owners | None, /) -> None:
        """Cache only the objects of a share for its controller: roots (owners None), or children by their owners."""
        ...

    def add(self, runnable: Controller[Any], /) -> None:
        """Run the controller with the manager.

        Raises: ConfigError if the manager has another one with this name.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Watched(Generic[R]):
    kind: type[Object]
    handler: EventHandler[R, Any]
    predicates: tuple[Predicate[Any], ...]
    reason: Reason = "watches"
    on: On = "hub"


@dataclass(frozen=True, slots=True)
class _Owned:
    kind: type[Object]
    match_every_owner: bool
    predicates: tuple[Predicate[Any], ...]
    on: On | None


@overload
def new_controller_managed_by(manager: Manager) -> Builder[Request]: ...
@overload
def new_controller_managed_by(manager: Manager, *, request: type[R]) -> Builder[R]: ...
def new_controller_managed_by(manager: Manager, *, request: type[Any] = Request) -> Builder[Any]:
    """Return a builder for a controller of `manager`.

    Args:
        manager: the manager that runs the controller.
        request: the class of its requests, if they are not namespace and name of an object. Such a controller has `watches` with its own
            handlers, and no `for_` or `owns`.

    Raises: ConfigError without a manager.

    """
    return Builder(manager, request=request)


class Builder(Generic[R]):
    """Collects the watches and options of a controller.

    Each method returns the builder. See `new_controller_managed_by`.
    """

    def __init__(self, manager: Manager, *, request: type[R]) -> None:
        if not hasattr(manager, "controller_defaults"):
            raise ConfigError(
                f"cannot build a controller: a manager is needed, got {manager!r}. Pass the result of ctrl.new_manager, or create a Controller "
                "without the builder"
            )
        self._manager = manager
        self._request = request
        self._for: _Watched[R] | None = None
        self._owned: list[_Owned] = []
        self._watched: list[_Watched[R]] = []
        self._sources: list[Source[R]] = []
        self._filters: list[Predicate[Any]] = []
        self._options: OptionKeywords[R] = {}
        self._name = ""
        self._is_built = False

    def for_(
        self,
        kind: type[T],
        *,
        predicates: Sequence[PredicateLike[T]] = (),
        only_metadata: bool = False,
        on: On = "hub",
    ) -> Self:
        """Reconcile objects of `kind`: each event enqueues its object.

        on: "hub": in the manager's own cluster; "fleet": in all other clusters; "all": in both. `request.cluster` says which one.

        Raises: ConfigError for a second call.
        """
        self._refuse_other_requests("for_")
        if self._for is not None:
            raise ConfigError(
                f"for_({_name(kind)}): a controller has one root kind, and this one has {_name(self._for.kind)}. "
                "Use watches() for other kinds, or build a second controller"
            )
        self._for = _Watched(
            _watched_kind(kind, "for_", only_metadata), _for_object(), _predicates(predicates), "for", _on(on)
        )
        return self

    def owns(
        self,
        kind: type[T],
        *,
        predicates: Sequence[PredicateLike[T]] = (),
        match_every_owner: bool = False,
        only_metadata: bool = False,
        on: On | None = None,
    ) -> Self:
        """Watch dependents of `kind`: an event enqueues the controller owner of the kind in `for_`.

        match_every_owner: also enqueue owners that are not the controller. on: see `for_`; None, the default, is that of `for_`.
        """
        self._refuse_other_requests("owns")
        watched = _watched_kind(kind, "owns", only_metadata)
        self._owned.append(_Owned(watched, match_every_owner, _predicates(predicates), None if on is None else _on(on)))
        return self

    def watches(
        self,
        kind: type[T],
        handler: EventHandler[R, T],
        *,
        predicates: Sequence[PredicateLike[T]] = (),
        only_metadata: bool = False,
        on: On = "hub",
    ) -> Self:
        """Watch `kind`.

        `handler` returns the requests for each event (see `ctrlruntime.handler`). on: see `for_`. The requests may be of any cluster.
        """
        watched = _watched_kind(kind, "watches", only_metadata)
        self._watched.append(_Watched(watched, handler, _predicates(predicates), on=_on(on)))
        return self

    def watches_metadata(
        self,
        kind: type[Object],
        handler: EventHandler[R, PartialObjectMetadata],
        *,
        predicates: Sequence[PredicateLike[PartialObjectMetadata]] = (),
        on: On = "hub",
    ) -> Self:
        """Watch only the metadata of `kind`; cache and handler have only metadata. on: see `for_`."""
        watched = _watched_kind(kind, "watches_metadata", True)
        self._watched.append(_Watched(watched, handler, _predicates(predicates), on=_on(on)))
        return self

    def watches_raw_source(self, source: Source[R]) -> Self:
        """Add a source (`Channel`, `Func`, or your own).

        The filters of with_event_filter do not apply to it.
        """
        self._sources.append(source)
        return self

    def with_event_filter(self, *predicates: PredicateLike[Any]) -> Self:
        """Add predicates for all watched kinds.

        They are called before the predicates of a watch.
        """
        self._filters.extend(_predicates(predicates))
        return self

    def with_options(self, **options: Unpack[OptionKeywords[R]]) -> Self:
        """Set options of the controller (see ControllerOptions).

        They override those of the manager.
        """
        unknown = set(options) - set(OptionKeywords.__annotations__)
        if unknown:
            known = ", ".join(OptionKeywords.__annotations__)
            raise ConfigError(f"unknown controller option {', '.join(sorted(unknown))}; the options are {known}")
        self._options.update(options)
        return self

    def with_log_constructor(self, log_constructor: LogFields[R]) -> Self:
        """Replace the fields of the controller's log lines.

        The function is called with None for lines without a request.
        """
        self._options["log_constructor"] = log_constructor
        return self

    def named(self, name: str) -> Self:
        """Set the name of the controller. Default: the kind in `for_`, in lower case."""
        self._name = name
        return self

    def complete(self, reconciler: Reconciler[R] | Callable[[R], Any]) -> None:
        """Build the controller and add it to the manager. Raises: as build."""
        self.build(reconciler)

    def build(self, reconciler: Reconciler[R] | Callable[[R], Any]) -> Controller[R]:
        """Build the controller, add it to the manager, and return it, to add watches later.

        Raises: ConfigError for an invalid combination, NotRegisteredError for a kind that the scheme does not have, TypeError without a
        reconciler, ValueError for an invalid option or a name in use.
        """
        name = self._checked_name()
        group, kind = ("", "") if self._for is None else _group_and_kind(self._for.kind)
        options = self._all_options(group, kind)
        is_fleet = any(each.on != "hub" for each in (self._for, *self._watched) if each is not None)
        shard = None if is_fleet else self._shard(name, options)
        share = self._fleet_share(name, options) if is_fleet else shard
        controller: Controller[R] = Controller(
            name,
            reconciler,
            options=options,
            metrics=self._manager.metrics,
            journal=self._manager.journal,
            tracing=self._manager.tracing,
            group=group,
            kind=kind,
            shard=share,
        )
        watched = self._all_watched(shard)
        sources = self._all_sources(name, shard, [each for each in watched if each.on != "fleet"])
        for source in sources:
            controller.watch(source)
        self._manager.add(controller)
        if share is not None and is_fleet:
            templates = [
                Template(each.kind, each.handler, (*self._filters, *each.predicates), each.reason)
                for each in watched
                if each.on != "hub"
            ]
            self._manager.watch_fleet(controller, share, templates)
        kinds = [source for source in sources if isinstance(source, Kind)]
        self._manager.declarations.watches += [Watch(name, each.kind, each.reason) for each in kinds]
        self._is_built = True
        return controller

    def _checked_name(self) -> str:
        if self._is_built:
            raise ConfigError(
                "cannot build: this builder has built its controller. Create another with new_controller_managed_by"
            )
        if self._for is None and not self._name:
            raise ConfigError("cannot build the controller: without for_() it has no name. Call named()")
        name = self._name or _group_and_kind(cast("_Watched[R]", self._for).kind)[1].lower()
        if self._owned and self._for is None:
            kinds = ", ".join(_name(each.kind) for each in self._owned)
            raise ConfigError(f"controller {name}: owns({kinds}) needs an owner kind. Call for_(), or use watches()")
        for each in self._owned:
            if self._for is not None and each.on not in {None, self._for.on}:
                raise ConfigError(
                    f"controller {name}: owns({_name(each.kind)}) has on={each.on!r}, and for_() has on={self._for.on!r}. An owner is in the "
                    "cluster of its child, so leave it out of owns()"
                )
        if self._for is None and not self._watched and not self._sources:
            raise ConfigError(
                f"cannot build controller {name}: it watches nothing. Call for_(), watches() or watches_raw_source()"
            )
        return name

    def _all_options(self, group: str, kind: str) -> ControllerOptions[R]:
        options: ControllerOptions[R] = self._manager.controller_defaults.options_of(group, kind)
        return replace(options, **self._options)

    def _shard(self, name: str, options: ControllerOptions[R]) -> Shard[R] | None:
        if not options.sharded:
            return None
        if self._request is not Request:
            raise ConfigError(
                f"controller {name}: sharded=True needs requests of the class Request, and it reconciles {self._request.__name__}"
            )
        return self._manager.new_shard(name, options.shard_by, None if self._for is None else self._for.kind)

    def _fleet_share(self, name: str, options: ControllerOptions[R]) -> Shard[R]:
        if options.sharded:
            raise ConfigError(
                f"controller {name}: sharded=True divides objects of the manager's own cluster, and it watches kinds with on='fleet'. "
                "Remove one of both"
            )
        if self._request is not Request:
            raise ConfigError(
                f"controller {name}: on='fleet' needs requests of the class Request, and it reconciles {self._request.__name__}"
            )
        return self._manager.new_fleet_share(needs_leadership=options.needs_leader_election)

    def _all_watched(self, shard: Shard[R] | None) -> list[_Watched[R]]:
        watched: list[_Watched[R]] = []
        if self._for is not None:
            of_shard = None if shard is None else cast("EventHandler[R, Any]", _EnqueueObjectOfShard(shard))
            watched.append(self._for if of_shard is None else replace(self._for, handler=of_shard))
            watched.extend(self._children_of(self._for))
        watched.extend(self._watched)
        for each in watched:
            self._manager.scheme.info_for(each.kind)
        return watched

    def _all_sources(self, name: str, shard: Shard[R] | None, watched: Sequence[_Watched[R]]) -> list[Source[R]]:
        whole = {gvk_for(each.kind) for each in self._watched}
        divided = [] if shard is None else [each for each in watched if gvk_for(each.kind) not in whole]
        for each in divided:
            assert shard is not None
            self._manager.hold_part(each.kind, shard, owners_of(each.handler))
        kinds: list[Source[R]] = [
            Kind(
                self._manager.cache,
                each.kind,
                each.handler,
                predicates=(*self._filters, *each.predicates),
                name=name,
                reason=each.reason,
                share=shard if each in divided else None,
            )
            for each in watched
        ]
        return [*kinds, *self._sources]

    def _children_of(self, root: _Watched[R]) -> list[_Watched[R]]:
        owner = root.kind
        ask_scope: Callable[[], Awaitable[bool]] | None = None
        if issubclass(owner, Unstructured):
            # Its class does not know where such objects live; the server does.
            owner_gvk, mapper = kind_of(owner).gvk, self._manager.mapper
            ask_scope = lambda: mapper.is_namespaced(owner_gvk)  # noqa: E731 - it is handed down as it stands
        return [
            _Watched(
                each.kind,
                cast(
                    "EventHandler[R, Any]",
                    enqueue_request_for_owner(
                        owner, is_namespaced=ask_scope, only_controller_owner=not each.match_every_owner
                    ),
                ),
                each.predicates,
                "owns",
                root.on,
            )
            for each in self._owned
        ]

    def _refuse_other_requests(self, method: str) -> None:
        if self._request is not Request:
            raise ConfigError(
                f"{method}() enqueues Request values, but this controller reconciles {self._request.__name__}. Use watches() "
                f"with a handler that enqueues {self._request.__name__} values"
            )


def _watched_kind(kind: type[Object], method: str, only_metadata: bool) -> type[Object]:
    given = cast("object", kind)
    if not isinstance(given, type):
        raise ConfigError(f"{method}() takes the class of a kind, got {given!r}; pass {type(given).__name__} itself")
    if not issubclass(given, Object):
        raise ConfigError(
            f"{method}() takes the class of a kind, and {given.__name__} is not a subclass of ctrl.Object"
        )
    if only_metadata and not issubclass(kind, PartialObjectMetadata):
        return PartialObjectMetadata.of(kind)
    return kind


def _on(on: On) -> On:
    if on not in get_args(On):
        raise ConfigError(f"on is {on!r}; give 'hub', 'fleet' or 'all'")
    return on


def _for_object() -> EventHandler[Any, Any]:
    return EnqueueRequestForObject()


class _EnqueueObjectOfShard(EnqueueRequestForObject):
    """The same for a share of the objects, which must know where a deleted object belonged to."""

    def __init__(self, shard: Shard[Any]) -> None:
        self._shard = shard

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> None:
        if isinstance(event, DeleteEvent):
            self._shard.deleted(event.meta)
        super().handle(event, enqueue)


def _predicates(predicates: Sequence[PredicateLike[Any]]) -> tuple[Predicate[Any], ...]:
    return tuple(predicate_of(predicate) for predicate in predicates)


def _group_and_kind(kind: type[Object]) -> tuple[str, str]:
    info = kind_of(kind)
    return info.group, info.kind


def _name(kind: type[Any]) -> str:
    return getattr(kind, "__name__", repr(kind))
