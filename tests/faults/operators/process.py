"""An operator of this folder as a process: start it, read what it says, stop, freeze and kill it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from pathlib import Path
from typing import Self

from forked import Forks

from ctrlruntime.testing import eventually

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
LOADED = [
    "tiny", "writer", "soaker", "aiohttp", "ctrlruntime.cache.cache", "ctrlruntime.leaderelection", "ctrlruntime.manager.manager",
    "ctrlruntime.manager.run", "ctrlruntime.rest.transport", "ctrlruntime.serving.server", "ctrlruntime.api.events.v1",
    "ctrlruntime.api.coordination.v1", "ctrlruntime.builder",
]  # fmt: skip


class Operators:
    """Starts operators of this folder by a fork, so their moments are those of the operator. `python`: flags of the interpreter."""

    def __init__(self, *python: str) -> None:
        path = os.pathsep.join(filter(None, (str(FOLDER), str(ROOT), os.environ.get("PYTHONPATH"))))
        self._env = {**os.environ, "PYTHONPATH": path}
        self._forks = Forks(LOADED, python, self._env)

    def __enter__(self) -> Self:
        self._forks.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._forks.__exit__()

    def start(self, program: str, folder: Path, *arguments: str) -> Process:
        """Start a program of this folder; its output goes to a file in `folder`."""
        identity = arguments[arguments.index("--identity") + 1] if "--identity" in arguments else "one"
        output = folder / f"{program}-{identity}-{time.monotonic_ns()}.log"
        pid = self._forks.start(program, list(arguments), cwd=ROOT, env=self._env, out=output, err=output)
        return Process(pid, output, self._forks.codes)


class Process:
    """One operator process."""

    def __init__(self, pid: int, output: Path, codes: dict[int, int]) -> None:
        self.pid = pid
        self.output = output
        self._codes = codes

    def text(self) -> str:
        """Return what it has printed so far, its log included."""
        return self.output.read_text() if self.output.exists() else ""

    def said(self, what: str) -> float | None:
        """Return when (CLOCK_MONOTONIC) the process first said this, or None."""
        found = re.search(rf"^{re.escape(what)} (\d+\.\d+)$", self.text(), re.MULTILINE)
        return float(found[1]) if found else None

    async def says(self, what: str, *, within: float = 120.0) -> float:
        """Wait until the process says this, and return when that was."""
        return await eventually(lambda: self.said(what), timeout=within)

    async def says_or_ends(self, what: str, *, within: float) -> float | None:
        """Wait until the process says this or ends; return when it said this, or None."""
        await eventually(lambda: self.said(what) is not None or self.exit_code is not None, timeout=within)
        return self.said(what)

    async def prints(self, text: str, *, within: float = 120.0) -> None:
        """Wait until this stands in the output."""
        await eventually(lambda: text in self.text(), timeout=within)

    def send(self, number: signal.Signals) -> float:
        """Send a signal; return when that was."""
        os.kill(self.pid, number)
        return time.monotonic()

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal that ended it), None while it runs."""
        return self._codes.get(self.pid)

    async def ends(self, *, within: float) -> int:
        """Wait for the end and return the exit code."""
        limit = time.monotonic() + within
        while (code := self.exit_code) is None:
            assert time.monotonic() < limit, f"{self.output.stem} runs {within:g} s later\n{self.text()[-4000:]}"
            await asyncio.sleep(0.01)
        return code

    def catches(self, number: signal.Signals) -> bool:
        """Whether the process has a handler for this signal now; False once it has ended."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
        return bool(found and int(found[1], 16) >> (number - 1) & 1)

    def kill(self) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
