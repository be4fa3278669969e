"""tests/usage.py: the processor time of a process that outlives its test counts once."""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import subprocess, sys
import pytest
from usage import Measure, Table

def pytest_configure(config):
    config.pluginmanager.register(Measure())
    config.pluginmanager.register(Table("usage.csv"))

@pytest.fixture(scope="session")
def server():
    code = "import sys\\nfor _ in sys.stdin: sum(range(20_000_000)); print(flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.stdin.close()
"""
WORKS = """
def test_works(server):
    server.stdin.write(b"\\n")
    server.stdin.flush()
    server.stdout.readline()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_files_share_counts_for_the_file_in_which_it_worked(tmp_path):
    files = {"conftest": CONFTEST, "test_a": WORKS, "test_b": "def test_nothing(): pass\n", "test_c": WORKS}
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        timeout=120,
        check=True,
    )

    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (tmp_path / "usage.csv").open() as file:
        took = {row["file"]: float(row["processor seconds"]) for row in csv.DictReader(file)}
    assert took["test_b.py"] < 0.1 < took["test_a.py"]
    assert took["test_c.py"] > 0.1
    assert sum(took.values()) <= after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime + 0.1
