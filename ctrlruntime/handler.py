"""Event handlers: map an event to requests.

A handler decides *which* requests to enqueue. `source` sets priority and trigger, and calls a handler again for an event if it fails, so a
handler must not count its calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, Protocol, TypeAlias, cast

from typing_extensions import TypeVar

from ctrlruntime.api import Object, gvk_for, kind_of
from ctrlruntime.api.metadata import Metadata, NamespacedName, OwnerRecord
from ctrlruntime.errors import CtrlError
from ctrlruntime.event import CreateEvent, DeleteEvent, Event, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.frames import name_of
from ctrlruntime.reconcile import Request
from ctrlruntime.tracking import tracked_owner, tracking_label

__all__ = [
    "Enqueue",
    "EnqueueRequestForObject",
    "EventHandler",
    "Funcs",
    "enqueue_request_for_owner",
    "enqueue_request_for_tracked_owner",
    "enqueue_requests_from_map_func",
]

T = TypeVar("T", default=Any)
R = TypeVar("R", default=Request)
R_co = TypeVar("R_co", covariant=True, default=Request)
R_contra = TypeVar("R_contra", contravariant=True, default=Request)


class Enqueue(Protocol[R_contra]):
    """Adds a request to the controller's queue.

    priority: None lets the source decide: low for the initial list and for updates without a change.
    after: a delay in seconds.
    cluster: the cluster of the event ("" is the manager's own).
    """

    @property
    def cluster(self) -> str: ...

    def __call__(self, request: R_contra, /, *, priority: int | None = None, after: float = 0.0) -> None: ...


class EventHandler(Protocol[R_co, T]):
    """Maps an event to requests.

    A plain method must not block the event loop; it may return an awaitable.
    """

    def handle(self, event: Event[T], enqueue: Enqueue[R_co], /) -> Awaitable[None] | None: ...


MapFunction: TypeAlias = Callable[[T], Awaitable[Iterable[R] | None] | Iterable[R] | None]
"""Returns the requests for an object.

Plain or async; it may read the client. None is the same as no requests.
"""


class EnqueueRequestForObject:
    """Enqueues the object of the event.

    It decodes nothing, so an object that does not match its class is enqueued too.
    """

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> None:
        meta = event.meta
        enqueue(Request(meta.namespace, meta.name, enqueue.cluster))

    def __repr__(self) -> str:
        return "EnqueueRequestForObject()"


def enqueue_requests_from_map_func(function: MapFunction[T, R]) -> EventHandler[R, T]:
    """Return a handler that enqueues what `function` returns.

    `function` maps the object of an event to requests.

    For an update, the function is called with the old and with the new state. The same request is enqueued once for each event. If the
    function raises for one state, the requests of the other are still enqueued.
    """
    if not callable(function):
        raise TypeError(f"a map function takes an object and returns requests, got {function!r}")
    return _Mapped(function)


def enqueue_request_for_owner(
    owner: type[Object],
    *,
    is_namespaced: Callable[[], Awaitable[bool]] | None = None,
    only_controller_owner: bool = False,
) -> EventHandler[Request, Any]:
    """Return a handler that enqueues the owners of kind `owner`.

    They are those in the ownerReferences of an object, in any version of the kind.

    As in controller-runtime, the uid of the reference is ignored. A dependent of an earlier owner of the same name enqueues the current
    one, whose reconciler can compare uids with `has_owner`.

    Args:
        owner: the class of the owner kind.
        is_namespaced: returns whether the owner kind is namespaced; called until it returns. None: according to the class.
        only_controller_owner: ignore owners that are not the controller.

    Raises: NotRegisteredError if `owner` is not a kind.

    """
    return _Owner(owner, is_namespaced, only_controller_owner=only_controller_owner)


class Owners(Protocol):
    """Finds the owners of an object in its metadata."""

    def owners(self, meta: Metadata, /) -> list[Request]: ...

    def owner_uids(self, meta: Metadata, /) -> list[str]: ...


def owners_of(handler: EventHandler[Any, Any]) -> Owners | None:
    """Return how the owners of an object are found, if `handler` is one of `enqueue_request_for_owner`."""
    return handler if isinstance(handler, _Owner) else None


def enqueue_request_for_tracked_owner(owner: type[Object]) -> EventHandler[Request, Any]:
    """Return a handler that enqueues the tracked owner of an object.

    `set_tracked_owner` sets it. It can be in any namespace.

    Raises: NotRegisteredError if `owner` is not a kind.
    """
    return _TrackedOwner(owner)


class Funcs(Generic[T, R]):
    """A handler of up to four functions `(event, enqueue)`, plain or async.

    Events without a function are ignored.
    """

    def __init__(
        self,
        *,
        create: Callable[[CreateEvent[T], Enqueue[R]], Awaitable[None] | None] | None = None,
        update: Callable[[UpdateEvent[T], Enqueue[R]], Awaitable[None] | None] | None = None,
        delete: Callable[[DeleteEvent[T], Enqueue[R]], Awaitable[None] | None] | None = None,
        generic: Callable[[GenericEvent[T], Enqueue[R]], Awaitable[None] | None] | None = None,
    ) -> None:
        self._create = create
        self._update = update
        self._delete = delete
        self._generic = generic

    def handle(self, event: Event[T], enqueue: Enqueue[R], /) -> Awaitable[None] | None:
        if isinstance(event, UpdateEvent):
            return self._update(event, enqueue) if self._update is not None else None
        if isinstance(event, CreateEvent):
            return self._create(event, enqueue) if self._create is not None else None
        if isinstance(event, DeleteEvent):
            return self._delete(event, enqueue) if self._delete is not None else None
        return self._generic(event, enqueue) if self._generic is not None else None


class _Mapped(EventHandler[R, T]):
    def __init__(self, function: MapFunction[T, R]) -> None:
        self._function = function

    def __repr__(self) -> str:
        return f"enqueue_requests_from_map_func({name_of(self._function)})"

    def handle(self, event: Event[T], enqueue: Enqueue[R], /) -> Awaitable[None] | None:
        states = _states(event)
        seen: set[R] = set()
        failure: Exception | None = None
        for position, state in enumerate(states):
            try:
                outcome = self._function(state.object)
                if inspect.isawaitable(outcome):
                    return self._finish(outcome, states[position + 1 :], enqueue, seen, failure)
                self._enqueue_all(outcome, enqueue, seen)
            except Exception as error:  # noqa: BLE001 - the other state's requests come first, then it is raised
                failure = failure or error
        if failure is not None:
            raise failure
        return None

    async def _finish(
        self,
        awaitable: Awaitable[Iterable[R] | None],
        states: tuple[Snapshot[T], ...],
        enqueue: Enqueue[R],
        seen: set[R],
        failure: Exception | None,
    ) -> None:
        try:
            self._enqueue_all(await awaitable, enqueue, seen)
        except Exception as error:  # noqa: BLE001 - as above
            failure = failure or error
        for state in states:
            try:
                outcome = self._function(state.object)
                self._enqueue_all(await outcome if inspect.isawaitable(outcome) else outcome, enqueue, seen)
            except Exception as error:  # noqa: BLE001 - as above
                failure = failure or error
        if failure is not None:
            raise failure

    def _enqueue_all(self, requests: Iterable[R] | None, enqueue: Enqueue[R], seen: set[R]) -> None:
        if requests is None:
            return
        if isinstance(requests, (str, bytes)) or not isinstance(cast("object", requests), Iterable):
            raise TypeError(
                f"the map function {name_of(self._function)} returned {requests!r}: return an iterable of requests, or None"
            )
        for request in requests:
            if request not in seen:
                seen.add(request)
                enqueue(request)


class _Owner:
    def __init__(
        self, owner: type[Object], ask_scope: Callable[[], Awaitable[bool]] | None, *, only_controller_owner: bool
    ) -> None:
        kind = kind_of(owner)
        self._group = kind.group
        self._kind = kind.kind
        self._is_namespaced = kind.scope == "Namespaced"
        self._ask_scope = ask_scope
        self._has_asked = False
        self._only_controller = only_controller_owner

    def __repr__(self) -> str:
        return f"enqueue_request_for_owner({self._kind}{f'.{self._group}' if self._group else ''})"

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> Awaitable[None] | None:
        if self._ask_scope is not None:
            return self._ask_and_handle(self._ask_scope, event, enqueue)
        self._handle(event, enqueue)
        return None

    def _handle(self, event: Event[Any], enqueue: Enqueue[Request]) -> None:
        if isinstance(event, UpdateEvent):
            old = self._owners(event.old_meta, enqueue.cluster)
            new = self._owners(event.new_meta, enqueue.cluster)
            # Nearly always the same one owner: joining is only for a child that changes hands.
            requests = new if old == new else list(dict.fromkeys((*old, *new)))
        else:
            requests = self._owners(event.meta, enqueue.cluster)
        for request in requests:
            enqueue(request)

    async def _ask_and_handle(
        self, ask_scope: Callable[[], Awaitable[bool]], event: Event[Any], enqueue: Enqueue[Request]
    ) -> None:
        # For each event: the definition may be replaced by one of another scope. Most answers are remembered ones.
        try:
            self._is_namespaced = await ask_scope()
        except CtrlError:
            if not self._has_asked:
                raise
        self._has_asked = True
        self._handle(event, enqueue)

    def _owners(self, meta: Metadata, cluster: str) -> list[Request]:
        if not meta.owner_references:
            return []
        namespace = meta.namespace if self._is_namespaced else ""
        return [Request(namespace, name, cluster) for name in self._names(meta)]

    def _names(self, meta: Metadata) -> list[str]:
        return [reference.name for reference in meta.owner_references or () if self._is_owner(reference)]

    def _is_owner(self, reference: OwnerRecord) -> bool:
        return (
            reference.kind == self._kind
            and (reference.controller or not self._only_controller)
            # The version is left out on purpose: a child made through another version still has the same owner.
            and reference.api_version.rpartition("/")[0] == self._group
        )

    def owner_uids(self, meta: Metadata) -> list[str]:
        """Return the uids of the owners of an object."""
        return [reference.uid for reference in meta.owner_references or () if self._is_owner(reference)]

    def owners(self, meta: Metadata) -> list[Request]:
        """Return the owners of an object, with and without its namespace if that is not known."""
        names = self._names(meta)
        if not names:
            return []
        namespaces = (
            (meta.namespace, "") if self._ask_scope is not None else (meta.namespace if self._is_namespaced else "",)
        )
        return [Request(namespace, name) for namespace in namespaces for name in names]


class _TrackedOwner:
    def __init__(self, owner: type[Object]) -> None:
        self._kind = gvk_for(owner)
        self._label = tracking_label(self._kind)

    def __repr__(self) -> str:
        return (
            f"enqueue_request_for_tracked_owner({self._kind.kind}{f'.{self._kind.group}' if self._kind.group else ''})"
        )

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> None:
        owners = dict.fromkeys(self._owner(state) for state in _states(event))
        for owner in owners:
            if owner is not None:
                enqueue(Request(owner.namespace, owner.name, enqueue.cluster))

    def _owner(self, state: Snapshot[Any]) -> NamespacedName | None:
        # The label is in the metadata record; only of an object that bears it are the annotations cut out.
        if self._label not in (state.meta.labels or {}):
            return None
        return tracked_owner(self._kind, state.annotations)


def _states(event: Event[T]) -> tuple[Snapshot[T], ...]:
    if isinstance(event, UpdateEvent):
        old, new = event.old_snapshot, event.new_snapshot
        # A resync shows one state twice; mapping it once is enough.
        return (new,) if old.raw is new.raw else (old, new)
    return (event.snapshot,)
