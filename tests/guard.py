"""Ends the processes that a test process has started, when it ends in whatever way, SIGKILL included (Linux).

Every process started by a test inherits `MARK` in its environment. A guard, which is this file run as a script, waits until its standard
input closes, and then kills each process that has the mark.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

MARK = "CTRLRUNTIME_TEST_PROCESS"


class Guard:
    """Guards this process from `start` to `stop`."""

    def start(self) -> None:
        environ = {name: value for name, value in os.environ.items() if name != MARK}
        os.environ[MARK] = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, os.environ[MARK]],
            stdin=subprocess.PIPE,
            env=environ,
            start_new_session=True,  # Ctrl-C does not reach it
        )

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        del os.environ[MARK]


def main() -> None:
    sys.stdin.read()
    sought = f"{MARK}={sys.argv[1]}".encode()
    while found := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if sought in environment(pid)]:  # noqa: PTH208 - it takes names
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def environment(pid: int) -> list[bytes]:
    """Return the variables of a process; none when it has ended, is a zombie, or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


if __name__ == "__main__":
    main()
