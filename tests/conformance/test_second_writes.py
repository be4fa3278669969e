"""What a server says to a second write of an object, which a create does not show: warnings, generations, owners, versions.

Each case is a create and the requests after it. Both servers answer all of them alike.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from scenario.normal import Normalizer
from test_builtin_kinds import both

from ctrlruntime.testing import Environment, eventually

__all__ = ["both"]

MERGE, APPLY, JSON = "application/merge-patch+json", "application/apply-patch+yaml", "application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LABEL = {"metadata": {"labels": {"a": "b"}}}
CORE, DEFINITIONS = "/api/v1/namespaces/@", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"

Request = tuple[str, str, Any, str]  # method, path below the object, body, content type
PATCH: Request = ("PATCH", "", LABEL, MERGE)
DELETE: Request = ("DELETE", "?gracePeriodSeconds=0", None, JSON)


def apply(api_version: str, kind: str, name: str = "a", **body: Any) -> Request:
    tree = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **body}
    return ("PATCH", "?fieldManager=second", tree, APPLY)


def named(name: str = "a", /, **body: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **body.pop("meta", {})}, **body}


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CASES: dict[str, tuple[str, dict[str, Any], list[Request]]] = {
    "a claim with an old annotation": (
        f"{CORE}/persistentvolumeclaims",
        named(meta={"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, spec=CLAIM),
        [PATCH],
    ),
    "a certificate that is none": (
        f"{CORE}/secrets",
        named(type="kubernetes.io/tls", data={"tls.crt": "eA==", "tls.key": "eA=="}),
        [PATCH, DELETE],
    ),
    "a Secret that is not base64": (f"{CORE}/secrets", named(), [apply("v1", "Secret", data={"a": "a b"}), DELETE]),
    "a deleted ServiceAccount": (f"{CORE}/serviceaccounts", named(), [PATCH, DELETE]),
    "a deleted ConfigMap": (f"{CORE}/configmaps", named(), [DELETE]),
    "a FlowSchema": (
        f"{FLOW}/flowschemas",
        named(spec={"priorityLevelConfiguration": {"name": "exempt"}}),
        [PATCH, DELETE],
    ),
    "a FlowSchema of nothing": (
        f"{FLOW}/flowschemas",
        named(spec={"priorityLevelConfiguration": {"name": "no"}, "distinguisherMethod": {"type": "ByUser"}}),
        [PATCH, DELETE],
    ),
    "an APIService of nothing": (
        "/apis/apiregistration.k8s.io/v1/apiservices",
        named(
            "v1.second.example.com",
            spec={
                "group": "second.example.com",
                "version": "v1",
                "groupPriorityMinimum": 10,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"name": "no", "namespace": "no"},
            },
        ),
        [PATCH, DELETE],
    ),
    "attached storage": (
        "/apis/storage.k8s.io/v1/volumeattachments",
        named(spec={"attacher": "x.y", "nodeName": "n", "source": {"persistentVolumeName": "p"}}),
        [DELETE],
    ),
    "a driver": (
        "/apis/storage.k8s.io/v1/csidrivers",
        named(
            "a.b", spec={"tokenRequests": [{"audience": "x"}, {"audience": "y"}], "volumeLifecycleModes": ["Ephemeral"]}
        ),
        [DELETE],
    ),
    "drivers of a node": (
        "/apis/storage.k8s.io/v1/csinodes",
        named(spec={"drivers": [{"name": "d", "nodeID": "n"}]}),
        [DELETE],
    ),
    "an address": (
        "/apis/networking.k8s.io/v1/ipaddresses",
        named("192.0.2.77", spec={"parentRef": {"resource": "services", "name": "x", "namespace": "default"}}),
        [DELETE],
    ),
    "a class with parameters": (
        "/apis/networking.k8s.io/v1/ingressclasses",
        named(spec={"controller": "a.b/c", "parameters": {"kind": "K", "name": "n", "apiGroup": "g.x"}}),
        [DELETE],
    ),
}
LEVELS: list[dict[str, Any]] = [
    {},
    {"type": "Exempt"},
    {"type": "Exempt", "limited": {}},
    {"type": "Limited"},
    {"type": "Limited", "exempt": {}},
    {"type": "Odd"},
    *(
        {"type": "Limited", "limited": limited}
        for limited in (
            {},
            {"nominalConcurrencyShares": 0, "lendablePercent": -1, "limitResponse": {"type": "X"}},
            {"nominalConcurrencyShares": -1, "lendablePercent": 101, "borrowingLimitPercent": -5},
            {"limitResponse": {"type": "Reject", "queuing": {}}},
            {"limitResponse": {"type": "Queue"}},
            *(
                {"limitResponse": {"type": "Queue", "queuing": queuing}}
                for queuing in (
                    {},
                    {"queues": -1, "handSize": 0, "queueLengthLimit": -3},
                    {"queues": 4, "handSize": 9, "queueLengthLimit": 3},
                    {"queues": 400_000, "handSize": 40},
                    {"queues": 40_000_000, "handSize": 1},
                )
            ),
        )
    ),
]


def send(
    server: Environment, method: str, path: str, body: Any, kind: str = JSON, accept: str = JSON
) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": kind, "Accept": accept}
    status, answered, text = server.connection.exchange(method, path, data, headers)
    return {"status": status, "warnings": sorted(answered.get_all("Warning") or ()), "body": json.loads(text)}


async def answers(server: Environment, namespace: str, case: str) -> Any:
    """What a server answers to the create, the requests, and between them to a read as a Table."""
    collection, body, requests = CASES[case]
    collection = collection.replace("@", namespace)
    path = f"{collection}/{body['metadata']['name']}"
    found = [send(server, "POST", collection, body)]
    if case.startswith(("a FlowSchema", "an APIService")):
        await eventually(lambda: send(server, "GET", path, None)["body"].get("status", {}).get("conditions"))
    table = send(server, "GET", path, None, accept=TABLE)["body"]["rows"][0]["cells"]
    found += [send(server, method, path + query, body, kind) for method, query, body, kind in requests]
    if DELETE not in requests:
        send(server, *DELETE[:1], path + DELETE[1], None)
    normal = Normalizer({namespace: "$(ns)"}, json.dumps(CASES[case]))
    return [
        *normal.apply(found),
        [type(cell) if index and str(cell).endswith("s") else cell for index, cell in enumerate(table)],
    ]


@pytest.mark.parametrize("case", CASES)
async def test_both_servers_answer_alike(case, both):
    embedded, real, namespace = both

    assert await answers(embedded, namespace, case) == await answers(real, namespace, case)


def test_priority_levels_are_refused_alike(both):
    differing = {}
    for spec in LEVELS:
        found, expected = (
            Normalizer({}, "").apply(
                [send(server, "POST", f"{FLOW}/prioritylevelconfigurations?dryRun=All", named(spec=spec))]
            )
            for server in both[:2]
        )
        if found != expected:
            differing[json.dumps(spec)] = found, expected
    assert differing == {}
