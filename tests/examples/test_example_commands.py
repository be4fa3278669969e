"""`python -m examples.NAME`. The tests of the whole operators start them by a fork, which calls `main` alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["memcached", "game", "sidecarset"])
def test_an_example_is_a_command(name):
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "--leader-elect" in done.stdout
