"""Defaults of built-in kinds: which function sets them for which kind.

OpenAPI does not have these defaults, so they are written by hand, one function for each kind, in these modules by area:
pods, workloads, networks, storage, core, policies. Each takes an object that was read as its Go type and changes it in place. What needs
to know what else exists is not here but in `assignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ctrlruntime.apiserver.registry import core_defaults as core
from ctrlruntime.apiserver.registry import device_rules as devices
from ctrlruntime.apiserver.registry import network_defaults as network
from ctrlruntime.apiserver.registry import pod_defaults as pods
from ctrlruntime.apiserver.registry import policy_defaults as policy
from ctrlruntime.apiserver.registry import storage_defaults as storage
from ctrlruntime.apiserver.registry import workload_defaults as workloads
from ctrlruntime.apiserver.registry.resource_slices import default_slice
from ctrlruntime.schema.trees import Document

_ADMISSION: Final = "admissionregistration.k8s.io"
_Rule: TypeAlias = Callable[[Document], None]


def default(group: str, kind: str, document: Document) -> None:
    """Set every default of a built-in kind on an object that was read as its Go type. Other kinds are left alone.

    Applying it twice changes nothing.
    """
    rule = _RULES.get((group, kind))
    if rule is not None:
        rule(document)


_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "Endpoints"): network.endpoints,
    ("", "LimitRange"): core.limit_range,
    ("", "Namespace"): core.namespace,
    ("", "Node"): core.node,
    ("", "PersistentVolume"): storage.persistent_volume,
    ("", "PersistentVolumeClaim"): storage.persistent_volume_claim,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "ResourceQuota"): core.resource_quota,
    ("", "Secret"): core.secret,
    ("", "Service"): network.service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.horizontal_pod_autoscaler,
    ("networking.k8s.io", "IngressClass"): network.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): network.network_policy,
    ("discovery.k8s.io", "EndpointSlice"): network.endpoint_slice,
    ("coordination.k8s.io", "Lease"): core.lease,
    ("scheduling.k8s.io", "PriorityClass"): core.priority_class,
    ("storage.k8s.io", "CSIDriver"): storage.csi_driver,
    ("storage.k8s.io", "CSINode"): storage.csi_node,
    ("storage.k8s.io", "StorageClass"): storage.storage_class,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): policy.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): policy.priority_level,
    (policy.RBAC, "ClusterRole"): policy.role,
    (policy.RBAC, "Role"): policy.role,
    (policy.RBAC, "ClusterRoleBinding"): policy.role_binding,
    (policy.RBAC, "RoleBinding"): policy.role_binding,
    (_ADMISSION, "MutatingWebhookConfiguration"): policy.webhook_configuration,
    (_ADMISSION, "ValidatingWebhookConfiguration"): policy.webhook_configuration,
    (_ADMISSION, "MutatingAdmissionPolicy"): policy.admission_policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): policy.admission_policy_binding,
    (_ADMISSION, "ValidatingAdmissionPolicy"): policy.admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): policy.admission_policy_binding,
    ("resource.k8s.io", "ResourceClaim"): devices.default_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.default_claim_template,
    ("resource.k8s.io", "ResourceSlice"): default_slice,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): policy.custom_resource_definition,
    ("apiregistration.k8s.io", "APIService"): policy.api_service,
}
