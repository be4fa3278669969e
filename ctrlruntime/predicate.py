"""Predicates: filter events before the handler, combined with `&`, `|` and `~`.

`source` calls the predicates in order and drops the event at the first that returns False. The predicates here read only metadata, so they
cost no decoding. A predicate must not await, because it runs for every event of a kind.
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
    """Returns for each type of event whether it reaches the handler.

    Override methods; other events pass.

    Raises: TypeError if a class overrides a method with an `async def`.
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
        """Return the result of the method for the type of the event."""
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
"""A predicate, or a plain function of one event of any type.

For an update, `event.meta` and `event.object` are the new state.
"""


def predicate_of(predicate: PredicateLike[T]) -> Predicate[T]:
    """Return `predicate`, or a predicate that calls the plain function.

    Raises: TypeError for anything else, and for async functions.
    """
    if isinstance(predicate, Predicate):
        return predicate
    given = cast("object", predicate)
    if isinstance(given, type):
        raise TypeError(f"a predicate is an instance, got the class {given.__name__}: write {given.__name__}()")
    if not callable(given):
        raise TypeError(f"a predicate is a Predicate or a plain function of one event, got {given!r}")
    return _Function(predicate)


class Funcs(Predicate[T]):
    """A predicate of up to four plain functions; without a function, events pass.

    Raises: TypeError for an async function.
    """

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
    """Drops updates without a change: a resync delivers the same version again."""

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return event.old_meta.resource_version != event.new_meta.resource_version


class GenerationChangedPredicate(Predicate[Any]):
    """Drops updates that do not change the spec.

    For example those of status, labels or annotations.

    They do not increase the generation. Do not use it for kinds without a generation (ConfigMap, Secret and others): it drops all their
    updates.
    """

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return event.old_meta.generation != event.new_meta.generation


class LabelChangedPredicate(Predicate[Any]):
    """Drops updates that do not change the labels."""

    def update(self, event: UpdateEvent[Any], /) -> bool:
        return (event.old_meta.labels or {}) != (event.new_meta.labels or {})


class AnnotationChangedPredicate(Predicate[Any]):
    """Drops updates that do not change the annotations.

    It reads them from the bytes, without decoding the object.
    """

    def update(self, event: UpdateEvent[Any], /) -> bool:
        old, new = event.old_snapshot, event.new_snapshot
        # Equal bytes, or an equal version, mean equal annotations: a resync costs no cut.
        if old.raw is new.raw or (old.meta.resource_version and old.meta.resource_version == new.meta.resource_version):
            return False
        return old.annotations != new.annotations


class LabelSelectorPredicate(Predicate[Any]):
    """Passes events whose object (for an update the new one) matches a label selector.

    The selector is text (`"app=web,tier in (a,b)"`), a mapping of equal values, or a parsed selector. Raises: ValueError for invalid text.
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
