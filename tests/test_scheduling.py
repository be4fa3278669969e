"""How the suite runs: which tests stay together in a process, what happens when one dies, and what runs again."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest
from failures import MOST
from scheduling import ByFileAndServer
from xdist.remote import Producer

CONFTEST = """
import os
import pytest
from failures import FailuresAtOnce, Rerun
from scheduling import Scheduling

def pytest_addoption(parser):
    parser.addoption("--rerun", action="store_true")
    parser.addoption("--file-order", default="")

def pytest_configure(config):
    config.pluginmanager.register(Scheduling(config))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
        if config.getoption("--rerun"):
            config.pluginmanager.register(Rerun(config))

@pytest.fixture
def real_programs():
    pass

@pytest.fixture
def real_server(real_programs):
    pass

@pytest.fixture(params=["embedded", "real"])
def server(request):
    pass

@pytest.fixture(autouse=True)
def log(request):
    with open("log", "a") as log:
        print(request.node.nodeid, os.environ.get("PYTEST_XDIST_WORKER"), file=log)
"""


@pytest.fixture
def run(tmp_path, forked_pytest):
    """Run test files. Return the process that has ended."""

    def run(*arguments, **files):
        (tmp_path / "conftest.py").write_text(CONFTEST)
        for name, text in files.items():
            (tmp_path / f"test_{name}.py").write_text(textwrap.dedent(text))
        return forked_pytest.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "--rootdir", ".", *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )

    return run


def test_a_test_in_which_a_worker_dies_fails_once_and_the_others_run(run):
    done = run(
        "-n",
        "2",
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


def test_units_that_a_dead_worker_had_finished_are_not_given_out_again(run):
    two = "def test_1(): pass\ndef test_2(): pass\n"
    dies = """
        import os
        def test_1(): pass
        def test_2(): os._exit(1)
        """

    done = run("-n", "2", a=two, b=two, c=two, d=two, e=dies, f=dies, g=two)

    assert done.stdout.splitlines()[-1].startswith("2 failed, 12 passed"), done.stdout + done.stderr


def workers(folder) -> dict[str, str]:
    """Return the worker in which each test ran."""
    return dict(line.rsplit(" ", 1) for line in (folder / "log").read_text().splitlines())


BOTH = "def test_1(server): pass\ndef test_2(server): pass\n"


def test_at_most_two_workers_run_what_uses_the_real_server(tmp_path, run):
    real = "def test_1(real_server): pass\ndef test_2(real_programs): pass\n"
    files = dict.fromkeys("abcdefgh", BOTH) | {"i": real}

    done = run("-n", "4", **files)

    assert done.stdout.splitlines()[-1].startswith("34 passed"), done.stdout + done.stderr
    real_tests: dict[str, list[bool]] = {}
    for test, worker in workers(tmp_path).items():
        real_tests.setdefault(worker, []).append("[real]" in test or test.startswith("test_i"))
    assert sum(map(any, real_tests.values())) == 2
    # They begin with them, and go on with the others.
    assert all(ran == sorted(ran, reverse=True) for ran in real_tests.values())


def test_files_with_slow_tests_start_first(tmp_path, run):
    slow = "import pytest\ndef test_1(): pass\n@pytest.mark.slow\ndef test_2(): pass\n"

    run("-o", "markers=slow", a="def test_1(): pass\n", b=slow)

    assert list(workers(tmp_path)) == ["test_b.py::test_1", "test_b.py::test_2", "test_a.py::test_1"]


WAITS = """
import time
from pathlib import Path

def test_1({fixture}):
    deadline = time.monotonic() + 100
    while not Path("helped").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)

