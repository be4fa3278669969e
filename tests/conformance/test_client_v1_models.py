"""Objects of kubernetes_asyncio's own classes, accepted and returned by every verb."""

from datetime import UTC, datetime, timedelta

import pytest

from ctrlruntime.api import core
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client import namespaced
from ctrlruntime.client.patches import json_patch, merge_patch
from ctrlruntime.errors import Conflict, NotFound, NotRegisteredError


@pytest.fixture
def models():
    from kubernetes_asyncio import client

    return client


async def test_a_v1_config_map_goes_through_every_verb(client, models, namespace):
    key = NamespacedName(namespace, "v1")
    obj = models.V1ConfigMap(metadata=models.V1ObjectMeta(name="v1", namespace=namespace), data={"a": "1"})
    configuration = obj.local_vars_configuration

    assert await client.create(obj) is obj
    assert obj.metadata.uid
    assert obj.local_vars_configuration is configuration
    obj.data["b"] = "2"
    await client.update(obj)
    obj.data["c"] = "3"
    await client.update(obj)
    await client.patch(obj, merge_patch({"data": {"d": "4"}}))
    await client.patch(obj, json_patch([{"op": "remove", "path": "/data/a"}]))

    read = await client.get(models.V1ConfigMap, key)
    assert isinstance(read, models.V1ConfigMap)
    assert read.data == obj.data == {"b": "2", "c": "3", "d": "4"}
    assert isinstance(read.metadata.creation_timestamp, datetime)
    listed = await client.list(models.V1ConfigMap, namespace=namespace, fields="metadata.name=v1")
    assert [item.data for item in listed] == [read.data]
    assert (await client.get(core.ConfigMap, key)).data == read.data

    stale = await client.get(models.V1ConfigMap, key)
    await client.patch(obj, merge_patch({"data": {"e": "5"}}))
    stale.data["e"] = "6"
    with pytest.raises(Conflict):
        await client.update(stale)
    assert stale.data["e"] == "6"

    await client.delete(obj)
    with pytest.raises(NotFound):
        await client.get(models.V1ConfigMap, key)


async def test_a_v1_deployment_and_its_status_and_scale(client, models, namespace):
    labels = {"app": "v1"}
    obj = models.V1Deployment(
        metadata=models.V1ObjectMeta(name="v1", namespace=namespace),
        spec=models.V1DeploymentSpec(
            replicas=0,
            selector=models.V1LabelSelector(match_labels=labels),
            template=models.V1PodTemplateSpec(
                metadata=models.V1ObjectMeta(labels=labels),
                spec=models.V1PodSpec(
                    containers=[
                        models.V1Container(
                            name="a", image="a", resources=models.V1ResourceRequirements(limits={"memory": "64Mi"})
                        )
                    ]
                ),
            ),
        ),
    )

    await client.create(obj)
    assert obj.spec.replicas == 0
    assert obj.spec.strategy.rolling_update.max_surge == "25%"

    scale = await client.subresource("scale").get(obj, models.V1Scale)
    scale.spec.replicas = 1
    scale.metadata.resource_version = None  # controllers write the Deployment's status at the same time
    await client.subresource("scale").update(obj, body=scale)
    again = await client.get(models.V1Deployment, NamespacedName(namespace, "v1"))
    assert again.spec.replicas == 1
    assert again.spec.template.spec.containers[0].resources.limits == {"memory": "64Mi"}


async def test_a_v1_lease_keeps_its_microseconds(client, models, namespace):
    now = datetime(2026, 2, 3, 4, 5, 6, 700, tzinfo=UTC)
    obj = models.V1Lease(
        metadata=models.V1ObjectMeta(name="v1", namespace=namespace),
        spec=models.V1LeaseSpec(holder_identity="me", renew_time=now, acquire_time=now.replace(microsecond=0)),
    )

    await client.create(obj)
    assert (obj.spec.renew_time, obj.spec.acquire_time) == (now, now.replace(microsecond=0))
    obj.spec.renew_time += timedelta(seconds=1)
    await client.update(obj)

    assert (await client.get(models.V1Lease, NamespacedName(namespace, "v1"))).spec.renew_time == obj.spec.renew_time


async def test_a_watch_yields_v1_objects(client, models, namespace):
    version = (await client.list(models.V1ConfigMap, namespace=namespace)).resource_version
    await client.create(models.V1ConfigMap(metadata=models.V1ObjectMeta(name="v1", namespace=namespace)))

    watch = client.watch(
        models.V1ConfigMap, namespace=namespace, fields="metadata.name=v1", resource_version=version, timeout=10
    )
    async for event in watch:
        assert event.type == "ADDED"
        assert isinstance(event.object, models.V1ConfigMap)
        break


async def test_a_generated_name_and_a_namespaced_client(client, models, namespace):
    obj = models.V1ConfigMap(metadata=models.V1ObjectMeta(generate_name="v1-"))

    await namespaced(client, namespace).create(obj)

    assert obj.metadata.namespace == namespace
    assert len(obj.metadata.name) == len("v1-") + 5


async def test_names_that_two_groups_have(client, models, namespace):
    for cls in (models.CoreV1Event, models.EventsV1Event):
        assert await client.get_or_none(cls, NamespacedName(namespace, "none")) is None


async def test_what_is_no_kind_is_refused(client, models, namespace):
    with pytest.raises(NotRegisteredError, match="V1PodSpec"):
        await client.get(models.V1PodSpec, NamespacedName(namespace, "a"))


async def test_a_v1_object_is_applied_as_it_stands(client, models, namespace):
    obj = models.V1ConfigMap(metadata=models.V1ObjectMeta(name="v1", namespace=namespace), data={"a": "1"})

    await client.apply(obj, field_owner="mine")

    assert obj.metadata.managed_fields[0].operation == "Apply"
    again = models.V1ConfigMap(metadata=models.V1ObjectMeta(name="v1", namespace=namespace), data={"a": "1"})
    await client.apply(again, field_owner="mine")
    assert again.metadata.resource_version == obj.metadata.resource_version
