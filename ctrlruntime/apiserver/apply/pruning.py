"""Fields that an apply removes: applied before by its manager, not applied now, and without another owner.

`Pruning` decides it for one kind, in the versions that owners wrote in; `without` removes a set of paths from a tree.
"""

from __future__ import annotations

from typing import Any

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, difference, intersection, is_member, union
from ctrlruntime.apiserver.apply.merge import ABSENT, named_fields, with_declared
from ctrlruntime.apiserver.apply.ownership import Owned, Ownership
from ctrlruntime.apiserver.apply.types import Type, UnfitError, Versions
from ctrlruntime.schema.trees import Document


class Pruning:
    """The rules of removal of one kind, whose objects are written here in one version."""

    def __init__(self, versions: Versions, root: Type, api_version: str) -> None:
        self._versions = versions
        self._root = root
        self._api_version = api_version

    def pruned(self, merged: Document, ownership: Ownership, former: Owned, named: FieldSet) -> Document:
        """Return the object without the fields that its manager owned (`former`), does not apply now, and no other manager owns.

        Raises: UnfitError.
        """
        version = former.version
        if version == self._api_version and not difference(former.fields, named):
            return merged
        root = self._type_of(version)
        if root is None:
            return merged
        there = self._at(merged, version, "failed to convert merged object to last applied version")
        last = with_declared(root, former.fields)
        pruned: Document = without(root, there, last)
        pruned = self._with_owned(there, pruned, version, ownership)
        kept, whole = _members(root, pruned), _members(root, there)
        result: Document = without(root, there, intersection(difference(whole, kept), last))
        return self._at(result, self._api_version)

    def _with_owned(self, merged: Document, pruned: Document, version: str, ownership: Ownership) -> Document:
        """Return the pruned object with what somebody owns put back from the merged one, version by version."""
        owned: dict[str, FieldSet] = {}
        for entry in ownership.values():
            owned[entry.version] = union(owned.get(entry.version, {}), entry.fields)
        current = version
        for at in sorted(owned, key=lambda name: name != version):
            root = self._type_of(at)
            if root is None:
                continue
            step = "failed add back owned items: failed to convert"
            merged = self._at(merged, at, f"{step} merged object at version {at}")
            pruned = self._at(pruned, at, f"{step} pruned object at version {at}")
            current = at
            kept = union(_members(root, pruned), with_declared(root, owned[at]))
            pruned = without(root, merged, difference(_members(root, merged), kept))
        return pruned if current == version else self._at(pruned, version)

    def _type_of(self, version: str) -> Type | None:
        return self._root if version == self._api_version else self._versions.type_of(version)

    def _at(self, document: Document, version: str, step: str = "") -> Document:
        if document.get("apiVersion", version) == version:
            return document
        try:
            return self._versions.convert(document, version)
        except UnfitError as error:
            raise error.during(f"failed to prune fields: {step}" if step else "failed to prune fields") from None


def _members(root: Type, document: Document) -> FieldSet:
    return with_declared(root, named_fields(root, document) or {})


def without(kind: Type, value: Any, fields: FieldSet) -> Any:
    """Return the value without the paths of a set: a map may be left empty, a list of which nothing is left goes (ABSENT)."""
    if type(value) is dict and kind.is_map:
        return _map_without(kind, value, fields) if kind.has_fields else ABSENT
    if type(value) is list and kind.list_mode:
        return _list_without(kind, value, fields) if kind.has_items else ABSENT
    return value


def _map_without(kind: Type, value: dict[str, Any], fields: FieldSet) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        node = fields.get(f"f:{name}")
        if node is None:
            kept[name] = inner
        elif not is_member(node):
            child = kind.child(name)
            left = inner if child is None else without(child, inner, node)
            if left is not ABSENT:
                kept[name] = left
    return kept


def _list_without(kind: Type, value: list[Any], fields: FieldSet) -> Any:
    item = kind.item
    assert item is not None
    kept: list[Any] = []
    for inner in value:
        node = fields.get(kind.step(inner))
        if node is None:
            kept.append(inner)
        elif not is_member(node):
            kept.append(without(item, inner, node))
    return kept or ABSENT
