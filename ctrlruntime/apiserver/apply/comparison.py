"""What a write changed in an object, as every owner sees it: in the version in which that owner wrote.

Takes the trees before and after and the types of their fields; the field manager takes from owners what was changed, or finds conflicts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, cut
from ctrlruntime.apiserver.apply.merge import compare_fields
from ctrlruntime.apiserver.apply.resets import Reset
from ctrlruntime.apiserver.apply.types import Type, UnfitError, Versions
from ctrlruntime.schema.trees import Document

_UNOWNED_METADATA: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
UNOWNED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in _UNOWNED_METADATA}},
}
"""Fields without an owner."""
_APART: Final = frozenset({"apiVersion", "kind", "metadata"})
"""Fields of the root that are not compared like others."""


class Changes(NamedTuple):
    """The differences, except for fields without an owner and fields that the write cannot set."""

    changed: FieldSet
    removed: FieldSet


class Comparison:
    """Two states of an object, compared in its own version at once, and in others on demand."""

    def __init__(
        self,
        versions: Versions,
        root: Type,
        api_version: str,
        *,
        zero: Document,
        live: Document | None,
        new: Document,
        reset: Reset,
    ) -> None:
        self._versions = versions
        self._live = live
        self._new = new
        self._reset = reset
        changes = _compare(root, live or zero, new, reset)
        self.changed, self.removed = changes
        self._found: dict[str, Changes | None] = {api_version: changes}

    def at(self, version: str) -> Changes | None:
        """Return the changes in a version, or None when it is not served any more. Raises: UnfitError."""
        if version not in self._found:
            self._found[version] = self._compare_at(version)
        return self._found[version]

    def _compare_at(self, version: str) -> Changes | None:
        root = self._versions.type_of(version)
        if root is None:
            return None
        old = {} if self._live is None else self._converted("old", self._live, version)
        return _compare(root, old, self._converted("new", self._new, version), self._reset)

    def _converted(self, which: str, document: Document, version: str) -> Document:
        try:
            return self._versions.convert(document, version)
        except UnfitError as error:
            raise error.during(f"failed to convert {which} object") from None


def _compare(root: Type, old: Document, new: Document, reset: Reset) -> Changes:
    changed: FieldSet = {}
    removed: FieldSet = {}
    compare_fields(root, old, new, changed, removed, reset.roots | _APART)
    if "metadata" not in reset.roots and "metadata" in new:
        inside: FieldSet = {}
        gone: FieldSet = {}
        meta, before = root.fields["metadata"], old.get("metadata") or {}
        compare_fields(meta, before, new["metadata"], inside, gone, _UNOWNED_METADATA)
        if inside:
            changed["f:metadata"] = inside
        if gone:
            removed["f:metadata"] = gone
    if reset.paths:
        return Changes(cut(changed, reset.paths), cut(removed, reset.paths))
    return Changes(changed, removed)
