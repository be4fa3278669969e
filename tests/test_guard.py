"""tests/guard.py: what a test process has started ends with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
RUN = f"""
import subprocess, sys
sys.path.append({str(TESTS)!r})
from guard import Guard

Guard().start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_of_a_test_process_that_is_killed_ends():
    with subprocess.Popen([sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        while not is_running(pid):
            pass

        run.kill()

        while is_running(pid):
            pass


def is_running(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/environ").read_bytes())  # a zombie has none
    except OSError:
        return False
