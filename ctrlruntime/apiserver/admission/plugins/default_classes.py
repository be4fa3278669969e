"""Which class is the default of its kind: kept for each change of a class, so that an object costs nothing without one."""

from __future__ import annotations

from collections.abc import Collection

from ctrlruntime.apiserver.admission.following import follow
from ctrlruntime.apiserver.storage import Key
from ctrlruntime.apiserver.storage.table import Table
from ctrlruntime.schema.trees import Document


class DefaultClass:
    """The default among the objects of a table: of several the newest, of those of one second the first by name."""

    def __init__(self, table: Table, annotations: Collection[str]) -> None:
        """`annotations`: a class that has one of them with the value true is a default."""
        self.name: str | None = None
        self._annotations = annotations
        self._created: dict[Key, str] = {}
        follow(table, self._created, self._read, self._choose)

    def _read(self, document: Document) -> str | None:
        metadata: Document = document["metadata"]
        given: Document = metadata.get("annotations") or {}
        is_default = any(given.get(name) == "true" for name in self._annotations)
        return str(metadata.get("creationTimestamp", "")) if is_default else None

    def _choose(self) -> None:
        newest = max(self._created.values(), default="")
        self.name = min((name for (_, name), moment in self._created.items() if moment == newest), default=None)


__all__ = ["DefaultClass"]
