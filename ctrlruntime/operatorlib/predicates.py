"""Predicates: pausing by annotation, kinds without a generation, and dependents."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.event import CreateEvent, DeleteEvent, Event, GenericEvent, Snapshot, UpdateEvent
from ctrlruntime.predicate import Predicate
from ctrlruntime.selector import label_key_problems

__all__ = ["DependentPredicate", "NoGenerationPredicate", "PausePredicate", "is_paused"]

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def check_key(key: str) -> str:
    """Return the key of an annotation. Raises: ValueError for an invalid key."""
    if label_key_problems(key.lower()):  # as for labels, but capitals may stand anywhere
        raise ValueError(f"{key!r} is not a key of an annotation: write it like example.com/paused")
    return key


def is_paused(snapshot: Snapshot[Any], key: str) -> bool:
    """Return whether an object's annotation pauses it: 1, t, T, true, True or TRUE.

    A value that is neither true nor false is logged and does not pause, so that a typing error does not stop an operator.
    """
    value = snapshot.annotations.get(key, "")
    if value and value not in _TRUE | _FALSE:
        meta = snapshot.meta
        log.get_logger("pause").warning(
            "annotation is neither true nor false",
            annotation=key,
            value=value,
            namespace=meta.namespace,
            name=meta.name,
        )
    return value in _TRUE


class PausePredicate(Predicate[Any]):
    """Drops events of objects that an annotation pauses.

    For an update, the annotation of the new object counts.

    Raises: ValueError for an invalid key.
    """

    def __init__(self, key: str) -> None:
        self._key = check_key(key)

    @override
    def passes(self, event: Event[Any], /) -> bool:
        return not is_paused(_latest(event), self._key)

    def __repr__(self) -> str:
        return f"PausePredicate({self._key!r})"


class NoGenerationPredicate(Predicate[Any]):
    """Passes only updates of kinds without a generation.

    Use it as `GenerationChangedPredicate() | NoGenerationPredicate()`.
    """

    @override
    def update(self, event: UpdateEvent[Any], /) -> bool:
        return not event.old_meta.generation and not event.new_meta.generation


class DependentPredicate(Predicate[Any]):
    """A predicate for objects that an operator creates.

    It drops their creation and updates of only the status. It passes deletions and other updates.

    Both versions are compared as JSON, without decoding into a class.
    """

    @override
    def create(self, event: CreateEvent[Any], /) -> bool:
        return False

    @override
    def delete(self, event: DeleteEvent[Any], /) -> bool:
        return True

    @override
    def update(self, event: UpdateEvent[Any], /) -> bool:
        old, new = event.old_snapshot, event.new_snapshot
        return old.raw is not new.raw and _wanted(old.raw) != _wanted(new.raw)

    @override
    def generic(self, event: GenericEvent[Any], /) -> bool:
        return False


def _latest(event: Event[Any]) -> Snapshot[Any]:
    return event.new_snapshot if isinstance(event, UpdateEvent) else event.snapshot


def _wanted(raw: bytes) -> dict[str, Any]:
    """Return an object without what the cluster says of it."""
    tree: dict[str, Any] = msgspec.json.decode(raw)
    metadata: dict[str, Any] = {**tree.get("metadata", {})}
    for name in ("resourceVersion", "managedFields", "generation"):
        metadata.pop(name, None)
    return {**{name: value for name, value in tree.items() if name != "status"}, "metadata": metadata}