def test_2({fixture}): pass
def test_3({fixture}): pass
"""
"""Three tests: with fewer, a worker gets the next unit beforehand."""


def test_the_workers_with_a_real_server_help_the_others(run):
    helps = "from pathlib import Path\ndef test_1(): Path('helped').touch()\n"
    real = "def test_1(real_server): pass\n"

    done = run("-n", "3", a=WAITS.format(fixture=""), b=real, c=real, d=helps)

    assert done.stdout.splitlines()[-1].startswith("6 passed"), done.stdout + done.stderr


def test_two_workers_have_a_real_server_at_once(run):
    helps = "from pathlib import Path\ndef test_1(real_server): Path('helped').touch()\n"

    done = run("-n", "2", a=WAITS.format(fixture="real_server"), b="def test_1(): pass\n", c=helps)

    assert done.stdout.splitlines()[-1].startswith("5 passed"), done.stdout + done.stderr


def test_when_a_worker_with_a_real_server_dies_another_one_takes_over(run):
    dies = "import os\ndef test_1(real_server): pass\ndef test_2(real_server): os._exit(1)\ndef test_3(real_server): pass\n"

    done = run("-n", "2", a=dies, b=BOTH, c=BOTH, d=dies)

    assert done.stdout.splitlines()[-1].startswith("2 failed, 12 passed"), done.stdout + done.stderr


class Node:
    """A worker as the scheduler sees it."""

    def __init__(self, *, is_dead: bool = False) -> None:
        self.gateway = SimpleNamespace(id="dead" if is_dead else "alive")
        self.is_dead = is_dead
        self.shutting_down = False
        self.tests: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        if self.is_dead:
            raise OSError("cannot send (already closed?)")
        self.tests += indices

    def shutdown(self) -> None:
        self.shutting_down = True


def test_the_units_of_a_worker_that_dies_while_it_gets_them_go_to_another_one(tmp_path):
    options = SimpleNamespace(loadscopereorder=False, verbose=0)
    config = SimpleNamespace(option=options, getvalue=lambda name: ["popen"] * 2)
    scheduler = ByFileAndServer(config, Producer("test", enabled=False), tmp_path / "none")
    dead, alive = Node(is_dead=True), Node()
    names = [f"test_{file}.py::test_{number}" for file in "abcdef" for number in (1, 2)]
    for node in (dead, alive):
        scheduler.add_node(node)
        scheduler.add_node_collection(node, names)

    scheduler.schedule()
    died_in = scheduler.remove_node(dead)
    for test in alive.tests:  # it grows
        scheduler.mark_test_complete(alive, test)

    assert died_in == names[0]
    assert sorted(alive.tests) == list(range(1, 12))
    assert not scheduler.has_pending


def test_a_worker_that_collects_yet_gets_nothing_while_another_one_is_scheduled(tmp_path):
    options = SimpleNamespace(loadscopereorder=False, verbose=0)
    config = SimpleNamespace(option=options, getvalue=lambda name: ["popen"])
    scheduler = ByFileAndServer(config, Producer("test", enabled=False), tmp_path / "none")
    first, collects, third = Node(), Node(), Node()
    names = [f"test_{file}.py::test_{number}" for file in "abcdef" for number in (1, 2)]
    scheduler.add_node(first)
    scheduler.add_node_collection(first, names)
    scheduler.schedule()
    for node in (collects, third):
        scheduler.add_node(node)
    scheduler.add_node_collection(third, names)

    scheduler.schedule()

    assert third.tests
    assert collects.tests == []


@pytest.mark.parametrize(("order", "files"), [("reverse", "cba"), ("1", "acb"), ("2", "abc")])
def test_files_run_in_the_order_that_is_asked_for(tmp_path, run, order, files):
    two = "def test_1(): pass\ndef test_2(): pass\n"

    run("--file-order", order, a=two, b=two, c=two)

    assert list(workers(tmp_path)) == [f"test_{file}.py::test_{number}" for file in files for number in (1, 2)]


def test_a_failure_is_named_when_it_happens(run):
    done = run(a='def test_1(): assert 1 == 2, "one is not two"\n')

    assert "\nfailed: test_a.py::test_1: AssertionError: one is not two" in done.stdout.partition("FAILURES")[0]


RERUN = ("--last-failed", "--last-failed-no-failures", "none", "--rerun")

UNSTABLE = """
from pathlib import Path

def test_of_chance():
    runs = Path("runs")
    number = int(runs.read_text()) if runs.exists() else 0
    runs.write_text(str(number + 1))
    assert number >= {passes_from}, "too early"

def test_steady(): pass
"""


def test_a_test_that_passes_alone_is_printed_as_unstable_and_the_run_passes(run):
    assert run(a=UNSTABLE.format(passes_from=1)).returncode == 1

    again = run(*RERUN)

    assert again.returncode == 0, again.stdout
    assert "\nunstable: test_a.py::test_of_chance: AssertionError: too early" in again.stdout
    assert again.stdout.splitlines()[-1].startswith("1 passed")


def test_a_second_rerun_prints_the_tests_of_the_first_too(run):
    run("-n", "2", a=UNSTABLE.format(passes_from=1), b=UNSTABLE.replace("runs", "others").format(passes_from=2))
    assert run(*RERUN).returncode == 1

    again = run(*RERUN)

    assert again.returncode == 0, again.stdout
    assert again.stdout.count("\nunstable: ") == 2


def test_a_test_that_fails_alone_too_fails_the_run(run):
    run(a="def test_it(): assert False")

    again = run(*RERUN)

    assert again.returncode == 1
    assert "unstable" not in again.stdout


def test_a_test_that_is_skipped_when_it_runs_again_fails_the_run(run):
    skips = "import pytest\nfrom pathlib import Path\n"
    skips += "def test_it():\n    if Path('ran').exists(): pytest.skip()\n    Path('ran').touch()\n    assert False\n"
    run(a=skips)

    again = run(*RERUN)

    assert again.returncode == 1
    assert "failed, and did not run again: test_a.py::test_it" in again.stdout


def test_more_failures_than_allowed_do_not_run_again(run):
    run(a="".join(f"def test_{number}(): assert False\n" for number in range(MOST + 1)))

    again = run(*RERUN)

    assert again.returncode == 1
    assert f"{MOST + 1} tests failed" in again.stdout + again.stderr
