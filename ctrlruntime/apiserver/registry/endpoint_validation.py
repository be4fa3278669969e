"""Validation of Endpoints and EndpointSlices (pkg/apis/core and discovery, their validation), with kube-apiserver's words."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.registry.pod_validation import PROTOCOLS
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, required, too_many
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import (
    IMMUTABLE,
    address_causes,
    choice_causes,
    label_causes,
    lenient_address,
    port_causes,
    qualified_name_causes,
    subdomain_causes,
)
from ctrlruntime.selector import label_value_problems

_MOST_ENDPOINTS: Final = 1000
_MOST_ADDRESSES: Final = 100
_MOST_PORTS: Final = 20_000
_MOST_HINTS: Final = 8
_VERSIONS: Final = {"IPv4": 4, "IPv6": 6}
"""Types of addresses that are of one version of the protocol."""


def outer_address_causes(text: str, path: str) -> Iterator[StatusCause]:
    """An address that others reach (ValidateEndpointIP in pkg/apis/core/validation): not loopback, not link-local, not nothing."""
    address = lenient_address(text)
    if address is None:
        yield invalid_value(path, text, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield invalid_value(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield invalid_value(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid_value(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_local_multicast(address.packed):
        yield invalid_value(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")


def _is_local_multicast(packed: bytes) -> bool:
    return packed[:3] == b"\xe0\x00\x00" if len(packed) == 4 else packed[0] == 0xFF and packed[1] & 0x0F == 2


def endpoints_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    for index, subset in enumerate(document.get("subsets") or ()):
        where, ports = f"subsets[{index}]", subset.get("ports") or ()
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(where, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(kind) or ()):
                yield from _endpoint_address_causes(address, f"{where}.{kind}[{number}]")
        for number, port in enumerate(ports):
            place = f"{where}.ports[{number}]"
            if len(ports) > 1 and not port.get("name"):
                yield required(f"{place}.name")
            elif port.get("name"):
                yield from label_causes(port["name"], f"{place}.name")
            yield from port_causes(port.get("port", 0), f"{place}.port")
            yield from choice_causes(port.get("protocol", ""), f"{place}.protocol", PROTOCOLS)
            yield from _app_protocol_causes(port, place)


def _app_protocol_causes(port: Document, path: str) -> Iterator[StatusCause]:
    if port.get("appProtocol") is not None:
        yield from qualified_name_causes(port["appProtocol"], f"{path}.appProtocol")


def _endpoint_address_causes(address: Document, path: str) -> Iterator[StatusCause]:
    text = str(address.get("ip", ""))
    yield from address_causes(text, f"{path}.ip")
    if address.get("hostname"):
        yield from label_causes(address["hostname"], f"{path}.hostname")
    if address.get("nodeName") is not None:
        yield from subdomain_causes(address["nodeName"], f"{path}.nodeName")
    yield from outer_address_causes(text, f"{path}.ip")


def endpoint_slice_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    kind = document.get("addressType", "")
    if not kind:
        yield required("addressType")
    else:
        yield from choice_causes(kind, "addressType", ("FQDN", "IPv4", "IPv6"))
    yield from _few(document.get("ports"), "ports", _MOST_PORTS) or _slice_port_causes(document)
    # What was stored before may stay as it is, also where its type changes.
    if old is None or not is_same(document.get("endpoints"), old.get("endpoints")):
        endpoints: list[Document] = document.get("endpoints") or []
        yield from _few(endpoints, "endpoints", _MOST_ENDPOINTS) or (
            cause
            for index, endpoint in enumerate(endpoints)
            for cause in _endpoint_causes(endpoint, f"endpoints[{index}]", kind)
        )
    if old is not None and kind != old.get("addressType"):
        yield invalid_value("addressType", kind, IMMUTABLE)


def _few(given: Sequence[Any] | None, path: str, most: int) -> list[StatusCause]:
    """Return what is wrong with a list that is too long; of such a one nothing else is said."""
    return [too_many(path, len(given), most)] if given and len(given) > most else []


def _slice_port_causes(document: Document) -> Iterator[StatusCause]:
    names: set[str] = set()
    for index, port in enumerate(document.get("ports") or ()):
        name = port.get("name") or ""
        if name:
            yield from label_causes(name, f"ports[{index}].name")
        if name in names:
            yield duplicate(f"ports[{index}].name", name)
        names.add(name)
        yield from choice_causes(port.get("protocol", ""), f"ports[{index}].protocol", PROTOCOLS)
        yield from _app_protocol_causes(port, f"ports[{index}]")


def _endpoint_causes(endpoint: Document, path: str, kind: str) -> Iterator[StatusCause]:
    addresses: list[str] = endpoint.get("addresses") or []
    if not addresses:
        yield required(f"{path}.addresses", "must contain at least 1 address")
    yield from _few(addresses, f"{path}.addresses", _MOST_ADDRESSES)
    for number, text in enumerate(addresses):
        where = f"{path}.addresses[{number}]"
        if kind == "FQDN":
            yield from _domain_causes(text, where)
        elif kind in _VERSIONS:
            wrong = list(_slice_address_causes(text, where, kind))
            if not wrong and ipaddress.ip_address(text).version != _VERSIONS[kind]:
                yield invalid_value(f"{path}.addresses", text, f"must be an {kind} address")
            yield from wrong or outer_address_causes(text, where)
    if endpoint.get("nodeName") is not None:
        yield from subdomain_causes(endpoint["nodeName"], f"{path}.nodeName")
    if endpoint.get("hostname") is not None:
        yield from label_causes(endpoint["hostname"], f"{path}.hostname")
    if endpoint.get("hints") is not None:
        yield from _hint_causes(endpoint["hints"], f"{path}.hints")


def _hint_causes(hints: Document, path: str) -> Iterator[StatusCause]:
    for field in ("forZones", "forNodes"):
        many = _few(hints.get(field), f"{path}.{field}", _MOST_HINTS)
        yield from many
        if many:
            return
        names: set[str] = set()
        for number, hint in enumerate(hints.get(field) or ()):
            name, where = (hint or {}).get("name", ""), f"{path}.{field}[{number}].name"
            if name in names:
                yield duplicate(where, name)
            names.add(name)
            if field == "forZones":
                yield from (invalid_value(where, name, problem) for problem in label_value_problems(name))
            else:
                yield from subdomain_causes(name, where)


def _slice_address_causes(text: str, path: str, kind: str) -> Iterator[StatusCause]:
    """The form of an address in an EndpointSlice: IPv6, which came later, has only one."""
    wrong = list(address_causes(text, path))
    yield from wrong
    if kind == "IPv6" and not wrong and str(ipaddress.ip_address(text)) != text:
        yield invalid_value(path, text, f'must be in canonical form ("{ipaddress.ip_address(text)}")')


def _domain_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A domain with all its parts (IsFullyQualifiedDomainName in apimachinery's util/validation)."""
    name = text.removesuffix(".")
    if not text:
        yield required(path)
        return
    wrong = list(subdomain_causes(name, path))
    if wrong:
        yield from wrong
    elif "." not in name:
        yield invalid_value(path, name, "should be a domain with at least two segments separated by dots")
    else:
        yield from next((found for part in name.split(".") if (found := list(label_causes(part, path)))), [])


__all__ = ["endpoint_slice_causes", "endpoints_causes", "outer_address_causes"]
