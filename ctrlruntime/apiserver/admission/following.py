"""What objects of a kind say, read once for each write of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.storage import Key
from ctrlruntime.apiserver.storage.table import Table
from ctrlruntime.schema.trees import Document

GROUP: Final = "admissionregistration.k8s.io"
POLICIES: Final = frozenset(
    f"{kind}admissionpolic{ending}" for kind in ("mutating", "validating") for ending in ("ies", "ybindings")
)
"""What neither policies nor webhooks see: one could keep itself from being removed."""
_T = TypeVar("_T")


def follow(
    table: Table, kept: dict[Key, _T], read: Callable[[Document], _T | None], changed: Callable[[], None] | None = None
) -> None:
    """Keep in `kept` what `read` makes of each object: now, and inside each write from now on. Then `changed` is called.

    Where `read` returns None, nothing is kept.
    """

    def keep(key: Key, found: _T | None) -> None:
        if found is None:
            kept.pop(key, None)
        else:
            kept[key] = found

    _read_all(table, read, keep, changed)


def _read_all(
    table: Table,
    read: Callable[[Document], _T | None],
    keep: Callable[[Key, _T | None], None],
    changed: Callable[[], None] | None = None,
) -> None:
    def listener(change: Change) -> None:
        metadata = change.object["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        keep(key, None if change.type == "DELETED" else read(change.object))
        if changed is not None:
            changed()

    for record in table.records.values():
        keep(record.key, read(record.writer.tree(record)))
    if changed is not None:
        changed()
    table.listen(listener)


class Namespaced(Generic[_T]):
    """What the objects of a kind say, by namespace; see `follow`."""

    def __init__(self, table: Table, read: Callable[[Document], _T | None]) -> None:
        self._kept: dict[str, dict[str, _T]] = {}
        _read_all(table, read, self._keep)

    def _keep(self, key: Key, found: _T | None) -> None:
        namespace, name = key
        named = self._kept.setdefault(namespace, {})
        if found is not None:
            named[name] = found
            return
        named.pop(name, None)
        if not named:
            del self._kept[namespace]

    def __bool__(self) -> bool:
        return bool(self._kept)

    def of(self, namespace: str) -> list[_T]:
        """Return what those of a namespace say, in the order of their names."""
        return [found for _, found in sorted(self._kept.get(namespace, {}).items())]


__all__ = ["GROUP", "POLICIES", "Namespaced", "follow"]
