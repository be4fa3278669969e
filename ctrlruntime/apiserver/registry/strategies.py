"""What differs between built-in kinds beyond their schema: generation, unconditional updates, answers to a delete, field selectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.schema.trees import Document

Fields: TypeAlias = Mapping[str, Callable[[Document], str]]


@dataclass(frozen=True, slots=True)
class Strategy:
    """The rules of one kind; the defaults are what most kinds do."""

    has_generation: bool = False
    """A new object begins with generation 1."""
    counts_changes: bool = False
    """A change of the desired state raises the generation."""
    generation_counts_annotations: bool = False
    generation_counts_labels: bool = False
    creates_on_update: bool = False
    needs_version: bool = False
    """A PUT without resourceVersion is refused."""
    answers_with_object: bool = False
    """A finished delete answers with the object, not with a Status."""
    orphans_by_default: bool = False
    status_keeps: tuple[str, ...] = ()
    """Metadata that a write of the status leaves alone."""
    fields: Fields | None = None
    """What its objects can be selected by, beyond name and namespace; None when no more."""
    unknown_field: str = "field label not supported: {path}"
    """The error of another field; every kind with fields of its own has its own words."""


def _at(path: str, default: str = "") -> Callable[[Document], str]:
    keys = path.split(".")

    def read(document: Document) -> str:
        node: Any = document
        for key in keys:
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            return default
        return str(node).lower() if isinstance(node, bool) else str(node)

    return read


def _fields(*paths: str, **defaults: str) -> Fields:
    return {path: _at(path, defaults.get(path.rpartition(".")[2], "")) for path in paths}


_POD_FIELDS: Fields = {
    **_fields(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "spec.hostNetwork": _at("spec.hostNetwork", "false"),
    "status.podIPs": _at("status.podIP"),
}
_EVENT_FIELDS: Fields = {
    **_fields(
        *(
            f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        ),
        "reason",
        "reportingComponent",
        "type",
    ),
    "source": lambda event: _at("source.component")(event) or _at("reportingComponent")(event),
}
METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The metadata that a client may set, except for the name."""
_GENERATION = Strategy(has_generation=True, counts_changes=True)
_LOCKED_GENERATION = Strategy(has_generation=True, counts_changes=True, needs_version=True)
_UPSERT = Strategy(creates_on_update=True)
_ANSWERS = Strategy(answers_with_object=True)
_ANSWERS_AND_COUNTS = Strategy(has_generation=True, counts_changes=True, answers_with_object=True)

