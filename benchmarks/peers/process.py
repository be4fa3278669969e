"""One run of one program: started, told to go, and measured from outside."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.peers.programs import ROOT, Program

Figures = dict[str, Any]


class PeerFailed(Exception):  # noqa: N818 - it is what happened
    """A program ended, or said something else than the protocol has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a program is told to do. Times in seconds."""

    workload: str
    kubeconfig: str = ""
    objects: int = 0
    updates: int = 0
    concurrency: int = 1
    width: int = 0
    """How many subscribers, controllers or namespaces."""

    port: int = 0
    """Where it serves webhooks."""

    certs: str = ""
    """The folder of their certificate."""

    linger: float = 0.0
    """How long the program is left alone after it was done, before its memory is read."""

    limit: float = 900.0
    """How long it may take."""

    cpus: Sequence[int] = ()
    """The processors it may use; empty: all."""

    def arguments(self) -> list[str]:
        given = {
            "kubeconfig": self.kubeconfig,
            "objects": self.objects,
            "updates": self.updates,
            "concurrency": self.concurrency,
            "width": self.width,
            "port": self.port,
            "certs": self.certs,
        }
        return [self.workload, *(text for name, value in given.items() if value for text in (f"--{name}", str(value)))]


class Peer:
    """A started program that said it is ready."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        self._process = process
        self._errors = errors
        self._ps = psutil.Process(process.pid)

    def expect(self, line: str) -> None:
        if (said := self.read()) != line:
            raise PeerFailed(f"it said {said[:200]!r} where {line!r} was due")

    def read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            tail = self._errors.read().decode(errors="replace").strip().splitlines()[-3:]
            raise PeerFailed(" / ".join(tail) or f"it ended with {self._process.returncode}")
        return line.strip()

    def tell(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def cpu(self) -> float:
        """CPU seconds so far."""
        if (
            sys.platform == "linux"
        ):  # the clock of another process, in nanoseconds; its number is made as clock_getcpuclockid(3) does
            return time.clock_gettime(~self._process.pid << 3 | 2)
        used = self._ps.cpu_times()
        return float(used.user + used.system)

    def resident(self) -> float:
        """Resident memory in MB."""
        return float(self._ps.memory_info().rss) / 1e6

    def peak(self) -> float | None:
        """The most memory it ever had, in MB, where the system tells."""
        status = Path(f"/proc/{self._process.pid}/status")
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
        return int(match[1]) * 1024 / 1e6 if match else None


@contextmanager
def started(program: Program, job: Job) -> Iterator[Peer]:
    """Start a program and end it; it is killed when its time is over."""
    with tempfile.TemporaryFile() as errors:
        command = [*program.command, *job.arguments()]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=errors, text=True)
        over = threading.Timer(job.limit, process.kill)
        over.start()
        try:
            if job.cpus:
                psutil.Process(process.pid).cpu_affinity(list(job.cpus))
            yield Peer(process, errors)
        finally:
            over.cancel()
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # what is still in it has nobody to read it
        process.stdin.close()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def run(program: Program, job: Job, while_synced: Callable[[], None] | None = None) -> Figures:
    """Run a program once and return what it said and what was seen: seconds, CPU seconds, MB.

    `while_synced` is called when the program says that it is synced, while it runs.

    Raises: PeerFailed.
    """
    begun = time.perf_counter()
    with started(program, job) as peer:
        peer.expect("ready")
        ready, cpu_ready = time.perf_counter(), peer.cpu()
        cpu_began = cpu_ready
        peer.tell()
        if while_synced is not None:
            peer.expect("synced")
            cpu_began = peer.cpu()  # of such a workload, only what follows is looked at
            while_synced()
        said = peer.read()
        done, cpu_done, resident = time.perf_counter(), peer.cpu(), peer.resident()
        figures: Figures = {"start": ready - begun, "start_cpu": cpu_ready, "wall": done - ready}
        figures |= {"cpu": cpu_done - cpu_began, "resident": resident}
        if job.linger:
            time.sleep(job.linger)
            figures |= {"resident": peer.resident(), "idle_cpu": (peer.cpu() - cpu_done) / job.linger}
        peer.tell()
        peer.expect("settled")
        figures |= {"settled": peer.resident(), "peak": peer.peak()}
    answered: dict[str, Any] = json.loads(said)
    return figures | answered
