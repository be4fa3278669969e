"""Pruning, on both servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import apps, batch, core, meta
from ctrlruntime.errors import ConfigError
from ctrlruntime.operatorlib import Pruner, keep_newest, older_than
from ctrlruntime.testing import eventually

LABELS = {"pruned": "yes"}


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
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


async def test_what_is_older_than_an_age_goes_and_a_judge_of_ones_own_is_the_only_one(client, namespace, pods):
    later = datetime.now(UTC) + timedelta(hours=2)

    def pruner(hours, **options):
        strategy = older_than(timedelta(hours=hours), now=lambda: later)
        return Pruner(client, core.Pod, strategy, namespace=namespace, labels=LABELS, **options)

    assert await pruner(3).prune() == []
    gone = await pruner(1, is_prunable=lambda pod: pod.metadata.name in {"p1", "p3"}).prune()

    assert names(gone) == ["p3", "p1"]
    assert await left(client, core.Pod, namespace) == ["p0", "p2"]


async def test_a_veto_keeps_what_has_done_its_work_and_does_not_count_it(client, namespace, pods):
    pruner = Pruner(
        client,
        core.Pod,
        keep_newest(0),
        namespace=namespace,
        labels=LABELS,
        veto=lambda pod: pod.metadata.name == "p1",
    )

    assert names(await pruner.prune()) == ["p2", "p0"]
    assert await left(client, core.Pod, namespace) == ["p1", "p3"]  # p3 runs


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


def template(restart_policy="Always"):
    return core.PodTemplateSpec(
        metadata=meta.ObjectMeta(labels=LABELS),
        spec=core.PodSpec(containers=[core.Container(name="main", image="x")], restart_policy=restart_policy),
    )


async def job(client, namespace, name, *conditions):
    """Make a Job that the controllers of the cluster leave to us."""
    made = batch.Job(
        metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=LABELS),
        spec=batch.JobSpec(template=template("Never"), managed_by="example.com/test"),
    )
    await client.create(made)
    if conditions:
        now = ctrl.Time.now()
        made.status.start_time = now
        made.status.completion_time = now if "Complete" in conditions else None
        made.status.conditions = [batch.JobCondition(type=each, status="True", last_transition_time=now)
                                  for each in conditions]  # fmt: skip
        await client.status.update(made)


async def test_of_jobs_those_that_are_complete_go(client, namespace):
    await job(client, namespace, "waits")
    await job(client, namespace, "complete", "SuccessCriteriaMet", "Complete")
    await job(client, namespace, "failed", "FailureTarget", "Failed")
    pruner = Pruner(client, batch.Job, keep_newest(0), namespace=namespace, labels=LABELS)

    assert names(await pruner.prune()) == ["complete"]
    assert await pruner.prune() == []
    assert await left(client, batch.Job, namespace) == ["failed", "waits"]


async def test_of_replica_sets_those_without_pods_go(client, namespace):
    for name, replicas in (("empty", 0), ("wanted", 1)):
        made = apps.ReplicaSet(
            metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=LABELS),
            spec=apps.ReplicaSetSpec(
                replicas=replicas, selector=meta.LabelSelector(match_labels=LABELS), template=template()
            ),
        )
        await client.create(made)

    pruner = Pruner(client, apps.ReplicaSet, keep_newest(0), namespace=namespace, labels=LABELS)

    # An object that changes between the list and the deletion is skipped: the controller writes its first status.
    gone = await eventually(pruner.prune, timeout=120)

    assert names(gone) == ["empty"]


async def test_labels_and_the_namespace_bound_what_is_looked_at(client, new_namespace, namespace):
    far = new_namespace()
    labels = {"app": far}  # no other test has it
    for place, name, its in ((namespace, "ours", labels), (namespace, "theirs", {}), (far, "elsewhere", labels)):
        await client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=place, labels=its)))

    def pruner(where):
        options = {"namespace": where, "labels": labels, "is_prunable": lambda _: True}
        return Pruner(client, core.ConfigMap, list, **options)

    assert sorted(names(await pruner(None).prune(dry_run=True))) == ["elsewhere", "ours"]
    assert names(await pruner(namespace).prune()) == ["ours"]
    assert names(await client.list(core.ConfigMap, namespace=far, labels=labels)) == ["elsewhere"]


async def test_what_is_being_deleted_already_is_no_longer_counted(client, namespace):
    for number in range(3):
        held = meta.ObjectMeta(name=f"c{number}", namespace=namespace, labels=LABELS, finalizers=["example.com/held"])
        made = await client.create(core.ConfigMap(metadata=held))
    await client.delete(made)
    pruner = Pruner(
        client, core.ConfigMap, keep_newest(1), namespace=namespace, labels=LABELS, is_prunable=lambda _: True
    )

    assert names(await pruner.prune()) == ["c0"]
    assert await pruner.prune() == []
    for each in await client.list(core.ConfigMap, namespace=namespace, labels=LABELS):
        await client.patch(each, ctrl.merge_patch({"metadata": {"finalizers": None}}))


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
