"""What the objects of admission say, read once for each write of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ctrlruntime.apiserver.interfaces import Change, Document
from ctrlruntime.apiserver.storage import Store

GROUP: Final = "admissionregistration.k8s.io"
_T = TypeVar("_T")


def follow(
    store: Store, plural: str, kept: dict[str, _T], read: Callable[[Document], _T], changed: Callable[[], None]
) -> None:
    """Keep in `kept`, by name, what `read` makes of each object: now, and inside each write from now on. Then `changed` is called."""
    table = store.table(GROUP, plural)
    for record in table.records.values():
        document = record.writer.tree(record)
        kept[document["metadata"]["name"]] = read(document)
    changed()

    def listener(change: Change) -> None:
        name: str = change.object["metadata"]["name"]
        if change.type == "DELETED":
            kept.pop(name, None)
        else:
            kept[name] = read(change.object)
        changed()

    table.listen(listener)


__all__ = ["GROUP", "follow"]
