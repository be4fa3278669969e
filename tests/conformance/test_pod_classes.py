"""Pods whose runtime class or priority class exists: what the admission plugins set, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment

__all__ = ["both"]

RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
NO_SCHEDULE = {"key": "t", "operator": "Exists", "effect": "NoSchedule"}
CLASSES = [
    (
        RUNTIMES,
        {
            "metadata": {"name": "pods-kata"},
            "handler": "kata",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            "scheduling": {
                "nodeSelector": {"k": "v"},
                "tolerations": [NO_SCHEDULE, {"key": "u", "operator": "Equal", "value": "v"}],
            },
        },
    ),
    (RUNTIMES, {"metadata": {"name": "pods-plain"}, "handler": "runsc"}),
    (
        RUNTIMES,
        {
            "metadata": {"name": "pods-everywhere"},
            "handler": "a",
            "scheduling": {"tolerations": [{"operator": "Exists"}]},
        },
    ),
    (PRIORITIES, {"metadata": {"name": "pods-low"}, "value": 5, "preemptionPolicy": "Never"}),
]
PODS: dict[str, dict[str, Any]] = {
    "overhead of the class": {"runtimeClassName": "pods-kata"},
    "overhead that is the same": {"runtimeClassName": "pods-kata", "overhead": {"cpu": "250m", "memory": "120Mi"}},
    "overhead that differs": {"runtimeClassName": "pods-kata", "overhead": {"cpu": "1"}},
    "overhead that the class does not have": {"runtimeClassName": "pods-plain", "overhead": {"cpu": "1"}},
    "overhead and a bad name": {"runtimeClassName": "pods-kata", "hostname": "A_"},
    "nodes of both": {"runtimeClassName": "pods-kata", "nodeSelector": {"o": "p"}},
    "nodes that differ": {"runtimeClassName": "pods-kata", "nodeSelector": {"k": "w"}},
    "tolerations of both": {
        "runtimeClassName": "pods-kata",
        "tolerations": [
            {"key": "t", "operator": "Exists"},
            {"key": "u", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
        ],
    },
    "a toleration that contains all": {
        "runtimeClassName": "pods-everywhere",
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    },
    "a class without anything": {"runtimeClassName": "pods-plain"},
    "a class without a name": {"runtimeClassName": ""},
    "a priority class": {"priorityClassName": "pods-low"},
    "a priority that is the same": {"priorityClassName": "pods-low", "priority": 5},
    "a priority that differs": {"priorityClassName": "pods-low", "priority": 6},
    "a policy that differs": {"priorityClassName": "pods-low", "preemptionPolicy": "PreemptLowerPriority"},
}


@pytest.fixture(scope="module")
def classes(both: tuple[Environment, Environment, str]) -> Iterator[tuple[Environment, Environment, str]]:
    """Classes that both servers have, and that other tests do not name."""
    for server in both[:2]:
        for path, body in CLASSES:
            server.connection.request("POST", path, body)
    yield both
    for server in both[:2]:
        for path, body in CLASSES:
            server.connection.request("DELETE", f"{path}/{body['metadata']['name']}")


@pytest.mark.parametrize("name", PODS)
def test_both_servers_follow_the_class_alike(name, classes):
    embedded, real, namespace = classes
    container = {"name": "c", "image": "c:1"}
    body = {"metadata": {"name": "x"}, "spec": {"schedulerName": "nobody", "containers": [container], **PODS[name]}}
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"

    expected, found = (normalised(*Client(server).send("POST", path, body)) for server in (real, embedded))

    assert found == expected
