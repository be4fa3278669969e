"""tests/process_state.py: a test that changes what belongs to the process fails, and the next one finds it as it was."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CONFTEST = """
import threading
import pytest
from process_state import ProcessState

def pytest_configure(config):
    config.pluginmanager.register(ProcessState(patience={patience}))

@pytest.fixture(scope="module")
def thread_of_the_module():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()
"""
CHANGES = {
    "the current folder": ("os.chdir('/')", "os.getcwd() != '/'"),
    "the environment": ("os.environ['CHANGED'] = ''", "'CHANGED' not in os.environ"),
    "sys.path": ("sys.path.insert(0, 'changed')", "sys.path[0] != 'changed'"),
    "the handlers of signals": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL",
    ),
    "the umask": ("os.umask(0o001)", "os.umask(0o022) != 0o001"),
    "the policy of event loops": (
        "asyncio.set_event_loop_policy(type('Changed', (asyncio.DefaultEventLoopPolicy,), {})())",
        "type(asyncio.get_event_loop_policy()).__name__ != 'Changed'",
    ),
    "the configuration of logging": ("logging.disable(50)", "logging.root.manager.disable == 0"),
    "the garbage collector": ("gc.disable()", "gc.isenabled()"),
    "a thread": ("threading.Thread(target=time.sleep, args=(100,), daemon=True).start()", "True"),
    "a socket that listens": ("globals()['kept'] = socket.create_server(('127.0.0.1', 0))", "True"),
    "a process": ("globals()['kept'] = subprocess.Popen(['cat'], stdin=subprocess.PIPE)", "True"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_change_fails_the_test_that_made_it_and_is_put_back(tmp_path):
    lines = ["import asyncio, gc, logging, os, signal, socket, subprocess, sys, threading, time"]
    for number, (change, check) in enumerate(CHANGES.values()):
        lines += [f"def test_{number}_changes(): {change}", f"def test_{number}_finds(): assert {check}"]

    done = run(tmp_path, "\n".join(lines), patience=0.1)

    count = len(CHANGES)
    assert done.stdout.splitlines()[-1].startswith(f"{2 * count} passed, {count} errors"), done.stdout
    for number, name in enumerate(CHANGES):
        assert f"ERROR at teardown of test_{number}_changes" in done.stdout
        assert f"\n{name}: " in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_fixture_of_the_module_starts_may_stay(tmp_path):
    text = """
    import threading
    def test_before(): pass
    def test_starts(request): request.getfixturevalue("thread_of_the_module")
    def test_uses(thread_of_the_module): assert threading.active_count() == 2
    def test_ends_in_time(): threading.Timer(0.01, print).start()
    """

    done = run(tmp_path, text, patience=120)

    assert done.stdout.splitlines()[-1].startswith("4 passed"), done.stdout


def run(folder, text, *, patience):
    (folder / "conftest.py").write_text(CONFTEST.format(patience=patience))
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=folder,
        env={"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )  # fmt: skip
