"""Examples beside each other on one machine, as anybody starts them: without a flag that chooses a port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from example_process import Starter
from forked import Forks


@pytest.fixture
def starter_of(example_forks: Forks, tmp_path: Path) -> Iterator[object]:
    """Makes the starter of an example in a folder of its own; no example outlives the test."""
    starters: list[Starter] = []

    def make(example: str) -> Starter:
        folder = tmp_path / str(len(starters))
        folder.mkdir()
        starters.append(Starter(example_forks, f"examples.{example}.__main__", folder))
        return starters[-1]

    yield make
    for each in starters:
        each.end()


@pytest.mark.parametrize("examples", [("memcached", "memcached"), ("game", "sidecarset")], ids=" and ".join)
async def test_two_examples_run_at_once_without_a_flag_for_their_ports(starter_of, examples: tuple[str, str]) -> None:
    operators = [starter_of(example).embedded() for example in examples]

    for operator in operators:
        await operator.says("sample applied")

    for operator in operators:
        assert operator.process.poll() is None, operator.log.read_text()
        operator.assert_a_clean_end()
