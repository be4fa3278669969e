"""The operator as a child process. The children here are small scripts; signals are real."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError, CtrlError
from ctrlruntime.project.running import Operator, install_definitions, source_folder

COUNTS_SIGNALS = """
import signal, sys, time
count = 0
def heard(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, heard)
signal.signal(signal.SIGTERM, heard)
open(sys.argv[1], "w").close()
deadline = time.monotonic() + 20
while not count and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(0.1)
sys.exit(10 + count)
"""


@pytest.fixture
def script(tmp_path):
    def make(text: str, *arguments: str, **options) -> Operator:
        path = tmp_path / "child.txt"
        path.write_text(text)
        return Operator([sys.executable, str(path), *arguments], folder=tmp_path, environ=os.environ, **options)

    return make


def test_the_code_is_the_child_s(script):
    assert script("raise SystemExit(7)").run() == 7


def test_a_child_that_a_signal_killed_has_128_and_its_number(script):
    assert script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").run() == 128 + 9


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_once_and_the_child_s_end_is_waited_for(script, tmp_path, number):
    ready = tmp_path / "ready"

    def accompany() -> bool:
        if ready.exists():
            os.kill(os.getpid(), number)
        return ready.exists()

    before = signal.getsignal(number)

    assert script(COUNTS_SIGNALS, str(ready), accompany=accompany).run() == 11
    assert signal.getsignal(number) == before


def test_a_changed_file_starts_it_again_and_prepares_again(script, tmp_path):
    source, said, prepared = tmp_path / "package/module.py", [], []
    source.parent.mkdir()
    source.write_text("a = 1\n")

    def accompany() -> bool:
        match len(prepared):
            case 1:
                source.write_text("a = 2\n")
                os.utime(source, ns=(1, 1))  # a file system may count time in seconds
            case _:
                os.kill(os.getpid(), signal.SIGTERM)
        return False

    operator = script(
        "import time; time.sleep(60)",
        watched=source.parent,
        say=said.append,
        prepare=lambda: prepared.append(1),
        accompany=accompany,
    )

    assert operator.run() == 128 + signal.SIGTERM
    assert (said, len(prepared)) == (["restarting, because a file changed"], 2)


def test_a_child_that_ended_waits_for_a_change_when_files_are_watched(script, tmp_path):
    said = []

    def say(text: str) -> None:
        said.append(text)
        os.kill(os.getpid(), signal.SIGINT)  # enough

    assert script("raise SystemExit(3)", watched=tmp_path, say=say).run() == 3
    assert said == ["the operator exited with code 3. It restarts when a file changes"]


def test_what_cannot_be_prepared_is_raised_and_with_watched_files_said(script, tmp_path):
    said = []

    def prepare() -> None:
        raise CtrlError("no definitions")

    def say(text: str) -> None:
        said.append(text)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(CtrlError, match="no definitions"):
        script("", prepare=prepare).run()

    assert script("", prepare=prepare, watched=tmp_path, say=say).run() == 1
    assert said[0] == "error: no definitions"


def test_definitions_that_cannot_be_installed_are_one_line(tmp_path):
    with pytest.raises(CtrlError, match=r"^module nonsense_here does not exist"):
        install_definitions("nonsense_here", [], folder=tmp_path, environ=os.environ)


def test_a_package_is_found_where_it_stands(package):
    name = package(__main__="")

    assert source_folder(name).name == name
    assert Path(source_folder(name), "__main__.py").is_file()


@pytest.mark.parametrize(
    ("name", "message"),
    [("nonsense_here", "does not exist"), ("json.decoder", "does not exist"), ("json", "no __main__.py")],
)
def test_what_cannot_be_run_is_refused(name, message):
    with pytest.raises(ConfigError, match=message):
        source_folder(name)
