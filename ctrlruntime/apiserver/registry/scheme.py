"""Kinds and versions that kube-apiserver's scheme knows, served or not, and what it says of an object that is something else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from ctrlruntime.apiserver.registry.resources import Resource, built_in
from ctrlruntime.schema.messages import message_of
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.typed import Misfit, typed

_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "": ("v1",),
    "admissionregistration.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "apiextensions.k8s.io": ("v1", "v1beta1"),
    "apiregistration.k8s.io": ("v1", "v1beta1"),
    "apps": ("v1", "v1beta1", "v1beta2"),
    "authentication.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "authorization.k8s.io": ("v1", "v1beta1"),
    "autoscaling": ("v1", "v2"),
    "batch": ("v1", "v1beta1"),
    "certificates.k8s.io": ("v1", "v1beta1"),
    "coordination.k8s.io": ("v1", "v1beta1"),
    "discovery.k8s.io": ("v1", "v1beta1"),
    "events.k8s.io": ("v1", "v1beta1"),
    "flowcontrol.apiserver.k8s.io": ("v1", "v1beta1", "v1beta2", "v1beta3"),
    "networking.k8s.io": ("v1", "v1beta1"),
    "node.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "policy": ("v1", "v1beta1"),
    "rbac.authorization.k8s.io": ("v1", "v1beta1", "v1alpha1"),
    "resource.k8s.io": ("v1", "v1beta1", "v1beta2"),
    "scheduling.k8s.io": ("v1", "v1beta1"),
    "storage.k8s.io": ("v1", "v1beta1", "v1alpha1"),
}
"""Versions that kube-apiserver can read, served or not: a body in one of them is understood, and refused as another version."""
_UNKNOWN_THERE: Final[Mapping[str, tuple[str, ...]]] = {
    "admissionregistration.k8s.io/v1alpha1": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    "apps/v1beta1": ("DaemonSet", "ReplicaSet"),
    "authentication.k8s.io/v1alpha1": ("TokenReview", "TokenRequest"),
    "authentication.k8s.io/v1beta1": ("TokenRequest",),
    "batch/v1beta1": ("Job",),
    "networking.k8s.io/v1beta1": ("NetworkPolicy",),
    "storage.k8s.io/v1alpha1": ("CSIDriver", "CSINode", "StorageClass"),
}
"""Kinds of a group that one of these versions does not have."""
_ELSEWHERE: Final[Mapping[tuple[str, str], str]] = {
    ("extensions/v1beta1", "DaemonSet"): "apps",
    ("extensions/v1beta1", "Deployment"): "apps",
    ("extensions/v1beta1", "Ingress"): "networking",
    ("extensions/v1beta1", "NetworkPolicy"): "networking",
    ("extensions/v1beta1", "ReplicaSet"): "apps",
    ("extensions/v1beta1", "Scale"): "autoscaling",
    ("events.k8s.io/v1", "Event"): "core",
    ("events.k8s.io/v1beta1", "Event"): "core",
    ("meta.k8s.io/v1", "Status"): "v1",
    ("v1", "Status"): "v1",
    ("v1", "List"): "core",
}
"""Kinds whose internal type is in another group than their versions."""
_HEAD: Final = frozenset({"apiVersion", "kind"})
_OF_EVERY_GROUP: Final = frozenset({
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent",
})  # fmt: skip


def problem_of(api_version: str, kind: str, document: Document, expected: Resource) -> str:
    """Return why an object of this version and kind cannot be read as the kind of a resource; empty if it can.

    The object is decoded as what it says it is, then converted. The texts are those of apimachinery's pkg/runtime/scheme.go and
    pkg/conversion/converter.go.
    """
    found = _internal_group(api_version, kind)
    if found is None:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    try:
        if shape := message_of(api_version, kind):
            typed(shape.name).read({key: value for key, value in document.items() if key not in _HEAD}, "", [])
    except Misfit as misfit:
        return str(misfit)
    wanted = _internal_group(expected.api_version, expected.kind) or _internal(expected.group)
    if (found, kind) != (wanted, expected.kind):
        version = api_version.rpartition("/")[2]
        return f"converting ({version}.{kind}) to ({wanted}.{expected.kind}): unknown conversion"
    return ""


def _internal_group(api_version: str, kind: str) -> str | None:
    """Return the group of the internal type of a kind as Go calls it (`core`, `apps`); None for a kind that is not known."""
    if elsewhere := _ELSEWHERE.get((api_version, kind)):
        return elsewhere
    group, _, version = api_version.rpartition("/")
    if version not in _VERSIONS.get(group, ()) or kind in _UNKNOWN_THERE.get(api_version, ()):
        return None
    return _internal(group) if kind in _kinds(group) or kind in _OF_EVERY_GROUP else None


def _internal(group: str) -> str:
    return group.partition(".")[0] or "core"


@cache
def _kinds(group: str) -> frozenset[str]:
    found: set[str] = set()
    for resource in built_in():
        if resource.group == group:
            found |= {resource.kind, resource.list_kind}
        found |= {sub.kind for sub in resource.subresources.values() if sub.group == group}
    return frozenset(found)


__all__ = ["problem_of"]
