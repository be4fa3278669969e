"""The admission plugins that kube-apiserver has built in."""

from __future__ import annotations

from ctrlruntime.apiserver.admission.plugins.certificates import (
    CertificateApproval,
    CertificateSigning,
    CertificateSubjectRestriction,
)
from ctrlruntime.apiserver.admission.plugins.claim_resize import PersistentVolumeClaimResize
from ctrlruntime.apiserver.admission.plugins.default_ingress_class import DefaultIngressClass
from ctrlruntime.apiserver.admission.plugins.default_storage_class import DefaultStorageClass
from ctrlruntime.apiserver.admission.plugins.limit_ranger import LimitRanger
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.admission.plugins.pod_resize import NodeDeclaredFeatureValidator, PodResizeValidator
from ctrlruntime.apiserver.admission.plugins.pod_security import PodSecurity
from ctrlruntime.apiserver.admission.plugins.pod_topology_labels import PodTopologyLabels
from ctrlruntime.apiserver.admission.plugins.priority import Priority
from ctrlruntime.apiserver.admission.plugins.resource_quota import ResourceQuota
from ctrlruntime.apiserver.admission.plugins.storage_protection import StorageObjectInUseProtection

PLUGINS: dict[str, type[Plugin]] = {
    plugin.__name__: plugin
    for plugin in (
        LimitRanger,
        PodSecurity,
        Priority,
        DefaultStorageClass,
        StorageObjectInUseProtection,
        PersistentVolumeClaimResize,
        CertificateApproval,
        CertificateSigning,
        CertificateSubjectRestriction,
        DefaultIngressClass,
        PodTopologyLabels,
        NodeDeclaredFeatureValidator,
        PodResizeValidator,
        ResourceQuota,
    )
}
"""By kube-apiserver's names; `options.ADMISSION_PLUGINS` has the order."""

__all__ = ["PLUGINS", "Plugin"]
