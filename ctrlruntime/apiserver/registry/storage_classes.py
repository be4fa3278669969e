"""The storage class of a claim or a volume (GetPersistentVolumeClaimClass in pkg/apis/core/helper/helpers.go)."""

from __future__ import annotations

from typing import Final

from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"


def class_of(obj: Document) -> str:
    """Return the name of the class of a claim or a volume; empty without one."""
    annotations: Document = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_ANNOTATION, spec_of(obj).get("storageClassName") or ""))


__all__ = ["CLASS_ANNOTATION", "class_of"]
