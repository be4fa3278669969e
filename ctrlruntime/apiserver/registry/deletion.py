"""How an object goes: at once, or marked until finalizers and a grace period let it.

The rules (preconditions, what holds the object, how long a Pod may take) are pure functions on trees; an update asks them too.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import DEFINITIONS, NAMESPACES, PODS
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.records import Records, record_of
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.strategies import Strategy, strategy_of
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Written
from ctrlruntime.apiserver.storage import Record, Table
from ctrlruntime.schema.trees import Document

_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Deletion:
    """The steps of a delete, between which admission is asked."""

    def __init__(self, extensions: WriteExtensions, records: Records, *, now: Callable[[], float]) -> None:
        self._extensions = extensions
        self._records = records
        self._now = now

    @staticmethod
    def begin(table: Table, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Record:
        """Return the record to delete. Raises: NotFound, Conflict by a precondition, Forbidden for namespaces that stay."""
        record = table.records.get((namespace, name))
        if record is None:
            raise failures.not_found(resource.plural, resource.group, name)
        check_preconditions(resource, record, options)
        if resource.stored_as == NAMESPACES and name in _PROTECTED_NAMESPACES:
            raise failures.forbidden("namespaces", "", name, "this namespace may not be deleted")
        return record

    def store(self, table: Table, resource: Resource, record: Record, options: DeleteOptions) -> Written:
        """Take the record out of its table, or mark the object when something holds it."""
        if resource.conversion is not None:
            resource = resource.storage  # a deletion changes metadata alone: no webhook is needed to store it
        old = resource.tree(record)
        document = resource.tree(record)
        metadata: Document = document["metadata"]
        strategy = strategy_of(*resource.stored_as, is_custom=resource.is_custom)
        set_propagation(metadata, strategy, options)
        hook = self._extensions.hook_of(resource)
        if "deletionTimestamp" not in metadata:
            hook.deleting(document)
        grace = grace_of(resource, document, options)
        if not is_held(resource, document) and not grace:
            return self._remove(table, resource, strategy, record, document, options, has_grace=grace is not None)
        mark_deleted(resource, strategy, document, grace or 0, timestamp(self._now() + (grace or 0)))
        metadata["resourceVersion"] = str(record.revision)
        if document == old:
            return Written(200, record)
        written = self._records.write(table, resource, "MODIFIED", document, record, old, dry_run=options.dry_run)
        if not options.dry_run:
            hook.written(document, old)
        return Written(200, written)

    def _remove(
        self,
        table: Table,
        resource: Resource,
        strategy: Strategy,
        record: Record,
        document: Document,
        options: DeleteOptions,
        *,
        has_grace: bool,
    ) -> Written:
        metadata: Document = document["metadata"]
        if has_grace and metadata.get("deletionGracePeriodSeconds") != 0 and not options.dry_run:
            # A pod is marked before it goes, also when it goes at once: watchers see MODIFIED, then DELETED.
            old = resource.tree(record)
            mark_deleted(resource, strategy, document, 0, timestamp(self._now()))
            record = self._records.write(table, resource, "MODIFIED", document, record, old, dry_run=False)
            document = resource.tree(record)
        last = record_of(resource, document, record.revision)
        if not options.dry_run:
            last = self._records.remove(table, resource, record, document)
        if strategy.answers_with_object:
            return Written(200, last)
        name, uid = metadata["name"], metadata.get("uid", "")
        return Written(200, last, failures.success(resource.plural, resource.group, name, uid))


def check_preconditions(resource: Resource, record: Record, options: DeleteOptions) -> None:
    """Raises: Conflict when the object is not the one the client means."""
    name = record.key[1]
    if options.uid is not None and options.uid != record.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise failures.conflict(resource.kind, resource.group, name, why)
    if options.resource_version is not None and options.resource_version != str(record.revision):
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({record.revision}). The object might have been modified"
        )
        raise failures.conflict(resource.kind, resource.group, name, why)


def set_propagation(metadata: Document, strategy: Strategy, options: DeleteOptions) -> None:
    """Write the propagation policy into the finalizers, as the garbage collector reads it."""
    policy = options.propagation_policy
    if options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    finalizers: list[str] = metadata.get("finalizers") or []
    if policy is None:
        if _FOREGROUND in finalizers or _ORPHAN in finalizers:
            return
        policy = "Orphan" if strategy.orphans_by_default else "Background"
    kept = [name for name in finalizers if name not in {_FOREGROUND, _ORPHAN}]
    if policy == "Foreground":
        kept.append(_FOREGROUND)
    elif policy == "Orphan":
        kept.append(_ORPHAN)
    if kept:
        metadata["finalizers"] = kept
    else:
        metadata.pop("finalizers", None)


def is_held(resource: Resource, document: Document) -> bool:
    """Tell whether finalizers keep the object from going."""
    if document["metadata"].get("finalizers"):
        return True
    return resource.stored_as == NAMESPACES and bool((document.get("spec") or {}).get("finalizers"))


def grace_of(resource: Resource, document: Document, options: DeleteOptions) -> int | None:
    """Return the seconds a Pod may take to end; None for kinds that have no grace period."""
    if resource.stored_as != PODS:
        return None
    spec: Document = document.get("spec") or {}
    if not spec.get("nodeName") or (document.get("status") or {}).get("phase") in {"Failed", "Succeeded"}:
        return 0
    asked = options.grace_period_seconds
    grace: int = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30)
    if grace < 0:
        grace = 1  # as little as there is
    present = document["metadata"].get("deletionGracePeriodSeconds")
    if present is not None and (asked is None or grace >= present):
        return int(present)
    return grace


def mark_deleted(resource: Resource, strategy: Strategy, document: Document, grace: int, moment: str) -> None:
    """Set the deletion timestamp (`moment`: when the grace is over), or shorten the grace of an earlier delete."""
    metadata: Document = document["metadata"]
    if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
        is_definition = resource.stored_as == DEFINITIONS  # its deletion is an update of its own
        counts = not is_definition and (strategy.has_generation or metadata.get("generation"))
        if "deletionTimestamp" not in metadata and counts:
            metadata["generation"] = metadata.get("generation", 0) + 1
        metadata["deletionTimestamp"] = moment
        if not is_definition:
            metadata["deletionGracePeriodSeconds"] = grace
    if resource.stored_as == NAMESPACES:
        metadata.pop("deletionGracePeriodSeconds", None)
        document.setdefault("status", {})["phase"] = "Terminating"


def ends_deletion(resource: Resource, document: Document) -> bool:
    """Tell whether this state of a deleted object lets it go."""
    metadata: Document = document["metadata"]
    if "deletionTimestamp" not in metadata or is_held(resource, document):
        return False
    return resource.stored_as == NAMESPACES or not metadata.get("deletionGracePeriodSeconds")


__all__ = ["Deletion", "ends_deletion"]
