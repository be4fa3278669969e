"""How the suite runs: which tests stay together in a process, what happens when one dies, and what runs again."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from failures import MOST
from scheduling import unit_of


@pytest.mark.parametrize(
    ("test", "unit"),
    [
        ("tests/a/test_x.py::test_it", "tests/a/test_x.py"),
        ("tests/a/test_x.py::test_it[real]", "tests/a/test_x.py[real]"),
        ("tests/a/test_x.py::test_it[real-v1 Pod]", "tests/a/test_x.py[real]"),
        ("tests/a/test_x.py::test_it[some case-embedded]", "tests/a/test_x.py[embedded]"),
        ("tests/a/test_x.py::test_it[a real case]", "tests/a/test_x.py"),
    ],
)
def test_tests_of_one_file_on_one_server_stay_together(test, unit):
    assert unit_of(test) == unit


CONFTEST = """
from failures import FailuresAtOnce, Rerun
from scheduling import ByFileAndServer

def pytest_addoption(parser):
    parser.addoption("--rerun", action="store_true")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
        if config.getoption("--rerun"):
            config.pluginmanager.register(Rerun(config))

def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return ByFileAndServer(config, log)
"""


def run(folder, *arguments, **files):
    """Run test files in two workers. Return the process that has ended."""
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(textwrap.dedent(text))
    options = ["-o", "asyncio_default_fixture_loop_scope=function", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "--rootdir", ".", *options],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_test_in_which_a_worker_dies_fails_once_and_the_others_run(tmp_path):
    done = run(
        tmp_path,
        a="""
        import os
        def test_1(): pass
        def test_2(): os._exit(1)
        def test_3(): pass
        def test_4(): pass
        """,
        b="def test_1(): pass\ndef test_2(): pass\n",
    )

    assert done.stdout.splitlines()[-1].startswith("1 failed, 5 passed"), done.stdout + done.stderr
    assert "crashed while running 'test_a.py::test_2'" in done.stdout


def test_units_that_a_dead_worker_had_finished_are_not_given_out_again(tmp_path):
    two = "def test_1(): pass\ndef test_2(): pass\n"
    dies = """
        import os
        def test_1(): pass
        def test_2(): os._exit(1)
        """

    done = run(tmp_path, a=two, b=two, c=two, d=two, e=dies, f=dies, g=two)

    assert done.stdout.splitlines()[-1].startswith("2 failed, 12 passed"), done.stdout + done.stderr


def test_a_failure_is_named_when_it_happens(tmp_path):
    done = run(tmp_path, a='def test_1(): assert 1 == 2, "one is not two"\n')

    assert "\nfailed: test_a.py::test_1: AssertionError: one is not two" in done.stdout.partition("FAILURES")[0]


RERUN = ("-n", "0", "--last-failed", "--last-failed-no-failures", "none", "--rerun")

UNSTABLE = """
from pathlib import Path

def test_of_chance():
    runs = Path("runs")
    number = int(runs.read_text()) if runs.exists() else 0
    runs.write_text(str(number + 1))
    assert number >= {passes_from}, "too early"

def test_steady(): pass
"""


def test_a_test_that_passes_alone_is_printed_as_unstable_and_the_run_passes(tmp_path):
    assert run(tmp_path, a=UNSTABLE.format(passes_from=1)).returncode == 1

    again = run(tmp_path, *RERUN)

    assert again.returncode == 0, again.stdout
    assert "\nunstable: test_a.py::test_of_chance: AssertionError: too early" in again.stdout
    assert again.stdout.splitlines()[-1].startswith("1 passed")


def test_a_second_rerun_prints_the_tests_of_the_first_too(tmp_path):
    run(tmp_path, a=UNSTABLE.format(passes_from=1), b=UNSTABLE.replace("runs", "others").format(passes_from=2))
    assert run(tmp_path, *RERUN).returncode == 1

    again = run(tmp_path, *RERUN)

    assert again.returncode == 0, again.stdout
    assert again.stdout.count("\nunstable: ") == 2


def test_a_test_that_fails_alone_too_fails_the_run(tmp_path):
    run(tmp_path, a="def test_it(): assert False")

    again = run(tmp_path, *RERUN)

    assert again.returncode == 1
    assert "unstable" not in again.stdout


def test_more_failures_than_allowed_do_not_run_again(tmp_path):
    run(tmp_path, a="".join(f"def test_{number}(): assert False\n" for number in range(MOST + 1)))

    again = run(tmp_path, *RERUN)

    assert again.returncode == 1
    assert f"{MOST + 1} tests failed" in again.stdout + again.stderr
