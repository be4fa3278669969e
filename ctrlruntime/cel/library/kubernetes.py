"""The additions of Kubernetes to CEL: quantities, versions, addresses, URLs and named formats."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from ctrlruntime import quantities
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
    yield from _versions()
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


# Versions


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version; build metadata does not count in comparisons."""

    cel_name: ClassVar[str] = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    stages: tuple[tuple[int, int, str], ...] = ()

    def compare(self, other: Semver) -> int:
        left, right = self._order(), other._order()
        return (left > right) - (left < right)

    def _order(self) -> tuple[Any, ...]:
        return (self.numbers, not self.stages, self.stages)


_NUMBER = r"(0|[1-9][0-9]*)"
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?\Z")


def parse_semver(text: str, normalize: bool = False) -> Semver | None:
    """Return the version; None when the text is not one. `normalize` forgives a `v`, missing numbers and leading zeros."""
    if normalize:
        text = _normalized(text)
    found = _SEMVER.match(text)
    if found is None:
        return None
    stages = tuple(_stage(part) for part in found[4].split(".")) if found[4] else ()
    if any(stage is None for stage in stages) or (found[5] and not all(found[5].split("."))):
        return None
    return Semver((int(found[1]), int(found[2]), int(found[3])), tuple(stage for stage in stages if stage is not None))


def _stage(part: str) -> tuple[int, int, str] | None:
    """Return a pre-release identifier so that it sorts: numbers before words."""
    if not part or (part.isdigit() and len(part) > 1 and part[0] == "0"):
        return None
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


def _normalized(text: str) -> str:
    text = text.strip().removeprefix("v")
    cut = min((at for at in (text.find("-"), text.find("+")) if at >= 0), default=len(text))
    numbers = [part.lstrip("0") or "0" if part.isdigit() else part for part in text[:cut].split(".")]
    while len(numbers) < 3:
        numbers.append("0")
    return ".".join(numbers) + text[cut:]


def _versions() -> Iterator[Declared]:
    name = Semver.cel_name
    yield Declared("semver", f"(string) -> {name}", _semver)
    yield Declared("semver", f"(string, bool) -> {name}", _semver)
    yield Declared("isSemver", "(string) -> bool", lambda text: parse_semver(text) is not None)
    yield Declared("isSemver", "(string, bool) -> bool", lambda text, loose: parse_semver(text, loose) is not None)
    for index, part in enumerate(("major", "minor", "patch")):
        yield Declared(part, f"{name}.() -> int", _number(index))
    yield Declared("isGreaterThan", f"{name}.({name}) -> bool", lambda a, b: a.compare(b) > 0)
    yield Declared("isLessThan", f"{name}.({name}) -> bool", lambda a, b: a.compare(b) < 0)
    yield Declared("compareTo", f"{name}.({name}) -> int", lambda a, b: a.compare(b))


def _semver(text: str, normalize: bool = False) -> Semver:
    found = parse_semver(text, normalize)
    if found is None:
        raise EvaluationError("No Major.Minor.Patch elements found")
    return found


def _number(index: int) -> Callable[[Semver], int]:
    return lambda version: version.numbers[index]


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
    if "%" in text:
        raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
    if text.lower().startswith("::ffff:"):
        raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    raise EvaluationError(
        f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP'
    )


def _cidr(text: str) -> CIDR:
    found = parse_cidr(text)
    if found is not None:
        return found
    why = "no '/'" if "/" not in text else f'ParseAddr("{text.rpartition("/")[0]}"): unable to parse IP'
    text = f'netip.ParsePrefix("{text}"): {why}'
    head = "network address parse error during conversion from string: "
    raise EvaluationError(f"{head}{head}{text}")


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
    """A URL in parts, as in Go."""

    cel_name: ClassVar[str] = "kubernetes.URL"
    scheme: str
    host: str
    path: str
    query: str


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})(.{0,2})")


