"""What the checks and the compiler made of the schemas of definitions, by their content.

A large definition takes a tenth of a second of both. A thread does it while the event loop serves others (`prepare`); the write then finds
the result here, as do other servers of this process that get the same definition.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from ctrlruntime.errors import StatusCause
from ctrlruntime.schema import Structural, compile_schema
from ctrlruntime.schema.definition_rules import check_schema, unrecognized_formats
from ctrlruntime.schema.trees import Document, encode

LARGE: Final = 16 * 1024
"""Bytes of a body from which on a thread prepares it; smaller ones take no longer than other requests."""
_KEPT: Final = 64
_T = TypeVar("_T")


class _Kept(Generic[_T]):
    """The latest results of a function of a path and a schema."""

    def __init__(self, make: Callable[[Document, str], _T]) -> None:
        self._make = make
        self._results: OrderedDict[tuple[str, bytes], _T] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, schema: Document, path: str = "") -> _T:
        key = (path, encode(schema))
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        found = self._make(schema, path)
        if len(key[1]) >= LARGE // 4:
            with self._lock:
                self._results[key] = found
                while len(self._results) > _KEPT:
                    self._results.popitem(last=False)
        return found


checked: Final[_Kept[list[StatusCause]]] = _Kept(check_schema)
"""`check_schema`; the result must not change."""
compiled: Final[_Kept[Structural]] = _Kept(lambda schema, _path: compile_schema(schema))
"""`compile_schema`."""
formats: Final[_Kept[list[str]]] = _Kept(lambda schema, _path: unrecognized_formats(schema))
"""`unrecognized_formats`; the result must not change."""


def schemas_of(versions: Sequence[Document]) -> Iterator[tuple[int, Document, str]]:
    """Yield the schemas of a definition to check: the number of the version, the schema, and its path as upstream says it."""
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    is_shared = all(version.get("schema") == versions[0].get("schema") for version in versions)
    for index, schema in enumerate(schemas[:1] if is_shared else schemas):
        if schema is not None:
            path = "spec.validation" if is_shared else f"spec.versions[{index}].schema"
            yield index, schema, f"{path}.openAPIV3Schema"


def prepare(versions: Sequence[Document]) -> None:
    """Check and compile the schemas of a definition."""
    for _, schema, path in schemas_of(versions):
        if not checked(schema, path):
            compiled(schema)
            formats(schema)


__all__ = ["LARGE", "checked", "compiled", "formats", "prepare", "schemas_of"]
