"""Which events reach a handler: plain, synchronous questions about one event, combined with `&`, `|` and `~`.

Takes events from below (`event`), hands verdicts up to `source`, which asks the predicates in order before the handler and stops at the first
no. The predicates here read metadata records only, so they cost no decode. A predicate must not await: it runs once for every event of a kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, cast

from typing_extensions import TypeVar

from ctrlruntime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from ctrlruntime.frames import name_of
from ctrlruntime.selector import LabelSelector, from_labels, parse_labels

__all__ = [
    "AnnotationChangedPredicate",
    "Funcs",
    "GenerationChangedPredicate",
    "LabelChangedPredicate",
    "LabelSelectorPredicate",
    "Predicate",
    "PredicateLike",
    "ResourceVersionChangedPredicate",
    "predicate_of",
]

T = TypeVar("T", default=Any)

_METHODS = ("create", "update", "delete", "generic", "passes")


def _refuse_async(function: Any, name: str) -> None:
    call = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is looked at, not called
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise TypeError(
            f"{name} is async: a predicate must return at once. Read the cluster in a map function or in the reconciler instead"
        )


class Predicate(Generic[T]):
    """Answers, for each sort of event, whether it should reach the handler; override what you care about, the rest passes.

    Raises: TypeError, when a class overrides one of the methods with an `async def`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for method in _METHODS:
            if method in cls.__dict__:
                _refuse_async(cls.__dict__[method], f"{cls.__name__}.{method}")

    def create(self, event: CreateEvent[T], /) -> bool:
        return True

    def update(self, event: UpdateEvent[T], /) -> bool:
        return True

    def delete(self, event: DeleteEvent[T], /) -> bool:
        return True

    def generic(self, event: GenericEvent[T], /) -> bool:
        return True

    def passes(self, event: Event[T], /) -> bool:
        """Return the verdict of the method that fits the event."""
        if isinstance(event, UpdateEvent):
            return self.update(event)
        if isinstance(event, CreateEvent):
            return self.create(event)
        if isinstance(event, DeleteEvent):
            return self.delete(event)
        return self.generic(event)

    def __and__(self, other: PredicateLike[T]) -> Predicate[T]:
        return _All(self, predicate_of(other))

    def __rand__(self, other: PredicateLike[T]) -> Predicate[T]:
        return _All(predicate_of(other), self)

    def __or__(self, other: PredicateLike[T]) -> Predicate[T]:
        return _Any(self, predicate_of(other))

    def __ror__(self, other: PredicateLike[T]) -> Predicate[T]:
        return _Any(predicate_of(other), self)

    def __invert__(self) -> Predicate[T]:
        return _Not(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


PredicateLike: TypeAlias = Predicate[T] | Callable[[Event[T]], bool]
"""A predicate, or a plain function of one event (of any sort; `event.meta` and `event.object` are the new state of an update)."""


def predicate_of(predicate: PredicateLike[T]) -> Predicate[T]:
    """Return `predicate` itself, or the plain function made into one. Raises: TypeError for anything else and for async functions."""
    if isinstance(predicate, Predicate):
        return predicate
    given = cast("object", predicate)
    if isinstance(given, type):
        raise TypeError(f"a predicate is an instance, got the class {given.__name__}: write {given.__name__}()")
    if not callable(given):
        raise TypeError(f"a predicate is a Predicate or a plain function of one event, got {given!r}")
    return _Function(predicate)


class Funcs(Predicate[T]):
    """A predicate made of up to four plain functions; a missing one lets its events pass. Raises: TypeError for an async function."""

    def __init__(
        self,
        *,
        create: Callable[[CreateEvent[T]], bool] | None = None,
        update: Callable[[UpdateEvent[T]], bool] | None = None,
        delete: Callable[[DeleteEvent[T]], bool] | None = None,
        generic: Callable[[GenericEvent[T]], bool] | None = None,
    ) -> None:
        for name, function in (("create", create), ("update", update), ("delete", delete), ("generic", generic)):
            if function is not None:
                _refuse_async(function, f"Funcs({name}=…)")
        self._create = create
        self._update = update
        self._delete = delete
        self._generic = generic

    def create(self, event: CreateEvent[T], /) -> bool:
        return self._create is None or self._create(event)

    def update(self, event: UpdateEvent[T], /) -> bool:
        return self._update is None or self._update(event)

    def delete(self, event: DeleteEvent[T], /) -> bool:
        return self._delete is None or self._delete(event)

    def generic(self, event: GenericEvent[T], /) -> bool:
        return self._generic is None or self._generic(event)


class ResourceVersionChangedPredicate(Predicate[Any]):
    """Stops updates that change nothing: a resync shows the same version again."""

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return event.old_meta.resource_version != event.new_meta.resource_version


class GenerationChangedPredicate(Predicate[Any]):
    """Stops updates that leave the spec alone (status, labels, annotations): only those raise no generation.

    Not for kinds without a generation (ConfigMap, Secret and others): all their updates would be stopped.
    """

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return event.old_meta.generation != event.new_meta.generation


class LabelChangedPredicate(Predicate[Any]):
    """Stops updates that leave the labels as they were."""

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return (event.old_meta.labels or {}) != (event.new_meta.labels or {})


class AnnotationChangedPredicate(Predicate[Any]):
    """Stops updates that leave the annotations as they were (they are cut from the bytes; nothing is decoded)."""

    def update(self, event: UpdateEvent[Any], /) -> bool:
        old, new = event.old_snapshot, event.new_snapshot
        # Equal bytes, or an equal version, mean equal annotations: a resync costs no cut.
        if old.raw is new.raw or (old.meta.resource_version and old.meta.resource_version == new.meta.resource_version):
            return False
        return old.annotations != new.annotations


class LabelSelectorPredicate(Predicate[Any]):
    """Lets events pass whose object (the new one of an update) matches a label selector.

    The selector is text (`"app=web,tier in (a,b)"`), equalities as a mapping, or a parsed one. Raises: ValueError for bad text.
    """

    def __init__(self, selector: str | Mapping[str, str] | LabelSelector) -> None:
        if isinstance(selector, str):
            selector = parse_labels(selector)
        self._selector = selector if isinstance(selector, LabelSelector) else from_labels(selector)

    def passes(self, event: Event[Any], /) -> bool:
        return self._selector.matches(event.meta.labels)

    def __repr__(self) -> str:
        return f"LabelSelectorPredicate({str(self._selector)!r})"


class _Function(Predicate[T]):
    def __init__(self, function: Callable[[Event[T]], bool]) -> None:
        _refuse_async(function, name_of(function))
        self._function = function

    def passes(self, event: Event[T], /) -> bool:
        return self._function(event)

    def __repr__(self) -> str:
        return name_of(self._function)


class _All(Predicate[T]):
    def __init__(self, first: Predicate[T], second: Predicate[T]) -> None:
        self._first = first
        self._second = second

    def passes(self, event: Event[T], /) -> bool:
        return self._first.passes(event) and self._second.passes(event)

    def __repr__(self) -> str:
        return f"({self._first!r} & {self._second!r})"


class _Any(Predicate[T]):
    def __init__(self, first: Predicate[T], second: Predicate[T]) -> None:
        self._first = first
        self._second = second

    def passes(self, event: Event[T], /) -> bool:
        return self._first.passes(event) or self._second.passes(event)

    def __repr__(self) -> str:
        return f"({self._first!r} | {self._second!r})"


class _Not(Predicate[T]):
    def __init__(self, inner: Predicate[T]) -> None:
        self._inner = inner

    def passes(self, event: Event[T], /) -> bool:
        return not self._inner.passes(event)

    def __repr__(self) -> str:
        return f"~{self._inner!r}"
