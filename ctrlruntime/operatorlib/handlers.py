"""Event handlers: owners in annotations, paused objects, and a metric for each object."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from prometheus_client import CollectorRegistry, Gauge
from typing_extensions import TypeVar

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.api.object import Object, gvk_for, object_key
from ctrlruntime.event import DeleteEvent, Event, Snapshot, UpdateEvent
from ctrlruntime.handler import Enqueue, EnqueueRequestForObject, EventHandler
from ctrlruntime.operatorlib.predicates import check_key, is_paused
from ctrlruntime.reconcile import Request

__all__ = [
    "OWNER",
    "OWNER_TYPE",
    "InstrumentedEnqueueRequestForObject",
    "enqueue_request_for_annotation",
    "pausable",
    "set_owner_annotations",
]

T = TypeVar("T", default=Any)
R = TypeVar("R", default=Request)

OWNER: Final = "operator-sdk/primary-resource"
"""The annotation with the owner's `namespace/name`, or `name` of a cluster-scoped owner."""

OWNER_TYPE: Final = "operator-sdk/primary-resource-type"
"""The annotation with the owner's `Kind.group`."""


def set_owner_annotations(owner: Object, obj: Object) -> None:
    """Set `owner` in the annotations of `obj`, in any namespace, or cluster-scoped.

    Kubernetes does not delete `obj` with its owner: add a finalizer to the owner. These annotations are those of operator-lib, for clusters
    that already have them. Otherwise use `ctrl.controllerutil.set_tracked_owner`, which also sets a label for listing.

    Raises:
        ValueError: The owner has no name.

    """
    if not owner.metadata.name:
        raise ValueError(f"a {gvk_for(owner).kind} without a name cannot be named as an owner: create it first")
    obj.metadata.annotations[OWNER] = str(object_key(owner))
    obj.metadata.annotations[OWNER_TYPE] = _type_of(gvk_for(owner))


def enqueue_request_for_annotation(owner: type[Object]) -> EventHandler[Request, Any]:
    """Return a handler that enqueues the owner in an object's annotations.

    For an update it enqueues the old and the new owner.
    """
    return _Annotated(owner)


class _Annotated:
    def __init__(self, owner: type[Object]) -> None:
        self._type = _type_of(gvk_for(owner))

    def __repr__(self) -> str:
        return f"enqueue_request_for_annotation({self._type})"

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> None:
        states = [event.old_snapshot, event.new_snapshot] if isinstance(event, UpdateEvent) else [event.snapshot]
        for request in dict.fromkeys(self._owner(state, enqueue.cluster) for state in states):
            if request is not None:
                enqueue(request)

    def _owner(self, state: Snapshot[Any], cluster: str) -> Request | None:
        annotations = state.annotations
        if annotations.get(OWNER_TYPE) != self._type:
            return None
        namespace, _, name = annotations.get(OWNER, "").rpartition("/")
        return Request(namespace, name, cluster) if name and "/" not in namespace else None


def _type_of(kind: GroupVersionKind) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def pausable(handler: EventHandler[R, T], annotation: str) -> EventHandler[R, T]:
    """Return a handler that skips objects whose annotation is true.

    Raises: ValueError for an invalid key.

    If the annotation is changed, this update enqueues the object.
    """
    return _Pausable(handler, check_key(annotation))


class _Pausable(EventHandler[R, T]):
    def __init__(self, handler: EventHandler[R, T], annotation: str) -> None:
        self._handler = handler
        self._annotation = annotation

    def __repr__(self) -> str:
        return f"pausable({self._handler!r}, {self._annotation!r})"

    def handle(self, event: Event[T], enqueue: Enqueue[R], /) -> Awaitable[None] | None:
        state = event.new_snapshot if isinstance(event, UpdateEvent) else event.snapshot
        return None if is_paused(state, self._annotation) else self._handler.handle(event, enqueue)


class InstrumentedEnqueueRequestForObject(EnqueueRequestForObject):
    """Enqueues the object, and exports its creation time as a metric.

    The metric `resource_created_at_seconds` exists until the object is deleted.

    `registry` is the manager's (`mgr.metrics.registry`). Two handlers with one registry share the metric.
    """

    def __init__(self, kind: type[Object], registry: CollectorRegistry) -> None:
        self._kind = gvk_for(kind)
        self._gauge = _gauge(registry)

    def handle(self, event: Event[Any], enqueue: Enqueue[Request], /) -> None:
        labels = self._labels(event.meta)
        if isinstance(event, DeleteEvent):
            with contextlib.suppress(KeyError):  # of an object that was never seen
                self._gauge.remove(*labels)
        elif (created := _created(event)) is not None:
            self._gauge.labels(*labels).set(created)
        super().handle(event, enqueue)

    def _labels(self, meta: Metadata) -> tuple[str, ...]:
        return meta.name, meta.namespace, self._kind.group, self._kind.version, self._kind.kind


_GAUGES: Final[WeakKeyDictionary[CollectorRegistry, Gauge]] = WeakKeyDictionary()


def _gauge(registry: CollectorRegistry) -> Gauge:
    gauge = _GAUGES.get(registry)
    if gauge is None:
        gauge = _GAUGES[registry] = Gauge(
            "resource_created_at_seconds",
            "When an object was created, in seconds since 1970.",
            ["name", "namespace", "group", "version", "kind"],
            registry=registry,
        )
    return gauge


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    creation_timestamp: datetime | None = None


class _Created(msgspec.Struct, gc=False):
    metadata: _Metadata


_decode_created = msgspec.json.Decoder(_Created).decode


def _created(event: Event[Any]) -> float | None:
    state = event.new_snapshot if isinstance(event, UpdateEvent) else event.snapshot
    created = _decode_created(state.raw).metadata.creation_timestamp
    return None if created is None else created.timestamp()
