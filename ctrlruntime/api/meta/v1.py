"""The classes of meta/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from typing import Any

from pydantic import AliasChoices, Field

from ctrlruntime.api.model import Model
from ctrlruntime.field import Time

__all__ = [
    "APIResource",
    "APIResourceList",
    "Condition",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "Preconditions",
    "ShardInfo",
    "Status",
    "StatusCause",
    "StatusDetails",
]


class APIResource(Model, always_sent=("kind", "name", "namespaced", "singular_name", "verbs")):
    kind: str = ""
    categories: list[str] = Field(default_factory=list)
    group: str = ""
    name: str = ""
    namespaced: bool = False
    short_names: list[str] = Field(default_factory=list)
    singular_name: str = ""
    storage_version_hash: str = ""
    verbs: list[str] = Field(default_factory=list)
    version: str = ""


class APIResourceList(Model, always_sent=("group_version", "resources")):
    api_version: str = ""
    kind: str = ""
    group_version: str = ""
    resources: list[APIResource] = Field(default_factory=list)


class Condition(Model, always_sent=("message", "reason", "status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str = ""
    type: str = ""


class Preconditions(Model):
    resource_version: str | None = None
    uid: str | None = None


class DeleteOptions(Model):
    api_version: str = ""
    kind: str = ""
    dry_run: list[str] = Field(default_factory=list)
    grace_period_seconds: int | None = None
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None


class FieldSelectorRequirement(Model, always_sent=("key", "operator")):
    key: str = ""
    operator: str = ""
    values: list[str] = Field(default_factory=list)


class LabelSelectorRequirement(Model, always_sent=("key", "operator")):
    key: str = ""
    operator: str = ""
    values: list[str] = Field(default_factory=list)


class LabelSelector(Model):
    match_expressions: list[LabelSelectorRequirement] = Field(default_factory=list)
    match_labels: dict[str, str] = Field(default_factory=dict)


class ShardInfo(Model, always_sent=("selector",)):
    selector: str = ""


class ListMeta(Model):
    continue_: str = Field(
        default="", validation_alias=AliasChoices("continue", "_continue"), serialization_alias="continue"
    )
    remaining_item_count: int | None = None
    resource_version: str = ""
    self_link: str = ""
    shard_info: ShardInfo | None = None


class ManagedFieldsEntry(Model):
    api_version: str = ""
    fields_type: str = ""
    fields_v1: dict[str, Any] | None = None
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: Time | None = None


class OwnerReference(Model, always_sent=("api_version", "kind", "name", "uid")):
    api_version: str = ""
    kind: str = ""
    block_owner_deletion: bool | None = None
    controller: bool | None = None
    name: str = ""
    uid: str = ""


class ObjectMeta(Model):
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    deletion_timestamp: Time | None = None
    finalizers: list[str] = Field(default_factory=list)
    generate_name: str = ""
    generation: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    managed_fields: list[ManagedFieldsEntry] = Field(default_factory=list)
    name: str = ""
    namespace: str = ""
    owner_references: list[OwnerReference] = Field(default_factory=list)
    resource_version: str = ""
    self_link: str = ""
    uid: str = ""


class StatusCause(Model):
    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Model):
    kind: str = ""
    causes: list[StatusCause] = Field(default_factory=list)
    group: str = ""
    name: str = ""
    retry_after_seconds: int = 0
    uid: str = ""


class Status(Model):
    api_version: str = ""
    kind: str = ""
    code: int = 0
    details: StatusDetails | None = None
    message: str = ""
    metadata: ListMeta = Field(default_factory=ListMeta)
    reason: str = ""
    status: str = ""