_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("", "pods"): Strategy(
        has_generation=True,
        counts_changes=True,
        answers_with_object=True,
        status_keeps=("ownerReferences",),
        fields=_POD_FIELDS,
    ),
    ("", "replicationcontrollers"): Strategy(
        has_generation=True,
        counts_changes=True,
        orphans_by_default=True,
        fields=_fields("status.replicas", replicas="0"),
    ),
    ("", "podtemplates"): Strategy(has_generation=True, counts_changes=True, answers_with_object=True),
    ("", "namespaces"): Strategy(answers_with_object=True, fields=_fields("status.phase")),
    ("", "nodes"): Strategy(
        fields={"spec.unschedulable": _at("spec.unschedulable", "false")},
    ),
    ("", "services"): Strategy(
        answers_with_object=True, creates_on_update=True, fields=_fields("spec.clusterIP", "spec.type")
    ),
    ("", "serviceaccounts"): _ANSWERS,
    ("", "persistentvolumeclaims"): _ANSWERS,
    ("", "persistentvolumes"): _ANSWERS,
    ("", "resourcequotas"): _ANSWERS,
    ("", "secrets"): Strategy(fields=_fields("type")),
    ("", "events"): Strategy(creates_on_update=True, fields=_EVENT_FIELDS),
    ("", "endpoints"): _UPSERT,
    ("", "limitranges"): _UPSERT,
    ("apps", "deployments"): Strategy(
        has_generation=True, counts_changes=True, generation_counts_annotations=True, status_keeps=("labels",)
    ),
    ("apps", "replicasets"): _GENERATION,
    ("apps", "statefulsets"): _GENERATION,
    ("apps", "daemonsets"): _GENERATION,
    ("batch", "jobs"): Strategy(
        has_generation=True,
        counts_changes=True,
        orphans_by_default=True,
        fields=_fields("status.successful", successful="0"),
        unknown_field='field label "{path}" not supported for Job',
    ),
    ("batch", "cronjobs"): _GENERATION,
    ("networking.k8s.io", "ingresses"): _GENERATION,
    ("networking.k8s.io", "ingressclasses"): _GENERATION,
    ("networking.k8s.io", "networkpolicies"): _GENERATION,
    ("networking.k8s.io", "servicecidrs"): Strategy(status_keeps=METADATA),
    ("rbac.authorization.k8s.io", "roles"): _UPSERT,
    ("rbac.authorization.k8s.io", "rolebindings"): _UPSERT,
    ("rbac.authorization.k8s.io", "clusterroles"): _UPSERT,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _UPSERT,
    ("coordination.k8s.io", "leases"): Strategy(creates_on_update=True, needs_version=True),
    ("discovery.k8s.io", "endpointslices"): Strategy(
        has_generation=True, counts_changes=True, generation_counts_labels=True
    ),
    ("policy", "poddisruptionbudgets"): _LOCKED_GENERATION,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _LOCKED_GENERATION,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _LOCKED_GENERATION,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _LOCKED_GENERATION,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): Strategy(
        has_generation=True, counts_changes=True, needs_version=True, status_keeps=METADATA
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _LOCKED_GENERATION,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _LOCKED_GENERATION,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _LOCKED_GENERATION,
    ("scheduling.k8s.io", "priorityclasses"): Strategy(has_generation=True),
    ("node.k8s.io", "runtimeclasses"): Strategy(creates_on_update=True, needs_version=True),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Strategy(
        has_generation=True, counts_changes=True, status_keeps=METADATA
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Strategy(
        has_generation=True, counts_changes=True, status_keeps=METADATA
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): Strategy(fields=_fields("spec.signerName")),
    ("storage.k8s.io", "storageclasses"): _ANSWERS,
    ("storage.k8s.io", "csinodes"): Strategy(needs_version=True, answers_with_object=True),
    ("storage.k8s.io", "csidrivers"): Strategy(counts_changes=True, needs_version=True, answers_with_object=True),
    ("storage.k8s.io", "csistoragecapacities"): Strategy(needs_version=True),
    ("storage.k8s.io", "volumeattributesclasses"): _ANSWERS,
    ("storage.k8s.io", "volumeattachments"): Strategy(
        needs_version=True, answers_with_object=True, status_keeps=METADATA
    ),
    ("apiregistration.k8s.io", "apiservices"): Strategy(needs_version=True, status_keeps=METADATA),
    ("resource.k8s.io", "resourceclaims"): Strategy(answers_with_object=True, status_keeps=METADATA),
    ("resource.k8s.io", "resourceclaimtemplates"): _ANSWERS,
    ("resource.k8s.io", "deviceclasses"): _ANSWERS_AND_COUNTS,
    ("resource.k8s.io", "resourceslices"): Strategy(
        has_generation=True,
        counts_changes=True,
        answers_with_object=True,
        fields=_fields("spec.nodeName", "spec.driver"),
        unknown_field="field label not supported for {kind}: {path}",
    ),
}
_PLAIN = Strategy()
_CUSTOM = Strategy(has_generation=True, counts_changes=True, needs_version=True)


def strategy_of(group: str, plural: str, *, is_custom: bool) -> Strategy:
    """Return the rules of a resource, by the table it is stored in."""
    return _CUSTOM if is_custom else _STRATEGIES.get((group, plural), _PLAIN)
