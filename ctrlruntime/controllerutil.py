"""Helpers for reconcilers: owner references, finalizers, and create or update.

The functions for owners and finalizers change the object in memory and send no request. `create_or_update` and `create_or_patch` use the
client that you pass. Rules for owners are checked before any request.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Final, TypeAlias, TypeVar

from ctrlruntime.api import Object, PartialObjectMetadata, gvk_for, kind_of, object_key
from ctrlruntime.api.meta.v1 import OwnerReference
from ctrlruntime.api.metadata import NamespacedName, ObjectKey
from ctrlruntime.api.model import model_like
from ctrlruntime.client.codec import rebound_key
from ctrlruntime.client.interfaces import Client, PropagationPolicy, Reader
from ctrlruntime.client.patches import merge_patch
from ctrlruntime.client.unchanged import is_unchanged, unchanged_writes_of
from ctrlruntime.errors import AlreadyExists, AlreadyOwnedError, Conflict, DecodeError, NotFound
from ctrlruntime.patch import create_merge_patch
from ctrlruntime.tracking import set_tracked_owner, tracking_labels

__all__ = [
    "Mutate",
    "OperationResult",
    "add_finalizer",
    "contains_finalizer",
    "controller_of",
    "create_or_patch",
    "create_or_update",
    "delete_tracked_dependents",
    "has_controller",
    "has_owner",
    "remove_controller_reference",
    "remove_finalizer",
    "remove_owner_reference",
    "set_controller_reference",
    "set_owner_reference",
    "set_tracked_owner",
    "tracking_labels",
]

T = TypeVar("T", bound=Object)

Mutate: TypeAlias = Callable[[T], Awaitable[object] | object]
"""Changes an object to the desired state, in place. Plain or async.

It may be called twice, and must not change the name or the namespace.
"""


class OperationResult(StrEnum):
    """The action of `create_or_update` and `create_or_patch`."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"
    UPDATED_STATUS = "updatedStatus"
    """The object and its status were written."""
    UPDATED_STATUS_ONLY = "updatedStatusOnly"


_RESULTS: Final = {
    (False, False): OperationResult.UNCHANGED,
    (True, False): OperationResult.UPDATED,
    (True, True): OperationResult.UPDATED_STATUS,
    (False, True): OperationResult.UPDATED_STATUS_ONLY,
}
"""The result by whether the object and its status changed."""


# --- owners ----------------------------------------------------------------------------------------------------------


def set_controller_reference(owner: Object, obj: Object, *, block_owner_deletion: bool = True) -> None:
    """Make `owner` the controller of `obj`.

    Events of `obj` then enqueue the owner, and Kubernetes deletes `obj` with its owner. A reference to the same owner in another version is
    replaced.

    Raises: AlreadyOwnedError if another object is the controller; ValueError if the API does not allow this owner, or if `owner` has no
    uid.
    """
    reference = _reference(owner, obj)
    reference.controller = True
    reference.block_owner_deletion = block_owner_deletion
    for existing in obj.metadata.owner_references:
        if existing.controller and not _is_same_owner(existing, reference):
            raise AlreadyOwnedError(
                f"{_name(obj)} has the controller {existing.kind} {existing.name}, so {_name(owner)} cannot be its controller. "
                "Use set_owner_reference to add another owner, or give the object another name"
            )
    _put(obj, reference)


def set_owner_reference(owner: Object, obj: Object, *, block_owner_deletion: bool | None = None) -> None:
    """Add `owner` to the owners of `obj`.

    Kubernetes deletes `obj` when all its owners are deleted.

    Raises: ValueError as set_controller_reference.
    """
    reference = _reference(owner, obj)
    reference.block_owner_deletion = block_owner_deletion
    for existing in obj.metadata.owner_references:
        if _is_same_owner(existing, reference):
            # Being an owner takes nothing from one who is the controller already.
            reference.controller = existing.controller
            if block_owner_deletion is None:
                reference.block_owner_deletion = existing.block_owner_deletion
    _put(obj, reference)


def remove_owner_reference(owner: Object, obj: Object) -> bool:
    """Remove `owner` from the owners of `obj`. Return whether it was an owner."""
    return _remove(obj, lambda reference: _refers_to(reference, owner))


