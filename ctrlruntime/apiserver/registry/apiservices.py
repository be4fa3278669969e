"""APIService objects: one for each group version that is served, as kube-aggregator keeps them.

Those of built-in group versions are made at the start and are then left to their users; those of custom resources come
and go with what is served.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.registry.after_writes import AfterWrites
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.writes import DeleteOptions, WriteOptions
from ctrlruntime.schema.trees import Document

GROUP: Final = "apiregistration.k8s.io"
_LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
_PRIORITIES: Final[Mapping[str, int]] = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "apiextensions.k8s.io": 16700,
    "admissionregistration.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
}
_VERSIONS: Final[Mapping[tuple[str, str], int]] = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1"): 21,
}
_CUSTOM: Final = (1000, 100)
"""Group and version priority of what a definition serves."""


class APIServices:
    """Keeps the APIServices of one registry."""

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now
        self._look_later = AfterWrites(self._sync)

    def install(self) -> None:
        """Make those that are missing, at the start and after a reset."""
        for resource in list(self._registry.all_resources()):
            if not resource.is_custom and resource.group in _PRIORITIES:
                priorities = _PRIORITIES[resource.group], _VERSIONS.get((resource.group, resource.version), 15)
                self._put(resource.group, resource.version, priorities, "onstart")
        self._sync()

    def follow(self) -> None:
        """Keep those of custom resources in step from now on; call it on the server's loop."""
        for group, plural in (("apiextensions.k8s.io", "customresourcedefinitions"), (GROUP, "apiservices")):
            self._registry.store.table(group, plural).listen(self._changed)

    def _changed(self, change: Change) -> None:
        if change.object.get("kind") != "APIService" or change.type == "DELETED":
            self._look_later()

    def _sync(self) -> None:
        wanted = {(resource.group, resource.version) for resource in self._registry.custom_resources()}
        for group, version in sorted(wanted):
            self._put(group, version, _CUSTOM, "true")
        resource = self._registry.canonical(GROUP, "apiservices")
        for service in self._registry.list(GROUP, "apiservices"):
            spec, meta = service["spec"], service["metadata"]
            is_automatic = (meta.get("labels") or {}).get(_LABEL) == "true"
            if is_automatic and (spec.get("group", ""), spec.get("version", "")) not in wanted:
                self._registry.writer.delete_directly(resource, "", meta["name"], DeleteOptions())

    def _put(self, group: str, version: str, priorities: tuple[int, int], label: str) -> None:
        name = f"{version}.{group}"
        if self._registry.get(GROUP, "apiservices", "", name) is not None:
            return
        resource = self._registry.canonical(GROUP, "apiservices")
        spec = {"version": version, "groupPriorityMinimum": priorities[0], "versionPriority": priorities[1]}
        document: Document = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"name": name, "labels": {_LABEL: label}},
            "spec": {"group": group, **spec} if group else spec,
        }
        options = WriteOptions(field_manager="kube-apiserver")
        self._registry.writer.create_directly(resource, "", document, options)
        available = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": timestamp(self._now()),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }

        def edit(old: Document | None) -> Document:
            return {**(old or document), "status": {"conditions": [available]}}

        self._registry.writer.update_directly(resource, "", name, edit, options, "status")
