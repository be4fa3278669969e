"""What a write may set: the part of an object that belongs to the server, to the status, or to a subresource is put back.

Pure functions on trees, called by the writer between admission and validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.interfaces import NAMESPACES, PODS
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.device_rules import CLAIM_TEMPLATES, CLAIMS
from ctrlruntime.apiserver.registry.device_status import forget_freed_devices
from ctrlruntime.apiserver.registry.disabled_fields import drop_disabled
from ctrlruntime.apiserver.registry.pod_amounts import qos_class
from ctrlruntime.apiserver.registry.pod_parts import PARTS, keep_the_rest
from ctrlruntime.apiserver.registry.resource_slices import SLICES, has_two_lists
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.strategies import METADATA, Strategy
from ctrlruntime.apiserver.registry.trees import put
from ctrlruntime.schema.trees import Document, copy_tree, is_same
from ctrlruntime.schema.values import spec_of

_NODE = ("", "nodes")
_SYSTEM = ("uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_KEEPS_GENERATION = frozenset({"status", "finalize", "approval"})
"""Subresources whose writes never change the desired state."""


def prepare_create(resource: Resource, strategy: Strategy, document: Document, *, uid: str, moment: str) -> None:
    """Make a new object begin where every object begins: uid, creation time, generation 1, no status."""
    metadata: Document = document["metadata"]
    for key in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(key, None)
    metadata["uid"] = uid
    if not resource.is_custom:
        drop_disabled(resource.stored_as, document)
    _keep_names_of_secrets(resource, document)
    metadata["creationTimestamp"] = moment
    if strategy.has_generation:
        metadata["generation"] = 1
    if resource.has_status and resource.stored_as != _NODE:
        _set_status(resource, document, None)
    if resource.stored_as == PODS:
        document["status"] = {"phase": "Pending", "qosClass": qos_class(spec_of(document))}


def prepare_update(resource: Resource, strategy: Strategy, document: Document, old: Document, subresource: str) -> None:
    """Put back what this write must not change."""
    before: Document = old["metadata"]
    if subresource in {"status", "finalize"}:
        _keep_all_but(resource, strategy, document, old, subresource)
        if resource.stored_as == PODS:  # the class is of the creation, whatever a kubelet leaves out
            put(document.setdefault("status", {}), "qosClass", qos_class(spec_of(document)))
        elif resource.stored_as == CLAIMS:
            forget_freed_devices(document, old)
    elif subresource in PARTS:
        keep_the_rest(document, old, subresource)
    elif resource.has_status and subresource != "approval":
        _set_status(resource, document, old)
    if not resource.is_custom and resource.stored_as != SLICES:
        drop_disabled(resource.stored_as, document)
    if strategy.has_generation:  # an empty list is no change
        forget_empty_lists(resource, document)
    _keep_names_of_secrets(resource, document)
    metadata: Document = document["metadata"]
    for key in _SYSTEM:
        if key in before:
            metadata[key] = before[key]
        else:
            metadata.pop(key, None)
    if resource.stored_as == NAMESPACES and subresource != "finalize":
        document.setdefault("spec", {})["finalizers"] = (old.get("spec") or {}).get("finalizers") or []
        if not document["spec"]["finalizers"]:
            del document["spec"]["finalizers"]


def _bindings(path: str) -> tuple[str, str]:
    return f"{path}.bindingConditions", f"{path}.bindingFailureConditions"


def _lists_of_claims(path: str) -> tuple[str, ...]:
    requests = tuple(
        f"requests.{kind}.{name}" for kind in ("exactly", "firstAvailable") for name in ("selectors", "tolerations")
    )
    below = (*requests, "requests.firstAvailable", "constraints.requests", "constraints", "config.requests", "config")
    return tuple(f"{path}.{each}" for each in below)


_LISTS: Final = {
    ("rbac.authorization.k8s.io", "roles"): ("rules",),
    ("rbac.authorization.k8s.io", "clusterroles"): ("rules",),
    ("", "limitranges"): ("spec.limits",),
    ("batch", "jobs"): ("spec.podFailurePolicy.rules", "spec.successPolicy.rules"),
    ("batch", "cronjobs"): (
        "spec.jobTemplate.spec.podFailurePolicy.rules",
        "spec.jobTemplate.spec.successPolicy.rules",
    ),
    ("discovery.k8s.io", "endpointslices"): ("endpoints", "ports"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): ("spec.rules.resourceRules.namespaces",),
    CLAIMS: ("spec.devices.requests", "status.devices.conditions"),
    CLAIM_TEMPLATES: ("spec.spec.devices.requests",),
}
_OMITTED_LISTS: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    CLAIMS: (*_lists_of_claims("spec.devices"), *_bindings("status.allocation.devices.results")),
    CLAIM_TEMPLATES: _lists_of_claims("spec.spec.devices"),
    SLICES: ("spec.devices", "spec.sharedCounters", *_bindings("spec.devices")),
}


def forget_empty_lists(resource: Resource, document: Document) -> None:
    """Make an empty list that is always written null, and leave out another: upstream's storage knows no empty lists."""
    for path in _LISTS.get(resource.stored_as, ()):
        for node, name in _empty_lists(document, path):
            node[name] = None
    if resource.stored_as != SLICES or not has_two_lists(document):  # two are refused, however empty they are
        take_omitted_lists(resource, document)


