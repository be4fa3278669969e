"""The classes of batch/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.core.v1 import ObjectReference, PodTemplateSpec
from ctrlruntime.api.meta.v1 import LabelSelector, ObjectMeta
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "CronJob",
    "CronJobSpec",
    "CronJobStatus",
    "Job",
    "JobCondition",
    "JobSpec",
    "JobStatus",
    "JobTemplateSpec",
    "PodFailurePolicy",
    "PodFailurePolicyOnExitCodesRequirement",
    "PodFailurePolicyOnPodConditionsPattern",
    "PodFailurePolicyRule",
    "SuccessPolicy",
    "SuccessPolicyRule",
    "UncountedTerminatedPods",
]


class PodFailurePolicyOnExitCodesRequirement(Model, always_sent=("operator", "values")):
    container_name: str | None = None
    operator: str = ""
    values: list[int] = Field(default_factory=list)


class PodFailurePolicyOnPodConditionsPattern(Model, always_sent=("status", "type")):
    status: str = ""
    type: str = ""


class PodFailurePolicyRule(Model, always_sent=("action",)):
    action: str = ""
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] = Field(default_factory=list)


class PodFailurePolicy(Model, always_sent=("rules",)):
    rules: list[PodFailurePolicyRule] = Field(default_factory=list)


class SuccessPolicyRule(Model):
    succeeded_count: int | None = None
    succeeded_indexes: str | None = None


class SuccessPolicy(Model, always_sent=("rules",)):
    rules: list[SuccessPolicyRule] = Field(default_factory=list)


class JobSpec(Model, always_sent=("template",)):
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    completion_mode: str | None = None
    completions: int | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    max_failed_indexes: int | None = None
    parallelism: int | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    pod_replacement_policy: str | None = None
    selector: LabelSelector | None = None
    success_policy: SuccessPolicy | None = None
    suspend: bool | None = None
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)
    ttl_seconds_after_finished: int | None = None


class JobTemplateSpec(Model):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSpec = Field(default_factory=JobSpec)


class CronJobSpec(Model, always_sent=("job_template", "schedule")):
    concurrency_policy: str = ""
    failed_jobs_history_limit: int | None = None
    job_template: JobTemplateSpec = Field(default_factory=JobTemplateSpec)
    schedule: str = ""
    starting_deadline_seconds: int | None = None
    successful_jobs_history_limit: int | None = None
    suspend: bool | None = None
    time_zone: str | None = None


class CronJobStatus(Model):
    active: list[ObjectReference] = Field(default_factory=list)
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Object, group="batch", version="v1", short_names=("cj",), categories=("all",)):
    spec: CronJobSpec = Field(default_factory=CronJobSpec)
    status: CronJobStatus = Field(default_factory=CronJobStatus)


class JobCondition(Model, always_sent=("status", "type")):
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class UncountedTerminatedPods(Model):
    failed: list[str] = Field(default_factory=list)
    succeeded: list[str] = Field(default_factory=list)


class JobStatus(Model):
    active: int = 0
    completed_indexes: str = ""
    completion_time: Time | None = None
    conditions: list[JobCondition] = Field(default_factory=list)
    failed: int = 0
    failed_indexes: str | None = None
    ready: int | None = None
    start_time: Time | None = None
    succeeded: int = 0
    terminating: int | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Object, group="batch", version="v1", categories=("all",)):
    spec: JobSpec = Field(default_factory=JobSpec)
    status: JobStatus = Field(default_factory=JobStatus)
