"""lightkube against one server: typed objects, apply, generic resources, subresources, lists in pages, watches.

python lightkube_script.py KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import sys

from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import CascadeType, PatchType

Widget = create_namespaced_resource("clients.example.com", "v1", "Widget", "widgets")


async def main(kubeconfig: str, namespace: str) -> None:
    client = AsyncClient(config=KubeConfig.from_file(kubeconfig).get(), namespace=namespace, field_manager="lightkube")
    await typed(client)
    await applied(client)
    await generic(client)
    await paged(client)
    print("done")


async def typed(client: AsyncClient) -> None:
    labels = {"app": "lightkube"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container("main", image="web:1")])
    )
    spec = DeploymentSpec(replicas=0, selector=LabelSelector(matchLabels=labels), template=template)
    made = await client.create(Deployment(metadata=ObjectMeta(name="lightkube", labels=labels), spec=spec))
    assert made.spec.strategy.type == "RollingUpdate"
    scaled = await client.patch(Deployment.Scale, "lightkube", {"spec": {"replicas": 2}}, patch_type=PatchType.MERGE)
    assert scaled.spec.replicas == 2
    changed = await client.patch(Deployment, "lightkube", {"metadata": {"labels": {"more": "yes"}}})
    assert changed.metadata.labels == {"app": "lightkube", "more": "yes"}
    await client.delete(Deployment, "lightkube", cascade=CascadeType.BACKGROUND)
    try:
        await client.get(ConfigMap, "absent")
    except ApiError as error:
        if (error.status.code, error.status.reason) != (404, "NotFound"):
            raise
    print("typed")


async def applied(client: AsyncClient) -> None:
    config = ConfigMap(metadata=ObjectMeta(name="applied"), data={"a": "1"})
    made = await client.apply(config)
    assert made.metadata.managedFields[0].operation == "Apply"
    again = await client.apply(config)
    assert again.metadata.resourceVersion == made.metadata.resourceVersion
    try:
        await client.apply(ConfigMap(metadata=ObjectMeta(name="applied"), data={"a": "2"}), field_manager="other")
    except ApiError as error:
        if error.status.code != 409:
            raise
    forced = await client.apply(
        ConfigMap(metadata=ObjectMeta(name="applied"), data={"a": "2"}), field_manager="other", force=True
    )
    assert forced.data == {"a": "2"}
    await client.delete(ConfigMap, "applied")
    print("applied")


async def generic(client: AsyncClient) -> None:
    made = await client.create(Widget(metadata=ObjectMeta(name="lightkube"), spec={"size": 1}))
    made["status"] = {"size": 3}
    status = await client.replace(Widget.Status.from_dict(made.to_dict()))
    assert status.status == {"size": 3}, status
    seen: list[str] = []
    await client.delete(Widget, "lightkube")
    async for event, _ in client.watch(Widget, resource_version=made.metadata.resourceVersion):
        seen.append(event)
        if event == "DELETED":
            break
    assert seen == ["MODIFIED", "DELETED"], seen
    print("generic")


async def paged(client: AsyncClient) -> None:
    for number in range(7):
        await client.create(
            ConfigMap(metadata=ObjectMeta(generateName="page-", labels={"page": "yes"}), data={"n": str(number)})
        )
    found = [item.data["n"] async for item in client.list(ConfigMap, labels={"page": "yes"}, chunk_size=3)]
    assert sorted(found) == [str(number) for number in range(7)]
    await client.deletecollection(ConfigMap)
    left = [item.metadata.name async for item in client.list(ConfigMap)]
    assert set(left) <= {"kube-root-ca.crt"}, left
    print("paged")


asyncio.run(main(sys.argv[1], sys.argv[2]))
