"""Owners of a replica count: as entries of the object that is scaled, and as entries of the Scale that shows it.

kube-apiserver translates them there and back around every write to `/scale`; this does the same, with its consequences: an entry that an
update made comes back without its time, and next to the other fields of its manager.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, difference, intersection
from ctrlruntime.apiserver.apply.ownership import Owned, Ownership, read, write
from ctrlruntime.schema.trees import Document

_SCALE = "autoscaling/v1"
_REPLICAS: FieldSet = {"f:spec": {"f:replicas": {}}}


def path_of(text: str) -> FieldSet:
    """Return the set of one path, written as a definition does (`.spec.replicas`)."""
    result: FieldSet = {}
    for name in reversed(text.lstrip(".").split(".")):
        result = {f"f:{name}": result}
    return result


def to_scale(entries: list[Document], counts: Mapping[str, FieldSet]) -> list[Document]:
    """Return the owners of the count as entries of a Scale. `counts`: {version of the object: where it keeps the count}."""
    shown: Ownership = {}
    for owner, owned in read(entries).items():
        path = counts.get(owned.version)
        if path is not None and intersection(owned.fields, path):
            shown[owner] = Owned(_REPLICAS, _SCALE, owned.time)
    return write(shown, sorts_fields=False)


def to_object(
    entries: list[Document], scale: list[Document], counts: Mapping[str, FieldSet], version: str, *, sorts_fields: bool
) -> list[Document]:
    """Return the object's entries after a write to its Scale, whose entries are given; `version` is the object's."""
    before = read(entries)
    owners = read(scale)
    after: Ownership = {}
    for owner, owned in before.items():
        path = counts.get(owned.version)
        if path is None:
            continue
        if not intersection(owned.fields, path):
            after[owner] = owned
        elif owner in owners:
            after[owner] = owned
            del owners[owner]
        else:
            left = difference(owned.fields, path)
            if left:
                after[owner] = Owned(left, owned.version, owned.time)
    for owner, owned in owners.items():
        if intersection(owned.fields, _REPLICAS):
            known = before.get(owner)
            after[owner] = Owned(counts[version], version, known.time if known else "")
    return write(after, sorts_fields=sorts_fields)
