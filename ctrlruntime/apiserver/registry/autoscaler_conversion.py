"""HorizontalPodAutoscalers between v1 and v2: v1 says in annotations what it has no fields for (pkg/apis/autoscaling/v1/conversion.go).

The annotations hold metrics in a form of their own and the behaviour as the internal type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.internal_types import internal, served
from ctrlruntime.field_errors import html_escaped
from ctrlruntime.schema.trees import Document

_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_CURRENT: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
_OTHERS: Final = (
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)
_CONDITION_FIELDS: Final = ("type", "status", "lastTransitionTime", "reason", "message")
_SOURCES: Final = ("object", "pods", "resource", "containerResource", "external")
_BEHAVIOR_TYPE: Final = "autoscaling.HorizontalPodAutoscalerBehavior"
_DEFAULT_SHARE: Final = 80


def to_v2(document: Document) -> Document:
    """Change a tree of v1 to one of v2. An annotation that cannot be read says nothing."""
    spec: Document = document.setdefault("spec", {})
    annotations: dict[str, str] = (document.get("metadata") or {}).get("annotations") or {}
    metrics = [_with_source(metric, _target_of) for metric in _listed(annotations.get(_METRICS))]
    share = spec.pop("targetCPUUtilizationPercentage", None)
    if share is not None or not metrics:
        metrics.append(_cpu("target", {"type": "Utilization"}, _DEFAULT_SHARE if share is None else share))
    spec["metrics"] = metrics
    behavior = served(_BEHAVIOR_TYPE, _read(annotations.get(_BEHAVIOR)))
    if behavior:
        spec["behavior"] = behavior
    status: Document = document.get("status") or {}
    share = status.pop("currentCPUUtilizationPercentage", None)
    current = [_with_source(metric, _current_of) for metric in _listed(annotations.get(_CURRENT))]
    if not current and share is not None:
        current = [_cpu("current", {}, share)]
    conditions = _listed(annotations.get(_CONDITIONS))
    for name, value in (("currentMetrics", current), ("conditions", conditions)):
        if value:
            status[name] = value
            document["status"] = status
    drop_v1_annotations(document)
    return document


def from_v2(document: Document) -> Document:
    """Change a tree of v2 to one of v1."""
    drop_v1_annotations(document)
    spec: Document = document.get("spec") or {}
    status: Document = document.get("status") or {}
    metrics, current = spec.pop("metrics", None) or (), status.pop("currentMetrics", None) or ()
    shares = [share for share in map(_share_of_cpu, metrics) if share is not None]
    if shares:
        spec["targetCPUUtilizationPercentage"] = shares[0]
    kept = [_with_source(metric, _flat_target) for metric in metrics if _share_of_cpu(metric) is None]
    for metric in current:
        share = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if share is not None and metric["resource"].get("name") == "cpu":
            status["currentCPUUtilizationPercentage"] = share
    conditions = status.pop("conditions", None) or ()
    noted = {
        _METRICS: kept,
        _CURRENT: [_with_source(metric, _flat_current) for metric in current],
        _BEHAVIOR: internal(f"*{_BEHAVIOR_TYPE}", spec.pop("behavior", None)),
        _CONDITIONS: [{name: one[name] for name in _CONDITION_FIELDS if name in one} for one in conditions],
    }
    texts = {name: _text(value) for name, value in noted.items() if value}
    if texts:
        metadata: Document = document["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **texts}
    return document


def drop_v1_annotations(document: Document) -> None:
    """Drop the annotations with which v1 says what it has no fields for; no other version has them.

    DropRoundTripHorizontalPodAutoscalerAnnotations in pkg/apis/autoscaling/helpers.go.
    """
    metadata: Document = document.get("metadata") or {}
    annotations = metadata.get("annotations")
    if annotations:
        for name in (_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS, *_OTHERS):
            annotations.pop(name, None)
        if not annotations:
            del metadata["annotations"]


def _text(value: Any) -> str:
    return html_escaped(json.dumps(value, separators=(",", ":"), ensure_ascii=False))


def _read(text: str | None) -> Any:
    try:
        return json.loads(text or "null")
    except ValueError:
        return None


def _listed(text: str | None) -> list[Document]:
    found = _read(text)
    is_good = isinstance(found, list) and all(isinstance(one, dict) for one in found)
    return found if is_good else []


def _cpu(side: str, target: Document, share: int) -> Document:
    return {"type": "Resource", "resource": {"name": "cpu", side: {**target, "averageUtilization": share}}}


def _share_of_cpu(metric: Document) -> int | None:
    source: Document = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    share: int | None = (source.get("target") or {}).get("averageUtilization")
    return share


def _with_source(metric: Document, change: Callable[[str, Document], Document]) -> Document:
    """Return a metric of the other form: the source that it has is changed."""
    found = {"type": metric.get("type", "")}
    for name in _SOURCES:
        source = metric.get(name)
        if isinstance(source, dict):
            found[name] = {key: value for key, value in change(name, source).items() if value is not None}
    return found


def _named(source: Document, name: str) -> Document:
    selector = source.get("metricSelector" if name == "external" else "selector")
    found = {"name": source.get("metricName", "")}
    return {**found, "selector": selector} if selector is not None else found


def _target_of(name: str, source: Document) -> Document:
    """Return the source of a metric in v2."""
    value, average = source.get("targetValue"), source.get("targetAverageValue")
    share = source.get("targetAverageUtilization")
    match name:
        case "object":
            average, value = source.get("averageValue"), value or "0"
            kind = "Value" if average is None else "AverageValue"
            target = {"type": kind, "value": None if average is not None and value == "0" else value}
        case "pods":
            kind, average, target = "AverageValue", average or "0", {"type": "AverageValue"}
        case "external":
            target = {"type": "AverageValue" if value is None else "Value", "value": value}
        case _:
            target = {"type": "AverageValue" if share is None else "Utilization", "averageUtilization": share}
    return _joined(name, source, "target", {**target, "averageValue": average})


def _current_of(name: str, source: Document) -> Document:
    """Return what a metric in v2 says that it is."""
    value, average = source.get("currentValue") or "0", source.get("currentAverageValue")
    match name:
        case "object":
            current = {"value": value, "averageValue": source.get("averageValue")}
        case "pods":
            current = {"averageValue": average or "0"}
        case "external":
            current = {"value": value, "averageValue": average}
        case _:
            share = source.get("currentAverageUtilization")
            current = {"averageValue": average or "0", "averageUtilization": share}
    return _joined(name, source, "current", current)


def _joined(name: str, source: Document, side: str, values: Document) -> Document:
    found: Document = {side: {key: value for key, value in values.items() if value is not None}}
    if name in {"resource", "containerResource"}:
        return {"name": source.get("name", ""), **found, "container": source.get("container")}
    if name == "object":
        found = {"describedObject": source.get("target") or {}, **found}
    return {"metric": _named(source, name), **found}


def _flat_target(name: str, source: Document) -> Document:
    return dict(_flat(name, source, "target"))


def _flat_current(name: str, source: Document) -> Document:
    return dict(_flat(name, source, "current"))


def _flat(name: str, source: Document, side: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a source in v1, in the order of Go."""
    values: Document = source.get(side) or {}
    metric: Document = source.get("metric") or {}
    value, average = values.get("value"), values.get("averageValue")
    is_current = side == "current"
    if name in {"resource", "containerResource"}:
        yield "name", source.get("name", "")
        yield f"{side}AverageUtilization", values.get("averageUtilization")
        yield f"{side}AverageValue", average or "0" if is_current else average
        if name == "containerResource":
            yield "container", source.get("container", "")
        return
    if name == "object":
        described: Document = source.get("describedObject") or {}
        yield "target", {key: described[key] for key in ("kind", "name", "apiVersion") if key in described}
    yield "metricName", metric.get("name", "")
    if name == "external":
        yield "metricSelector", metric.get("selector")
        yield f"{side}Value", value or "0" if is_current else value
        yield f"{side}AverageValue", average
        return
    yield f"{side}Value" if name == "object" else f"{side}AverageValue", (value if name == "object" else average) or "0"
    yield "selector", metric.get("selector")
    if name == "object":
        yield "averageValue", average


__all__ = ["drop_v1_annotations", "from_v2", "to_v2"]
