"""Ingresses, network policies, ranges, slices and Endpoints with the mistakes that upstream's validation names."""

from __future__ import annotations

from typing import Any

from builtin_case import Case, Document, named

_INGRESSES = "networking.k8s.io/v1/ingresses"
_CLASSES = "/networking.k8s.io/v1/ingressclasses"
_POLICIES = "networking.k8s.io/v1/networkpolicies"
_CIDRS = "/networking.k8s.io/v1/servicecidrs"
_SLICES = "discovery.k8s.io/v1/endpointslices"
_ENDPOINTS = "v1/endpoints"
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}


def _path(**path: Any) -> Document:
    given = {"path": "/", "pathType": "Prefix", "backend": _BACKEND, **path}
    return named(spec={"rules": [{"host": "a.example.com", "http": {"paths": [given]}}]})


def _backend(**backend: Any) -> Document:
    return named(spec={"defaultBackend": backend})


def _slice(*endpoints: Document, kind: str = "IPv4", **fields: Any) -> Document:
    return named(addressType=kind, endpoints=list(endpoints), **fields)


def _addresses(kind: str, *addresses: str) -> Document:
    return _slice({"addresses": list(addresses)}, kind=kind)


def _subset(*addresses: Document, ports: list[Document] | None = None) -> Document:
    return named(subsets=[{"addresses": list(addresses), "ports": ports or [{"port": 80}]}])


def _rule(**rule: Any) -> Document:
    return named(spec={"podSelector": {}, "ingress": [rule]})


