"""The classes of autoscaling/v2. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.meta.v1 import LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Quantity, Time

__all__ = [
    "ContainerResourceMetricSource",
    "ContainerResourceMetricStatus",
    "CrossVersionObjectReference",
    "ExternalMetricSource",
    "ExternalMetricStatus",
    "HPAScalingPolicy",
    "HPAScalingRules",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerBehavior",
    "HorizontalPodAutoscalerCondition",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "MetricIdentifier",
    "MetricSpec",
    "MetricStatus",
    "MetricTarget",
    "MetricValueStatus",
    "ObjectMetricSource",
    "ObjectMetricStatus",
    "PodsMetricSource",
    "PodsMetricStatus",
    "ResourceMetricSource",
    "ResourceMetricStatus",
]


class MetricTarget(Model, always_sent=("type",)):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    type: str = ""
    value: Quantity | None = None


class ContainerResourceMetricSource(Model, always_sent=("container", "name", "target")):
    container: str = ""
    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)


class MetricValueStatus(Model):
    average_utilization: int | None = None
    average_value: Quantity | None = None
    value: Quantity | None = None


class ContainerResourceMetricStatus(Model, always_sent=("container", "current", "name")):
    container: str = ""
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    name: str = ""


class CrossVersionObjectReference(Model, always_sent=("kind", "name")):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class MetricIdentifier(Model, always_sent=("name",)):
    name: str = ""
    selector: LabelSelector | None = None


class ExternalMetricSource(Model, always_sent=("metric", "target")):
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class ExternalMetricStatus(Model, always_sent=("current", "metric")):
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)


class HPAScalingPolicy(Model, always_sent=("period_seconds", "type", "value")):
    period_seconds: int = 0
    type: str = ""
    value: int = 0


class HPAScalingRules(Model):
    policies: list[HPAScalingPolicy] = Field(default_factory=list)
    select_policy: str | None = None
    stabilization_window_seconds: int | None = None
    tolerance: Quantity | None = None


class HorizontalPodAutoscalerBehavior(Model):
    scale_down: HPAScalingRules | None = None
    scale_up: HPAScalingRules | None = None


class ObjectMetricSource(Model, always_sent=("described_object", "metric", "target")):
    described_object: CrossVersionObjectReference = Field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class PodsMetricSource(Model, always_sent=("metric", "target")):
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)
    target: MetricTarget = Field(default_factory=MetricTarget)


class ResourceMetricSource(Model, always_sent=("name", "target")):
    name: str = ""
    target: MetricTarget = Field(default_factory=MetricTarget)


class MetricSpec(Model, always_sent=("type",)):
    container_resource: ContainerResourceMetricSource | None = None
    external: ExternalMetricSource | None = None
    object: ObjectMetricSource | None = None
    pods: PodsMetricSource | None = None
    resource: ResourceMetricSource | None = None
    type: str = ""


class HorizontalPodAutoscalerSpec(Model, always_sent=("max_replicas", "scale_target_ref")):
    behavior: HorizontalPodAutoscalerBehavior | None = None
    max_replicas: int = 0
    metrics: list[MetricSpec] = Field(default_factory=list)
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = Field(default_factory=CrossVersionObjectReference)


class HorizontalPodAutoscalerCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ObjectMetricStatus(Model, always_sent=("current", "described_object", "metric")):
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    described_object: CrossVersionObjectReference = Field(default_factory=CrossVersionObjectReference)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)


class PodsMetricStatus(Model, always_sent=("current", "metric")):
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    metric: MetricIdentifier = Field(default_factory=MetricIdentifier)


class ResourceMetricStatus(Model, always_sent=("current", "name")):
    current: MetricValueStatus = Field(default_factory=MetricValueStatus)
    name: str = ""


class MetricStatus(Model, always_sent=("type",)):
    container_resource: ContainerResourceMetricStatus | None = None
    external: ExternalMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    resource: ResourceMetricStatus | None = None
    type: str = ""


class HorizontalPodAutoscalerStatus(Model, always_sent=("desired_replicas",)):
    conditions: list[HorizontalPodAutoscalerCondition] = Field(default_factory=list)
    current_metrics: list[MetricStatus] = Field(default_factory=list)
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: Time | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(Object, group="autoscaling", version="v2", short_names=("hpa",), categories=("all",)):
    spec: HorizontalPodAutoscalerSpec = Field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = Field(default_factory=HorizontalPodAutoscalerStatus)
