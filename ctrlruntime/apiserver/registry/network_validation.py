"""Validation of Services, endpoints, Ingresses and network policies, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.endpoint_validation import outer_address_causes
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_validation import PROTOCOLS
from ctrlruntime.apiserver.registry.services import is_exposed
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.schema.metadata import segment_causes
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    address_causes,
    choice_causes,
    domain_path_causes,
    host_causes,
    label_causes,
    labels_causes,
    lenient_address,
    network_causes,
    network_of,
    port_causes,
    port_name_causes,
    port_or_name_causes,
    qualified_name_causes,
    selector_causes,
    spec_of,
    subdomain_causes,
)
from ctrlruntime.selector import utf8_length

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_TRAFFIC: Final = ("Cluster", "Local")
_LONGEST_CONTROLLER: Final = 250
_PATH_SEQUENCES: Final = ("//", "/./", "/../", "%2f", "%2F")
_PATH_ENDS: Final = ("/..", "/.")
CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
_SOURCE_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_CLASS: Final = "loadBalancerClass"
DIRECTIONS: Final = (("ingress", "from"), ("egress", "to"))


def service_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, before = spec_of(document), spec_of(old)
    kind, ports = spec.get("type"), spec.get("ports") or ()
    if old is not None:
        yield from _service_change_causes(spec, before)
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        yield required("spec.ports")
    if kind in {"LoadBalancer", "NodePort"} and spec.get("clusterIP") == "None":
        yield invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name_causes(spec)
    yield from _service_port_causes(ports, kind)
    yield from labels_causes(spec.get("selector"), "spec.selector")
    yield from choice_causes(spec.get("sessionAffinity", ""), "spec.sessionAffinity", ("ClientIP", "None"))
    if spec.get("sessionAffinity") == "ClientIP":
        yield from _affinity_causes(spec)
    for index, address in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        yield from list(address_causes(address, path)) or outer_address_causes(address, path)
    yield from choice_causes(kind or "", "spec.type", _TYPES)
    yield from _duplicate_port_causes(ports)
    yield from _balancer_causes(document)
    yield from _traffic_causes(spec)
    if spec.get("trafficDistribution") is not None:
        supported = ("PreferClose", "PreferSameZone", "PreferSameNode")
        yield from choice_causes(spec["trafficDistribution"], "spec.trafficDistribution", supported)


def _external_name_causes(spec: Document) -> Iterator[StatusCause]:
    name = str(spec.get("externalName", ""))
    if spec.get("clusterIPs") or spec.get("clusterIP"):
        yield forbidden_field("spec.clusterIPs", "may not be set for ExternalName services")
    for field in ("ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield forbidden_field(f"spec.{field}", "may not be set for ExternalName services")
    if not name:
        yield required("spec.externalName")
    else:
        yield from subdomain_causes(name.removesuffix("."), "spec.externalName")


def _service_port_causes(ports: Iterable[Document], kind: Any) -> Iterator[StatusCause]:
    ports = list(ports)
    names: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"spec.ports[{index}]", port.get("name", "")
        if len(ports) > 1 and not name:
            yield required(f"{where}.name")
        elif name:
            yield from label_causes(name, f"{where}.name")
            if name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
        yield from port_causes(port.get("port", 0), f"{where}.port")
        yield from choice_causes(port.get("protocol", ""), f"{where}.protocol", PROTOCOLS)
        if port.get("targetPort") is not None:
            yield from port_or_name_causes(port["targetPort"], f"{where}.targetPort")
        if port.get("appProtocol") is not None:
            yield from qualified_name_causes(port["appProtocol"], f"{where}.appProtocol")
        if port.get("nodePort") and kind == "ClusterIP":
            yield forbidden_field(f"{where}.nodePort", f"may not be used when `type` is '{kind}'")


def _duplicate_port_causes(ports: Iterable[Document]) -> Iterator[StatusCause]:
    """No two ports share number and protocol."""
    seen: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            bare = {"protocol": port.get("protocol"), "port": port.get("port")}
            yield duplicate(f"spec.ports[{index}]", internal("core.ServicePort", bare))
        seen.add(key)


def _affinity_causes(spec: Document) -> Iterator[StatusCause]:
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds", 1)
    if not 0 < seconds <= 86400:
        path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield invalid_value(path, seconds, "must be greater than 0 and less than 86400")


def _service_change_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """What an update may not change (ValidateServiceUpdate)."""
    kinds = {spec.get("type"), before.get("type")}
    is_headless, was_headless = (each.get("clusterIP") == "None" for each in (spec, before))
    if "ExternalName" not in kinds and not (is_headless and was_headless):
        yield from _given_once_causes(spec, before, "clusterIPs", "clusterIP")
    if "ExternalName" not in kinds and not is_headless and not was_headless:
        yield from _given_once_causes(spec, before, "ipFamilies", "ipFamily")
    if kinds == {"LoadBalancer"} and spec.get(_CLASS) != before.get(_CLASS):
        yield invalid_value(f"spec.{_CLASS}", spec.get(_CLASS), "may not change once set")
    yield from _class_causes(spec)
    needs = [
        each.get("type") == "LoadBalancer" and each.get("externalTrafficPolicy") == "Local" for each in (spec, before)
    ]
    if all(needs) and spec.get("healthCheckNodePort") != before.get("healthCheckNodePort"):
        yield forbidden_field("spec.healthCheckNodePort", "field is immutable")


def _given_once_causes(spec: Document, before: Document, field: str, what: str) -> Iterator[StatusCause]:
    """The first stays what it is; a second one may come, and go again with the policy."""
    now, then, path = spec.get(field) or [], before.get(field) or [], f"spec.{field}"
    if len(now) == len(then):
        for index, (one, other) in enumerate(zip(now, then, strict=True)):
            if one != other:
                place = index if field == "clusterIPs" else 0
                yield invalid_value(f"{path}[{place}]", now, "may not change once set")
        return
    if not now:
        yield invalid_value(f"{path}[0]", spec.get(field), f"primary {what} can not be unset")
    elif then and now[0] != then[0]:
        yield invalid_value(f"{path}[0]", spec.get("clusterIPs"), "may not change once set")
    if len(now) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        text = f"must be set to 'SingleStack' when releasing the secondary {what}"
        yield invalid_value("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), text)


def _class_causes(spec: Document) -> Iterator[StatusCause]:
    if spec.get(_CLASS) is None:
        return
    if spec.get("type") == "LoadBalancer":
        yield from qualified_name_causes(spec[_CLASS], f"spec.{_CLASS}")
    else:
        yield forbidden_field(f"spec.{_CLASS}", "may only be used when `type` is 'LoadBalancer'")


def _balancer_causes(document: Document) -> Iterator[StatusCause]:
    spec = spec_of(document)
    is_balanced, only = spec.get("type") == "LoadBalancer", "may only be used when `type` is 'LoadBalancer'"
    ranges = spec.get("loadBalancerSourceRanges") or ()
    annotation = (document["metadata"].get("annotations") or {}).get(_SOURCE_RANGES)
    if ranges:
        if not is_balanced:
            yield forbidden_field("spec.LoadBalancerSourceRanges", only)
        for index, text in enumerate(ranges):
            yield from network_causes(str(text).strip(), f"spec.LoadBalancerSourceRanges[{index}]")
    elif annotation is not None:
        if not is_balanced:
            yield forbidden_field(f"metadata.annotations[{_SOURCE_RANGES}]", only)
        for text in annotation.strip().split(",") if annotation.strip() else ():
            yield from network_causes(text.strip(), f"metadata.annotations[{_SOURCE_RANGES}]")
    if spec.get("allocateLoadBalancerNodePorts") is not None and not is_balanced:
        yield forbidden_field("spec.allocateLoadBalancerNodePorts", only)
    yield from _class_causes(spec)


def service_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    """The addresses of a load balancer."""
    where = "status.loadBalancer.ingress"
    addresses = ((document.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    if addresses and document["spec"].get("type") != "LoadBalancer":
        yield forbidden_field(where, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, address in enumerate(addresses):
        path, ip, mode = f"{where}[{index}]", address.get("ip"), address.get("ipMode")
        if ip:
            yield from address_causes(ip, f"{path}.ip")
        if not ip and mode is not None:
            yield forbidden_field(f"{path}.ipMode", "may not be specified when `ip` is not set")
        elif mode is not None:
            yield from choice_causes(mode, f"{path}.ipMode", ("Proxy", "VIP"))
        yield from _balancer_host_causes(address, path)


def ingress_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    """The addresses of what serves an Ingress."""
    balancer: Document = (document.get("status") or {}).get("loadBalancer") or {}
    for index, address in enumerate(balancer.get("ingress") or ()):
        path = f"status.loadBalancer.ingress[{index}]"
        if address.get("ip"):
            yield from address_causes(address["ip"], f"{path}.ip")
        yield from _balancer_host_causes(address, path)


def _balancer_host_causes(address: Document, path: str) -> Iterator[StatusCause]:
    host = address.get("hostname")
    if host:
        yield from subdomain_causes(host, f"{path}.hostname")
        if lenient_address(host) is not None:
            yield invalid_value(f"{path}.hostname", host, "must be a DNS name, not an IP address")


def _traffic_causes(spec: Document) -> Iterator[StatusCause]:
    external, kind = spec.get("externalTrafficPolicy"), spec.get("type")
    if external is not None:
        if not is_exposed(spec):
            yield invalid_value(
                "spec.externalTrafficPolicy", external, "may only be set for externally-accessible services"
            )
        else:
            yield from choice_causes(external, "spec.externalTrafficPolicy", _TRAFFIC)
    if spec.get("internalTrafficPolicy") is not None:
        yield from choice_causes(spec["internalTrafficPolicy"], "spec.internalTrafficPolicy", _TRAFFIC)
    if spec.get("healthCheckNodePort") and not (kind == "LoadBalancer" and external == "Local"):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid_value("spec.healthCheckNodePort", spec["healthCheckNodePort"], text)


# --- Ingress


def ingress_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid_value("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend_causes(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        where, host = f"spec.rules[{index}]", str(rule.get("host", ""))
        if lenient_address(host) is not None:
            yield invalid_value(f"{where}.host", host, "must be a DNS name, not an IP address")
        if host:
            yield from host_causes(host, f"{where}.host")
        if rule.get("http") is not None and not rule["http"].get("paths"):
            yield required(f"{where}.http.paths")
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _ingress_path_causes(path, f"{where}.http.paths[{number}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            yield from host_causes(host, f"spec.tls[{index}].hosts[{number}]")
        if tls.get("secretName"):
            yield from subdomain_causes(tls["secretName"], f"spec.tls[{index}].secretName")
    if spec.get("ingressClassName") is not None:
        yield from subdomain_causes(spec["ingressClassName"], "spec.ingressClassName")
    annotated = (document["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    if old is None and annotated is not None and spec.get("ingressClassName") not in {None, annotated}:
        text = "must match `ingressClassName` when both are specified"
        yield invalid_value(f"annotations.{CLASS_ANNOTATION}", annotated, text)


def _ingress_path_causes(path: Document, where: str) -> Iterator[StatusCause]:
    kind, text = path.get("pathType"), str(path.get("path", ""))
    if kind is None:
        yield required(f"{where}.pathType", "pathType must be specified")
        return
    if kind not in {"Exact", "ImplementationSpecific", "Prefix"}:
        yield not_supported(f"{where}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    elif not text.startswith("/") and (kind != "ImplementationSpecific" or text):
        yield invalid_value(f"{where}.path", text, "must be an absolute path")
    if kind in {"Exact", "Prefix"}:
        for sequence in _PATH_SEQUENCES:
            if sequence in text:
                yield invalid_value(f"{where}.path", text, f"must not contain '{sequence}'")
        for end in _PATH_ENDS:
            if text.endswith(end):
                yield invalid_value(f"{where}.path", text, f"cannot end with '{end}'")
    yield from _backend_causes(path.get("backend") or {}, f"{where}.backend")


def _backend_causes(backend: Document, path: str) -> Iterator[StatusCause]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _typed_reference_causes(resource, f"{path}.resource")
    elif service is None:
        yield invalid_value(path, "", "resource or service backend is required")
    else:
        yield from _backend_service_causes(service, path)


def _backend_service_causes(service: Document, path: str) -> Iterator[StatusCause]:
    if not service.get("name"):
        yield required(f"{path}.service.name")
    else:
        yield from label_causes(service["name"], f"{path}.service.name")
    port = service.get("port") or {}
    name, number = port.get("name"), port.get("number")
    if name and number:
        yield invalid_value(path, "", "cannot set both port name & port number")
    elif name:
        yield from port_name_causes(name, f"{path}.service.port.name")
    elif number:
        yield from port_causes(number, f"{path}.service.port.number")
    else:
        yield required(path, "port name or number is required")


def ingress_class_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, parameters = spec_of(document), spec_of(document).get("parameters")
    if old is not None and spec.get("controller") != spec_of(old).get("controller"):
        yield invalid_value("spec.controller", spec.get("controller"), "field is immutable")
    if utf8_length(str(spec.get("controller", ""))) > _LONGEST_CONTROLLER:
        yield too_long("spec.controller", _LONGEST_CONTROLLER)
    yield from domain_path_causes(str(spec.get("controller", "")), "spec.controller")
    if parameters is not None:
        yield from _typed_reference_causes(parameters, "spec.parameters")
        yield from _parameter_scope_causes(parameters, "spec.parameters")


def _typed_reference_causes(reference: Document, path: str) -> Iterator[StatusCause]:
    """An object of any kind: a subdomain, and two segments of a path."""
    if reference.get("apiGroup") is not None:
        yield from subdomain_causes(reference["apiGroup"], f"{path}.apiGroup")
    for name in ("kind", "name"):
        value = reference.get(name)
        if not value:
            yield required(f"{path}.{name}")
        else:
            yield from segment_causes(value, f"{path}.{name}")


def _parameter_scope_causes(parameters: Document, path: str) -> Iterator[StatusCause]:
    scope, namespace = parameters.get("scope", ""), parameters.get("namespace")
    yield from choice_causes(scope, f"{path}.scope", ("Cluster", "Namespace"))
    if scope == "Cluster" and namespace is not None:
        yield forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from label_causes(namespace, f"{path}.namespace")


# --- network policies


def network_policy_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from selector_causes(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in DIRECTIONS:
        for index, rule in enumerate(spec.get(direction) or ()):
            where = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port_causes(port, f"{where}.ports[{number}]")
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer_causes(peer, f"{where}.{peers}[{number}]")
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        yield invalid_value("spec.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        yield from choice_causes(kind, f"spec.policyTypes[{index}]", ("Ingress", "Egress"))


def _policy_port_causes(port: Document, path: str) -> Iterator[StatusCause]:
    number, end = port.get("port"), port.get("endPort")
    yield from choice_causes(port.get("protocol", ""), f"{path}.protocol", ("TCP", "UDP", "SCTP"))
    if number is None:
        if end is not None:
            yield invalid_value(f"{path}.endPort", end, "may not be specified when `port` is not specified")
        return
    if isinstance(number, str):
        if end is not None:
            yield invalid_value(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from port_name_causes(number, f"{path}.port")
        return
    yield from port_causes(number, f"{path}.port")
    if end is not None:
        if end < number:
            yield invalid_value(f"{path}.endPort", number, "must be greater than or equal to `port`")
        yield from port_causes(end, f"{path}.endPort")


def _peer_causes(peer: Document, path: str) -> Iterator[StatusCause]:
    block = peer.get("ipBlock")
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_causes(peer.get(name), f"{path}.{name}")
    if block is not None:
        yield from _block_causes(block, f"{path}.ipBlock")
    if not peer:
        yield required(path, "must specify a peer")
    elif block is not None and len(peer) > 1:
        yield forbidden_field(path, "may not specify both ipBlock and another peer")


def _block_causes(block: Document, path: str) -> Iterator[StatusCause]:
    text = str(block.get("cidr", ""))
    if not text:
        yield required(f"{path}.cidr")
        return
    yield from network_causes(text, f"{path}.cidr")
    network = network_of(text)
    for index, exception in enumerate(block.get("except") or () if network else ()):
        where = f"{path}.except[{index}]"
        yield from network_causes(exception, where)
        inner = network_of(exception)
        if network and inner and not (inner.prefixlen > network.prefixlen and inner.network_address in network):
            yield invalid_value(where, exception, "must be a strict subset of `cidr`")


def address_object_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """An IPAddress: the object that has the address."""
    parent, path = spec_of(document).get("parentRef"), "spec.parentRef"
    if parent is None:
        yield required(path)
    else:
        if parent.get("group"):
            yield from subdomain_causes(parent["group"], f"{path}.group")
        for name in ("resource", "name", "namespace"):
            if parent.get(name):
                yield from segment_causes(parent[name], f"{path}.{name}")
            elif name != "namespace":
                yield required(f"{path}.{name}")
    if old is not None and spec_of(old).get("parentRef") != parent:
        yield invalid_value(path, internal("*networking.ParentReference", parent), IMMUTABLE)


def service_cidr_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A ServiceCIDR (ValidateServiceCIDR in pkg/apis/networking/validation/validation.go)."""
    cidrs: list[str] = spec_of(document).get("cidrs") or []
    path = "spec.cidrs"
    if old is not None:
        before: list[str] = spec_of(old).get("cidrs") or []
        gets_second = (len(before), len(cidrs)) == (1, 2)
        if len(before) != len(cidrs) and not gets_second:
            yield invalid_value(path, spec_of(document).get("cidrs"), IMMUTABLE)
            return
        for index, (earlier, text) in enumerate(zip(before, cidrs, strict=False)):
            if earlier != text:
                yield invalid_value(f"{path}[{index}]", text, IMMUTABLE)
        if not gets_second:
            return
    if not cidrs:
        yield required(path, "at least one CIDR required")
    if len(cidrs) > 2:
        yield invalid_value(path, {"CIDRs": cidrs}, "may only hold up to 2 values")
        return
    networks = [network_of(text) for text in cidrs]
    for index, (text, network) in enumerate(zip(cidrs, networks, strict=True)):
        wrong = list(network_causes(text, f"{path}[{index}]"))
        yield from wrong
        if not wrong and str(network) != text:
            yield invalid_value(f"{path}[{index}]", text, f'must be in canonical form ("{network}")')
    if len({network and network.version for network in networks}) < len(networks) and None not in networks:
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield invalid_value(path, cidrs, text)
