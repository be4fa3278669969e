"""kubernetes_asyncio against one server: typed and dynamic clients, the four patches, watches, subresources, errors.

python kubernetes_asyncio_script.py KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kubernetes_asyncio import client, config, dynamic, watch
from kubernetes_asyncio.client import ApiException

GROUP = "clients.example.com"


async def main(kubeconfig: str, namespace: str) -> None:
    await config.load_kube_config(config_file=kubeconfig)
    async with client.ApiClient() as api:
        await typed(api, namespace)
        await watched(api, namespace)
        await dynamic_client(api, namespace)
        await errors(api, namespace)
    print("done")


async def typed(api: client.ApiClient, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "typed"}
    container = client.V1Container(name="main", image="web:1")
    body = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="typed", labels=labels),
        spec=client.V1DeploymentSpec(
            replicas=0,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(containers=[container])
            ),
        ),
    )
    made = await apps.create_namespaced_deployment(namespace, body, field_manager="typed")
    assert made.spec.strategy.type == "RollingUpdate", made.spec.strategy
    assert made.metadata.managed_fields[0].manager == "typed"
    patched = await apps.patch_namespaced_deployment("typed", namespace, {"metadata": {"labels": {"more": "yes"}}})
    assert patched.metadata.labels == {"app": "typed", "more": "yes"}
    scale = await apps.read_namespaced_deployment_scale("typed", namespace)
    scale.spec.replicas = 2
    scale.metadata.resource_version = None  # the Deployment controller writes, too
    assert (await apps.replace_namespaced_deployment_scale("typed", namespace, scale)).spec.replicas == 2
    condition = {"type": "Checked", "status": "True"}
    patch = {"status": {"conditions": [condition]}, "spec": {"replicas": 9}}
    status = await apps.patch_namespaced_deployment_status("typed", namespace, patch)
    assert status.spec.replicas == 2
    assert "Checked" in [found.type for found in status.status.conditions]
    listed = await apps.list_namespaced_deployment(namespace, label_selector="app=typed,more")
    assert [item.metadata.name for item in listed.items] == ["typed"]
    await apps.delete_namespaced_deployment("typed", namespace, propagation_policy="Background")
    print("typed")


async def watched(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    start = (await core.list_namespaced_secret(namespace)).metadata.resource_version
    await core.create_namespaced_secret(
        namespace, client.V1Secret(metadata=client.V1ObjectMeta(name="watched"), string_data={"a": "b"})
    )
    await core.patch_namespaced_secret("watched", namespace, {"stringData": {"c": "d"}})
    await core.delete_namespaced_secret("watched", namespace)
    seen: list[str] = []
    async with watch.Watch() as stream:
        async for event in stream.stream(
            core.list_namespaced_secret, namespace, resource_version=start, field_selector="metadata.name=watched",
            timeout_seconds=30,
        ):  # fmt: skip
            seen.append(event["type"])
            if event["type"] == "DELETED":
                break
    assert seen == ["ADDED", "MODIFIED", "DELETED"], seen
    print("watched")


async def dynamic_client(api: client.ApiClient, namespace: str) -> None:
    found = await dynamic.DynamicClient(api)
    widgets = await found.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
    body: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": "dynamic"},
        "spec": {"size": 1},
    }
    applied = await widgets.server_side_apply(
        namespace=namespace, body=body, name="dynamic", field_manager="first", force_conflicts=False
    )
    assert applied.metadata.managedFields[0].operation == "Apply"
    body["spec"]["size"] = 2
    refused = await widgets.server_side_apply(
        namespace=namespace, body=body, name="dynamic", field_manager="second", force_conflicts=False
    )
    assert (refused.kind, refused.code) == ("Status", 409), refused  # this client returns failures
    merged = await widgets.patch(
        namespace=namespace, name="dynamic", body={"spec": {"size": 3}}, content_type="application/merge-patch+json"
    )
    assert merged.spec.size == 3
    await widgets.delete(name="dynamic", namespace=namespace)
    print("dynamic")


async def errors(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    for expected, call in [
        (404, core.read_namespaced_config_map("absent", namespace)),
        (
            422,
            core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="A_B"))),
        ),
        (404, core.create_namespaced_config_map("absent", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a")))),
    ]:
        try:
            await call
        except ApiException as error:
            if error.status != expected:
                raise
        else:
            raise AssertionError(f"expected {expected}")
    print("errors")


asyncio.run(main(sys.argv[1], sys.argv[2]))
