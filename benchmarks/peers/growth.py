"""How the cost of ctrlruntime grows with the number of objects: each workload at 1/100, 1/10 and the whole of its size.

The exponent between two sizes is log(cost ratio) / log(size ratio): 1 is linear, below 1 a fixed part is still in it, 0 is what does
not depend on the size. What is done in a second costs its inverse.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

from benchmarks.peers import table
from benchmarks.peers.workloads import Bench, Sizes

PARTS = (100, 10, 1)
FIGURES = {
    "synced": ("wall", "cpu", "resident"),
    "reconciled": ("wall", "cpu"),
    "pods": ("wall", "cpu", "resident"),
    "metadata": ("wall", "cpu", "resident"),
    "children": ("wall", "cpu"),
    "owns": ("wall", "cpu"),
    "applied": ("wall", "cpu"),
    "reads": ("gets_cpu", "lookups_cpu", "list_ms", "list_typed_ms", "list_all_ms"),
    "load": ("p50", "p99", "update_us", "resident"),
    "latency": ("p50",),
    "events": ("event_us_1", "event_us_5", "event_us_20", "event_us_rejected"),
    "queue": ("operations_cpu", "operations_by_one_cpu"),
    "idle": ("resident", "idle_cpu"),
    "namespaces": ("wall", "cpu", "resident"),
    "controllers": ("wall", "cpu", "resident"),
    "webhook": ("p50", "p99", "review_us"),
    "server": ("creates", "get", "list", "events", "memory"),
}
RATES = {
    "gets_cpu": "typed gets a second of CPU",
    "lookups_cpu": "found by an index a second of CPU",
    "operations_cpu": "filled, then drained, a second of CPU",
    "operations_by_one_cpu": "one by one, a second of CPU",
    "creates": "creates a second, 20 at a time",
}
"""What is more the better, and how it is called where it stands alone."""


def measure(bench: Bench, divide: int) -> list[str]:
    """Run the first program of `bench` at each size, keep the rows in it, and return the lines to print."""
    found: dict[int, table.Values] = {}
    for part in PARTS:
        one = dataclasses.replace(
            bench,
            programs=bench.programs[:1],
            only=bench.only & set(FIGURES),
            sizes=Sizes().divided(divide * part),
            rows=[],
            facts={},
        )
        one.run()
        found[part] = table.values(one.rows)
        bench.rows += [{**row, "workload": f"{row['workload']}-growth"} for row in one.rows]
        bench.facts |= one.facts
    lines = [
        "growth of ctrlruntime: size and median, three times; the exponents of the cost, from one size to the next"
    ]
    return lines + [line for name in FIGURES for figure in FIGURES[name] if (line := row(found, name, figure))]


def row(found: dict[int, table.Values], workload: str, figure: str) -> str:
    program = "embedded" if workload in table.SECOND else "ctrlruntime"
    costs = [table.median(found[part], workload, figure, program) or 0.0 for part in PARTS]
    sizes = [table.median(found[part], workload, "count", program) or 0.0 for part in PARTS]
    if not all(costs) or not all(sizes):
        return ""
    title, digits = table.UNITS[figure]
    title = RATES.get(figure, title)
    shown = "  ".join(f"{size:>8,.0f}: {cost:>10,.{digits}f}" for size, cost in zip(sizes, costs, strict=True))
    sign = -1 if figure in RATES else 1
    powers = "  ".join(f"{sign * power:5.2f}" for power in exponents(sizes, costs))
    return f"  {workload:12}{title:42}{shown}   {powers}"


def exponents(sizes: Sequence[float], costs: Sequence[float]) -> list[float]:
    pairs = list(zip(sizes, costs, strict=True))
    steps = itertools.pairwise(pairs)
    return [math.log(cost / cost0) / math.log(size / size0) for (size0, cost0), (size, cost) in steps]
