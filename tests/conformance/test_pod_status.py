"""The status of a Pod: both servers take, refuse and complete the same."""

from __future__ import annotations

import json
from typing import Any

from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment

__all__ = ["both"]

MERGE = "application/merge-patch+json"
ENDED, RUNS = {"terminated": {"exitCode": 0}}, {"running": {}}
GIVEN: list[dict[str, Any]] = [
    *({"podIPs": [{"ip": one} for one in listed]} for listed in (["x"], ["1.1.1.1", "1.1.1.2"], ["1.1.1.1", "::1"])),
    *({"hostIP": "1.1.1.1", "hostIPs": [{"ip": one} for one in listed]} for listed in (["2.2.2.2"], ["1.1.1.1", "x"])),
    {"podIPs": [None], "hostIPs": [None]},
    {"podIP": "x"},
    {"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.2"}]},
    *({"conditions": [{"type": one, "status": "Odd"}]} for one in ("", "a b", "a/b/c", "example.com/a", "Ready")),
    {"conditions": [None]},
    {"phase": "Odd"},
    {"qosClass": "Odd", "nominatedNodeName": "a_b", "observedGeneration": -1, "conditions": [{"type": "-"}]},
    {"nominatedNodeName": "a"},
    {"resourceClaimStatuses": [{"name": "none"}], "podIPs": [{"ip": "x"}]},
    {"containerStatuses": [None, {"name": "odd"}, {"name": "c"}, {"name": "c", "restartCount": -1}]},
    *(
        {name: [{"name": container, "state": state}]}
        for name in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        for container in ("none", "first", "failed", "ruled", "sidecar")
        for state in (ENDED, RUNS)
    ),
    {"containerStatuses": []},
]
"""Each is sent for a Pod whose containers have ended; some of them it does not have."""


def test_both_servers_judge_the_status_of_a_pod_alike(both: tuple[Environment, Environment, str]) -> None:
    embedded, real, namespace = both
    pods, differing = f"/api/v1/namespaces/{namespace}/pods", {}
    statuses = [{"name": name, "state": ENDED} for name in ("none", "first", "sidecar")]
    statuses += [{"name": name, "state": {"terminated": {"exitCode": 1}}} for name in ("failed", "ruled")]
    ended = {f"{kind}Statuses": statuses for kind in ("container", "initContainer", "ephemeralContainer")}
    for policy in ("Always", "OnFailure", "Never"):
        name = f"status-{policy.lower()}"
        containers = [{"name": one, "image": "c:1"} for one in ("first", "failed")]
        rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
        ruled = {"name": "ruled", "image": "c:1", "restartPolicy": "Never", "restartPolicyRules": rules}
        spec = {"restartPolicy": policy, "schedulerName": "none", "containers": [*containers, ruled]}
        spec["initContainers"] = [{"name": "sidecar", "image": "c:1", "restartPolicy": "Always"}]
        for server in (embedded, real):
            client = Client(server)
            assert client.send("POST", pods, {"metadata": {"name": name}, "spec": spec})[0] == 201
            assert client.send("PATCH", f"{pods}/{name}/status", {"status": ended}, kind=MERGE)[0] == 200
        for status in GIVEN:
            path = f"{pods}/{name}/status?dryRun=All"
            found, expected = (
                normalised(*Client(server).send("PATCH", path, {"status": status}, kind=MERGE))
                for server in (embedded, real)
            )
            if found != expected:
                differing[policy, json.dumps(status)] = found, expected
    assert differing == {}
