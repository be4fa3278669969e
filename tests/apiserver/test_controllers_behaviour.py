"""Pods that fail on request, and what Deployments, Jobs and budgets make of it."""

from datetime import UTC, datetime, timedelta

import pytest
from controllers_cluster import cluster, deployment, is_ready, pod

from ctrlruntime.apiserver.behaviour import LOG_ANNOTATION, OUTCOMES, Behaviour, behaviour_of, log_of
from ctrlruntime.apiserver.controllers import OUTCOME_ANNOTATION

PREFIX = "simulation.ctrlruntime.dev/"


class Clock:
    """One time for the kubelet's delays and for timestamps."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(seconds=self.seconds)


def behaving(name="p", /, policy="Always", **annotations):
    document = pod(name, restartPolicy=policy)
    document["metadata"]["annotations"] = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    return document


def only(c):
    (found,) = c.pods()
    return found


def state(c):
    return only(c)["status"]["containerStatuses"][0]


async def nudge(c, clock, seconds):
    """Let time pass and have the kubelet look again."""
    clock.seconds += seconds
    meta = only(c)["metadata"]
    await c.api.merge_patch("", "pods", "default", meta["name"], {"metadata": {"labels": {"t": str(clock.seconds)}}})
    await c.settle()


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, Behaviour()),
        ({"outcome": "bogus", "exit-code": "x", "run-for": "soon"}, Behaviour()),
        ({"outcome": "fail", "exit-code": "3"}, Behaviour("fail", exit_code=3)),
        ({"ready-after": "1m30s", "run-for": "500ms"}, Behaviour(ready_after=90.0, run_for=0.5)),
        ({"restart-delay": "2", "terminate-after": "1h"}, Behaviour(restart_delay=2.0, terminate_after=3600.0)),
    ],
)
def test_annotations_are_read_and_nonsense_counts_as_not_said(annotations, expected):
    metadata = {"annotations": {PREFIX + key: value for key, value in annotations.items()}}

    assert behaviour_of({"metadata": metadata}, is_job=False) == expected


def test_every_outcome_is_described():
    assert all(
        behaviour_of({"metadata": {"annotations": {OUTCOME_ANNOTATION: o}}}, is_job=True).outcome == o for o in OUTCOMES
    )
    assert behaviour_of({"metadata": {}}, is_job=True).outcome == "succeed"


def test_back_off_doubles_to_five_minutes():
    assert [Behaviour().back_off(n) for n in (1, 2, 3, 6, 50)] == [10, 20, 40, 300, 300]


def test_a_log_may_be_that_of_one_container():
    document = {"metadata": {"annotations": {LOG_ANNOTATION: "all", f"{LOG_ANNOTATION}.a": "mine"}}}

    assert (log_of(document, "a"), log_of(document, "b")) == ("mine\n", "all\n")


async def test_crash_looping_container_is_restarted_after_a_back_off_that_grows():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", behaving(outcome="crash-loop", exit_code="7"))
        await c.settle()

        status = state(c)
        assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert status["state"]["waiting"]["message"].startswith(
            "backoff 10s restarting failed container=c pod=p_default("
        )
        assert status["lastState"]["terminated"]["exitCode"] == 7
        assert (status["restartCount"], status["ready"], status["started"]) == (1, False, False)
        assert only(c)["status"]["phase"] == "Running"
        ready = {x["type"]: x for x in only(c)["status"]["conditions"]}["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")
        assert ready["message"] == "containers with unready status: [c]"
        await nudge(c, clock, 5)
        assert state(c)["restartCount"] == 1
        await nudge(c, clock, 5)
        assert state(c)["restartCount"] == 2
        assert "backoff 20s" in state(c)["state"]["waiting"]["message"]
        reasons = {event["reason"] for event in c.api.list("", "events", "default")}
        assert "BackOff" in reasons


async def test_crash_looping_pod_gets_well_when_the_annotation_goes():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", behaving(outcome="crash-loop"))
        await c.settle()

        await c.api.merge_patch("", "pods", "default", "p", {"metadata": {"annotations": {OUTCOME_ANNOTATION: None}}})
        await c.settle()

        assert is_ready(only(c))
        assert state(c)["restartCount"] == 1
        assert state(c)["lastState"]["terminated"]["exitCode"] == 1


@pytest.mark.parametrize(
    ("policy", "outcome", "phase"),
    [
        ("Never", "fail", "Failed"),
        ("OnFailure", "fail", "Running"),
        ("Always", "fail", "Running"),
        ("Never", "succeed", "Succeeded"),
        ("OnFailure", "succeed", "Succeeded"),
        ("Always", "succeed", "Running"),
        ("Never", "crash-loop", "Running"),
    ],
)
async def test_the_restart_policy_decides_what_follows_an_end(policy, outcome, phase):
    async with cluster() as c:
        await c.create("", "pods", behaving(policy=policy, outcome=outcome))
        await c.settle()

        assert only(c)["status"]["phase"] == phase


async def test_container_that_ends_runs_for_its_time_first():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", behaving(policy="Never", outcome="fail", run_for="3s", exit_code="9"))
        await c.settle()
        assert "running" in state(c)["state"]

        await nudge(c, clock, 3)

        assert state(c)["state"]["terminated"]["exitCode"] == 9
        assert state(c)["state"]["terminated"]["startedAt"] < state(c)["state"]["terminated"]["finishedAt"]


async def test_image_that_cannot_be_had_leaves_the_pod_pending():
    async with cluster() as c:
        seen = []
        c.api.extensions.on_change.append(lambda _g, plural, change: seen.append(change) if plural == "pods" else None)
        await c.create("", "pods", behaving(outcome="image-pull-error"))
        await c.settle()

        reasons = [
            s[0]["state"]["waiting"]["reason"]
            for change in seen
            if (s := change.object["status"].get("containerStatuses"))
        ]
        assert reasons == ["ErrImagePull", "ImagePullBackOff"]
        assert only(c)["status"]["phase"] == "Pending"
        assert state(c)["state"]["waiting"]["message"].startswith('Back-off pulling image "web:1": ErrImagePull: ')


async def test_ready_after_is_a_delay_of_one_pod():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", behaving(ready_after="5s"))
        await c.settle()
        assert state(c)["state"]["waiting"]["reason"] == "ContainerCreating"

        await nudge(c, clock, 5)

        assert is_ready(only(c))


async def test_deleted_pod_takes_its_time_within_the_grace_period():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        await c.create("", "pods", behaving(terminate_after="4s"))
        await c.settle()

        await c.api.delete("", "pods", "default", "p")
        await c.settle()
        assert only(c)["metadata"]["deletionGracePeriodSeconds"] == 30
        clock.seconds += 4
        await c.api.merge_patch("", "pods", "default", "p", {"metadata": {"labels": {"a": "b"}}})
        await c.settle()

        assert c.pods() == []


async def test_deployment_of_failing_pods_misses_its_deadline():
    clock = Clock()
    async with cluster(now=clock.now, clock=clock.monotonic) as c:
        document = deployment(replicas=1, progressDeadlineSeconds=60)
        document["spec"]["template"]["metadata"]["annotations"] = {OUTCOME_ANNOTATION: "crash-loop"}
        await c.create("apps", "deployments", document)
        await c.settle()
        clock.seconds += 61
        await c.api.merge_patch("apps", "deployments", "default", "web", {"metadata": {"labels": {"a": "b"}}})
        await c.settle()

        found = {x["type"]: (x["status"], x["reason"]) for x in c.deployment()["status"]["conditions"]}
        assert found["Progressing"] == ("False", "ProgressDeadlineExceeded")
        assert found["Available"] == ("False", "MinimumReplicasUnavailable")


async def test_pod_that_fits_no_node_stays_pending_and_says_why():
    async with cluster() as c:
        await c.create("", "pods", pod("p", nodeSelector={"disk": "ssd"}))
        await c.settle()

        scheduled = next(x for x in only(c)["status"]["conditions"] if x["type"] == "PodScheduled")
        text = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
        assert (scheduled["status"], scheduled["reason"], scheduled["message"]) == ("False", "Unschedulable", text)

        await c.api.merge_patch("", "nodes", "", "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
        await c.settle()
        assert is_ready(only(c))


async def test_tainted_node_takes_only_pods_that_tolerate_it():
    async with cluster() as c:
        await c.settle()
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        await c.api.merge_patch("", "nodes", "", "node-1", {"spec": {"taints": [taint]}})
        await c.create("", "pods", pod("no"))
        await c.create("", "pods", pod("yes", tolerations=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
        await c.settle()

        assert [p["metadata"]["name"] for p in c.ready()] == ["yes"]
