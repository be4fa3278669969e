"""String formats of OpenAPI schemas, as kube-openapi's strfmt checks them. An unknown format accepts everything."""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date

from ctrlruntime.cel.values import read_duration
from ctrlruntime.name_rules import is_label, is_subdomain
from ctrlruntime.schema.uris import is_request_uri

_DATE_TIME = re.compile(
    r"([^t]*)t([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([^t\n][0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})(t.*)?", re.DOTALL
)
_HOSTNAME = re.compile(r"([ls](-?[ls]{0,62})?|([ls](([ls]|-){0,61}[ls])?\.)+l{2,63})\Z")
"""Of a name whose letters are written as `l`, and whose digits and symbols as `s`."""
_LETTER = r"[\w!#$%&'*+/=?^`{|}~\x80-\U0010ffff-]"
_ATOM = rf"{_LETTER}+"
_ATOMS = rf"{_ATOM}(?:\.{_ATOM})*"
_QUOTED = r'"(?:[^"\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f])*"'
_ADDRESS = rf"(?:{_ATOMS}|{_QUOTED})@[ \t]*(?:{_ATOMS}|\[(?P<ip>[0-9A-Fa-f:.]+)\])"
_EMAILS = [
    re.compile(rf"[ \t]*{form}[ \t]*\Z", re.ASCII)
    for form in (
        rf"{_ADDRESS}(?:[ \t]*\([^()]*\))?",
        rf"(?:{_LETTER}|[. \t]|{_QUOTED}|\([^()]*\))*<{_ADDRESS}>",
        rf"[^<>@:]+:[ \t]*{_ADDRESS}[ \t]*;",
    )
]
"""Go's net/mail: an address with a comment, one with a name, a group of one."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_PAIR, _QUAD = "[0-9A-Fa-f]{2}", "[0-9A-Fa-f]{4}"
_MAC_LENGTHS = (6, 8, 20)
_MAC = re.compile(
    "|".join(
        form
        for length in _MAC_LENGTHS
        for form in (
            *(f"{_PAIR}(?:{mark}{_PAIR}){{{length - 1}}}" for mark in ("", ":", "-")),
            rf"{_QUAD}(?:\.{_QUAD}){{{length // 2 - 1}}}",
        )
    )
)
_BSON = re.compile(r"[0-9a-fA-F]{24}\Z")
_CARD = re.compile(r"(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
                   r"|(2131|1800|35\d{3})\d{11})\Z")  # fmt: skip
_HEX_COLOR = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})\Z")
_SHADE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_RGB_COLOR = re.compile(rf"rgb\(\s*{_SHADE}\s*,\s*{_SHADE}\s*,\s*{_SHADE}\s*\)\Z")
_SSN = re.compile(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}\Z")
_BITS = re.compile(r"[0-9]+\Z")


def recognized(type: str, format: str) -> bool:
    """Tell whether a definition's format is one the server knows for the type; without a type, for strings."""
    return format in _KNOWN.get(type or "string", ())


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
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    numbers = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(number * (index + 1) for index, number in enumerate(numbers)) % 11 == 0


def _is_isbn13(digits: str) -> bool:
    if not re.fullmatch(r"[0-9]{13}", digits):
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


def _hostname(value: str) -> bool:
    classes = (unicodedata.category(char) for char in value)
    kinds = ("l" if kind[0] == "L" else "s" if kind[0] == "S" else "" for kind in classes)
    plain = (
        kind or ("s" if char in _DIGITS else char if char in "-." else " ")
        for kind, char in zip(kinds, value, strict=True)
    )
    return _HOSTNAME.match("".join(plain)) is not None


def _email(value: str) -> bool:
    found = next(filter(None, (form.match(value) for form in _EMAILS)), None)
    return found is not None and (found["ip"] is None or _ip(found["ip"]) is not None)


def _ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return None if "%" in value else ipaddress.ip_address(value)
    except ValueError:
        return None


def _sloppy_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address whose decimal numbers may begin with zeros (ParseIPSloppy in k8s.io/utils/net)."""
    head, colon, tail = value.rpartition(":")
    if "." in tail:
        tail = ".".join(part.lstrip("0") or part[-1:] for part in tail.split("."))
    return _ip(f"{head}{colon}{tail}")


def _cidr(value: str) -> bool:
    address, _, bits = value.partition("/")
    found = _sloppy_ip(address)
    return found is not None and _BITS.match(bits) is not None and int(bits) <= found.max_prefixlen


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    """A UUID in hexadecimal digits, with each of its dashes or without."""
    three = "[0-9a-f]{3}"
    form = re.compile(
        rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}{three}-?{variant}{three}-?[0-9a-f]{{12}}\Z", re.IGNORECASE
    )
    return lambda value: form.match(value) is not None


_DIGITS = frozenset("0123456789")
_HEX = "[0-9a-f]"

_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "date-time": _date_time,
    "datetime": _date_time,
    "date": _date,
    "byte": _base64,
    "duration": lambda value: read_duration(value) is not None,
    "hostname": _hostname,
    "email": _email,
    "ipv4": lambda value: "." in value and _sloppy_ip(value) is not None,
    "ipv6": lambda value: ":" in value and _ip(value) is not None,
    "cidr": _cidr,
    "mac": lambda value: bool(_MAC.fullmatch(value)),
    "uri": is_request_uri,
    "uuid": _uuid(_HEX, _HEX),
    "uuid3": _uuid("3", _HEX),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "k8s-short-name": lambda value: len(value) <= 63 and is_label(value),
    "k8s-long-name": lambda value: len(value) <= 253 and is_subdomain(value),
    "bsonobjectid": lambda value: bool(_BSON.match(value)),
    "isbn": _isbn(None),
    "isbn10": _isbn(10),
    "isbn13": _isbn(13),
    "creditcard": _card,
    "hexcolor": lambda value: bool(_HEX_COLOR.match(value)),
    "rgbcolor": lambda value: bool(_RGB_COLOR.match(value)),
    "ssn": lambda value: bool(_SSN.match(value)),
}

_KNOWN = {
    "string": frozenset({*_CHECKS, "password"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
"""The formats of each type that a definition may name."""
