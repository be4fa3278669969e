"""How many replicas a resource metric asks for (kube-controller-manager's pkg/controller/podautoscaler/replica_calculator.go).

Amounts are whole numbers of thousandths. The metrics are those of the moment: a Pod counts as soon as it is ready.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ctrlruntime.apiserver.controllers.objects import condition, is_deleting, metadata, parse_time
from ctrlruntime.apiserver.registry.pod_amounts import amounts_of, requests_of
from ctrlruntime.quantities import units
from ctrlruntime.schema.trees import Document

_INITIALIZATION: Final = timedelta(minutes=2)
"""So long after its start the CPU of a Pod that is not ready is not counted (--horizontal-pod-autoscaler-cpu-initialization-period)."""
_READINESS_DELAY: Final = timedelta(seconds=10)
"""A Pod whose readiness has not changed since this long after its start has never been ready (…-initial-readiness-delay)."""


class MetricError(Exception):
    """No number can be computed; the text says why in upstream's words."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far the usage may be from its target without a change."""

    down: float = 0.1
    up: float = 0.1

    def cover(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Target:
    """What is wanted of each Pod: a share of its requests, or an amount."""

    utilization: int | None = None
    average: int = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """The number of replicas, and what the status shows of the metric."""

    replicas: int
    average: int
    utilization: int | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """The Pods of a target by what their metrics count for."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def groups_of(pods: Iterable[Document], used: Mapping[str, int], resource: str, now: datetime) -> Groups:
    """Sort Pods by what their metrics count for (groupPods)."""
    ready, found = 0, {"unready": set[str](), "missing": set[str](), "ignored": set[str]()}
    for pod in pods:
        name, phase = str(metadata(pod)["name"]), (pod.get("status") or {}).get("phase")
        if is_deleting(pod) or phase == "Failed":
            found["ignored"].add(name)
        elif phase == "Pending":
            found["unready"].add(name)
        elif name not in used:
            found["missing"].add(name)
        elif resource == "cpu" and _is_unready(pod, now):
            found["unready"].add(name)
        else:
            ready += 1
    return Groups(ready, **{kind: frozenset(names) for kind, names in found.items()})


def _is_unready(pod: Document, now: datetime) -> bool:
    ready, started = condition(pod, "Ready"), parse_time((pod.get("status") or {}).get("startTime"))
    if ready is None or started is None:
        return True
    if ready.get("status") != "False":
        return False
    changed = parse_time(ready.get("lastTransitionTime"))
    return started + _INITIALIZATION > now or changed is None or started + _READINESS_DELAY > changed


def propose(
    current: int,
    target: Target,
    tolerances: Tolerances,
    used: Mapping[str, int],
    groups: Groups,
    requests: Mapping[str, int],
) -> Proposal:
    """Return how many replicas bring the usage to its target (GetResourceReplicas, calcPlainMetricReplicas). Raises: MetricError.

    `requests` is asked only for a target of utilization.
    """
    counted = {name: value for name, value in used.items() if name not in groups.ignored | groups.unready}
    if not counted:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    ratio, average, utilization = _ratio(counted, target, requests)

    def proposed(replicas: int) -> Proposal:
        return Proposal(replicas, average, utilization)

    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        return proposed(current if tolerances.cover(ratio) else math.ceil(ratio * groups.ready))
    # Of what is not known the more careful is assumed: all is used when it shrinks, nothing when it grows.
    for name in groups.missing:
        if ratio < 1.0:
            share = None if target.utilization is None else max(100, target.utilization)
            counted[name] = target.average if share is None else requests[name] * share // 100
        elif ratio > 1.0:
            counted[name] = 0
    if grows_with_unready:
        counted.update(dict.fromkeys(groups.unready, 0))
    again, _, _ = _ratio(counted, target, requests)
    turns = (ratio < 1.0 < again) or (again < 1.0 < ratio)
    replicas = math.ceil(again * len(counted))
    if tolerances.cover(again) or turns or (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        replicas = current
    return proposed(replicas)


def _ratio(used: Mapping[str, int], target: Target, requests: Mapping[str, int]) -> tuple[float, int, int | None]:
    """Return usage by target, the average, and for a target of utilization the share in percent. Raises: MetricError."""
    if target.utilization is None:
        average = sum(used.values()) // len(used)
        return average / target.average, average, None
    known = [name for name in used if name in requests]
    wanted, total = sum(requests[name] for name in known), sum(used[name] for name in known)
    if not wanted:
        raise MetricError("no metrics returned matched known pods")
    share = total * 100 // wanted
    return share / target.utilization, total // len(known), share


def requests_for(pods: Sequence[Document], container: str, resource: str) -> dict[str, int]:
    """Return what each Pod, or a container of it, requests (calculateRequests). Raises: MetricError."""
    return {str(metadata(pod)["name"]): _request(pod, container, resource) for pod in pods}


def _request(pod: Document, container: str, resource: str) -> int:
    spec, name = pod["spec"], metadata(pod)["name"]
    if not container and amounts_of(spec, "requests"):
        total = requests_of(spec)
        if resource not in total:
            raise MetricError(f"missing pod-level request for {resource} in Pod {name}")
        return units(total[resource], 1000)
    sidecars = (one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always")
    chosen: list[Any] = [one for one in (*spec["containers"], *sidecars) if container in {"", one["name"]}]
    if not chosen:
        raise MetricError(f"container {container} not found in Pod {name}")
    request = 0
    for one in chosen:
        amounts = amounts_of(one, "requests")
        if resource not in amounts:
            raise MetricError(f"missing request for {resource} in container {one['name']} of Pod {name}")
        request += units(amounts[resource], 1000)
    return request


__all__ = ["Groups", "MetricError", "Proposal", "Target", "Tolerances", "groups_of", "propose", "requests_for"]
