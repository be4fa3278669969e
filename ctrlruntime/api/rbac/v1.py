"""The classes of rbac.authorization.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.meta.v1 import LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object

__all__ = [
    "AggregationRule",
    "ClusterRole",
    "ClusterRoleBinding",
    "PolicyRule",
    "Role",
    "RoleBinding",
    "RoleRef",
    "Subject",
]


class AggregationRule(Model):
    cluster_role_selectors: list[LabelSelector] = Field(default_factory=list)


class PolicyRule(Model, always_sent=("verbs",)):
    api_groups: list[str] = Field(default_factory=list)
    non_resource_urls: list[str] = Field(
        default_factory=list, validation_alias="nonResourceURLs", serialization_alias="nonResourceURLs"
    )
    resource_names: list[str] = Field(default_factory=list)
    resources: list[str] = Field(default_factory=list)
    verbs: list[str] = Field(default_factory=list)


class ClusterRole(Object, group="rbac.authorization.k8s.io", version="v1", scope="Cluster"):
    aggregation_rule: AggregationRule | None = None
    rules: list[PolicyRule] = Field(default_factory=list)


class RoleRef(Model, always_sent=("api_group", "kind", "name")):
    kind: str = ""
    api_group: str = ""
    name: str = ""


class Subject(Model, always_sent=("kind", "name")):
    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class ClusterRoleBinding(
    Object,
    group="rbac.authorization.k8s.io",
    version="v1",
    scope="Cluster",
    always_sent=("role_ref",),
):
    role_ref: RoleRef = Field(default_factory=RoleRef)
    subjects: list[Subject] = Field(default_factory=list)


class Role(Object, group="rbac.authorization.k8s.io", version="v1"):
    rules: list[PolicyRule] = Field(default_factory=list)


class RoleBinding(Object, group="rbac.authorization.k8s.io", version="v1", always_sent=("role_ref",)):
    role_ref: RoleRef = Field(default_factory=RoleRef)
    subjects: list[Subject] = Field(default_factory=list)
