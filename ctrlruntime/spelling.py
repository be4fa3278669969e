"""Suggests the name that was meant, at the end of an error about an unknown one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return the end of a sentence that says that `name` is unknown, with the name that was meant.

    Args:
        name: The unknown name.
        known: The names that are possible.
        otherwise: The end of the sentence where no known name is similar. By default it lists the known names, if there are any.

    """
    names = list(dict.fromkeys(known))
    if (near := nearest(name, names)) is not None:
        return f"; did you mean '{near}'?"
    if otherwise is None:
        return f". Use one of {', '.join(names)}" if names else ""
    return otherwise


def nearest(name: str, known: Iterable[str], *, similar: float = 0.6) -> str | None:
    """Return the known name that is most similar, or None.

    Args:
        name: The name, in any case.
        known: The names that are possible. Of two that differ only in case, the first counts.
        similar: The least similarity, from 0 to 1 (`difflib.SequenceMatcher.ratio`).

    """
    by_lower: dict[str, str] = {}
    for each in known:
        by_lower.setdefault(each.lower(), each)
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=similar)
    return by_lower[close[0]] if close else None
