"""The plugin PodSecurity (pod-security-admission's admission/admission.go): what the labels of a namespace allow of its Pods."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.following import follow
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.admission.plugins.pod_security_checks import Level, findings
from ctrlruntime.apiserver.interfaces import NAMESPACES, PODS, AdmissionAttributes, Operation
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.apiserver.storage import Key
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

_LABEL: Final = "pod-security.kubernetes.io/"
_LEVELS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_TEMPLATES: Final = {
    ("", "replicationcontrollers"): ("spec", "template"),
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""Where the workloads have their Pods."""
_MOST_PODS: Final = 3000


@dataclass(frozen=True, slots=True)
class LevelVersion:
    level: Level = "privileged"
    version: int | None = None
    """The minor version of Kubernetes; None is the latest."""

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.version is None else f'v1.{self.version}'}"

    def detail(self, metadata: Document, spec: Document) -> str:
        """Return what is not allowed, with what in the Pod is the reason."""
        found = findings(self.level, self.version, metadata, spec)
        return ", ".join(f"{reason} ({detail})" for reason, detail in found)

    def reason(self, metadata: Document, spec: Document) -> str:
        """Return what is not allowed."""
        return ", ".join(reason for reason, _ in findings(self.level, self.version, metadata, spec))


@dataclass(frozen=True, slots=True)
class Policy:
    """What the labels of a namespace say. Audit is left out: the server keeps no audit log."""

    enforce: LevelVersion
    warn: LevelVersion


def policy_of(labels: Document) -> tuple[Policy, list[StatusCause]]:
    """Read the labels of a namespace (PolicyToEvaluate in api/helpers.go)."""
    causes: list[StatusCause] = []
    enforce = _read(labels, "enforce", "restricted", causes)
    _read(labels, "audit", "privileged", causes)
    warn = _read(labels, "warn", "privileged", causes)
    level = labels.get(f"{_LABEL}enforce")
    if f"{_LABEL}warn" not in labels and level == enforce.level and level != "privileged":
        version = warn.version if f"{_LABEL}warn-version" in labels else enforce.version
        warn = LevelVersion(enforce.level, version)
    return Policy(enforce, warn), causes


