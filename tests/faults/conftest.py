"""The fault suite runs on both servers, each behind a `FaultProxy`; a run in one process prints at its end how long each recovery took.

`CTRLRUNTIME_FAULT_SCALE` is the factor of all watch times and bounds. `scripts/faults` sets it, and then the bounds are tight. In the suite it is
0.05, and each bound has two minutes more: a loaded machine is not what is tested.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from captured_log import captured_log
from fault_scenarios import OWN_TIME, Outcome, Times
from servers import LONGEST_WAIT, namespace, new_namespace, server

from ctrlruntime.log.options import WARN

__all__ = ["namespace", "new_namespace", "server"]

OUTCOMES = pytest.StashKey[list[Outcome]]()
SCALE_VARIABLE = "CTRLRUNTIME_FAULT_SCALE"
SCALE = float(os.environ.get(SCALE_VARIABLE, "0.05"))


@pytest.fixture(scope="session")
def times() -> Times:
    """The times of watches, scaled."""
    return Times(SCALE, own=OWN_TIME if SCALE_VARIABLE in os.environ else LONGEST_WAIT)


@pytest.fixture
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    """Where a scenario puts how it went; printed at the end of the run."""
    return request.config.stash.setdefault(OUTCOMES, [])


@pytest.fixture
def log_lines() -> Iterator[list[dict[str, object]]]:
    """Warnings and errors that are logged, as dicts."""
    with captured_log(WARN) as lines:
        yield lines


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    outcomes = config.stash.get(OUTCOMES, [])
    if not outcomes:
        return
    terminalreporter.section(f"recovery from faults (times and bounds scaled by {SCALE:g})")
    width = max(len(outcome.scenario.name) for outcome in outcomes)
    terminalreporter.line(f"{'scenario':{width}}  {'class':10}  {'server':8}  {'bound':>8}  {'measured':>9}")
    for outcome in sorted(outcomes, key=lambda outcome: (outcome.scenario.kind, outcome.scenario.name, outcome.server)):
        terminalreporter.line(
            f"{outcome.scenario.name:{width}}  {outcome.scenario.kind:10}  {outcome.server:8}  "
            f"{outcome.bound:6.2f} s  {outcome.measured:7.2f} s"
        )
