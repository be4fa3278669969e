"""The libraries of lists, sets and optional values."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from typing import Any

from ctrlruntime.cel.failures import CostError, EvaluationError
from ctrlruntime.cel.functions import Declared
from ctrlruntime.cel.library.standard import find_key, unsigned, whole
from ctrlruntime.cel.values import NOTHING, Duration, Optional, UInt, contains, equal, show

_LONGEST_RANGE = 1_000_000
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def declared() -> Iterator[Declared]:
    """Yield the functions of lists, sets and optionals."""
    yield from _lists()
    yield from _sets()
    yield from _optionals()


def _lists() -> Iterator[Declared]:
    for kind in _ORDERED:
        yield Declared("isSorted", f"list({kind}).() -> bool", _is_sorted)
        yield Declared("min", f"list({kind}).() -> {kind}", lambda items: _extreme(items, "min"))
        yield Declared("max", f"list({kind}).() -> {kind}", lambda items: _extreme(items, "max"))
        yield Declared("sort", f"list({kind}).() -> list({kind})", sorted)
        yield Declared("@sortByAssociatedKeys", f"list(T).(list({kind})) -> list(T)", _sort_by)
    yield Declared("sum", "list(int).() -> int", lambda items: whole(sum(items)))
    yield Declared("sum", "list(uint).() -> uint", lambda items: unsigned(sum(items)))
    yield Declared("sum", "list(double).() -> double", lambda items: float(reduce(operator.add, items, 0.0)))
    yield Declared("sum", "list(duration).() -> duration", lambda items: Duration(sum(i.nanoseconds for i in items)))
    yield Declared("indexOf", "list(T).(T) -> int", lambda items, wanted: _find(items, wanted, range(len(items))))
    yield Declared("lastIndexOf", "list(T).(T) -> int",
                   lambda items, wanted: _find(items, wanted, range(len(items) - 1, -1, -1)))  # fmt: skip
    yield Declared("slice", "list(T).(int, int) -> list(T)", _slice)
    yield Declared("flatten", "list(list(T)).() -> list(T)", lambda items: _flatten(items, 1))
    yield Declared("flatten", "list(dyn).(int) -> list(dyn)", _flatten)
    yield Declared("distinct", "list(T).() -> list(T)", _distinct)
    yield Declared("reverse", "list(T).() -> list(T)", lambda items: items[::-1])
    yield Declared("lists.range", "(int) -> list(int)", _range)
    yield Declared("cel.@mapInsert", "(map(K, V), K, V) -> map(K, V)", _insert)
    yield Declared("cel.@mapInsert", "(map(K, V), map(K, V)) -> map(K, V)", _merge)
    yield Declared("first", "list(T).() -> optional(T)", lambda items: Optional(items[0]) if items else NOTHING)
    yield Declared("last", "list(T).() -> optional(T)", lambda items: Optional(items[-1]) if items else NOTHING)


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in pairwise(items))


def _extreme(items: list[Any], name: str) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    return min(items) if name == "min" else max(items)


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    order = sorted(range(len(items)), key=keys.__getitem__)
    return [items[index] for index in order]


def _range(count: int) -> list[int]:
    if count > _LONGEST_RANGE:
        raise CostError("operation cancelled: actual cost limit exceeded")
    return list(range(count))


def _find(items: list[Any], wanted: Any, order: range) -> int:
    return next((index for index in order if equal(items[index], wanted)), -1)


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth:
            flat.extend(_flatten(item, depth - 1))
        else:
            flat.append(item)
    return flat


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if not contains(kept, item):
            kept.append(item)
    return kept


def _insert(items: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if find_key(items, key) is not None:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    return {**items, key: value}


def _merge(items: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        items = _insert(items, key, value)
    return items


def _sets() -> Iterator[Declared]:
    yield Declared("sets.contains", "(list(T), list(T)) -> bool", _holds_all)
    yield Declared("sets.equivalent", "(list(T), list(T)) -> bool",
                   lambda left, right: _holds_all(left, right) and _holds_all(right, left))  # fmt: skip
    yield Declared("sets.intersects", "(list(T), list(T)) -> bool",
                   lambda left, right: any(contains(left, item) for item in right))  # fmt: skip


def _holds_all(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


def _optionals() -> Iterator[Declared]:
    yield Declared("optional.of", "(V) -> optional(V)", Optional)
    yield Declared("optional.ofNonZeroValue", "(V) -> optional(V)", lambda v: NOTHING if _is_zero(v) else Optional(v))
    yield Declared("optional.none", "() -> optional(V)", lambda: NOTHING)
    yield Declared("optional.unwrap", "(list(optional(V))) -> list(V)", _unwrap)
    yield Declared("unwrapOpt", "list(optional(V)).() -> list(V)", _unwrap)
    yield Declared("hasValue", "optional(V).() -> bool", lambda value: value.present)
    yield Declared("value", "optional(V).() -> V", lambda value: value.value())
    yield Declared(
        "or", "optional(V).(optional(V)) -> optional(V)", lambda value, other: value if value.present else other
    )
    yield Declared("orValue", "optional(V).(V) -> V", lambda value, other: value.value() if value.present else other)


def _unwrap(items: list[Optional]) -> list[Any]:
    return [item.value() for item in items if item.present]


def _is_zero(value: Any) -> bool:
    match value:
        case Duration():
            return value.nanoseconds == 0
        case None | False | 0 | "" | b"":
            return True
        case UInt() | float():
            return value == 0
        case list() | dict():
            return not value
        case _:
            return False
