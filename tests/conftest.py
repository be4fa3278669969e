"""For all tests: how they are chosen and shared among workers, the event loop, Hypothesis's settings, and packages of operators.

Without `--all` a run leaves out the tests marked `thorough`: they prove recorded answers of the real server again, or take long runs.
"""

from __future__ import annotations

import gc
import importlib.util
import itertools
import logging
import os
import sys
import textwrap
from pathlib import Path

import hypothesis
import pytest
import structlog
from captured_log import captured_log
from failures import FailuresAtOnce, Rerun
from forked import forked_pytest, forks, manifests_in_forks
from guard import Guard
from process_state import ProcessState
from scheduling import Scheduling
from servers import LONGEST_WAIT, embedded_server, own_real_server, real_programs, real_server
from usage import Measure, Table

from ctrlruntime.log.output import sink
from ctrlruntime.testing import eventually

__all__ = [
    "embedded_server",
    "forked_pytest",
    "forks",
    "manifests_in_forks",
    "own_real_server",
    "real_programs",
    "real_server",
]

_numbers = itertools.count()

assert eventually.__kwdefaults__ is not None
eventually.__kwdefaults__["timeout"] = LONGEST_WAIT

# A loaded machine must not fail a test: no limit in time, and the same examples in every run. `--all` tries more, and others each time.
hypothesis.settings.register_profile(
    "suite",
    max_examples=50,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
hypothesis.settings.register_profile(
    "all", parent=hypothesis.settings.get_profile("suite"), max_examples=1000, derandomize=False, print_blob=True
)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the tests marked `thorough`, too")
    parser.addoption(
        "--rerun", action="store_true", help="with --last-failed: print the tests that pass now as unstable"
    )
    parser.addoption(
        "--file-order", metavar="ORDER", default="", help="run the files in `reverse`, or in the random order of a seed"
    )
    parser.addoption("--usage", metavar="FILE", help="write the seconds of each test file, as CSV")


def pytest_configure(config):
    hypothesis.settings.load_profile("all" if config.getoption("--all") else "suite")
    if sys.platform == "linux":
        guard = Guard()
        guard.start()
        config.add_cleanup(guard.stop)
        config.pluginmanager.register(ProcessState(patience=LONGEST_WAIT))
    config.pluginmanager.register(Scheduling(config))
    config.pluginmanager.register(Measure())
    if not hasattr(config, "workerinput"):
        is_rerun = config.getoption("--rerun")  # has the same arguments, and must keep the file of the whole run
        config.pluginmanager.register(Table(None if is_rerun else config.getoption("--usage")))
        config.pluginmanager.register(FailuresAtOnce(config))
        if is_rerun:
            config.pluginmanager.register(Rerun(config))


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all"):
        return
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep what is collected from the garbage collector: it stays, and each look at it takes half a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Two workers a core and one more, as tests wait half of their time; none for one file or for a `-k`: those tests are few."""
    paths = {arg.partition("::")[0] for arg in config.args}
    if config.option.keyword or (len(paths) == 1 and all(Path(path).is_file() for path in paths)):
        return 0
    return 2 * (os.cpu_count() or 1) + 1


if os.environ.get("CTRLRUNTIME_TEST_LOOP") == "uvloop":
    import uvloop

    def pytest_asyncio_loop_factories(config, item):
        return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session")
def site_pages():
    """The module that makes the generated pages of the documentation site."""
    path = Path(__file__).parents[1] / "scripts" / "site_pages.py"
    spec = importlib.util.spec_from_file_location("site_pages", path)
    module = sys.modules["site_pages"] = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)  # where it finds site_examples
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def logs():
    """Log lines as dicts: event, level, and their fields."""
    with captured_log() as lines:
        yield lines


@pytest.fixture
def sets_up_log():
    """For tests that set up the log of the process: puts it back."""
    root = logging.getLogger()
    output, level, handlers = sink.output, root.level, list(root.handlers)
    yield
    sink.output = output
    root.setLevel(level)
    for handler in set(root.handlers) - set(handlers):
        root.removeHandler(handler)
    structlog.reset_defaults()


@pytest.fixture
def runs_main(sets_up_log, monkeypatch, tmp_path_factory):
    """For tests that run the `main` of a program in this process: puts back the log and `sys.path`, and forgets the modules of projects."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before, folder = set(sys.modules), str(tmp_path_factory.getbasetemp())
    yield
    for name in sys.modules.keys() - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package with a name of its own each time, and returns that name."""
    names = []
    monkeypatch.syspath_prepend(str(tmp_path))
    # Python takes byte code for fresh when the text has the size and the second it had: a test may change a digit within one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(**modules: str) -> str:
        name = f"operator_{next(_numbers)}"
        names.append(name)
        folder = tmp_path / name
        folder.mkdir()
        for module, text in {"__init__": "", **modules}.items():
            path = folder.joinpath(*module.split("__SLASH__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return name

    yield write
    for module in [module for module in sys.modules if module.partition(".")[0] in names]:
        del sys.modules[module]
