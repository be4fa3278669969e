"""What the tests cost: seconds and processor time by folder, printed at the end of a run, so that growth is seen.

Processor time is that of the test's process and of the processes it has started. That of a process that outlives its test, such as a
server that many tests share, counts for each file what it took during the tests of that file. `--usage=FILE` writes both for each test
file, as CSV.
"""

from __future__ import annotations

import contextlib
import csv
import os
import resource
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

FEWEST = 60.0
"""A run of fewer seconds prints no table."""


@dataclass
class Cost:
    tests: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    def add(self, other: Cost) -> None:
        self.tests += other.tests
        self.seconds += other.seconds
        self.processor += other.processor


class Measure:
    """Writes the processor time of each phase of a test into its report. In the process that runs the tests."""

    def __init__(self) -> None:
        self._before = _processor_seconds()
        self._running = 0.0  # of the processes that ran at the end of the last file
        self._is_last = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self._is_last = nextitem is None or nextitem.path != item.path

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call):
        report = yield
        now = _processor_seconds()
        report.processor = now - self._before
        self._before = now
        if self._is_last and call.when == "teardown":  # not for each test: it takes 0.1 ms
            running = running_seconds()
            # What has ended is in `now` as a whole, and leaves what was counted of it before.
            report.processor += running - self._running
            self._running = running
        return report


class Table:
    """Adds the reports up and prints them. In the process that prints."""

    def __init__(self, file: str | None = None) -> None:
        self._file = file
        self._costs: defaultdict[str, Cost] = defaultdict(Cost)

    def pytest_runtest_logreport(self, report):
        is_test = report.when == "call" or (report.when == "setup" and report.outcome != "passed")
        cost = Cost(int(is_test), report.duration, getattr(report, "processor", 0.0))
        self._costs[report.nodeid.partition("::")[0]].add(cost)

    def pytest_terminal_summary(self, terminalreporter):
        if self._file is not None:
            with Path(self._file).open("w", newline="") as out:
                rows = csv.writer(out)
                rows.writerow(["file", "tests", "seconds", "processor seconds"])
                for file, cost in sorted(self._costs.items()):
                    rows.writerow([file, cost.tests, f"{cost.seconds:.2f}", f"{cost.processor:.2f}"])
        if sum(cost.seconds for cost in self._costs.values()) < FEWEST:
            return
        terminalreporter.section("seconds by folder")
        for line in table(self._costs):
            terminalreporter.write_line(line)


def table(costs: dict[str, Cost]) -> list[str]:
    """Return a line for each folder directly below `tests`, the most expensive first, and their sum."""
    folders: defaultdict[str, Cost] = defaultdict(Cost)
    for file, cost in costs.items():
        parts = Path(file).parts
        folders["/".join(parts[:2]) if len(parts) > 2 else parts[0]].add(cost)
    total = Cost()
    for cost in folders.values():
        total.add(cost)
    rows = [*sorted(folders.items(), key=lambda row: -row[1].seconds), ("all", total)]
    width = max(len("folder"), *(len(name) for name, _ in rows))
    lines = [f"{'folder':{width}}  {'tests':>6}  {'seconds':>8}  {'processor':>9}"]
    lines += [f"{name:{width}}  {cost.tests:6}  {cost.seconds:8.0f}  {cost.processor:9.0f}" for name, cost in rows]
    return lines


def _processor_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def running_seconds() -> float:
    """Return the processor time of the processes that this one has started and not waited for (Linux)."""
    total = 0
    with contextlib.suppress(FileNotFoundError):
        for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - it takes names
            for pid in Path(f"/proc/self/task/{task}/children").read_text().split():
                with contextlib.suppress(OSError):
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    total += sum(map(int, fields[11:15]))  # user and system: its own, and of those it has waited for
    return total / os.sysconf("SC_CLK_TCK")
