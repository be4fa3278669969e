"""The soak: an operator under constant change and one fault after the other, and how it is after that.

`soak` runs it and returns a `Report`; `Report.complaints` is empty when the cache equals the server, nothing leaked, and memory is flat.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operators.process import Operators, Process

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import Conflict, NotFound
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.faults import Fault, FaultProxy, Match

OBJECTS = 300
UPDATES_PER_SECOND = 100
FAULT_EVERY = 10.0
ROLE = "example.com/role"
FLAT = 0.05
"""Memory may grow by this share of itself after the first fifth; in less than ten minutes the journal is still filling up to its bounds."""

FILLING = 0.25


@dataclass(frozen=True)
class Sample:
    at: float
    state: dict[str, Any]

    @property
    def resident(self) -> float:
        return self.state["resident"] / 1e6


@dataclass
class Report:
    """What was done to the operator, and how it was."""

    seconds: float
    updates: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    samples: list[Sample] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)
    settled_in: float = 0.0
    difference: list[str] = field(default_factory=list)
    exit_code: int | None = None
    noise: list[str] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """How much more memory the last fifth had than the second one, as a share."""
        values = [sample.resident for sample in self.samples]
        part = max(1, len(values) // 5)
        early, late = statistics.fmean(values[part : 2 * part] or values), statistics.fmean(values[-part:])
        return late / early - 1

    def complaints(self) -> list[str]:
        found = [f"the cache differs from the server: {line}" for line in self.difference[:10]]
        more = Counter(self.last["tasks"]) - Counter(self.first["tasks"])
        if more:
            found.append(f"tasks that were not there before the first fault: {dict(more)}")
        threads = Counter(self.last["threads"]) - Counter(self.first["threads"])
        # asyncio's own pool grows to its limit as name look-ups need it, and ends with the loop.
        if leaked := {name: count for name, count in threads.items() if not name.startswith("asyncio_N")}:
            found.append(f"threads that were not there before the first fault: {leaked}")
        if self.last["sockets"] > self.first["sockets"] + 8:
            found.append(f"{self.last['sockets']} sockets, {self.first['sockets']} before the first fault")
        if self.growth > (FLAT if self.seconds >= 600 else FILLING):
            found.append(f"memory grew by {self.growth:.1%}")
        if self.exit_code:
            found.append(f"the process ended with code {self.exit_code}")
        return [*found, *self.noise]

    def lines(self) -> list[str]:
        rate, size = self.updates / self.seconds, [f"{sample.resident:.1f}" for sample in self._spread(20)]
        before, after = self.first, self.last
        return [
            f"{self.seconds:.0f} s, {self.updates} updates ({rate:.0f}/s), {after.get('reconciles')} reconciles",
            f"{sum(self.faults.values())} faults: {', '.join(f'{name} {n}' for name, n in sorted(self.faults.items()))}",
            f"cache equal to the server {self.settled_in:.1f} s after the last change, {len(self.difference)} differences",
            f"resident MB: {' '.join(size)} (growth after the first fifth {self.growth:+.1%})",
            f"tasks {sum(before['tasks'].values())} -> {sum(after['tasks'].values())}",
            f"threads {len(before['threads'])} -> {len(after['threads'])}",
            f"sockets {before['sockets']} -> {after['sockets']}",
            f"exit code {self.exit_code}",
            *(f"COMPLAINT {line}" for line in self.complaints()),
        ]

    def _spread(self, count: int) -> list[Sample]:
        step = max(1, len(self.samples) // count)
        return self.samples[::step]


class Load:
    """Changes objects at a constant rate, by a way that does not fail."""

    def __init__(self, client: ctrl.Client, namespace: str, rng: random.Random, rate: float) -> None:
        self.client = client
        self.namespace = namespace
        self.rng = rng
        self.rate = rate
        self.done = 0

    def parent(self, number: int) -> core.ConfigMap:
        metadata = meta.ObjectMeta(name=f"parent-{number:04d}", namespace=self.namespace, labels={ROLE: "parent"})
        return core.ConfigMap(metadata=metadata, data={"value": "0", "padding": "x" * 500})

    async def fill(self) -> None:
        await asyncio.gather(*(self.client.create(self.parent(number)) for number in range(OBJECTS)))

    async def run(self, seconds: float) -> None:
        began = time.monotonic()
        running: set[asyncio.Task[None]] = set()
        while (passed := time.monotonic() - began) < seconds:
            while self.done < passed * self.rate and len(running) < 50:
                self.done += 1
                task = asyncio.create_task(self._change())
                running.add(task)
                task.add_done_callback(running.discard)
            await asyncio.sleep(0.01)
        await asyncio.gather(*running)

    async def _change(self) -> None:
        target = self.parent(self.rng.randrange(OBJECTS))
        try:
            if self.rng.random() < 0.02:
                await self.client.delete(target)
                await self.client.create(self.parent(int(target.metadata.name.removeprefix("parent-"))))
            else:
                await self.client.patch(target, ctrl.merge_patch({"data": {"value": str(self.rng.random())}}))
        except (NotFound, Conflict, ctrl.errors.AlreadyExists):
            return  # two changes of one object at once


def _faults(proxy: FaultProxy, rng: random.Random) -> dict[str, Callable[[], AbstractContextManager[Fault]]]:
    maps, watches = Match(resource="configmaps"), Match(verb="watch")
    writes = Match(verb=("create", "update"), resource="configmaps")
    return {
        "stalled watches": lambda: proxy.stall(watches),
        "black hole": proxy.black_hole,
        "refused connections": proxy.refuse,
        "dripping answers": lambda: proxy.slow_body(watches, 0.5),
        "cut watches": lambda: proxy.reset(watches, after=rng.randrange(2000)),
        "ended watches": lambda: proxy.close_watches(watches),
        "late answers": lambda: proxy.delay(maps, rng.uniform(0.1, 1.0)),
        "lost answers": lambda: proxy.drop_response(writes, 20),
        "silent answers": lambda: proxy.drop_response(writes, 3, how="silence"),
        "429": lambda: proxy.throttle(maps, retry_after=1.0),
        "503": lambda: proxy.respond(Match(), 503),
        "403": lambda: proxy.deny(maps),
        "410 as HTTP": lambda: proxy.expire(watches, "http", count=3),
        "410 as event": lambda: proxy.expire(watches, "event", count=3),
        "split frames": lambda: proxy.split(watches, rng.randint(1, 50)),
        "conflicts": lambda: proxy.respond(writes, 409, count=50),
    }


class Soak:
    def __init__(
        self, proxy: FaultProxy, process: Process, client: ctrl.Client, namespace: str, seconds: float, rate: float
    ) -> None:
        self.rate = rate
        self.proxy = proxy
        self.process = process
        self.client = client
        self.namespace = namespace
        self.report = Report(seconds)
        self.rng = random.Random(1)
        self.tell: Callable[[str], object] = lambda line: None

    async def run(self) -> None:
        load = Load(self.client, self.namespace, self.rng, self.rate)
        await load.fill()
        await eventually(lambda: '"msg":"starting workers"' in self.process.text())
        warm = asyncio.create_task(load.run(5.0))
        await warm
        await self._equal(60)
        self.report.first = await self._state()
        load.done = 0
        failing = asyncio.create_task(self._fail())
        try:
            await load.run(self.report.seconds)
        finally:
            failing.cancel()
            await asyncio.wait({failing})
        self.report.updates = load.done
        began = time.monotonic()
        self.report.difference = await self._equal(120)
        self.report.settled_in = time.monotonic() - began
        self.report.last = await self._calm_state()
        self.process.send(signal.SIGTERM)
        self.report.exit_code = await self.process.ends(within=120)
        self._listen()

    async def _fail(self) -> None:
        number, began = 0, time.monotonic()
        while True:
            number += 1
            faults = _faults(self.proxy, self.rng)
            name = self.rng.choice(list(faults))
            self.report.faults[name] += 1
            with faults[name]():
                await asyncio.sleep(self.rng.uniform(0.5, 5.0))
            await asyncio.sleep(max(0.0, began + number * FAULT_EVERY - 2.0 - time.monotonic()))
            sample = Sample(time.monotonic() - began, await self._state())
            self.report.samples.append(sample)
            self.tell(
                f"{sample.at:6.0f} s  {sample.resident:6.1f} MB  {sum(sample.state['tasks'].values())} tasks  "
                f"{len(sample.state['threads'])} threads  {sample.state['sockets']} sockets  "
                f"{sample.state['reconciles']} reconciles  after {name}"
            )
            await asyncio.sleep(max(0.0, began + number * FAULT_EVERY - time.monotonic()))

    async def _state(self) -> dict[str, Any]:
        """Ask the operator how it is. Only what it prints from now on is read: its log becomes long."""
        begin = self.process.output.stat().st_size
        self.process.send(signal.SIGUSR1)

        def answer() -> str:
            with self.process.output.open() as output:
                output.seek(begin)
                found = [line for line in output if line.startswith('{"versions"') and line.endswith("\n")]
            return found[-1] if found else ""

        return json.loads(await eventually(answer))

    async def _equal(self, within: float) -> list[str]:
        """Wait until the operator's cache is what the server has; return the differences that are left."""
        limit = time.monotonic() + within
        while True:
            held = (await self._state())["versions"]
            found = await self.client.list(core.ConfigMap, namespace=self.namespace)
            stored = {each.name: each.resource_version for each in found.metadata}
            if held == stored or time.monotonic() > limit:
                names = sorted(held.keys() | stored.keys())
                return [f"{n}: {held.get(n)} instead of {stored.get(n)}" for n in names if held.get(n) != stored.get(n)]
            await asyncio.sleep(0.5)

    async def _calm_state(self) -> dict[str, Any]:
        """Return the state when nothing is under way any more: idle connections are closed after some seconds."""
        limit = time.monotonic() + 40
        while True:
            self.report.last = await self._state()
            if not self.report.complaints() or time.monotonic() > limit:
                return self.report.last
            await asyncio.sleep(2)

    def _listen(self) -> None:
        text = self.process.text()
        for word in ("Traceback (most recent call last):\n", "never retrieved", "Unclosed", "was destroyed"):
            if word in text:
                at = text.index(word)
                self.report.noise.append(f"the log has {text[max(0, at - 200) : at + 600]!r}")


@contextmanager
def short_turns() -> Iterator[None]:
    """Let threads take short turns: the proxy, the embedded server and the load are threads of one process."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


async def soak(
    server: Environment,
    folder: Path,
    seconds: float,
    *,
    rate: float = UPDATES_PER_SECOND,
    watch: tuple[float, float, float] | None = None,
    tell: Callable[[str], object] = lambda line: None,
) -> Report:
    """Run a soak of so many seconds, with `rate` updates a second. `watch`: shorter times of watches (shortest, longest, grace) than the default."""
    namespace = await asyncio.to_thread(server.create_namespace, "soak")
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    times = ["--watch", *map(str, watch)] if watch else []
    with short_turns(), FaultProxy(server) as proxy, Operators() as operators:
        process = operators.start(
            "soaker", folder, "--kubeconfig", str(proxy.kubeconfig_path), "--namespace", namespace, *times
        )
        one = Soak(proxy, process, cluster.unfenced_client(), namespace, seconds, rate)
        one.tell = tell
        try:
            await one.run()
        finally:
            process.kill()
            await cluster.close()
            await asyncio.to_thread(server.delete_namespace, namespace)
    return one.report
