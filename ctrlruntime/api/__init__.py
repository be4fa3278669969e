"""API objects: the base classes, and the built-in kinds by group (`from ctrlruntime.api import apps, core, meta`).

The package of a group has its preferred version, and is loaded when it is imported.
"""

from __future__ import annotations

from ctrlruntime.api.kind import GroupVersionKind, GroupVersionResource, KindInfo, ScalePaths, Scope
from ctrlruntime.api.metadata import Metadata, NamespacedName, ObjectKey, OwnerRecord
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, ObjectList, PartialObjectMetadata, Unstructured, gvk_for, kind_of, object_key

__all__ = [
    "GroupVersionKind",
    "GroupVersionResource",
    "KindInfo",
    "Metadata",
    "Model",
    "NamespacedName",
    "Object",
    "ObjectKey",
    "ObjectList",
    "OwnerRecord",
    "PartialObjectMetadata",
    "ScalePaths",
    "Scope",
    "Unstructured",
    "gvk_for",
    "kind_of",
    "object_key",
]
