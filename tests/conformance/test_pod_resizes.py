"""What a resize of a Pod may change: both servers take and refuse the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from test_builtin_kinds import Client, both, normalised

from ctrlruntime.testing import Environment

__all__ = ["both"]

ONE = {"requests": {"cpu": "1"}}
NEW = {"name": "z", "image": "i"}
SPEC: dict[str, Any] = {
    "schedulerName": "none",
    "initContainers": [
        {"name": "i", "image": "i"},
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": ONE},
    ],
    "containers": [{"name": "a", "image": "i", "resources": ONE}, {"name": "b", "image": "i"}],
}
RESTART = {"resourceName": "cpu", "restartPolicy": "RestartContainer"}
CASES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a container more": lambda spec: spec["containers"].append(NEW),
    "a container less": lambda spec: spec["containers"].pop(),
    "no container": lambda spec: spec.update(containers=[]),
    "another order": lambda spec: spec["containers"].reverse(),
    "another name": lambda spec: spec["containers"][0].update(name="z"),
    "another image": lambda spec: spec["containers"][0].update(image="z"),
    "an init container more": lambda spec: spec["initContainers"].append(NEW),
    "no init container": lambda spec: spec.pop("initContainers"),
    "another order at the start": lambda spec: spec["initContainers"].reverse(),
    "resources of an init container": lambda spec: spec["initContainers"][0].update(resources=ONE),
    "resources of a sidecar": lambda spec: spec["initContainers"][1].update(resources={"requests": {"cpu": "2"}}),
    "memory": lambda spec: spec["containers"][0].update(resources={"requests": {"cpu": "2", "memory": "1Gi"}}),
    "no resources": lambda spec: spec["containers"][0].pop("resources"),
    "first resources": lambda spec: spec["containers"][1].update(resources=ONE),
    "a limit below": lambda spec: spec["containers"][0].update(resources={**ONE, "limits": {"cpu": "500m"}}),
    "a policy": lambda spec: spec["containers"][0].update(resizePolicy=[RESTART]),
    "storage": lambda spec: spec["containers"][0].update(
        resources={"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}}
    ),
    "resources of the Pod": lambda spec: spec.update(resources={"requests": {"cpu": "4"}}),
}


def test_both_servers_judge_resizes_alike(both: tuple[Environment, Environment, str]) -> None:
    embedded, real, namespace = both
    pods, differing = f"/api/v1/namespaces/{namespace}/pods", {}
    for server in (embedded, real):
        assert Client(server).send("POST", pods, {"metadata": {"name": "resized"}, "spec": SPEC})[0] == 201
    for name, edit in CASES.items():
        answers = []
        for server in (embedded, real):
            pod = copy.deepcopy(server.connection.request("GET", f"{pods}/resized"))
            edit(pod["spec"])
            answers.append(normalised(*Client(server).send("PUT", f"{pods}/resized/resize?dryRun=All", pod)))
        if answers[0] != answers[1]:
            differing[name] = answers
    assert differing == {}
