r"""Places in objects by path, and which of them each transformer of kustomize changes.

A path is separated by slashes; it goes through lists by itself, `[]` after a step says that there must be one, and `\/` is a slash within a
step. What is listed here is kustomize's own configuration; a file under `configurations` adds to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.resources import Kind, Resource

__all__ = [
    "ANNOTATIONS",
    "LABELS",
    "NAMES",
    "NAMESPACES",
    "REPLICAS",
    "SELECTORS",
    "TEMPLATE_LABELS",
    "Field",
    "change",
    "field_of",
]


@dataclass(frozen=True, slots=True)
class Field:
    """A path in the objects of a kind; `create` makes what is missing on the way."""

    path: str
    kind: Kind = Kind()  # noqa: RUF009 - a tuple
    create: bool = False

    def steps(self) -> list[str]:
        return [step.replace("\\/", "/") for step in re.split(r"(?<!\\)/", self.path)]


def change(resource: Resource, place: Field, new: Callable[[Any], Any], empty: Callable[[], Any] | None = None) -> None:
    """Put `new(value)` in the place of every value that the path leads to; `empty()` is what a created one starts from.

    Raises: ConfigError when the path leads through a text or a number.
    """
    if not place.kind.selects(resource.kind):
        return
    try:
        _change(resource.tree, place.steps(), new, empty if place.create else None)
    except TypeError as error:
        raise ConfigError(f"{resource.origin}: {resource.id}: {place.path} {error}") from error


def _change(node: Any, steps: Sequence[str], new: Callable[[Any], Any], empty: Callable[[], Any] | None) -> None:
    if isinstance(node, list):
        for item in node:
            _change(item, steps, new, empty)
        return
    if not isinstance(node, dict):
        raise TypeError("has a value on its way that is neither a map nor a list")
    step, rest = steps[0], steps[1:]
    name = step.removesuffix("[]")
    if node.get(name) is None:
        if empty is None or step.endswith("[]"):
            return
        node[name] = {} if rest else empty()
    if not rest:
        node[name] = new(node[name])
    else:
        _change(node[name], rest, new, empty)


_APPS: Final = "apps"
_BATCH: Final = "batch"


def _templates(part: str) -> Iterator[Field]:
    """The place of `metadata.PART` in the Pod templates of the kinds that have one."""
    for kind in (
        Kind(version="v1", kind="ReplicationController"),
        Kind(kind="Deployment"),
        Kind(kind="ReplicaSet"),
        Kind(kind="DaemonSet"),
        Kind(_APPS, kind="StatefulSet"),
        Kind(_BATCH, kind="Job"),
    ):
        yield Field(f"spec/template/metadata/{part}", kind, create=True)
    yield Field(f"spec/jobTemplate/metadata/{part}", Kind(_BATCH, kind="CronJob"), create=True)
    yield Field(f"spec/jobTemplate/spec/template/metadata/{part}", Kind(_BATCH, kind="CronJob"), create=True)


def _affinities(kind: Kind) -> Iterator[Field]:
    inside = "spec/template/spec"
    for affinity in ("podAffinity", "podAntiAffinity"):
        when = f"{inside}/affinity/{affinity}"
        yield Field(
            f"{when}/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels", kind
        )
        yield Field(f"{when}/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels", kind)
    yield Field(f"{inside}/topologySpreadConstraints/labelSelector/matchLabels", kind)


def _selectors() -> Iterator[Field]:
    for kind in (Kind(version="v1", kind="Service"), Kind(version="v1", kind="ReplicationController")):
        yield Field("spec/selector", kind, create=True)
    deployment, stateful = Kind(_APPS, kind="Deployment"), Kind(_APPS, kind="StatefulSet")
    for kind in (Kind(kind="Deployment"), Kind(kind="ReplicaSet"), Kind(kind="DaemonSet"), stateful):
        yield Field("spec/selector/matchLabels", kind, create=True)
    yield from _affinities(deployment)
    yield from _affinities(stateful)
    policy = Kind("networking.k8s.io", kind="NetworkPolicy")
    yield Field("spec/selector/matchLabels", Kind(_BATCH, kind="Job"))
    yield Field("spec/jobTemplate/spec/selector/matchLabels", Kind(_BATCH, kind="CronJob"))
    yield Field("spec/selector/matchLabels", Kind("policy", kind="PodDisruptionBudget"))
    yield Field("spec/podSelector/matchLabels", policy)
    yield Field("spec/ingress/from/podSelector/matchLabels", policy)
    yield Field("spec/egress/to/podSelector/matchLabels", policy)


LABELS: Final = (Field("metadata/labels", create=True),)
_STATEFUL: Final = Kind(_APPS, kind="StatefulSet")
TEMPLATE_LABELS: Final = (
    *LABELS,
    *_templates("labels"),
    Field("spec/volumeClaimTemplates[]/metadata/labels", _STATEFUL, create=True),
)
SELECTORS: Final = (*TEMPLATE_LABELS, *_selectors())
ANNOTATIONS: Final = (Field("metadata/annotations", create=True), *_templates("annotations"))
NAMES: Final = (Field("metadata/name"),)
REPLICAS: Final = tuple(
    Field("spec/replicas", Kind(kind=kind), create=True)
    for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
)
NAMESPACES: Final = (
    Field("metadata/name", Kind(kind="Namespace"), create=True),
    Field("spec/service/namespace", Kind("apiregistration.k8s.io", kind="APIService"), create=True),
    Field(
        "spec/conversion/webhook/clientConfig/service/namespace",
        Kind("apiextensions.k8s.io", kind="CustomResourceDefinition"),
    ),
)


def field_of(said: Document) -> Field:
    """Return the field that a configuration names. Raises: KeyError without a path."""
    kind = Kind(str(said.get("group") or ""), str(said.get("version") or ""), str(said.get("kind") or ""))
    return Field(str(said["path"]), kind, create=bool(said.get("create")))
