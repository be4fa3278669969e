"""Changes of definitions and releases as lines for people, and as JSON: what `ctrl crd diff` and `ctrl bundle compare` print."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import click

from ctrlruntime.cli.output import Coloured, say
from ctrlruntime.project.compatibility import Level
from ctrlruntime.spelling import did_you_mean

__all__ = ["Groups", "Shown", "as_json", "breaks", "known_codes", "print_changes"]

_ALLOWED: Final = "allowed"
_COLORS: Final[Mapping[str, str]] = {"breaking": "red", "risky": "yellow", "harmless": "green"}
_REFUSES: Final = {
    "": "",
    "new values": " Existing values stay valid until they change (Kubernetes 1.30 or later).",
    "updates": " Updates of existing objects are rejected, too.",
}
_WIDEST: Final = 60
"""Characters of a value that are printed; --json has the rest."""


class Shown(Protocol):
    """A change."""

    @property
    def code(self) -> str: ...
    @property
    def level(self) -> Level: ...
    @property
    def version(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def was(self) -> Any: ...
    @property
    def now(self) -> Any: ...
    @property
    def text(self) -> str: ...
    @property
    def refuses(self) -> str: ...


Groups: TypeAlias = Sequence[tuple[str, Sequence[Shown]]]
"""The changes of each compared object, by its name."""


def known_codes(given: tuple[str, ...], codes: Iterable[str]) -> tuple[str, ...]:
    """Return the codes of `--allow`. Raises: BadParameter for an unknown code."""
    codes = list(codes)
    for code in given:
        if code not in codes:
            hint = did_you_mean(code, codes, ". Use one that the command prints, such as field-removed")
            raise click.BadParameter(f"code {code!r} does not exist{hint}", param_hint="--allow")
    return given


def breaks(groups: Groups, allowed: Collection[str]) -> bool:
    """Tell whether something breaks that is not allowed."""
    return any(one.level is Level.BREAKING and one.code not in allowed for _, several in groups for one in several)


def as_json(groups: Groups, allowed: Collection[str], *, name: str) -> list[Mapping[str, Any]]:
    """Return the changes as JSON has them; `name` is the key of what was compared."""
    return [
        {
            name: compared,
            "code": one.code,
            "level": one.level,
            "allowed": one.code in allowed,
            "version": one.version,
            "path": one.path,
            "was": one.was,
            "now": one.now,
            "text": one.text,
            "refuses": one.refuses,
        }
        for compared, several in groups
        for one in several
    ]


def print_changes(groups: Groups, allowed: Collection[str]) -> None:
    """Print the changes of each thing below its name, and how many there are of each level."""
    counts: Counter[str] = Counter()
    for name, several in groups:
        if several:
            say(name)
        for one in several:
            word = _ALLOWED if one.level is Level.BREAKING and one.code in allowed else one.level.value
            counts[word] += 1
            _print(one, word)
    said = [
        f"{counts[word]} {word}" for word in (Level.BREAKING, _ALLOWED, Level.RISKY, Level.HARMLESS) if counts[word]
    ]
    say(", ".join(said) or "no changes")


def _print(one: Shown, word: str) -> None:
    place = " ".join(part for part in (one.version, one.path) if part)
    say("  ", Coloured(f"{word:<8}", _COLORS.get(word)), f"  {one.code}{' at ' if place else ''}{place}{_change(one)}")
    say(f"            {one.text}.{_REFUSES[one.refuses]}")


def _change(one: Shown) -> str:
    if one.was is None and one.now is None:
        return ""
    return f": {_value(one.was)} -> {_value(one.now)}"


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
