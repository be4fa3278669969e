"""The values of CEL in Python, and their common operations: kind, equality, order, text.

| CEL | Python |
|---|---|
| null, bool, string, bytes, double | None, bool, str, bytes, float |
| int, uint | int, `UInt` |
| list, map, object | list, dict, dict |
| duration, timestamp | `Duration`, `Timestamp` (nanoseconds) |
| optional, type | `Optional`, `TypeValue` |
| set and map lists of a schema | `SetList`, `MapList`: lists with their own equality and sum |

Opaque values of the libraries (quantities, addresses …) are instances of their own classes, with `cel_name`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol, runtime_checkable

from ctrlruntime.cel.failures import EvaluationError

SECOND = 1_000_000_000
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799


class UInt(int):
    """An unsigned integer: a separate class, so that it differs from an int."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds."""

    nanoseconds: int

    def __str__(self) -> str:
        seconds, rest = divmod(abs(self.nanoseconds), SECOND)
        sign = "-" if self.nanoseconds < 0 else ""
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return f"{sign}{seconds}{fraction}s"


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, in nanoseconds since 1970; it remembers the offset it was written with, in seconds."""

    nanoseconds: int
    offset: int = field(default=0, compare=False)

    def moment(self) -> datetime:
        """Return the moment in UTC, to the microsecond."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.nanoseconds // 1000)

    def __str__(self) -> str:
        rest = self.nanoseconds % SECOND
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        local = self.moment() + timedelta(seconds=self.offset)
        return f"{local.year:04d}-{local:%m-%dT%H:%M:%S}{fraction}{_zone(self.offset)}"


def _zone(offset: int) -> str:
    if not offset:
        return "Z"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, such as that of `type(1)`."""

    name: str


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value", "present")

    def __init__(self, value: Any = None, *, present: bool = True) -> None:
        self._value = value
        self.present = present

    def value(self) -> Any:
        """Return the value. Raises: EvaluationError if it does not exist."""
        if not self.present:
            raise EvaluationError("optional.none() dereference")
        return self._value


NOTHING = Optional(present=False)


class SetList(list[Any]):
    """A list of `x-kubernetes-list-type: set`: order does not count."""


class MapList(list[Any]):
    """A list of `x-kubernetes-list-type: map`: the keys tell its items apart, order does not count."""

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def by_key(self) -> dict[tuple[Any, ...], Any]:
        return {self.key_of(item): item for item in self}

    def key_of(self, item: Any) -> tuple[Any, ...]:
        return tuple(_hashable(item.get(key)) for key in self.keys)


@runtime_checkable
class Opaque(Protocol):
    """A value that only functions can look into."""

    cel_name: ClassVar[str]


class Message(dict[str, Any]):
    """The value of a literal `Name{field: value}`."""

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.cel_name = name


def kind_of(value: Any) -> str:
    """Return the name of a value's runtime type, as CEL's `type()` prints it."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    name = getattr(value, "cel_name", None)
    return name if isinstance(name, str) else "map" if isinstance(value, dict) else "list"


_KINDS: Mapping[type, str] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    MapList: "list",
    dict: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    Optional: "optional_type",
}
_NUMBERS = frozenset({int, UInt, float})


def equal(left: Any, right: Any) -> bool:
    """Tell whether two values are equal; values of different kinds are not, numbers compare by value."""
    kind, other = type(left), type(right)
    if kind is not other:
        if kind in _NUMBERS and other in _NUMBERS:
            return bool(left == right)
        if not _are_lists(left, right):
            return False
    match left:
        case Optional():
            return left.present == right.present and (not left.present or equal(left.value(), right.value()))
        case list():
            return _equal_lists(left, right)
        case dict():
            return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
        case _:
            return bool(left == right)


def _are_lists(*values: Any) -> bool:
    return all(isinstance(value, list) for value in values)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        return all(contains(right, item) for item in left)
    if isinstance(left, MapList):
        others = {left.key_of(item): item for item in right if isinstance(item, dict)}
        return all(key in others and equal(item, others[key]) for key, item in left.by_key().items())
    return all(equal(*pair) for pair in zip(left, right, strict=True))


def contains(items: list[Any], wanted: Any) -> bool:
    """Tell whether an item of the list equals the value."""
    return any(equal(item, wanted) for item in items)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else (type(value) is bool, value)


def show(value: Any) -> str:
    """Return the text of a value, as `string()` does."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case float():
            return double_text(value)
        case TypeValue():
            return value.name
        case _:
            return str(value)


def double_text(value: float) -> str:
    """Return a double as Go's strconv writes it with the fewest digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, power = _digits(value)
    if -4 <= power < 6:
        whole, fraction = digits.ljust(power + 1, "0"), ""
        if power < 0:
            whole, fraction = "0", "0" * (-power - 1) + digits
        else:
            whole, fraction = whole[: power + 1], whole[power + 1 :]
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{power:+03d}"


def _digits(value: float) -> tuple[str, str, int]:
    """Return sign, shortest digits and the power of ten of the first one."""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + (fraction if fraction != "0" else "")
    first = len(digits) - len(digits.lstrip("0"))
    return "-" if value < 0 else "", digits.strip("0") or "0", len(whole) - 1 - first + int(power or 0)


_DURATION = re.compile(r"([-+]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)\Z", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "μs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}


def parse_duration(text: str) -> Duration | None:
    """Return a Go duration (`1h30m`); None when the text is not one."""
    if text in {"0", "+0", "-0"}:
        return Duration(0)
    found = _DURATION.match(text)
    if found is None:
        return None
    total = 0
    for number, unit in _PART.findall(found[2]):
        whole, _, fraction = number.partition(".")
        scale = _UNITS[unit]
        total += int(whole or 0) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
    total = -total if found[1] == "-" else total
    return Duration(total) if -(2**63) <= total < 2**63 else None


_LOOSE_PART = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_LOOSE_UNITS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), SECOND),
    (("m", "min"), 60 * SECOND),
    (("h", "hr", "hour"), 3600 * SECOND),
    (("d", "day"), 24 * 3600 * SECOND),
    (("w", "wk", "week"), 7 * 24 * 3600 * SECOND),
)


def read_duration(text: str) -> Duration | None:
    """Return the value of a string of format duration: a Go duration, or words such as `2 weeks`; None if it is neither."""
    found = parse_duration(text)
    if found is not None:
        return found
    total, known = 0, False
    for number, unit in _LOOSE_PART.findall(text):
        name = unit.lower()
        for variants, size in _LOOSE_UNITS:
            if name in variants or name.startswith(variants[-1]):
                known = True
                total += int(number) * size
    return Duration(total) if known else None


_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))\Z")


def parse_timestamp(text: str) -> Timestamp | None:
    """Return an RFC 3339 moment; None when the text is not one."""
    found = _TIMESTAMP.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    offset = 0
    if found[9]:
        offset = int(found[10]) * 3600 + int(found[11]) * 60
        offset = offset if found[9] == "+" else -offset
    fraction = int((found[7] or "0")[:9].ljust(9, "0"))
    return Timestamp((seconds - offset) * SECOND + fraction, offset)


def in_range(timestamp: Timestamp) -> bool:
    """Tell whether the moment lies in the years 1 to 9999."""
    return _EARLIEST <= timestamp.nanoseconds // SECOND <= _LATEST
