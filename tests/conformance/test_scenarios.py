"""The embedded server answers every scenario as kube-apiserver 1.36.1 did when its golden answers were recorded.

`scenarios/README.md` says how scenarios are written and recorded. What differs is listed in `scenarios/known.yaml`; an equal answer there,
or a new difference, fails. With `--all` the real server is held against its own golden answers, too.
"""

from __future__ import annotations

import asyncio
import gc
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from scenario import Golden, Run, Scenario, Stages, is_known, judge, load, load_known, run_all
from scenario.score import PAGE, page
from scenario.stage import Backend

from ctrlruntime.testing.controlplane import Programs

SCENARIOS = load()
KNOWN = load_known()
GOLDEN = Golden()


PART = 500
"""The number of scenarios that are run side by side, when the first test of them asks. All at once would count as one test that hangs."""


class Runs:
    """The runs of the scenarios that this session's tests ask for, part by part."""

    def __init__(self, request: pytest.FixtureRequest, backend: Backend, test: str) -> None:
        self._backend = backend
        items = [item for item in request.session.items if getattr(item, "originalname", "") == test]
        chosen = [SCENARIOS[item.callspec.params["id"]] for item in items]
        if shutil.which("kubectl") is None:
            chosen = [scenario for scenario in chosen if "kubectl" not in scenario.needs]
        parts = (chosen[begin : begin + PART] for begin in range(0, len(chosen), PART))
        self._parts = {scenario.id: part for part in parts for scenario in part}
        self._runs: dict[str, Run] = {}

    def __contains__(self, id: str) -> bool:
        return id in self._parts

    def __getitem__(self, id: str) -> Run:
        if id not in self._runs:
            self._runs |= self._play(self._parts[id])
        return self._runs[id]

    def _play(self, part: Sequence[Scenario]) -> dict[str, Run]:
        async def go() -> dict[str, Run]:
            async with Stages(self._backend) as stages:
                return await run_all(stages, part)

        with warnings.catch_warnings():
            # TLS transports of connections that the server cut are collected late.
            warnings.simplefilter("ignore", ResourceWarning)
            runs = asyncio.run(go())
            gc.collect()
        return runs


@pytest.fixture(scope="module")
def embedded_runs(request: pytest.FixtureRequest) -> Runs:
    return Runs(request, "embedded", "test_embedded_server_answers_as_recorded")


@pytest.fixture(scope="module")
def real_runs(request: pytest.FixtureRequest, real_programs: Programs) -> Runs:
    return Runs(request, "real", "test_real_server_answers_as_recorded")


@pytest.mark.parametrize("id", SCENARIOS)
def test_embedded_server_answers_as_recorded(id: str, embedded_runs: Runs):
    if id not in embedded_runs:
        pytest.skip("needs kubectl in the PATH")

    verdict = judge(embedded_runs[id], GOLDEN)

    told = "\n".join(map(str, verdict.differences)) or "it is equal now: take it out of known.yaml"
    assert is_known(verdict, KNOWN), f"{id} {SCENARIOS[id].title}\n{told}"


@pytest.mark.thorough
@pytest.mark.parametrize("id", SCENARIOS)
def test_real_server_answers_as_recorded(id: str, real_runs: Runs):
    if id not in real_runs:
        pytest.skip("needs kubectl in the PATH")

    verdict = judge(real_runs[id], GOLDEN)

    told = "\n".join(map(str, [*verdict.differences, *verdict.tolerated]))
    assert not told, f"{id} {SCENARIOS[id].title}\n{told}"


def test_known_differences_are_of_scenarios_that_exist():
    assert set(KNOWN) <= set(SCENARIOS)


def test_page_of_the_score_is_what_the_scenarios_and_known_differences_make():
    assert PAGE.read_text() == page(SCENARIOS, KNOWN), "run scripts/conformance --score"
