"""What is printed: a row for each figure, medians with their spread, ratios, and the bars."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.peers.bars import BARS

PROGRAMS = {
    "ctrlruntime": "ctrlruntime",
    "uvloop": "on uvloop",
    "go": "Go",
    "rust": "Rust",
    "kopf": "kopf",
    "floor": "floor",
}
SERVERS = {"embedded": "embedded", "real": "real"}
"""The columns of the second table; the first of them is divided by the other."""

MEMORY = {"resident", "settled", "peak", "peak_ratio"}
"""What the floor is not asked for: it keeps nothing."""

PEERS = ("go", "rust", "kopf", "floor")
"""By whose medians ctrlruntime's are divided."""

TITLES = {
    "synced": "start to synced, {count:,} custom resources",
    "reconciled": "start to all reconciled once, {count:,} custom resources",
    "pods": "start to synced, {count:,} Pods",
    "children": "create a child and write the status of {count:,} objects",
    "owns": "create {count:,} objects, a child of each and its status, in one process",
    "reads": "reads from the cache, {count:,} objects",
    "load": "{count:,} objects, 500 updates a second for a minute: call made to reconcile begins",
    "latency": "one object updated: call made to reconcile begins",
    "queue": "queue: add, get, forget, done; {count:,} keys",
    "idle": "idle operator: three informers, {count:,} objects",
    "metadata": "start to synced, metadata only, {count:,} custom resources",
    "namespaces": "start to synced, a cache of {count:,} namespaces with an object each",
    "controllers": "100 controllers in one manager: start to {count:,} reconciles",
    "events": "a watch event: one of {count:,} cached custom resources was changed",
    "applied": "server-side apply of a child for each of {count:,} objects",
    "webhook": "webhook: a defaulter is called {count:,} times a second",
    "startup": "start to end of a process (floor: import asyncio, ssl)",
    "server": "API server, {count:,} ConfigMaps",
}
SECOND = ("server",)
"""The workloads that stand in a table of their own."""

FIGURES = {
    "synced": ("wall", "cpu", "kib", "resident", "peak"),
    "reconciled": ("wall", "cpu", "resident"),
    "pods": ("wall", "cpu", "kib", "resident", "peak"),
    "children": ("rate", "wall", "cpu"),
    "reads": ("gets", "gets_cpu", "lookups", "lookups_cpu", "list_ms", "list_typed_ms", "list_all_ms", "held_ms"),
    "owns": ("rate", "wall", "cpu"),
    "load": ("p50", "p99", "update_us", "resident"),
    "latency": ("p50", "p99"),
    "queue": ("operations", "operations_cpu", "operations_by_one", "operations_by_one_cpu", "operations_no_order"),
    "idle": ("resident", "settled", "idle_cpu", "start"),
    "metadata": ("wall", "cpu", "kib", "resident", "peak", "peak_ratio"),
    "namespaces": ("wall", "cpu", "resident"),
    "controllers": ("wall", "cpu", "resident"),
    "events": ("event_us_1", "event_us_5", "event_us_20", "event_us_rejected"),
    "applied": ("rate", "wall", "cpu"),
    "webhook": ("p50", "p99", "review_us"),
    "startup": ("import", "import_cpu", "operator", "operator_cpu", "help", "help_cpu", "manifests", "manifests_cpu"),
    "server": ("ready", "thread_ready", "creates", "create", "get", "list", "patch", "apply", "events", "memory"),
}
UNITS = {
    "wall": ("wall, s", 3),
    "cpu": ("CPU, s", 2),
    "kib": ("memory an object, KiB", 2),
    "resident": ("resident, MB", 1),
    "settled": ("resident, free memory given back, MB", 1),
    "peak": ("resident at most, MB", 1),
    "rate": ("objects a second", 0),
    "gets": ("typed gets a second", 0),
    "gets_cpu": ("typed gets a second of CPU", 0),
    "operations_cpu": ("the same, a second of CPU", 0),
    "operations_by_one_cpu": ("the same, a second of CPU", 0),
    "list_ms": ("list a tenth by label, names, ms", 2),
    "list_typed_ms": ("list a tenth by label, typed, ms", 1),
    "list_all_ms": ("list all, typed, ms", 0),
    "held_ms": ("event loop held by that at most, ms", 1),
    "update_us": ("CPU an update, us", 1),
    "p50": ("p50, ms", 2),
    "p99": ("p99, ms", 2),
    "operations": ("a second, filled then drained", 0),
    "operations_by_one": ("a second, one by one", 0),
    "operations_no_order": ("a second, Go's plain queue", 0),
    "idle_cpu": ("CPU while idle, cores", 3),
    "start": ("program start to ready, s", 2),
    "lookups": ("objects found by an index a second", 0),
    "lookups_cpu": ("the same, a second of CPU", 0),
    "peak_ratio": ("at most / free memory given back", 2),
    "event_us_1": ("CPU an event, 1 subscriber, us", 1),
    "event_us_5": ("CPU an event, 5 subscribers, us", 1),
    "event_us_20": ("CPU an event, 20 subscribers, us", 1),
    "event_us_rejected": ("CPU an event, a predicate rejects it, us", 1),
    "review_us": ("CPU a review, us", 0),
    "import": ("import ctrlruntime, ms", 0),
    "import_cpu": ("import ctrlruntime, CPU, ms", 0),
    "operator": ("what an operator uses of it, ms", 0),
    "operator_cpu": ("what an operator uses of it, CPU, ms", 0),
    "help": ("ctrl --help, ms", 0),
    "help_cpu": ("ctrl --help, CPU, ms", 0),
    "manifests": ("ctrl manifests, small operator, ms", 0),
    "manifests_cpu": ("ctrl manifests, CPU, ms", 0),
    "ready": ("process start to ready, s", 2),
    "thread_ready": ("ready in a thread, ms", 0),
    "creates": ("creates a second, 20 at a time", 0),
    "create": ("create alone, ms", 2),
    "get": ("get alone, ms", 2),
    "list": ("list of them all, ms", 1),
    "patch": ("merge patch alone, ms", 2),
    "apply": ("apply of a Deployment, ms", 2),
    "events": ("an event of each to 10 watchers, s", 2),
    "memory": ("resident with them, MB", 0),
}

