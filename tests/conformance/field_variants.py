"""Objects with one odd value: what a user writes wrong, made from the OpenAPI document for every field of a kind.

Nobody chose the cases: a rule that the embedded server lacks is found by the field that has it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]
"""The keys down to a value, and the value last; `[]` goes into a list."""

ODD_NUMBERS = (-1, 0, 70000, 2**31)
ODD_TEXTS = ("", "A_b", "a b", "x" * 300, "-a", "Odd")
EMPTY: dict[str, Any] = {"null": None, "[]": [], "[null]": [None], "{}": {}}


def with_field(tree: Any, path: Path) -> Any:
    key, *rest = path
    if not rest:
        return key
    if key == "[]":
        present = tree if isinstance(tree, list) and tree else [None]
        return [with_field(present[0], tuple(rest)), *present[1:]]
    present = tree if isinstance(tree, dict) else {}
    return {**present, key: with_field(present.get(key), tuple(rest))}


def odd_objects(body: dict[str, Any], fields: Iterator[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a name for each case and the object with its odd value: of each leaf, and of each thing on the way to it."""
    sent: set[str] = set()
    for field in fields:
        for path in (*_odd_leaves(field), *_empty_parts(field)):
            name = ".".join(str(key) for key in path)
            if name not in sent:
                sent.add(name)
                value = EMPTY.get(path[-1], path[-1]) if type(path[-1]) is str else path[-1]
                yield name[:200], with_field(copy.deepcopy(body), (*path[:-1], value))


def _odd_leaves(field: Path) -> Iterator[Path]:
    *way, value = field
    kind = type(value)
    for odd in ODD_NUMBERS if kind is int else ODD_TEXTS if kind is str else ():
        yield (*way, odd)


def _empty_parts(field: Path) -> Iterator[Path]:
    for end in range(1, len(field)):
        if field[end - 1] == "[]":
            continue
        yield (*field[:end], "null")
        if field[end] == "[]":
            yield (*field[:end], "[]")
            yield (*field[:end], "[null]")
        elif end < len(field) - 1:
            yield (*field[:end], "{}")
