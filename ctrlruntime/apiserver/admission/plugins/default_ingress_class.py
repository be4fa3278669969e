"""The plugin DefaultIngressClass (plugin/pkg/admission/network/defaultingressclass/admission.go)."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.plugins.default_classes import DefaultClass
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.trees import ensure_spec

_GROUP = "networking.k8s.io"


class DefaultIngressClass(Plugin):
    """Gives a new Ingress that names no class the default one."""

    writes = frozenset({(_GROUP, "ingresses", "", "CREATE")})

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        table = registry.store.table(_GROUP, "ingressclasses")
        self._default = DefaultClass(table, ("ingressclass.kubernetes.io/is-default-class",))

    def has_work(self) -> bool:
        return self._default.name is not None

    def admit(self, attributes: AdmissionAttributes) -> None:
        ingress = attributes.object or {}
        annotations = ingress["metadata"].get("annotations") or {}
        spec = ensure_spec(ingress)
        if "kubernetes.io/ingress.class" not in annotations and spec.get("ingressClassName") is None:
            spec["ingressClassName"] = self._default.name


__all__ = ["DefaultIngressClass"]