def remove_controller_reference(owner: Object, obj: Object) -> bool:
    """Remove `owner` from the owners of `obj` if it is the controller.

    Return whether it was.
    """
    return _remove(obj, lambda reference: bool(reference.controller) and _refers_to(reference, owner))


def has_owner(owner: Object, obj: Object) -> bool:
    """Return whether `owner` is an owner of `obj`.

    An object of the same name with another uid is not.
    """
    return any(_refers_to(reference, owner) for reference in obj.metadata.owner_references)


def has_controller(obj: Object) -> bool:
    """Return whether one owner of `obj` is its controller."""
    return controller_of(obj) is not None


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the reference to the controller of `obj`, or None.

    As metav1.GetControllerOf in Go.
    """
    return next((reference for reference in obj.metadata.owner_references if reference.controller), None)


def _reference(owner: Object, obj: Object) -> OwnerReference:
    metadata = owner.metadata
    if not metadata.name or not metadata.uid:
        raise ValueError(
            f"{_name(owner)} cannot be an owner: it has no uid. Create it, or read it from the API server first"
        )
    _check_scope(owner, obj)
    kind = gvk_for(owner)
    return OwnerReference(api_version=kind.api_version, kind=kind.kind, name=metadata.name, uid=metadata.uid)


def _check_scope(owner: Object, obj: Object) -> None:
    # "Cross-namespace owner references are disallowed by design": the garbage collector deletes such children
    # (kubernetes.io/docs/concepts/architecture/garbage-collection).
    home, namespace = owner.metadata.namespace, obj.metadata.namespace
    if not home or home == namespace:
        return
    what = (
        f"is in namespace {namespace}"
        if namespace
        else "is cluster-scoped"
        if kind_of(obj).scope == "Cluster"
        else f"has no namespace yet (set metadata.namespace to {home} if it belongs there)"
    )
    raise ValueError(
        f"{_name(owner)} cannot own {_name(obj)}: the owner is in namespace {home}, and the object {what}. Instead, label the "
        "object with set_tracked_owner, and watch it with enqueue_request_for_tracked_owner. Call delete_tracked_dependents in a finalizer "
        "of the owner"
    )


def _put(obj: Object, reference: OwnerReference) -> None:
    references = obj.metadata.owner_references
    for position, existing in enumerate(references):
        if _is_same_owner(existing, reference):
            references[position] = reference
            return
    references.append(reference)


def _remove(obj: Object, unwanted: Callable[[OwnerReference], bool]) -> bool:
    references = obj.metadata.owner_references
    kept = [reference for reference in references if not unwanted(reference)]
    if len(kept) == len(references):
        return False
    obj.metadata.owner_references = kept
    return True


def _is_same_owner(one: OwnerReference, other: OwnerReference) -> bool:
    return one.kind == other.kind and one.name == other.name and _group(one) == _group(other)


def _refers_to(reference: OwnerReference, owner: Object) -> bool:
    kind = gvk_for(owner)
    return (
        (_group(reference), reference.kind, reference.name) == (kind.group, kind.kind, owner.metadata.name)
        and (not owner.metadata.uid or reference.uid == owner.metadata.uid)
    )  # fmt: skip


def _group(reference: OwnerReference) -> str:
    return reference.api_version.rpartition("/")[0]


# --- tracked children: where an owner reference is not possible -------------------------------------------------------------


async def delete_tracked_dependents(
    client: Client, owner: Object, *kinds: type[Any], propagation_policy: PropagationPolicy | None = "Background"
) -> int:
    """Delete the dependents that `owner` tracks, and return how many still exist.

    Call it in a finalizer of the owner, and remove the finalizer when it returns 0. Each deleted dependent enqueues the owner again. It
    reads from the API server, in all namespaces, because the cache may lack dependents. Raises: the errors of the client.

    Args:
        client: the client that deletes them.
        owner: their owner.
        kinds: the kinds of the dependents (see `set_tracked_owner`).
        propagation_policy: what happens to their own dependents.

    """
    remaining = 0
    for kind in kinds:
        found = await client.api_reader.list(PartialObjectMetadata.of(kind), labels=tracking_labels(owner))
        for child in found:
            remaining += not await _is_deleted(client, child, propagation_policy)
    return remaining


async def _is_deleted(
    client: Client, child: PartialObjectMetadata, propagation_policy: PropagationPolicy | None
) -> bool:
    """Delete a child unless that has been asked for; return whether it is gone for certain."""
    if child.metadata.deletion_timestamp is not None:
        return False
    try:
        await client.delete(child, uid=child.metadata.uid, propagation_policy=propagation_policy)
    except NotFound:
        return True
    except Conflict:
        return False  # a new object of the name: the next call looks at it
    return False


# --- finalizers ------------------------------------------------------------------------------------------------------


def add_finalizer(obj: Object, finalizer: str) -> bool:
    """Add a finalizer to the object in memory.

    Return whether the list changed and must be written.

    Does nothing if the object is being deleted, because the server would reject it. Write the object with `client.update`, or with
    `merge_from(base, optimistic_lock=True)`. A merge patch without the lock could drop finalizers of other clients.
    """
    if "/" not in finalizer:
        raise ValueError(
            f"cannot use the finalizer {finalizer!r}: it has no domain. Write example.com/{finalizer or 'name'}"
        )
    if obj.metadata.deletion_timestamp is not None or finalizer in obj.metadata.finalizers:
        return False
    obj.metadata.finalizers.append(finalizer)
    return True


def remove_finalizer(obj: Object, finalizer: str) -> bool:
    """Remove a finalizer from the object in memory.

    Return whether the list changed and must be written.
    """
    kept = [name for name in obj.metadata.finalizers if name != finalizer]
    if len(kept) == len(obj.metadata.finalizers):
        return False
    obj.metadata.finalizers = kept
    return True


def contains_finalizer(obj: Object, finalizer: str) -> bool:
    """Return whether the object has this finalizer."""
    return finalizer in obj.metadata.finalizers


# --- create or … -----------------------------------------------------------------------------------------------------


async def create_or_update(
    client: Client, kind: type[T], key: ObjectKey, mutate: Mutate[T] | None = None, *, reader: Reader | None = None
) -> tuple[T, OperationResult]:
    """Create or update the object at `key` so that it matches the result of `mutate`.

    Return the object as the server has it, and the action. The result is UNCHANGED if nothing was sent, or if the server changed nothing.

    Args:
        client: the client that reads and writes.
        kind: the class of the kind.
        key: namespace and name, or a request.
        mutate: changes the current object in place, or a new one with only its name. It does not change the status: use `client.status`, or
            create_or_patch.
        reader: reads the object if a create fails because the cache has not seen it. Default: `client.api_reader`.

    If the server sets fields that `mutate` leaves out, the same write would change nothing. It is skipped for a minute, later for up to ten.
    It is sent at once if the object changed, at a resync (`sync_period`), and if a CRD, webhook or admission policy was written through
    this client or changed in its cache.

    Raises: ValueError if `mutate` changes name or namespace; Conflict and the other errors of the client.

    """
    obj, before, made = await _find_or_create(client, kind, key, mutate, reader)
    if made:
        return obj, OperationResult.CREATED
    main, wanted = _main(kind, before), _main(kind, model_like(obj, before))
    if not _has_changed(kind, main, wanted):
        return obj, OperationResult.UNCHANGED
    known, names = unchanged_writes_of(client), gvk_for(kind)
    if known.leaves_out("update", names, main, wanted):
        return kind.from_dict(before), OperationResult.UNCHANGED
    updated = await client.update(obj)
    unchanged = known.note(names, main, wanted, _main(kind, updated.to_dict()))
    return updated, OperationResult.UNCHANGED if unchanged else OperationResult.UPDATED


async def create_or_patch(
    client: Client, kind: type[T], key: ObjectKey, mutate: Mutate[T] | None = None, *, reader: Reader | None = None
) -> tuple[T, OperationResult]:
    """Create the object, or send only the difference as merge patches.

    Like `create_or_update`, but it also writes the status.

    A merge patch replaces lists completely and has no conflict detection: two writers of one list overwrite each other.
    """
    obj, before, made = await _find_or_create(client, kind, key, mutate, reader, with_status=True)
    if made:
        return obj, OperationResult.CREATED
    after = model_like(obj, before)
    main, wanted, names = _main(kind, before), _main(kind, after), gvk_for(kind)
    known, has_main = unchanged_writes_of(client), _has_changed(kind, main, wanted)
    is_left_out = has_main and known.leaves_out("patch", names, main, wanted)
    # An answer overwrites obj, status included: what to send is settled before the first request.
    status_before, status_wanted = _status(kind, before), _status(kind, after)
    has_status = _has_changed(kind, status_before, status_wanted)
    main_changed = status_changed = False
    if has_main and not is_left_out:
        await client.patch(obj, merge_patch(create_merge_patch(main, wanted)))
        main_changed = not known.note(names, main, wanted, _main(kind, obj.to_dict()))
    elif is_left_out and not has_status:
        obj = kind.from_dict(before)
    if has_status:
        found = obj.to_dict() if main_changed else before
        await client.status.patch(obj, merge_patch(create_merge_patch(status_before, status_wanted)))
        status_changed = not is_unchanged(found, obj.to_dict())
    return obj, _RESULTS[main_changed, status_changed]


async def _find_or_create(
    client: Client,
    kind: type[T],
    key: ObjectKey,
    mutate: Mutate[T] | None,
    reader: Reader | None,
    *,
    with_status: bool = False,
) -> tuple[T, dict[str, Any], bool]:
    """Return the mutated object, its wire form before, and whether it was created."""
    # By discovery and not by the class: an Unstructured kind does not know its scope.
    resource = await client.mapper.resource_for(gvk_for(kind))
    wanted = NamespacedName(key.namespace if resource.namespaced else "", key.name)
    found = await client.get_or_none(kind, rebound_key(key, wanted.namespace))
    if found is None:
        fresh = _fresh(kind, wanted)
        await _mutate(fresh, wanted, mutate)
        status = _status(kind, fresh.to_dict()) if with_status else {}
        try:
            created = await client.create(fresh)
        except AlreadyExists:
            # The cache has not seen it yet, or another writer was faster.
            found = await (reader or client.api_reader).get_or_none(kind, wanted)
            if found is None:
                raise
        else:
            if status:
                created = await client.status.patch(created, merge_patch(status))
            return created, {}, True
    before = found.to_dict()
    await _mutate(found, wanted, mutate)
    return found, before, False


def _fresh(kind: type[T], name: NamespacedName) -> T:
    metadata = {"name": name.name, **({"namespace": name.namespace} if name.namespace else {})}
    names = gvk_for(kind)
    # Decoding, unlike the constructor, fills required fields with their zero: `mutate` is what sets them.
    return kind.from_dict({"apiVersion": names.api_version, "kind": names.kind, "metadata": metadata})


async def _mutate(obj: T, wanted: NamespacedName, mutate: Mutate[T] | None) -> None:
    if mutate is None:
        return
    outcome = mutate(obj)
    if inspect.isawaitable(outcome):
        await outcome
    if object_key(obj) != wanted:
        raise ValueError(
            f"the mutate function changed {type(obj).__name__} {wanted} to {object_key(obj)}. It must not change name or namespace"
        )


def _has_status(kind: type[Object]) -> bool:
    return kind_of(kind).status_subresource is not False


def _main(kind: type[Object], wire: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wire.items() if name != "status"} if _has_status(kind) else wire


def _status(kind: type[Object], wire: dict[str, Any]) -> dict[str, Any]:
    return {"status": wire["status"]} if _has_status(kind) and wire.get("status") else {}


def _has_changed(kind: type[Object], before: dict[str, Any], after: dict[str, Any]) -> bool:
    if before == after:
        return False
    try:
        # Not the same text, but maybe the same content: a quantity of 0.5 is one of 500m.
        return kind.from_dict(before) != kind.from_dict(after)
    except DecodeError:
        return True


def _name(obj: Object) -> str:
    return f"{obj.kind or type(obj).__name__} {object_key(obj)}"
