"""APIs that Kubernetes no longer serves: the version, and the replacement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ctrlruntime.api.kind import GroupVersionKind

__all__ = ["REMOVED", "Removal"]


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of an API: `since` is the first minor version of Kubernetes 1 without it."""

    since: int
    instead: str
    """The apiVersion that replaces it; empty without one."""

    def __str__(self) -> str:
        advice = f". Use {self.instead}" if self.instead else ", and has no replacement"
        return f"is not served since Kubernetes 1.{self.since}{advice}"


# By the first minor version without them: the apiVersion, its kinds, the apiVersion that replaces them.
_TABLE: Final[dict[int, tuple[tuple[str, str, str], ...]]] = {
    16: (
        ("extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"),
        ("extensions/v1beta1", "DaemonSet Deployment ReplicaSet", "apps/v1"),
        ("extensions/v1beta1", "PodSecurityPolicy", ""),
        ("apps/v1beta1", "Deployment StatefulSet", "apps/v1"),
        ("apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet", "apps/v1"),
    ),
    22: (
        (
            "admissionregistration.k8s.io/v1beta1",
            "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
            "admissionregistration.k8s.io/v1",
        ),
        ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "apiextensions.k8s.io/v1"),
        ("apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1"),
        ("authentication.k8s.io/v1beta1", "TokenReview", "authentication.k8s.io/v1"),
        (
            "authorization.k8s.io/v1beta1",
            "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
            "authorization.k8s.io/v1",
        ),
        ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", "certificates.k8s.io/v1"),
        ("coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1"),
        ("extensions/v1beta1", "Ingress", "networking.k8s.io/v1"),
        ("networking.k8s.io/v1beta1", "Ingress IngressClass", "networking.k8s.io/v1"),
        (
            "rbac.authorization.k8s.io/v1beta1",
            "ClusterRole ClusterRoleBinding Role RoleBinding",
            "rbac.authorization.k8s.io/v1",
        ),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
        ("storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment", "storage.k8s.io/v1"),
    ),
    25: (
        ("autoscaling/v2beta1", "HorizontalPodAutoscaler", "autoscaling/v2"),
        ("batch/v1beta1", "CronJob", "batch/v1"),
        ("discovery.k8s.io/v1beta1", "EndpointSlice", "discovery.k8s.io/v1"),
        ("events.k8s.io/v1beta1", "Event", "events.k8s.io/v1"),
        ("node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", ""),
    ),
    26: (
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"),
        (
            "flowcontrol.apiserver.k8s.io/v1beta1",
            "FlowSchema PriorityLevelConfiguration",
            "flowcontrol.apiserver.k8s.io/v1",
        ),
    ),
    27: (("storage.k8s.io/v1beta1", "CSIStorageCapacity", "storage.k8s.io/v1"),),
    29: (
        (
            "flowcontrol.apiserver.k8s.io/v1beta2",
            "FlowSchema PriorityLevelConfiguration",
            "flowcontrol.apiserver.k8s.io/v1",
        ),
    ),
    32: (
        (
            "flowcontrol.apiserver.k8s.io/v1beta3",
            "FlowSchema PriorityLevelConfiguration",
            "flowcontrol.apiserver.k8s.io/v1",
        ),
    ),
}

REMOVED: Final = {
    GroupVersionKind.parse(api_version, kind): Removal(since, instead)
    for since, rows in _TABLE.items()
    for api_version, kinds, instead in rows
    for kind in kinds.split()
}
"""Every kind that Kubernetes has stopped serving in a version of its API, since 1.16."""
