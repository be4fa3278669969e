"""What is printed of metrics: those of an autoscaler, of Pods and of Nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from ctrlruntime.quantities import add
from ctrlruntime.schema.trees import Document

_USED: Final = ("cpu", "memory")
_COLUMNS: Final[list[Document]] = [
    {"name": "Name", "type": "string", "format": "name", "description": "Name of the resource", "priority": 0},
    *({"name": name, "type": "string", "format": "quantity", "priority": 0} for name in _USED),
    {"name": "Window", "type": "string", "format": "duration", "priority": 0},
]
MEASURED: Final[Mapping[str, list[Document]]] = {
    f"metrics.k8s.io/v1beta1/{kind}": _COLUMNS for kind in ("nodes", "pods")
}
"""The columns of metrics-server (its pkg/api/table.go)."""


def pod_usage(obj: Document, _now: datetime) -> list[Any]:
    """Return the row of a PodMetrics: the sums of its containers."""
    total = dict.fromkeys(_USED, "0")
    for container in obj["containers"]:
        for name in _USED:
            total[name] = add(total[name], container["usage"][name])
    return [obj["metadata"]["name"], *total.values(), obj["window"]]


def node_usage(obj: Document, _now: datetime) -> list[Any]:
    """Return the row of a NodeMetrics."""
    return [obj["metadata"]["name"], *(obj["usage"][name] for name in _USED), obj["window"]]


def metric_targets(spec: Document, status: Document) -> str:
    """Return what is there and what is wanted of the first two metrics (formatHPAMetrics in internalversion/printers.go)."""
    present = status.get("currentMetrics") or []
    texts = [
        _metric_target(metric, present[index] if index < len(present) else {})
        for index, metric in enumerate(spec.get("metrics") or ())
    ]
    if spec.get("targetCPUUtilizationPercentage") is not None:
        used = status.get("currentCPUUtilizationPercentage")
        texts.append(f"cpu: {_unknown(used, '%')}/{spec['targetCPUUtilizationPercentage']}%")
    return ", ".join(texts[:2]) + (f" + {len(texts) - 2} more..." if len(texts) > 2 else "") if texts else "<none>"


def _metric_target(metric: Document, present: Document) -> str:
    kind = str(metric.get("type", ""))
    field = kind[:1].lower() + kind[1:]
    source: Document = metric.get(field) or {}
    target: Document = source.get("target") or {}
    current: Document = (present.get(field) or {}).get("current") or {}
    is_average = target.get("averageValue") is not None
    if "Resource" not in kind:
        name = "averageValue" if is_average else "value"
        marked = " (avg)" if is_average and kind != "Pods" else ""
        return f"{_unknown(current.get(name))}/{target.get(name)}{marked}"
    if is_average:
        return f"{source.get('name', '')}: {_unknown(current.get('averageValue'))}/{target['averageValue']}"
    share = target.get("averageUtilization")
    wanted = "<auto>" if share is None else f"{share}%"
    return f"{source.get('name', '')}: {_unknown(current.get('averageUtilization'), '%')}/{wanted}"


def _unknown(value: Any, unit: str = "") -> str:
    return "<unknown>" if value is None else f"{value}{unit}"


__all__ = ["MEASURED", "metric_targets", "node_usage", "pod_usage"]
