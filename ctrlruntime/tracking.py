"""Dependents that cannot have an owner reference: in other namespaces, or cluster-scoped with a namespaced owner.

With an owner reference across namespaces the garbage collector would delete the dependent. A *tracked* dependent has a label with its
owner's uid, so that it can be listed. It also has an annotation with the owner's namespace and name, so that its events enqueue the owner
(`handler.enqueue_request_for_tracked_owner`). Kubernetes does not delete it: the owner needs a finalizer that calls
`delete_tracked_dependents`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlruntime.api import Object, gvk_for, object_key
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import AlreadyOwnedError


def tracking_label(kind: GroupVersionKind) -> str:
    """Return the label with the owner's uid, for owners of a kind in any version."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}-uid"


def tracking_annotation(kind: GroupVersionKind) -> str:
    """Return the annotation with the owner's key: `namespace/name`, or `name` of a cluster-scoped owner."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}"


def set_tracked_owner(owner: Object, obj: Object) -> None:
    """Make `obj` a tracked dependent of `owner`, in any namespace.

    Raises: ValueError if `owner` has no uid, AlreadyOwnedError if another object of its kind tracks `obj`.
    """
    kind, metadata = gvk_for(owner), obj.metadata
    if not owner.metadata.uid:
        raise ValueError(
            f"{kind.kind} {object_key(owner)} cannot be a tracked owner: it has no uid. Create it, or read it from the API server first"
        )
    label, annotation = tracking_label(kind), tracking_annotation(kind)
    if metadata.labels.get(label, owner.metadata.uid) != owner.metadata.uid:
        raise AlreadyOwnedError(
            f"{gvk_for(obj).kind} {object_key(obj)} is tracked by {kind.kind} {metadata.annotations.get(annotation, 'unknown')}. "
            "Give the object another name"
        )
    metadata.labels[label] = owner.metadata.uid
    metadata.annotations[annotation] = str(object_key(owner))


def tracking_labels(owner: Object) -> dict[str, str]:
    """Return the labels that select the tracked dependents of an owner.

    For example `client.list(kind, labels=tracking_labels(owner))`.
    """
    return {tracking_label(gvk_for(owner)): owner.metadata.uid}


def tracked_owner(kind: GroupVersionKind, annotations: Mapping[str, str]) -> NamespacedName | None:
    """Return the key of the owner in the annotations of a dependent, or None."""
    named = annotations.get(tracking_annotation(kind), "")
    namespace, _, name = named.rpartition("/")
    return NamespacedName(namespace, name) if name else None
