"""Predicates that operators share: pausing by annotation, kinds without a generation, and dependents of which only the wanted part counts."""

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
    """Return the key of an annotation. Raises: ValueError for what the API server would not take."""
    if label_key_problems(key.lower()):  # as for labels, but capitals may stand anywhere
        raise ValueError(f"{key!r} is not a key of an annotation: write it like example.com/paused")
    return key


def is_paused(snapshot: Snapshot[Any], key: str) -> bool:
    """Say whether an object's annotation says that it is to be left alone: 1, t, T, true, True or TRUE.

    What is neither true nor false is told in the log and does not pause: a typing error must not silence an operator.
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
    """Stops events of objects that are paused by an annotation; of an update the new object counts. Raises: ValueError for a bad key."""

    def __init__(self, key: str) -> None:
        self._key = check_key(key)

    @override
    def passes(self, event: Event[Any], /) -> bool:
        return not is_paused(_latest(event), self._key)

    def __repr__(self) -> str:
        return f"PausePredicate({self._key!r})"


class NoGenerationPredicate(Predicate[Any]):
    """Lets updates pass of kinds without a generation only; for `GenerationChangedPredicate() | NoGenerationPredicate()`."""

    @override
    def update(self, event: UpdateEvent[Any], /) -> bool:
        return not event.old_meta.generation and not event.new_meta.generation


class DependentPredicate(Predicate[Any]):
    """For what an operator makes: its own creations say nothing new, deletions do, and updates that change more than the status.

    Both versions are cut from their bytes and compared; nothing is decoded into its class.
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
