"""The classes of meta/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.meta.v1 import (
    APIResource,
    APIResourceList,
    Condition,
    DeleteOptions,
    FieldSelectorRequirement,
    LabelSelector,
    LabelSelectorRequirement,
    ListMeta,
    ManagedFieldsEntry,
    ObjectMeta,
    OwnerReference,
    Preconditions,
    ShardInfo,
    Status,
    StatusCause,
    StatusDetails,
)

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
