"""Addresses and IP families of Services: a cluster of IPv4 settles or refuses every combination alike on both servers."""

from __future__ import annotations

import itertools
import json
from typing import Any

from test_builtin_kinds import Client, both, normalised

__all__ = ["both"]

FAMILIES = (
    None,
    ["IPv4"],
    ["IPv6"],
    ["IPv4", "IPv6"],
    ["IPv6", "IPv4"],
    ["ipv6"],
    ["IPv4", "IPv4"],
    ["IPv4", "IPv6", "IPv4"],
)
POLICIES = (None, "SingleStack", "PreferDualStack", "RequireDualStack", "Odd")
PORTS = [{"port": 80}]
SPECS: tuple[dict[str, Any], ...] = (
    {"selector": {"a": "b"}},
    {"ports": PORTS, "selector": {"a": "b"}},
    {"clusterIP": "None"},
    {"clusterIP": "None", "selector": {"a": "b"}},
    {"clusterIP": "x", "ports": [{"port": 0}]},
    {"clusterIP": "fd00::1", "ports": PORTS},
    {"clusterIP": "fd00::1", "clusterIPs": ["fd00::1", "fd00::2"], "ports": PORTS},
    {"clusterIPs": ["10.0.0.9", "fd00::1"], "ports": PORTS},
    {"clusterIP": "None", "clusterIPs": ["None", "10.0.0.9"]},
    {"type": "ExternalName", "externalName": "a.b"},
)


def test_both_servers_settle_families_alike(both):
    embedded, real, namespace = both
    path = f"/api/v1/namespaces/{namespace}/services?dryRun=All"
    differing = {}
    for families, policy, spec in itertools.product(FAMILIES, POLICIES, SPECS):
        given = {"ipFamilies": families, "ipFamilyPolicy": policy}
        body = {"metadata": {"name": "a"}, "spec": {**spec, **{k: v for k, v in given.items() if v is not None}}}

        found, expected = (normalised(*Client(server).send("POST", path, body)) for server in (embedded, real))

        if found != expected:
            differing[json.dumps(body["spec"])] = found, expected
    assert differing == {}
