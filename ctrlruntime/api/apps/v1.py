"""The classes of apps/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from typing import Any

from pydantic import Field

from ctrlruntime.api.core.v1 import PersistentVolumeClaim, PodTemplateSpec
from ctrlruntime.api.meta.v1 import LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import IntOrString, Time

__all__ = [
    "ControllerRevision",
    "DaemonSet",
    "DaemonSetCondition",
    "DaemonSetSpec",
    "DaemonSetStatus",
    "DaemonSetUpdateStrategy",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "DeploymentStatus",
    "DeploymentStrategy",
    "ReplicaSet",
    "ReplicaSetCondition",
    "ReplicaSetSpec",
    "ReplicaSetStatus",
    "RollingUpdateDaemonSet",
    "RollingUpdateDeployment",
    "RollingUpdateStatefulSetStrategy",
    "StatefulSet",
    "StatefulSetCondition",
    "StatefulSetOrdinals",
    "StatefulSetPersistentVolumeClaimRetentionPolicy",
    "StatefulSetSpec",
    "StatefulSetStatus",
    "StatefulSetUpdateStrategy",
]


class ControllerRevision(Object, group="apps", version="v1", always_sent=("revision",)):
    data: dict[str, Any] | None = None
    revision: int = 0


class RollingUpdateDaemonSet(Model):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DaemonSetUpdateStrategy(Model):
    rolling_update: RollingUpdateDaemonSet | None = None
    type: str = ""


class DaemonSetSpec(Model, always_sent=("template",)):
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    update_strategy: DaemonSetUpdateStrategy = Field(default_factory=DaemonSetUpdateStrategy)


class DaemonSetCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DaemonSetStatus(
    Model,
    always_sent=("current_number_scheduled", "desired_number_scheduled", "number_misscheduled", "number_ready"),
):
    collision_count: int | None = None
    conditions: list[DaemonSetCondition] = Field(default_factory=list)
    current_number_scheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_unavailable: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Object, group="apps", version="v1", short_names=("ds",), categories=("all",)):
    spec: DaemonSetSpec = Field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = Field(default_factory=DaemonSetStatus)


class RollingUpdateDeployment(Model):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class DeploymentStrategy(Model):
    rolling_update: RollingUpdateDeployment | None = None
    type: str = ""


class DeploymentSpec(Model, always_sent=("template",)):
    min_ready_seconds: int = 0
    paused: bool = False
    progress_deadline_seconds: int | None = None
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    strategy: DeploymentStrategy = Field(default_factory=DeploymentStrategy)
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)


class DeploymentCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class DeploymentStatus(Model):
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[DeploymentCondition] = Field(default_factory=list)
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None
    unavailable_replicas: int = 0
    updated_replicas: int = 0


class Deployment(Object, group="apps", version="v1", short_names=("deploy",), categories=("all",)):
    spec: DeploymentSpec = Field(default_factory=DeploymentSpec)
    status: DeploymentStatus = Field(default_factory=DeploymentStatus)


class ReplicaSetSpec(Model):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)


class ReplicaSetCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ReplicaSetStatus(Model, always_sent=("replicas",)):
    available_replicas: int = 0
    conditions: list[ReplicaSetCondition] = Field(default_factory=list)
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    terminating_replicas: int | None = None


class ReplicaSet(Object, group="apps", version="v1", short_names=("rs",), categories=("all",)):
    spec: ReplicaSetSpec = Field(default_factory=ReplicaSetSpec)
    status: ReplicaSetStatus = Field(default_factory=ReplicaSetStatus)


class RollingUpdateStatefulSetStrategy(Model):
    max_unavailable: IntOrString | None = None
    partition: int | None = None


class StatefulSetOrdinals(Model, always_sent=("start",)):
    start: int = 0


class StatefulSetPersistentVolumeClaimRetentionPolicy(Model):
    when_deleted: str = ""
    when_scaled: str = ""


class StatefulSetUpdateStrategy(Model):
    rolling_update: RollingUpdateStatefulSetStrategy | None = None
    type: str = ""


class StatefulSetSpec(Model, always_sent=("service_name", "template")):
    min_ready_seconds: int = 0
    ordinals: StatefulSetOrdinals | None = None
    persistent_volume_claim_retention_policy: StatefulSetPersistentVolumeClaimRetentionPolicy | None = None
    pod_management_policy: str = ""
    replicas: int | None = None
    revision_history_limit: int | None = None
    selector: LabelSelector | None = None
    service_name: str = ""
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    update_strategy: StatefulSetUpdateStrategy = Field(default_factory=StatefulSetUpdateStrategy)
    volume_claim_templates: list[PersistentVolumeClaim] = Field(default_factory=list)


class StatefulSetCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class StatefulSetStatus(Model, always_sent=("available_replicas", "replicas")):
    available_replicas: int = 0
    collision_count: int | None = None
    conditions: list[StatefulSetCondition] = Field(default_factory=list)
    current_replicas: int = 0
    current_revision: str = ""
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0
    update_revision: str = ""
    updated_replicas: int = 0


class StatefulSet(Object, group="apps", version="v1", short_names=("sts",), categories=("all",)):
    spec: StatefulSetSpec = Field(default_factory=StatefulSetSpec)
    status: StatefulSetStatus = Field(default_factory=StatefulSetStatus)
