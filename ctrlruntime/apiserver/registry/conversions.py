"""Built-in kinds served in two versions from one store: HorizontalPodAutoscaler v1 and v2, Event of events.k8s.io and core.

Each entry names the table and the two functions between the served version and the canonical one (v2, core). They change the tree
they are given; the caller reads the result with the Go type, which drops what the version does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctrlruntime.schema.trees import Document

Conversion: TypeAlias = tuple[tuple[str, str], Callable[[Document], Document], Callable[[Document], Document]]

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "source": "deprecatedSource",
    "reportingComponent": "reportingController",
}
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_CONDITION_FIELDS = ("type", "status", "lastTransitionTime", "reason", "message")


def _renamed(document: Document, names: Mapping[str, str]) -> Document:
    return {names.get(key, key): value for key, value in document.items()}


def _event_to_core(document: Document) -> Document:
    return _renamed(document, {new: old for old, new in _EVENT_NAMES.items()})


def _event_from_core(document: Document) -> Document:
    return _renamed(document, _EVENT_NAMES)


def _autoscaler_to_v2(document: Document) -> Document:
    spec: Document = document.get("spec") or {}
    annotations: dict[str, str] = document.get("metadata", {}).get("annotations") or {}
    metrics: list[Any] = json.loads(annotations.pop(_METRICS, "[]"))
    behavior, conditions = annotations.pop(_BEHAVIOR, ""), annotations.pop(_CONDITIONS, "")
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        utilization = {"type": "Utilization", "averageUtilization": target}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": utilization}})
    if metrics:
        spec["metrics"] = metrics
    if behavior:
        spec["behavior"] = json.loads(behavior)
    drop_v1_annotations(document)
    status: Document = document.get("status") or {}
    if conditions:
        status["conditions"] = json.loads(conditions)
        document["status"] = status
    current = status.pop("currentCPUUtilizationPercentage", None)
    if current is not None:
        shown = {"name": "cpu", "current": {"averageUtilization": current}}
        status["currentMetrics"] = [{"type": "Resource", "resource": shown}]
    return document


def drop_v1_annotations(document: Document, *, of_status_only: bool = False) -> None:
    """Drop the annotations with which v1 says what it has no fields for; no other version has them.

    DropRoundTripHorizontalPodAutoscalerAnnotations in pkg/apis/autoscaling/helpers.go.
    """
    names = (_CURRENT, _CONDITIONS) if of_status_only else (_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS)
    metadata: Document = document.get("metadata") or {}
    annotations = metadata.get("annotations")
    if annotations:
        for name in names:
            annotations.pop(name, None)
        if not annotations:
            del metadata["annotations"]


def _autoscaler_from_v2(document: Document) -> Document:
    spec: Document = document.get("spec") or {}
    kept: list[Document] = []
    for metric in spec.pop("metrics", None) or ():
        target = metric.get("resource", {}).get("target", {})
        is_cpu = metric.get("resource", {}).get("name") == "cpu" and "averageUtilization" in target
        if is_cpu and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            kept.append(metric)
    annotations: dict[str, str] = document["metadata"].get("annotations") or {}
    if kept:
        annotations[_METRICS] = json.dumps(kept, separators=(",", ":"))
    if "behavior" in spec:
        annotations[_BEHAVIOR] = json.dumps(spec.pop("behavior"), separators=(",", ":"))
    conditions = (document.get("status") or {}).pop("conditions", None)
    if conditions:
        listed = [{name: each.get(name) for name in _CONDITION_FIELDS if name in each} for each in conditions]
        annotations[_CONDITIONS] = json.dumps(listed, separators=(",", ":"))
    if annotations:
        document["metadata"]["annotations"] = annotations
    for metric in (document.get("status") or {}).pop("currentMetrics", None) or ():
        current = metric.get("resource", {}).get("current", {}).get("averageUtilization")
        if metric.get("resource", {}).get("name") == "cpu" and current is not None:
            document["status"]["currentCPUUtilizationPercentage"] = current
    return document


CONVERSIONS: Mapping[tuple[str, str, str], Conversion] = {
    ("events.k8s.io", "v1", "events"): (("", "events"), _event_to_core, _event_from_core),
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        ("autoscaling", "horizontalpodautoscalers"),
        _autoscaler_to_v2,
        _autoscaler_from_v2,
    ),
}
