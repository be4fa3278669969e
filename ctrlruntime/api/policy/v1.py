"""The classes of policy/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.meta.v1 import Condition, DeleteOptions, LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import IntOrString, Time

__all__ = [
    "Eviction",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
]


class Eviction(Object, group="policy", version="v1"):
    delete_options: DeleteOptions | None = None


class PodDisruptionBudgetSpec(Model):
    max_unavailable: IntOrString | None = None
    min_available: IntOrString | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(
    Model,
    always_sent=("current_healthy", "desired_healthy", "disruptions_allowed", "expected_pods"),
):
    conditions: list[Condition] = Field(default_factory=list)
    current_healthy: int = 0
    desired_healthy: int = 0
    disrupted_pods: dict[str, Time] = Field(default_factory=dict)
    disruptions_allowed: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Object, group="policy", version="v1", short_names=("pdb",)):
    spec: PodDisruptionBudgetSpec = Field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = Field(default_factory=PodDisruptionBudgetStatus)
