"""Addresses and ports of Services: what an update keeps of them, and which ones a Service gets.

`prepare` runs between defaults and validation; `ServiceAddresses` assigns addresses and node ports at the moment of
the write, so nothing may await between it and the store. What is taken is read from the stored Services.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry.values import spec_of
from ctrlruntime.apiserver.storage import Key, Record

T = TypeVar("T")
SERVICES: Final = ("", "services")
DEFAULT_NETWORK: Final = ipaddress.IPv4Network("10.0.0.0/24")
NODE_PORTS: Final = range(30000, 32768)
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs")
_FAMILY_FIELDS: Final = ("ipFamilies", "ipFamilyPolicy")
_PORT_RANGE_TEXT: Final = "provided port is not in the valid range. The range of valid ports is 30000-32767"
_TAKEN_TEXT: Final = "provided port is already allocated"


def prepare(document: Document, old: Document | None) -> None:
    """Settle the fields that hang on each other: keep what was given out, drop what the type no longer has."""
    spec, before = document["spec"], spec_of(old)
    if old is not None:
        _keep_allocated(spec, before)
        _drop_by_type(spec, before)
        if _is_balanced(before) and not _is_balanced(spec):
            document["status"] = {**document.get("status", {}), "loadBalancer": {}}
    if spec.get("type") == "ExternalName":
        if old is not None:
            for name in (*_FAMILY_FIELDS, "internalTrafficPolicy"):
                spec.pop(name, None)
        return
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif spec.get("clusterIPs") and not spec.get("clusterIP"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    for name in _FAMILY_FIELDS:
        if not spec.get(name) and before.get(name) and before.get("type") != "ExternalName":
            spec[name] = before[name]
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        spec.setdefault("ipFamilyPolicy", "RequireDualStack")
        if not spec.get("ipFamilies"):
            spec["ipFamilies"] = ["IPv4", "IPv6"] if spec["ipFamilyPolicy"] != "SingleStack" else ["IPv4"]
        return
    if before.get("clusterIP") == "None" and spec.get("ipFamilyPolicy") == "RequireDualStack":
        raise _not_dual_stack(document, spec)
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = ["IPv4"]


def _not_dual_stack(document: Document, spec: Document) -> Exception:
    """A headless Service of all families cannot be given an address where there is one family."""
    text = "this cluster is not configured for dual-stack services"
    causes = [failures.invalid_value("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text)]
    causes += [
        failures.invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(spec.get("ipFamilies") or ())
        if family != "IPv4"
    ]
    return failures.invalid("Service", "", document["metadata"]["name"], causes)


def _keep_allocated(spec: Document, before: Document) -> None:
    """An update that leaves out what the server gave keeps it."""
    if spec.get("type") != "ExternalName" and before.get("type") != "ExternalName":
        for name in _ADDRESS_FIELDS:
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    if _needs_node_ports(spec) and _needs_node_ports(before):
        used = {port["nodePort"] for port in _ports(spec) if port.get("nodePort")}
        held = {port.get("name", ""): port.get("nodePort") for port in _ports(before)}
        for port in _ports(spec):
            kept = held.get(port.get("name", ""))
            if not port.get("nodePort") and kept and kept not in used:
                port["nodePort"] = kept
                used.add(kept)
    if _needs_health_port(spec) and _needs_health_port(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort")


def _drop_by_type(spec: Document, before: Document) -> None:
    """A client that changes the type alone does not mean to keep what the old type had."""
    is_same = all(spec.get(name) == before.get(name) for name in _ADDRESS_FIELDS)
    if spec.get("type") == "ExternalName" and before.get("type") != "ExternalName" and is_same:
        for name in _ADDRESS_FIELDS:
            spec.pop(name, None)
    node_ports = [port.get("nodePort") for port in _ports(spec)]
    if (
        _needs_node_ports(before)
        and not _needs_node_ports(spec)
        and node_ports == [port.get("nodePort") for port in _ports(before)]
    ):
        for port in _ports(spec):
            port.pop("nodePort", None)
    for has, names in (
        (_needs_health_port, ("healthCheckNodePort",)),
        (_is_balanced, ("allocateLoadBalancerNodePorts", "loadBalancerClass")),
        (_is_exposed, ("externalTrafficPolicy",)),
    ):
        for name in names:
            if has(before) and not has(spec) and spec.get(name) == before.get(name):
                spec.pop(name, None)


def _needs_node_ports(spec: Document) -> bool:
    is_wanted = spec.get("allocateLoadBalancerNodePorts", True)
    return spec.get("type") == "NodePort" or (_is_balanced(spec) and is_wanted is not False)


def _needs_health_port(spec: Document) -> bool:
    return _is_balanced(spec) and spec.get("externalTrafficPolicy") == "Local"


def _is_balanced(spec: Document) -> bool:
    return spec.get("type") == "LoadBalancer"


def _is_exposed(spec: Document) -> bool:
    return spec.get("type") in {"NodePort", "LoadBalancer"} or bool(spec.get("externalIPs"))


class _Holding(NamedTuple):
    """What one state of a stored Service has of addresses and ports."""

    record: Record
    address: str
    ports: tuple[int, ...]


class ServiceAddresses:
    """Gives out cluster IPs of one IPv4 network and node ports."""

    def __init__(self, network: ipaddress.IPv4Network = DEFAULT_NETWORK, *, rng: random.Random | None = None) -> None:
        self.network = network
        self._rng = rng or random.Random()  # noqa: S311 - addresses and ports are not secrets
        self._holdings: dict[Key, _Holding] = {}

    def allocate(
        self,
        document: Document,
        services: Mapping[Key, Record],
        *,
        old: Document | None = None,
        dry_run: bool = False,
    ) -> None:
        """Give out addresses and node ports, or take those that were asked for; `services` are the stored ones.

        A dry run does not look at what others have, as upstream's. Raises: Invalid when one cannot be had.
        """
        spec, before = document["spec"], spec_of(old)
        if spec.get("type") == "ExternalName":
            return
        is_settled = spec.get("clusterIP") in {"None", before.get("clusterIP", "")}
        if is_settled and not _needs_node_ports(spec) and not _needs_health_port(spec):
            return
        others = self._others(services, document)
        addresses = {other.address for other in others}
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free_address(addresses)
            spec["clusterIPs"] = [spec["clusterIP"]]
        elif spec["clusterIP"] not in {"None", before.get("clusterIP")}:
            self._take_address(document, spec, addresses, dry_run=dry_run)
        taken = {port for other in others for port in other.ports}
        if _needs_node_ports(spec):
            _take_ports(document, spec, before, taken, self._rng, dry_run=dry_run)
        if _needs_health_port(spec) and not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = _free_port({*taken, *_node_ports(spec)}, self._rng)

    def _others(self, services: Mapping[Key, Record], document: Document) -> list[_Holding]:
        """Return what other Services hold. A stored one is read once for each of its states."""
        key: Key = (document["metadata"].get("namespace", ""), document["metadata"]["name"])
        held, self._holdings = self._holdings, {}
        for other, record in services.items():
            known = held.get(other)
            if known is None or known.record is not record:
                spec = spec_of(record.writer.tree(record))
                known = _Holding(record, str(spec.get("clusterIP", "")), tuple(_node_ports(spec)))
            self._holdings[other] = known
        return [holding for other, holding in self._holdings.items() if other != key]

    def _take_address(self, document: Document, spec: Document, used: set[str], *, dry_run: bool) -> None:
        wanted, network = spec["clusterIP"], self.network
        address = ipaddress.ip_address(wanted)
        if address not in network or address in {network.network_address, network.broadcast_address}:
            why = "the provided network does not match the current range"
            if dry_run:  # another allocator upstream, and other words
                why = f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {network}"
        elif not dry_run and wanted in used:
            why = "provided IP is already allocated"
        else:
            return
        raise _invalid(document, "spec.clusterIPs", spec["clusterIPs"], f"failed to allocate IP {wanted}: {why}")

    def _free_address(self, others: set[str]) -> str:
        """Return a free address; a sixteenth of the range (at least 16) is left to those who choose one themselves."""
        network = self.network
        used = {str(network[1]), *others}
        kept = min(max(16, network.num_addresses // 16), 256)
        first = kept if kept < network.num_addresses - 1 else 1
        draw = lambda: str(network[self._rng.randrange(first, network.num_addresses - 1)])  # noqa: E731 - one line
        return _choose(draw, used, lambda: (str(address) for address in network.hosts()))


def _take_ports(
    document: Document, spec: Document, before: Document, taken: set[int], rng: random.Random, *, dry_run: bool
) -> None:
    held, given = set(_node_ports(before)), dict[int, set[str]]()
    for index, port in enumerate(_ports(spec)):
        number, protocol = port.get("nodePort", 0), port.get("protocol", "TCP")
        if not number:
            continue
        where = f"spec.ports[{index}].nodePort"
        if number not in held and number not in NODE_PORTS and not dry_run:
            raise _invalid(document, where, number, _PORT_RANGE_TEXT)
        if number not in held and ((number in taken and not dry_run) or protocol in given.get(number, ())):
            raise _invalid(document, where, number, _TAKEN_TEXT)
        given.setdefault(number, set()).add(protocol)
    for port in _ports(spec):
        if not port.get("nodePort"):
            port["nodePort"] = _free_port(taken | given.keys(), rng)
            given.setdefault(port["nodePort"], set()).add(port.get("protocol", "TCP"))


def _invalid(document: Document, path: str, value: Any, text: str) -> Exception:
    return failures.invalid("Service", "", document["metadata"]["name"], [failures.invalid_value(path, value, text)])


def _free_port(used: set[int], rng: random.Random) -> int:
    return _choose(lambda: rng.choice(NODE_PORTS), used, lambda: iter(NODE_PORTS))


def _choose(draw: Callable[[], T], used: set[T], everything: Callable[[], Iterator[T]]) -> T:
    """Draw until something free is found; look through everything only when the range is nearly full."""
    for _ in range(32):
        found = draw()
        if found not in used:
            return found
    for found in everything():
        if found not in used:
            return found
    raise failures.plain_internal("failed to allocate: range is full")


def _ports(spec: Document) -> list[Document]:
    return [port for port in spec.get("ports") or () if isinstance(port, dict)]


def _node_ports(spec: Document) -> list[int]:
    found = [port["nodePort"] for port in _ports(spec) if port.get("nodePort")]
    return [*found, *([spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else [])]
