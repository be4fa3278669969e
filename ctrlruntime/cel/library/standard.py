"""The standard functions of CEL: operators, conversions, strings, time."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ctrlruntime.cel import patterns
from ctrlruntime.cel.failures import EvaluationError
from ctrlruntime.cel.functions import Declared
from ctrlruntime.cel.mismatches import no_key
from ctrlruntime.cel.values import (
    NOTHING,
    SECOND,
    Duration,
    MapList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    UInt,
    contains,
    double_text,
    equal,
    in_range,
    kind_of,
    parse_duration,
    parse_timestamp,
    show,
)

_LOWEST, _HIGHEST, _HIGHEST_UINT = -(2**63), 2**63 - 1, 2**64 - 1


def declared() -> Iterator[Declared]:
    """Yield the standard functions."""
    yield from _arithmetic()
    yield from _comparisons()
    yield from _collections()
    yield from _conversions()
    yield from _strings()
    yield from _time()


def whole(value: int) -> int:
    """Return an int that fits. Raises: EvaluationError."""
    if not _LOWEST <= value <= _HIGHEST:
        raise EvaluationError("integer overflow")
    return value


def unsigned(value: int) -> UInt:
    """Return a uint that fits. Raises: EvaluationError."""
    if not 0 <= value <= _HIGHEST_UINT:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def _span(nanoseconds: int) -> Duration:
    if not _LOWEST <= nanoseconds <= _HIGHEST:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def moment(nanoseconds: int, offset: int = 0) -> Timestamp:
    """Return a timestamp that fits. Raises: EvaluationError."""
    made = Timestamp(nanoseconds, offset)
    if not in_range(made):
        raise EvaluationError("timestamp overflow")
    return made


# Arithmetic


def _arithmetic() -> Iterator[Declared]:
    for name, work in (("_+_", operator.add), ("_-_", operator.sub), ("_*_", operator.mul)):
        yield Declared(name, "(int, int) -> int", _checked(work, whole))
        yield Declared(name, "(uint, uint) -> uint", _checked(work, unsigned))
        yield Declared(name, "(double, double) -> double", work)
    yield Declared("_/_", "(int, int) -> int", _divided)
    yield Declared("_/_", "(uint, uint) -> uint", lambda a, b: UInt(_divided(a, b)))
    yield Declared("_/_", "(double, double) -> double", _divided_double)
    yield Declared("_%_", "(int, int) -> int", _modulus)
    yield Declared("_%_", "(uint, uint) -> uint", lambda a, b: UInt(_modulus(a, b)))
    yield Declared("-_", "(int) -> int", lambda a: whole(-a))
    yield Declared("-_", "(double) -> double", operator.neg)
    yield Declared("!_", "(bool) -> bool", operator.not_)
    yield Declared("_+_", "(string, string) -> string", operator.add)
    yield Declared("_+_", "(bytes, bytes) -> bytes", operator.add)
    yield Declared("_+_", "(list(A), list(A)) -> list(A)", _joined)
    yield Declared("_+_", "(duration, duration) -> duration", lambda a, b: _span(a.nanoseconds + b.nanoseconds))
    yield Declared("_+_", "(timestamp, duration) -> timestamp", _later)
    yield Declared("_+_", "(duration, timestamp) -> timestamp", lambda a, b: _later(b, a))
    yield Declared("_-_", "(duration, duration) -> duration", lambda a, b: _span(a.nanoseconds - b.nanoseconds))
    yield Declared("_-_", "(timestamp, duration) -> timestamp",
                   lambda a, b: _later(a, Duration(-b.nanoseconds)))  # fmt: skip
    yield Declared("_-_", "(timestamp, timestamp) -> duration", lambda a, b: _span(a.nanoseconds - b.nanoseconds))


def _later(start: Timestamp, span: Duration) -> Timestamp:
    return moment(start.nanoseconds + span.nanoseconds, start.offset)


def _checked(work: Callable[[Any, Any], int], limit: Callable[[int], int]) -> Callable[[Any, Any], int]:
    return lambda left, right: limit(work(int(left), int(right)))


def _divided(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


def _modulus(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return int(math.fmod(left, right)) if abs(left) < 2**53 > abs(right) else left - right * _divided(left, right)


def _divided_double(left: float, right: float) -> float:
    if right == 0:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


def _joined(left: list[Any], right: list[Any]) -> list[Any]:
    """Return both lists as one; schema lists of type set and map merge."""
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not contains(left, item))])
    if isinstance(left, MapList):
        others = {left.key_of(item): item for item in right}
        kept = [others.pop(left.key_of(item), item) for item in left]
        return MapList([*kept, *others.values()], left.keys)
    return [*left, *right]


# Comparison


def _comparisons() -> Iterator[Declared]:
    numbers = ("int", "uint", "double")
    pairs = [(a, b) for a in numbers for b in numbers]
    pairs += [(name, name) for name in ("bool", "string", "bytes", "timestamp", "duration")]
    for name, work in (("_<_", operator.lt), ("_<=_", operator.le), ("_>_", operator.gt), ("_>=_", operator.ge)):
        for left, right in pairs:
            yield Declared(name, f"({left}, {right}) -> bool", work)
    yield Declared("_==_", "(A, A) -> bool", equal)
    yield Declared("_!=_", "(A, A) -> bool", lambda left, right: not equal(left, right))
    yield Declared("_&&_", "(bool, bool) -> bool", lambda left, right: left and right)
    yield Declared("_||_", "(bool, bool) -> bool", lambda left, right: left or right)
    yield Declared("_?_:_", "(bool, A, A) -> A", lambda choice, left, right: left if choice else right)
    yield Declared("@not_strictly_false", "(bool) -> bool", lambda value: value)


# Lists, maps, optionals


def _collections() -> Iterator[Declared]:
    yield Declared("@in", "(A, list(A)) -> bool", lambda wanted, items: contains(items, wanted))
    yield Declared("@in", "(A, map(A, B)) -> bool", lambda wanted, items: find_key(items, wanted) is not None)
    yield Declared("_[_]", "(list(A), int) -> A", at_index)
    yield Declared("_[_]", "(map(A, B), A) -> B", at_key)
    yield Declared("_[_]", "(optional(list(V)), int) -> optional(V)", optional_part)
    yield Declared("_[_]", "(optional(map(K, V)), K) -> optional(V)", optional_part)
    yield Declared("_[?_]", "(list(V), int) -> optional(V)", optional_part)
    yield Declared("_[?_]", "(optional(list(V)), int) -> optional(V)", optional_part)
    yield Declared("_[?_]", "(map(K, V), K) -> optional(V)", optional_part)
    yield Declared("_[?_]", "(optional(map(K, V)), K) -> optional(V)", optional_part)
    for sized in ("string", "bytes", "list(A)", "map(A, B)"):
        yield Declared("size", f"({sized}) -> int", len)
        yield Declared("size", f"{sized}.() -> int", len)


def find_key(items: dict[Any, Any], wanted: Any) -> tuple[Any] | None:
    """Return the map's own key that equals the given one, in a tuple; None if it does not exist."""
    kind = type(wanted)
    if kind is str:
        return (wanted,) if wanted in items else None
    if kind in {int, UInt, float, bool}:
        for key in items:
            if equal(key, wanted):
                return (key,)
        return None
    if kind is float or kind not in {list, dict, type(None)}:
        return (wanted,) if wanted in items else None
    return None


