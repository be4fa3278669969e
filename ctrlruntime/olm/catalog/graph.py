"""The upgrade graph of a channel: which bundle is its head, and which are reached from there.

An entry replaces one other entry (`replaces`), and skips any number of entries (`skips`). A skipped bundle can be upgraded, but is no longer
installed, so the chain of `replaces` need not reach it. The last entry of the chain may replace a bundle that is not in the channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Entry", "chain", "cycle", "heads", "stranded"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A bundle in a channel, and the bundles that can be upgraded to it."""

    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: str = ""


Entries = Mapping[str, Entry]
"""The entries of a channel by their names."""


def heads(entries: Entries) -> list[str]:
    """Return the entries that no entry replaces or skips, sorted. A channel has one."""
    passed = {name for entry in entries.values() for name in (entry.replaces, *entry.skips)}
    return sorted(entries.keys() - passed)


def chain(entries: Entries, start: str) -> Iterator[str]:
    """Yield an entry, and the entries that it reaches by `replaces`, each once.

    A skipped release ends the chain: no upgrade goes through it.
    """
    skipped = _skipped(entries)
    seen: set[str] = set()
    name = start
    while name in entries and name not in seen:
        yield name
        seen.add(name)
        name = entries[name].replaces
        if name in skipped:
            return


def cycle(entries: Entries, start: str) -> list[str]:
    """Return the cycle of `replaces` that an entry reaches, from the first repeated name to the same name; empty without one.

    The search ends where `chain` ends: skipped releases may form a cycle, because no upgrade goes there.
    """
    path = list(chain(entries, start))
    again = entries[path[-1]].replaces if path else ""
    return [*path[path.index(again) :], again] if again in path else []


def stranded(entries: Entries, head: str) -> list[str]:
    """Return the entries that the head does not reach and that no entry skips, sorted."""
    return sorted(entries.keys() - set(chain(entries, head)) - _skipped(entries))


def _skipped(entries: Entries) -> set[str]:
    return {name for entry in entries.values() for name in entry.skips}
