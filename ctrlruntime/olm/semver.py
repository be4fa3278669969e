"""Semantic versions and ranges of them, as OLM reads them: three numbers always, no leading v.

A range is a list of comparisons with spaces between them, which must all hold. ` || ` separates alternatives: `>=1.0.0 <2.0.0 || >3.0.0`.
An `x` at the end matches any number: `1.2.x`, `1.x`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final

from typing_extensions import override

from ctrlruntime.cel.library.versions import Semver, parse_semver

__all__ = ["Range", "Version", "parse", "parse_range"]

_COMPARED: Final[dict[str, Callable[[Version, Version], bool]]] = {
    "": operator.eq,
    "=": operator.eq,
    "==": operator.eq,
    "!": operator.ne,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_TERM: Final = re.compile(r"([=!<>]*)([0-9].*)\Z")
_OPEN: Final = re.compile(r"([0-9]+)(?:\.([0-9]+|x))?\.x\Z", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version, ordered by precedence: a pre-release is before its release, and build metadata is ignored."""

    text: str
    semver: Semver = field(repr=False)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Major, minor and patch."""
        return self.semver.numbers

    @property
    def is_prerelease(self) -> bool:
        return bool(self.semver.stages)

    @override
    def __eq__(self, other: object) -> bool:
        return self.semver == other.semver if isinstance(other, Version) else NotImplemented

    @override
    def __hash__(self) -> int:
        return hash(self.semver)

    def __lt__(self, other: Version) -> bool:
        return self.semver.compare(other.semver) < 0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Term:
    """One comparison of a range."""

    word: str
    version: Version

    def holds(self, version: Version) -> bool:
        return _COMPARED[self.word](version, self.version)


@dataclass(frozen=True, slots=True)
class Range:
    """A range. A version is in it if all comparisons of one alternative hold."""

    text: str
    alternatives: tuple[tuple[_Term, ...], ...] = field(repr=False)

    def __contains__(self, version: Version) -> bool:
        return any(all(term.holds(version) for term in terms) for terms in self.alternatives)

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Version | None:
    """Return the version; None if the text is not a version: `v1.0.0`, `1.0`, `01.0.0`."""
    found = parse_semver(text)
    return Version(text, found) if found is not None else None


def parse_range(text: str) -> Range | None:
    """Return the range; None for invalid text: `1.0`, `~1.2.0`, an `||` without spaces around it."""
    # Spaces after an operator belong to it.
    alternatives: list[list[_Term]] = [[]]
    for word in re.sub(r"([=<>]) +", r"\1", text).split(" "):
        if word == "||":
            alternatives.append([])
        elif word:
            terms = list(_terms(word))
            if not terms:
                return None
            alternatives[-1].extend(terms)
    return Range(text, tuple(map(tuple, alternatives))) if all(alternatives) else None


def _terms(word: str) -> Iterator[_Term]:
    """Yield the comparisons a word stands for; none when it is no comparison."""
    found = _TERM.match(word)
    if found is None or found[1] not in _COMPARED:
        return
    sign, text = found.groups()
    any_last = _OPEN.match(text)
    if any_last is None:
        version = parse(text)
        if version is not None:
            yield _Term(sign, version)
        return
    first, after = _bounds(any_last)
    match sign:
        case ">=" | "<":
            yield from _made(sign, first)
        case ">":
            yield from _made(">=", after)
        case "<=":
            yield from _made("<", after)
        case "!" | "!=":  # as OLM's parser has it: both have to hold, which nothing does
            yield from (*_made("<", first), *_made(">=", after))
        case _:
            yield from (*_made(">=", first), *_made("<", after))


def _bounds(found: re.Match[str]) -> tuple[str, str]:
    """Return the first version that `1.x` or `1.2.x` means, and the first one after."""
    major = int(found[1])
    if found[2] is None:
        return f"{major}.0.0", f"{major + 1}.0.0"
    minor = 0 if found[2] == "x" else int(found[2])
    return f"{major}.{minor}.0", f"{major}.{minor + 1}.0"


def _made(sign: str, text: str) -> Iterator[_Term]:
    version = parse(text)
    if version is not None:
        yield _Term(sign, version)
