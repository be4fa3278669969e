"""The additions of Kubernetes to CEL: quantities, addresses, URLs and named formats."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import ClassVar, TypeAlias, TypeVar

from ctrlruntime import go_urls, quantities
from ctrlruntime.addresses import go_quoted, why_no_address, why_no_prefix
from ctrlruntime.cel.failures import EvaluationError
from ctrlruntime.cel.functions import Declared
from ctrlruntime.cel.values import NOTHING, Optional, parse_timestamp
from ctrlruntime.name_rules import (
    LABEL,
    LABEL_1035,
    LABEL_1035_RULE,
    LABEL_RULE,
    LABEL_VALUE_RULE,
    QUALIFIED_NAME,
    QUALIFIED_NAME_RULE,
    SUBDOMAIN,
    SUBDOMAIN_RULE,
    is_qualified_name,
)

T = TypeVar("T")


def declared() -> Iterator[Declared]:
    """Yield the functions Kubernetes adds."""
    yield from _quantity_functions()
    yield from _addresses()
    yield from _urls()
    yield from _formats()


# Quantities


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """A resource quantity, e.g. `100Mi`."""

    cel_name: ClassVar[str] = "kubernetes.Quantity"
    amount: Decimal
    is_exact: bool = field(default=True, compare=False)
    """False for a fraction of a binary unit (`1.5Gi`), which upstream does not take for an integer."""

    @property
    def is_integer(self) -> bool:
        return self.is_exact and self.amount == self.amount.to_integral_value() and -(2**63) <= self.amount < 2**63

    def plus(self, amount: Decimal) -> Quantity:
        return Quantity(quantities.EXACT.add(self.amount, amount))


def parse_quantity(text: str) -> Quantity | None:
    """Return the quantity; None when the text is not one."""
    if not quantities.is_quantity(text):
        return None
    number = text[:-2] if text.endswith("i") else ""
    return Quantity(quantities.read(text)[0], "." not in number.rstrip("0").rstrip("."))


def _quantity_functions() -> Iterator[Declared]:
    name = Quantity.cel_name
    yield Declared("quantity", f"(string) -> {name}", _quantity)
    yield Declared("isQuantity", "(string) -> bool", lambda text: parse_quantity(text) is not None)
    yield Declared("sign", f"({name}) -> int", lambda q: (q.amount > 0) - (q.amount < 0))
    yield Declared("isGreaterThan", f"{name}.({name}) -> bool", lambda a, b: a > b)
    yield Declared("isLessThan", f"{name}.({name}) -> bool", lambda a, b: a < b)
    yield Declared("compareTo", f"{name}.({name}) -> int", lambda a, b: (a > b) - (a < b))
    yield Declared("asApproximateFloat", f"{name}.() -> double", lambda q: float(q.amount))
    yield Declared("asInteger", f"{name}.() -> int", _as_integer)
    yield Declared("isInteger", f"{name}.() -> bool", lambda q: q.is_integer)
    yield Declared("add", f"{name}.({name}) -> {name}", lambda a, b: a.plus(b.amount))
    yield Declared("add", f"{name}.(int) -> {name}", lambda a, b: a.plus(Decimal(b)))
    yield Declared("sub", f"{name}.({name}) -> {name}", lambda a, b: a.plus(b.amount.copy_negate()))
    yield Declared("sub", f"{name}.(int) -> {name}", lambda a, b: a.plus(Decimal(-b)))


def _quantity(text: str) -> Quantity:
    found = parse_quantity(text)
    if found is None:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return found


def _as_integer(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return int(quantity.amount)


# Addresses


_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@dataclass(frozen=True, slots=True)
class IP:
    """An address without a zone."""

    cel_name: ClassVar[str] = "net.IP"
    address: _Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address and the length of its network's prefix."""

    cel_name: ClassVar[str] = "net.CIDR"
    interface: _Network

    def __str__(self) -> str:
        return str(self.interface)


