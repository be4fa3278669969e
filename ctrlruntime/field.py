"""The scalar types of the Kubernetes API: Quantity, IntOrString, Time, MicroTime and Duration.

Their values are immutable, hashable, and compared by meaning. A value that was read keeps its text and writes it again, so that reading and
writing an object changes nothing. `text` is always the text in JSON. This module uses pydantic; models use the classes as annotations.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias, overload

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from typing_extensions import override

from ctrlruntime import quantities
from ctrlruntime.quantities import QuantityFormat

__all__ = ["Duration", "IntOrString", "IntOrStringMarker", "MicroTime", "Quantity", "Time"]

# Objects say the same over and over: the same requests and limits, and the moment of its creation each time an object is read.
_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 40


@functools.cache
def _reader(cls: Any) -> Callable[[Any], Any]:
    """Return `convert` of a scalar class with a memory for the texts it met last: values never change, so they may be shared."""
    convert: Callable[[Any], Any] = cls.convert
    remembered = functools.lru_cache(maxsize=_REMEMBERED)(convert)

    def read(value: Any) -> Any:
        if value.__class__ is str and len(value) <= _LONGEST_REMEMBERED:
            return remembered(value)
        return convert(value)

    return read


def _text_schema(cls: Any, serialize: Any, **schema: Any) -> CoreSchema:
    return core_schema.no_info_plain_validator_function(
        _reader(cls),
        serialization=core_schema.plain_serializer_function_ser_schema(
            serialize, return_schema=core_schema.str_schema(), when_used="json"
        ),
        metadata={"pydantic_js_functions": [lambda _schema, _handler: {"type": "string", **schema}]},
    )


class Quantity:
    """A number with a unit suffix.

    For example ``Quantity("500m")``, ``Quantity("1.5Gi")`` or ``Quantity(3)``.

    Compares and hashes by amount (``Quantity("1") == Quantity("1000m") == 1``). ``text`` is the given text; ``canonical()`` is the form
    that the API server writes. Raises: ValueError for text that is not a quantity.
    """

    __slots__ = ("_amount", "_format", "_is_number", "_text")

    def __init__(self, value: str | float | Decimal | Quantity = 0) -> None:
        self._amount: Decimal | None = None
        self._format: QuantityFormat | None = None
        self._is_number = False
        if isinstance(value, Quantity):
            value = value.text
        if isinstance(value, Decimal):
            self._text = quantities.written(quantities.rounded(value), "DecimalSI")
            return
        self._text = text = value.strip() if isinstance(value, str) else str(value)
        if isinstance(value, bool) or not quantities.is_quantity(text, needs_digits=True):
            raise ValueError(
                f"{value!r} is not a quantity: write a number with a suffix such as 100m, 2, 1.5Gi, 10k or 1e3"
            )

    @classmethod
    def of(cls, amount: Decimal | int, format: QuantityFormat = "DecimalSI") -> Quantity:
        """Return the quantity of an exact amount, with the suffixes of `format`."""
        return cls(quantities.written(quantities.rounded(Decimal(amount)), format))

    @property
    def text(self) -> str:
        """The text: as given or read, else canonical."""
        return self._text

    @property
    def wire(self) -> str | int:
        """The value in JSON: the text, or the number if JSON had a number."""
        return int(self._text) if self._is_number else self._text

    @property
    def format(self) -> QuantityFormat:
        """The family of suffixes of the text."""
        if self._format is None:
            self._parse()
        assert self._format is not None
        return self._format

    @property
    def amount(self) -> Decimal:
        """The exact amount, in units."""
        if self._amount is None:
            self._parse()
        assert self._amount is not None
        return self._amount

    def _parse(self) -> None:
        self._amount, self._format = quantities.read(self._text)

    def canonical(self) -> str:
        """Return the form that the API server writes.

        It has no fraction and the largest possible suffix of the same family.
        """
        return quantities.written(self.amount, self.format)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero (CPU in millicores)."""
        return int(quantities.EXACT.scaleb(self.amount, 3).to_integral_value(ROUND_UP))

    def __int__(self) -> int:
        """Return the amount in units, rounded away from zero, as Kubernetes does."""
        return int(self.amount.to_integral_value(ROUND_UP))

    def __float__(self) -> float:
        return float(self.amount)

    def __bool__(self) -> bool:
        return bool(self.amount)

    def _format_beside(self, other: object) -> QuantityFormat:
        # As in Go: zero has no opinion about the suffixes.
        return other.format if isinstance(other, Quantity) and not self else self.format

    def __add__(self, other: Quantity | Decimal | int) -> Quantity:
        amount = _amount_of(other)
        if amount is None:
            return NotImplemented
        return Quantity.of(quantities.EXACT.add(self.amount, amount), self._format_beside(other))

    __radd__ = __add__

    def __sub__(self, other: Quantity | Decimal | int) -> Quantity:
        amount = _amount_of(other)
        if amount is None:
            return NotImplemented
        return Quantity.of(quantities.EXACT.subtract(self.amount, amount), self._format_beside(other))

    def __rsub__(self, other: Decimal | int) -> Quantity:
        amount = _amount_of(other)
        return (
            NotImplemented
            if amount is None
            else Quantity.of(quantities.EXACT.subtract(amount, self.amount), self.format)
        )

    def __mul__(self, factor: Decimal | int) -> Quantity:
        if isinstance(factor, Quantity) or (amount := _amount_of(factor)) is None:
            return NotImplemented
        return Quantity.of(quantities.EXACT.multiply(self.amount, amount), self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity.of(-self.amount, self.format)

    def __abs__(self) -> Quantity:
        return Quantity.of(abs(self.amount), self.format)

    @override
    def __eq__(self, other: object) -> bool:
        if isinstance(other, Quantity):
            return self._text == other._text or self.amount == other.amount
        amount = _amount_of(other)
        return NotImplemented if amount is None else self.amount == amount

    @override
    def __hash__(self) -> int:
        return hash(self.amount)

    def __lt__(self, other: Quantity | Decimal | int) -> bool:
        amount = _amount_of(other)
        return NotImplemented if amount is None else self.amount < amount

    def __le__(self, other: Quantity | Decimal | int) -> bool:
        amount = _amount_of(other)
        return NotImplemented if amount is None else self.amount <= amount

    def __gt__(self, other: Quantity | Decimal | int) -> bool:
        amount = _amount_of(other)
        return NotImplemented if amount is None else self.amount > amount

    def __ge__(self, other: Quantity | Decimal | int) -> bool:
        amount = _amount_of(other)
        return NotImplemented if amount is None else self.amount >= amount

    @override
    def __str__(self) -> str:
        return self._text

    @override
    def __repr__(self) -> str:
        return f"Quantity({self._text!r})"

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return Quantity._from_json if self._is_number else Quantity, (self.wire,)

    def __copy__(self) -> Quantity:
        return self

    def __deepcopy__(self, memo: object) -> Quantity:
        return self

    @classmethod
    def convert(cls, value: Any) -> Quantity:
        """Return the value for a related type, or for a value in JSON. Raises: ValueError."""
        if isinstance(value, Quantity):
            return value
        if isinstance(value, (str, int, float, Decimal)):
            return cls(value)
        raise ValueError(f"{value!r} is not a quantity")

    @classmethod
    def _from_json(cls, value: Any) -> Quantity:
        read: Quantity = _reader(Quantity)(value)
        if value.__class__ is int:
            read._is_number = True
        return read

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = _text_schema(cls, str)
        return core_schema.json_or_python_schema(
            core_schema.no_info_plain_validator_function(cls._from_json, metadata=schema.get("metadata")), schema
        )


def _amount_of(value: object) -> Decimal | None:
    if isinstance(value, Quantity):
        return value.amount
    if isinstance(value, Decimal):
        return value
    return Decimal(value) if isinstance(value, int) else None


class IntOrStringMarker:
    """Marks an `int | str` annotation as the API's int-or-string, for schema generators."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.str_schema(strict=True)], mode="left_to_right"
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


IntOrString: TypeAlias = Annotated[int | str, IntOrStringMarker()]
"""A number or text: a port or its name, a count or a percentage.

At run time a plain `int` or `str`.
"""


# What kube-apiserver takes for the format date-time (IsDateTime in k8s.io/kube-openapi/pkg/validation/strfmt/time.go): small letters, any
# mark before the fraction, offsets of any size, and after one more t anything.
_DATE_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[tT]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[^tT\n]([0-9]+))?"
    r"(?:[zZ]|([+-])([0-9]{2}):([0-9]{2}))(?:[tT].*)?",
    re.DOTALL,
)
_USUAL, _USUAL_MICRO = "--T::Z", re.compile(r"[^t]{19}\.[0-9]{6}(?:Z|[+-][0-9]{2}:[0-9]{2})")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# Python has no year 0; the year 400 has the same days, and begins this much later.
_FOUR_CENTURIES: Final = timedelta(days=146_097)


def _moment(found: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    local = datetime(year or 400, month, day, hour, minute, second, int(f"{fraction or 0:0<6}"[:6]), UTC)
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        return local - (offset if sign == "+" else -offset) - (timedelta() if year else _FOUR_CENTURIES)
    except OverflowError:
        return _nearest(year)


def _nearest(year: int) -> datetime:
    """Return the end of Python's calendar that is nearest."""
    return _FIRST if year < 5_000 else _LAST


def _as_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return _nearest(moment.year)


class Time(datetime):
    """A moment in UTC, written as RFC 3339 with whole seconds.

    Create one with ``Time.now()``, ``Time.of(some_datetime)`` or ``Time.parse("2026-01-02T03:04:05Z")``. It is a datetime. One that was
    read with a fraction or another offset is written as it was read. It reads all texts that kube-apiserver accepts for the format
    date-time; digits beyond microseconds are cut. A moment outside the years 1 to 9999 in UTC, which Python does not support, becomes the
    first or last one.

    Raises: ValueError for text that is not an RFC 3339 time, or for a datetime without a time zone.
    """

    __slots__ = ("_text",)
    _text: str

    if TYPE_CHECKING:  # typeshed lets a subclass subtract only values of its own class

        @overload  # type: ignore[override]  # as in typeshed
        def __sub__(self, value: datetime, /) -> timedelta: ...
        @overload
        def __sub__(self, value: timedelta, /) -> Self: ...
        def __sub__(self, value: datetime | timedelta, /) -> datetime | timedelta:
            raise NotImplementedError

    @classmethod
    @override
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return the current time, by default in UTC.

        It is cut to the precision of the JSON form.
        """
        return super().now(tz or UTC).cut()

    @classmethod
    def of(cls, moment: datetime) -> Self:
        """Return an aware datetime as this type, in UTC.

        It is cut to the precision of the JSON form.
        """
        if moment.tzinfo is None:
            raise ValueError(f"{moment!r} has no time zone; use datetime.now(UTC) or .replace(tzinfo=UTC)")
        if type(moment) is cls:
            return moment
        return cls._in(_as_utc(moment)).cut()

    @classmethod
    def _in(cls, moment: datetime) -> Self:
        """Return a datetime in UTC as this type."""
        return cls.combine(moment.date(), moment.time(), UTC)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the moment of RFC 3339 text."""
        found = None
        try:
            if len(text) == 20 and text[4::3] == _USUAL and text[:4] != "0000":
                moment = cls.fromisoformat(text)
            elif (found := _DATE_TIME.fullmatch(text)) is not None:
                moment = cls._in(_moment(found))
            else:  # an ISO 8601 time, which is read, but no API server would take it
                return cls._aware(cls.fromisoformat(text))
        except ValueError:
            raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-01-02T03:04:05Z") from None
        moment._keep(text)  # noqa: SLF001 - its own
        return moment

    @classmethod
    def _aware(cls, moment: datetime) -> Self:
        if moment.tzinfo is None:
            raise ValueError("no time zone")
        return cls._in(_as_utc(moment))

    def _keep(self, text: str) -> None:
        """Take note of the text this was read from, if that is to be written again; it also saves making it anew."""
        self._text = text

    def cut(self) -> Self:
        """Return the moment, cut to the precision of the JSON form."""
        return self.replace(microsecond=0)

    @property
    def text(self) -> str:
        """The text in JSON."""
        try:
            return self._text
        except AttributeError:
            return self._format(self._in_utc())

    def _in_utc(self) -> datetime:
        if self.tzinfo is UTC:
            return self
        if self.tzinfo is None:
            raise ValueError(f"{self!r} has no time zone and cannot be written; use {type(self).__name__}.now()")
        return _as_utc(self)

    @staticmethod
    def _format(moment: datetime) -> str:
        return moment.isoformat(timespec="seconds")[:-6] + "Z"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @override
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # datetime's own way would lose the text; a naive one has none.
        return (type(self).parse, (self.text,)) if self.tzinfo else (type(self).fromisoformat, (self.isoformat(),))

    @classmethod
    def convert(cls, value: Any) -> Self:
        """Return the value for a related type, or for a value in JSON. Raises: ValueError."""
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, datetime):
            return cls.of(value)
        raise ValueError(f"{value!r} is not a time")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _text_schema(cls, _text_of, format="date-time")