def url_problem(text: str) -> str:
    """Return the error of Go's url.ParseRequestURI for the text; empty for a URL or an absolute path."""
    head = f'parse "{text}": '
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        return f"{head}net/url: invalid control character in URL"
    if not text:
        return f"{head}empty url"
    scheme, colon, rest = text.partition(":")
    if not colon or "/" in scheme or "?" in scheme:
        scheme, rest = "", text
    if colon and not scheme and not text.startswith("/"):
        return f"{head}missing protocol scheme"
    if scheme and not _SCHEME.match(scheme):
        if scheme[0].isascii() and scheme[0].isalpha():
            return f"{head}invalid URI for request"
        return f"{head}first path segment in URL cannot contain colon"
    if not rest.startswith("/"):
        return "" if scheme and rest else f"{head}invalid URI for request"
    bad = _BAD_ESCAPE.search(rest.partition("?")[0])
    if bad is not None:
        return f'{head}invalid URL escape "{bad[0]}"'
    host = urlsplit(text).netloc.rpartition("@")[2] if rest.startswith("//") else ""
    bad = re.search("%[0-7][0-9A-Fa-f]", host.partition("%25")[0])
    if bad is not None:
        return f'{head}invalid URL escape "{bad[0]}"'
    if " " in host:
        return f'{head}invalid character " " in host name'
    _, colon, port = host.rpartition(":")
    if colon and not port.endswith("]") and port and not port.isdigit():
        return f'{head}invalid port "{colon}{port}" after host'
    return ""


def _urls() -> Iterator[Declared]:
    name = URL.cel_name
    yield Declared("url", f"(string) -> {name}", _url)
    yield Declared("isURL", "(string) -> bool", lambda text: not url_problem(text))
    yield Declared("getScheme", f"{name}.() -> string", lambda url: url.scheme)
    yield Declared("getHost", f"{name}.() -> string", lambda url: url.host)
    yield Declared("getHostname", f"{name}.() -> string", lambda url: _host(url)[0])
    yield Declared("getPort", f"{name}.() -> string", lambda url: _host(url)[1])
    yield Declared("getEscapedPath", f"{name}.() -> string", lambda url: url.path)
    yield Declared("getQuery", f"{name}.() -> map(string, list(string))", _query)


def _url(text: str) -> URL:
    problem = url_problem(text)
    if problem:
        raise EvaluationError(f"URL parse error during conversion from string: {problem}")
    parts = urlsplit(text)
    host = unquote(parts.netloc.rpartition("@")[2])
    path = quote(parts.path, safe="!$&'()*+,/:;=@%~[]") + (
        f"#{parts.fragment}" if parts.fragment else ""
    )  # a request's URI has no fragment
    return URL(parts.scheme, host, path, parts.query)


def _host(url: URL) -> tuple[str, str]:
    name, colon, port = url.host.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = url.host, ""
    return name.removeprefix("[").removesuffix("]"), port


def _query(url: URL) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(url.query, keep_blank_values=True):
        found.setdefault(key, []).append(value)
    return found


# Named formats


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format of strings; `check` returns the problems of a string."""

    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    check: Callable[[str], list[str]]


_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\Z")


def _shaped(pattern: str, longest: int, text: str, *, prefix: bool = False) -> Callable[[str], list[str]]:
    shape = re.compile(pattern)

    def check(value: str) -> list[str]:
        if prefix and len(value) > 1 and value.endswith("-"):
            value = value[:-2] + "a"  # a prefix may end with a dash: something follows
        problems = [f"must be no more than {longest} characters"] if len(value) > longest else []
        return problems if shape.fullmatch(value) else [*problems, text]

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
    elif len(name) > 63:
        problems.append("name part must be no more than 63 characters")
    if not is_qualified_name(name):
        problems.append(f"name part {QUALIFIED_NAME_RULE}")
    return problems


def _uri(value: str) -> list[str]:
    problem = url_problem(value)
    return [problem] if problem else []


def _byte(value: str) -> list[str]:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


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
        "labelValue": _shaped(f"({QUALIFIED_NAME})?", 63, LABEL_VALUE_RULE),
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