def parse_ip(text: str) -> IP | None:
    """Return the address; None when the text is not one, has a zone, or maps IPv4 into IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address.ipv4_mapped is not None):
        return None
    return IP(address)


def parse_cidr(text: str) -> CIDR | None:
    """Return the network with its address; None when the text is not one."""
    _, slash, length = text.rpartition("/")
    if not slash or not length.isdigit() or (len(length) > 1 and length[0] == "0"):
        return None
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        return None
    if isinstance(interface, ipaddress.IPv6Interface) and (interface.scope_id or interface.ip.ipv4_mapped is not None):
        return None
    return CIDR(interface)


def _addresses() -> Iterator[Declared]:
    ip, cidr = IP.cel_name, CIDR.cel_name
    yield Declared("ip", f"(string) -> {ip}", _ip)
    yield Declared("isIP", "(string) -> bool", lambda text: parse_ip(text) is not None)
    yield Declared("ip.isCanonical", "(string) -> bool", lambda text: str(_ip(text)) == text)
    yield Declared("string", f"({ip}) -> string", str)
    yield Declared("family", f"{ip}.() -> int", lambda value: value.address.version)
    yield Declared("isUnspecified", f"{ip}.() -> bool", lambda value: value.address.is_unspecified)
    yield Declared("isLoopback", f"{ip}.() -> bool", lambda value: value.address.is_loopback)
    yield Declared("isLinkLocalMulticast", f"{ip}.() -> bool", _is_link_local_multicast)
    yield Declared("isLinkLocalUnicast", f"{ip}.() -> bool", lambda value: value.address.is_link_local)
    yield Declared("isGlobalUnicast", f"{ip}.() -> bool", _is_global_unicast)
    yield Declared("cidr", f"(string) -> {cidr}", _cidr)
    yield Declared("isCIDR", "(string) -> bool", lambda text: parse_cidr(text) is not None)
    yield Declared("string", f"({cidr}) -> string", str)
    yield Declared("ip", f"{cidr}.() -> {ip}", lambda value: IP(value.interface.ip))
    yield Declared("containsIP", f"{cidr}.({ip}) -> bool", _contains_ip)
    yield Declared(
        "containsIP", f"{cidr}.(string) -> bool", lambda value, text: _contains_ip(value, _known(parse_ip(text)))
    )
    yield Declared("containsCIDR", f"{cidr}.({cidr}) -> bool", _contains_cidr)
    yield Declared("containsCIDR", f"{cidr}.(string) -> bool",
                   lambda value, text: _contains_cidr(value, _known(parse_cidr(text))))  # fmt: skip
    yield Declared("prefixLength", f"{cidr}.() -> int", lambda value: value.interface.network.prefixlen)
    yield Declared("masked", f"{cidr}.() -> {cidr}", _masked)


def _ip(text: str) -> IP:
    found = parse_ip(text)
    if found is not None:
        return found
    shown = go_quoted(text)
    why = why_no_address(text)
    if why is not None:
        raise EvaluationError(f"IP Address {shown} parse error during conversion from string: {why}")
    if "%" in text:
        raise EvaluationError(f"IP address {shown} with zone value is not allowed")
    raise EvaluationError(f"IPv4-mapped IPv6 address {shown} is not allowed")


def _cidr(text: str) -> CIDR:
    found = parse_cidr(text)
    if found is not None:
        return found
    head = "network address parse error during conversion from string: "
    raise EvaluationError(f"{head}{head}netip.ParsePrefix({go_quoted(text)}): {why_no_prefix(text)}")


def _known(value: T | None) -> T:
    if value is None:
        raise EvaluationError("no such overload")
    return value


def _is_link_local_multicast(value: IP) -> bool:
    network = ipaddress.ip_network("224.0.0.0/24" if value.address.version == 4 else "ff02::/16")
    return value.address in network


def _is_global_unicast(value: IP) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address) and address == ipaddress.IPv4Address("255.255.255.255"):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _contains_ip(value: CIDR, ip: IP) -> bool:
    return ip.address.version == value.interface.version and ip.address in value.interface.network


def _contains_cidr(value: CIDR, other: CIDR) -> bool:
    if value.interface.version != other.interface.version:
        return False
    network = value.interface.network
    return other.interface.ip in network and network.prefixlen <= other.interface.network.prefixlen


def _masked(value: CIDR) -> CIDR:
    return CIDR(ipaddress.ip_interface(str(value.interface.network)))


# URLs


@dataclass(frozen=True, slots=True)
class URL:
    """A URL, as Go reads it."""

    cel_name: ClassVar[str] = "kubernetes.URL"
    parts: go_urls.URL


def _urls() -> Iterator[Declared]:
    name = URL.cel_name
    yield Declared("url", f"(string) -> {name}", _url)
    yield Declared("isURL", "(string) -> bool", lambda text: not _uri(text))
    yield Declared("getScheme", f"{name}.() -> string", lambda url: url.parts.scheme)
    yield Declared("getHost", f"{name}.() -> string", lambda url: url.parts.host)
    yield Declared("getHostname", f"{name}.() -> string", lambda url: url.parts.host_and_port()[0])
    yield Declared("getPort", f"{name}.() -> string", lambda url: url.parts.host_and_port()[1])
    yield Declared("getEscapedPath", f"{name}.() -> string", lambda url: url.parts.escaped_path())
    yield Declared("getQuery", f"{name}.() -> map(string, list(string))", lambda url: url.parts.parameters())


def _url(text: str) -> URL:
    try:
        go_urls.parse_request_uri(text)
        return URL(go_urls.parse_url(text))
    except go_urls.URLError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


# Named formats


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format of strings; `check` returns the problems of a string."""

    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    check: Callable[[str], list[str]]


