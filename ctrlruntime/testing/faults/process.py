"""Pauses a process with SIGSTOP and SIGCONT, as a paused container or a suspended laptop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeAlias

__all__ = ["freeze", "frozen", "thaw"]

_STOPS_WITHIN = 5.0


class HasPid(Protocol):
    """A process object: of `subprocess`, `asyncio.subprocess`, `multiprocessing`, `psutil`."""

    @property
    def pid(self) -> int | None: ...


Process: TypeAlias = HasPid | int


def freeze(process: Process) -> None:
    """Pause a process, and return when it is paused. Raises: ProcessLookupError if it does not exist."""
    pid = _pid(process)
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + _STOPS_WITHIN
    while not _is_stopped(pid) and time.monotonic() < deadline:
        time.sleep(0.001)


def thaw(process: Process) -> None:
    """Resume a paused process; one that has ended meanwhile is not an error."""
    with suppress(ProcessLookupError):
        os.kill(_pid(process), signal.SIGCONT)


@contextmanager
def frozen(process: Process) -> Generator[None, None, None]:
    """Keep a process frozen inside the block."""
    freeze(process)
    try:
        yield
    finally:
        thaw(process)


def _pid(process: Process) -> int:
    pid = process if isinstance(process, int) else process.pid
    if pid is None:
        raise ProcessLookupError("the process was not started")
    return pid


def _is_stopped(pid: int) -> bool:
    """Whether the kernel says so; where there is no /proc it is taken for granted."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] in {"T", "t", "Z", "X"}
