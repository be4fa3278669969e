"""`set` fields that keep the order of the list they were read from.

JSON has no sets, only lists. The order of a list belongs to the user and is written as it was read. New items follow in the order of their
JSON text, so that each process writes the same list.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, cast

from pydantic_core import core_schema
from typing_extensions import override

__all__ = ["OrderedFrozenSet", "OrderedSet", "in_order_of", "items_of", "ordered_like", "remembering"]

T = TypeVar("T")


class OrderedSet(set[T], Generic[T]):
    """A set that keeps the order in which its items were read.

    Sets that operators create from it are plain.
    """

    __slots__ = ("order",)

    def __init__(self, items: Iterable[T] = (), order: Iterable[T] | None = None) -> None:
        found = tuple(items)
        super().__init__(found)
        self.order = found if order is None else tuple(order)

    @override
    def copy(self) -> OrderedSet[T]:
        return OrderedSet(self, self.order)

    def __copy__(self) -> OrderedSet[T]:
        return self.copy()

    def __deepcopy__(self, memo: object) -> OrderedSet[T]:
        return self.copy()  # items are hashable, so they do not change

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedSet, (tuple(self), self.order)


class OrderedFrozenSet(frozenset[T], Generic[T]):
    """Like `OrderedSet`, for a `frozenset`."""

    __slots__ = ("order",)
    order: tuple[T, ...]

    def __new__(cls, items: Iterable[T] = (), order: Iterable[T] | None = None) -> OrderedFrozenSet[T]:
        found = tuple(items)
        made = super().__new__(cls, found)
        made.order = found if order is None else tuple(order)
        return made

    def __copy__(self) -> OrderedFrozenSet[T]:
        return self

    def __deepcopy__(self, memo: object) -> OrderedFrozenSet[T]:
        return self

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedFrozenSet, (tuple(self), self.order)


def ordered_like(values: set[T] | frozenset[T], order: Sequence[T]) -> set[T] | frozenset[T]:
    """Return the same set with the order of another one."""
    made = OrderedFrozenSet if isinstance(values, frozenset) else OrderedSet
    return made(values, order)


def items_of(values: Collection[Any], write: Callable[[Any], Any]) -> list[Any]:
    """Return the JSON values of a set, encoded with `write`: first the items that were read, in their order, then the others."""
    known = {value: write(value) for value in getattr(values, "order", ()) if value in values}
    return [*known.values(), *sorted((write(value) for value in values if value not in known), key=_text)]


def in_order_of(before: Iterable[Any], after: Iterable[Any]) -> list[Any]:
    """Return the JSON values of a set, those in `before` first and in its order."""
    left = {_text(item): item for item in after}
    return [*(left.pop(text) for text in map(_text, before) if text in left), *left.values()]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def remembering(schema: dict[str, Any]) -> None:
    """Change the core schema of a field in place: each set in it keeps the order in which it is read."""
    kind = schema.get("type")
    if kind in _MADE:
        items = schema.get("items_schema") or core_schema.any_schema()
        lengths = {name: schema[name] for name in ("min_length", "max_length") if name in schema}
        members = cast("core_schema.CoreSchema", {"type": kind, "items_schema": core_schema.any_schema(), **lengths})
        as_set = core_schema.no_info_wrap_validator_function(functools.partial(_from_list, _MADE[kind]), members)
        in_order = core_schema.no_info_before_validator_function(_in_its_order, core_schema.list_schema(items))
        # The strict half says how pydantic itself dumps the field.
        written = core_schema.lax_or_strict_schema(as_set, cast("core_schema.CoreSchema", dict(schema)))
        schema.clear()
        schema.update(core_schema.chain_schema([in_order, written]))
        return
    for word in _INSIDE:
        inner = schema.get(word)
        if isinstance(inner, dict):
            remembering(cast("dict[str, Any]", inner))
    for choice in schema.get("choices") or ():
        inner = choice[0] if isinstance(choice, tuple) else choice
        if isinstance(inner, dict):
            remembering(cast("dict[str, Any]", inner))


_MADE: Final[Mapping[Any, Any]] = {"set": OrderedSet, "frozenset": OrderedFrozenSet}
_INSIDE: Final = ("schema", "items_schema", "values_schema")


def _in_its_order(value: Any) -> Any:
    return items_of(cast("set[Any]", value), lambda item: item) if isinstance(value, (set, frozenset)) else value


def _from_list(made: Callable[..., Any], value: list[Any], handler: Callable[[Any], Any]) -> Any:
    return made(handler(value), value)
