"""The completion indexes of an Indexed Job: which are done, which have failed for good, which are open.

In a status they are text: `0,2-4`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ctrlruntime.apiserver.controllers.objects import metadata
from ctrlruntime.schema.trees import Document

INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class Indexes:
    """The indexes 0 to `total` - 1; `limit` is how often one may fail and be tried again, None without a limit of its own."""

    total: int
    completed: set[int]
    failed: set[int]
    limit: int | None = None
    failures: dict[int, int] = field(default_factory=dict[int, int])
    """How often an index has failed so far."""

    def complete(self, index: int) -> None:
        if index < self.total:
            self.completed.add(index)

    def fail(self, index: int, count: int, *, for_good: bool) -> None:
        """Note the `count`-th failure of an index."""
        self.failures[index] = max(count, self.failures.get(index, 0))
        if index < self.total and (for_good or (self.limit is not None and count > self.limit)):
            self.failed.add(index)

    @property
    def open(self) -> list[int]:
        return [index for index in range(self.total) if index not in self.completed and index not in self.failed]

    @property
    def undecided(self) -> int:
        return len(self.open)

    @property
    def are_all_decided(self) -> bool:
        return not self.open

    def satisfies(self, rule: Document) -> bool:
        """Tell whether a rule of a success policy is met."""
        listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        found = self.completed if listed is None else self.completed & parse_indexes(listed)
        if count is not None:
            return len(found) >= int(count)
        return listed is not None and found >= parse_indexes(listed)

    def shown(self) -> Document:
        """Return the fields of a status."""
        texts = {"completedIndexes": format_indexes(self.completed), "failedIndexes": format_indexes(self.failed)}
        if self.limit is None:
            del texts["failedIndexes"]
        return {name: text for name, text in texts.items() if text}


def index_of(pod: Document) -> int | None:
    text = str((metadata(pod).get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdigit() else None


def parse_indexes(text: str) -> set[int]:
    """Read `0,2-4`; parts that are not numbers are passed over."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (last.isdigit() or not last):
            found.update(range(int(first), int(last or first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Write indexes as a status does: runs of three and more as a range."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)
