from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ctrlruntime.api import apps, coordination, core, meta
from ctrlruntime.api.interop import from_kubernetes_asyncio, is_kubernetes_asyncio, to_kubernetes_asyncio


@pytest.fixture(scope="module")
def client() -> Any:
    return pytest.importorskip("kubernetes_asyncio.client")


def test_a_v1_object_becomes_its_wire_form(client: Any) -> None:
    theirs = client.V1Deployment(
        api_version="apps/v1",
        kind="Deployment",
        metadata=client.V1ObjectMeta(name="a", creation_timestamp=datetime(2026, 1, 2, tzinfo=UTC), labels={"a": "b"}),
        spec=client.V1DeploymentSpec(
            replicas=0,
            selector=client.V1LabelSelector(match_labels={"a": "b"}),
            template=client.V1PodTemplateSpec(
                spec=client.V1PodSpec(containers=[client.V1Container(name="c", ports=[])])
            ),
        ),
    )

    wire = from_kubernetes_asyncio(theirs)

    assert wire["metadata"]["creationTimestamp"] == "2026-01-02T00:00:00Z"
    assert wire["spec"]["replicas"] == 0
    assert apps.Deployment.from_dict(wire).spec.template.spec.containers == [core.Container(name="c")]


def test_micro_times_have_six_digits(client: Any) -> None:
    theirs = client.V1Lease(spec=client.V1LeaseSpec(renew_time=datetime(2026, 1, 2, tzinfo=UTC)))

    assert from_kubernetes_asyncio(theirs) == {"spec": {"renewTime": "2026-01-02T00:00:00.000000Z"}}


def test_a_wire_form_becomes_a_v1_object(client: Any) -> None:
    ours = core.Secret(
        metadata=meta.ObjectMeta(
            name="s", labels={"a": "b"}, owner_references=[meta.OwnerReference(name="o", uid="u")]
        ),
        data={"k": b"\x00"},
    )

    theirs = to_kubernetes_asyncio(client.V1Secret, ours.to_dict())

    assert isinstance(theirs, client.V1Secret)
    assert theirs.metadata.owner_references[0].uid == "u"
    assert theirs.data == {"k": "AA=="}
    assert core.Secret.from_dict(from_kubernetes_asyncio(theirs)) == ours


def test_incomplete_objects_and_times_pass(client: Any) -> None:
    lease = coordination.Lease.from_dict({"spec": {"renewTime": "2026-01-02T03:04:05.000001Z"}})

    theirs = to_kubernetes_asyncio(client.V1Lease, lease.to_dict())

    assert theirs.spec.renew_time == datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC)
    assert to_kubernetes_asyncio(client.V1Deployment, {"spec": {"replicas": 0}}).spec.replicas == 0
    crd = to_kubernetes_asyncio(
        client.V1JSONSchemaProps, {"properties": {"a": {"type": "string", "default": {"x": 1}}}}
    )
    assert crd.properties["a"].default == {"x": 1}


def test_other_things_are_refused(client: Any) -> None:
    assert is_kubernetes_asyncio(client.V1Pod())
    assert not is_kubernetes_asyncio(core.Pod())
    with pytest.raises(TypeError, match="not an object"):
        from_kubernetes_asyncio(core.Pod())
    with pytest.raises(TypeError, match="not a class"):
        to_kubernetes_asyncio(core.Pod, {})
