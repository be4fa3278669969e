"""Checks of single values that the rules of many kinds share: names, labels, selectors, numbers, addresses.

Each yields the causes kube-apiserver would give, in its words. Takes parts of objects that were read as their Go type;
`metadata` and the validation of the kinds use it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.name_rules import (
    LABEL_1035_RULE,
    LABEL_RULE,
    SUBDOMAIN_RULE,
    WILDCARD_RULE,
    is_label,
    is_label_1035,
    is_subdomain,
)
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import label_key_problems, label_value_problems, utf8_length

NON_NEGATIVE: Final = "must be greater than or equal to 0"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
IMMUTABLE: Final = "field is immutable"
ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
    "regex used for validation is '[-._a-zA-Z0-9]+')"
)
_URL_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_ANNOTATIONS_LIMIT: Final = 262_144
_PERCENT: Final = re.compile(r"\d+%\Z")
_PERCENT_TEXT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


# Names


def label_problems(value: str) -> list[str]:
    """Return what keeps a value from being a DNS label; empty when nothing does."""
    problems = ["must be no more than 63 characters"] if utf8_length(value) > 63 else []
    if not is_label(value):
        problems.append("must not contain dots" if is_subdomain(value) else LABEL_RULE)
    return problems


def label_1035_problems(value: str) -> list[str]:
    """Return what keeps a value from being the name of a version, a plural or the like; empty when nothing does."""
    problems = ["must be no more than 63 characters"] if utf8_length(value) > 63 else []
    return problems if is_label_1035(value) else [*problems, LABEL_1035_RULE]


def subdomain_problems(value: str) -> list[str]:
    """Return what keeps a value from being a DNS subdomain, as the names of most kinds must be."""
    problems = ["must be no more than 253 characters"] if utf8_length(value) > 253 else []
    if not is_subdomain(value):
        problems.append(SUBDOMAIN_RULE)
    return problems


def kind_causes(kind: str, path: str) -> Iterator[StatusCause]:
    """A kind: what would be a label in lower case."""
    problems = label_1035_problems(kind.lower())
    if problems:
        yield invalid_value(path, kind, f"may have mixed case, but should otherwise match: {','.join(problems)}")


def label_causes(value: Any, path: str) -> Iterator[StatusCause]:
    for problem in label_problems(str(value)):
        yield invalid_value(path, value, problem)


def subdomain_causes(value: Any, path: str) -> Iterator[StatusCause]:
    for problem in subdomain_problems(str(value)):
        yield invalid_value(path, value, problem)


def host_causes(host: str, path: str) -> Iterator[StatusCause]:
    """A host of an Ingress: a subdomain, or `*.` and a subdomain."""
    if "*" in host:
        if not host.startswith("*.") or not is_subdomain(host[2:]):
            yield invalid_value(path, host, WILDCARD_RULE)
    else:
        yield from subdomain_causes(host, path)


def key_problems(key: str) -> list[str]:
    """Return what keeps a text from being the key of a label, an annotation or the like."""
    return label_key_problems(key)


def config_key_causes(key: str, path: str) -> Iterator[StatusCause]:
    """A key of a ConfigMap or a Secret."""
    if utf8_length(key) > 253:
        yield invalid_value(path, key, "must be no more than 253 characters")
    if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
        yield invalid_value(path, key, _KEY_TEXT)
    elif key in {".", ".."}:
        yield invalid_value(path, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid_value(path, key, "must not start with '..'")


def qualified_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    for problem in key_problems(name):
        yield invalid_value(path, name, problem)


def domain_path_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A domain, a slash and a path (IsDomainPrefixedPath in apimachinery's pkg/util/validation)."""
    domain, _, rest = text.partition("/")
    if not text:
        yield required(path)
    elif not domain or not rest:
        yield invalid_value(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from subdomain_causes(domain, path)
        if not re.fullmatch(_URL_PATH, rest):
            yield invalid_value(path, rest, f"Invalid path (regex used for validation is '{_URL_PATH}')")


# Labels and selectors


def labels_causes(labels: Mapping[str, Any] | None, path: str) -> Iterator[StatusCause]:
    """A map of labels."""
    for key, value in (labels or {}).items():
        for problem in key_problems(key):
            yield invalid_value(path, key, problem)
        for problem in label_value_problems(value):
            yield invalid_value(path, value, problem)


def annotations_causes(annotations: Mapping[str, str] | None, path: str) -> Iterator[StatusCause]:
    """A map of annotations."""
    size = 0
    for key, value in (annotations or {}).items():
        yield from (invalid_value(path, key, problem) for problem in key_problems(key.lower()))
        size += utf8_length(key) + utf8_length(value)
    if size > _ANNOTATIONS_LIMIT:
        yield too_long(path, _ANNOTATIONS_LIMIT)


def selector_causes(selector: Document | None, path: str) -> Iterator[StatusCause]:
    """A LabelSelector."""
    labels = (selector or {}).get("matchLabels") or {}
    yield from labels_causes(labels, f"{path}.matchLabels")
    for index, requirement in enumerate((selector or {}).get("matchExpressions") or ()):
        yield from _requirement_causes(requirement, f"{path}.matchExpressions[{index}]")


def _requirement_causes(requirement: Document, path: str) -> Iterator[StatusCause]:
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not requirement.get("values"):
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if requirement.get("values"):
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden_field(f"{path}.values", text)
        case operator:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    for problem in key_problems(requirement.get("key", "")):
        yield invalid_value(f"{path}.key", requirement.get("key", ""), problem)
    for number, value in enumerate(requirement.get("values") or ()):
        for problem in label_value_problems(value):
            yield invalid_value(f"{path}.values[{number}]", value, problem)


# Numbers and addresses


def not_negative(tree: Document, path: str, *names: str) -> Iterator[StatusCause]:
    for name in names:
        if tree.get(name) is not None and tree[name] < 0:
            yield invalid_value(f"{path}.{name}", tree[name], NON_NEGATIVE)


def port_causes(number: Any, path: str) -> Iterator[StatusCause]:
    if not 0 < number < 65536:
        yield invalid_value(path, number, PORT_RANGE)


def port_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    if utf8_length(name) > 15:
        yield invalid_value(path, name, "must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        yield invalid_value(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        yield invalid_value(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid_value(path, name, "must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        yield invalid_value(path, name, "must not begin or end with a hyphen")


def port_or_name_causes(port: Any, path: str) -> Iterator[StatusCause]:
    yield from port_name_causes(port, path) if isinstance(port, str) else port_causes(port, path)


def share_causes(value: Any, path: str) -> Iterator[StatusCause]:
    """A number of Pods, or a percentage."""
    if isinstance(value, str):
        if not _PERCENT.match(value):
            yield invalid_value(path, value, _PERCENT_TEXT)
    elif value is not None and value < 0:
        yield invalid_value(path, value, NON_NEGATIVE)


def percentage(value: Any) -> int | None:
    """Return the number before the `%`; None if it is not a percentage."""
    return int(value[:-1]) if isinstance(value, str) and _PERCENT.match(value) else None


def share_value(value: Any) -> int:
    """Return the number of Pods or of hundredths, 0 for what is neither (getIntOrPercentValue in pkg/apis/apps/validation)."""
    if isinstance(value, str):
        return percentage(value) or (int(value) if re.fullmatch(r"[+-]?[0-9]+", value) else 0)
    return int(value or 0)


def at_most_all_causes(value: Any, path: str) -> Iterator[StatusCause]:
    if (percentage(value) or 0) > 100:
        yield invalid_value(path, value, "must not be greater than 100%")


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def address_causes(text: str, path: str) -> Iterator[StatusCause]:
    """An IP address in its plain form (parseIP in apimachinery's util/validation/ip.go)."""
    if not is_address(text):
        is_padded = is_address(re.sub(r"\b0+(?=\d)", "", text)) and ":" not in text
        yield invalid_value(path, text, "must not have leading 0s" if is_padded else ADDRESS)
    elif ":" in text and ipaddress.IPv6Address(text).ipv4_mapped is not None:
        yield invalid_value(path, text, "must not be an IPv4-mapped IPv6 address")


def canonical_address_problems(text: str) -> list[str]:
    """Return what is wrong with an IP address that has to be in its canonical form (IsValidIP in apimachinery's util/validation/ip.go)."""
    found = [cause.message.partition(": ")[2].partition(": ")[2] for cause in address_causes(text, "")]
    if not found and str(ipaddress.ip_address(text)) != text:
        found = [f'must be in canonical form ("{ipaddress.ip_address(text)}")']
    return found


Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_PADDING = re.compile(r"(?<![^./])0+(?=[0-9])")


def lenient_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address, also one with leading zeros; an IPv4-mapped one is IPv4 (ParseIPSloppy in k8s.io/utils/net)."""
    if "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text if ":" in text else _PADDING.sub("", text))
    except ValueError:
        return None
    return (address.ipv4_mapped if address.version == 6 else None) or address


def network_of(text: str) -> Network | None:
    """Return the network of a CIDR, also of one with leading zeros or bits beyond the prefix; None if it has not that form."""
    address, _, length = text.partition("/")
    if not length.isdecimal() or not length.isascii() or "%" in address:
        return None
    try:
        plain = f"{address if ':' in address else _PADDING.sub('', address)}/{int(length)}"
        network = ipaddress.ip_network(plain, strict=False)
    except ValueError:
        return None
    mapped = network.network_address.ipv4_mapped if network.version == 6 else None
    return network if mapped is None else ipaddress.ip_network((mapped, max(network.prefixlen - 96, 0)))


def interface_address_causes(text: str, path: str) -> Iterator[StatusCause]:
    """An address and the length of the prefix of its network, in canonical form (IsValidInterfaceAddress in the same file)."""
    network, given = network_of(text), text.partition("/")[0]
    if network is None:
        yield invalid_value(path, text, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
        return
    address = ipaddress.ip_address(given if ":" in given else _PADDING.sub("", given))
    mapped = address.ipv4_mapped if address.version == 6 else None
    canonical = f"{address if mapped is None else mapped}/{network.prefixlen}"
    if text != canonical:
        yield invalid_value(path, text, f'must be in canonical form ("{canonical}")')


def network_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A CIDR in its plain form (parseCIDR in apimachinery's util/validation/ip.go)."""
    network = network_of(text)
    address = text.partition("/")[0]
    if network is None:
        yield invalid_value(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
        return
    if _PADDING.search(text.partition("/")[2] if ":" in address else text):
        yield invalid_value(path, text, "must not have leading 0s in IP or prefix length")
        return
    given = ipaddress.ip_address(address)
    if given.version == 6 and given.ipv4_mapped is not None:
        yield invalid_value(path, text, "must not have an IPv4-mapped IPv6 address")
    elif given != network.network_address:
        yield invalid_value(path, text, "must not have bits set beyond the prefix length")


def address_warnings(text: str, path: str) -> Iterator[str]:
    """An IPv6 address that is not written as usual (GetWarningsForIP in apimachinery's util/validation/ip.go).

    Validation has refused the other forms that upstream warns of.
    """
    if ":" in text and is_address(text) and str(ipaddress.ip_address(text)) != text:
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{ipaddress.ip_address(text)}")'


def network_warnings(text: str, path: str) -> Iterator[str]:
    """The same of a CIDR (GetWarningsForCIDR)."""
    network = network_of(text)
    if network is not None and network.version == 6 and str(network) != text:
        yield f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")'


def no_dots_causes(text: str, path: str) -> Iterator[StatusCause]:
    if ".." in text.split("/"):
        yield invalid_value(path, text, "must not contain '..'")


def relative_path_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A path below a folder (validateLocalDescendingPath in pkg/apis/core/validation/validation.go)."""
    if text.startswith("/"):
        yield invalid_value(path, text, "must be a relative path")
    yield from no_dots_causes(text, path)


# Choices and changes


def choice_causes(value: Any, path: str, supported: Sequence[str]) -> Iterator[StatusCause]:
    """One of a few words, listed as upstream lists them."""
    if value not in supported:
        yield not_supported(path, value or "", supported)


def immutable_causes(document: Document, old: Document | None, *paths: str) -> Iterator[StatusCause]:
    for path in paths if old is not None else ():
        before, now = at(old, path), at(document, path)
        if before != now:
            yield invalid_value(path, now, IMMUTABLE)


def at(document: Document | None, path: str) -> Any:
    """Return the value at a dotted path, or None."""
    value: Any = document
    for name in path.split("."):
        value = (value or {}).get(name)
    return value


def without(tree: Document, names: Iterable[str]) -> Document:
    dropped = set(names)
    return {name: value for name, value in tree.items() if name not in dropped}


def spec_of(document: Document | None) -> Document:
    found: Document = (document or {}).get("spec") or {}
    return found
