"""Validation of HorizontalPodAutoscalers with kube-apiserver's words (pkg/apis/autoscaling/validation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.autoscaler_conversion import to_v2
from ctrlruntime.apiserver.registry.pod_resources import resource_name_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.quantities import parse
from ctrlruntime.schema.metadata import segment_causes
from ctrlruntime.schema.trees import Document, copy_tree
from ctrlruntime.schema.values import NON_NEGATIVE, choice_causes, label_causes, not_negative, spec_of

_METRICS: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Where a metric comes from, in the order in which upstream looks."""
_SELECTS: Final = ("Disabled", "Max", "Min")
_EITHER: Final = "must set either a target raw value or a target utilization"


def autoscaler_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """An autoscaler of either version."""
    spec = spec_of(_in_v2(document))
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    metrics = spec.get("metrics") or []
    if least < 1:
        yield invalid_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    before: Document = spec_of(old).get("scaleTargetRef") or {}
    yield from _target_ref_causes(spec.get("scaleTargetRef") or {}, before, "spec.scaleTargetRef")
    for index, metric in enumerate(metrics):
        yield from _metric_causes(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field("spec.metrics", text)
    for side in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(side)
        if rules is not None:
            yield from _scaling_causes(rules, f"spec.behavior.{side}")


def _in_v2(document: Document) -> Document:
    return to_v2(copy_tree(document)) if document.get("apiVersion") == "autoscaling/v1" else document


def autoscaler_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    yield from not_negative(document.get("status") or {}, "status", "currentReplicas", "desiredReplicas")


def _reference_causes(ref: Document, path: str, *, needs_group: bool) -> Iterator[StatusCause]:
    for name in ("kind", "name"):
        text = ref.get(name, "")
        if not text:
            yield required(f"{path}.{name}")
        else:
            yield from segment_causes(text, f"{path}.{name}")
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        yield invalid_value(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif needs_group and not version.rpartition("/")[0]:
        yield invalid_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _target_ref_causes(ref: Document, before: Document, path: str) -> Iterator[StatusCause]:
    is_kept = bool(before) and all(ref.get(name) == before.get(name) for name in ("apiVersion", "kind"))
    for cause in _reference_causes(ref, path, needs_group=ref.get("kind") != "ReplicationController"):
        if (
            not is_kept or cause.field != f"{path}.apiVersion"
        ):  # what was stored before versions were looked at may stay
            yield cause


def _metric_causes(metric: Document, path: str) -> Iterator[StatusCause]:
    """A metric: the first source that it has is judged, whatever its type says (validateMetricSpec in pkg/apis/autoscaling/validation)."""
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _METRICS:
        yield not_supported(f"{path}.type", kind, tuple(sorted(_METRICS)))
    present = [(one, name) for one, name in _METRICS.items() if metric.get(name) is not None]
    for one, name in present[:1]:
        yield from _metric_source_causes(one, metric[name], f"{path}.{name}")
    if kind not in _METRICS:
        yield not_supported(f"{path}.type", kind, tuple(sorted(_METRICS)))
    elif metric.get(_METRICS[kind]) is None:
        yield required(f"{path}.{_METRICS[kind]}", "must populate information for the given metric source")
    if len(present) != 1:
        for one, name in present:
            if one != kind:
                yield forbidden_field(f"{path}.{name}", "must populate the given metric source only")


def _metric_source_causes(kind: str, source: Document, path: str) -> Iterator[StatusCause]:
    target: Document = source.get("target") or {}
    if kind == "Object":
        described: Document = source.get("describedObject") or {}
        yield from _reference_causes(described, f"{path}.describedObject", needs_group=False)
    if kind in {"Resource", "ContainerResource"}:
        if not source.get("name"):
            yield required(f"{path}.name", "must specify a resource name")
        elif kind == "ContainerResource":
            yield from resource_name_causes(source["name"], f"{path}.name", "containers")
        if kind == "ContainerResource" and not source.get("container"):
            yield required(f"{path}.container", "must specify a container")
        elif kind == "ContainerResource":
            yield from label_causes(source["container"], f"{path}.container")
    elif not (source.get("metric") or {}).get("name"):
        yield required(f"{path}.metric.name", "must specify a metric name")
    else:
        yield from segment_causes(source["metric"]["name"], f"{path}.metric.name")
    yield from _metric_target_causes(target, f"{path}.target")
    has_value = {name for name in ("value", "averageValue", "averageUtilization") if target.get(name) is not None}
    match kind:
        case "Pods" if "averageValue" not in has_value:
            yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")
        case "Object" | "External" if not has_value & {"value", "averageValue"}:
            text = "must set either a target value or averageValue"
            if kind == "External":
                text = "must set either a target value for metric or a per-pod target"
            yield required(f"{path}.target.averageValue", text)
        case "External" if has_value >= {"value", "averageValue"}:
            text = "may not set both a target value for metric and a per-pod target"
            yield forbidden_field(f"{path}.target.value", text)
        case "Resource" | "ContainerResource":
            if not has_value & {"averageUtilization", "averageValue"}:
                yield required(f"{path}.target.averageUtilization", _EITHER)
            elif has_value >= {"averageUtilization", "averageValue"}:
                text = "may not set both a target raw value and a target utilization"
                yield forbidden_field(f"{path}.target.averageValue", text)
        case _:
            pass


def _metric_target_causes(target: Document, path: str) -> Iterator[StatusCause]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in {"Utilization", "Value", "AverageValue"}:
        yield invalid_value(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and parse(target[name]) <= 0:
            yield invalid_value(f"{path}.{name}", target[name], "must be positive")
    if target.get("averageUtilization") is not None and target["averageUtilization"] < 1:
        yield invalid_value(f"{path}.averageUtilization", target["averageUtilization"], "must be greater than 0")


def _scaling_causes(rules: Document, path: str) -> Iterator[StatusCause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid_value(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid_value(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in _SELECTS:
        yield not_supported(f"{path}.selectPolicy", rules["selectPolicy"], _SELECTS)
    if not rules.get("policies"):
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        where, seconds = f"{path}.policies[{index}]", policy.get("periodSeconds", 0)
        yield from choice_causes(policy.get("type", ""), f"{where}.type", ("Percent", "Pods"))
        if policy.get("value", 0) <= 0:
            yield invalid_value(f"{where}.value", policy.get("value", 0), "must be greater than zero")
        if seconds <= 0:
            yield invalid_value(f"{where}.periodSeconds", seconds, "must be greater than zero")
        elif seconds > 1800:
            yield invalid_value(f"{where}.periodSeconds", seconds, "must be less than or equal to 1800")
    tolerance = rules.get("tolerance")
    if tolerance is not None and parse(tolerance) < 0:
        yield invalid_value(f"{path}.tolerance", tolerance, NON_NEGATIVE)


__all__ = ["autoscaler_causes", "autoscaler_status_causes"]
