"""Kubernetes quantities: read `1.5Gi`, write the canonical form `1536Mi`.

A quantity keeps its kind of suffix (decimal, binary, exponent) and is written with the largest suffix that leaves no
fraction.
"""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_CEILING, ROUND_UP, Context, Decimal
from typing import Any, Final

_FORM: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIX_EXPONENT: Final = {suffix: exponent for exponent, suffix in _DECIMAL.items()}
_NANO: Final = Decimal("1e-9")
_MILLI: Final = Decimal("1e-3")
_LARGEST: Final = 2**63 - 1
_LARGEST_BINARY: Final = Decimal(_LARGEST)
_LARGEST_EXPONENT: Final = 999
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def parse(text: Any) -> Decimal:
    """Return the value of a quantity, rounded away from zero to billionths. Raises: ValueError."""
    return _parts(text)[0]


def canonical(text: Any) -> str:
    """Return the quantity as the API server writes it. Raises: ValueError."""
    return _written(*_parts(text))


def add(first: str, second: str) -> str:
    """Return a sum, written in the form of the first that is not zero (Add in apimachinery's resource/quantity.go). Raises: ValueError."""
    (value, suffix), (more, other) = _parts(first), _parts(second)
    return _written(_EXACT.add(value, more), suffix if value else other)


def subtract(first: str, second: str) -> str:
    """Return a difference, written in the form of the first that is not zero (Sub in the same file). Raises: ValueError."""
    (value, suffix), (less, other) = _parts(first), _parts(second)
    return _written(_EXACT.subtract(value, less), suffix if value else other)


def rounded_up(text: str) -> str:
    """Return the quantity without parts of a thousandth, which are rounded away from zero. Raises: ValueError."""
    value, suffix = _parts(text)
    if int(value.as_tuple().exponent) >= -3:
        return text
    return _written(value.quantize(_MILLI, ROUND_UP, context=_EXACT), suffix)


def is_whole(text: Any) -> bool:
    """Tell whether a quantity has no fraction. Raises: ValueError."""
    value = parse(text)
    return value == value.to_integral_value()


def units(text: Any, parts: int = 1) -> int:
    """Return a quantity in units, or in so many parts of one, rounded up; 0 for one that 64 bits do not hold (AsScaledInt64 in amount.go).

    Raises: ValueError.
    """
    value = int(_EXACT.multiply(parse(text), parts).to_integral_value(ROUND_CEILING))
    return value if abs(value) <= _LARGEST else 0


def comparable(*texts: Any) -> tuple[list[int], int]:
    """Return quantities as numbers of one scale, and how many of it make a unit: 1000, or 1 where one is too large. Raises: ValueError."""
    parts = 1000 if all(units(text) <= _LARGEST // 1000 for text in texts) else 1
    return [units(text, parts) for text in texts], parts


def _written(value: Decimal, suffix: str) -> str:
    if value == 0:
        return "0"
    if suffix.endswith("i") and abs(value) >= 1024 and value == value.to_integral_value():
        return _binary(value)
    return _decimal(value, exponent_form=suffix[:1] in {"e", "E"} and len(suffix) > 1)


def _parts(text: Any) -> tuple[Decimal, str]:
    is_written = isinstance(text, (str, int, float)) and not isinstance(text, bool)
    match = _FORM.fullmatch(str(text)) if is_written else None
    if match is None:
        raise ValueError(_WRONG)
    suffix = match["suffix"] or ""
    number = Decimal(match["number"])
    if suffix.endswith("i"):
        value = _EXACT.multiply(number, 1024 ** _BINARY.index(suffix))
        value = max(-_LARGEST_BINARY, min(_LARGEST_BINARY, value))
        suffix = suffix if abs(value) >= 1 else ""
    elif suffix in _SUFFIX_EXPONENT:
        value = _EXACT.scaleb(number, _SUFFIX_EXPONENT[suffix])
    else:
        value = _EXACT.scaleb(number, max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(suffix[1:][:9]))))
    if int(value.as_tuple().exponent) < -9:
        value = value.quantize(_NANO, ROUND_UP, context=_EXACT)
    return value, suffix


def _binary(value: Decimal) -> str:
    whole, step = int(value), 0
    while whole % 1024 == 0 and step < len(_BINARY) - 1:
        whole, step = whole // 1024, step + 1
    return f"{whole}{_BINARY[step]}"


def _decimal(value: Decimal, *, exponent_form: bool) -> str:
    whole, exponent = int(_EXACT.scaleb(value, 9)), -9
    while whole % 1000 == 0 and (exponent < 18 or exponent_form):
        whole, exponent = whole // 1000, exponent + 3
    if exponent_form:
        return f"{whole}e{exponent}" if exponent else str(whole)
    return f"{whole}{_DECIMAL[exponent]}"
