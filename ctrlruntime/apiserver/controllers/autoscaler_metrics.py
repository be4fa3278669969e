"""What the metrics of an autoscaler say: those of the Pods' resources if they are served, the others are served by nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ctrlruntime.apiserver.controllers.autoscaler_replicas import (
    MetricError,
    Proposal,
    Target,
    Tolerances,
    groups_of,
    propose,
    requests_for,
)
from ctrlruntime.apiserver.controllers.objects import labels_of, metadata
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.quantities import QuantityFormat, units, written
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import LabelSelector

_GROUP: Final = "metrics.k8s.io"
_NOT_SERVED: Final = "the server could not find the requested resource"
_NO_CUSTOM: Final = (
    "unable to fetch metrics from custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one metric asks for, its name in messages, and what the status shows of it."""

    replicas: int
    name: str
    shown: Document


@dataclass(slots=True)
class Metrics:
    """Reads the metrics of one autoscaler: its target has `current` replicas, and its `selector` picks the `pods`."""

    api: API
    namespace: str
    selector: LabelSelector
    pods: Sequence[Document]
    current: int
    tolerances: Tolerances
    now: datetime

    def read(self, metric: Document) -> Reading:
        """Return what a metric asks for (computeReplicasForMetric).

        Raises: MetricError of the reason, the text of its condition, and that of the failure as a whole.
        """
        kind = str(metric["type"])
        source: Document = metric[kind[:1].lower() + kind[1:]]
        reason = f"FailedGet{kind}Metric"
        if kind not in {"Resource", "ContainerResource"}:
            inner, outer = _unserved(kind, source, self.namespace)
            raise MetricError(reason, inner, outer)
        name, container = str(source["name"]), str(source.get("container", ""))
        target: Document = source["target"]
        try:
            proposal = self._resource(name, container, target)
        except MetricError as error:
            what = "usage" if target.get("averageValue") is not None else "utilization"
            inner = f"failed to get {name} {what}: {error}"
            outer = f"{container} container" if container else f"{name} resource"
            raise MetricError(reason, inner, f"failed to get {outer} metric value: {inner}") from None
        return Reading(proposal.replicas, *_shown(kind, name, container, proposal))

    def _resource(self, name: str, container: str, target: Document) -> Proposal:
        used = self._used(name, container)
        if not self.pods:
            raise MetricError("no pods returned by selector while calculating replica count")
        groups = groups_of(self.pods, used, name, self.now)
        requests: dict[str, int] = {}
        if target.get("averageValue") is not None:
            wanted = Target(None, units(target["averageValue"], 1000))
        else:
            wanted = Target(int(target["averageUtilization"]))
            if used.keys() - groups.ignored - groups.unready:
                requests = requests_for(self.pods, container, name)
        return propose(self.current, wanted, self.tolerances, used, groups, requests)

    def _used(self, name: str, container: str) -> dict[str, int]:
        """Return what Pods use of a resource (GetResourceMetric in its metrics/client.go). Raises: MetricError."""
        problem = f"unable to get metrics for resource {name}"
        plural = self.api.plural_of(_GROUP, "PodMetrics")
        if plural is None:
            text = f"unable to fetch metrics from resource metrics API: {_NOT_SERVED} (get pods.{_GROUP})"
            raise MetricError(f"{problem}: {text}")
        found = [one for one in self.api.list(_GROUP, plural, self.namespace) if self.selector.matches(labels_of(one))]
        if not found:
            raise MetricError(f"{problem}: no metrics returned from resource metrics API")
        used: dict[str, int] = {}
        for one in found:
            chosen: list[Document] = [each for each in one["containers"] if container in {"", each["name"]}]
            amounts = [each["usage"].get(name) for each in chosen]
            if amounts and None not in amounts:
                used[str(metadata(one)["name"])] = sum(units(amount, 1000) for amount in amounts)
        return used


def _shown(kind: str, name: str, container: str, proposal: Proposal) -> tuple[str, Document]:
    """Return the name of a metric in messages, and its entry in the status."""
    family: QuantityFormat = "BinarySI" if name == "memory" else "DecimalSI"
    current: Document = {"averageValue": written(Decimal(proposal.average) / 1000, family)}
    text = f"{name} resource"
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
        text = f"{name} {'container ' if container else ''}resource utilization (percentage of request)"
    source: Document = {"name": name, **({"container": container} if container else {}), "current": current}
    return text, {"type": kind, kind[:1].lower() + kind[1:]: source}


def _unserved(kind: str, source: Document, namespace: str) -> tuple[str, str]:
    """Return what is said of a metric that nothing serves: of its condition, and of the failure as a whole."""
    name, target = str(source["metric"]["name"]), source["target"]
    is_average = target.get("averageValue") is not None
    match kind:
        case "Pods":
            inner = f"unable to get metric {name}: {_NO_CUSTOM}"
            return inner, f"failed to get pods metric value: {inner}"
        case "Object":
            about: Document = source["describedObject"]
            # The arguments of upstream's text are in another order than its words.
            inner = f"unable to get metric {name}: {about['kind']} on {namespace} {about['name']}/{_NO_CUSTOM}"
            whole = f"failed to get {name} object metric: {inner}" if is_average else inner
            return inner, f"failed to get object metric value: {whole}"
        case _:
            selector = _go(source["metric"].get("selector"))
            api = (
                f"unable to fetch metrics from external metrics API: {_NOT_SERVED} (get {name}.external.metrics.k8s.io)"
            )
            inner = f"unable to get external metric {namespace}/{name}/{selector}: {api}"
            whole = f"failed to get {name} external metric: {inner}" if is_average else ""
            whole = whole or f"failed to get external metric {name}: {inner}"
            return inner, f"failed to get {name} external metric value: {whole}"


def _go(selector: Document | None) -> str:
    """Return a LabelSelector as Go prints it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    terms = "".join(map(_go_term, selector.get("matchExpressions") or ()))
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"


def _go_term(term: Any) -> str:
    values = " ".join(term.get("values") or ())
    return f"LabelSelectorRequirement{{Key:{term['key']},Operator:{term['operator']},Values:[{values}],}},"


__all__ = ["Metrics", "Reading"]
