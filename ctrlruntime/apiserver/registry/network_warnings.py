"""What kube-apiserver warns of in Services, endpoints, Ingresses and network policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.network_validation import CLASS_ANNOTATION, DIRECTIONS
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import address_warnings, network_warnings, spec_of

_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_MANAGER: Final = "endpoints.kubernetes.io/managed-by"


def service_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """A Service (pkg/api/service/warnings.go)."""
    spec = spec_of(document)
    kind, external = spec.get("type"), spec.get("externalIPs") or ()
    is_headless = kind == "ClusterIP" and spec.get("clusterIP") == "None"
    if _HINTS in (document["metadata"].get("annotations") or {}):
        yield f"annotation {_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead"
    if spec.get("clusterIP") not in {None, "", "None"}:
        yield from _addresses(spec.get("clusterIPs") or (), "spec.clusterIPs")
    if is_headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    yield from _addresses(external, "spec.externalIPs")
    if external and kind == "ExternalName":
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    elif external and not is_headless:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings(spec.get("loadBalancerIP", ""), "spec.loadBalancerIP")
    for index, text in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from network_warnings(text, f"spec.loadBalancerSourceRanges[{index}]")
    if spec.get("externalName") and kind != "ExternalName":
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def balancer_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """The status of a Service or an Ingress."""
    balancer: Document = (document.get("status") or {}).get("loadBalancer") or {}
    for index, place in enumerate(balancer.get("ingress") or ()):
        yield from address_warnings(place.get("ip", ""), f"status.loadBalancer.ingress[{index}]")


def endpoints_warnings(document: Document, _: Document | None) -> Iterator[str]:
    if (document["metadata"].get("labels") or {}).get(_MANAGER) == "endpoint-controller":
        return  # it writes addresses in their plain form, so upstream saves the time
    for index, subset in enumerate(document.get("subsets") or ()):
        for kind in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(kind) or ()):
                yield from address_warnings(address.get("ip", ""), f"subsets[{index}].{kind}[{number}].ip")


def endpoint_slice_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """An EndpointSlice. Validation has refused the addresses that upstream warns of."""
    if document.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"


def ingress_warnings(document: Document, _: Document | None) -> Iterator[str]:
    annotations = document["metadata"].get("annotations") or {}
    if CLASS_ANNOTATION in annotations and spec_of(document).get("ingressClassName") is None:
        yield f"annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"


def network_policy_warnings(document: Document, _: Document | None) -> Iterator[str]:
    for direction, peers in DIRECTIONS:
        for index, rule in enumerate(spec_of(document).get(direction) or ()):
            for number, peer in enumerate(rule.get(peers) or ()):
                block, where = peer.get("ipBlock") or {}, f"spec.{direction}[{index}].{peers}[{number}].ipBlock"
                yield from network_warnings(block.get("cidr", ""), f"{where}.cidr")
                for place, text in enumerate(block.get("except") or ()):
                    yield from network_warnings(text, f"{where}.except[{place}]")


def _addresses(texts: list[str] | tuple[()], path: str) -> Iterator[str]:
    for index, text in enumerate(texts):
        yield from address_warnings(text, f"{path}[{index}]")


__all__ = [
    "balancer_warnings",
    "endpoint_slice_warnings",
    "endpoints_warnings",
    "ingress_warnings",
    "network_policy_warnings",
    "service_warnings",
]
