"""What objects of a kind say, read once for each write of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.storage import Key
from ctrlruntime.apiserver.storage.table import Table
from ctrlruntime.schema.trees import Document

GROUP: Final = "admissionregistration.k8s.io"
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

    def listener(change: Change) -> None:
        metadata = change.object["metadata"]
        keep(
            (metadata.get("namespace", ""), metadata["name"]), None if change.type == "DELETED" else read(change.object)
        )
        if changed is not None:
            changed()

    for record in table.records.values():
        keep(record.key, read(record.writer.tree(record)))
    if changed is not None:
        changed()
    table.listen(listener)


__all__ = ["GROUP", "follow"]