def at_key(items: dict[Any, Any], wanted: Any) -> Any:
    """Return a map's value. Raises: EvaluationError when the key is missing."""
    key = find_key(items, wanted)
    if key is None:
        raise EvaluationError(f"no such key: {show(wanted)}")
    return items[key[0]]


def at_index(items: list[Any], index: Any) -> Any:
    """Return a list's item. Raises: EvaluationError if it does not exist."""
    place = index if type(index) is int else _place(index)
    if not 0 <= place < len(items):
        raise EvaluationError(f"index out of bounds: {place}")
    return items[place]


def _place(index: Any) -> int:
    if isinstance(index, float):
        if not (index.is_integer() and _LOWEST <= index <= _HIGHEST):
            raise EvaluationError(f"unsupported index value {double_text(index)} in list")
    elif not isinstance(index, int) or isinstance(index, bool):
        raise EvaluationError(f"unsupported index type '{kind_of(index)}' in list")
    return int(index)


def find_part(value: Any, key: Any) -> tuple[Any] | None:
    """Return what a value of any kind has under a key or an index, in a tuple; None if it has nothing there.

    Only maps and lists have parts. Raises: EvaluationError for what cannot be a key.
    """
    if not isinstance(key, str | int | float):
        raise EvaluationError(no_key(key))
    if isinstance(value, dict):
        found = find_key(value, key)
        return None if found is None else (value[found[0]],)
    if isinstance(value, list):
        place = _place(key)
        if not 0 <= place < len(value):
            return None
        if isinstance(key, float):  # the lists of objects take none (pkg/cel/common/values.go)
            raise EvaluationError(f"unsupported index: {place}")
        return (value[place],)
    if isinstance(value, Optional):
        return find_part(value.value(), key) if value.present else None
    return None


def part(value: Any, key: Any) -> Any:
    """Return what a value of any kind has under a key or an index. Raises: EvaluationError if it has nothing there."""
    if isinstance(value, Optional):
        return optional_part(value, key)
    found = find_part(value, key)
    if found is None:
        raise EvaluationError(
            f"index out of bounds: {_place(key)}" if isinstance(value, list) else f"no such key: {show(key)}"
        )
    return found[0]


def optional_part(value: Any, key: Any) -> Optional:
    """Return what a value of any kind, which may be absent, has under a key or an index."""
    found = find_part(value, key)
    return NOTHING if found is None else Optional(found[0])


# Conversions


