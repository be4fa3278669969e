"""The plugin DefaultStorageClass (plugin/pkg/admission/storage/storageclass/setdefault/admission.go)."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.plugins.default_classes import DefaultClass
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.storage_classes import CLASS_ANNOTATION
from ctrlruntime.apiserver.registry.trees import ensure_spec

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class DefaultStorageClass(Plugin):
    """Gives a new claim that names no class the default one."""

    writes = frozenset({("", "persistentvolumeclaims", "", "CREATE")})

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._default = DefaultClass(registry.store.table("storage.k8s.io", "storageclasses"), _IS_DEFAULT)

    def has_work(self) -> bool:
        return self._default.name is not None

    def admit(self, attributes: AdmissionAttributes) -> None:
        claim = attributes.object or {}
        annotations = claim["metadata"].get("annotations") or {}
        spec = ensure_spec(claim)
        if CLASS_ANNOTATION not in annotations and spec.get("storageClassName") is None:
            spec["storageClassName"] = self._default.name


__all__ = ["DefaultStorageClass"]
