"""What is printed of the metrics of an autoscaler (formatHPAMetrics in pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from typing import Any

from ctrlruntime.schema.trees import Document


def metric_targets(spec: Document, status: Document) -> str:
    """Return what is there and what is wanted of the first two metrics."""
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


__all__ = ["metric_targets"]
