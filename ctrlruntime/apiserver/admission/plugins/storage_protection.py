"""The plugin StorageObjectInUseProtection (plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go).

`controllers.claims` takes the finalizers off when nothing uses the object.
"""

from __future__ import annotations

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.schema.trees import Document

_FINALIZERS = {
    ("", "persistentvolumeclaims"): "kubernetes.io/pvc-protection",
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class StorageObjectInUseProtection(Plugin):
    """Puts a finalizer on new storage objects, which holds them while they are in use."""

    writes = frozenset((group, plural, "", "CREATE") for group, plural in _FINALIZERS)

    def admit(self, attributes: AdmissionAttributes) -> None:
        resource: Resource = attributes.resource
        metadata: Document = (attributes.object or {})["metadata"]
        finalizers: list[str] = metadata.get("finalizers") or []
        finalizer = _FINALIZERS[resource.stored_as]
        if finalizer not in finalizers:
            metadata["finalizers"] = [*finalizers, finalizer]


__all__ = ["StorageObjectInUseProtection"]
