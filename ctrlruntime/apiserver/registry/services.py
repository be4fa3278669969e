"""Addresses and ports of Services: what an update keeps of them, and which ones a Service gets.

`prepare` runs between defaults and validation; `ServiceAddresses` assigns addresses and node ports at the moment of
the write, so nothing may await between it and the store. What is taken is read from the stored Services.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.storage import Key, Record
from ctrlruntime.errors import StatusCause
from ctrlruntime.schema.trees import Document, copy_tree
from ctrlruntime.schema.values import address_causes, choice_causes, spec_of

T = TypeVar("T")
SERVICES: Final = ("", "services")
DEFAULT_NETWORK: Final = ipaddress.IPv4Network("10.0.0.0/24")
NODE_PORTS: Final = range(30000, 32768)
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs")
_FAMILY_FIELDS: Final = ("ipFamilies", "ipFamilyPolicy")
_FAMILY: Final = "IPv4"
"""The family of the network that addresses are from."""
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
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
    is_listed_anew = spec.get("clusterIPs") and spec["clusterIPs"] != before.get("clusterIPs")
    if spec.get("clusterIP") and not is_listed_anew and spec["clusterIP"] != before.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    for name in _FAMILY_FIELDS:
        if not spec.get(name) and before.get(name) and before.get("type") != "ExternalName":
            spec[name] = before[name]
    _settle_families(document, before)


def _settle_families(document: Document, before: Document) -> None:
    """Fill in policy and families of the addresses, for a cluster of IPv4. Raises: Invalid, before other fields are looked at.

    As initIPFamilyFields in pkg/registry/core/service/storage/alloc.go, which returns at the first group of causes.
    """
    spec = document["spec"]
    is_bare = spec.get("clusterIP") == "None" and not spec.get("selector")
    if before.get("ipFamilyPolicy") == spec.get("ipFamilyPolicy") == "PreferDualStack" and all(
        before.get(name) == spec.get(name) for name in ("ipFamilies", "clusterIPs")
    ):
        return  # an update adds no family and removes none unless the policy changes
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if is_bare else "SingleStack")
    for group in (_field_causes(spec), _several_causes(spec), _address_family_causes(spec)):
        _refuse(document, group)
    if is_bare:
        families = spec.setdefault("ipFamilies", []) or [_FAMILY]
        if len(families) == 1 and spec["ipFamilyPolicy"] != "SingleStack":
            families = [*families, "IPv6" if families == [_FAMILY] else _FAMILY]
        spec["ipFamilies"] = families
        return
    _refuse(document, _cluster_causes(spec))
    if not spec.get("ipFamilies"):
        spec["ipFamilies"] = [_FAMILY]


def _refuse(document: Document, causes: Iterator[StatusCause]) -> None:
    found = list(causes)
    if found:
        raise failures.invalid("Service", "", document["metadata"].get("name", ""), found)


def _field_causes(spec: Document) -> Iterator[StatusCause]:
    """What is wrong with addresses, families and policy, whatever the cluster has (ValidateServiceClusterIPsRelatedFields)."""
    wanted, listed, families = spec.get("clusterIP"), spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    if wanted and listed[:1] != [wanted]:
        yield field_errors.invalid_value("spec.clusterIPs", listed, "first value must match `clusterIP`")
    elif listed and not wanted:
        yield field_errors.invalid_value("spec.clusterIPs", listed, "must be empty when `clusterIP` is not specified")
    for index, family in enumerate(families):
        where = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            yield field_errors.not_supported(where, family, _FAMILIES)
        if family in families[:index]:
            yield field_errors.duplicate(where, family)
    yield from choice_causes(spec.get("ipFamilyPolicy", "SingleStack"), "spec.ipFamilyPolicy", _POLICIES)
    wrong: list[StatusCause] = []
    for index, address in enumerate(listed):
        if index or address != "None":
            wrong += address_causes(address, f"spec.clusterIPs[{index}]")
        elif len(listed) > 1:
            wrong.append(
                field_errors.invalid_value("spec.clusterIPs", listed, "'None' must be the first and only value")
            )
    yield from wrong
    if len(listed) > 2:
        yield field_errors.invalid_value("spec.clusterIPs", listed, "may only hold up to 2 values")
    if wrong:
        return
    if len(listed) > 1 and {":" in address for address in listed} != {True, False}:
        text = "may specify no more than one IP for each IP family"
        yield field_errors.invalid_value("spec.clusterIPs", listed, text)
    for index, (address, family) in enumerate(zip(listed, families, strict=False)):
        if address != "None" and family in _FAMILIES and family != family_of(address):
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield field_errors.invalid_value(f"spec.clusterIPs[{index}]", address, text)


def _several_causes(spec: Document) -> Iterator[StatusCause]:
    if spec["ipFamilyPolicy"] != "SingleStack":
        return
    for name, what in (("ipFamilies", "IP families"), ("clusterIPs", "cluster IPs")):
        if len(spec.get(name) or ()) > 1:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            yield field_errors.invalid_value("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text)


def _address_family_causes(spec: Document) -> Iterator[StatusCause]:
    """An address without a family has to be one that the cluster can have."""
    listed: list[str] = spec.get("clusterIPs") or []
    for index in range(len(spec.get("ipFamilies") or ()), len(listed)):
        if listed[index] != "None" and family_of(listed[index]) != _FAMILY:
            text = f"{family_of(listed[index])} is not configured on this cluster"
            yield field_errors.invalid_value(f"spec.clusterIPs[{index}]", listed, text)


def _cluster_causes(spec: Document) -> Iterator[StatusCause]:
    """What a cluster of one family cannot give."""
    if spec["ipFamilyPolicy"] == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        yield field_errors.invalid_value("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], text)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        if family != _FAMILY:
            yield field_errors.invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def family_of(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


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
        (is_exposed, ("externalTrafficPolicy",)),
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


def is_exposed(spec: Document) -> bool:
    """Tell whether clients outside the cluster reach a Service (ExternallyAccessible in pkg/api/service/util.go)."""
    kind = spec.get("type")
    return kind in {"NodePort", "LoadBalancer"} or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


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

    def begin(
        self,
        document: Document,
        services: Mapping[Key, Record],
        last_steps: list[Callable[[], None]],
        *,
        old: Document | None = None,
        dry_run: bool = False,
    ) -> None:
        """Allocate before the Service is validated, as upstream, and look again as it is stored. Raises: as `allocate`."""
        asked = copy_tree(document["spec"])
        self.allocate(document, services, old=old, dry_run=dry_run)

        def confirm() -> None:
            if not dry_run and self._is_taken(document, services, old):  # webhooks took their time
                document["spec"] = asked
                self.allocate(document, services, old=old)

        last_steps.append(confirm)

    def _is_taken(self, document: Document, services: Mapping[Key, Record], old: Document | None) -> bool:
        spec, before = document["spec"], spec_of(old)
        address, ports = spec.get("clusterIP", ""), {*_node_ports(spec)} - {*_node_ports(before)}
        is_new = address not in {"", "None", before.get("clusterIP")}
        if not is_new and not ports:
            return False
        others = self._others(services, document)
        return any((is_new and other.address == address) or ports.intersection(other.ports) for other in others)

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
        others = self._others(services, None if old is None else document)
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

    def _others(self, services: Mapping[Key, Record], document: Document | None) -> list[_Holding]:
        """Return what other Services hold; of a new one the one of its name is another. A stored one is read once for each of its states."""
        metadata: Document = {} if document is None else document["metadata"]
        key: Key = (metadata.get("namespace", ""), metadata.get("name", ""))
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
    return failures.invalid(
        "Service", "", document["metadata"]["name"], [field_errors.invalid_value(path, value, text)]
    )


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
