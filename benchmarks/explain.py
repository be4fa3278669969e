"""What remembering costs: `python -m benchmarks.explain` prints CPU time a reconcile with the journal and without it (bar: 2 % more).

Two operators take turns with the same work, from the frame of a watch over a typed read to the end of the reconcile: once with all objects
changing one after the other, so that each run noted takes the place of one long ago, and once with a few that change again and again. No
network and no server. The least of many turns counts: a busy machine adds to a turn and takes nothing off.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import time
from collections.abc import Iterator
from typing import cast

from benchmarks.cache import OBJECTS, Changes, Gadget, Mapper, Prepared, gadget, new_cache
from ctrlruntime import log
from ctrlruntime.cache.cache import running
from ctrlruntime.client.api import APIClient
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.split import SplitClient
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.handler import EnqueueRequestForObject
from ctrlruntime.journal import Journal
from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.watch import Frame
from ctrlruntime.scheme import Scheme
from ctrlruntime.source import Kind

FEW = 1_000
TURN = FEW  # reconciles: each object changes once in a turn, or changes would be taken together
TURNS = 40
BATCH = 10  # frames that come together
BAR = 1.02


class Operator:
    """A cache and a controller that reads each object that changes."""

    def __init__(self, transport: Prepared, journal: Journal | None) -> None:
        gate = Gate()
        self.changes = Changes()
        self.cache = new_cache(transport, self.changes)
        api = APIClient(cast("Transport", transport), cast("RESTMapper", Mapper()), Scheme(Gadget), gate=gate)
        self.client = SplitClient(api, self.cache, gate, reads_live=self.cache.reads_live)
        self.controller = Controller(
            "gadget",
            self.reconcile,
            options=ControllerOptions(max_concurrent_reconciles=10),
            metrics=Metrics(),
            journal=journal,
            group="bench.example.com",
            kind="Gadget",
        )
        self.controller.watch(Kind(self.cache, Gadget, EnqueueRequestForObject()))
        self.versions = itertools.count(100_000)
        self.left = OBJECTS
        self.done = asyncio.Event()

    async def reconcile(self, request: Request) -> None:
        await self.client.get(Gadget, request)
        self.left -= 1
        if not self.left:
            self.done.set()

    async def turn(self, numbers: Iterator[int]) -> float:
        """Have objects change; return the seconds of CPU for each of them, until it was reconciled."""
        frames = [Frame("MODIFIED", gadget(next(numbers), next(self.versions))) for _ in range(TURN)]
        self.left = TURN
        self.done.clear()
        gc.collect()
        began = time.process_time()
        for start in range(0, TURN, BATCH):
            self.changes.batches.put_nowait(frames[start : start + BATCH])
        await self.done.wait()
        return (time.process_time() - began) / TURN


async def compare(what: str, operators: dict[str, Operator], objects: int) -> None:
    """Let the operators take turns with so many objects, and print what the least of them took."""
    numbers = {name: itertools.cycle(range(objects)) for name in operators}
    least = dict.fromkeys(operators, float("inf"))
    for turn in range(TURNS):
        for name, operator in sorted(operators.items(), reverse=bool(turn % 2)):
            least[name] = min(least[name], await operator.turn(numbers[name]))
    ratio = least["with"] / least["without"]
    figures = ", ".join(f"{name} {seconds * 1e6:.2f} µs" for name, seconds in least.items())
    print(f"{what}: {figures} a reconcile; ratio {ratio:.3f} (bar {BAR})")


async def main() -> None:
    log.setup(log.Options(log_level="error"))
    transport = Prepared()
    operators: dict[str, Operator] = {}
    async with contextlib.AsyncExitStack() as stack:
        for name, journal in (("without", None), ("with", Journal())):
            operator = operators[name] = Operator(transport, journal)
            await stack.enter_async_context(running(operator.cache))
            stack.push_async_callback(operator.controller.stop)
            task = asyncio.create_task(operator.controller.start())
            stack.callback(task.cancel)
            await operator.done.wait()  # all were reconciled once, and the journal is full
        gc.freeze()
        await compare(f"all of {OBJECTS:,} objects", operators, OBJECTS)
        await compare(f"{FEW} objects", operators, FEW)


if __name__ == "__main__":
    asyncio.run(main())
