"""How an object changes: from an edit of its present state to the next record, in three steps between which admission is asked.

`begin` edits and reads, `complete` puts back what the write may not change and validates, `store` swaps the record in. None of them awaits.
"""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.go_values import parse_uint
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.apiserver.registry import signing_requests
from ctrlruntime.apiserver.registry.assignment import assign
from ctrlruntime.apiserver.registry.deletion import ends_deletion
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.metadata_rules import repeated_identity
from ctrlruntime.apiserver.registry.object_validation import validate_object
from ctrlruntime.apiserver.registry.preparation import (
    bump_generation,
    forget_empty_lists,
    prepare_update,
    restore_defaults,
)
from ctrlruntime.apiserver.registry.reading import check_name, check_named, read, set_namespace
from ctrlruntime.apiserver.registry.records import Records, record_of
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.registry.strategies import strategy_of
from ctrlruntime.apiserver.registry.writes import Edit, Pending, SubresourceView, WriteOptions, Written
from ctrlruntime.apiserver.storage import Key, Record, Table
from ctrlruntime.schema.metadata import drop_repeated_owners, identity_causes
from ctrlruntime.schema.trees import Document, is_same, settle_numbers


class Update:
    """The steps of an update, whether a PUT, a patch or an apply."""

    def __init__(self, api: API, extensions: WriteExtensions, records: Records, *, now: Callable[[], float]) -> None:
        self._api = api
        self._extensions = extensions
        self._records = records
        self._now = now

    def begin(
        self,
        resource: Resource,
        table: Table,
        record: Record,
        edit: Edit,
        options: WriteOptions,
        subresource: str,
        view: SubresourceView | None,
    ) -> Pending:
        """Return the write that an edit of the record asks for. Raises: APIStatusError as a client would see it."""
        namespace, name = record.key
        edited = edit(resource.tree(record))
        document = edited if options.is_stored else read(resource, edited, options)
        metadata: Document = document["metadata"]
        set_namespace(resource, metadata, namespace)
        if options.is_patch:
            check_named(document, name)
        check_name(document, name)
        metadata["name"] = name
        old = resource.tree(record)
        if metadata.get("uid") and metadata["uid"] != record.uid and not options.is_patch:
            raise precondition_failed(resource, record.key, metadata["uid"], record.uid, dry_run=options.dry_run)
        self._extensions.track(resource, old, document, options, subresource)
        strategy = strategy_of(*resource.stored_as, is_custom=resource.is_custom)
        pending = Pending(resource, strategy, table, options, document, edited, record, old, subresource, view)
        if options.is_patch:
            self._keep_times(pending)
        return pending

    def complete(self, pending: Pending) -> None:
        """Put back what this write may not change, set what only the server sets, validate. Raises: as `begin`."""
        resource, document, old = pending.resource, pending.document, pending.old
        assert old is not None
        if pending.options.is_patch:
            pending.options.warnings.extend(drop_repeated_owners(document["metadata"], is_patch=True))
        else:
            self._keep_times(pending)
        self._extensions.confirm(pending)
        _check_version(pending)
        _check_identity(pending, old)
        prepare_update(resource, pending.strategy, document, old, pending.subresource)
        if resource.stored_as == signing_requests.REQUESTS:
            signing_requests.prepare(document, old, pending.subresource, timestamp(self._now()))
        restore_defaults(resource, document)
        hook = self._extensions.hook_of(resource)
        hook.prepare(document, old)
        if not resource.is_custom and not pending.subresource:
            assign(resource.group, resource.kind, document, self._api, self._extensions.plugins, old=old)
        if resource.stored_as == SERVICES and not pending.subresource:
            addresses, is_dry = self._extensions.addresses, pending.options.dry_run
            addresses.begin(document, pending.table.records, pending.last_steps, old=old, dry_run=is_dry)
        bump_generation(resource, pending.strategy, document, old, pending.subresource)
        if pending.record is not None and not document["metadata"].get("resourceVersion"):
            document["metadata"]["resourceVersion"] = str(pending.record.revision)  # validating webhooks see it
        validate_object(pending, hook)
        if not resource.is_custom:
            forget_empty_lists(resource, document)

    def store(self, pending: Pending) -> Written:
        """Swap the record, unless nothing has changed; of a deleted object, take it out when nothing holds it any more."""
        resource, document, options = pending.resource, pending.document, pending.options
        record, old = pending.record, pending.old
        assert record is not None
        assert old is not None
        document["metadata"]["resourceVersion"] = str(record.revision)
        if resource.is_custom:
            settle_numbers(document)
        if is_same(document, old) and not self._is_stored_otherwise(pending):
            return Written(200, record)
        if ends_deletion(resource, document):
            last = record_of(resource, document, record.revision, pending.stored)
            if not options.dry_run:  # watchers see the state that was stored, not the one that ended it
                self._records.remove(pending.table, record.writer, record, record.writer.tree(record))
            return Written(200, last)
        for step in pending.last_steps:
            step()
        written = self._records.write(
            pending.table, resource, "MODIFIED", document, record, old, dry_run=options.dry_run, stored=pending.stored
        )
        if not options.dry_run:
            self._extensions.hook_of(resource).written(document, old)
        return Written(200, written)

    @staticmethod
    def _is_stored_otherwise(pending: Pending) -> bool:
        """Tell whether an object that looks the same in its version is stored anew.

        One in an older storage version is: that is what a storage migration does. And one that loses what its version does not have.
        """
        resource, record = pending.resource, pending.record
        assert record is not None
        if not resource.is_custom or (record.writer is resource and resource.storage is resource):
            return False
        if record.writer.version != resource.storage.version:
            return True
        return record_of(resource, pending.document, record.revision, pending.stored).body != record.body

    def _keep_times(self, pending: Pending) -> None:
        """A write that changes nothing leaves the times of owners; kube-apiserver looks before admission at a patch, else after it."""
        if pending.old is not None:
            self._extensions.keep_times(pending.document, pending.old)


