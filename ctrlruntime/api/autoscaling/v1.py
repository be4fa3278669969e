"""The classes of autoscaling/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "CrossVersionObjectReference",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "Scale",
    "ScaleSpec",
    "ScaleStatus",
]


class CrossVersionObjectReference(Model, always_sent=("kind", "name")):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(Model, always_sent=("max_replicas", "scale_target_ref")):
    max_replicas: int = 0
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = Field(default_factory=CrossVersionObjectReference)
    target_cpu_utilization_percentage: int | None = Field(
        default=None,
        validation_alias="targetCPUUtilizationPercentage",
        serialization_alias="targetCPUUtilizationPercentage",
    )


class HorizontalPodAutoscalerStatus(Model, always_sent=("current_replicas", "desired_replicas")):
    current_cpu_utilization_percentage: int | None = Field(
        default=None,
        validation_alias="currentCPUUtilizationPercentage",
        serialization_alias="currentCPUUtilizationPercentage",
    )
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Time | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(Object, group="autoscaling", version="v1", short_names=("hpa",), categories=("all",)):
    spec: HorizontalPodAutoscalerSpec = Field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = Field(default_factory=HorizontalPodAutoscalerStatus)


class ScaleSpec(Model):
    replicas: int = 0


class ScaleStatus(Model, always_sent=("replicas",)):
    replicas: int = 0
    selector: str = ""


class Scale(Object, group="autoscaling", version="v1"):
    spec: ScaleSpec = Field(default_factory=ScaleSpec)
    status: ScaleStatus = Field(default_factory=ScaleStatus)
