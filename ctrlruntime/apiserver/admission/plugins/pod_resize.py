"""The plugins that ask the Node of a Pod before the Pod changes.

PodResizeValidator (plugin/pkg/admission/podresize) and NodeDeclaredFeatureValidator (plugin/pkg/admission/nodedeclaredfeatures).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.pod_amounts import requests_of
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.errors import Forbidden, StatusCause
from ctrlruntime.quantities import units
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import spec_of

_SYSTEM: Final = "kubernetes.io/os"
_PARTS: Final = {"cpu": 1000, "memory": 1}
"""In which parts of its unit a resource is counted."""


class _AsksNode(Plugin):
    """Looks at a change of the spec of a Pod that has a Node."""

    def check(self, attributes: AdmissionAttributes) -> None:
        pod, old = attributes.object or {}, attributes.old or {}
        name = spec_of(pod).get("nodeName")
        # The generation counts what changes in the spec.
        if name and pod["metadata"].get("generation") != old["metadata"].get("generation"):
            self.ask(attributes, pod, old)

    def ask(self, attributes: AdmissionAttributes, pod: Document, old: Document) -> None:
        """Raises: Forbidden."""

    def node_of(self, attributes: AdmissionAttributes, pod: Document) -> Document:
        """Return the Node of a Pod. Raises: Forbidden when it is not there."""
        name = spec_of(pod)["nodeName"]
        node = self._registry.get("", "nodes", "", name)
        if node is None:
            raise forbidden(attributes, f'node "{name}" not found')
        return node


class PodResizeValidator(_AsksNode):
    """Refuses a resize for which the Node is too small or of another system."""

    writes = frozenset({("", "pods", "resize", "UPDATE")})

    def ask(self, attributes: AdmissionAttributes, pod: Document, old: Document) -> None:
        node = self.node_of(attributes, pod)
        metadata: Document = node["metadata"]
        system = (metadata.get("labels") or {}).get(_SYSTEM, "linux")
        if system != "linux":
            why = f'pod resize is only supported on linux nodes, node "{metadata["name"]}" is "{system}"'
            raise _refused(attributes, why, "UnsupportedPlatform")
        has = inner(node, "status", "allocatable") or {}
        wants = requests_of(spec_of(pod))
        short = [
            f"{name}, requested: {wanted}, allocatable: {present}"
            for name, parts in _PARTS.items()
            if (wanted := units(wants.get(name, "0"), parts)) > (present := units(has.get(name, "0"), parts))
        ]
        if short:
            raise _refused(
                attributes, f"node didn't have enough allocatable resources: {'; '.join(short)}", "NodeCapacity"
            )


def _refused(attributes: AdmissionAttributes, why: str, reason: str) -> Forbidden:
    error = forbidden(attributes, why)
    return Forbidden(str(error), details=error.details, causes=[StatusCause(reason, "")])


def _resizes_pod(old: Document, new: Document) -> bool:
    return not is_same(old.get("resources"), new.get("resources"))


def _resizes_init_container(old: Document, new: Document) -> bool:
    pairs = zip(items(old, "initContainers"), items(new, "initContainers"), strict=False)
    return any(
        before.get("restartPolicy") != "Always" and not is_same(before.get("resources"), after.get("resources"))
        for before, after in pairs
    )


_FEATURES: Final[dict[str, Callable[[Document, Document], bool]]] = {
    "InPlacePodLevelResourcesVerticalScaling": _resizes_pod,
    "InPlacePodVerticalScalingInitContainers": _resizes_init_container,
}
"""What a change of a spec needs (component-helpers' nodedeclaredfeatures/features; the others there ask nothing of a change)."""


class NodeDeclaredFeatureValidator(_AsksNode):
    """Refuses a change that the Node does not say it is capable of."""

    writes = frozenset({("", "pods", "", "UPDATE"), ("", "pods", "resize", "UPDATE")})

    def ask(self, attributes: AdmissionAttributes, pod: Document, old: Document) -> None:
        needed = [name for name, needs in _FEATURES.items() if needs(spec_of(old), spec_of(pod))]
        if not needed:
            return
        node = self.node_of(attributes, pod)
        declared: list[str] = (node.get("status") or {}).get("declaredFeatures") or []
        missing = [name for name in needed if name not in declared]
        if missing:
            name = node["metadata"]["name"]
            why = f'pod update requires features {", ".join(missing)} which are not available on node "{name}"'
            raise forbidden(attributes, why)


__all__ = ["NodeDeclaredFeatureValidator", "PodResizeValidator"]
