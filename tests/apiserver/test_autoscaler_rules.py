"""How many replicas metrics ask for, and how fast an autoscaler may go there: numbers as in kube-controller-manager's own tests."""

from datetime import UTC, datetime, timedelta

import pytest

from ctrlruntime.apiserver.controllers.autoscaler_limits import History, decide
from ctrlruntime.apiserver.controllers.autoscaler_replicas import (
    MetricError,
    Target,
    Tolerances,
    groups_of,
    propose,
    requests_for,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _pod(number, state):
    """A Pod by a letter: Running, Unready, Pending, Failed, Deleted, Long unready after it was ready."""
    ready = "False" if state in "ULP" else "True"
    started, changed = (NOW - timedelta(minutes=10), NOW - timedelta(minutes=5))
    if state == "U":
        changed = started
    return {
        "metadata": {"name": f"p{number}", **({"deletionTimestamp": "now"} if state == "D" else {})},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {
            "phase": {"P": "Pending", "F": "Failed"}.get(state, "Running"),
            "startTime": started.isoformat(),
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": changed.isoformat()}],
        },
    }


@pytest.mark.parametrize(
    ("current", "states", "levels", "target", "replicas", "utilization"),
    [
        pytest.param(3, "RRR", (300, 500, 700), 30, 5, 50, id="up"),
        pytest.param(3, "URR", (300, 500, 700), 30, 4, 60, id="up less, one is not ready"),
        pytest.param(3, "RUU", (400, 500, 700), 30, 3, 40, id="not up, two are not ready"),
        pytest.param(2, "RRFF", (500, 700), 30, 4, 60, id="up, failed Pods do not count"),
        pytest.param(2, "RRDD", (500, 700), 30, 4, 60, id="up, deleted Pods do not count"),
        pytest.param(5, "RRRRR", (100, 300, 500, 250, 250), 50, 3, 28, id="down"),
        pytest.param(5, "RRRUU", (100, 300, 500, 250, 250), 50, 2, 30, id="down, two are not ready"),
        pytest.param(5, "RPPPP", (100,), 50, 1, 10, id="down, the others are Pending"),
        pytest.param(5, "RRRRRFF", (100, 300, 500, 250, 250), 50, 3, 28, id="down, failed Pods do not count"),
        pytest.param(3, "RRR", (1010, 1030, 1020), 100, 3, 102, id="within the tolerance"),
        pytest.param(4, "RRRR", (400, 95), 100, 3, 24, id="down, two have no metrics"),
        pytest.param(2, "RR", (1000,), 100, 2, 100, id="one has no metrics, the other has what it should"),
        pytest.param(2, "RR", (1900,), 100, 2, 190, id="one has no metrics, the other has more"),
        pytest.param(2, "RR", (600,), 100, 2, 60, id="one has no metrics, the other has less"),
        pytest.param(3, "URR", (100, 450), 50, 3, 45, id="one is not ready and one has no metrics"),
        pytest.param(3, "URR", (100, 2000), 50, 4, 200, id="up, one is not ready and one has no metrics"),
        pytest.param(4, "URRR", (100, 100, 100), 50, 3, 10, id="down, one is not ready and one has no metrics"),
        pytest.param(3, "LRR", (300, 500, 700), 30, 5, 50, id="a Pod that was ready once counts"),
    ],
)
def test_replicas_for_a_utilization(current, states, levels, target, replicas, utilization):
    pods = [_pod(number, state) for number, state in enumerate(states)]
    used = {f"p{number}": level for number, level in enumerate(levels)}

    groups = groups_of(pods, used, "cpu", NOW)
    found = propose(current, Target(target), Tolerances(), used, groups, requests_for(pods, "", "cpu"))

    assert (found.replicas, found.utilization) == (replicas, utilization)


@pytest.mark.parametrize(
    ("current", "states", "levels", "target", "replicas", "average"),
    [
        (3, "RRR", (20000, 10000, 30000), 15000, 4, 20000),
        (3, "RRR", (12000, 12000, 12000), 11000, 3, 12000),
        (5, "RRRRR", (12000, 12000, 12000, 12000, 12000), 20000, 3, 12000),
        (4, "RRRR", (5000, 5000), 20000, 3, 5000),
    ],
)
def test_replicas_for_an_average_amount(current, states, levels, target, replicas, average):
    pods = [_pod(number, state) for number, state in enumerate(states)]
    used = {f"p{number}": level for number, level in enumerate(levels)}

    found = propose(current, Target(None, target), Tolerances(), used, groups_of(pods, used, "memory", NOW), {})

    assert (found.replicas, found.average, found.utilization) == (replicas, average, None)


def test_tolerances_may_differ_by_direction():
    pods, used = [_pod(0, "R"), _pod(1, "R")], {"p0": 560, "p1": 560}
    groups, requests = groups_of(pods, used, "cpu", NOW), {"p0": 1000, "p1": 1000}

    found = [propose(2, Target(50), Tolerances(up=up), used, groups, requests).replicas for up in (0.1, 0.2)]
    assert found == [3, 2]


def test_without_a_ready_pod_there_are_no_metrics():
    pods = [_pod(0, "P")]
    with pytest.raises(MetricError, match="did not receive metrics for targeted pods"):
        propose(1, Target(50), Tolerances(), {"p0": 5}, groups_of(pods, {"p0": 5}, "cpu", NOW), {})


@pytest.mark.parametrize(
    ("container", "resource", "problem"),
    [
        ("", "memory", "missing request for memory in container c of Pod p0"),
        ("x", "cpu", "container x not found in Pod p0"),
    ],
)
def test_utilization_needs_requests(container, resource, problem):
    with pytest.raises(MetricError, match=problem):
        requests_for([_pod(0, "R")], container, resource)


def test_requests_of_the_pod_go_before_those_of_its_containers():
    pod = _pod(0, "R")
    pod["spec"]["resources"] = {"requests": {"cpu": "3"}}

    assert requests_for([pod], "", "cpu") == {"p0": 3000}
    assert requests_for([pod], "c", "cpu") == {"p0": 1000}
    with pytest.raises(MetricError, match="missing pod-level request for memory in Pod p0"):
        requests_for([pod], "", "memory")


# Bounds, policies and windows


@pytest.mark.parametrize(
    ("current", "desired", "least", "most", "replicas", "reason"),
    [
        (5, 7, 3, 8, 7, "DesiredWithinRange"),
        (3, 1, 2, 8, 2, "TooFewReplicas"),
        (20, 1000, 1, 10, 10, "TooManyReplicas"),
        (3, 1000, 1, 2000, 6, "ScaleUpLimit"),
        (1, 1000, 1, 2000, 4, "ScaleUpLimit"),
    ],
)
def test_bounds_without_a_behavior(current, desired, least, most, replicas, reason):
    found = decide(History(), None, current, desired, least, most, NOW)

    assert (found.replicas, found.limited[0]) == (replicas, reason)
    assert found.is_limited is (reason != "DesiredWithinRange")


def _rules(pods=0, pods_period=0, percent=0, percent_period=0, window=0, select="Max"):
    policies = [
        {"type": kind, "value": value, "periodSeconds": period}
        for kind, value, period in (("Pods", pods, pods_period), ("Percent", percent, percent_period))
        if value
    ]
    return {"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies}


def _changes(*counts):
    """Changes in the middles of as many parts of the last two minutes."""
    part = 120 / len(counts)
    return [(count, NOW - timedelta(seconds=part * (place + 0.5))) for place, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("current", "desired", "bounds", "rules", "ups", "downs", "replicas", "reason"),
    [
        (10, 50, (1, 1000), {}, (), (), 20, "ScaleUpLimit"),
        (10, 500, (1, 1000), _rules(100, 60, 100, 60), (), (), 110, "ScaleUpLimit"),
        (10, 500, (1, 1000), _rules(100, 60, 100, 60, select="Min"), (), (), 20, "ScaleUpLimit"),
        (10, 500, (1, 1000), _rules(100, 60, select="Disabled"), (), (), 10, "ScaleUpLimit"),
        (10, 50, (1, 1000), _rules(30, 60), (), (), 40, "ScaleUpLimit"),
        (10, 50, (1, 1000), _rules(0, 0, 200, 60), (), (), 30, "ScaleUpLimit"),
        (100, 1000, (100, 150), {}, (), (), 150, "TooManyReplicas"),
        (100, 500, (1, 200), _rules(300, 60), (1, 5, 9), (), 200, "TooManyReplicas"),
        (100, 500, (1, 1000), _rules(5, 120), (1, 5, 9), (), 100, "ScaleUpLimit"),
        (100, 500, (1, 1000), _rules(150, 120), (1, 5, 9), (), 235, "ScaleUpLimit"),
        (100, 500, (1, 1000), _rules(0, 0, 200, 120), (1, 5, 9), (), 255, "ScaleUpLimit"),
        (6, 24, (1, 1000), _rules(0, 0, 300, 300), (4,), (2,), 16, "ScaleUpLimit"),
        (1000, 3, (3, 2000), _rules(20, 60), (), (), 980, "ScaleDownLimit"),
        (100, 2, (1, 1000), _rules(20, 60, 1, 60), (), (), 80, "ScaleDownLimit"),
        (100, 2, (1, 1000), _rules(2, 60, 1, 60), (), (), 98, "ScaleDownLimit"),
        (100, 2, (1, 1000), _rules(2, 60, 1, 60, select="Min"), (), (), 99, "ScaleDownLimit"),
        (10, 2, (1, 1000), _rules(100, 60, select="Disabled"), (), (), 10, "ScaleDownLimit"),
        (10, 0, (1, 1000), _rules(100, 60), (), (), 1, "TooFewReplicas"),
        (10, 5, (1, 1000), _rules(0, 0, 50, 60), (), (), 5, "DesiredWithinRange"),
        (100, 2, (1, 1000), _rules(5, 120), (), (1, 5, 9), 100, "ScaleDownLimit"),
        (100, 0, (1, 1000), _rules(0, 0, 50, 120), (), (2, 4, 6), 56, "ScaleDownLimit"),
        (10, 1, (1, 1000), _rules(0, 0, 50, 180), (2,), (4,), 6, "ScaleDownLimit"),
        (10, 5, (1, 1000), _rules(0, 0, 1000, 120), (), (10, 10, 10), 5, "DesiredWithinRange"),
    ],
)
def test_policies(current, desired, bounds, rules, ups, downs, replicas, reason):
    history = History(ups=_changes(*ups) if ups else [], downs=_changes(*downs) if downs else [])
    behavior = {"scaleUp" if desired > current else "scaleDown": rules}

    found = decide(history, behavior, current, desired, *bounds, NOW)

    assert (found.replicas, found.limited[0]) == (replicas, reason)


@pytest.mark.parametrize(
    ("recommended", "current", "desired", "up", "down", "replicas"),
    [
        ({}, 100, 5, 0, 0, 5),
        ({4: 2, 5: 1}, 100, 3, 0, 180, 5),
        ({4: 2, 5: 1}, 1, 7, 300, 0, 4),
        ({1: 2, 2: 1}, 100, 3, 300, 0, 3),
        ({4: 2, 5: 1}, 1, 3, 0, 300, 3),
        ({10: 10, 9: 9}, 100, 3, 0, 0, 3),
        ({10: 10, 4: 1, 5: 2, 9: 9}, 100, 3, 0, 180, 5),
        ({10: 100, 6: 1, 5: 2, 9: 3}, 1, 100, 300, 0, 5),
        ({2: 100, 3: 3}, 2, 1, 300, 300, 2),
        ({2: 100, 1: 3}, 2, 3, 300, 300, 2),
    ],
)
def test_windows(recommended, current, desired, up, down, replicas):
    history = History({count: NOW - timedelta(minutes=minutes) for count, minutes in recommended.items()})
    behavior = {"scaleUp": _rules(10000, 1, window=up), "scaleDown": _rules(10000, 1, window=down)}

    found = decide(history, behavior, current, desired, 0, 10000, NOW)

    assert found.replicas == replicas
    assert history.recommended[desired] == NOW
    stabilized = "ScaleUpStabilized" if desired >= current else "ScaleDownStabilized"
    assert found.able[0] == ("ReadyForNewScale" if replicas == desired else stabilized)


def test_the_way_down_is_held_for_five_minutes_without_a_behavior():
    history = History()
    history.begin(5, NOW)

    first = decide(history, None, 5, 2, 1, 10, NOW + timedelta(seconds=60))
    assert (first.replicas, first.able[0]) == (5, "ScaleDownStabilized")
    assert first.again == pytest.approx(240, abs=0.1)
    assert decide(history, None, 5, 2, 1, 10, NOW + timedelta(seconds=60 + first.again)).replicas == 2


def test_a_policy_lets_more_go_when_its_period_is_over():
    behavior, history = {"scaleDown": _rules(1, 30)}, History()

    first = decide(history, behavior, 5, 2, 1, 10, NOW)
    assert first.replicas == 4
    history.note(5, 4, behavior, NOW)
    second = decide(history, behavior, 4, 2, 1, 10, NOW + timedelta(seconds=10))
    assert (second.replicas, second.limited[0]) == (4, "ScaleDownLimit")
    assert second.again == pytest.approx(20, abs=0.1)
    assert decide(history, behavior, 4, 2, 1, 10, NOW + timedelta(seconds=10 + second.again)).replicas == 3


def test_what_is_too_old_is_forgotten():
    behavior, history = {"scaleUp": _rules(1, 30)}, History()

    history.note(1, 2, behavior, NOW)
    history.note(2, 3, behavior, NOW + timedelta(seconds=31))
    assert len(history.ups) == 1
    decide(history, behavior, 3, 4, 1, 9, NOW)
    decide(history, behavior, 3, 5, 1, 9, NOW + timedelta(seconds=301))
    assert list(history.recommended) == [5]
