from __future__ import annotations

import copy
import json

from ctrlruntime.apiserver.registry.autoscaler_conversion import from_v2, to_v2

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"


def _cpu(share: int) -> dict[str, object]:
    target = {"type": "Utilization", "averageUtilization": share}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _scaler(*metrics: object, **status: object) -> dict[str, object]:
    return {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "metrics": list(metrics)}, "status": status}


def test_what_v1_has_no_field_for_goes_through_annotations_and_back():
    pods = {
        "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
        "target": {"type": "AverageValue", "averageValue": "5"},
    }
    described = {"kind": "K", "name": "n"}
    metrics = [
        {"type": "Pods", "pods": pods},
        {"type": "Object", "object": {"describedObject": described, "target": {"type": "Value", "value": "7"}, "metric": {"name": "m"}}},
        {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "5"}}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}, "container": "c"}},
        _cpu(50),
    ]  # fmt: skip
    wanted = _scaler(*metrics)
    one = from_v2(copy.deepcopy(wanted))
    assert one["spec"] == {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    assert len(json.loads(one["metadata"]["annotations"][_METRICS])) == 4
    assert to_v2(one) == wanted


def test_v1_without_metrics_has_a_share_of_the_cpu():
    assert to_v2({"metadata": {}, "spec": {}})["spec"]["metrics"] == [_cpu(80)]


def test_an_annotation_that_cannot_be_read_says_nothing():
    for text in ("x", "5", '["a"]', '{"a":'):
        found = to_v2({"metadata": {"annotations": {_METRICS: text, "a": "b"}}, "spec": {}})
        assert found["spec"]["metrics"] == [_cpu(80)]
        assert found["metadata"]["annotations"] == {"a": "b"}


def test_the_status_is_converted_too():
    current = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageValue": "1", "averageUtilization": 7}},
    }
    wanted = _scaler(_cpu(80), currentMetrics=[current], conditions=[{"type": "A", "status": "True"}])
    one = from_v2(copy.deepcopy(wanted))
    assert one["status"] == {"currentCPUUtilizationPercentage": 7}
    assert to_v2(one) == wanted
