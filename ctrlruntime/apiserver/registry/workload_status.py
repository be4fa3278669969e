"""Validation of the status of what makes Pods, and of budgets: one table (pkg/apis/apps, core and policy, their validation)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ctrlruntime.apiserver.registry.condition_validation import common_conditions_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import not_negative

_Rule: TypeAlias = Callable[[Document, Document | None], Iterator[StatusCause]]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of a status: none is negative, in this order."""

    names: Sequence[str]
    parts: Sequence[str] = ()
    """What cannot be more than `replicas`."""
    ready: str = "readyReplicas"
    """How the message calls what the available ones cannot be more than."""
    has_conditions: bool = False
    """It has conditions of the common form, which are looked at."""


def status_rule(kind: str) -> _Rule:
    """Return the rule for the status of a kind."""
    numbers = _NUMBERS[kind]

    def rule(document: Document, old: Document | None) -> Iterator[StatusCause]:
        status: Document = document.get("status") or {}
        if numbers.has_conditions:
            yield from common_conditions_causes(status.get("conditions") or (), "status.conditions")
        yield from not_negative(status, "status", *numbers.names)
        for part in numbers.parts:
            yield from _within(status, "replicas", part, "status.replicas")
        if numbers.parts:
            yield from _within(status, "readyReplicas", "availableReplicas", numbers.ready)
        count = status.get("collisionCount")
        before = ((old or {}).get("status") or {}).get("collisionCount")
        if "collisionCount" in numbers.names and before is not None and (count or 0) < before:
            yield invalid_value("status.collisionCount", count or 0, "cannot be decremented")

    return rule


def _within(status: Document, whole: str, part: str, shown: str) -> Iterator[StatusCause]:
    if status.get(part, 0) > status.get(whole, 0):
        yield invalid_value(f"status.{part}", status.get(part, 0), f"cannot be greater than {shown}")


_PARTS: Final = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_OF_SETS: Final = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_OF_DEPLOYMENTS: Final = ("updatedReplicas", "readyReplicas", "availableReplicas")
_NUMBERS: Final[Mapping[str, _Numbers]] = {
    "ReplicationController": _Numbers(("replicas", *_PARTS, "observedGeneration"), _PARTS),
    "ReplicaSet": _Numbers(("replicas", *_PARTS, "observedGeneration", "terminatingReplicas"), _PARTS),
    "StatefulSet": _Numbers(
        ("replicas", *_OF_SETS, "observedGeneration", "collisionCount"), _OF_SETS, "status.readyReplicas"
    ),
    "DaemonSet": _Numbers(
        (
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        )
    ),
    "Deployment": _Numbers(
        (
            "observedGeneration",
            "replicas",
            *_OF_DEPLOYMENTS,
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ),
        _OF_DEPLOYMENTS,
    ),
    "PodDisruptionBudget": _Numbers(
        ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), has_conditions=True
    ),
}


__all__ = ["status_rule"]
