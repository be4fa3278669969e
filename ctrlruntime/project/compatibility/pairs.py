"""Two sets of definitions: which of one is compared with which of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.project.compatibility.definition import compare
from ctrlruntime.project.compatibility.finding import Code, Finding

__all__ = ["Comparison", "compare_all"]

Definition: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed in the definition of a name; without findings when nothing did."""

    name: str
    findings: tuple[Finding, ...]


def compare_all(old: Sequence[Definition], new: Sequence[Definition]) -> list[Comparison]:
    """Compare each definition with the one of its name, or else of its group and kind, or else of its kind; the result is sorted by name."""
    return sorted(_comparisons(list(old), list(new)), key=lambda comparison: comparison.name)


def _comparisons(old: list[Definition], new: list[Definition]) -> Iterator[Comparison]:
    for key in (_name, _group_and_kind, _of_kind):
        for was, now in _paired(old, new, key):
            yield Comparison(_name(was), tuple(compare(was, now)))
    for was in old:
        yield Comparison(_name(was), (Finding(code=Code.DEFINITION_REMOVED, was=_name(was)),))
    for now in new:
        yield Comparison(_name(now), (Finding(code=Code.DEFINITION_ADDED, now=_name(now)),))


def _paired(
    old: list[Definition], new: list[Definition], key: Callable[[Definition], Any]
) -> Iterator[tuple[Definition, Definition]]:
    """Take out of both lists and yield those that have a key in common which no other one has."""
    for was in list(old):
        here = [one for one in old if key(one) == key(was)]
        there = [one for one in new if key(one) == key(was)]
        if len(here) == len(there) == 1:
            old.remove(was)
            new.remove(there[0])
            yield was, there[0]


def _name(definition: Definition) -> str:
    return str(definition["metadata"]["name"])


def _group_and_kind(definition: Definition) -> tuple[str, str]:
    return definition["spec"]["group"], definition["spec"]["names"]["kind"]


def _of_kind(definition: Definition) -> str:
    return str(definition["spec"]["names"]["kind"])
