"""States as a whole: what a data file holds comes back at the start, and a reset goes back to the beginning.

Both replace the records of tables without events. Watches end, older versions cannot be read any more (410: clients list again), and
internal listeners are notified of removed and added objects. Definitions come first, so that their kinds are served when their objects
are placed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TypeAlias
from uuid import uuid4

import msgspec

from ctrlruntime.apiserver.interfaces import DEFINITIONS, Change
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Key, Record, Table
from ctrlruntime.apiserver.storage.persistence import Stored
from ctrlruntime.errors import ConfigError

TableName: TypeAlias = tuple[str, str]


class _Metadata(msgspec.Struct, rename="camel"):
    labels: dict[str, str] | None = None
    uid: str = ""


class _Head(msgspec.Struct, rename="camel"):
    """What a record keeps beside the bytes."""

    metadata: _Metadata
    api_version: str


_head = msgspec.json.Decoder(_Head)


def restore(registry: Registry, stored: Iterable[Stored], revision: int) -> int:
    """Place the objects of an earlier run, which ended at `revision`; return how many there were.

    Raises: ConfigError when an object cannot be read.
    """
    by_table: defaultdict[TableName, list[Stored]] = defaultdict(list)
    for one in stored:
        by_table[one.group, one.plural].append(one)
    # Above every earlier version: a watch that resumes from one finds it too old, and lists.
    registry.store.revision = max(registry.store.revision, revision) + 1
    registry.store.forget_history()
    changed_at = _restore_definitions(registry, by_table.pop(DEFINITIONS, []))
    for name, objects in by_table.items():
        _place(registry, name, objects, changed_at.get(name, 0))
    _resume_deletions(registry)
    return sum(map(len, by_table.values())) + len(changed_at)


class Beginning:
    """The state right after the start. Records are never changed, so keeping them costs next to nothing."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tables: dict[TableName, dict[Key, Record]] = {
            (table.group, table.plural): dict(table.records) for table in registry.store.tables() if table.records
        }

    def bring_back(self) -> None:
        """Make the present state equal to the one at the beginning; what was changed since gets a new version."""
        clear(self._registry, self._tables)


def clear(registry: Registry, kept: Mapping[TableName, Mapping[Key, Record]] | None = None) -> None:
    """Remove every object except those in `kept`, and serve only the built-in kinds. Versions keep increasing."""
    kept = kept or {}
    store = registry.store
    revision = store.next_revision()
    for definition in [key[1] for key in store.table(*DEFINITIONS).records]:
        for resource in registry.stop_serving(definition):
            table = store.table(*resource.stored_as)
            _replace(registry, table, [], revision)
            store.drop(table)
    for table in store.tables():
        wanted = kept.get((table.group, table.plural), {})
        records = [_again(table, record, store.next_revision) for record in wanted.values()]
        _replace(registry, table, records, revision)


def _again(table: Table, record: Record, next_revision: Callable[[], int]) -> Record:
    """Return the record, under a new version when the table has something else in its place."""
    present = table.records.get(record.key)
    if present is record:
        return record
    revision, writer = next_revision(), record.writer
    document = writer.tree(record)
    document["metadata"]["resourceVersion"] = str(revision)
    if present is None or present.uid != record.uid:
        document["metadata"]["uid"] = str(uuid4())
    return Record(
        record.key, revision, writer.encode(document), writer, record.labels, document["metadata"].get("uid", "")
    )


def _replace(registry: Registry, table: Table, records: list[Record], revision: int) -> None:
    """Swap what a table holds; the data file and the listeners hear of what differs."""
    before, backing = dict(table.records), registry.store.backing
    table.replace(records, revision)
    gone = [record for key, record in before.items() if table.records.get(key) is not record]
    come = [record for record in records if before.get(record.key) is not record]
    if backing is not None:
        for record in gone:
            backing.note((table.group, table.plural, *record.key), revision, None)
        for record in come:
            backing.note((table.group, table.plural, *record.key), record.revision, record.body)
    if table.has_listeners:
        for record in gone:
            document = record.writer.tree(record)
            table.tell(Change("DELETED", document, document, revision))
        for record in come:
            table.tell(Change("ADDED", record.writer.tree(record), None, record.revision))


# A start with what an earlier run left


def _restore_definitions(registry: Registry, objects: list[Stored]) -> dict[TableName, int]:
    """Place the definitions and serve them; return when the one of each table was last changed."""
    _place(registry, DEFINITIONS, objects, 0)
    resource, changed_at = registry.canonical(*DEFINITIONS), dict[TableName, int]()
    for record in registry.store.table(*DEFINITIONS).records.values():
        document = resource.tree(record)
        registry.definitions.restore(document)
        changed_at[document["spec"]["group"], document["spec"]["names"]["plural"]] = record.revision
    return changed_at


def _place(registry: Registry, name: TableName, objects: list[Stored], changed_at: int) -> None:
    table = registry.store.table(*name)
    writers: dict[tuple[str, bool], Resource] = {}
    records: list[Record] = []
    for one in objects:
        try:
            head = _head.decode(one.body)
        except msgspec.DecodeError as error:
            where = "/".join(filter(None, (one.plural, one.namespace, one.name)))
            raise ConfigError(f"the data file is corrupt: cannot read {where}: {error}") from error
        # Written under an earlier state of its definition: read again, so that newer defaults reach it.
        is_older = one.revision < changed_at
        writer = writers.get((head.api_version, is_older))
        if writer is None:
            writer = _writer(registry, name, head.api_version, is_older=is_older)
            writers[head.api_version, is_older] = writer
        key = (one.namespace, one.name)
        records.append(Record(key, one.revision, one.body, writer, head.metadata.labels, head.metadata.uid))
    table.replace(records, registry.store.revision)
    if table.has_listeners:
        for record in records:
            table.tell(Change("ADDED", record.writer.tree(record), None, record.revision))


def _writer(registry: Registry, name: TableName, api_version: str, *, is_older: bool) -> Resource:
    """Return the resource in whose version the bytes are."""
    group, _, version = api_version.rpartition("/")
    found = registry.find(group, version, name[1])
    if found is not None and not (is_older and found.is_custom):
        return found
    other = found or next((resource for resource in registry.all_resources() if resource.stored_as == name), None)
    if other is None:  # of a kind that is not served: the bytes stay, and are read when it is
        return Resource(group, version, name[1], "", "", namespaced=True, is_custom=True)
    writer = copy(other)
    writer.version, writer.api_version = version, api_version
    return writer


def _resume_deletions(registry: Registry) -> None:
    """Go on with the definitions whose deletion had begun."""
    for record in list(registry.store.table(*DEFINITIONS).records.values()):
        document = registry.canonical(*DEFINITIONS).tree(record)
        if "deletionTimestamp" in document["metadata"]:
            registry.definitions.resume_deletion(document)