class MicroTime(Time):
    """A moment in UTC with microseconds, as Leases and Events require.

    It is written as RFC 3339 with six digits of fraction.
    """

    __slots__ = ()

    @override
    def cut(self) -> Self:
        """Return the moment, cut to the precision of the JSON form."""
        return self

    @override
    def _keep(self, text: str) -> None:
        # Go reads a MicroTime by a layout with exactly six digits.
        if _USUAL_MICRO.fullmatch(text):
            super()._keep(text)

    @staticmethod
    @override
    def _format(moment: datetime) -> str:
        return moment.isoformat(timespec="microseconds")[:-6] + "Z"


_DURATION = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)")
_DURATION_PART = re.compile(r"([0-9.]+)([a-zµμ]+)")
_LONGEST: Final = timedelta(days=timedelta.max.days) // timedelta(microseconds=1)  # in both directions
_UNIT_MICROSECONDS: Final = {
    "ns": Decimal("0.001"),
    "us": Decimal(1),
    "µs": Decimal(1),
    "μs": Decimal(1),
    "ms": Decimal(1000),
    "s": Decimal(1_000_000),
    "m": Decimal(60_000_000),
    "h": Decimal(3_600_000_000),
}


class Duration(timedelta):
    """A length of time, written as in Go: ``Duration(seconds=90)`` is ``1m30s``.

    ``Duration.parse("1h15m")``.

    It is a timedelta; `total_seconds()` returns float seconds. Raises: ValueError for text that is not a duration.
    """

    __slots__ = ("_text",)
    _text: str

    @classmethod
    def of(cls, length: timedelta | float) -> Duration:
        """Return a timedelta, or a number of seconds, as a Duration."""
        if isinstance(length, Duration):
            return length
        if not isinstance(length, timedelta):
            try:
                return cls(seconds=length)
            except OverflowError as error:
                raise ValueError(f"{length!r} seconds are more than a timedelta holds") from error
        return cls(length.days, length.seconds, length.microseconds)

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Return the length of Go duration text, to the microsecond.

        More than 999,999,999 days, which a timedelta does not support, is read as this maximum.
        """
        body = text[1:] if text[:1] in {"+", "-"} else text
        if body != "0" and (not body or _DURATION.sub("", body)):
            raise ValueError(f"{text!r} is not a duration: write numbers with units such as 30s, 1h15m or 250ms")
        micros = Decimal(0)
        for number, unit in _DURATION_PART.findall(body):
            micros = quantities.EXACT.add(micros, quantities.EXACT.multiply(Decimal(number), _UNIT_MICROSECONDS[unit]))
        whole = _LONGEST if micros > _LONGEST else int(micros)
        length = cls(microseconds=-whole if text[0] == "-" else whole)
        length._text = text
        return length

    @property
    def text(self) -> str:
        """The text in JSON."""
        try:
            return self._text
        except AttributeError:
            return _go_duration(self)

    @override
    def __str__(self) -> str:
        return self.text

    def __copy__(self) -> Duration:
        return self

    def __deepcopy__(self, memo: object) -> Duration:
        return self

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).parse, (self.text,)

    @classmethod
    def convert(cls, value: Any) -> Duration:
        """Return the value for a related type, or for a value in JSON. Raises: ValueError."""
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, (timedelta, int, float)) and not isinstance(value, bool):
            return cls.of(value)
        raise ValueError(f"{value!r} is not a duration")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _text_schema(cls, _text_of)


def _text_of(value: Time | Duration) -> str:
    return value.text


def _go_duration(length: timedelta) -> str:
    micros = (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1_000:
        return f"{sign}{micros}µs"
    if micros < 1_000_000:
        return f"{sign}{_fraction(micros, 1_000)}ms"
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{_fraction(rest, 1_000_000)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _fraction(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
