"""An operator of this folder as a process: start it, read what it says, stop, freeze and kill it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

from ctrlruntime.testing import eventually

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]


class Nursery:
    """Starts operators by forking a process that has everything loaded (`nursery.py`). `python`: flags of the interpreter."""

    def __init__(self, *python: str) -> None:
        self._python = python
        self._pids: queue.Queue[int] = queue.Queue()
        self._lock = threading.Lock()
        self.codes: dict[int, int] = {}
        """Exit codes of the processes that have ended."""

    def __enter__(self) -> Self:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, *self._python, str(FOLDER / "nursery.py")],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._thread = threading.Thread(target=self._read, name="nursery", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._thread.join(10)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "code" in said:
                self.codes[said["pid"]] = said["code"]
            else:
                self._pids.put(said["pid"])

    def start(self, program: str, folder: Path, *arguments: str) -> Process:
        """Start a program of this folder; its output goes to a file in `folder`."""
        identity = arguments[arguments.index("--identity") + 1] if "--identity" in arguments else "one"
        output = folder / f"{program}-{identity}-{time.monotonic_ns()}.log"
        assert self._process.stdin is not None
        with self._lock:
            asked = {"program": program, "arguments": arguments, "output": str(output)}
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            pid = self._pids.get(timeout=120)
        return Process(pid, output, self.codes)


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
