"""The schema of text that a Python class reads: no text that passes is one the class does not read.

Patterns and rules follow what the classes take. Where no schema can say it, the generator warns.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import PurePath
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from pydantic import AnyUrl, EmailStr

from ctrlruntime.field import Duration, Time

__all__ = ["DURATION", "Text", "text_of"]

_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"
_HEX: Final = "[0-9a-fA-F]"
_UUID: Final = f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_DURATION: Final = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
DURATION: Final[Mapping[str, Any]] = {"type": "string", "pattern": _DURATION}
_NO_HOST_BITS: Final = "!isCIDR(self) || cidr(self) == cidr(self).masked()"


class Text(NamedTuple):
    """The keywords of the schema other than its type, a rule with its message, and what the schema cannot express."""

    keywords: Mapping[str, Any] = {}
    rule: tuple[str, str] | None = None
    unsaid: str = ""


_NETWORK: Final = (_NO_HOST_BITS, "the address of a network has no bits beyond its prefix")
# The first class that fits counts: an interface is an address, too.
_TEXTS: Final[tuple[tuple[type[Any], Text], ...]] = (
    (Time, Text({"format": "date-time"})),
    (
        datetime,
        Text(
            {
                "format": "date-time",
                # Of what the format takes, pydantic reads no year 0, no offset of a day, and no mark but a point before the fraction.
                "pattern": r"^0{0,3}[1-9][^tT]*[tT][0-9:]+(\.[0-9]+)?([zZ]|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$",
            }
        ),
    ),
    (date, Text({"format": "date", "pattern": "^0{0,3}[1-9]"})),  # Python has no year 0
    (Duration, Text({"pattern": _DURATION})),
    (UUID, Text({"pattern": rf"^({_HEX}{{32}}|(urn:uuid:)?{_UUID}|\{{{_UUID}\}})$"})),
    (IPv4Interface, Text({"pattern": f"^{_IPV4}(/([0-9]|[12][0-9]|3[0-2]))?$"})),
    (IPv4Network, Text({"maxLength": 18, "pattern": f"^{_IPV4}(/([0-9]|[12][0-9]|3[0-2]))?$"}, _NETWORK)),
    (IPv4Address, Text({"pattern": f"^{_IPV4}$"})),
    (IPv6Interface, Text({"format": "cidr", "pattern": ":"})),
    (IPv6Network, Text({"format": "cidr", "maxLength": 49, "pattern": ":"}, _NETWORK)),
    (IPv6Address, Text({"format": "ipv6"})),
    (PurePath, Text()),
    (
        AnyUrl,
        Text({"pattern": "^[A-Za-z][-A-Za-z0-9+.]*:"}, unsaid="only that a URL starts with a scheme"),
    ),
    (cast("type[Any]", EmailStr), Text({"pattern": "@"}, unsaid="only that an e-mail address has an @")),
    (str, Text()),
)


def text_of(cls: type[Any]) -> Text | None:
    """Return the schema of the text of a class; None for a class without one."""
    return next((text for kind, text in _TEXTS if issubclass(cls, kind)), None)
