"""Every write: create, update, delete, in the order of steps that kube-apiserver takes.

The writer reads trees with the resource, applies defaults and rules, and swaps one record in the table. No step awaits, so a write is
atomic on the loop. What is special to one kind (definitions, namespaces) hooks in through `Hook`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import copy_tree
from ctrlruntime.apiserver.interfaces import API, Change, Document, EventType
from ctrlruntime.apiserver.registry.defaults import assign, default
from ctrlruntime.apiserver.registry.metadata import (
    finalizer_problems,
    generated_name,
    validate_metadata,
    validate_metadata_update,
)
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.strategies import Strategy, strategy_of
from ctrlruntime.apiserver.registry.validation import validate
from ctrlruntime.apiserver.storage import Key, Record, Store, Table
from ctrlruntime.errors import BadRequest, StatusCause

_LARGEST_OBJECT = 1_572_864
"""etcd refuses requests over 1.5 MiB."""
_PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_NODE = ("", "nodes")


@dataclass(slots=True)
class WriteOptions:
    """How a write is to be done; `warnings` collects what the answer's Warning headers say."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    duplicates: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    is_patch: bool = False
    patch_bumped_version: bool = False


@dataclass(slots=True)
class DeleteOptions:
    """How a delete is to be done, from the body or the query."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None


@dataclass(slots=True)
class Written:
    """What a write answers: HTTP code and the object's record (of a dry run: one that is not stored)."""

    code: int
    record: Record
    status: Document | None = None
    """Set when the answer is a Status and not the object."""


class Hook:
    """What one kind adds to the steps; every method may stay as it is."""

    def prepare(self, document: Document, old: Document | None) -> None:
        """Set what only the server sets, before validation."""

    def validate(self, document: Document, old: Document | None) -> list[StatusCause]:
        return []

    def warnings(self, document: Document) -> list[str]:
        return []

    def written(self, document: Document, old: Document | None) -> None:
        """Act on a stored object."""

    def deleting(self, document: Document) -> None:
        """Change the object as its deletion begins, e.g. add the finalizer that holds it."""

    def removed(self, document: Document) -> None:
        """Act on an object that is gone."""


