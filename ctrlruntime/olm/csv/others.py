"""The other objects of a bundle: those that are not part of the ClusterServiceVersion, and stay files."""

from __future__ import annotations

from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.bundle import SUPPORTED
from ctrlruntime.olm.csv.objects import Objects, gvk_of, is_a, namespace_of, told

__all__ = ["others"]


def others(objects: Objects, home: str, warn: Warn) -> list[Document]:
    """Return them, CRDs first, without namespaces: OLM installs them in the namespace of the operator.

    `home`: the operator's namespace in the tree; objects of other namespaces are a warning.
    """
    kept: list[Document] = []
    for each in objects.documents:
        if gvk_of(each).kind not in SUPPORTED:
            warn(f"{told(each)} ({each['apiVersion']}) is left out, because a bundle cannot have this kind")
            continue
        if home and namespace_of(each) not in {"", home}:
            warn(
                f"{told(each)} is in the namespace {namespace_of(each)}, but OLM installs all objects of a bundle in the operator's "
                f"namespace. Create it there by other means, or remove it"
            )
        each["metadata"].pop("namespace", None)
        kept.append(each)
    return sorted(kept, key=lambda each: not is_a(each, "apiextensions.k8s.io", "CustomResourceDefinition"))
