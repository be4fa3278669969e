"""Defaults of Services and of the kinds of networking and discovery."""

from __future__ import annotations

from ctrlruntime.apiserver.registry.services import is_exposed
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put, put_absent
from ctrlruntime.schema.trees import Document


def service(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        put(spec, "sessionAffinityConfig", {})
        put(spec["sessionAffinityConfig"], "clientIP", {})
        put(spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds", 10800)
    elif spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    put(spec, "type", "ClusterIP")
    for port in items(spec, "ports"):
        put(port, "protocol", "TCP")
        if port.get("targetPort") in {None, "", 0}:
            port["targetPort"] = port.get("port")
    if is_exposed(spec):
        put(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        put(spec, "allocateLoadBalancerNodePorts", True)
        for address in items(inner(document, "status", "loadBalancer") or {}, "ingress"):
            if address.get("ip"):
                put(address, "ipMode", "VIP")
    if spec["type"] != "ExternalName":
        put_absent(spec, "internalTrafficPolicy", "Cluster")


def network_policy(document: Document) -> None:
    spec = ensure_spec(document)
    put(spec, "policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        for port in items(rule, "ports"):
            put_absent(port, "protocol", "TCP")


def endpoints(document: Document) -> None:
    for subset in items(document, "subsets"):
        for port in items(subset, "ports"):
            put(port, "protocol", "TCP")


def endpoint_slice(document: Document) -> None:
    for port in items(document, "ports"):
        port.setdefault("name", "")
        put_absent(port, "protocol", "TCP")


def ingress_class(document: Document) -> None:
    parameters = inner(document, "spec", "parameters")
    if parameters is not None:
        put_absent(parameters, "scope", "Cluster")
