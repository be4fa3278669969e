"""What is wrong with a field, in kube-apiserver's words (apimachinery's pkg/util/validation/field/errors.go)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from ctrlruntime.errors import StatusCause

_PREFIXES = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueNotFound": "Not found",
}


def shown(value: Any) -> str:
    """Return a value as upstream's field errors print it: strings quoted, numbers as Go's %v, everything else as JSON."""
    if type(value) is str:
        return quoted(value)
    if type(value) is float:
        return go_float(value)
    return html_escaped(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def html_escaped(text: str) -> str:
    """Return JSON as encoding/json writes it."""
    return text.translate(_HTML)


_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What encoding/json escapes."""


def quoted(text: str) -> str:
    """Return a text as Go's %q prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = {
    '"': '\\"',
    **{character: repr(character)[1:-1] for character in "\\\n\r\t"},
    **dict(zip("\a\b\f\v", (r"\a", r"\b", r"\f", r"\v"), strict=True)),
}


def go_float(value: float) -> str:
    """Return a float as Go's fmt prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    number = Decimal(repr(value)).normalize()
    if -4 <= number.adjusted() < 6:
        return f"{number:f}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def invalid_value(field: str, value: Any, message: str, *, reason: str = "FieldValueInvalid") -> StatusCause:
    return StatusCause(reason, f"Invalid value: {shown(value)}: {message}", field)


def required(field: str, message: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {message}" if message else "Required value", field)


def forbidden_field(field: str, message: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {message}", field)


def duplicate(field: str, value: Any) -> StatusCause:
    return StatusCause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> StatusCause:
    listed = ", ".join(shown(item) for item in supported)
    return StatusCause(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field
    )


def too_long(field: str, limit: int) -> StatusCause:
    return StatusCause(
        "FieldValueTooLong", f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}", field
    )


def too_many(field: str, actual: int, limit: int) -> StatusCause:
    return StatusCause(
        "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {'item' if limit == 1 else 'items'}", field
    )


def prefix_of(reason: str) -> str:
    """Return how upstream words a cause's reason ("Invalid value", "Forbidden", …)."""
    return _PREFIXES.get(reason, reason)


__all__ = [
    "duplicate",
    "forbidden_field",
    "go_float",
    "html_escaped",
    "invalid_value",
    "not_supported",
    "prefix_of",
    "quoted",
    "required",
    "shown",
    "too_long",
    "too_many",
]
