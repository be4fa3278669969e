"""Workloads: a Deployment becomes Pods, the Pods become Ready, and all of it goes with its owner."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ctrlruntime.errors import NotFound
from ctrlruntime.testing import Environment, eventually

pytestmark = pytest.mark.usefixtures("nodes")

DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}], "terminationGracePeriodSeconds": 1},
        },
    },
}


async def request(server: Environment, *arguments: Any, **options: Any) -> dict[str, Any]:
    return await asyncio.to_thread(server.connection.request, *arguments, **options)


async def pods(server: Environment, namespace: str) -> list[dict[str, Any]]:
    return (await request(server, "GET", f"/api/v1/namespaces/{namespace}/pods"))["items"]


async def test_a_deployment_gets_ready_pods_on_the_node(server, namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await request(server, "POST", path, DEPLOYMENT)

    async def status() -> dict[str, Any] | None:
        found = (await request(server, "GET", f"{path}/web"))["status"]
        return found if found.get("readyReplicas") == 2 else None

    ready = await eventually(status)

    assert ready["availableReplicas"] == 2
    conditions = {c["type"]: c["status"] for c in ready["conditions"]}
    assert conditions["Available"] == "True"
    running = await pods(server, namespace)
    assert len(running) == 2
    for pod in running:
        assert pod["spec"]["nodeName"] == "node-1"
        assert pod["status"]["phase"] == "Running"
        assert pod["status"]["podIP"]
        assert {c["type"]: c["status"] for c in pod["status"]["conditions"]}["Ready"] == "True"
        assert [c["ready"] for c in pod["status"]["containerStatuses"]] == [True]


async def test_pods_go_with_their_deployment(server, namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await request(server, "POST", path, DEPLOYMENT)

    async def has_two_pods() -> bool:
        return len(await pods(server, namespace)) == 2

    await eventually(has_two_pods)

    await request(server, "DELETE", f"{path}/web")

    async def is_empty() -> bool:
        return not await pods(server, namespace)

    await eventually(is_empty)
    with pytest.raises(NotFound):
        await request(server, "GET", f"{path}/web")


async def test_a_pod_of_another_scheduler_stays_pending(server, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "a", "image": "a"}]}

    await request(server, "POST", path, {"metadata": {"name": "other"}, "spec": {**spec, "schedulerName": "mine"}})
    await request(server, "POST", path, {"metadata": {"name": "ours"}, "spec": spec})

    async def is_running() -> bool:
        return (await request(server, "GET", f"{path}/ours"))["status"]["phase"] == "Running"

    assert await eventually(is_running)
    other = await request(server, "GET", f"{path}/other")
    assert other["status"]["phase"] == "Pending"
    assert "nodeName" not in other["spec"]