INGRESSES = [
    *(
        Case(f"ingress {kind} path {text!r}", _INGRESSES, _path(path=text, pathType=kind))
        for kind in ("Prefix", "Exact", "ImplementationSpecific")
        for text in ("a//b", "", "a/./b/..", "/a%2Fb%2f//x/../y/.")
    ),
    Case("ingress path of no type with a bad backend", _INGRESSES, _path(pathType=None, path="a", backend={})),
    Case("ingress path of an unknown type with a bad backend", _INGRESSES, _path(pathType="X", path="a", backend={})),
    Case("ingress of a bad wildcard with a bad path", _INGRESSES, named(spec={"rules": [
        {"host": "*.B_", "http": {"paths": [{"path": "a", "pathType": "Exact", "backend": {}}]}}]})),
    Case("ingress of a star", _INGRESSES, named(spec={"rules": [{"host": "*"}]})),
    Case("ingress of two stars", _INGRESSES, named(spec={"rules": [{"host": "*.*.a"}]})),
    Case("ingress of an old address", _INGRESSES, named(spec={"rules": [{"host": "010.1.2.3"}]})),
    Case("ingress of a new address", _INGRESSES, named(spec={"rules": [{"host": "fe80::1"}]})),
    Case("ingress of a long host", _INGRESSES, named(spec={"rules": [{"host": "a." * 130 + "b"}]})),
    Case("ingress of a rule without a host", _INGRESSES, named(spec={"rules": [{}]})),
    Case("ingress of rules of null", _INGRESSES, named(spec={"rules": None})),
    Case("ingress of empty rules", _INGRESSES, named(spec={"rules": []})),
    Case("ingress of no spec", _INGRESSES, named()),
    Case("ingress of tls without hosts", _INGRESSES, named(spec={"defaultBackend": _BACKEND, "tls": [{}, {"hosts": []}]})),
    Case("ingress of odd tls", _INGRESSES, named(spec={"defaultBackend": _BACKEND, "tls": [
        {"hosts": ["", "*", "*.a", "a b", "1.2.3.4"], "secretName": "S_"}, {"hosts": ["A"], "secretName": "a/b"}]})),
    Case("ingress of an empty class", _INGRESSES, named(spec={"defaultBackend": _BACKEND, "ingressClassName": ""})),
    Case("ingress of two classes", _INGRESSES, named(
        meta={"annotations": {"kubernetes.io/ingress.class": "a"}}, spec={"defaultBackend": _BACKEND, "ingressClassName": "b"})),
    Case("ingress of an empty and a named class", _INGRESSES, named(
        meta={"annotations": {"kubernetes.io/ingress.class": ""}}, spec={"defaultBackend": _BACKEND, "ingressClassName": "b"})),
    Case("ingress of a class of old", _INGRESSES, named(
        meta={"annotations": {"kubernetes.io/ingress.class": "a"}}, spec={"defaultBackend": _BACKEND})),
    *(
        Case(f"ingress of backend {name}", _INGRESSES, _backend(**backend))
        for name, backend in {
            "nothing": {},
            "of an unnamed service": {"service": {"name": "", "port": {"number": 1}}},
            "of a service with a digit": {"service": {"name": "1a", "port": {"number": 1}}},
            "of a service with a dot": {"service": {"name": "a.b", "port": {"number": 1}}},
            "of a long service": {"service": {"name": "a" * 64, "port": {"number": 1}}},
            "of a high port": {"service": {"name": "s", "port": {"number": 65536}}},
            "of a negative port": {"service": {"name": "s", "port": {"number": -1}}},
            "of an odd port name": {"service": {"name": "S_", "port": {"name": "A--very-long-port-name"}}},
            "of a number as a name": {"service": {"name": "s", "port": {"name": "80"}}},
            "of no port": {"service": {"name": "B_"}},
            "of two ports": {"service": {"name": "", "port": {"number": 1, "name": "a"}}},
            "of an empty resource": {"resource": {}},
            "of an odd resource": {"resource": {"apiGroup": "A_b", "kind": "a/b", "name": "."}},
            "of a resource of an empty group": {"resource": {"apiGroup": "", "kind": "a", "name": "a%b"}},
            "of both": {"resource": {}, "service": {"name": ""}},
        }.items()
    ),
    Case("ingress change to bad paths", _INGRESSES, _path(), {"spec": {"rules": [
        {"host": "A_", "http": {"paths": []}}, {"http": {"paths": [{"path": "a//", "pathType": "Exact", "backend": {}}]}}],
        "tls": [{"secretName": "A_"}]}}),
    Case("ingress change of class", _INGRESSES, named(
        meta={"annotations": {"kubernetes.io/ingress.class": "a"}}, spec={"defaultBackend": _BACKEND}), {
            "spec": {"ingressClassName": "b"}}),
    Case("ingress change of class and labels", _INGRESSES, _path(), {
        "metadata": {"labels": {"a": "b"}}, "spec": {"ingressClassName": "b"}}),
    *(
        Case(f"ingress status {name}", _INGRESSES, _path(), {"status": {"loadBalancer": {"ingress": [address]}}}, "status")
        for name, address in {
            "of an address and a host": {"ip": "1.2.3.4", "hostname": "a.b"},
            "of an old address": {"ip": "01.2.3.4"},
            "of odd things": {"ip": "x", "hostname": "A_"},
            "of an address as host": {"hostname": "1.2.3.4"},
            "of ports": {"ip": "1.2.3.4", "ports": [{"port": 80, "protocol": "TCP"}, {"port": 0, "protocol": "X", "error": "a b"}]},
            "of nothing": {},
        }.items()
    ),
    *(
        Case(f"ingress class {name}", _CLASSES, named("less", spec={"controller": "a.b/c", **spec}))
        for name, spec in {
            "of a long controller": {"controller": "a.b/" + "c" * 250},
            "of a controller without a path": {"controller": "a.b"},
            "of a controller of a bad path": {"controller": "a.b/c d"},
            "of a controller of an odd domain": {"controller": "A_/c"},
            "of a controller of nothing": {"controller": "/"},
            "with empty parameters": {"parameters": {}},
            "with parameters of an unknown scope": {"parameters": {"kind": "K", "name": "n", "scope": "X", "namespace": "A_"}},
            "with parameters of a namespace": {"parameters": {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "A_"}},
            "with parameters of an empty namespace": {"parameters": {"kind": "K", "name": "n", "scope": "Namespace", "namespace": ""}},
            "with parameters of no namespace": {"parameters": {"kind": "K/", "name": "..", "scope": "Namespace"}},
            "with parameters of the cluster": {"parameters": {"kind": "K", "name": "n", "scope": "Cluster", "namespace": "a"}},
            "with parameters of an empty scope": {"parameters": {"kind": "", "name": "", "scope": "", "apiGroup": ""}},
        }.items()
    ),
    Case("ingress class change of parameters", _CLASSES, named("less", spec={"controller": "a.b/c"}), {
        "spec": {"parameters": {"kind": "K", "name": "n"}}}),
    Case("ingress class of odd parameters later", _CLASSES, named("less", spec={"controller": "a.b/c"}), {
        "spec": {"controller": "x", "parameters": {"kind": "", "name": "n", "scope": "Namespace"}}}),
]  # fmt: skip

