"""HorizontalPodAutoscalers on the simulated cluster: what Pods use decides how many there are."""

from datetime import UTC, datetime, timedelta

import pytest
from controllers_cluster import cluster, deployment

USAGE = "simulation.ctrlruntime.dev/usage"
HPA = ("autoscaling", "horizontalpodautoscalers")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
NO_DELAY = {"scaleDown": {"stabilizationWindowSeconds": 0}}


class Clock:
    def __init__(self):
        self.moment = datetime.now(UTC)

    def now(self):
        return self.moment


def _cpu(percent=50):
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}},
    }


def _autoscaler(**spec):
    given = {"maxReplicas": 5, "scaleTargetRef": TARGET, "metrics": [_cpu()], **spec}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": given}


def _loaded(usage, replicas=1):
    made = deployment(replicas=replicas)
    template = made["spec"]["template"]
    template["metadata"]["annotations"] = {USAGE: usage}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return made


def _status(c, name="web"):
    return c.api.get(*HPA, "default", name).get("status") or {}


def _conditions(c, name="web"):
    return {one["type"]: (one["status"], one["reason"]) for one in _status(c, name).get("conditions") or ()}


async def _annotate(c, usage):
    for pod in c.pods():
        patch = {"metadata": {"annotations": {USAGE: usage}}}
        await c.api.merge_patch("", "pods", "default", pod["metadata"]["name"], patch)
    await c.settle()


def _events(c, reason):
    return [event["message"] for event in c.api.list("", "events", "default") if event["reason"] == reason]


async def test_replicas_follow_the_load_up_and_down():
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=90m"))
        await c.until(lambda: len(c.ready()) == 1)
        await c.create(*HPA, _autoscaler(behavior=NO_DELAY))
        await c.until(lambda: len(c.ready()) == 5)
        await c.settle()

        status = _status(c)
        assert (status["currentReplicas"], status["desiredReplicas"]) == (5, 5)
        current = {"averageUtilization": 90, "averageValue": "90m"}
        assert status["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
        assert status["lastScaleTime"]
        assert "observedGeneration" not in status
        assert _conditions(c) == {
            "AbleToScale": ("True", "ReadyForNewScale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("True", "TooManyReplicas"),
        }
        above = "cpu resource utilization (percentage of request) above target"
        assert f"New size: 5; reason: {above}" in _events(c, "SuccessfulRescale")

        await _annotate(c, "cpu=20m")
        await c.until(lambda: c.deployment()["spec"]["replicas"] == 1)  # each Pod uses as much as before
        assert "New size: 1; reason: All metrics below target" in _events(c, "SuccessfulRescale")


async def test_the_way_down_waits_for_its_window():
    clock = Clock()
    async with cluster(metrics=True, now=clock.now) as c:
        await c.create("apps", "deployments", _loaded("cpu=50m", replicas=4))
        await c.until(lambda: len(c.ready()) == 4)
        await c.create(*HPA, _autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}}))
        await c.settle()
        await _annotate(c, "cpu=10m")

        assert c.deployment()["spec"]["replicas"] == 4
        assert _conditions(c)["AbleToScale"] == ("True", "ScaleDownStabilized")

        clock.moment += timedelta(seconds=61)
        await _annotate(c, "cpu=11m")
        assert c.deployment()["spec"]["replicas"] == 1


async def test_a_window_ends_by_itself():
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=10m", replicas=2))
        await c.until(lambda: len(c.ready()) == 2)
        await c.create(*HPA, _autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 1}}))

        await c.until(lambda: c.deployment()["spec"]["replicas"] == 1)


@pytest.mark.parametrize(
    ("metric", "replicas", "current"),
    [
        (
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "32Mi"}},
            },
            4,
            {"averageValue": "64Mi"},
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "c",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            },
            4,
            {"averageUtilization": 100, "averageValue": "100m"},
        ),
    ],
)
async def test_amounts_and_containers(metric, replicas, current):
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=100m,memory=64Mi", replicas=2))
        await c.until(lambda: len(c.ready()) == 2)
        await c.create(*HPA, _autoscaler(metrics=[metric], maxReplicas=4))

        await c.until(lambda: c.deployment()["spec"]["replicas"] == replicas)
        await c.settle()
        kind = metric["type"]
        assert _status(c)["currentMetrics"][0][kind[0].lower() + kind[1:]]["current"] == current


async def test_the_greatest_of_several_metrics_counts_and_one_that_fails_does_not_shrink():
    pods = {
        "type": "Pods",
        "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=100m", replicas=2))
        await c.until(lambda: len(c.ready()) == 2)
        await c.create(*HPA, _autoscaler(metrics=[pods, _cpu(50)], behavior=NO_DELAY))
        await c.until(lambda: c.deployment()["spec"]["replicas"] == 5)
        await c.until(lambda: len(c.ready()) == 5)
        await _annotate(c, "cpu=1m")

        assert c.deployment()["spec"]["replicas"] == 5
        assert _conditions(c)["ScalingActive"] == ("False", "FailedGetPodsMetric")
        assert _status(c)["currentMetrics"][0] == {"type": ""}


async def test_a_failure_is_told_once():
    async with cluster() as c:
        await c.create("apps", "deployments", _loaded("cpu=100m", replicas=2))
        await c.create(*HPA, _autoscaler())
        await c.until(lambda: _conditions(c).get("ScalingActive") == ("False", "FailedGetResourceMetric"))
        await _annotate(c, "cpu=50m")

        assert len(_events(c, "FailedGetResourceMetric")) == 1
        revision = c.api.store.revision
        await c.settle()
        assert c.api.store.revision == revision


async def test_a_usage_that_cannot_be_read_is_a_missing_metric():
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=x", replicas=1))
        await c.until(lambda: len(c.ready()) == 1)
        await c.create(*HPA, _autoscaler())

        await c.until(lambda: _conditions(c).get("ScalingActive") == ("False", "FailedGetResourceMetric"))
        message = next(one["message"] for one in _status(c)["conditions"] if one["type"] == "ScalingActive")
        assert message.endswith("unable to get metrics for resource cpu: no metrics returned from resource metrics API")


async def test_two_autoscalers_of_the_same_pods_do_nothing():
    async with cluster(metrics=True) as c:
        await c.create("apps", "deployments", _loaded("cpu=100m", replicas=2))
        await c.until(lambda: len(c.ready()) == 2)
        second = _autoscaler(maxReplicas=2)
        second["metadata"]["name"] = "other"
        await c.create(*HPA, _autoscaler(maxReplicas=2))
        await c.settle()
        await c.create(*HPA, second)
        await c.settle()
        await _annotate(c, "cpu=90m")

        assert {_conditions(c, name)["ScalingActive"] for name in ("web", "other")} == {("False", "AmbiguousSelector")}
        await c.api.delete(*HPA, "default", "other")
        await _annotate(c, "cpu=80m")
        assert _conditions(c)["ScalingActive"] == ("True", "ValidMetricFound")


async def test_a_target_that_comes_later_is_found():
    async with cluster(metrics=True) as c:
        await c.create(*HPA, _autoscaler())
        await c.until(lambda: _conditions(c).get("AbleToScale") == ("False", "FailedGetScale"))
        await c.create("apps", "deployments", _loaded("cpu=100m"))

        await c.until(lambda: c.deployment()["spec"]["replicas"] == 5)
        assert _conditions(c)["AbleToScale"][0] == "True"
