"""The plugin PodTopologyLabels (plugin/pkg/admission/podtopologylabels/admission.go)."""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """Gives a Pod the zone and the region of its Node, when it is bound and when it comes with a Node."""

    writes = frozenset({("", "pods", "", "CREATE"), ("", "pods", "binding", "CREATE")})

    def admit(self, attributes: AdmissionAttributes) -> None:
        document: Document = attributes.object or {}
        node = self._registry.get("", "nodes", "", _node_of(document)) if _node_of(document) else None
        found: Document = (node or {"metadata": {}})["metadata"].get("labels") or {}
        copied = {key: found[key] for key in _LABELS if key in found}
        if copied:
            metadata: Document = document["metadata"]
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}


def _node_of(document: Document) -> str:
    """Return the name of the Node of a Pod or of a Binding."""
    target: Document = document.get("target") or {}
    if document.get("kind") != "Binding":
        return spec_of(document).get("nodeName") or ""
    return target.get("name") or "" if target.get("kind") == "Node" else ""


__all__ = ["PodTopologyLabels"]
