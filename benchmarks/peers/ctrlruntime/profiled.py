"""The same program with a look at its stack at every millisecond of CPU: `scripts/bench --profile` prints where the time goes.

A sample costs little and stands where Python next looks for signals, so that time inside a C function counts for the line that called it.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import signal
from collections.abc import Awaitable
from pathlib import Path
from types import CodeType, FrameType

from benchmarks.peers import protocol
from benchmarks.peers.ctrlruntime import __main__ as program

STAGES = {
    "TLS and socket": ("rest/session:", "python3.11/ssl:", "asyncio/selector_events:"),
    "HTTP: requests, responses, gzip": ("rest/connection:", "rest/transport:", "rest/fence:Fence"),
    "a page or frame is split into objects": ("rest/collection:", "rest/watch:", "cache/reflector:"),
    "an object's metadata, without managedFields": ("cache/managed_fields:", "api/metadata:", "cache/informer:Informer._entry"),
    "the store, and notifying subscribers": ("cache/store:", "cache/informer:", "cache/subscription:", "ctrlruntime/event:"),
    "predicates and handlers": ("ctrlruntime/source:", "ctrlruntime/handler:", "ctrlruntime/predicate:"),
    "the queue": ("workqueue/",),
    "the worker: metrics, journal, log, timeout": (
        *("controller/", "metrics/", "ctrlruntime/journal:", "ctrlruntime/tracing:", "ctrlruntime/tracking:", "log/"),
        *("ctrlruntime/reconcile:", "rest/fence:"),
    ),
    "the client: object found in the cache": ("client/", "cache/", "ctrlruntime/scheme:", "ctrlruntime/cluster:"),
    "the object is decoded, or encoded": ("api/", "ctrlruntime/field:", "pydantic/"),
    "the reconciler": ("ctrlruntime/__main__:", "peers/"),
    "the event loop": ("asyncio/",),
}  # fmt: skip
"""The way of an object from the socket to its reconcile. A moment counts for the innermost function that is named here by its beginning;
what asyncio and others do for one of them is its own."""

LOOP = "the event loop"
REST = "start, imports and the rest"
INTERVAL = 0.001
"""Seconds of CPU between two looks; a kernel with a coarser clock takes its own, often 4 ms."""


@functools.cache  # looking must cost next to nothing
def name_of(code: CodeType) -> str:
    path = Path(code.co_filename)
    return f"{path.parent.name}/{path.stem}:{code.co_qualname}"


@functools.cache
def stage_of(code: CodeType) -> str:
    name = name_of(code)
    return next((stage for stage, begins in STAGES.items() if name.startswith(begins)), "")


class Sampler:
    """Counts in which functions the main thread was seen."""

    def __init__(self) -> None:
        self.samples = 0
        self.itself: collections.Counter[str] = collections.Counter()
        self.within: collections.Counter[str] = collections.Counter()
        self.stages: collections.Counter[str] = collections.Counter()

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def stop(self) -> protocol.Figures:
        """Return how often each stage was seen, and each function: itself, and with what it calls."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        stages = {name: self.stages[name] for name in (*STAGES, REST)}
        return {"samples": self.samples, "stages": stages, "itself": dict(self.itself), "within": dict(self.within)}

    def _look(self, _signal: int, frame: FrameType | None) -> None:
        seen: set[str] = set()
        stage = fallback = ""
        self.samples += 1
        while frame is not None:
            name = name_of(frame.f_code)
            if not seen:
                self.itself[name] += 1
            seen.add(name)
            found = stage_of(frame.f_code)
            if found == LOOP:
                fallback = fallback or found
            else:
                stage = stage or found
            frame = frame.f_back
        self.stages[stage or fallback or REST] += 1
        self.within.update(seen)


def main() -> None:
    sampler = Sampler()

    def ready() -> None:
        protocol.ready()
        sampler.start()

    async def obey(workload: Awaitable[protocol.Figures]) -> None:
        async def profiled() -> protocol.Figures:
            figures = await workload
            return {**figures, "profile": sampler.stop()}

        await protocol.obey(profiled())

    vars(program).update(ready=ready, obey=obey)
    asyncio.run(program.main())


if __name__ == "__main__":
    main()
