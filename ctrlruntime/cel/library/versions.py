"""Semantic versions, read and refused as github.com/blang/semver does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ctrlruntime.addresses import go_quoted
from ctrlruntime.cel.failures import EvaluationError
from ctrlruntime.cel.functions import Declared

_DIGITS = re.compile("[0-9]+")
_WORD = re.compile("[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version; build metadata does not count in comparisons."""

    cel_name: ClassVar[str] = "kubernetes.Semver"
    numbers: tuple[int, int, int]
    stages: tuple[tuple[int, int, str], ...] = ()

    def compare(self, other: Semver) -> int:
        left, right = self._order(), other._order()
        return (left > right) - (left < right)

    def _order(self) -> tuple[Any, ...]:
        return (self.numbers, not self.stages, self.stages)


def declared() -> Iterator[Declared]:
    """Yield the functions of versions."""
    name = Semver.cel_name
    yield Declared("semver", f"(string) -> {name}", read_semver)
    yield Declared("semver", f"(string, bool) -> {name}", read_semver)
    yield Declared("isSemver", "(string) -> bool", lambda text: parse_semver(text) is not None)
    yield Declared("isSemver", "(string, bool) -> bool", lambda text, loose: parse_semver(text, loose) is not None)
    for index, part in enumerate(("major", "minor", "patch")):
        yield Declared(part, f"{name}.() -> int", _number_of(index))
    yield Declared("isGreaterThan", f"{name}.({name}) -> bool", lambda a, b: a.compare(b) > 0)
    yield Declared("isLessThan", f"{name}.({name}) -> bool", lambda a, b: a.compare(b) < 0)
    yield Declared("compareTo", f"{name}.({name}) -> int", lambda a, b: a.compare(b))


def _number_of(index: int) -> Callable[[Semver], int]:
    return lambda version: version.numbers[index]


def parse_semver(text: str, normalize: bool = False) -> Semver | None:
    """Return the version; None when the text is not one. `normalize` forgives a `v`, missing numbers and leading zeros."""
    try:
        return read_semver(text, normalize)
    except EvaluationError:
        return None


def read_semver(text: str, normalize: bool = False) -> Semver:
    """Return the version, as `parse_semver`. Raises: EvaluationError."""
    if normalize:
        text = _normalized(text)
    parts = text.split(".", 2)
    if len(parts) < 3:
        raise EvaluationError("No Major.Minor.Patch elements found" if text else "Version string empty")
    release, plus, build = parts[2].partition("+")
    patch, dash, stages = release.partition("-")
    numbers = (_number("major", parts[0]), _number("minor", parts[1]), _number("patch", patch))
    found = tuple(map(_stage, stages.split("."))) if dash else ()
    for word in build.split(".") if plus else ():
        if not _WORD.fullmatch(word):
            shown = f"Invalid character(s) found in build meta data {go_quoted(word)}"
            raise EvaluationError(shown if word else "Build meta data is empty")
    return Semver(numbers, found)


def _normalized(text: str) -> str:
    """Return the text as pkg/cel/library/semverlib.go of kube-apiserver completes it."""
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search("[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    rest = part.lstrip("0")
    return rest if _DIGITS.match(rest) else f"0{rest}"


def _number(name: str, text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name} number {go_quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{name.capitalize()} number must not contain leading zeroes {go_quoted(text)}")
    return _unsigned(text)


def _stage(text: str) -> tuple[int, int, str]:
    """Return a pre-release identifier so that it sorts: numbers before words."""
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {go_quoted(text)}")
        return 0, _unsigned(text), ""
    if not _WORD.fullmatch(text):
        shown = f"Invalid character(s) found in prerelease {go_quoted(text)}"
        raise EvaluationError(shown if text else "Prerelease is empty")
    return 1, 0, text


def _unsigned(text: str) -> int:
    if len(text) > 20 or int(text) >= 2**64:
        raise EvaluationError(f"strconv.ParseUint: parsing {go_quoted(text)}: value out of range")
    return int(text)


__all__ = ["Semver", "declared", "parse_semver", "read_semver"]
