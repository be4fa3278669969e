"""The classes of authorization.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.meta.v1 import FieldSelectorRequirement, LabelSelectorRequirement
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object

__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
]


class FieldSelectorAttributes(Model):
    raw_selector: str = ""
    requirements: list[FieldSelectorRequirement] = Field(default_factory=list)


class LabelSelectorAttributes(Model):
    raw_selector: str = ""
    requirements: list[LabelSelectorRequirement] = Field(default_factory=list)


class NonResourceAttributes(Model):
    path: str = ""
    verb: str = ""


class ResourceAttributes(Model):
    field_selector: FieldSelectorAttributes | None = None
    group: str = ""
    label_selector: LabelSelectorAttributes | None = None
    name: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


class SubjectAccessReviewSpec(Model):
    extra: dict[str, list[str]] = Field(default_factory=dict)
    groups: list[str] = Field(default_factory=list)
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None
    uid: str = ""
    user: str = ""


class SubjectAccessReviewStatus(Model, always_sent=("allowed",)):
    allowed: bool = False
    denied: bool = False
    evaluation_error: str = ""
    reason: str = ""


class LocalSubjectAccessReview(Object, group="authorization.k8s.io", version="v1", always_sent=("spec",)):
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class NonResourceRule(Model, always_sent=("verbs",)):
    non_resource_urls: list[str] = Field(
        default_factory=list, validation_alias="nonResourceURLs", serialization_alias="nonResourceURLs"
    )
    verbs: list[str] = Field(default_factory=list)


class ResourceRule(Model, always_sent=("verbs",)):
    api_groups: list[str] = Field(default_factory=list)
    resource_names: list[str] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    verbs: list[str] = Field(default_factory=list)


class SelfSubjectAccessReviewSpec(Model):
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None


class SelfSubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    scope="Cluster",
    always_sent=("spec",),
):
    spec: SelfSubjectAccessReviewSpec = Field(default_factory=SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(Model):
    namespace: str = ""


class SubjectRulesReviewStatus(Model, always_sent=("incomplete", "non_resource_rules", "resource_rules")):
    evaluation_error: str = ""
    incomplete: bool = False
    non_resource_rules: list[NonResourceRule] = Field(default_factory=list)
    resource_rules: list[ResourceRule] = Field(default_factory=list)


class SelfSubjectRulesReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    scope="Cluster",
    always_sent=("spec",),
):
    spec: SelfSubjectRulesReviewSpec = Field(default_factory=SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = Field(default_factory=SubjectRulesReviewStatus)


class SubjectAccessReview(Object, group="authorization.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: SubjectAccessReviewSpec = Field(default_factory=SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = Field(default_factory=SubjectAccessReviewStatus)
