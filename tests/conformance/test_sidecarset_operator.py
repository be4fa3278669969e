"""The SidecarSet example inside this process, on both servers; webhooks are on, with certificates made for the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually
from ctrlruntime.testing.audit import Recorder, compare, read_roles
from examples.sidecarset.api import HASH, SidecarSet, SidecarSetSpec
from examples.sidecarset.controller import setup

CONFIG = Path(__file__).parents[2] / "examples" / "sidecarset" / "config"
NAME = "apps.chinalhr.github.io"


@pytest.fixture(autouse=True)
def _role_has_it_all() -> Iterator[None]:
    """Whatever a test makes the operator do, its generated role allows."""
    with Recorder() as recorder:
        yield
    assert compare(recorder.used, read_roles([CONFIG / "rbac" / "role.yaml"])).missing == ()


@pytest.fixture
async def mgr(server, namespace, nodes) -> AsyncIterator[ctrl.Manager]:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        scheme=ctrl.Scheme(SidecarSet),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    await ctrl.install_crds(mgr.cluster.unfenced_client(), CONFIG / "crd")
    setup(mgr, requeue_after=0.2)
    async with running(mgr):
        await eventually(lambda: is_asked(mgr, namespace))
        yield mgr
        await mgr.client.delete_all_of(SidecarSet)


async def is_asked(mgr: ctrl.Manager, namespace: str) -> bool:
    """Say whether the API server asks the webhooks: it hears of them a moment after they are registered."""
    probe = new_set("probe", {"app": namespace})
    if HASH not in (await mgr.client.create(probe, dry_run=True)).metadata.annotations:
        return False
    return await refused(mgr, SidecarSet(metadata=meta.ObjectMeta(name="probe"))) is not None


async def refused(mgr: ctrl.Manager, obj: ctrl.Object) -> ctrl.Invalid | None:
    try:
        await mgr.client.create(obj, dry_run=True)
    except ctrl.Invalid as error:
        return error
    return None


def new_set(name: str, labels: dict[str, str], *containers: core.Container) -> SidecarSet:
    return SidecarSet(
        metadata=meta.ObjectMeta(name=name),
        spec=SidecarSetSpec(
            selector=meta.LabelSelector(match_labels=labels),
            containers=list(containers) or [core.Container(name="logs", image="busybox:1")],
        ),
    )


def new_pod(namespace: str, name: str, **annotations: str) -> core.Pod:
    return core.Pod(
        metadata=meta.ObjectMeta(name=name, namespace=namespace, labels={"app": namespace}, annotations=annotations),
        spec=core.PodSpec(containers=[core.Container(name="main", image="main:1")]),
    )


@pytest.fixture
async def sidecar_set(mgr, namespace) -> SidecarSet:
    """A set that is known to the webhook of Pods."""
    created = await mgr.client.create(new_set("logs", {"app": namespace}))

    async def is_known() -> bool:
        # On the real server the Pod webhook may be heard of later than the others.
        return HASH in (await mgr.client.create(new_pod(namespace, "probe"), dry_run=True)).metadata.annotations

    await eventually(is_known)
    return created


async def counts(mgr: ctrl.Manager, name: str, *wanted: int) -> None:
    """Wait until a set has these matched, updated and ready Pods."""

    async def look() -> bool:
        status = (await mgr.api_reader.get(SidecarSet, ctrl.NamespacedName("", name))).status
        return status is not None and (status.matched_pods, status.updated_pods, status.ready_pods) == wanted

    await eventually(look)


async def test_a_pod_gets_the_containers_and_the_hash(mgr, sidecar_set, namespace):
    pod = await mgr.client.create(new_pod(namespace, "p", other="1"))

    assert [container.name for container in pod.spec.containers] == ["main", "logs"]
    assert [(variable.name, variable.value) for variable in pod.spec.containers[1].env] == [("IS_INJECTED", "true")]
    assert pod.spec.containers[0].env == []
    assert pod.metadata.annotations["other"] == "1"
    assert json.loads(pod.metadata.annotations[HASH]) == {"logs": sidecar_set.metadata.annotations[HASH]}


async def test_pods_are_counted_and_a_change_of_the_set_makes_them_old(mgr, sidecar_set, namespace):
    await counts(mgr, "logs", 0, 0, 0)
    for name in ("one", "two"):
        await mgr.client.create(new_pod(namespace, name))
    await counts(mgr, "logs", 2, 2, 2)

    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "busybox:2"}
    changed = await mgr.client.patch(sidecar_set.deep_copy(), ctrl.json_patch([image]))
    assert changed.metadata.annotations[HASH] != sidecar_set.metadata.annotations[HASH]
    await counts(mgr, "logs", 2, 0, 2)

    async def is_new() -> bool:
        pod = await mgr.client.create(new_pod(namespace, "three"), dry_run=True)
        return pod.spec.containers[1].image == "busybox:2"

    await eventually(is_new)
    await mgr.client.create(new_pod(namespace, "three"))
    await counts(mgr, "logs", 3, 1, 3)

    await mgr.client.delete(new_pod(namespace, "one"), grace_period_seconds=0)
    await counts(mgr, "logs", 2, 1, 2)


async def test_pods_that_are_done_do_not_count(mgr, sidecar_set, namespace):
    for name in ("one", "two"):
        await mgr.client.create(new_pod(namespace, name))
    await counts(mgr, "logs", 2, 2, 2)

    await mgr.client.status.patch(new_pod(namespace, "one"), ctrl.merge_patch({"status": {"phase": "Succeeded"}}))

    await counts(mgr, "logs", 1, 1, 1)


async def test_the_status_is_written_only_when_it_changes(mgr, sidecar_set, namespace):
    await mgr.client.create(new_pod(namespace, "p"))
    await counts(mgr, "logs", 1, 1, 1)
    before = await mgr.api_reader.get(SidecarSet, ctrl.object_key(sidecar_set))
    reconciles = reconciled(mgr)

    await eventually(lambda: reconciled(mgr) >= reconciles + 3)

    after = await mgr.api_reader.get(SidecarSet, ctrl.object_key(sidecar_set))
    assert after.metadata.resource_version == before.metadata.resource_version


def reconciled(mgr: ctrl.Manager) -> float:
    labels = {"controller": "sidecarset", "result": "requeue_after"}
    return mgr.metrics.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0


async def test_containers_that_are_there_stay_and_several_sets_add_up(mgr, sidecar_set, namespace):
    metrics = core.Container(name="metrics", image="m", env=[core.EnvVar(name="A", value="b")])
    others = await mgr.client.create(
        new_set("more", {"app": namespace}, metrics, core.Container(name="main", image="x"))
    )

    async def both() -> core.Pod | None:
        pod = await mgr.client.create(new_pod(namespace, "p"), dry_run=True)
        return pod if len(json.loads(pod.metadata.annotations[HASH])) == 2 else None

    pod = await eventually(both)

    assert [(one.name, one.image) for one in pod.spec.containers] == [
        ("main", "main:1"),
        ("logs", "busybox:1"),
        ("metrics", "m"),
    ]
    assert [(variable.name, variable.value) for variable in pod.spec.containers[2].env] == [
        ("A", "b"),
        ("IS_INJECTED", "true"),
    ]
    assert json.loads(pod.metadata.annotations[HASH])["more"] == others.metadata.annotations[HASH]


async def test_pods_that_no_set_selects_are_left_alone(mgr, sidecar_set, namespace):
    pod = new_pod(namespace, "p")
    pod.metadata.labels = {"app": "another"}

    created = await mgr.client.create(pod)

    assert len(created.spec.containers) == 1
    assert HASH not in created.metadata.annotations


async def test_a_set_without_a_selector_is_refused_by_field(mgr, namespace):
    for selector in (None, meta.LabelSelector()):
        wanted = new_set("empty", {"app": namespace})
        wanted.spec.selector = selector
        failed = await refused(mgr, wanted)

        assert failed is not None
        assert f'SidecarSet.{NAME} "empty" is invalid: spec.selector: Required value' in str(failed)
        assert [(cause.field, cause.reason) for cause in failed.causes] == [("spec.selector", "FieldValueRequired")]
        assert (failed.details["group"], failed.details["kind"]) == (NAME, "SidecarSet")


async def test_a_selector_that_cannot_be_parsed_is_refused_at_create_and_update(mgr, sidecar_set):
    requirement = meta.LabelSelectorRequirement(key="app", operator="Near", values=["x"])
    wanted = new_set("odd", {})
    wanted.spec.selector = meta.LabelSelector(match_expressions=[requirement])
    failed = await refused(mgr, wanted)
    selector = {"matchLabels": None, **wanted.spec.selector.to_dict()}
    with pytest.raises(ctrl.Invalid) as at_update:
        await mgr.client.patch(sidecar_set, ctrl.merge_patch({"spec": {"selector": selector}}))

    for error in (failed, at_update.value):
        assert error is not None
        assert [cause.field for cause in error.causes] == ["spec.selector"]
        assert '"Near" is not a valid label selector operator' in str(error)


async def test_the_hash_is_of_the_containers_and_nobody_else_can_set_it(mgr, sidecar_set, namespace):
    present = sidecar_set.metadata.annotations[HASH]

    changed = await mgr.client.patch(
        sidecar_set, ctrl.merge_patch({"metadata": {"annotations": {HASH: "mine"}, "labels": {"a": "b"}}})
    )

    assert changed.metadata.annotations[HASH] == present
    assert changed.metadata.labels == {"a": "b"}
