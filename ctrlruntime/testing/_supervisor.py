"""Runs one program of the control plane and ends it when the test process is gone, however that happened.

It is a script, started by `controlplane.py` as ``python _supervisor.py FOLDER GRACE PROGRAM ARGUMENT…`` with a pipe
as its standard input, in a process group of its own. It holds nothing but the standard library.

* A line comes through the pipe: the program gets SIGTERM, and SIGKILL after GRACE seconds.
* The pipe closes without one, or we have another parent: the one that started us has died. The program gets SIGKILL
  (a kube-apiserver whose etcd is gone would take long to end), and FOLDER (data, keys, logs) is removed, since no other process
  else will.
* The program ends: its exit code becomes ours.
* We are killed: the kernel sends the program SIGKILL (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_STEP = 0.05  # seconds between looks at the program


def main() -> int:
    folder, grace, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    parent = os.getppid()
    die_with_us = _tie_to_parent(ctypes.CDLL(None)) if sys.platform == "linux" else None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_us)  # noqa: PLW1509, S603 - one thread
    told = _wait_for_the_end(program, parent)
    orphaned = not told and _is_orphan(parent, program)
    _end(program, 0 if orphaned else grace)
    if orphaned:
        shutil.rmtree(folder, ignore_errors=True)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _tie_to_parent(libc: ctypes.CDLL) -> Callable[[], None]:
    """What the program does before it begins; the library is looked up beforehand, in a process that may still
    allocate.
    """
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait_for_the_end(program: subprocess.Popen[bytes], parent: int) -> bool:
    """Return when the program ended or the parent wants it to; True when the parent said so itself."""
    while program.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([0], [], [], _STEP)
        if readable:
            return bool(os.read(0, 1))
    return False


def _is_orphan(parent: int, program: subprocess.Popen[bytes]) -> bool:
    """Whether the parent is gone: its end of the pipe closes a moment before its death is seen."""
    deadline = time.monotonic() + 1
    while os.getppid() == parent:
        if program.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(_STEP)
    return True


def _end(program: subprocess.Popen[bytes], grace: float) -> None:
    """Ask the program to end, and kill it after `grace` seconds; without a grace at once."""
    if grace and program.poll() is None:
        program.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(grace)
    program.kill()  # does nothing to a program that has ended
    program.wait()


if __name__ == "__main__":
    sys.exit(main())
