"""The plugin PersistentVolumeClaimResize (plugin/pkg/admission/storage/persistentvolume/resize/admission.go)."""

from __future__ import annotations

from decimal import Decimal

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.pod_amounts import amounts_of
from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of


class PersistentVolumeClaimResize(Plugin):
    """Refuses a claim that grows where its class does not allow that."""

    writes = frozenset({("", "persistentvolumeclaims", "", "UPDATE")})

    def check(self, attributes: AdmissionAttributes) -> None:
        claim, old = attributes.object or {}, attributes.old or {}
        if _size(claim) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise forbidden(attributes, "Only bound persistent volume claims can be expanded")
        if not self._may_grow(class_of(claim), class_of(old)):
            raise forbidden(
                attributes,
                "only dynamically provisioned pvc can be resized and "
                "the storageclass that provisions the pvc must support resize",
            )

    def _may_grow(self, name: str, before: str) -> bool:
        found = self._registry.get("storage.k8s.io", "storageclasses", "", name) if name == before else None
        return bool((found or {}).get("allowVolumeExpansion"))


def _size(claim: Document) -> Decimal:
    return parse(amounts_of(spec_of(claim), "requests").get("storage", "0"))


__all__ = ["PersistentVolumeClaimResize"]
