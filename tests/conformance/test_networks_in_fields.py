"""CIDRs in fields of built-in kinds: both servers take the plain form only, and warn of IPv6 networks that are not canonical."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlruntime.testing import Environment

NOT_ONE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
PADDED = "must not have leading 0s in IP or prefix length"
BITS = "must not have bits set beyond the prefix length"
MAPPED = "must not have an IPv4-mapped IPv6 address"
RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
NETWORKS = {
    "172.20.0.0/16": "",
    "2001:db8:7::/48": "",
    "172.20.0.9/16": BITS,
    "2001:db8:7::9/48": BITS,
    "172.020.0.0/16": PADDED,
    "172.20.0.0/016": PADDED,
    "172.020.0.9/16": PADDED,
    "::ffff:172.20.0.0/112": MAPPED,
    "::ffff:172.20.0.9/112": MAPPED,
    "172.20.0.0": NOT_ONE,
    "172.20.0.0/255.255.0.0": NOT_ONE,
    "172.20.0.0/40": NOT_ONE,
    "text": NOT_ONE,
}
PORTS = [{"port": 80}]


def node(*networks: str) -> dict[str, Any]:
    return {"kind": "Node", "spec": {"podCIDR": networks[0], "podCIDRs": [*networks]}}


def policy(network: str, *exceptions: str) -> dict[str, Any]:
    block = {"cidr": network, "except": [*exceptions]}
    return {"kind": "NetworkPolicy", "spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": block}]}]}}


def service(ranges: list[str], annotation: str | None = None, kind: str = "LoadBalancer") -> dict[str, Any]:
    metadata = {} if annotation is None else {"annotations": {RANGES: annotation}}
    return {
        "kind": "Service",
        "metadata": metadata,
        "spec": {"type": kind, "ports": PORTS, "loadBalancerSourceRanges": ranges},
    }


def service_cidr(*networks: str) -> dict[str, Any]:
    return {"kind": "ServiceCIDR", "spec": {"cidrs": [*networks]}}


PATHS = {
    "Node": ("v1", "/api/v1/nodes"),
    "NetworkPolicy": ("networking.k8s.io/v1", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"),
    "Service": ("v1", "/api/v1/namespaces/default/services"),
    "ServiceCIDR": ("networking.k8s.io/v1", "/apis/networking.k8s.io/v1/servicecidrs"),
}


def created(server: Environment, document: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the causes and the warnings of a create that stores nothing."""
    version, path = PATHS[document["kind"]]
    metadata = {"name": "networks", **document.get("metadata", {})}
    body = json.dumps({**document, "apiVersion": version, "metadata": metadata}).encode()
    head = {"Content-Type": "application/json", "Accept": "application/json"}
    code, headers, text = server.connection.exchange("POST", f"{path}?dryRun=All", body, head)
    details = json.loads(text).get("details") or {}
    causes = [f"{cause['field']}: {cause['message'].partition(': ')[2]}" for cause in details.get("causes", ())]
    assert (code == 422) == bool(causes)
    return [cause.rpartition('": ')[2] if '": ' in cause else cause for cause in causes], headers.get_all(
        "Warning"
    ) or []


@pytest.mark.parametrize("text", NETWORKS)
def test_each_field_takes_the_plain_form(server, text: str) -> None:
    expected = [NETWORKS[text]] if NETWORKS[text] else []

    for document in (node(text), policy(text), service([text]), service([], text), service_cidr(text)):
        assert created(server, document) == (expected, []), document["kind"]


def test_an_ipv6_network_in_another_form_is_warned_of(server) -> None:
    text = "2001:db8:0::/48"
    form = f'IPv6 CIDR value \\"{text}\\" should be in RFC 5952 canonical format (\\"2001:db8::/48\\")'

    for document, path in (
        (node(text), "spec.podCIDRs[0]"),
        (policy(text), "spec.egress[0].to[0].ipBlock.cidr"),
        (policy("::/0", text), "spec.egress[0].to[0].ipBlock.except[0]"),
        (service([text]), "spec.loadBalancerSourceRanges[0]"),
    ):
        assert created(server, document) == ([], [f'299 - "{path}: {form}"'])
    assert created(server, service_cidr(text)) == (['must be in canonical form ("2001:db8::/48")'], [])


def test_exceptions_are_inside_the_network(server) -> None:
    inside = "must be a strict subset of `cidr`"

    assert created(server, policy("10.0.0.0/8", "10.9.0.0/16")) == ([], [])
    assert created(server, policy("10.0.0.0/8", "10.0.0.0/8", "11.0.0.0/16")) == ([inside, inside], [])
    assert created(server, policy("10.0.0.9/8", "10.9.0.0/16", "11.0.0.9/16")) == ([BITS, BITS, inside], [])
    assert created(server, policy("::/0", "::ffff:10.0.0.0/104")) == ([MAPPED, inside], [])


def test_no_family_is_there_twice(server) -> None:
    pair, same = ("10.1.0.0/16", "2001:db8::/48"), ("10.1.0.0/16", "10.2.0.0/16")
    nodes, services = "may specify no more than one CIDR for each IP family", "may specify no more than one IP for each"

    assert created(server, node(*pair)) == created(server, service_cidr(*pair)) == ([], [])
    for networks in (same, (*pair, "10.2.0.0/16")):
        (cause,), _ = created(server, node(*networks))
        assert nodes in cause
    (cause,), _ = created(server, service_cidr(*same))
    assert services in cause
    (cause,), _ = created(server, service_cidr(*pair, "10.2.0.0/16"))
    assert "may only hold up to 2 values" in cause
    (cause,), _ = created(server, service_cidr())
    assert "at least one CIDR required" in cause
    wrong, _ = created(server, node("10.1.0.0/16", "text"))
    assert len(wrong) == 3
    assert "failed to check with dual stack with error:invalid CIDR[1]: <nil>" in wrong[1]


def test_ranges_are_of_load_balancers(server) -> None:
    only = "may only be used when `type` is 'LoadBalancer'"

    for document in (service(["10.0.0.0/8"], kind="ClusterIP"), service([], "", kind="ClusterIP")):
        (cause,), _ = created(server, document)
        assert only in cause
    assert created(server, service(["10.0.0.0/8"], "not looked at")) == ([], [])
    assert created(server, service([], " 10.0.0.0/8, 10.0.0.9/8")) == ([BITS], [])


def test_the_networks_of_a_service_cidr_stay_but_it_may_get_a_second(server) -> None:
    path, first = PATHS["ServiceCIDR"][1], "10.77.0.0/16"
    body = {**service_cidr(first), "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "stays"}}
    server.connection.request("POST", path, body)
    head = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}

    def after(*networks: str) -> list[tuple[str, str]]:
        patch = json.dumps({"spec": {"cidrs": [*networks]}}).encode()
        _, _, text = server.connection.exchange("PATCH", f"{path}/stays?dryRun=All", patch, head)
        causes = (json.loads(text).get("details") or {}).get("causes") or ()
        return [(cause["field"], cause["message"].partition(": ")[2]) for cause in causes]

    found = [
        after("text"),
        after(),
        after(first, "2001:db8::/48"),
        after(first, "2001:db8::9/48"),
        after(first, "a", "b"),
    ]

    server.connection.request("DELETE", f"{path}/stays")
    assert found == [
        [("spec.cidrs[0]", '"text": field is immutable')],
        [("spec.cidrs", "[]: field is immutable")],
        [],
        [("spec.cidrs[1]", f'"2001:db8::9/48": {BITS}')],
        [("spec.cidrs", f'["{first}","a","b"]: field is immutable')],
    ]
