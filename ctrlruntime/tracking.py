"""Children that an owner cannot own: those in other namespaces, and cluster-scoped ones of a namespaced owner.

An owner reference across namespaces makes the garbage collector delete the child. A *tracked* child bears a label with
its owner's uid instead, by which all of them are found, and an annotation with the owner's namespace and name, by which
its events reach the owner (`handler.enqueue_request_for_tracked_owner`). Nothing deletes it by itself: the owner keeps a
finalizer and calls `delete_tracked_dependents` before it goes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlruntime.api import Object, gvk_for, object_key
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import AlreadyOwnedError


def tracking_label(kind: GroupVersionKind) -> str:
    """Return the label under which children of owners of a kind bear the owner's uid, whatever the kind's version."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}-uid"


def tracking_annotation(kind: GroupVersionKind) -> str:
    """Return the annotation in which such a child names its owner: `namespace/name`, or `name` of a cluster-scoped one."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}"


def set_tracked_owner(owner: Object, obj: Object) -> None:
    """Make `obj` a tracked child of `owner`, in whatever namespace either is.

    Raises: ValueError when `owner` was never read from the server, AlreadyOwnedError when another object of its kind tracks `obj`.
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
    """Return the labels by which to list the tracked children of `owner`: `client.list(kind, labels=tracking_labels(owner))`."""
    return {tracking_label(gvk_for(owner)): owner.metadata.uid}


def tracked_owner(kind: GroupVersionKind, annotations: Mapping[str, str]) -> NamespacedName | None:
    """Return the owner of a kind that a child's annotations name, or None."""
    named = annotations.get(tracking_annotation(kind), "")
    namespace, _, name = named.rpartition("/")
    return NamespacedName(namespace, name) if name else None
