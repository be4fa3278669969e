"""Converts documents to records: encoded in the storage version, stored in their table, with events for listeners.

The parts of the writer hand over what they have prepared and validated; nothing awaits but the conversion by a webhook, which the writer
asks for beforehand.
"""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import DEFINITIONS, Change, EventType
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.writes import Pending
from ctrlruntime.apiserver.storage import Key, Record, Store, Table
from ctrlruntime.schema.trees import Document

_LARGEST_OBJECT: Final = 1_572_864
"""etcd refuses requests over 1.5 MiB."""


class Records:
    """The way of documents into the store, and out of it."""

    def __init__(self, store: Store, extensions: WriteExtensions) -> None:
        self._store = store
        self._extensions = extensions

    def write(
        self,
        table: Table,
        resource: Resource,
        type: EventType,
        document: Document,
        old_record: Record | None,
        old: Document | None,
        *,
        dry_run: bool,
        stored: Document | None = None,
    ) -> Record:
        """Store the document with its new resourceVersion; a dry run only makes the record. Raises: 500 when it is too large."""
        revision = old_record.revision if old_record else 0
        if not dry_run:
            revision = self._store.next_revision()
        if revision:
            document["metadata"]["resourceVersion"] = str(revision)
        record = record_of(resource, document, revision, stored)
        if len(record.body) > _LARGEST_OBJECT:
            raise failures.plain_internal("etcdserver: request is too large")
        if not dry_run:
            change = Change(type, document, old, revision) if self._is_heard(table) else None
            self._commit(table, type, record, old_record, change)
        return record

    def remove(
        self, table: Table, resource: Resource, record: Record, document: Document, stored: Document | None = None
    ) -> Record:
        """Take the record out of its table. Returns the last state, which watchers see: `document` with the version of the deletion."""
        revision = self._store.next_revision()
        last = {**document, "metadata": {**document["metadata"], "resourceVersion": str(revision)}}
        gone = record_of(resource, last, revision, stored)
        change = Change("DELETED", last, document, revision) if self._is_heard(table) else None
        self._commit(table, "DELETED", gone, record, change)
        if resource.is_terminating and not table.records:  # the last one of a definition that waits for it
            self._extensions.hooks[DEFINITIONS].removed(last)
        else:
            self._extensions.hook_of(resource).removed(last)
        return gone

    def _commit(self, table: Table, type: EventType, record: Record, old: Record | None, change: Change | None) -> None:
        self._store.commit(table, type, record, old, change)
        if change is not None:
            for listener in tuple(self._extensions.on_change):
                listener(table.group, table.plural, change)

    def _is_heard(self, table: Table) -> bool:
        return table.has_listeners or bool(self._extensions.on_change)


def record_of(resource: Resource, document: Document, revision: int, stored: Document | None = None) -> Record:
    """Return the record of a document; `stored` is what a conversion webhook made of it."""
    metadata: Document = document["metadata"]
    key: Key = (metadata.get("namespace", ""), metadata["name"])
    storage = resource.storage
    if stored is not None:
        stored["metadata"].pop("resourceVersion", None)
        if metadata.get("resourceVersion"):
            stored["metadata"]["resourceVersion"] = metadata["resourceVersion"]
        document, resource = stored, storage
    elif storage is not resource:
        document, resource = resource.to_storage(document), storage
    return Record(key, revision, resource.encode(document), resource, metadata.get("labels"), metadata.get("uid", ""))


async def convert(pending: Pending) -> None:
    """Ask the conversion webhook for the stored version, where there is one. Raises: what the webhook's failure is answered with."""
    resource = pending.resource
    if resource.storage is resource:
        return
    pending.stored = await resource.convert(pending.document, resource.storage)
    if resource.storage.schema is not None:
        resource.storage.schema.fit(pending.stored, "", [], is_root=True)
