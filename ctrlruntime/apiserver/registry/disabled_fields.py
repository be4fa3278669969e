"""Fields behind feature gates that are off in Kubernetes 1.36, and fields of old: kube-apiserver drops them and says nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.schema.trees import Document

_OF_PODS: Final = (
    "schedulingGroup",
    "volumes.projected.sources.clusterTrustBundle",
    "volumes.projected.sources.podCertificate",
    *(f"{name}.lifecycle.stopSignal" for name in ("containers", "initContainers", "ephemeralContainers")),
)
"""Paths in the spec of a Pod (dropDisabledFields in pkg/api/pod/util.go); they go through the items of lists."""


def _below(path: str, *fields: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"{path}.{field}".split(".")) for field in fields)


_TEMPLATE: Final = _below("spec.template.spec", *_OF_PODS)
_DISABLED: Final[Mapping[tuple[str, str], Sequence[tuple[str, ...]]]] = {
    ("", "nodes"): (("spec", "configSource"), ("status", "config")),
    ("", "pods"): _below("spec", *_OF_PODS),
    ("", "podtemplates"): _below("template.spec", *_OF_PODS),
    ("", "replicationcontrollers"): _TEMPLATE,
    ("apps", "daemonsets"): _TEMPLATE,
    ("apps", "deployments"): _TEMPLATE,
    ("apps", "replicasets"): _TEMPLATE,
    ("apps", "statefulsets"): (*_TEMPLATE, *_below("spec", "updateStrategy.rollingUpdate.maxUnavailable")),
    ("batch", "cronjobs"): _below("spec.jobTemplate.spec.template.spec", *_OF_PODS),
    ("batch", "jobs"): _TEMPLATE,
    ("coordination.k8s.io", "leases"): _below("spec", "preferredHolder", "strategy"),
    ("discovery.k8s.io", "endpointslices"): _below("endpoints", "deprecatedTopology"),
    ("resource.k8s.io", "resourceslices"): _below(
        "spec.devices",
        "nodeAllocatableResourceMappings",
        *(f"attributes.*.{name}" for name in ("bools", "ints", "strings", "versions")),
    ),
    ("storage.k8s.io", "csidrivers"): _below("spec", "preventPodSchedulingIfMissing"),
}
"""By group and plural."""
_GONE_WHEN_EMPTY: Final = "lifecycle"
_EVERY_KEY: Final = "*"


def drop_disabled(stored_as: tuple[str, str], document: Document) -> None:
    """Take away what the feature gates of the server do not allow."""
    for path in _DISABLED.get(stored_as, ()):
        _drop(document, path)


def _drop(tree: Any, path: Sequence[str]) -> None:
    for node in _nodes(tree):
        if path[0] == _EVERY_KEY:
            _drop(list(node.values()), path[1:])
            continue
        value = node.get(path[0])
        if value is None:
            continue
        if len(path) == 1:
            del node[path[0]]
            continue
        was_empty = not value
        _drop(value, path[1:])
        if path[0] == _GONE_WHEN_EMPTY and not value and not was_empty:
            del node[path[0]]


def _nodes(tree: Any) -> Iterator[Document]:
    yield from (node for node in (tree if isinstance(tree, list) else [tree]) if isinstance(node, dict))
