"""What the server warns of as it stores an object of a built-in kind: the Warning headers of the answer.

A row for each `WarningsOnCreate` and `WarningsOnUpdate` of the strategies in kube-apiserver's pkg/registry: at which writes a rule is
asked, and the rule. Rules of several lines are in modules by area. They are asked once the object has passed validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from ctrlruntime.apiserver.registry import job_validation as jobs
from ctrlruntime.apiserver.registry import network_warnings as network
from ctrlruntime.apiserver.registry import storage_validation as storage
from ctrlruntime.apiserver.registry.claim_validation import claim_warnings
from ctrlruntime.apiserver.registry.node_validation import node_warnings
from ctrlruntime.apiserver.registry.pod_warnings import (
    OLD_LABELS,
    claim_spec_warnings,
    node_term_warnings,
    pod_status_warnings,
    pod_warnings,
    template_warnings,
)
from ctrlruntime.apiserver.registry.storage_group_validation import driver_warnings
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.quantities import canonical, parse
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import label_problems, spec_of

_Rule: TypeAlias = Callable[[Document, Document | None], Iterator[str]]
_Writes: TypeAlias = Literal["all", "creation", "new generation", "new template"]
"""At which writes a rule is asked: at a creation always, at updates as the word says."""
_ADMISSION: Final = "admissionregistration.k8s.io"
_MOUNTABLE: Final = "kubernetes.io/enforce-mountable-secrets"
_STATIC: Final = ".static.k8s.io"
_QUOTED: Final = ("cpu", "memory", "storage", "ephemeral-storage")


def warnings(group: str, kind: str, document: Document, old: Document | None, subresource: str = "") -> list[str]:
    """Return what is warned of in an object that is stored, as an update of `old` unless it is None."""
    # A write of a scale goes through the strategy of the whole object.
    name = kind if subresource in {"", "scale"} else f"{kind}/{subresource}"
    rows = _WARNINGS.get((group, name), ())
    return [
        text for writes, rule in rows if old is None or _is_asked(writes, document, old) for text in rule(document, old)
    ]


def _is_asked(writes: _Writes, document: Document, old: Document) -> bool:
    match writes:
        case "all":
            return True
        case "creation":
            return False
        case "new generation":
            return bool(document["metadata"].get("generation") != old["metadata"].get("generation"))
        case "new template":  # what upstream counts as the template generation of a DaemonSet
            return not is_same(spec_of(document).get("template"), spec_of(old).get("template"))


# Workloads


def _template(*path: str) -> _Rule:
    """Return the rule of a kind whose template is at a path."""
    return lambda document, _: template_warnings(inner(document, *path), ".".join(path))


def _controller_template(document: Document, old: Document | None) -> Iterator[str]:
    """The template of a ReplicationController; at an update upstream takes the old one for the new one."""
    return template_warnings(inner(document if old is None else old, "spec", "template"), "spec.template")


def _job(*path: str) -> _Rule:
    """Return the rule of a kind whose Job has its spec at a path."""

    def rule(document: Document, _: Document | None) -> Iterator[str]:
        yield from jobs.job_spec_warnings(inner(document, *path) or {}, ".".join(path))
        yield from template_warnings(inner(document, *path, "template"), ".".join((*path, "template")))

    return rule


def _zone(document: Document, _: Document | None) -> Iterator[str]:
    """A time zone in the schedule of a CronJob. Only one that was there before validation existed may stay."""
    if "TZ" in spec_of(document).get("schedule", ""):
        link = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"
        yield f"cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {link} for more details"


def _claims(document: Document, old: Document | None) -> Iterator[str]:
    """The claims of a StatefulSet; at an update upstream puts one step more in their paths."""
    for index, claim in enumerate(items(spec_of(document), "volumeClaimTemplates")):
        path = f"spec.volumeClaimTemplates[{index}]"
        yield from claim_spec_warnings(spec_of(claim), path if old is None else f"{path}.Spec")


def _history(document: Document, _: Document | None) -> Iterator[str]:
    if (spec_of(document).get("revisionHistoryLimit") or 0) < 0:
        text = "a negative value retains all historical revisions; a value >= 0 is recommended"
        yield f"spec.revisionHistoryLimit: {text}"


def _name(document: Document, _: Document | None) -> Iterator[str]:
    """The names of what makes Pods become host names."""
    problems = label_problems(str(document["metadata"].get("name", "")))
    if problems:
        why = "which can result in surprising behavior; a DNS label is recommended"
        yield f"metadata.name: this is used in Pod names and hostnames, {why}: [{' '.join(problems)}]"


# Kinds with a single rule


def _account(document: Document, old: Document | None) -> Iterator[str]:
    was_there = old is not None and _MOUNTABLE in (old["metadata"].get("annotations") or {})
    if _MOUNTABLE in (document["metadata"].get("annotations") or {}) and not was_there:
        text = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: {text}"


def _quota(document: Document, _: Document | None) -> Iterator[str]:
    hard: Document = spec_of(document).get("hard") or {}
    for name in _QUOTED:
        request, limit = f"requests.{name}", f"limits.{name}"
        if request not in hard and name in {"cpu", "memory"}:
            request = name
        if request in hard and limit in hard and parse(hard[request]) > parse(hard[limit]):
            amounts = f"{request} ({canonical(hard[request])}) should be less than {limit} ({canonical(hard[limit])})"
            yield f"ResourceQuota {amounts}"


def _runtime_class(document: Document, _: Document | None) -> Iterator[str]:
    for label in inner(document, "scheduling", "nodeSelector") or ():
        if label in OLD_LABELS:
            yield f"scheduling.nodeSelector: {OLD_LABELS[label]}"


def _storage_class(document: Document, _: Document | None) -> Iterator[str]:
    for index, term in enumerate(items(document, "allowedTopologies")):
        for number, requirement in enumerate(items(term, "matchLabelExpressions")):
            if requirement.get("key") in OLD_LABELS:
                where = f"allowedTopologies[{index}].matchLabelExpressions[{number}].key"
                yield f"{where}: {OLD_LABELS[requirement['key']]}"


def _capacity(document: Document, _: Document | None) -> Iterator[str]:
    nodes = inner(document, "nodeTopology") or {}
    yield from node_term_warnings(nodes, "nodeTopology", checks_values=False)
    for label in inner(nodes, "matchLabels") or ():
        if label in OLD_LABELS:
            yield f"nodeTopology.matchLabels.{label}: {OLD_LABELS[label]}"


def _slice(document: Document, _: Document | None) -> Iterator[str]:
    driver: str = spec_of(document).get("driver", "")
    if driver != driver.lower():
        text = f'driver names should be lowercase; "{driver}" contains uppercase characters'
        yield f"spec.driver: {text}"


def _static_name(document: Document, _: Document | None) -> Iterator[str]:
    """A name of what is read from files, where the ManifestBasedAdmissionControlConfig gate is on (it is off)."""
    if document["metadata"]["name"].endswith(_STATIC):
        text = "are reserved for static manifest-based configurations and cannot be managed via the API"
        yield f'metadata.name: names ending with "{_STATIC}" {text}'


_of_pods: Final = _template("spec", "template")
_WARNINGS: Final[Mapping[tuple[str, str], tuple[tuple[_Writes, _Rule], ...]]] = {
    ("", "Endpoints"): (("all", network.endpoints_warnings),),
    ("", "Node"): (("all", node_warnings),),
    ("", "PersistentVolume"): (("all", storage.volume_warnings),),
    ("", "PersistentVolumeClaim"): (("all", claim_warnings),),
    ("", "Pod"): (("creation", pod_warnings),),
    ("", "Pod/status"): (("all", pod_status_warnings),),
    ("", "PodTemplate"): (("new generation", _template("template")),),
    ("", "ReplicationController"): (("creation", _name), ("new generation", _controller_template)),
    ("", "ResourceQuota"): (("creation", _quota),),
    ("", "Secret"): (("all", storage.secret_warnings),),
    ("", "Service"): (("all", network.service_warnings),),
    ("", "Service/status"): (("all", network.balancer_warnings),),
    ("", "ServiceAccount"): (("all", _account),),
    ("apps", "DaemonSet"): (("new template", _of_pods),),
    ("apps", "Deployment"): (("creation", _name), ("new generation", _of_pods)),
    ("apps", "ReplicaSet"): (("creation", _name), ("new generation", _of_pods)),
    ("apps", "StatefulSet"): (("new generation", _of_pods), ("all", _claims), ("all", _history)),
    ("batch", "CronJob"): (
        ("creation", _name),
        ("new generation", _job("spec", "jobTemplate", "spec")),
        ("all", _zone),
    ),
    ("batch", "Job"): (("creation", _name), ("new generation", _job("spec"))),
    ("discovery.k8s.io", "EndpointSlice"): (("creation", network.endpoint_slice_warnings),),
    ("networking.k8s.io", "Ingress"): (("creation", network.ingress_warnings),),
    ("networking.k8s.io", "Ingress/status"): (("all", network.balancer_warnings),),
    ("networking.k8s.io", "NetworkPolicy"): (("all", network.network_policy_warnings),),
    ("node.k8s.io", "RuntimeClass"): (("all", _runtime_class),),
    ("resource.k8s.io", "ResourceSlice"): (("all", _slice),),
    ("storage.k8s.io", "CSIDriver"): (("all", driver_warnings),),
    ("storage.k8s.io", "CSIStorageCapacity"): (("all", _capacity),),
    ("storage.k8s.io", "StorageClass"): (("all", _storage_class),),
    (_ADMISSION, "MutatingAdmissionPolicy"): (("all", _static_name),),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): (("all", _static_name),),
    (_ADMISSION, "MutatingWebhookConfiguration"): (("all", _static_name),),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (("all", _static_name),),
    (_ADMISSION, "ValidatingAdmissionPolicy/status"): (("all", _static_name),),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (("all", _static_name),),
    (_ADMISSION, "ValidatingWebhookConfiguration"): (("all", _static_name),),
}


__all__ = ["warnings"]
