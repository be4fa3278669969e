"""What happened to an object, as predicates and handlers see it.

An event holds snapshots: the object's bytes and metadata record as the informer stored them. The object itself is decoded the first time
somebody touches `object`, `old` or `new`, once for each subscription, so a predicate that reads `meta` costs no decode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata, annotations_of, metadata_of
from ctrlruntime.api.object import Object

__all__ = [
    "CreateEvent",
    "DeleteEvent",
    "Event",
    "GenericEvent",
    "Snapshot",
    "UpdateEvent",
]

T = TypeVar("T", default=Any)
Obj = TypeVar("Obj", bound=Object)


class Snapshot(Generic[T]):
    """One version of an object: its bytes, its metadata record and, from the first use on, the decoded object.

    The decoded object belongs to this subscription's predicates and handlers; change a copy. Raises on use: DecodeError.
    """

    __slots__ = ("_decode", "_object", "meta", "raw")

    def __init__(self, raw: bytes, meta: Metadata, decode: Callable[[bytes], T]) -> None:
        self.raw = raw
        self.meta = meta
        self._decode: Callable[[bytes], T] | None = decode
        self._object: T | None = None

    @property
    def object(self) -> T:
        if self._decode is not None:
            self._object = self._decode(self.raw)
            self._decode = None
        return cast("T", self._object)

    @property
    def annotations(self) -> dict[str, str]:
        return annotations_of(self.raw)

    @staticmethod
    def of(raw: bytes, decode: Callable[[bytes], T]) -> Snapshot[T]:
        """Return the snapshot of an object's JSON."""
        return Snapshot(raw, metadata_of(raw), decode)


class CreateEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object appeared. `is_in_initial_list`: it was there when the watch began."""

    snapshot: Snapshot[T]
    is_in_initial_list: bool = False

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def object(self) -> T:
        return self.snapshot.object


class UpdateEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object changed, or is shown again by a resync (then both versions are equal)."""

    old_snapshot: Snapshot[T]
    new_snapshot: Snapshot[T]

    @property
    def old_meta(self) -> Metadata:
        return self.old_snapshot.meta

    @property
    def new_meta(self) -> Metadata:
        return self.new_snapshot.meta

    @property
    def meta(self) -> Metadata:
        return self.new_snapshot.meta

    @property
    def old(self) -> T:
        return self.old_snapshot.object

    @property
    def new(self) -> T:
        return self.new_snapshot.object

    @property
    def object(self) -> T:
        return self.new_snapshot.object


class DeleteEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object is gone. `delete_state_unknown`: the deletion itself was missed, the snapshot is the last state we saw."""

    snapshot: Snapshot[T]
    delete_state_unknown: bool = False

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def object(self) -> T:
        return self.snapshot.object


class GenericEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """Something outside the API happened that concerns an object (a webhook call of a third system, a timer)."""

    snapshot: Snapshot[T]

    @staticmethod
    def of(obj: Obj) -> GenericEvent[Obj]:
        """Return the event for an object as it is now; later changes to it are not seen."""
        return GenericEvent(Snapshot.of(obj.to_json(), type(obj).from_json))

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def object(self) -> T:
        return self.snapshot.object


Event: TypeAlias = CreateEvent[T] | UpdateEvent[T] | DeleteEvent[T] | GenericEvent[T]
