"""The tree of an expression, and where its nodes are in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ctrlruntime.cel.failures import Issue


@dataclass(slots=True, eq=False)
class Literal:
    value: Any
    id: int = 0


@dataclass(slots=True, eq=False)
class Identifier:
    name: str
    id: int = 0


@dataclass(slots=True, eq=False)
class Select:
    """`operand.field`, or `has(operand.field)` when it only tests."""

    operand: Node
    field: str
    tests: bool = False
    id: int = 0


@dataclass(slots=True, eq=False)
class Call:
    function: str
    target: Node | None
    arguments: list[Node]
    id: int = 0


@dataclass(slots=True, eq=False)
class ListLiteral:
    elements: list[Node]
    optional: frozenset[int] = frozenset()
    id: int = 0


@dataclass(slots=True, eq=False)
class Entry:
    """One entry of a map, or one field of a message (then `key` is a Literal)."""

    key: Node
    value: Node
    optional: bool = False
    id: int = 0


@dataclass(slots=True, eq=False)
class MapLiteral:
    entries: list[Entry]
    message: str = ""
    id: int = 0


@dataclass(slots=True, eq=False)
class Comprehension:
    """A loop: `accumulator` starts as `start`, becomes `step` for each item while `condition` is true, and returns `result`."""

    variable: str
    second: str
    range: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    id: int = 0


Node: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | Comprehension


@dataclass(slots=True)
class Source:
    """An expression's text, the position of each node in it, and what is wrong."""

    text: str
    offsets: dict[int, int] = field(default_factory=dict[int, int])
    issues: list[Issue] = field(default_factory=list[Issue])

    def place(self, offset: int, message: str) -> Issue:
        """Return a finding at an offset, in characters."""
        if not self.text:
            return Issue(1, -1, message)
        before = self.text[:offset]
        return Issue(before.count("\n") + 1, offset - (before.rfind("\n") + 1), message)

    def issue(self, id: int, message: str) -> Issue:
        """Return a finding at a node."""
        return self.place(self.offsets.get(id, 0), message)

    def report(self, id: int, message: str) -> None:
        """Note a finding at a node."""
        self.issues.append(self.issue(id, message))

    def new_id(self, offset: int) -> int:
        """Return an id for a node at an offset."""
        new = len(self.offsets) + 1
        self.offsets[new] = offset
        return new

    def at(self, id: int) -> int:
        """Return a new id for a node at the position of this one."""
        return self.new_id(self.offsets[id])
