"""Columns of the built-in kinds as recorded, and the cells of an object under them.

A kind has a printer function, or a row of simple columns (`_SIMPLE`); any other kind shows its name and age and leaves
the rest empty.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.tables import printers
from ctrlruntime.apiserver.tables.durations import age
from ctrlruntime.apiserver.tables.metrics import MEASURED, node_usage, pod_usage
from ctrlruntime.data import open_data
from ctrlruntime.jsonpath import JSONPathError, find, parse
from ctrlruntime.schema.trees import Document

_Printer: TypeAlias = Callable[[Document, datetime], list[Any]]
_NAME_AND_AGE: Final[list[Document]] = [
    {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
    {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
]
_ADMISSION: Final = "admissionregistration.k8s.io"

_PRINTERS: Final[Mapping[tuple[str, str], _Printer]] = {
    ("", "configmaps"): printers.config_map,
    ("", "endpoints"): printers.endpoints,
    ("", "events"): printers.event,
    ("", "namespaces"): printers.namespace,
    ("", "nodes"): printers.node,
    ("", "persistentvolumeclaims"): printers.persistent_volume_claim,
    ("", "persistentvolumes"): printers.persistent_volume,
    ("", "pods"): printers.pod,
    ("", "podtemplates"): printers.pod_template,
    ("", "replicationcontrollers"): printers.replica_set,
    ("", "resourcequotas"): printers.resource_quota,
    ("", "secrets"): printers.secret,
    ("", "services"): printers.service,
    ("apiregistration.k8s.io", "apiservices"): printers.api_service,
    ("apps", "controllerrevisions"): printers.controller_revision,
    ("apps", "daemonsets"): printers.daemon_set,
    ("apps", "deployments"): printers.deployment,
    ("apps", "replicasets"): printers.replica_set,
    ("apps", "statefulsets"): printers.stateful_set,
    ("autoscaling", "horizontalpodautoscalers"): printers.horizontal_pod_autoscaler,
    ("batch", "cronjobs"): printers.cron_job,
    ("batch", "jobs"): printers.job,
    ("discovery.k8s.io", "endpointslices"): printers.endpoint_slice,
    ("events.k8s.io", "events"): printers.event,
    ("metrics.k8s.io", "nodes"): node_usage,
    ("metrics.k8s.io", "pods"): pod_usage,
    ("networking.k8s.io", "ingresses"): printers.ingress,
    ("networking.k8s.io", "ipaddresses"): printers.ip_address,
    ("networking.k8s.io", "networkpolicies"): printers.network_policy,
    ("policy", "poddisruptionbudgets"): printers.pod_disruption_budget,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): printers.role_binding,
    ("rbac.authorization.k8s.io", "rolebindings"): printers.role_binding,
    ("resource.k8s.io", "resourceclaims"): printers.resource_claim,
    (_ADMISSION, "mutatingadmissionpolicies"): printers.admission_policy,
    (_ADMISSION, "mutatingadmissionpolicybindings"): printers.admission_policy_binding,
    (_ADMISSION, "validatingadmissionpolicies"): printers.admission_policy,
    (_ADMISSION, "validatingadmissionpolicybindings"): printers.admission_policy_binding,
}


# Columns that are one field each: {column: (path, what an absent value shows)}.
def _joined(path: str, absent: str) -> Callable[[Document], str]:
    found = parse(path)
    return lambda document: ",".join(map(str, find(found, document))) or absent


def _parameters(ingress_class: Document) -> str:
    parameters: Document = (ingress_class.get("spec") or {}).get("parameters") or {}
    kind = ".".join(filter(None, (parameters.get("kind"), parameters.get("apiGroup"))))
    return f"{kind}/{parameters.get('name', '')}" if parameters else "<none>"


def _storage_class_name(storage_class: Document) -> str:
    metadata = storage_class["metadata"]
    annotations: Document = metadata.get("annotations") or {}
    is_default = any(annotations.get(f"{group}/is-default-class") == "true" for group in _STORAGE_CLASS)
    return f"{metadata['name']} (default)" if is_default else str(metadata["name"])


_STORAGE_CLASS: Final = ("storageclass.kubernetes.io", "storageclass.beta.kubernetes.io")
_QUEUING: Final = ".spec.limited.limitResponse.queuing"
_SIMPLE: Final[Mapping[tuple[str, str], Mapping[str, tuple[str, Any] | Callable[[Document], Any]]]] = {
    ("coordination.k8s.io", "leases"): {"Holder": (".spec.holderIdentity", "")},
    ("networking.k8s.io", "ingressclasses"): {
        "Controller": (".spec.controller", ""),
        "Parameters": _parameters,
    },
    ("scheduling.k8s.io", "priorityclasses"): {
        "Value": (".value", 0),
        "Global-Default": (".globalDefault", False),
        "PreemptionPolicy": (".preemptionPolicy", ""),
    },
    ("storage.k8s.io", "storageclasses"): {
        "Name": _storage_class_name,
        "Provisioner": (".provisioner", ""),
        "ReclaimPolicy": (".reclaimPolicy", "Delete"),
        "VolumeBindingMode": (".volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion": (".allowVolumeExpansion", False),
    },
    ("storage.k8s.io", "csidrivers"): {
        "AttachRequired": (".spec.attachRequired", True),
        "PodInfoOnMount": (".spec.podInfoOnMount", False),
        "StorageCapacity": (".spec.storageCapacity", False),
        "TokenRequests": _joined(".spec.tokenRequests[*].audience", "<unset>"),
        "RequiresRepublish": (".spec.requiresRepublish", False),
        "Modes": _joined(".spec.volumeLifecycleModes[*]", "<none>"),
    },
    ("storage.k8s.io", "volumeattachments"): {
        "Attacher": (".spec.attacher", ""),
        "PV": (".spec.source.persistentVolumeName", ""),
        "Node": (".spec.nodeName", ""),
        "Attached": (".status.attached", False),
    },
    ("storage.k8s.io", "csinodes"): {"Drivers": lambda node: len((node.get("spec") or {}).get("drivers") or ())},
    ("networking.k8s.io", "servicecidrs"): {"CIDRs": _joined(".spec.cidrs[*]", "")},
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): {
        "PriorityLevel": (".spec.priorityLevelConfiguration.name", ""),
        "MatchingPrecedence": (".spec.matchingPrecedence", 0),
        "DistinguisherMethod": (".spec.distinguisherMethod.type", "<none>"),
        "MissingPL": (".status.conditions[?(@.type=='Dangling')].status", "?"),
    },
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): {
        "Type": (".spec.type", ""),
        "NominalConcurrencyShares": (".spec.limited.nominalConcurrencyShares", "<none>"),
        "Queues": (f"{_QUEUING}.queues", "<none>"),
        "HandSize": (f"{_QUEUING}.handSize", "<none>"),
        "QueueLengthLimit": (f"{_QUEUING}.queueLengthLimit", "<none>"),
    },
    ("storage.k8s.io", "volumeattributesclasses"): {"DriverName": (".driverName", "")},
    ("node.k8s.io", "runtimeclasses"): {"Handler": (".handler", "")},
    (_ADMISSION, "mutatingwebhookconfigurations"): {"Webhooks": lambda hooks: len(hooks.get("webhooks") or ())},
    (_ADMISSION, "validatingwebhookconfigurations"): {"Webhooks": lambda hooks: len(hooks.get("webhooks") or ())},
    ("certificates.k8s.io", "certificatesigningrequests"): {
        "SignerName": (".spec.signerName", "<none>"),
        "Requestor": (".spec.username", ""),
        "RequestedDuration": (".none", "<none>"),
        "Condition": (".status.conditions[-1].type", "Pending"),
    },
    ("resource.k8s.io", "resourceslices"): {
        "Node": (".spec.nodeName", ""),
        "Driver": (".spec.driver", ""),
        "Pool": (".spec.pool.name", ""),
    },
}
_BY_TYPE: Final[Mapping[str, Any]] = {"integer": 0, "boolean": False, "string": ""}


def columns(group: str, version: str, resource: str) -> list[Document]:
    """Return the column definitions of a built-in kind, of any kind Name and Age."""
    return [dict(column) for column in _columns(group, version, resource)]


def cells(group: str, version: str, resource: str, document: Document, now: datetime) -> list[Any]:
    """Return the row of one object, as many cells as the kind has columns."""
    printer = _PRINTERS.get((group, resource))
    if printer is not None:
        return printer(document, now)
    return [_simple(group, resource, column, document, now) for column in _columns(group, version, resource)]


def _simple(group: str, resource: str, column: Document, document: Document, now: datetime) -> Any:
    name = column["name"]
    metadata = document.get("metadata", {})
    shown = _SIMPLE.get((group, resource), {}).get(name, (".none", _BY_TYPE.get(column["type"], "")))
    if callable(shown):
        return shown(document)
    if name == "Name":
        return metadata.get("name", "")
    if name == "Age":
        return age(metadata.get("creationTimestamp"), now)
    if name == "Created At":
        return metadata.get("creationTimestamp")
    path, absent = shown
    try:
        found = find(parse(path), document)
    except JSONPathError:  # the list has no such item
        found = []
    return found[0] if found and found[0] is not None else absent


@cache
def _columns(group: str, version: str, resource: str) -> list[Document]:
    key = f"{group}/{version}/{resource}" if group else f"{version}/{resource}"
    found = MEASURED.get(key) or _recorded().get(key, _NAME_AND_AGE)
    return [{"description": "", **column} for column in found]


@cache
def _recorded() -> Mapping[str, list[Document]]:
    recorded: Mapping[str, list[Document]] = json.loads(
        gzip.decompress(open_data("kubernetes-1.36/table-columns.json.gz"))
    )
    return recorded
