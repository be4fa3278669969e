"""What a peer and the harness say to each other, from the Python peers' side; the Go and Rust peers keep to the same.

```text
PROGRAM WORKLOAD --kubeconfig FILE --objects N [--updates N] [--concurrency N] [--width N] [--port N --certs FOLDER]

peer                    harness
ready                                   imported, built, nothing sent yet
                        (a line)        the clock runs
synced                                  only `latency`, `events`, `webhook`: updates or reviews may begin
{"objects": 20000, …}                   done: one JSON line; time, CPU and memory are read from outside
                        (a line)
settled                                 what memory could be given back was: memory is read again
                        (end of input)  the peer ends
```
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Collection
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """What the harness asks for."""

    workload: str
    kubeconfig: str
    objects: int
    updates: int
    concurrency: int
    width: int
    """Subscribers, controllers or namespaces."""

    port: int
    """Where webhooks are served."""

    certs: str
    """The folder of their certificate."""


Figures = dict[str, Any]


def asked(workloads: Collection[str]) -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=sorted(workloads))
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--objects", type=int, default=0)
    parser.add_argument("--updates", type=int, default=0)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--width", type=int, default=0)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certs", default="")
    return Asked(**vars(parser.parse_args()))


def say(line: str) -> None:
    print(line, flush=True)


def wait_for_line() -> None:
    sys.stdin.readline()


def ready() -> None:
    """Called by a workload when all is built and nothing has been sent; returns when the clock runs."""
    say("ready")
    wait_for_line()


async def obey(workload: Awaitable[Figures]) -> None:
    """Run a workload and stay alive until the memory has been read. Ends the process."""
    say(json.dumps(await workload))
    await asyncio.to_thread(wait_for_line)
    settle()
    say("settled")
    await asyncio.to_thread(wait_for_line)
    os._exit(0)  # watches and servers are not part of what is measured


def settle() -> None:
    """Give back the memory that is free, as the other peers do."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


@dataclass(slots=True)
class Tally:
    """Counts reconciles up to `wanted`, then notes when each one began."""

    wanted: int
    finished: int = 0
    begins: dict[str, int] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if not self.wanted:
            self.done.set()

    def begin(self, name: str) -> None:
        self.begins[name] = time.time_ns()

    def finish(self) -> None:
        self.finished += 1
        if self.finished >= self.wanted:
            self.done.set()

    async def updates(self, count: int) -> Figures:
        """Let the harness make its updates and return when each was heard of, by name and in nanoseconds since 1970."""
        await self.done.wait()
        self.begins.clear()
        say("synced")
        while len(self.begins) < count:  # noqa: ASYNC110 - it costs the reconciles nothing
            await asyncio.sleep(0.02)
        return {"begins": self.begins}
