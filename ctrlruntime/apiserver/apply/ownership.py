"""`metadata.managedFields` as the server works with it: who owns which fields, read from and written to the entries of an object.

An owner is named by manager, operation and subresource, and for updates by the version too. Entries are sorted and merged as
kube-apiserver does it, so that clients which compare them find nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, encode_value, ordered, parse, union
from ctrlruntime.schema.trees import Document

Operation: TypeAlias = Literal["Apply", "Update"]
BEFORE_FIRST_APPLY = "before-first-apply"
_ANCIENT = "ancient-changes"
_MOST_UPDATERS = 10


class Owner(NamedTuple):
    """By what an entry is found again; `version` is empty for Apply."""

    manager: str
    operation: Operation
    version: str = ""
    subresource: str = ""

    def shown(self) -> str:
        """Return the owner as messages about conflicts name it."""
        text = encode_value(self.manager)
        if self.subresource:
            text += f" with subresource {encode_value(self.subresource)}"
        return f"{text} using {self.version}" if self.operation == "Update" else text

    def sort_key(self) -> str:
        """Return the text by which upstream sorts owners."""
        parts = [f'"manager":{encode_value(self.manager)}', f'"operation":"{self.operation}"']
        if self.version:
            parts.append(f'"apiVersion":{encode_value(self.version)}')
        if self.subresource:
            parts.append(f'"subresource":{encode_value(self.subresource)}')
        return f"{{{','.join(parts)}}}"


@dataclass(slots=True)
class Owned:
    """What an owner has: fields of one version, and when it last set one of them (RFC 3339, UTC, or nothing; so texts sort as times)."""

    fields: FieldSet
    version: str
    time: str = ""


Ownership: TypeAlias = dict[Owner, Owned]


def owner_of(manager: str, operation: Operation, version: str, subresource: str) -> Owner:
    return Owner(manager or "unknown", operation, version if operation == "Update" else "", subresource)


def read(entries: list[Document]) -> Ownership:
    """Return what stored entries say. They are in canonical form; of two with one owner the last counts."""
    found: Ownership = {}
    for entry in entries:
        version = entry.get("apiVersion", "")
        operation: Operation = entry["operation"]
        owner = Owner(
            entry.get("manager", ""), operation, version if operation == "Update" else "", entry.get("subresource", "")
        )
        found[owner] = Owned(entry.get("fieldsV1") or {}, version, entry.get("time") or "")
    return found


def canonical(entries: Any) -> list[Document] | None:
    """Return entries that a client sent in canonical form; None when they say nothing the server understands."""
    if not isinstance(entries, list):
        return None
    try:
        return [_canonical_entry(entry) for entry in entries]
    except (ValueError, TypeError, AttributeError):
        return None


def _canonical_entry(entry: Document) -> Document:
    if entry.get("operation") not in {"Apply", "Update"} or entry.get("fieldsType") != "FieldsV1":
        raise ValueError("an entry has operation Apply or Update and fieldsType FieldsV1")
    return {**entry, "fieldsV1": parse(entry.get("fieldsV1") or {})}


def write(ownership: Ownership, *, sorts_fields: bool) -> list[Document]:
    """Return the entries in upstream's order. `sorts_fields`: the JSON keeps the order of keys, so they are sorted."""
    listed = [(owner, owned) for owner, owned in ownership.items() if owned.fields]
    if len(listed) > 1:
        listed.sort(key=_entry_order)
    return [_entry(owner, owned, sorts_fields=sorts_fields) for owner, owned in listed]


def _entry_order(item: tuple[Owner, Owned]) -> tuple[str, str, str, str, str]:
    owner, owned = item
    return (owner.operation, owned.time, owner.manager, owned.version, owner.subresource)


def _entry(owner: Owner, owned: Owned, *, sorts_fields: bool) -> Document:
    entry: Document = {"manager": owner.manager, "operation": owner.operation, "apiVersion": owned.version}
    if owned.time:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = ordered(owned.fields) if sorts_fields else owned.fields
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def forget_ancient(ownership: Ownership) -> None:
    """Merge the oldest updaters into one per version, so that no more than ten are left."""
    updaters = [owner for owner in ownership if owner.operation == "Update"]
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda owner: (ownership[owner].time, owner.sort_key()))
    first: dict[str, Owner] = {}
    for owner in updaters:
        if excess <= 0:
            return
        owned = ownership[owner]
        earlier = first.setdefault(owned.version, owner)
        if earlier == owner:
            continue
        bucket = Owner(_ANCIENT, "Update", owned.version)
        if bucket not in ownership:
            ownership[bucket] = ownership.pop(earlier)
        merged = union(owned.fields, ownership[bucket].fields)
        if owner != bucket:
            del ownership[owner]
        ownership[bucket] = Owned(merged, owned.version, owned.time)
        excess -= 1


def same_but_times(a: list[Document], b: list[Document]) -> bool:
    """Tell whether entries differ in nothing but when something was set."""
    if len(a) != len(b):
        return False
    return all(
        x == y or {**x, "time": None} == {**y, "time": None} for x, y in zip(_timeless(a), _timeless(b), strict=True)
    )


def _timeless(entries: list[Document]) -> list[Document]:
    return sorted(
        entries,
        key=lambda entry: (
            entry["operation"],
            entry["manager"],
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        ),
    )
