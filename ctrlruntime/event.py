"""Events of objects for predicates and handlers.

An event has snapshots: the bytes and the metadata of the object, as the informer stored them. The object is decoded on the first use of
`object`, `old` or `new`, once for each subscription. A predicate that reads only `meta` costs no decoding.
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
    """One version of an object: its bytes and its metadata.

    It keeps the decoded object after the first use.

    The decoded object is shared by the predicates and handlers of a subscription, so change only a copy. Raises on use: DecodeError.
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
        """The annotations; read from the bytes, without decoding the object."""
        return annotations_of(self.raw)

    @staticmethod
    def of(raw: bytes, decode: Callable[[bytes], T]) -> Snapshot[T]:
        """Return the snapshot of an object's JSON."""
        return Snapshot(raw, metadata_of(raw), decode)


class CreateEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was created. `is_in_initial_list`: it existed when the watch started."""

    snapshot: Snapshot[T]
    is_in_initial_list: bool = False

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations; read from the bytes, without decoding the object."""
        return self.snapshot.annotations

    @property
    def object(self) -> T:
        return self.snapshot.object


class UpdateEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object was updated, or a resync delivers it again.

    After a resync both versions are equal.
    """

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
    def annotations(self) -> dict[str, str]:
        """The new annotations; read from the bytes, without decoding the object."""
        return self.new_snapshot.annotations

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
    """An object was deleted."""

    snapshot: Snapshot[T]
    delete_state_unknown: bool = False
    """The deletion event was missed, and the snapshot is the last known state."""

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations; read from the bytes, without decoding the object."""
        return self.snapshot.annotations

    @property
    def object(self) -> T:
        return self.snapshot.object


class GenericEvent(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An event for an object from outside the API.

    For example a call of another system, or a timer.
    """

    snapshot: Snapshot[T]

    @staticmethod
    def of(obj: Obj) -> GenericEvent[Obj]:
        """Return the event for an object in its current state.

        Later changes of the object have no effect.
        """
        return GenericEvent(Snapshot.of(obj.to_json(), type(obj).from_json))

    @property
    def meta(self) -> Metadata:
        return self.snapshot.meta

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations; read from the bytes, without decoding the object."""
        return self.snapshot.annotations

    @property
    def object(self) -> T:
        return self.snapshot.object


Event: TypeAlias = CreateEvent[T] | UpdateEvent[T] | DeleteEvent[T] | GenericEvent[T]