Values = Mapping[tuple[str, str, str], Sequence[float]]


def values(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[float]]:
    """Return the values of each (workload, figure, program), in the order of the runs."""
    found: dict[tuple[str, str, str], list[float]] = {}
    rows = list(rows)
    for row in rows:
        for figure, value in row.items():
            if isinstance(value, int | float) and not (row["program"] == "floor" and figure in MEMORY):
                found.setdefault((row["workload"], figure, row["program"]), []).append(value)
    for row in rows:
        empty = found.get((f"{row['workload']}-empty", "settled", row["program"]))
        if empty and row["count"]:  # never the floor, which keeps nothing
            kib = (row["settled"] - statistics.median(empty)) * 1e6 / 1024 / row["count"]
            found.setdefault((row["workload"], "kib", row["program"]), []).append(kib)
    return found


def median(found: Values, workload: str, figure: str, program: str) -> float | None:
    measured = found.get((workload, figure, program))
    return statistics.median(measured) if measured else None


def tables(found: Values) -> list[str]:
    """Return the lines of the table, and below it those of the second one; of what was not measured there are none."""
    first = render(found, [name for name in TITLES if name not in SECOND])
    second = render(found, SECOND, SERVERS, ("real",))
    return [*first, *([""] if first and second else []), *second]


def render(
    found: Values,
    workloads: Iterable[str] = tuple(TITLES),
    columns: Mapping[str, str] = PROGRAMS,
    divisors: Collection[str] = PEERS,
) -> list[str]:
    """Return a table's lines: median (least to most), then the first column's median divided by each of the others'."""
    counts = {workload: int(values[0]) for (workload, figure, _), values in found.items() if figure == "count"}
    workloads = [workload for workload in workloads if workload in counts]
    if not workloads:
        return []
    shown = [name for name in columns if any((workload, "count", name) in found for workload in workloads)]
    first = next(iter(columns))
    peers = [name for name in shown if name in divisors and first in shown]
    grid = [["", *(columns[name] for name in shown), *(f"/{columns[name]}" for name in peers)]]
    for workload in workloads:
        grid.append([TITLES[workload].format(count=counts[workload])])
        grid += [
            row(found, workload, figure, first, shown, peers)
            for figure in FIGURES[workload]
            if any((workload, figure, program) in found for program in shown)
        ]
    widths = [max(len(line[column]) for line in grid if len(line) > 1) for column in range(len(grid[0]))]
    return [aligned(line, widths) for line in grid]


def row(found: Values, workload: str, figure: str, first: str, shown: Sequence[str], peers: Sequence[str]) -> list[str]:
    title, digits = UNITS[figure]
    ours = median(found, workload, figure, first)
    cells = [f"  {title}", *(cell(found.get((workload, figure, name)), digits) for name in shown)]
    for name in peers:
        theirs = median(found, workload, figure, name)
        cells.append(f"{ours / theirs:.2f}" if ours is not None and theirs else "")
    return cells


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first column to the left, the others to the right; a title stands alone and may be longer."""
    first, *others = [f"{cells[0]:{widths[0]}}", *cells[1:]]
    return "  ".join([first, *(f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=False))]).rstrip()


def cell(measured: Sequence[float] | None, digits: int) -> str:
    if not measured:
        return ""
    spread = f" ({min(measured):,.{digits}f}-{max(measured):,.{digits}f})" if len(measured) > 1 else ""
    return f"{statistics.median(measured):,.{digits}f}{spread}"


def judge(found: Values, workloads: Collection[str] = tuple(TITLES)) -> list[str]:
    """Return one line for each bar of these workloads."""
    lines = []
    for bar in (bar for bar in BARS if bar.workload in workloads):
        ours = median(found, bar.workload, bar.figure, bar.program)
        theirs = median(found, bar.workload, bar.figure, bar.peer) if bar.peer else None
        verdict, value = bar.judge(ours, theirs)
        limit = f"{bar.sense} {bar.limit:,g}" + (f" x {PROGRAMS[bar.peer]}" if bar.peer else "")
        shown = "" if value is None else f"{value:,.3g}" if bar.limit < 1000 else f"{value:,.0f}"
        lines.append(f"{verdict:14}{bar.workload:12}{UNITS[bar.figure][0]:38}{limit:18}{shown:>10}")
    return lines
