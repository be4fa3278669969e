"""Which switches of a chart a thing depends on: from the cases it is there in, the shortest condition that says so.

A case is one setting of all switches. Conditions are Helm's: `and .Values.metrics.enabled (not .Values.webhook.enabled)`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Case", "Cases", "Switches", "joined"]

Case: TypeAlias = tuple[bool, ...]
"""One setting of all switches, in their order."""

Cases: TypeAlias = frozenset[Case]

_Literals: TypeAlias = tuple[bool | None, ...]  # a wanted setting of each switch; None: any


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches of a chart: names, and the value of the chart that says whether one is on."""

    values: Mapping[str, str]

    @property
    def cases(self) -> list[Case]:
        """Every setting of them."""
        return list(itertools.product((True, False), repeat=len(self.values)))

    def named(self, case: Case) -> dict[str, bool]:
        return dict(zip(self.values, case, strict=True))

    def condition(self, wanted: Cases, among: Cases) -> str:
        """Return what holds in the wanted cases and in no other of those `among`; empty when it holds in all."""
        return joined("or", [self._text(each) for each in self._cover(wanted, among)])

    def _cover(self, wanted: Cases, among: Cases) -> Iterator[_Literals]:
        left = set(wanted)
        while left:
            best = max(
                self._fitting(wanted, among), key=lambda each: len([case for case in left if _holds(each, case)])
            )
            yield best
            left = {case for case in left if not _holds(best, case)}

    def _fitting(self, wanted: Cases, among: Cases) -> Iterator[_Literals]:
        """Yield what holds in wanted cases only, the shortest first, and of those what asks for the first switches."""
        every = itertools.product((None, True, False), repeat=len(self.values))
        for literals in sorted(every, key=lambda each: (len(each) - each.count(None), [one is None for one in each])):
            if all(case in wanted for case in among if _holds(literals, case)):
                yield literals

    def _text(self, literals: _Literals) -> str:
        pairs = zip(self.values.values(), literals, strict=True)
        return joined("and", [value if is_on else f"not {value}" for value, is_on in pairs if is_on is not None])


def joined(word: str, conditions: Sequence[str]) -> str:
    """Return conditions as one, by `and` or `or`; the empty condition always holds."""
    if word == "or" and "" in conditions:
        return ""
    parts = _once(each for each in conditions if each)
    if len(parts) < 2:
        return parts[0] if parts else ""
    return " ".join((word, *(f"({each})" if " " in each else each for each in parts)))


def _once(parts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(parts))


def _holds(literals: _Literals, case: Case) -> bool:
    return all(wanted is None or wanted == is_on for wanted, is_on in zip(literals, case, strict=True))
