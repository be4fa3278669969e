"""Which module holds the classes of a group version. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["MODULES"]

MODULES: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("", "v1"): "ctrlruntime.api.core.v1",
        ("admissionregistration.k8s.io", "v1"): "ctrlruntime.api.admissionregistration.v1",
        ("apiextensions.k8s.io", "v1"): "ctrlruntime.api.apiextensions.v1",
        ("apiregistration.k8s.io", "v1"): "ctrlruntime.api.apiregistration.v1",
        ("apps", "v1"): "ctrlruntime.api.apps.v1",
        ("authentication.k8s.io", "v1"): "ctrlruntime.api.authentication.v1",
        ("authorization.k8s.io", "v1"): "ctrlruntime.api.authorization.v1",
        ("autoscaling", "v1"): "ctrlruntime.api.autoscaling.v1",
        ("autoscaling", "v2"): "ctrlruntime.api.autoscaling.v2",
        ("batch", "v1"): "ctrlruntime.api.batch.v1",
        ("certificates.k8s.io", "v1"): "ctrlruntime.api.certificates.v1",
        ("coordination.k8s.io", "v1"): "ctrlruntime.api.coordination.v1",
        ("discovery.k8s.io", "v1"): "ctrlruntime.api.discovery.v1",
        ("events.k8s.io", "v1"): "ctrlruntime.api.events.v1",
        ("flowcontrol.apiserver.k8s.io", "v1"): "ctrlruntime.api.flowcontrol.v1",
        ("networking.k8s.io", "v1"): "ctrlruntime.api.networking.v1",
        ("node.k8s.io", "v1"): "ctrlruntime.api.node.v1",
        ("policy", "v1"): "ctrlruntime.api.policy.v1",
        ("rbac.authorization.k8s.io", "v1"): "ctrlruntime.api.rbac.v1",
        ("resource.k8s.io", "v1"): "ctrlruntime.api.resource.v1",
        ("scheduling.k8s.io", "v1"): "ctrlruntime.api.scheduling.v1",
        ("storage.k8s.io", "v1"): "ctrlruntime.api.storage.v1",
    }
)
"""(API group, version) → module name; the core group is the empty text."""
