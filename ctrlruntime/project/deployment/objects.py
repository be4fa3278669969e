"""The objects of a deployment: what was rendered, which name each goes by, and in which order they are written and removed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured
from ctrlruntime.errors import ConfigError

__all__ = [
    "MANAGER",
    "Document",
    "Named",
    "Outcome",
    "Step",
    "Tell",
    "custom_kinds",
    "in_phases",
    "manager_deployment",
    "with_image",
]

Document: TypeAlias = Mapping[str, Any]

Outcome: TypeAlias = Literal["created", "configured", "unchanged", "pruned", "kept", "deleted", "waiting", "ready"]
"""The result for an object. `kept`: it is not part of the deployment now, but was not deleted; `waiting` and `ready` are about a rollout."""

MANAGER: Final = "manager"
"""The name of the operator's container."""

_CRD: Final = "CustomResourceDefinition"
_WEBHOOKS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")


@dataclass(frozen=True, slots=True, order=True)
class Named:
    """One object by group, version, kind, namespace (empty: none) and name."""

    kind: GroupVersionKind
    namespace: str
    name: str

    @classmethod
    def of(cls, document: Document) -> Named:
        metadata = document["metadata"]
        kind = GroupVersionKind.parse(str(document.get("apiVersion") or ""), str(document["kind"]))
        return cls(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)

    @property
    def metadata_class(self) -> type[PartialObjectMetadata]:
        """The class that reads an object of this kind without its content."""
        return PartialObjectMetadata.of(Unstructured.of(self.kind.api_version, self.kind.kind))

    def metadata_only(self) -> Object:
        """Return the object with nothing but its name, to be deleted or patched."""
        made = self.metadata_class()
        made.metadata.name, made.metadata.namespace = self.name, self.namespace
        return made

    def __str__(self) -> str:
        return f"{self.kind.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Step:
    """What happened to one object; `note` says why or how far, where there is more to say."""

    outcome: Outcome
    named: Named
    note: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} {self.named}{f': {self.note}' if self.note else ''}"

    def to_json(self) -> dict[str, str]:
        kind = self.named.kind
        found = {"action": self.outcome, "apiVersion": kind.api_version, "kind": kind.kind}
        more = {"namespace": self.named.namespace, "name": self.named.name, "note": self.note}
        return found | {key: value for key, value in more.items() if value}


Tell: TypeAlias = Callable[[Step], None]
"""Receives each step as it happens."""


def custom_kinds(documents: Iterable[Document]) -> dict[tuple[str, str], bool]:
    """Return the group and kind of each definition among the documents, and whether its objects are namespaced."""
    specs = [each["spec"] for each in documents if each["kind"] == _CRD]
    return {(spec["group"], spec["names"]["kind"]): spec.get("scope") == "Namespaced" for spec in specs}


@dataclass(frozen=True, slots=True)
class Phases:
    """The trees of a deployment in the order they are written."""

    namespaces: list[dict[str, Any]]
    definitions: list[dict[str, Any]]
    rest: list[dict[str, Any]]
    workloads: list[dict[str, Any]]
    webhooks: list[dict[str, Any]]
    """After the workloads are available: a webhook without a server would reject its requests, the operator's Pods too."""

    custom: list[dict[str, Any]]
    """Objects of the CRDs above, applied after the webhooks."""


def in_phases(trees: Iterable[dict[str, Any]]) -> Phases:
    """Sort trees into phases; inside one the order stays."""
    trees = list(trees)
    custom = custom_kinds(trees)
    phases = Phases([], [], [], [], [], [])
    for each in trees:
        named = Named.of(each)
        if (named.kind.group, named.kind.kind) in custom:
            phases.custom.append(each)
        elif named.kind == GroupVersionKind("", "v1", "Namespace"):
            phases.namespaces.append(each)
        elif named.kind.kind == _CRD:
            phases.definitions.append(each)
        elif named.kind.kind in _WEBHOOKS:
            phases.webhooks.append(each)
        elif named.kind.kind in _WORKLOADS and named.kind.group in {"", "apps", "batch"}:
            phases.workloads.append(each)
        else:
            phases.rest.append(each)
    return phases


def manager_deployment(documents: Iterable[Document]) -> Document | None:
    """Return the Deployment with the operator's container; the only Deployment where none has one of that name."""
    deployments = [each for each in documents if Named.of(each).kind == GroupVersionKind("apps", "v1", "Deployment")]
    named = [each for each in deployments if any(one.get("name") == MANAGER for one in _containers(each))]
    if named:
        return named[0]
    return deployments[0] if len(deployments) == 1 else None


def with_image(documents: Iterable[Document], image: str) -> list[Document]:
    """Return the documents with another image in the operator's container. Raises: ConfigError without this container."""
    documents = list(documents)
    deployment = manager_deployment(documents)
    containers = _containers(deployment) if deployment is not None else []
    place = next((place for place, one in enumerate(containers) if one.get("name") == MANAGER), None)
    if place is None and len(containers) == 1:
        place = 0
    if deployment is None or place is None:
        raise ConfigError(f"cannot set the image: no Deployment has a container {MANAGER!r}")
    changed = copy.deepcopy(dict(deployment))
    _containers(changed)[place]["image"] = image
    return [changed if each is deployment else each for each in documents]


def _containers(deployment: Document) -> list[dict[str, Any]]:
    containers: list[dict[str, Any]] = deployment["spec"]["template"]["spec"].get("containers") or []
    return containers
