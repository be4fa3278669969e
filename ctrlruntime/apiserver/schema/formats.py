"""String formats of OpenAPI schemas, as kube-openapi's strfmt checks them. An unknown format accepts everything."""

from __future__ import annotations

import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

from ctrlruntime.cel.values import read_duration

_DATE_TIME = re.compile(
    r"([^t]*)t([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([^t\n][0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})(t.*)?", re.DOTALL
)
_LETTER = r"[^\W_]"
_HOSTNAME = re.compile(
    rf"({_LETTER}(-?{_LETTER}{{0,62}})?|({_LETTER}(({_LETTER}|-){{0,61}}{_LETTER})?\.)+[^\W\d_]{{2,63}})\Z"
)
_EMAIL = re.compile(r"([^<>@]*<[^@\s<>]+@[^@\s<>]+>|[^@\s<>]+@[^@\s<>]+)\Z")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_PAIR, _QUAD = "[0-9A-Fa-f]{2}", "[0-9A-Fa-f]{4}"
_MAC = re.compile(
    "|".join(f"(?:{part}(?:{mark}{part}){{{count}}})" for mark in ":-" for part, count in ((_PAIR, 5), (_PAIR, 7)))
    + rf"|{_QUAD}(?:\.{_QUAD}){{2,3}}"
)
_BSON = re.compile(r"[0-9a-fA-F]{24}\Z")
_CARD = re.compile(r"(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
                   r"|(2131|1800|35\d{3})\d{11})\Z")  # fmt: skip
_HEX_COLOR = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z")
_SHADE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_RGB_COLOR = re.compile(rf"rgb\(\s*{_SHADE}\s*,\s*{_SHADE}\s*,\s*{_SHADE}\s*\)\Z")
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}\Z")


_NUMBERS = {"integer": frozenset({"int32", "int64"}), "number": frozenset({"float", "double"})}


def recognized(type: str, format: str) -> bool:
    """Tell whether a definition's format is one the server knows for the type."""
    return format in (_STRINGS if type == "string" else _NUMBERS.get(type, frozenset[str]()))


def is_valid(format: str, value: str) -> bool:
    """Tell whether the string has the format."""
    check = _CHECKS.get(format)
    return check is None or check(value)


def _date_time(value: str) -> bool:
    found = _DATE_TIME.fullmatch(value.lower())
    return found is not None and _date(found[1])


def _date(value: str) -> bool:
    if value.startswith("0000-"):  # a leap year, as 2000 is; Python has none of this number
        value = f"2000-{value[5:]}"
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _isbn(length: int | None) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        digits = re.sub(r"[\s-]+", "", value)
        if length is None:
            return _is_isbn10(digits) or _is_isbn13(digits)
        return _is_isbn10(digits) if length == 10 else _is_isbn13(digits)

    return check


def _is_isbn10(digits: str) -> bool:
    if not re.fullmatch(r"\d{9}[\dX]", digits):
        return False
    numbers = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(number * (index + 1) for index, number in enumerate(numbers)) % 11 == 0


def _is_isbn13(digits: str) -> bool:
    if not re.fullmatch(r"\d{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


def _card(value: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", value)
    if not _CARD.match(digits):
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if index % 2 else 1)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def _base64(value: str) -> bool:
    return _BASE64.fullmatch(value) is not None


def _address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            kind(value)
        except ValueError:
            return False
        return True

    return check


def _cidr(value: str) -> bool:
    if "/" not in value:
        return False
    try:
        ipaddress.ip_interface(value)
    except ValueError:
        return False
    return True


def _uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) or value.startswith("/")


def _uuid(version: int | None) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parsed = uuid.UUID(value)
        except ValueError:
            return False
        return version is None or parsed.version == version

    return check


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "datetime": _date_time,
    "date": _date,
    "byte": _base64,
    "duration": lambda value: read_duration(value) is not None,
    "hostname": lambda value: bool(_HOSTNAME.match(value)),
    "email": lambda value: bool(_EMAIL.match(value)),
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": lambda value: "%" not in value and _address(ipaddress.IPv6Address)(value),
    "cidr": _cidr,
    "mac": lambda value: bool(_MAC.fullmatch(value)),
    "uri": _uri,
    "uuid": _uuid(None),
    "uuid3": _uuid(3),
    "uuid4": _uuid(4),
    "uuid5": _uuid(5),
    "k8s-short-name": lambda value: bool(_LABEL.match(value)),
    "k8s-long-name": lambda value: len(value) <= 253 and bool(_SUBDOMAIN.match(value)),
    "bsonobjectid": lambda value: bool(_BSON.match(value)),
    "isbn": _isbn(None),
    "isbn10": _isbn(10),
    "isbn13": _isbn(13),
    "creditcard": _card,
    "hexcolor": lambda value: bool(_HEX_COLOR.match(value)),
    "rgbcolor": lambda value: bool(_RGB_COLOR.match(value)),
    "ssn": lambda value: bool(_SSN.match(value)),
}

_STRINGS = frozenset({*_CHECKS, "password"})