def _conversions() -> Iterator[Declared]:
    def same(value: Any) -> Any:
        return value

    yield Declared("dyn", "(A) -> dyn", same)
    yield Declared("type", "(A) -> type(A)", lambda value: TypeValue(kind_of(value)))
    for name in ("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"):
        yield Declared(name, f"({name}) -> {name}", same)
    yield Declared("bool", "(string) -> bool", _to_bool)
    yield Declared("bytes", "(string) -> bytes", str.encode)
    yield Declared("double", "(int) -> double", float)
    yield Declared("double", "(uint) -> double", float)
    yield Declared("double", "(string) -> double", _to_double)
    yield Declared("duration", "(string) -> duration", _to_duration)
    yield Declared("duration", "(int) -> duration", _no_duration)
    yield Declared("int", "(double) -> int", _double_to_int)
    yield Declared("int", "(duration) -> int", lambda value: value.nanoseconds)
    yield Declared("int", "(string) -> int", lambda value: _to_integer(value, "int"))
    yield Declared("int", "(timestamp) -> int", lambda value: value.nanoseconds // SECOND)
    yield Declared("int", "(uint) -> int", lambda value: whole(int(value)))
    for kind in ("bool", "double", "int", "uint", "timestamp", "duration"):
        yield Declared("string", f"({kind}) -> string", show)
    yield Declared("string", "(bytes) -> string", _bytes_to_string)
    yield Declared("timestamp", "(string) -> timestamp", _to_timestamp)
    yield Declared("timestamp", "(int) -> timestamp", lambda value: moment(value * SECOND))
    yield Declared("uint", "(double) -> uint", _double_to_uint)
    yield Declared("uint", "(int) -> uint", unsigned)
    yield Declared("uint", "(string) -> uint", lambda value: UInt(_to_integer(value, "uint")))


def _to_bool(value: str) -> bool:
    if value in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    if value in {"0", "f", "F", "FALSE", "false", "False"}:
        return False
    raise EvaluationError("type conversion error from 'string' to 'bool'")


def _to_double(value: str) -> float:
    try:
        if value.strip() == value and "_" not in value:
            return float(value)
    except ValueError:
        pass
    raise EvaluationError("type conversion error from 'string' to 'double'")


def _to_integer(value: str, name: str) -> int:
    limits = (_LOWEST, _HIGHEST) if name == "int" else (0, _HIGHEST_UINT)
    body = value[1:] if name == "int" and value[:1] in {"+", "-"} else value
    if not (body.isascii() and body.isdigit()) or not limits[0] <= int(value) <= limits[1]:
        raise EvaluationError(f"type conversion error from 'string' to '{name}'")
    return int(value)


def _double_to_int(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if math.isnan(value) or math.isinf(value) or not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(value)


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _to_duration(value: str) -> Duration:
    found = parse_duration(value)
    if found is None:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return found


def _no_duration(_: int) -> Duration:
    """The checker takes numbers, but cel-go does not convert them."""
    raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")


def _to_timestamp(value: str) -> Timestamp:
    found = parse_timestamp(value)
    if found is None:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    if not in_range(found):
        raise EvaluationError("timestamp overflow")
    return found


# Strings


def _strings() -> Iterator[Declared]:
    yield Declared("contains", "string.(string) -> bool", lambda text, part: part in text)
    yield Declared("startsWith", "string.(string) -> bool", str.startswith)
    yield Declared("endsWith", "string.(string) -> bool", str.endswith)
    yield Declared("matches", "string.(string) -> bool", _matches)
    yield Declared("matches", "(string, string) -> bool", _matches)


def _matches(text: str, pattern: str) -> bool:
    return compiled(pattern).matches(text)


def compiled(pattern: str) -> patterns.Pattern:
    """Return a compiled RE2 pattern. Raises: EvaluationError."""
    try:
        return patterns.compile_pattern(pattern)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


# Time


def _time() -> Iterator[Declared]:
    for name, read in _PARTS.items():
        yield Declared(name, "timestamp.() -> int", _part(read))
        yield Declared(name, "timestamp.(string) -> int", _part(read))
    yield Declared("getHours", "duration.() -> int", _units(3600 * SECOND))
    yield Declared("getMinutes", "duration.() -> int", _units(60 * SECOND))
    yield Declared("getSeconds", "duration.() -> int", _units(SECOND))
    yield Declared("getMilliseconds", "duration.() -> int", _units(10**6))


_PARTS: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}


def _part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def take(moment: Timestamp, zone: str = "UTC") -> int:
        return read(moment.moment().astimezone(_zone(zone)))

    return take


def _zone(name: str) -> timezone | ZoneInfo:
    if not name:
        return UTC
    sign, digits = (-1, name[1:]) if name.startswith("-") else (1, name.removeprefix("+"))
    hours, colon, minutes = digits.partition(":")
    if colon and hours.isdigit() and minutes.isdigit():
        return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _units(size: int) -> Callable[[Duration], int]:
    return lambda span: _towards_zero(span.nanoseconds, size)


def _towards_zero(value: int, size: int) -> int:
    return abs(value) // size * (-1 if value < 0 else 1)