def document_to_create(
    resource: Resource, namespace: str, name: str, edit: Edit, options: WriteOptions, subresource: str
) -> Document:
    """Return the document with which an update creates the object that is not there. Raises: NotFound when it may not."""
    strategy = strategy_of(*resource.stored_as, is_custom=resource.is_custom)
    upserts = strategy.creates_on_update and not options.is_patch
    if subresource or not (upserts or options.creates):
        raise failures.not_found(resource.plural, resource.group, name)
    document = edit(None)
    if options.is_patch:
        check_named(document, name)
    check_name(document, name)
    document.setdefault("metadata", {})["name"] = name
    if upserts:
        if document["metadata"].get("uid"):
            raise precondition_failed(resource, (namespace, name), document["metadata"]["uid"], "")
        document["metadata"].pop("resourceVersion", None)
    return document


def _check_version(pending: Pending) -> None:
    resource, record, name = pending.resource, pending.record, pending.document["metadata"]["name"]
    assert record is not None
    wanted = pending.document["metadata"].get("resourceVersion", "")
    try:
        parse_uint(wanted or "0")
    except ValueError as error:
        raise failures.plain_internal(str(error)) from None
    if wanted in {"", "0"}:
        if pending.strategy.needs_version and not pending.options.is_apply:
            text = "must be specified for an update"
            raise failures.invalid(
                resource.plural, resource.group, name, [field_errors.invalid_value("metadata.resourceVersion", 0, text)]
            )
    elif int(wanted) != record.revision:
        raise failures.conflict(resource.plural, resource.group, name)


def _check_identity(pending: Pending, old: Document) -> None:
    if not pending.options.is_patch or pending.view is not None:
        return
    causes = identity_causes(pending.document["metadata"], old["metadata"])
    if causes:
        resource = pending.resource
        causes *= repeated_identity(resource, pending.subresource)
        raise failures.invalid(resource.kind, resource.stored_as[0], old["metadata"]["name"], causes)


def precondition_failed(
    resource: Resource, key: Key, wanted: str, found: str, *, what: str = "UID", dry_run: bool = False
) -> Exception:
    """An update that is meant for another object of that name, for another state, or for one where none is.

    A dry run does not come to etcd's prefix (DryRunnableStorage in apiserver's pkg/registry/generic/registry).
    """
    group = resource.group if resource.is_custom else ""
    prefix = "" if dry_run else "registry"
    place = "/".join(part for part in (prefix, group, resource.plural, *key) if part)
    why = f"StorageError: invalid object, Code: 4, Key: /{place}, ResourceVersion: 0, AdditionalErrorMsg: "
    why += f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return failures.conflict(resource.plural, resource.group, key[1], why)
