"""The grammar of expressions as a graph of states, for what cel-go says of a syntax error.

A state has edges to the states after it:

| edge | |
|---|---|
| `Edge(target)` | costs nothing |
| `Edge(target, kinds=…)` | takes one token |
| `Edge(target, rule=…)` | goes through a rule, and comes back to the target |
| `Edge(target, precedence=…)` | only if the operators that are open bind no more than that |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from ctrlruntime.cel.tokens import (
    BYTES,
    END,
    FLOAT,
    INT,
    NAME,
    QUOTED_NAME,
    STRING,
    UINT,
)  # fmt: skip

BACK: Final = ""
"""In a set of kinds: the rule may be over."""


# The grammar


@dataclass(frozen=True)
class Take:
    """One token of these kinds."""

    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    name: str
    precedence: int = 0


@dataclass(frozen=True)
class Level:
    """What follows belongs to an operator that binds so much."""

    precedence: int


@dataclass(frozen=True)
class Choice:
    """One of several; `by_kind`: the next token decides alone, and without looking at what follows the rule."""

    parts: tuple[Part, ...]
    by_kind: bool = False


@dataclass(frozen=True)
class Maybe:
    """Decided by the next token."""

    part: Part


@dataclass(frozen=True)
class Many:
    """`has_levels`: each turn is of an operator; it begins with a `Level`."""

    part: Part
    least: int = 0
    by_kind: bool = False
    has_levels: bool = False


Part: TypeAlias = "Take | Rule | Level | Choice | Maybe | Many | tuple[Part, ...]"


def _take(*kinds: str) -> Take:
    return Take(kinds)


_ARGUMENTS: Final = (_take("("), Maybe(Rule("exprList")), _take(")"))
_COMMA: Final = Maybe(_take(","))
_LEADING_DOT: Final = Maybe(_take("."))
_OPTIONAL: Final = Maybe(_take("?"))
_FIELD: Final = (Rule("optField"), _take(":"), Rule("expr"))
_ENTRY: Final = (Rule("optExpr"), _take(":"), Rule("expr"))
_RELATIONS: Final = _take("==", "!=", "in", "<", "<=", ">=", ">")
RULES: Final[dict[str, Part]] = {
    "start": (Rule("expr"), _take(END)),
    "expr": (
        Rule("conditionalOr"),
        Maybe((_take("?"), Rule("conditionalOr"), _take(":"), Rule("expr"))),
    ),
    "conditionalOr": (Rule("conditionalAnd"), Many((_take("||"), Rule("conditionalAnd")), by_kind=True)),
    "conditionalAnd": (Rule("relation"), Many((_take("&&"), Rule("relation")), by_kind=True)),
    "relation": (Rule("calc"), Many((Level(1), _RELATIONS, Rule("relation", 2)), has_levels=True)),
    "calc": (
        Rule("unary"),
        Many(
            Choice(((Level(2), _take("*", "/", "%"), Rule("calc", 3)), (Level(1), _take("-", "+"), Rule("calc", 2)))),
            has_levels=True,
        ),
    ),
    "unary": Choice(
        (
            Rule("member"),
            (Many(_take("!"), least=1, by_kind=True), Rule("member")),
            (Many(_take("-"), least=1), Rule("member")),
        )
    ),
    "member": (
        Rule("primary"),
        Many(
            Choice(
                (
                    (Level(3), _take("."), _OPTIONAL, Rule("escapeIdent")),
                    (Level(2), _take("."), _take(NAME), *_ARGUMENTS),
                    (Level(1), _take("["), _OPTIONAL, Rule("expr"), _take("]")),
                )
            ),
            has_levels=True,
        ),
    ),
    "primary": Choice(
        (
            (_LEADING_DOT, _take(NAME)),
            (_LEADING_DOT, _take(NAME), *_ARGUMENTS),
            (_take("("), Rule("expr"), _take(")")),
            (_take("["), Maybe(Rule("listInit")), _COMMA, _take("]")),
            (_take("{"), Maybe(Rule("mapInitializerList")), _COMMA, _take("}")),
            (
                _LEADING_DOT,
                _take(NAME),
                Many((_take("."), _take(NAME)), by_kind=True),
                _take("{"),
                Maybe(Rule("fieldInitializerList")),
                _COMMA,
                _take("}"),
            ),
            Rule("literal"),
        )
    ),
    "exprList": (Rule("expr"), Many((_take(","), Rule("expr")), by_kind=True)),
    "listInit": (Rule("optExpr"), Many((_take(","), Rule("optExpr")))),
    "fieldInitializerList": (*_FIELD, Many((_take(","), *_FIELD))),
    "optField": (_OPTIONAL, Rule("escapeIdent")),
    "mapInitializerList": (*_ENTRY, Many((_take(","), *_ENTRY))),
    "escapeIdent": Choice((_take(NAME), _take(QUOTED_NAME)), by_kind=True),
    "optExpr": (_OPTIONAL, Rule("expr")),
    "literal": Choice(
        (
            (Maybe(_take("-")), _take(INT)),
            _take(UINT),
            (Maybe(_take("-")), _take(FLOAT)),
            _take(STRING),
            _take(BYTES),
            _take("true"),
            _take("false"),
            _take("null"),
        )
    ),
}


# The graph


class Edge(NamedTuple):
    target: int
    kinds: frozenset[str] = frozenset()
    rule: str = ""
    precedence: int = 0


class Step(NamedTuple):
    """A part of the grammar with the states in which a parser is in it."""

    part: Part
    state: int
    again: int = -1
    """Of a loop: the state after a turn."""
    steps: tuple[Step, ...] = ()


class Graph:
    def __init__(self) -> None:
        self.edges: list[list[Edge]] = []
        self.first: dict[str, int] = {}
        self.steps: dict[str, Step] = {}
        self.last: dict[int, str] = {}
        """The rule that is over in a state."""
        self._next_kinds: dict[int, frozenset[str]] = {}
        self.after: dict[str, list[int]] = {name: [] for name in RULES}
        """The states after each use of a rule."""
        for name, part in RULES.items():
            end = self._state()
            self.last[end] = name
            self.steps[name] = step = self._build(part, end)
            self.first[name] = step.state
        for edges in self.edges:
            for edge in edges:
                if edge.rule:
                    self.after[edge.rule].append(edge.target)

    def _state(self, *edges: Edge) -> int:
        self.edges.append(list(edges))
        return len(self.edges) - 1

    def _build(self, part: Part, after: int) -> Step:
        """Return the states of a part that is followed by a state."""
        match part:
            case Take(kinds):
                return Step(part, self._state(Edge(after, frozenset(kinds))))
            case Rule(name):
                return Step(part, self._state(Edge(after, rule=name)))
            case Level(precedence):
                return Step(part, self._state(Edge(after, precedence=precedence)))
            case Choice(parts):
                choices = tuple(self._build(each, after) for each in parts)
                return Step(part, self._state(*(Edge(step.state) for step in choices)), steps=choices)
            case Maybe(inner):
                step = self._build(inner, after)
                return Step(part, self._state(Edge(step.state), Edge(after)), steps=(step,))
            case Many(inner, least):
                again = self._state()
                step = self._build(inner, again)
                self.edges[again] += [Edge(step.state), Edge(after)]
                state = self._state(Edge(step.state)) if least else self._state(Edge(step.state), Edge(after))
                return Step(part, state, again, (step,))
            case _:
                steps: tuple[Step, ...] = ()
                for each in reversed(part):
                    step = self._build(each, after)
                    steps, after = (step, *steps), step.state
                return Step(part, after, steps=steps)

    def next_kinds(self, state: int) -> frozenset[str]:
        """Return what may come in a state of a rule; `BACK` if the rule may be over."""
        found = self._next_kinds.get(state)
        if found is None:
            found = self._next_kinds[state] = frozenset(self._look(state, None, set(), frozenset()))
        return found

    def _look(self, state: int, stack: Stack, seen: set[tuple[int, Stack]], inside: frozenset[str]) -> Iterator[str]:
        if (state, stack) in seen:
            return
        seen.add((state, stack))
        if state in self.last:
            if stack is None:
                yield BACK
            else:
                yield from self._look(stack[0], stack[1], seen, inside - {self.last[state]})
        for edge in self.edges[state]:
            if edge.kinds:
                yield from edge.kinds
            elif not edge.rule:
                yield from self._look(edge.target, stack, seen, inside)
            elif edge.rule not in inside:
                yield from self._look(self.first[edge.rule], (edge.target, stack), seen, inside | {edge.rule})


Stack: TypeAlias = "tuple[int, Stack] | None"


@cache
def graph_of_grammar() -> Graph:
    return Graph()


__all__ = [
    "BACK",
    "Choice",
    "Edge",
    "Graph",
    "Level",
    "Many",
    "Maybe",
    "Rule",
    "Stack",
    "Step",
    "Take",
    "graph_of_grammar",
]
