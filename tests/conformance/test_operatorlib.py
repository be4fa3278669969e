"""Pruning and OLM's conditions, on both servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import batch, core, meta
from ctrlruntime.errors import ConfigError, NotFound
from ctrlruntime.generate.crd import crds
from ctrlruntime.operatorlib import (
    ConditionNotSetError,
    OperatorCondition,
    OperatorConditionFactory,
    Pruner,
    keep_newest,
    older_than,
)

LABELS = {"pruned": "yes"}


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    cluster.scheme.register(OperatorCondition)
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def pods(client, namespace):
    """Four Pods, of which the last one runs on."""
    made = []
    for number in range(4):
        pod = core.Pod(
            metadata=meta.ObjectMeta(name=f"p{number}", namespace=namespace, labels=LABELS),
            spec=core.PodSpec(
                containers=[core.Container(name="main", image="x")],
                node_name="nowhere",
                termination_grace_period_seconds=0,
            ),
        )
        await client.create(pod)
        pod.status.phase = "Running" if number == 3 else "Succeeded"
        await client.status.update(pod)
        made.append(pod)
    return made


def names(objects):
    return [each.metadata.name for each in objects]


async def left(client, kind, namespace):
    return sorted(names(await client.list(kind, namespace=namespace, labels=LABELS)))


async def test_the_newest_that_have_ended_are_kept(client, namespace, pods):
    pruner = Pruner(client, core.Pod, keep_newest(1), namespace=namespace, labels=LABELS)

    # Created within a second of each other: then the name decides, the last one being the newest.
    assert names(await pruner.prune(dry_run=True)) == ["p1", "p0"]
    assert await left(client, core.Pod, namespace) == ["p0", "p1", "p2", "p3"]
    assert names(await pruner.prune()) == ["p1", "p0"]

    assert await left(client, core.Pod, namespace) == ["p2", "p3"]
    assert await pruner.prune() == []


async def test_what_is_older_than_an_age_goes_unless_it_is_vetoed(client, namespace, pods):
    later = datetime.now(UTC) + timedelta(hours=2)

    def pruner(hours, **options):
        strategy = older_than(timedelta(hours=hours), now=lambda: later)
        return Pruner(client, core.Pod, strategy, namespace=namespace, labels=LABELS, **options)

    assert await pruner(3).prune() == []
    gone = await pruner(1, is_prunable=lambda pod: pod.metadata.name in {"p1", "p3"}).prune()

    assert names(gone) == ["p3", "p1"]
    assert await left(client, core.Pod, namespace) == ["p0", "p2"]


async def test_an_object_that_changed_since_it_was_listed_is_passed_over(client, namespace, pods):
    listed = await client.list(core.Pod, namespace=namespace, labels=LABELS)
    pods[0].metadata.labels["more"] = "1"
    await client.update(pods[0])

    class Listed:
        """A client whose list is as old as ours."""

        delete = client.delete

        async def list(self, *_args, **_options):
            return listed

    gone = await Pruner(Listed(), core.Pod, keep_newest(1)).prune()

    assert names(gone) == ["p1"]
    assert await left(client, core.Pod, namespace) == ["p0", "p2", "p3"]


async def test_a_job_that_is_not_complete_stays(client, namespace):
    template = core.PodTemplateSpec(
        spec=core.PodSpec(containers=[core.Container(name="main", image="x")], restart_policy="Never")
    )
    job = batch.Job(
        metadata=meta.ObjectMeta(name="j", namespace=namespace, labels=LABELS),
        spec=batch.JobSpec(template=template, suspend=True),
    )
    await client.create(job)

    assert await Pruner(client, batch.Job, keep_newest(0), namespace=namespace, labels=LABELS).prune() == []


async def test_kinds_that_cannot_be_made_again_are_refused_unless_they_are_meant(client, namespace):
    with pytest.raises(ConfigError, match="sensitive=True"):
        Pruner(client, core.Secret, keep_newest(0), namespace=namespace)
    with pytest.raises(ConfigError, match="is_prunable="):
        Pruner(client, core.ConfigMap, keep_newest(0), namespace=namespace)
    secret = core.Secret(metadata=meta.ObjectMeta(name="s", namespace=namespace, labels=LABELS))
    await client.create(secret)

    gone = await Pruner(
        client,
        core.Secret,
        keep_newest(0),
        namespace=namespace,
        labels=LABELS,
        is_prunable=lambda _: True,
        sensitive=True,
    ).prune()

    assert names(gone) == ["s"]


@pytest.mark.parametrize("strategy", [lambda: keep_newest(-1), lambda: older_than(timedelta(seconds=-1))])
def test_strategies_that_cannot_be_meant_are_refused(strategy):
    with pytest.raises(ValueError, match="0"):
        strategy()


# --- conditions


@pytest.fixture(scope="module")
def definition(server):
    (made,) = crds([OperatorCondition])
    server.install_crds(made)
    yield
    server.uninstall_crds(made)


@pytest.fixture
async def ours(client, namespace, definition):
    """The OperatorCondition that OLM would have made, with fields that our class does not name."""
    condition = OperatorCondition(metadata=meta.ObjectMeta(name="shop.v1", namespace=namespace))
    await client.create(condition)
    return condition


def factory(client, namespace, name="shop.v1"):
    return OperatorConditionFactory(client, environ={"OPERATOR_CONDITION_NAME": name, "POD_NAMESPACE": namespace})


async def test_a_condition_is_reported_and_read(client, namespace, ours):
    upgradeable = factory(client, namespace).condition("Upgradeable")
    with pytest.raises(ConditionNotSetError, match="no condition Upgradeable yet"):
        await upgradeable.get()

    await upgradeable.set(False, reason="Migrating", message="wait for it")

    found = await upgradeable.get()
    assert (found.status, found.reason, found.message) == ("False", "Migrating", "wait for it")
    version = (await client.get(OperatorCondition, ctrl.key(ours))).metadata.resource_version
    await upgradeable.set(False, reason="Migrating", message="wait for it")
    assert (await client.get(OperatorCondition, ctrl.key(ours))).metadata.resource_version == version
    await upgradeable.set("True", reason="Migrated")
    assert (await upgradeable.get()).status == "True"


async def test_an_operator_condition_that_is_gone_is_not_found(client, namespace, definition):
    with pytest.raises(NotFound):
        await factory(client, namespace, "other").condition("Upgradeable").set(True, reason="Fine")


async def test_outside_of_olm_it_says_so(client, tmp_path):
    with pytest.raises(ConfigError, match="was not installed by OLM"):
        OperatorConditionFactory(client, environ={})
    with pytest.raises(ConfigError, match="POD_NAMESPACE is not set"):
        OperatorConditionFactory(client, environ={"OPERATOR_CONDITION_NAME": "a"}, namespace_file=Path(tmp_path / "no"))
    (tmp_path / "namespace").write_text("there\n")
    found = OperatorConditionFactory(
        client, environ={"OPERATOR_CONDITION_NAME": "a"}, namespace_file=tmp_path / "namespace"
    )
    assert found.key == ctrl.NamespacedName("there", "a")
