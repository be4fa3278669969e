"""Quantities of Kubernetes: read `1.5Gi`, write the canonical form `1536Mi` (k8s.io/apimachinery/pkg/api/resource/quantity.go)."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_CEILING, ROUND_UP, Context, Decimal
from typing import Any, Final, Literal, TypeAlias

QuantityFormat: TypeAlias = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

_FORM: Final = re.compile(r"(?=.)([+-]?[0-9]*\.?[0-9]*)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
"""A number without digits is 0: ParseQuantity takes `u` and `-`."""
_LOOSE: Final = re.compile(r"(?=.)[+-]?[0-9]*\.?[0-9]*[eEinumkKMGTP]*[-+]?[0-9]*")
_BAD_SUFFIX: Final = "unable to parse quantity's suffix"
_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL_EXPONENTS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = Decimal("1e-9")
_MILLI: Final = Decimal("1e-3")
_LARGEST: Final = 2**63 - 1
_LARGEST_BINARY: Final = Decimal(_LARGEST)
# Go itself does not come to an end with exponents of ten digits.
_LARGEST_EXPONENT: Final = 9_999
EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""The context of all arithmetic: it never rounds."""


def is_quantity(text: str, *, needs_digits: bool = False) -> bool:
    """Say whether a text is a quantity; `needs_digits`: not one that is 0 because it has none, such as `u`."""
    match = _FORM.fullmatch(text)
    return match is not None and (not needs_digits or bool(match[1].strip("+-.")))


def read(text: str) -> tuple[Decimal, QuantityFormat]:
    """Return the amount of a quantity and its family of suffixes. Raises: ValueError.

    Kubernetes keeps no fraction under a billionth, and rounds it away from zero; an amount with a binary suffix is capped (ParseQuantity).
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(_BAD_SUFFIX if _LOOSE.fullmatch(text) else _WRONG)
    number, suffix = Decimal(match[1] if match[1].strip("+-.") else 0), match[2] or ""
    if suffix.endswith("i"):
        amount = rounded(EXACT.multiply(number, Decimal(1024 ** _BINARY_SUFFIXES.index(suffix))))
        amount = max(-_LARGEST_BINARY, min(_LARGEST_BINARY, amount))
        return amount, "BinarySI" if not amount or abs(amount) >= 1 else "DecimalSI"
    if suffix in _DECIMAL_EXPONENTS:
        return rounded(EXACT.scaleb(number, _DECIMAL_EXPONENTS[suffix])), "DecimalSI"
    return rounded(EXACT.scaleb(number, _exponent(suffix[1:]))), "DecimalExponent"


def written(amount: Decimal, format: QuantityFormat) -> str:
    """Return an amount as the API server writes it: without a fraction, with the largest suffix of its family (CanonicalizeBytes).

    In one thing Go is not followed: it writes an even 1000E as `1`, without any suffix.
    """
    if not amount:
        return "0"
    if format == "BinarySI" and abs(amount) >= 1024 and amount == amount.to_integral_value():
        number, power = int(amount), 0
        while number % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
            number, power = number // 1024, power + 1
        return f"{number}{_BINARY_SUFFIXES[power]}"
    sign, digits, size = amount.as_tuple()
    assert isinstance(size, int)
    text = "".join(map(str, digits)).lstrip("0")
    size += len(text) - len(text := text.rstrip("0"))
    exponent = size // 3 * 3  # the zeros that are left over stand in the number
    if format != "DecimalExponent":
        exponent = min(exponent, 18)
    whole = f"{'-' if sign else ''}{text}{'0' * (size - exponent)}"
    if format == "DecimalExponent":
        return f"{whole}e{exponent}" if exponent else whole
    return f"{whole}{_DECIMAL_SUFFIXES[exponent]}"


def rounded(amount: Decimal) -> Decimal:
    """Return the amount in billionths, rounded away from zero. Raises: ValueError for one that is not finite."""
    if not amount.is_finite():
        raise ValueError(f"{amount} is not a quantity")
    return amount if int(amount.as_tuple().exponent) >= -9 else amount.quantize(_NANO, rounding=ROUND_UP, context=EXACT)


def _exponent(text: str) -> int:
    """Return the exponent, no further from zero than the largest."""
    digits = text.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) <= len(str(_LARGEST_EXPONENT)) else _LARGEST_EXPONENT
    return min(size, _LARGEST_EXPONENT) * (-1 if text.startswith("-") else 1)


# Texts, and numbers of JSON or YAML


def parse(text: Any) -> Decimal:
    """Return the value of a quantity, rounded away from zero to billionths. Raises: ValueError."""
    return _parts(text)[0]


def canonical(text: Any) -> str:
    """Return the quantity as the API server writes it. Raises: ValueError."""
    amount, form = _parts(text)
    return text if isinstance(text, str) and _is_kept(text) else written(amount, form)


def _is_kept(text: str) -> bool:
    """Tell whether a text stays as it is: ParseQuantity takes more texts for canonical than are."""
    match = _FORM.fullmatch(text)
    assert match is not None
    suffix = match[2] or ""
    whole, _, part = match[1].lstrip("+-").lstrip("0").partition(".")
    digits = (whole or "0") + part
    if suffix.endswith("i"):
        fits = 14 - len(digits) - 3 * _BINARY_SUFFIXES.index(suffix) >= 0
        return fits and "." not in text and bool(int(digits) & 7)
    exponent = _DECIMAL_EXPONENTS[suffix] if suffix in _DECIMAL_EXPONENTS else _exponent(suffix[1:])
    scale = exponent - len(part)
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def add(first: str, second: str) -> str:
    """Return a sum, written in the form of the first that is not zero (Add in apimachinery's resource/quantity.go). Raises: ValueError."""
    (value, form), (more, other) = _parts(first), _parts(second)
    return written(EXACT.add(value, more), form if value else other)


def subtract(first: str, second: str) -> str:
    """Return a difference, written in the form of the first that is not zero (Sub in the same file). Raises: ValueError."""
    (value, form), (less, other) = _parts(first), _parts(second)
    return written(EXACT.subtract(value, less), form if value else other)


def rounded_up(text: str) -> str:
    """Return the quantity without parts of a thousandth, which are rounded away from zero. Raises: ValueError."""
    value, form = _parts(text)
    if int(value.as_tuple().exponent) >= -3:
        return text
    return written(value.quantize(_MILLI, ROUND_UP, context=EXACT), form)


def is_whole(text: Any) -> bool:
    """Tell whether a quantity has no fraction. Raises: ValueError."""
    value = parse(text)
    return value == value.to_integral_value()


def units(text: Any, parts: int = 1) -> int:
    """Return a quantity in units, or in so many parts of one, rounded up; 0 for one that 64 bits do not hold (AsScaledInt64 in amount.go).

    Raises: ValueError.
    """
    value = int(EXACT.multiply(parse(text), parts).to_integral_value(ROUND_CEILING))
    return value if abs(value) <= _LARGEST else 0


def comparable(*texts: Any) -> tuple[list[int], int]:
    """Return quantities as numbers of one scale, and how many of it make a unit: 1000, or 1 where one is too large. Raises: ValueError."""
    parts = 1000 if all(units(text) <= _LARGEST // 1000 for text in texts) else 1
    return [units(text, parts) for text in texts], parts


def _parts(text: Any) -> tuple[Decimal, QuantityFormat]:
    is_written = isinstance(text, (str, int, float)) and not isinstance(text, bool)
    return read(str(text) if is_written else "")
