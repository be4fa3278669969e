"""What expressions that change objects have besides: the types `Object`, `Object.spec` … and `JSONPatch`, and `jsonpatch.escapeKey`.

As apiserver's pkg/cel/mutation: an object type has any field, and its name says the path of its place in an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from ctrlruntime.cel.functions import Declared, Function, collect
from ctrlruntime.cel.library.tables import functions
from ctrlruntime.cel.types import DYN, STRING, Type, object_of

OBJECT, JSON_PATCH = "Object", "JSONPatch"


class _AnyField(Mapping[str, Type]):
    """Fields of every name."""

    def __getitem__(self, name: str) -> Type:
        del name
        return DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ANY = _AnyField()
_OPERATION = object_of(JSON_PATCH, {"op": STRING, "path": STRING, "from": STRING, "value": DYN})


def message(name: str) -> Type | None:
    """Return the type with a name that a literal can be of."""
    if name == JSON_PATCH:
        return _OPERATION
    return object_of(name, _ANY) if name.partition(".")[0] == OBJECT else None


@cache
def mutating_functions() -> Mapping[str, Function]:
    """Return the functions of these expressions by name."""
    escape = Declared(
        "jsonpatch.escapeKey", "(string) -> string", lambda key: key.replace("~", "~0").replace("/", "~1")
    )
    return {**functions(), **collect([escape])}


__all__ = ["JSON_PATCH", "OBJECT", "message", "mutating_functions"]
