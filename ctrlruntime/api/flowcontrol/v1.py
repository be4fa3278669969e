"""The classes of flowcontrol.apiserver.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "ExemptPriorityLevelConfiguration",
    "FlowDistinguisherMethod",
    "FlowSchema",
    "FlowSchemaCondition",
    "FlowSchemaSpec",
    "FlowSchemaStatus",
    "GroupSubject",
    "LimitResponse",
    "LimitedPriorityLevelConfiguration",
    "NonResourcePolicyRule",
    "PolicyRulesWithSubjects",
    "PriorityLevelConfiguration",
    "PriorityLevelConfigurationCondition",
    "PriorityLevelConfigurationReference",
    "PriorityLevelConfigurationSpec",
    "PriorityLevelConfigurationStatus",
    "QueuingConfiguration",
    "ResourcePolicyRule",
    "ServiceAccountSubject",
    "Subject",
    "UserSubject",
]


class ExemptPriorityLevelConfiguration(Model):
    lendable_percent: int | None = None
    nominal_concurrency_shares: int | None = None


class FlowDistinguisherMethod(Model, always_sent=("type",)):
    type: str = ""


class NonResourcePolicyRule(Model, always_sent=("non_resource_urls", "verbs")):
    non_resource_urls: list[str] = Field(
        default_factory=list, validation_alias="nonResourceURLs", serialization_alias="nonResourceURLs"
    )
    verbs: list[str] = Field(default_factory=list)


class ResourcePolicyRule(Model, always_sent=("api_groups", "resources", "verbs")):
    api_groups: list[str] = Field(default_factory=list)
    cluster_scope: bool = False
    namespaces: list[str] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    verbs: list[str] = Field(default_factory=list)


class GroupSubject(Model, always_sent=("name",)):
    name: str = ""


class ServiceAccountSubject(Model, always_sent=("name", "namespace")):
    name: str = ""
    namespace: str = ""


class UserSubject(Model, always_sent=("name",)):
    name: str = ""


class Subject(Model, always_sent=("kind",)):
    kind: str = ""
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None
    user: UserSubject | None = None


class PolicyRulesWithSubjects(Model, always_sent=("subjects",)):
    non_resource_rules: list[NonResourcePolicyRule] = Field(default_factory=list)
    resource_rules: list[ResourcePolicyRule] = Field(default_factory=list)
    subjects: list[Subject] = Field(default_factory=list)


class PriorityLevelConfigurationReference(Model, always_sent=("name",)):
    name: str = ""


class FlowSchemaSpec(Model, always_sent=("matching_precedence", "priority_level_configuration")):
    distinguisher_method: FlowDistinguisherMethod | None = None
    matching_precedence: int = 0
    priority_level_configuration: PriorityLevelConfigurationReference = Field(
        default_factory=PriorityLevelConfigurationReference
    )
    rules: list[PolicyRulesWithSubjects] = Field(default_factory=list)


class FlowSchemaCondition(Model):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class FlowSchemaStatus(Model):
    conditions: list[FlowSchemaCondition] = Field(default_factory=list)


class FlowSchema(Object, group="flowcontrol.apiserver.k8s.io", version="v1", scope="Cluster"):
    spec: FlowSchemaSpec = Field(default_factory=FlowSchemaSpec)
    status: FlowSchemaStatus = Field(default_factory=FlowSchemaStatus)


class QueuingConfiguration(Model, always_sent=("hand_size", "queue_length_limit", "queues")):
    hand_size: int = 0
    queue_length_limit: int = 0
    queues: int = 0


class LimitResponse(Model, always_sent=("type",)):
    queuing: QueuingConfiguration | None = None
    type: str = ""


class LimitedPriorityLevelConfiguration(Model):
    borrowing_limit_percent: int | None = None
    lendable_percent: int | None = None
    limit_response: LimitResponse = Field(default_factory=LimitResponse)
    nominal_concurrency_shares: int | None = None


class PriorityLevelConfigurationSpec(Model, always_sent=("type",)):
    exempt: ExemptPriorityLevelConfiguration | None = None
    limited: LimitedPriorityLevelConfiguration | None = None
    type: str = ""


class PriorityLevelConfigurationCondition(Model):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class PriorityLevelConfigurationStatus(Model):
    conditions: list[PriorityLevelConfigurationCondition] = Field(default_factory=list)


class PriorityLevelConfiguration(Object, group="flowcontrol.apiserver.k8s.io", version="v1", scope="Cluster"):
    spec: PriorityLevelConfigurationSpec = Field(default_factory=PriorityLevelConfigurationSpec)
    status: PriorityLevelConfigurationStatus = Field(default_factory=PriorityLevelConfigurationStatus)