def take_omitted_lists(resource: Resource, document: Document) -> list[tuple[Document, str]]:
    """Leave out the empty lists that are read only to be refused or shown; return where they were."""
    found: list[tuple[Document, str]] = []
    for path in _OMITTED_LISTS.get(resource.stored_as, ()):
        found += _empty_lists(document, path)
    for node, name in found:
        del node[name]
    return found


def _empty_lists(document: Document, path: str) -> list[tuple[Document, str]]:
    """Return the objects that have an empty list at a path, which goes through the items of lists."""
    *parents, last = path.split(".")
    nodes: list[Any] = [document]
    for name in parents:
        below = [node.get(name) for node in nodes if isinstance(node, dict)]
        nodes = [item for each in below for item in (each if isinstance(each, list) else [each])]
    return [(node, last) for node in nodes if isinstance(node, dict) and node.get(last) == []]


def _keep_names_of_secrets(resource: Resource, document: Document) -> None:
    """A ServiceAccount refers to its Secrets by name (cleanSecretReferences in pkg/registry/core/serviceaccount/strategy.go)."""
    if resource.stored_as == ("", "serviceaccounts") and document.get("secrets"):
        document["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in document["secrets"]]


def _keep_all_but(resource: Resource, strategy: Strategy, document: Document, old: Document, subresource: str) -> None:
    """Leave only what the subresource owns; the rest is the old object's."""
    new = dict(document)
    given: Document = document["metadata"]
    metadata = dict(old["metadata"])
    for key in ("resourceVersion", "managedFields"):
        metadata.pop(key, None)
        if key in given:
            metadata[key] = given[key]
    if not resource.is_custom:
        for key in METADATA:
            if key in strategy.status_keeps:
                continue
            metadata.pop(key, None)
            if key in given:
                metadata[key] = given[key]
    document.clear()
    document.update(copy_tree(old))
    document["metadata"] = metadata
    if subresource == "status":
        document.pop("status", None)
        if "status" in new:
            document["status"] = new["status"]
        return
    finalizers = (new.get("spec") or {}).get("finalizers")
    spec = document.setdefault("spec", {})
    spec.pop("finalizers", None)
    if finalizers:
        spec["finalizers"] = finalizers


def bump_generation(
    resource: Resource, strategy: Strategy, document: Document, old: Document, subresource: str
) -> None:
    """Count a change of the desired state; status and metadata (except for Deployment) do not count."""
    if not strategy.counts_changes or subresource in _KEEPS_GENERATION:
        return
    ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
    changed = any(
        not is_same(document.get(key), old.get(key)) for key in document.keys() | old.keys() if key not in ignored
    )
    metadata, before = document["metadata"], old["metadata"]
    if strategy.generation_counts_labels:
        changed = changed or metadata.get("labels") != before.get("labels")
    if strategy.generation_counts_annotations:
        changed = changed or metadata.get("annotations") != before.get("annotations")
    if changed:
        metadata["generation"] = before.get("generation", 0) + 1
    if resource.stored_as == SLICES:  # of a slice upstream counts what it then drops
        drop_disabled(SLICES, document)


def restore_defaults(resource: Resource, document: Document) -> None:
    """Set the defaults again on what preparation took away or brought back."""
    if not resource.is_custom:
        default(resource.group, resource.kind, document)
    elif resource.has_status and resource.schema is not None and resource.schema.defaults_of("status"):
        # The status was taken away after the first fit; a default of the whole status must come back.
        resource.schema.fit(document, "", [], is_root=True, keeps_nulls=True)


def _set_status(resource: Resource, document: Document, old: Document | None) -> None:
    """Make the status the old object's; a new built-in object has the empty one of its type."""
    if old is not None and "status" in old:
        document["status"] = old["status"]
        return
    document.pop("status", None)
    if old is None and not resource.is_custom and resource.shape is not None:
        zero = resource.shape.zero().get("status")
        if zero is not None:
            document["status"] = zero


__all__ = [
    "bump_generation",
    "forget_empty_lists",
    "prepare_create",
    "prepare_update",
    "restore_defaults",
    "take_omitted_lists",
]