NETWORK_POLICIES = [
    *(
        Case(f"network policy port {name}", _POLICIES, _rule(ports=[port]))
        for name, port in {
            "of nothing": {},
            "of an unknown protocol": {"protocol": "ICMP"},
            "of an empty protocol": {"protocol": "", "port": 80},
            "zero": {"port": 0},
            "negative with an end": {"port": -5, "endPort": -7},
            "with an end": {"port": 80, "endPort": 90},
            "with an end before": {"port": 80, "endPort": 79},
            "with an end too high": {"port": 80, "endPort": 70000},
            "with an end of zero": {"port": 80, "endPort": 0},
            "too high with an end": {"port": 70000, "endPort": 70001},
            "with an end only": {"endPort": 80},
            "of a name": {"port": "web"},
            "of an odd name": {"port": "W--eb"},
            "of a long name with an end": {"port": "a-very-long-port-name", "endPort": 5},
            "of an empty name": {"port": ""},
        }.items()
    ),
    *(
        Case(f"network policy peer {name}", _POLICIES, _rule(**{"from": [peer]}))
        for name, peer in {
            "of nothing": {},
            "of an empty selector": {"podSelector": {}},
            "of both selectors": {"podSelector": {"matchLabels": {"a b": "c"}}, "namespaceSelector": {
                "matchExpressions": [{"key": "a", "operator": "In"}]}},
            "of an empty block": {"ipBlock": {}},
            "of all": {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}, "namespaceSelector": {}},
            "of an empty block and a selector": {"ipBlock": {"cidr": ""}, "podSelector": {}},
            "of a block with a host": {"ipBlock": {"cidr": "10.0.0.1/8"}},
            "of a block with zeros": {"ipBlock": {"cidr": "010.0.0.0/8"}},
            "of a mapped block": {"ipBlock": {"cidr": "::ffff:10.0.0.0/104"}},
            "of a block of the sixth version": {"ipBlock": {"cidr": "2001:DB8::/32", "except": ["2001:db8:1::/48"]}},
            "of an address": {"ipBlock": {"cidr": "10.0.0.1"}},
            "of the block itself": {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}},
            "of a block outside": {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16", "x", "", "10.1.0.0/16"]}},
            "of a block of another version": {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["fd00::/64"]}},
            "of a bad block with exceptions": {"ipBlock": {"cidr": "x", "except": ["y"]}},
        }.items()
    ),
    Case("network policy of many types", _POLICIES, named(spec={"podSelector": {}, "policyTypes": ["Ingress", "Egress", "X"]})),
    Case("network policy of one type twice", _POLICIES, named(spec={"podSelector": {}, "policyTypes": ["Ingress", "Ingress"]})),
    Case("network policy of odd types", _POLICIES, named(spec={"podSelector": {}, "policyTypes": ["ingress", ""]})),
    Case("network policy of no selector", _POLICIES, named(spec={})),
    Case("network policy of egress only", _POLICIES, named(spec={"podSelector": {}, "egress": []})),
    Case("network policy of everything wrong", _POLICIES, named(spec={
        "podSelector": {"matchExpressions": [{"key": "", "operator": "X", "values": ["a b"]}]},
        "ingress": [{"ports": [{"port": 0}], "from": [{}]}, {"from": [{"ipBlock": {"cidr": "x"}}], "ports": [{"protocol": "X"}]}],
        "egress": [{"to": [{}, {"ipBlock": {}}], "ports": [{"endPort": 1}]}], "policyTypes": ["X"]})),
    Case("network policy change of directions", _POLICIES, _rule(), {"spec": {"policyTypes": ["Egress"], "egress": [{"to": [{}]}]}}),
    Case("network policy change of ports", _POLICIES, _rule(), {"spec": {"ingress": [{"ports": [{"port": 80}]}]}}),
    Case("network policy change of a block with a host", _POLICIES, _rule(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}), {
        "spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]}}),
]  # fmt: skip

SERVICE_RANGES = [
    *(
        Case(f"service range {name}", _CIDRS, named("less", spec={"cidrs": cidrs}))
        for name, cidrs in {
            "of nothing": [],
            "of three": ["10.8.0.0/24", "fd08::/112", "10.9.0.0/24"],
            "of one version twice": ["10.8.0.0/24", "10.9.0.0/24"],
            "of the sixth version twice": ["fd08::/112", "fd09::/112"],
            "of no range": ["x", "10.8.0.1", "10.8.0.0/24"][:2],
            "of a host": ["10.8.0.1/24"],
            "of old numbers": ["010.8.0.0/24"],
            "of capitals": ["FD08::/112"],
            "of a mapped range": ["::ffff:10.8.0.0/120"],
            "of both": ["fd08::/112", "10.8.0.0/24"],
        }.items()
    ),
    Case("service range without a spec", _CIDRS, named("less")),
    Case("service range of an odd name", _CIDRS, named("Less_", spec={"cidrs": ["10.8.0.0/24"]})),
]

