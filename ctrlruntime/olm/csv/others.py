"""The other objects of a bundle: those that are in no part of the ClusterServiceVersion and stay files."""

from __future__ import annotations

from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.bundle import SUPPORTED
from ctrlruntime.olm.csv.objects import Objects, gvk_of, is_a, namespace_of, told

__all__ = ["others"]


def others(objects: Objects, home: str, warn: Warn) -> list[Document]:
    """Return them, definitions first, without namespaces: all go into the one that the operator is installed into.

    `home`: the operator's namespace in the tree; what is in another one is warned of.
    """
    kept: list[Document] = []
    for each in objects.documents:
        if gvk_of(each).kind not in SUPPORTED:
            warn(f"{told(each)} ({each['apiVersion']}) is of a kind that no bundle can hold; it is left out")
            continue
        if home and namespace_of(each) not in {"", home}:
            warn(
                f"{told(each)} is in the namespace {namespace_of(each)}, and what a bundle holds goes into the one it is installed "
                f"into: make it there by other means, or do without"
            )
        each["metadata"].pop("namespace", None)
        kept.append(each)
    return sorted(kept, key=lambda each: not is_a(each, "apiextensions.k8s.io", "CustomResourceDefinition"))