_SUBDOMAIN = re.compile(SUBDOMAIN)
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z")


def _shaped(
    pattern: str, longest: int, text: str, *, prefix: bool = False, unit: str = "characters"
) -> Callable[[str], list[str]]:
    """Return the check of a pattern and of a length, which is counted in bytes whatever the message says."""
    shape = re.compile(pattern)

    def check(value: str) -> list[str]:
        if prefix and len(value) > 1 and value.endswith("-"):
            value = value[:-2] + "a"  # a prefix may end with a dash: something follows
        problems = [f"must be no more than {longest} {unit}"] if len(value.encode()) > longest else []
        if shape.fullmatch(value):
            return problems
        return [*problems, "must not contain dots" if pattern == LABEL and _SUBDOMAIN.fullmatch(value) else text]

    return check


def _qualified_name(value: str) -> list[str]:
    parts = value.split("/")
    name, problems = parts[-1], list[str]()
    if len(parts) > 2:
        return [
            f"a valid label key {QUALIFIED_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _shaped(SUBDOMAIN, 253, SUBDOMAIN_RULE)(parts[0])]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not is_qualified_name(name):
        problems.append(f"name part {QUALIFIED_NAME_RULE}")
    return problems


def _uri(value: str) -> list[str]:
    try:
        go_urls.parse_request_uri(value)
    except go_urls.URLError as error:
        return [str(error)]
    return []


def _byte(value: str) -> list[str]:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return [] if value else ["invalid base64"]


def _date(value: str) -> list[str]:
    try:
        return [] if date.fromisoformat(value).isoformat() == value else ["invalid date"]
    except ValueError:
        return ["invalid date"]


FORMATS: Mapping[str, NamedFormat] = {
    name: NamedFormat(name, check)
    for name, check in {
        "dns1123Label": _shaped(LABEL, 63, LABEL_RULE),
        "dns1123Subdomain": _shaped(SUBDOMAIN, 253, SUBDOMAIN_RULE),
        "dns1035Label": _shaped(LABEL_1035, 63, LABEL_1035_RULE),
        "qualifiedName": _qualified_name,
        "dns1123LabelPrefix": _shaped(LABEL, 63, LABEL_RULE, prefix=True),
        "dns1123SubdomainPrefix": _shaped(SUBDOMAIN, 253, SUBDOMAIN_RULE, prefix=True),
        "dns1035LabelPrefix": _shaped(LABEL_1035, 63, LABEL_1035_RULE, prefix=True),
        "labelValue": _shaped(f"({QUALIFIED_NAME})?", 63, LABEL_VALUE_RULE, unit="bytes"),
        "uri": _uri,
        "uuid": lambda value: [] if _UUID.match(value) else ["does not match the UUID format"],
        "byte": _byte,
        "date": _date,
        "datetime": lambda value: [] if parse_timestamp(value) is not None else ["invalid datetime"],
    }.items()
}


def _formats() -> Iterator[Declared]:
    name = NamedFormat.cel_name
    yield Declared("format.named", f"(string) -> optional({name})",
                   lambda wanted: Optional(FORMATS[wanted]) if wanted in FORMATS else NOTHING)  # fmt: skip
    for known in FORMATS.values():
        yield Declared(f"format.{known.name}", f"() -> {name}", _constant(known))
    yield Declared("validate", f"{name}.(string) -> optional(list(string))", _validate)


def _constant(format: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: format


def _validate(format: NamedFormat, value: str) -> Optional:
    problems = format.check(value)
    return Optional(problems) if problems else NOTHING
