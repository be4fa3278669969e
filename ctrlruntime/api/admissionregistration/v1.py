"""The classes of admissionregistration.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.meta.v1 import Condition, LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object

__all__ = [
    "ApplyConfiguration",
    "AuditAnnotation",
    "ExpressionWarning",
    "JSONPatch",
    "MatchCondition",
    "MatchResources",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicySpec",
    "MutatingWebhook",
    "MutatingWebhookConfiguration",
    "Mutation",
    "NamedRuleWithOperations",
    "ParamKind",
    "ParamRef",
    "RuleWithOperations",
    "ServiceReference",
    "TypeChecking",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBindingSpec",
    "ValidatingAdmissionPolicySpec",
    "ValidatingAdmissionPolicyStatus",
    "ValidatingWebhook",
    "ValidatingWebhookConfiguration",
    "Validation",
    "Variable",
    "WebhookClientConfig",
]


class ApplyConfiguration(Model):
    expression: str = ""


class AuditAnnotation(Model, always_sent=("key", "value_expression")):
    key: str = ""
    value_expression: str = ""


class ExpressionWarning(Model, always_sent=("field_ref", "warning")):
    field_ref: str = ""
    warning: str = ""


class JSONPatch(Model):
    expression: str = ""


class MatchCondition(Model, always_sent=("expression", "name")):
    expression: str = ""
    name: str = ""


class NamedRuleWithOperations(Model):
    api_groups: list[str] = Field(default_factory=list)
    api_versions: list[str] = Field(default_factory=list)
    operations: list[str] = Field(default_factory=list)
    resource_names: list[str] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    scope: str | None = None


class MatchResources(Model):
    exclude_resource_rules: list[NamedRuleWithOperations] = Field(default_factory=list)
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRuleWithOperations] = Field(default_factory=list)


class Mutation(Model, always_sent=("patch_type",)):
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None
    patch_type: str = ""


class ParamKind(Model):
    api_version: str = ""
    kind: str = ""


class Variable(Model, always_sent=("expression", "name")):
    expression: str = ""
    name: str = ""


class MutatingAdmissionPolicySpec(Model):
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = Field(default_factory=list)
    match_constraints: MatchResources | None = None
    mutations: list[Mutation] = Field(default_factory=list)
    param_kind: ParamKind | None = None
    reinvocation_policy: str = ""
    variables: list[Variable] = Field(default_factory=list)


class MutatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    spec: MutatingAdmissionPolicySpec = Field(default_factory=MutatingAdmissionPolicySpec)


class ParamRef(Model):
    name: str = ""
    namespace: str = ""
    parameter_not_found_action: str | None = None
    selector: LabelSelector | None = None


class MutatingAdmissionPolicyBindingSpec(Model):
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str = ""


class MutatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    spec: MutatingAdmissionPolicyBindingSpec = Field(default_factory=MutatingAdmissionPolicyBindingSpec)


class RuleWithOperations(Model):
    api_groups: list[str] = Field(default_factory=list)
    api_versions: list[str] = Field(default_factory=list)
    operations: list[str] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    scope: str | None = None


class ServiceReference(Model, always_sent=("name", "namespace")):
    name: str = ""
    namespace: str = ""
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model):
    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str | None = None


class MutatingWebhook(Model, always_sent=("admission_review_versions", "client_config", "name")):
    admission_review_versions: list[str] = Field(default_factory=list)
    client_config: WebhookClientConfig = Field(default_factory=WebhookClientConfig)
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = Field(default_factory=list)
    match_policy: str | None = None
    name: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    reinvocation_policy: str | None = None
    rules: list[RuleWithOperations] = Field(default_factory=list)
    side_effects: str | None = None
    timeout_seconds: int | None = None


class MutatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    webhooks: list[MutatingWebhook] = Field(default_factory=list)


class TypeChecking(Model):
    expression_warnings: list[ExpressionWarning] = Field(default_factory=list)


class Validation(Model, always_sent=("expression",)):
    expression: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class ValidatingAdmissionPolicySpec(Model):
    audit_annotations: list[AuditAnnotation] = Field(default_factory=list)
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = Field(default_factory=list)
    match_constraints: MatchResources | None = None
    param_kind: ParamKind | None = None
    validations: list[Validation] = Field(default_factory=list)
    variables: list[Variable] = Field(default_factory=list)


class ValidatingAdmissionPolicyStatus(Model):
    conditions: list[Condition] = Field(default_factory=list)
    observed_generation: int = 0
    type_checking: TypeChecking | None = None


class ValidatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    spec: ValidatingAdmissionPolicySpec = Field(default_factory=ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = Field(default_factory=ValidatingAdmissionPolicyStatus)


class ValidatingAdmissionPolicyBindingSpec(Model):
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str = ""
    validation_actions: list[str] = Field(default_factory=list)


class ValidatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    spec: ValidatingAdmissionPolicyBindingSpec = Field(default_factory=ValidatingAdmissionPolicyBindingSpec)


class ValidatingWebhook(Model, always_sent=("admission_review_versions", "client_config", "name")):
    admission_review_versions: list[str] = Field(default_factory=list)
    client_config: WebhookClientConfig = Field(default_factory=WebhookClientConfig)
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = Field(default_factory=list)
    match_policy: str | None = None
    name: str = ""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    rules: list[RuleWithOperations] = Field(default_factory=list)
    side_effects: str | None = None
    timeout_seconds: int | None = None


class ValidatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    scope="Cluster",
    categories=("api-extensions",),
):
    webhooks: list[ValidatingWebhook] = Field(default_factory=list)
