"""Processes that start by a fork of one that has their modules loaded (`fork_server.py`)."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

__all__ = ["CTRL", "Forked", "Forks", "forked_pytest", "forks", "manifests_in_forks"]

LONGEST_START = 120.0  # seconds
CTRL = [
    "ctrlruntime.__main__",
    "ctrlruntime.cli.manifests",
    "ctrlruntime.project.config",
    "ctrlruntime.project.scaffold.writing",
    "ctrlruntime.generate.builtin",
]
"""What a `ctrl` command loads."""
PYTEST = [
    "pytest",
    "pytest_asyncio",
    "hypothesis",
    "ctrlruntime.testing.pytest_plugin",
    "ctrlruntime.testing.environment",
    "ctrlruntime.apiserver",
]
"""What a run of pytest with our plugin loads."""
_MAIN = {"ctrlruntime": "ctrlruntime.__main__", "pytest": "pytest"}
"""The module that has the function `main`, by the name after `python -m`."""
_FLAGS = {"pytest": ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"]}
"""What a fork needs besides: pytest warns of plugins that are loaded already."""


class Forks:
    """Starts processes that run `main` of a module. `modules` are loaded before, `python` are flags of the interpreter."""

    def __init__(self, modules: list[str], python: tuple[str, ...] = (), env: dict[str, str] | None = None) -> None:
        self._command = [sys.executable, *python, str(Path(__file__).with_name("fork_server.py")), *modules]
        self._env = env
        self._pids: queue.Queue[int] = queue.Queue()
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self.codes: dict[int, int] = {}
        """Exit codes of the processes that have ended."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._thread = threading.Thread(target=self._read, name="forks", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "code" not in said:
                self._pids.put(said["pid"])
                continue
            with self._ended:
                self.codes[said["pid"]] = said["code"]
                self._ended.notify_all()

    def start(self, module: str, arguments: list[str], *, cwd: Path, env: dict[str, str], out: Path, err: Path) -> int:
        """Start a process and return its pid. Its output is appended to files, its input is empty."""
        asked = {
            "module": module, "arguments": arguments, "cwd": str(cwd.absolute()), "env": env, "out": str(out), "err": str(err),
        }  # fmt: skip
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(asked) + "\n")
            return self._pids.get(timeout=LONGEST_START)

    def popen(self, module: str, *arguments: str, cwd: Path, env: dict[str, str], out: Path) -> Forked:
        """Start a process and return what `subprocess.Popen` does, or the part of it that tests use."""
        return Forked(self, self.start(module, list(arguments), cwd=cwd, env=env, out=out, err=out))

    def code(self, pid: int, timeout: float | None = None) -> int:
        """Wait for the end of a process and return its exit code."""
        with self._ended:
            if not self._ended.wait_for(lambda: pid in self.codes, timeout):
                raise TimeoutError(f"process {pid} runs {timeout} s later")
        return self.codes[pid]

    def run(self, command: list[str], *, cwd: Path, env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        """Run `python -m ctrlruntime …` or `python -m pytest …`, as `subprocess.run` with captured text does."""
        assert command[:2] == [sys.executable, "-m"]
        module, *arguments = command[2:]
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            arguments += _FLAGS.get(module, [])
            pid = self.start(_MAIN[module], arguments, cwd=Path(cwd), env=env, out=out, err=err)
            return subprocess.CompletedProcess(command, self.code(pid), out.read_text(), err.read_text())

    def run_pytest(self, folder: Path, *arguments: str, env: dict[str, str]) -> pytest.RunResult:
        """Run pytest in a folder, as `Pytester.runpytest_subprocess` does."""
        done = self.run([sys.executable, "-m", "pytest", *arguments], cwd=folder, env=env)
        return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), duration=0)


class Forked:
    """A process that was started by a fork."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks = forks
        self.pid = pid

    def poll(self) -> int | None:
        return self._forks.codes.get(self.pid)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float) -> int:
        return self._forks.code(self.pid, timeout)


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Starts `ctrl` commands."""
    with Forks(CTRL) as forks:
        yield forks


@pytest.fixture(scope="session")
def forked_pytest() -> Iterator[Forks]:
    """Starts runs of pytest."""
    with Forks(PYTEST) as forks:
        yield forks


@pytest.fixture
def manifests_in_forks(forks: Forks, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ctrl manifests`, which `ctrl init`, `ctrl create` and others run at their end, starts by a fork."""
    monkeypatch.setattr(
        "ctrlruntime.project.scaffold.writing.subprocess", SimpleNamespace(run=forks.run, DEVNULL=subprocess.DEVNULL)
    )