class Writer:
    """The only writer of the store."""

    def __init__(
        self, store: Store, api: API, *, now: Callable[[], float] = time.time, rng: Random | None = None
    ) -> None:
        self._store = store
        self._api = api
        self._now = now
        self._rng = rng or Random()  # noqa: S311 - name suffixes, not secrets
        self.hooks: dict[tuple[str, str], Hook] = {}
        self.on_change: list[Callable[[str, str, Change], None]] = []

    # Create

    def create(self, resource: Resource, namespace: str, document: Document, options: WriteOptions) -> Written:
        """Store a new object; the document is taken over. Raises: APIStatusError as a client would see it."""
        if resource.is_terminating:
            name = str((document.get("metadata") or {}).get("name", ""))
            why = "create not allowed while custom resource definition is terminating"
            raise failures.forbidden(resource.plural, resource.group, name, why)
        document = self._read(resource, document, options)
        metadata: Document = document["metadata"]
        self._set_namespace(resource, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise failures.plain_internal("resourceVersion should not be set on objects to be created")
        table = self._table(resource)
        generated = not metadata.get("name") and bool(metadata.get("generateName"))
        if generated:
            metadata["name"] = self._free_name(table, metadata)
        self._check_namespace(resource, metadata)
        strategy = self._strategy(resource)
        self._prepare_create(resource, strategy, document)
        self._default(resource, document)
        hook = self.hooks.get(resource.stored_as)
        if hook is not None:
            hook.prepare(document, None)
        self._validate(resource, document, None, options)
        key = (metadata.get("namespace", ""), metadata["name"])
        present = table.records.get(key)
        if present is not None:
            deleting = b'"deletionTimestamp":' in present.body
            raise failures.already_exists(
                resource.plural, resource.group, key[1], deleting=deleting, generated="generateName" in metadata
            )
        if not resource.is_custom:
            assign(resource.group, resource.kind, document, self._api, rng=self._rng)
        record = self._write(table, resource, "ADDED", document, None, None, dry_run=options.dry_run)
        if hook is not None and not options.dry_run:
            hook.written(document, None)
        return Written(201, record)

    def _free_name(self, table: Table, metadata: Document) -> str:
        name = ""
        for _ in range(8):
            name = generated_name(metadata["generateName"], self._rng)
            if (metadata.get("namespace", ""), name) not in table.records:
                break
        return name

    def _prepare_create(self, resource: Resource, strategy: Strategy, document: Document) -> None:
        metadata: Document = document["metadata"]
        for key in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
            metadata.pop(key, None)
        metadata["uid"] = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self._timestamp()
        if strategy.has_generation:
            metadata["generation"] = 1
        if resource.has_status and resource.stored_as != _NODE:
            self._set_status(resource, document, None)

    # Update

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        document: Document,
        options: WriteOptions,
        subresource: str = "",
    ) -> Written:
        """Store a new state of an object (or of the part a subresource owns). Raises: APIStatusError as a client would see it."""
        table = self._table(resource)
        record = table.records.get((namespace, name))
        strategy = self._strategy(resource)
        if record is None:
            if strategy.creates_on_update and not subresource and not options.is_patch:
                self._check_name(document, name)
                document.setdefault("metadata", {}).update({"name": name})
                document["metadata"].pop("resourceVersion", None)
                return self.create(resource, namespace, document, options)
            raise failures.not_found(resource.plural, resource.group, name)
        document = self._read(resource, document, options)
        metadata: Document = document["metadata"]
        self._check_name(document, name)
        metadata["name"] = name
        self._set_namespace(resource, metadata, namespace)
        old = resource.tree(record)
        self._check_version(resource, strategy, metadata, record, options)
        self._prepare_update(resource, strategy, document, old, subresource)
        self._default(resource, document)
        hook = self.hooks.get(resource.stored_as)
        if hook is not None:
            hook.prepare(document, old)
        self._bump_generation(resource, strategy, document, old)
        self._validate(resource, document, old, options)
        if not resource.is_custom:
            assign(resource.group, resource.kind, document, self._api, old=old, rng=self._rng)
        return self._finish_update(table, resource, record, document, old, options)

    def _finish_update(
        self, table: Table, resource: Resource, record: Record, document: Document, old: Document, options: WriteOptions
    ) -> Written:
        metadata: Document = document["metadata"]
        metadata["resourceVersion"] = str(record.revision)
        if document == old and not options.patch_bumped_version:
            return Written(200, record)
        if self._ends_deletion(resource, document):
            last = self._unstored(resource, document, record.revision)
            if not options.dry_run:
                self._remove(table, resource, record, document)
            return Written(200, last)
        written = self._write(table, resource, "MODIFIED", document, record, old, dry_run=options.dry_run)
        hook = self.hooks.get(resource.stored_as)
        if hook is not None and not options.dry_run:
            hook.written(document, old)
        return Written(200, written)

    def _check_version(
        self, resource: Resource, strategy: Strategy, metadata: Document, record: Record, options: WriteOptions
    ) -> None:
        name: str = metadata["name"]
        wanted = metadata.get("resourceVersion", "")
        if wanted and not wanted.isdigit():
            raise failures.plain_internal(f'strconv.ParseUint: parsing "{wanted}": invalid syntax')
        if metadata.get("uid") and metadata["uid"] != record.uid and not options.is_patch:
            why = f"StorageError: invalid object, Code: 4, Key: {name}, ResourceVersion: 0, AdditionalErrorMsg: "
            why += f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {record.uid}"
            raise failures.conflict(resource.plural, resource.group, name, why)
        if wanted in {"", "0"}:
            if strategy.needs_version and not options.is_patch:
                text = "must be specified for an update"
                raise failures.invalid(
                    resource.plural, resource.group, name, [failures.invalid_value("metadata.resourceVersion", 0, text)]
                )
        elif int(wanted) != record.revision:
            raise failures.conflict(resource.plural, resource.group, name)

    def _prepare_update(
        self, resource: Resource, strategy: Strategy, document: Document, old: Document, subresource: str
    ) -> None:
        metadata: Document = document["metadata"]
        before: Document = old["metadata"]
        if subresource:
            self._prepare_subresource(resource, strategy, document, old, subresource)
        elif resource.has_status:
            self._set_status(resource, document, old)
        metadata = document["metadata"]
        keys = [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
        ]
        if strategy.has_generation:
            keys.append("generation")
        for key in keys:
            if key in before:
                metadata[key] = before[key]
            else:
                metadata.pop(key, None)
        if resource.stored_as == ("", "namespaces") and subresource != "finalize":
            document.setdefault("spec", {})["finalizers"] = (old.get("spec") or {}).get("finalizers") or []
            if not document["spec"]["finalizers"]:
                del document["spec"]["finalizers"]

    @staticmethod
    def _prepare_subresource(
        resource: Resource, strategy: Strategy, document: Document, old: Document, subresource: str
    ) -> None:
        """Leave only what the subresource owns; the rest is the old object's."""
        if subresource not in {"status", "finalize"}:
            return
        new = dict(document)
        metadata = dict(old["metadata"])
        metadata["resourceVersion"] = document["metadata"].get("resourceVersion", "")
        writes_metadata = strategy.status_writes_metadata or not (resource.is_custom or subresource == "finalize")
        if subresource == "status" and writes_metadata:
            for key in ("labels", "annotations", "finalizers", "ownerReferences"):
                if key == "labels" and strategy.status_keeps_labels:
                    continue
                metadata.pop(key, None)
                if key in document["metadata"]:
                    metadata[key] = document["metadata"][key]
        document.clear()
        document.update(copy_tree(old))
        document["metadata"] = metadata
        if subresource == "status":
            document.pop("status", None)
            if "status" in new:
                document["status"] = new["status"]
        else:
            finalizers = (new.get("spec") or {}).get("finalizers")
            spec = document.setdefault("spec", {})
            spec.pop("finalizers", None)
            if finalizers:
                spec["finalizers"] = finalizers

    @staticmethod
    def _bump_generation(resource: Resource, strategy: Strategy, document: Document, old: Document) -> None:
        if not strategy.has_generation:
            return
        ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
        changed = any(document.get(key) != old.get(key) for key in document.keys() | old.keys() if key not in ignored)
        metadata, before = document["metadata"], old["metadata"]
        if strategy.generation_counts_annotations:
            changed = changed or metadata.get("annotations") != before.get("annotations")
        if changed:
            metadata["generation"] = before.get("generation", 0) + 1

    # Delete

    def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Written:
        """Delete an object, or mark it when finalizers or a grace period hold it. Raises: APIStatusError as a client would see it."""
        table = self._table(resource)
        record = table.records.get((namespace, name))
        if record is None:
            raise failures.not_found(resource.plural, resource.group, name)
        self._check_preconditions(resource, record, name, options)
        if resource.stored_as == ("", "namespaces") and name in _PROTECTED_NAMESPACES:
            raise failures.forbidden("namespaces", "", name, "this namespace may not be deleted")
        old = resource.tree(record)
        document = resource.tree(record)
        metadata: Document = document["metadata"]
        strategy = self._strategy(resource)
        self._set_propagation(metadata, strategy, options)
        was_deleting = "deletionTimestamp" in metadata
        hook = self.hooks.get(resource.stored_as)
        if hook is not None and not was_deleting:
            hook.deleting(document)
        grace = self._grace(resource, document, options)
        held = metadata.get("finalizers") or (
            resource.stored_as == ("", "namespaces") and (document.get("spec") or {}).get("finalizers")
        )
        if not held and not grace:
            return self._delete_now(table, resource, strategy, record, document, options, has_grace=grace is not None)
        self._mark_deleted(resource, strategy, document, grace or 0)
        metadata["resourceVersion"] = str(record.revision)
        if document == old:
            return Written(200, record)
        written = self._write(table, resource, "MODIFIED", document, record, old, dry_run=options.dry_run)
        if hook is not None and not options.dry_run:
            hook.written(document, old)
        return Written(200, written)

    def _delete_now(
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
        if has_grace and "deletionTimestamp" not in metadata and not options.dry_run:
            # A pod is marked before it goes, also when it goes at once: watchers see MODIFIED, then DELETED.
            old = resource.tree(record)
            self._mark_deleted(resource, strategy, document, 0)
            record = self._write(table, resource, "MODIFIED", document, record, old, dry_run=False)
            document = resource.tree(record)
        last = self._unstored(resource, document, record.revision)
        if not options.dry_run:
            self._remove(table, resource, record, document)
        if strategy.answers_with_object:
            return Written(200, last)
        return Written(
            200, last, failures.success(resource.plural, resource.group, metadata["name"], metadata.get("uid", ""))
        )

    def _grace(self, resource: Resource, document: Document, options: DeleteOptions) -> int | None:
        """Return the seconds a pod may take to end; None for kinds that have no grace period."""
        if resource.stored_as != ("", "pods"):
            return None
        spec: Document = document.get("spec") or {}
        if not spec.get("nodeName") or (document.get("status") or {}).get("phase") in {"Failed", "Succeeded"}:
            return 0
        asked = options.grace_period_seconds
        grace: int = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 30)
        present = document["metadata"].get("deletionGracePeriodSeconds")
        if present is not None and (asked is None or grace >= present):
            return int(present)
        return max(grace, 0)

    def _mark_deleted(self, resource: Resource, strategy: Strategy, document: Document, grace: int) -> None:
        metadata: Document = document["metadata"]
        if "deletionTimestamp" not in metadata or grace < metadata.get("deletionGracePeriodSeconds", 0):
            if "deletionTimestamp" not in metadata and (strategy.has_generation or metadata.get("generation")):
                metadata["generation"] = metadata.get("generation", 0) + 1
            metadata["deletionTimestamp"] = self._timestamp(grace)
            metadata["deletionGracePeriodSeconds"] = grace
        if resource.stored_as == ("", "namespaces"):
            metadata.pop("deletionGracePeriodSeconds", None)
            document.setdefault("status", {})["phase"] = "Terminating"

    @staticmethod
    def _set_propagation(metadata: Document, strategy: Strategy, options: DeleteOptions) -> None:
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

    @staticmethod
    def _check_preconditions(resource: Resource, record: Record, name: str, options: DeleteOptions) -> None:
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

    # Steps

    def _read(self, resource: Resource, document: Document, options: WriteOptions) -> Document:
        unknown: list[str] = []
        fitted = resource.fit(document, unknown)
        if fitted.get("metadata") is None:
            fitted["metadata"] = {}
        problems = [f'unknown field "{path}"' for path in unknown]
        problems += [f'duplicate field "{path}"' for path in options.duplicates]
        if problems:
            if options.field_validation == "Strict":
                raise BadRequest(_strict(resource, problems))
            if options.field_validation == "Warn":
                options.warnings.extend(problems)
        if resource.deprecation_warning:
            options.warnings.append(resource.deprecation_warning)
        return fitted

    @staticmethod
    def _set_namespace(resource: Resource, metadata: Document, namespace: str) -> None:
        if not resource.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.get("namespace") and metadata["namespace"] != namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = namespace

    @staticmethod
    def _check_name(document: Document, name: str) -> None:
        metadata = document.get("metadata") or {}
        given = metadata.get("name")
        if given and given != name:
            raise BadRequest(f"the name of the object ({given}) does not match the name on the URL ({name})")

    def _check_namespace(self, resource: Resource, metadata: Document) -> None:
        if not resource.namespaced:
            return
        namespace: str = metadata["namespace"]
        record = self._store.table("", "namespaces").records.get(("", namespace))
        if record is None:
            raise failures.not_found("namespaces", "", namespace)
        if b'"deletionTimestamp":' in record.body:
            raise failures.namespace_terminating(resource.plural, resource.group, metadata.get("name", ""), namespace)

    @staticmethod
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

    @staticmethod
    def _default(resource: Resource, document: Document) -> None:
        if resource.is_custom:
            # The status was taken away after the first fit; a default of the whole status must come back.
            if resource.has_status and resource.schema is not None and resource.schema.defaults_of("status"):
                resource.schema.fit(document, "", [], is_root=True)
            return
        default(resource.group, resource.kind, document)

    def _validate(self, resource: Resource, document: Document, old: Document | None, options: WriteOptions) -> None:
        metadata: Document = document["metadata"]
        group, kind = resource.group, resource.kind
        causes = validate_metadata(group, kind, metadata)
        refused, warnings = finalizer_problems(resource.is_custom, metadata)
        causes += refused
        options.warnings.extend(warnings)
        if old is not None:
            causes += validate_metadata_update(metadata, old["metadata"])
        if resource.is_custom:
            causes += self._validate_custom(resource, document, old)
        else:
            causes += validate(group, kind, document, old)
        hook = self.hooks.get(resource.stored_as)
        if hook is not None:
            causes += hook.validate(document, old)
            options.warnings.extend(hook.warnings(document))
        if causes:
            raise failures.invalid(kind, group, str(metadata.get("name", "")), causes)

    @staticmethod
    def _validate_custom(resource: Resource, document: Document, old: Document | None) -> list[StatusCause]:
        if resource.schema is None:
            return []
        body = {key: value for key, value in document.items() if key != "metadata"}
        if old is None:
            return resource.schema.validate(body, "")
        return resource.schema.validate(body, "", {key: value for key, value in old.items() if key != "metadata"})

    @staticmethod
    def _ends_deletion(resource: Resource, document: Document) -> bool:
        metadata: Document = document["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return False
        if resource.stored_as == ("", "namespaces"):
            return not (document.get("spec") or {}).get("finalizers")
        return not metadata.get("deletionGracePeriodSeconds")

    # Storage

    def _write(
        self,
        table: Table,
        resource: Resource,
        type: EventType,
        document: Document,
        old_record: Record | None,
        old: Document | None,
        *,
        dry_run: bool,
    ) -> Record:
        metadata: Document = document["metadata"]
        revision = old_record.revision if old_record else 0
        if not dry_run:
            revision = self._store.next_revision()
        if revision:
            metadata["resourceVersion"] = str(revision)
        record = self._unstored(resource, document, revision)
        if len(record.body) > _LARGEST_OBJECT:
            raise failures.plain_internal("etcdserver: request is too large")
        if not dry_run:
            change = Change(type, document, old, revision) if self._is_heard(table) else None
            self._commit(table, type, record, old_record, change)
        return record

    def _remove(self, table: Table, resource: Resource, record: Record, document: Document) -> None:
        revision = self._store.next_revision()
        last = {**document, "metadata": {**document["metadata"], "resourceVersion": str(revision)}}
        gone = self._unstored(resource, last, revision)
        change = Change("DELETED", last, document, revision) if self._is_heard(table) else None
        self._commit(table, "DELETED", gone, record, change)
        hook = self.hooks.get(resource.stored_as)
        if hook is not None:
            hook.removed(last)
        elif resource.is_terminating and not table.records:
            self.hooks[DEFINITIONS].removed(last)

    def _commit(self, table: Table, type: EventType, record: Record, old: Record | None, change: Change | None) -> None:
        self._store.commit(table, type, record, old, change)
        if change is not None:
            for listener in tuple(self.on_change):
                listener(table.group, table.plural, change)

    def _is_heard(self, table: Table) -> bool:
        return table.has_listeners or bool(self.on_change)

    @staticmethod
    def _unstored(resource: Resource, document: Document, revision: int) -> Record:
        metadata: Document = document["metadata"]
        key: Key = (metadata.get("namespace", ""), metadata["name"])
        storage = resource.storage
        if (
            storage is not resource
        ):  # conversion without a webhook: another apiVersion, and what its schema has not is lost
            document = copy_tree({**document, "apiVersion": storage.api_version})
            if storage.schema is not None:
                storage.schema.fit(document, "", [], is_root=True)
            resource = storage
        return Record(
            key, revision, resource.encode(document), resource, metadata.get("labels"), metadata.get("uid", "")
        )

    def _table(self, resource: Resource) -> Table:
        return self._store.table(*resource.stored_as)

    @staticmethod
    def _strategy(resource: Resource) -> Strategy:
        return strategy_of(*resource.stored_as, is_custom=resource.is_custom)

    def _timestamp(self, offset: float = 0.0) -> str:
        return datetime.fromtimestamp(self._now() + offset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


DEFINITIONS = ("apiextensions.k8s.io", "customresourcedefinitions")


def _strict(resource: Resource, problems: list[str]) -> str:
    text = f"strict decoding error: {', '.join(problems)}"
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {text}'
