"""Random JSON patches and merge patches, right and wrong: for the differential test of patches.

They are texts: a patch may say a number, or a name twice, as no tree can.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

_RAW = re.compile(r'"@@([^"]*)"')
NUMBERS = ("1", "1.0", "1.5", "-0", "1e2", "1e400", "9007199254740993", "9223372036854775808", "2147483648", "-1")
VALUES: tuple[Any, ...] = ("text", "", "a b", True, False, None, [], {}, ["text"], [1], [None], {"a": "b"}, {"a": None})
ENDS = (
    "-",
    "0",
    "1",
    "9",
    "-1",
    "01",
    "+1",
    "1.0",
    "nope",
    "a~1b",
    "a~0b",
    "a~2b",
    "a~",
    "",
    "ä",
    "*",
    "00",
    "99999999999999999999",
)
DOCUMENTS = (
    "{}",
    "null",
    "1",
    '"text"',
    "[",
    "",
    "[1]",
    "[null]",
    "[[]]",
    "[{}]",
    '{"op":"test"}',
    "[] []",
    "[{},]",
    "true",
    "{]",
)
HIDDEN = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields", "clusterIP", "clusterIPs"})
"""What differs between servers: no patch looks at it."""


def places(tree: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys to each value of a tree, and the value."""
    yield above, tree
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        if key not in HIDDEN:
            yield from places(value, (*above, str(key)))


def visible(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: visible(value) for key, value in tree.items() if key not in HIDDEN}
    return [visible(value) for value in tree] if isinstance(tree, list) else tree


def pointer(keys: tuple[str, ...]) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def written(tree: Any) -> str:
    """Return the tree as JSON; a text that begins with `@@` is written as it stands."""
    return _RAW.sub(r"\1", json.dumps(tree))


class Patches:
    """Patches of one object."""

    def __init__(self, base: dict[str, Any], random: Random) -> None:
        self.random = random
        self.base = base
        self.places = [place for place in places(base) if place[0] and place[0][0] not in {"apiVersion", "kind"}]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def scalar(self) -> Any:
        return f"@@{self.random.choice(NUMBERS)}" if self.chance(0.4) else self.random.choice(VALUES)

    def like(self, value: Any) -> Any:
        """Return a value that may stand where this one stands, or not."""
        if self.chance(0.1):
            return self.scalar()
        match value:
            case dict():
                kept = {key: self.like(each) for key, each in value.items() if key not in HIDDEN and self.chance(0.7)}
                return {**kept, **({"unknown": self.scalar()} if self.chance(0.05) else {})}
            case list():
                return [self.like(each) for each in self.random.sample(value, self.random.randint(0, len(value)))]
            case bool():
                return not value
            case int():
                return self.random.choice([value, value + 1, f"@@{value}.0", 0])
            case str():
                return self.random.choice([value, f"{value}x", value])
        return value

    # JSON patches

    def json_patch(self) -> str:
        if self.chance(0.04):
            return self.random.choice(DOCUMENTS)
        return written([self.operation() for _ in range(self.random.choice([1, 1, 2, 3, 5]))])

    def path(self) -> tuple[str, Any]:
        keys, value = self.random.choice(self.places)
        path = pointer(keys)
        if self.chance(0.2):
            parent = path.rpartition("/")[0] if self.chance(0.5) else path
            path = f"{parent}/{self.random.choice(ENDS)}"
        if self.chance(0.02):
            path = self.random.choice(["", "/", path[1:], f"/nope{path}", f"{path}/", "//", f"#{path}"])
        return path, value

    def operation(self) -> Any:
        path, value = self.path()
        op = self.random.choice(["add", "add", "remove", "replace", "replace", "move", "copy", "test"])
        made: dict[str, Any] = {"op": op, "path": path}
        if op in {"add", "replace"}:
            made["value"] = self.like(value)
        elif op == "test":
            made["value"] = visible(value) if self.chance(0.7) else self.like(value)
        elif op in {"move", "copy"}:
            made["from"] = f"{path}/{self.random.choice(ENDS)}" if self.chance(0.1) else self.path()[0]
            if self.chance(0.1):
                made["from"], made["path"] = path, f"{path}/x"
        if self.chance(0.04):
            self.spoil(made)
        return made

    def spoil(self, made: dict[str, Any]) -> None:
        key = self.random.choice([*made, "odd"])
        if self.chance(0.5):
            made.pop(key, None)
        else:
            made[key] = self.scalar() if self.chance(0.7) else self.random.choice(["ADD", "replace ", "odd", ""])

    # Merge patches

    def merge_patch(self) -> str:
        if self.chance(0.03):
            return self.random.choice(
                [*DOCUMENTS, "[]", '{"metadata":{"name":"other"}}', '{"kind":"Odd"}', '{"a":1,"a":2}']
            )
        text = written(self.part(self.base, 0))
        if self.chance(0.05):
            text = (
                text.replace(": ", ': 1, "twice": ', 1)
                if self.chance(0.3)
                else re.sub(r'("\w+"): ', r"\1: {}, \1: ", text, count=1)
            )
        return text

    def part(self, tree: dict[str, Any], depth: int) -> dict[str, Any]:
        names = [name for name in tree if name not in HIDDEN and (depth or name not in {"apiVersion", "kind"})]
        chosen = self.random.sample(names, min(len(names), self.random.choice([1, 1, 2, 3])))
        found: dict[str, Any] = {}
        for name in chosen:
            value = tree[name]
            if self.chance(0.07):
                found[name] = None
            elif isinstance(value, dict) and self.chance(0.9):
                found[name] = self.part(value, depth + 1)
            else:
                found[name] = self.like(value)
        if self.chance(0.04):
            found[self.random.choice(["unknown", "new", "a.b/c"])] = self.scalar()
        return found


MAKERS: dict[str, Callable[[Patches], str]] = {
    "application/json-patch+json": Patches.json_patch,
    "application/merge-patch+json": Patches.merge_patch,
}