SLICES = [
    Case("slice of a local address of the sixth version", _SLICES, _addresses("IPv4", "fe80::1")),
    Case("slice of the fourth version", _SLICES, _addresses("IPv6", "10.1.2.3")),
    Case("slice of the loopback of the other version", _SLICES, _addresses("IPv6", "127.0.0.1")),
    Case("slice of odd addresses", _SLICES, _addresses(
        "IPv4", "127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "::1", "::", "010.1.2.3", "", "1.2.3", "::ffff:1.2.3.4")),
    Case("slice of odd addresses of the sixth version", _SLICES, _addresses(
        "IPv6", "::1", "::", "fe80::1", "ff02::1", "FD00::1", "fd00:0::1", "::ffff:1.2.3.4", "", "x", "fe80::1%eth0")),
    Case("slice of odd domains", _SLICES, _addresses("FQDN", "a", "", "a.b.", "A.b", "a..b", ".", "a.b", "x" * 64 + ".b")),
    Case("slice of an unknown type", _SLICES, _addresses("X", "a", "")),
    Case("slice without a type", _SLICES, named(endpoints=[{"addresses": ["x"]}])),
    Case("slice of nothing", _SLICES, named()),
    Case("slice of many addresses", _SLICES, _addresses("IPv4", *(f"10.1.2.{number}" for number in range(101)))),
    Case("slice of most addresses", _SLICES, _addresses("IPv4", *(f"10.1.2.{number}" for number in range(100)))),
    Case("slice of many odd addresses", _SLICES, _addresses("IPv4", *(["x"] * 3 + ["10.1.1.1"] * 98))),
    Case("slice of many endpoints", _SLICES, _slice(*({"addresses": []} for _ in range(1001)))),
    Case("slice of many endpoints of no type", _SLICES, _slice(*({"addresses": []} for _ in range(1001)), kind="X")),
    Case("slice of many ports", _SLICES, _slice(ports=[{"port": 1, "protocol": "X"}] * 20001)),
    Case("slice of many topology labels", _SLICES, _slice({
        "addresses": ["10.1.2.3"], "deprecatedTopology": {f"k{number}": "v" for number in range(17)}})),
    Case("slice of odd topology labels", _SLICES, _slice({
        "addresses": ["10.1.2.3"], "deprecatedTopology": {"a b": "v"}, "hostname": "A_"})),
    Case("slice of many zones", _SLICES, _slice({"addresses": ["10.1.2.3"], "hints": {
        "forZones": [{"name": "a b"}] * 9, "forNodes": [{"name": "A_"}]}})),
    Case("slice of many nodes", _SLICES, _slice({"addresses": ["10.1.2.3"], "hints": {
        "forZones": [{"name": "a b"}], "forNodes": [{"name": "A_"}] * 9}})),
    Case("slice of zones twice", _SLICES, _slice({"addresses": ["10.1.2.3"], "hints": {
        "forZones": [{"name": "a"}, {"name": "a"}, {"name": ""}, {"name": ""}, {"name": "a b"}, {"name": "a b"}],
        "forNodes": [{"name": "n"}, {"name": "n"}, {"name": "N_"}, {"name": "N_"}, {"name": ""}]}})),
    Case("slice of empty hints", _SLICES, _slice({"addresses": ["10.1.2.3"], "hints": {}})),
    Case("slice of odd names", _SLICES, _slice({
        "addresses": [], "nodeName": "N_", "hostname": "H_", "zone": "a b", "conditions": {"ready": True}})),
    Case("slice of empty names", _SLICES, _slice({"addresses": ["10.1.2.3"], "nodeName": "", "hostname": "", "zone": ""})),
    Case("slice of ports twice", _SLICES, _slice(ports=[
        {"port": 1}, {"port": 2}, {"name": "a", "port": 1}, {"name": "a", "port": 2}, {"name": "A_"}, {"name": "A_"}])),
    Case("slice of odd ports", _SLICES, _slice(ports=[
        {"name": "a", "port": 0, "protocol": "X"}, {"name": "b", "port": -1, "protocol": ""}, {"name": "c", "appProtocol": "a b/c/d"},
        {"name": "d", "appProtocol": ""}, {"name": "e" * 64, "port": 70000}])),
    Case("slice of everything wrong", _SLICES, _slice(
        {"addresses": ["x", "fd00::1"], "nodeName": "N_", "deprecatedTopology": {"a b": "c d"}, "hostname": "", "hints": {
            "forZones": [{"name": "a b"}], "forNodes": [{"name": ""}]}}, {"addresses": []},
        ports=[{"name": "A_", "protocol": "X", "appProtocol": "/"}], kind="IPv4")),
    Case("slice of a bad name", _SLICES, {**_slice(), "metadata": {"name": "A_"}}),
    Case("slice change of type", _SLICES, _addresses("IPv4", "10.1.2.3"), {"addressType": "IPv6"}),
    Case("slice change of type and addresses", _SLICES, _addresses("IPv4", "10.1.2.3"), {
        "addressType": "IPv6", "endpoints": [{"addresses": ["10.1.2.4"]}]}),
    Case("slice change of type and ports", _SLICES, _addresses("IPv4", "10.1.2.3"), {
        "addressType": "FQDN", "ports": [{"name": "A_"}]}),
    Case("slice change to no type", _SLICES, _addresses("IPv4", "10.1.2.3"), {"addressType": ""}),
    Case("slice change to an unknown type", _SLICES, _addresses("IPv4", "10.1.2.3"), {"addressType": "X"}),
    Case("slice change of addresses", _SLICES, _addresses("IPv4", "10.1.2.3"), {"endpoints": [{"addresses": ["x"]}]}),
    Case("slice change of labels", _SLICES, _addresses("IPv4", "10.1.2.3"), {"metadata": {"labels": {"a": "b"}}}),
    Case("slice change of annotations", _SLICES, _addresses("IPv4", "10.1.2.3"), {"metadata": {"annotations": {"a": "b"}}}),
    Case("slice change of ports", _SLICES, _addresses("IPv4", "10.1.2.3"), {"ports": [{"port": 5}]}),
]  # fmt: skip

ENDPOINTS = [
    *(
        Case(f"endpoints of address {name}", _ENDPOINTS, _subset(address))
        for name, address in {
            "nothing": {},
            "the loopback": {"ip": "127.0.0.1"},
            "all": {"ip": "0.0.0.0"},
            "local of the sixth version": {"ip": "fe80::1"},
            "multicast": {"ip": "ff02::1"},
            "old numbers": {"ip": "010.1.2.3"},
            "old numbers of the loopback": {"ip": "127.00.0.1"},
            "a mapped loopback": {"ip": "::ffff:127.0.0.1"},
            "odd things": {"ip": "x", "hostname": "H_", "nodeName": "N_"},
            "an empty node": {"ip": "10.1.2.3", "hostname": "", "nodeName": ""},
            "a long host": {"ip": "10.1.2.3", "hostname": "h" * 64},
        }.items()
    ),
    Case("endpoints of ports", _ENDPOINTS, _subset({"ip": "10.1.2.3"}, ports=[
        {"port": 0, "protocol": "X"}, {"name": "A_", "port": 70000}, {"name": "a", "port": 1, "appProtocol": "a b"},
        {"name": "a", "port": 1, "appProtocol": ""}])),
    Case("endpoints of a port of an empty protocol", _ENDPOINTS, _subset({"ip": "10.1.2.3"}, ports=[{"port": 1, "protocol": ""}])),
    Case("endpoints of nothing", _ENDPOINTS, named(subsets=[{}, {"ports": [{"port": 1}]}])),
    Case("endpoints that are not ready", _ENDPOINTS, named(subsets=[
        {"addresses": [{"ip": "x"}], "notReadyAddresses": [{"ip": "y", "nodeName": "N_"}], "ports": [{"port": 0}]}])),
    Case("endpoints of an odd time", _ENDPOINTS, named(
        meta={"annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "yesterday"}}, subsets=[])),
    Case("endpoints of a time", _ENDPOINTS, named(
        meta={"annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "2020-01-02T03:04:05Z"}}, subsets=[])),
    Case("endpoints change", _ENDPOINTS, _subset({"ip": "10.1.2.3"}), {"subsets": [{"addresses": [{"ip": "::1"}]}]}),
    Case("endpoints change of an odd time", _ENDPOINTS, _subset({"ip": "10.1.2.3"}), {
        "metadata": {"annotations": {"endpoints.kubernetes.io/last-change-trigger-time": "x"}}, "subsets": [{}]}),
]  # fmt: skip

NETWORKS = [*INGRESSES, *NETWORK_POLICIES, *SERVICE_RANGES, *SLICES, *ENDPOINTS]
