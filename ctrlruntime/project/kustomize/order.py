"""The order in which objects are printed: what others need first, webhooks last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlruntime.project.kustomize.resources import Kind, Resource

__all__ = ["in_order"]

FIRST: Final = (
    "Namespace", "ResourceQuota", "StorageClass", "CustomResourceDefinition", "ServiceAccount", "PodSecurityPolicy", "Role", "ClusterRole",
    "RoleBinding", "ClusterRoleBinding", "ConfigMap", "Secret", "Endpoints", "Service", "LimitRange", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "Deployment", "StatefulSet", "CronJob", "PodDisruptionBudget",
)  # fmt: skip
LAST: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def in_order(
    resources: Iterable[Resource], first: tuple[str, ...] = FIRST, last: tuple[str, ...] = LAST
) -> list[Resource]:
    """Return the objects sorted by kind, then by group, version, namespace and name; what has no group or namespace comes after."""
    return sorted(resources, key=lambda each: _key(each, first, last))


def _key(resource: Resource, first: tuple[str, ...], last: tuple[str, ...]) -> tuple[int, str, str]:
    kind = resource.kind
    return (_rank(kind, first, last), _text(kind), f"{resource.namespace or '~X'}|{resource.name}")


def _rank(kind: Kind, first: tuple[str, ...], last: tuple[str, ...]) -> int:
    if kind.kind in first:
        return first.index(kind.kind) - len(first)
    return last.index(kind.kind) + 1 if kind.kind in last else 0


def _text(kind: Kind) -> str:
    return "_".join((kind.group or "~G", kind.version or "~V", kind.kind or "~K"))
