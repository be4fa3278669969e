"""Why a Deployment does not come up: what its Pods and Events say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.project.deployment.rollout import rollout_of
from ctrlruntime.testing import Environment, eventually

MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
async def cluster(server) -> AsyncIterator[ctrl.Cluster]:
    made = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield made
    await made.close()


@pytest.fixture
async def pod(server) -> dict:
    """The Pod of a Deployment `web` that no scheduler looks at, and no kubelet."""
    namespace, labels = server.create_namespace(), {"app": "web"}
    spec = {"schedulerName": "nobody", "containers": [{"name": "web", "image": "web:v1"}]}
    deployment = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }
    server.connection.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
    pods = await eventually(lambda: server.connection.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])
    return pods[0]


async def text_of(cluster: ctrl.Cluster, pod: dict) -> str:
    state = await rollout_of(cluster, NamespacedName(pod["metadata"]["namespace"], "web"))
    assert not state.is_done
    return state.text


async def test_a_pod_no_node_takes_is_told_with_the_scheduler_s_words(server, cluster, pod):
    meta = pod["metadata"]
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/1 nodes: no memory",
    }
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
    server.connection.request("PATCH", path, {"status": {"conditions": [condition]}}, content_type=MERGE)

    assert f"cannot schedule Pod {meta['name']}: 0/1 nodes: no memory" in await text_of(cluster, pod)


async def test_the_last_warning_about_a_pod_says_what_its_containers_do_not(server, cluster, pod):
    meta = pod["metadata"]
    target = {"apiVersion": "v1", "kind": "Pod", **{key: meta[key] for key in ("name", "namespace", "uid")}}
    for hour, kind, message in (
        (8, "Warning", "old"),
        (9, "Warning", 'secret "cert"\n  not found'),
        (10, "Normal", "fine"),
    ):
        event = {
            "metadata": {"name": f"event-{hour}"},
            "involvedObject": target,
            "type": kind,
            "reason": "FailedMount",
            "message": message,
            "lastTimestamp": f"2026-01-01T{hour:02}:00:00Z",
        }
        server.connection.request("POST", f"/api/v1/namespaces/{meta['namespace']}/events", event)

    assert (await text_of(cluster, pod)).endswith(f'Pod {meta["name"]}: FailedMount: secret "cert" not found')


async def test_an_older_pod_of_another_image_is_not_the_rollout_s(server, cluster, pod):
    meta = pod["metadata"]
    path = f"/apis/apps/v1/namespaces/{meta['namespace']}/deployments/web"
    containers = [{"name": "web", "image": "web:v2"}]
    server.connection.request(
        "PATCH", path, {"spec": {"paused": True, "template": {"spec": {"containers": containers}}}}, content_type=MERGE
    )
    condition = {"type": "PodScheduled", "status": "False", "message": "of the old one"}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
    server.connection.request("PATCH", path, {"status": {"conditions": [condition]}}, content_type=MERGE)

    assert "of the old one" not in await text_of(cluster, pod)