def _read(labels: Document, mode: str, otherwise: Level, causes: list[StatusCause]) -> LevelVersion:
    """Read a level and its version; where the level is none, it is `otherwise`."""
    key, version_key = f"{_LABEL}{mode}", f"{_LABEL}{mode}-version"
    level, version = labels.get(key, "privileged"), labels.get(version_key, "latest")
    if level not in _LEVELS:
        causes.append(invalid_value(f"metadata.labels[{key}]", level, f"must be one of {', '.join(_LEVELS)}"))
        level = otherwise
    found = _VERSION.fullmatch(version)
    if found is None and version != "latest":
        causes.append(invalid_value(f"metadata.labels[{version_key}]", version, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, int(found[1]) if found else None)


class PodSecurity(Plugin):
    """Refuses Pods that the level of their namespace does not allow, and warns of them, of workloads and of new levels."""

    writes = frozenset(
        {
            *((*NAMESPACES, "", operation) for operation in ("CREATE", "UPDATE")),
            *((*PODS, part, "UPDATE") for part in ("", "ephemeralcontainers", "resize")),
            (*PODS, "", "CREATE"),
            *((*name, "", operation) for name in _TEMPLATES for operation in ("CREATE", "UPDATE")),
        }
    )

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._policies: dict[Key, Policy] = {}
        """Of the namespaces whose labels say something."""
        follow(registry.store.table(*NAMESPACES), self._policies, _policy)

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        is_seen = bool(self._policies) or (group, plural) == NAMESPACES
        return is_seen and super().is_wanted(group, plural, subresource, operation)

    def check(self, attributes: AdmissionAttributes) -> None:
        resource: Resource = attributes.resource
        if resource.stored_as == NAMESPACES:
            self._check_namespace(attributes)
            return
        policy = self._policies.get(("", attributes.namespace))
        if policy is None:
            return
        document = attributes.object or {}
        if resource.stored_as != PODS:
            template = inner(document, *_TEMPLATES[resource.stored_as])
            if template is not None:
                _warn(policy, template, attributes)
        elif attributes.old is None or _is_significant(spec_of(document), spec_of(attributes.old)):
            _enforce(policy, document, attributes)
            _warn(policy, document, attributes)

    def _check_namespace(self, attributes: AdmissionAttributes) -> None:
        policy, causes = policy_of(_labels(attributes.object))
        before, old_causes = policy_of(_labels(attributes.old)) if attributes.old is not None else (policy, [])
        if causes and causes != old_causes:
            raise failures.invalid("Namespace", "", attributes.name, causes)
        enforce, was = policy.enforce, before.enforce
        is_relaxed = enforce.version == was.version and _LEVELS.index(enforce.level) <= _LEVELS.index(was.level)
        if enforce.level != "privileged" and not is_relaxed:
            pods = self._registry.list(*PODS, attributes.name)
            attributes.warnings.extend(violations(attributes.name, enforce, pods))


def violations(namespace: str, enforce: LevelVersion, pods: list[Document]) -> list[str]:
    """Return the warnings for a new level: one for all Pods with the same reasons (EvaluatePodsInNamespace)."""
    by_reason: defaultdict[str, list[str]] = defaultdict(list)
    for pod in _one_of_each_owner_first(pods)[:_MOST_PODS]:
        reason = enforce.reason(pod["metadata"], spec_of(pod))
        if reason:
            by_reason[reason].append(pod["metadata"]["name"])
    warnings: list[str] = []
    if len(pods) > _MOST_PODS:
        text = f"only checked against the first {_MOST_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level {text}")
    if by_reason:
        text = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforce}"'
        warnings.append(text)
    return [*warnings, *sorted(f"{_several(names)}: {reason}" for reason, names in by_reason.items())]


def _several(names: list[str]) -> str:
    others = len(names) - 1
    more = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
    return f"{min(names)}{more}"


def _one_of_each_owner_first(pods: list[Document]) -> list[Document]:
    seen: set[str] = set()
    first: list[Document] = []
    rest: list[Document] = []
    for pod in pods:
        owner = next((one["uid"] for one in items(pod["metadata"], "ownerReferences") if one.get("controller")), None)
        (rest if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return [*first, *rest]


def _policy(namespace: Document) -> Policy | None:
    labels = _labels(namespace)
    if not any(key.startswith(_LABEL) for key in labels):
        return None
    return policy_of(labels)[0]


def _labels(namespace: Document | None) -> Document:
    return ((namespace or {}).get("metadata") or {}).get("labels") or {}


def _enforce(policy: Policy, pod: Document, attributes: AdmissionAttributes) -> None:
    detail = policy.enforce.detail(pod["metadata"], spec_of(pod))
    if detail:
        raise failures.forbidden("pods", "", attributes.name, f'violates PodSecurity "{policy.enforce}": {detail}')


def _warn(policy: Policy, pod: Document, attributes: AdmissionAttributes) -> None:
    detail = policy.warn.detail(pod.get("metadata") or {}, spec_of(pod))
    if detail:
        attributes.warnings.append(f'would violate PodSecurity "{policy.warn}": {detail}')


def _is_significant(spec: Document, before: Document) -> bool:
    """Tell whether a change of a Pod is looked at: new containers and images are."""
    for name in ("containers", "initContainers"):
        if _images(items(spec, name)) != _images(items(before, name)):
            return True
    known = dict(_images(items(before, "ephemeralContainers")))
    added = _images(items(spec, "ephemeralContainers"))
    return any(known.get(name) != image for name, image in added)


def _images(containers: Iterable[Document]) -> list[tuple[str, str]]:
    return [(str(one.get("name", "")), str(one.get("image", ""))) for one in containers]


__all__ = ["LevelVersion", "PodSecurity", "policy_of", "violations"]
