"""Validation of built-in kinds: which rules hold for which kind.

The rules are in separate modules by area: pods, workloads, networks, storage, policies,
webhooks. They are never stricter than kube-apiserver and say what it says. Metadata is checked elsewhere, for all
kinds alike. Takes an object that was read as its Go type and defaulted.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from ctrlruntime.apiserver.registry import admission_policy_validation as admission_policies
from ctrlruntime.apiserver.registry import claim_validation as claims
from ctrlruntime.apiserver.registry import device_rules as devices
from ctrlruntime.apiserver.registry import endpoint_validation as endpoints
from ctrlruntime.apiserver.registry import flow_validation as flow
from ctrlruntime.apiserver.registry import job_validation as jobs
from ctrlruntime.apiserver.registry import network_validation as network
from ctrlruntime.apiserver.registry import node_validation as nodes
from ctrlruntime.apiserver.registry import pod_parts, signing_requests
from ctrlruntime.apiserver.registry import pod_validation as pods
from ctrlruntime.apiserver.registry import policy_validation as policy
from ctrlruntime.apiserver.registry import quota_validation as quotas
from ctrlruntime.apiserver.registry import storage_group_validation as storage_group
from ctrlruntime.apiserver.registry import storage_validation as storage
from ctrlruntime.apiserver.registry import workload_validation as workloads
from ctrlruntime.apiserver.registry.autoscaler_validation import autoscaler_causes, autoscaler_status_causes
from ctrlruntime.apiserver.registry.conversions import CONVERSIONS
from ctrlruntime.apiserver.registry.device_status import claim_status_causes
from ctrlruntime.apiserver.registry.job_status import job_status_causes
from ctrlruntime.apiserver.registry.pod_status import pod_status_causes
from ctrlruntime.apiserver.registry.resource_slices import slice_causes
from ctrlruntime.apiserver.registry.webhook_validation import webhook_causes
from ctrlruntime.apiserver.registry.workload_status import status_rule
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import key_problems, spec_of

_Rule: TypeAlias = Callable[[Document, Document | None], Iterator[StatusCause]]
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_ADMISSION: Final = "admissionregistration.k8s.io"
_CERTIFICATES: Final = "certificates.k8s.io"
_FLOWCONTROL: Final = "flowcontrol.apiserver.k8s.io"
_to_core: Final = CONVERSIONS["events.k8s.io", "v1", "events"][1]


def validate(
    group: str, kind: str, document: Document, old: Document | None, subresource: str = ""
) -> list[StatusCause]:
    """Return what is wrong with an object (as an update of `old`, unless it is None); an empty list when nothing is.

    A write through a subresource changes no spec: of it only the status is looked at.
    """
    rules, name = (_STATUS_RULES, f"{kind}/{subresource}") if subresource else (_RULES, kind)
    rule = rules.get((group, name))
    return list(rule(document, old)) if rule is not None else []


def _core_event(document: Document, old: Document | None) -> Iterator[StatusCause]:
    return policy.event_causes(document, old, is_new_style=False)


def _new_event(document: Document, old: Document | None) -> Iterator[StatusCause]:
    core = _to_core(copy.deepcopy(document))
    return policy.event_causes(core, None if old is None else _to_core(copy.deepcopy(old)), is_new_style=True)


def _namespace_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """The finalizers of the spec. Only of those that `/finalize` writes is it said which one is wrong (validation.go)."""
    for index, finalizer in enumerate(spec_of(document).get("finalizers") or ()):
        path = "spec.finalizers" if old is None else f"spec.finalizers[{index}]"
        yield from (invalid_value(path, finalizer, problem) for problem in key_problems(finalizer))
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid_value(path, finalizer, text)


_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "ConfigMap"): storage.config_map_causes,
    ("", "Endpoints"): endpoints.endpoints_causes,
    ("", "Event"): _core_event,
    ("", "Namespace"): _namespace_causes,
    ("", "LimitRange"): quotas.limit_range_causes,
    ("", "Node"): nodes.node_causes,
    ("", "PersistentVolume"): storage.volume_causes,
    ("", "PersistentVolumeClaim"): claims.claim_causes,
    ("", "Pod"): pods.pod_causes,
    ("", "PodTemplate"): workloads.pod_template_causes,
    ("", "ReplicationController"): workloads.replication_controller_causes,
    ("", "ResourceQuota"): quotas.quota_causes,
    ("", "Secret"): storage.secret_causes,
    ("", "Service"): network.service_causes,
    ("apiregistration.k8s.io", "APIService"): policy.api_service_causes,
    ("apps", "ControllerRevision"): workloads.revision_causes,
    ("apps", "DaemonSet"): workloads.daemon_set_causes,
    ("apps", "Deployment"): workloads.deployment_causes,
    ("apps", "ReplicaSet"): workloads.replica_set_causes,
    ("apps", "StatefulSet"): workloads.stateful_set_causes,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaler_causes,
    ("batch", "CronJob"): jobs.cron_job_causes,
    ("batch", "Job"): jobs.job_causes,
    ("coordination.k8s.io", "Lease"): policy.lease_causes,
    ("discovery.k8s.io", "EndpointSlice"): endpoints.endpoint_slice_causes,
    ("events.k8s.io", "Event"): _new_event,
    ("networking.k8s.io", "Ingress"): network.ingress_causes,
    ("networking.k8s.io", "IngressClass"): network.ingress_class_causes,
    ("networking.k8s.io", "NetworkPolicy"): network.network_policy_causes,
    ("networking.k8s.io", "IPAddress"): network.address_object_causes,
    ("networking.k8s.io", "ServiceCIDR"): network.service_cidr_causes,
    ("node.k8s.io", "RuntimeClass"): storage.runtime_class_causes,
    ("policy", "PodDisruptionBudget"): policy.budget_causes,
    ("scheduling.k8s.io", "PriorityClass"): policy.priority_causes,
    ("storage.k8s.io", "CSIDriver"): storage_group.driver_object_causes,
    ("storage.k8s.io", "CSIStorageCapacity"): storage_group.capacity_causes,
    ("storage.k8s.io", "CSINode"): storage_group.csi_node_causes,
    ("storage.k8s.io", "StorageClass"): storage_group.storage_class_causes,
    ("storage.k8s.io", "VolumeAttachment"): storage_group.attachment_causes,
    ("resource.k8s.io", "DeviceClass"): devices.class_causes,
    ("resource.k8s.io", "ResourceClaim"): devices.claim_causes,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.claim_template_causes,
    ("resource.k8s.io", "ResourceSlice"): slice_causes,
    ("storage.k8s.io", "VolumeAttributesClass"): storage_group.attributes_class_causes,
    (_ADMISSION, "MutatingAdmissionPolicy"): admission_policies.mutating_policy_causes,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): admission_policies.mutating_binding_causes,
    (_ADMISSION, "MutatingWebhookConfiguration"): webhook_causes,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission_policies.validating_policy_causes,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission_policies.validating_binding_causes,
    (_ADMISSION, "ValidatingWebhookConfiguration"): webhook_causes,
    (_CERTIFICATES, "CertificateSigningRequest"): signing_requests.creation_causes,
    (_FLOWCONTROL, "FlowSchema"): flow.flow_schema_causes,
    (_FLOWCONTROL, "PriorityLevelConfiguration"): flow.priority_level_causes,
    (policy.RBAC, "ClusterRole"): policy.role_causes,
    (policy.RBAC, "ClusterRoleBinding"): policy.role_binding_causes,
    (policy.RBAC, "Role"): policy.role_causes,
    (policy.RBAC, "RoleBinding"): policy.role_binding_causes,
}
_STATUS_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "Namespace/finalize"): _namespace_causes,
    ("", "Node/status"): nodes.node_update_causes,
    ("", "PersistentVolumeClaim/status"): claims.claim_status_causes,
    ("", "Pod/ephemeralcontainers"): pod_parts.ephemeral_causes,
    ("", "Pod/resize"): pod_parts.resize_causes,
    ("", "Pod/status"): pod_status_causes,
    ("", "ResourceQuota/status"): quotas.quota_status_causes,
    ("", "Service/status"): network.service_status_causes,
    ("", "ReplicationController/status"): status_rule("ReplicationController"),
    ("apps", "DaemonSet/status"): status_rule("DaemonSet"),
    ("apps", "Deployment/status"): status_rule("Deployment"),
    ("apps", "ReplicaSet/status"): status_rule("ReplicaSet"),
    ("apps", "StatefulSet/status"): status_rule("StatefulSet"),
    ("policy", "PodDisruptionBudget/status"): status_rule("PodDisruptionBudget"),
    ("autoscaling", "HorizontalPodAutoscaler/status"): autoscaler_status_causes,
    ("batch", "Job/status"): job_status_causes,
    ("networking.k8s.io", "Ingress/status"): network.ingress_status_causes,
    ("resource.k8s.io", "ResourceClaim/status"): claim_status_causes,
    (_ADMISSION, "ValidatingAdmissionPolicy/status"): admission_policies.validating_policy_status_causes,
    ("apiregistration.k8s.io", "APIService/status"): policy.api_service_status_causes,
    ("storage.k8s.io", "VolumeAttachment/status"): storage_group.attachment_causes,
    (_FLOWCONTROL, "FlowSchema/status"): flow.condition_types_causes,
    (_FLOWCONTROL, "PriorityLevelConfiguration/status"): flow.condition_types_causes,
    (_CERTIFICATES, "CertificateSigningRequest/approval"): signing_requests.approval_causes,
    (_CERTIFICATES, "CertificateSigningRequest/status"): signing_requests.status_causes,
}
