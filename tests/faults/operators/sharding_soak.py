"""The soak of replicas that share objects: constant change, one fault after the other, and an auditor who reads what the server stored.

`soak` runs it and returns a `Report`. `Report.complaints` is empty if each write came from the owner of its object, and no object was missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from operators.history import History
from operators.process import Operators, Process
from operators.shard_audit import Audit, Findings, Kill, Wait, audit, by_cluster, slim, story, whole
from operators.sharer import CLUSTER, ID, LEADER, ROOT, STUBBORN, VALUE
from operators.soak import short_turns
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.errors import AlreadyExists, Conflict, NotFound
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.faults import FaultProxy, Match

REPLICAS = 3
SETTLED = 1.0
"""Seconds after which the watches of all kinds have told what they had to tell."""

RECORDED = {
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
}


IN_CLUSTERS = {**RECORDED, "ConfigMap": "/api/v1/configmaps", "Secret": "/api/v1/secrets"}
"""The same, if the roots are in the namespaces that are clusters."""

CLUSTERS = 24


@dataclass(frozen=True)
class Times:
    """Seconds of a replica's Lease; see `ctrl.Sharding`."""

    lease: float = 15.0
    renew: float = 10.0
    period: float = 4.0

    @property
    def margin(self) -> float:
        """The time that a write may be late: a replica stops so long before others take its slots."""
        return self.lease - self.renew

    def arguments(self) -> list[str]:
        return ["--times", str(self.lease), str(self.renew), str(self.period)]


SCALED = Times(3.0, 2.0, 0.6)


@dataclass
class Report:
    """What was done to the replicas, and what came of it."""

    seconds: float
    times: Times
    changes: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)
    slowest: list[str] = field(default_factory=list)
    """What the server stored during the slowest take-over after a kill, of the root that was served last."""

    missed: list[str] = field(default_factory=list)
    """What the server stored of the first root that was not served at the end."""

    exit_codes: Counter[int] = field(default_factory=Counter)
    """Of planned ends."""

    noise: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        found = [*self.noise, *self.findings.violations[:20]]
        found += [
            f"{wait.root} was missed: not served since {wait.seconds:.1f} s" for wait in self.findings.pending[:20]
        ]
        if set(self.exit_codes) - {0}:
            found.append(f"planned ends with exit codes {dict(self.exit_codes)}")
        if not self.findings.writes:
            found.append("nothing was written")
        return found

    def lines(self) -> list[str]:
        found = self.findings
        moved = [wait.seconds for wait in found.waits if wait.is_move]
        changed = [wait.seconds for wait in found.waits if not wait.is_move]
        return [
            f"{self.seconds:.0f} s, {self.changes} changes, {found.writes} writes, {found.moves} moves of a slot",
            f"{self.faults.total()} faults: {', '.join(f'{name} {n}' for name, n in sorted(self.faults.items()))}",
            f"writes by another process than the owner: {len(found.violations)}; objects missed: {len(found.pending)}",
            f"take-over after a kill, all objects: {_spread([each.last.seconds for each in found.take_overs])}",
            f"the same, each object: {_spread([seconds for each in found.take_overs for seconds, _ in each.served])}",
            *(f"  the slowest: {line}" for line in self.slowest),
            f"an object that moved waited: {_spread(moved)}",
            f"an object that changed waited, faults included: {_spread(changed)}",
            f"exit codes of planned ends: {dict(self.exit_codes)}",
            *(f"  missed: {line}" for line in self.missed),
            *(f"COMPLAINT {line}" for line in self.complaints()),
        ]


def _spread(values: list[float]) -> str:
    if not values:
        return "none"
    ordered = sorted(values)
    return (
        f"p50 {statistics.median(ordered):.2f} s, p99 {ordered[int(len(ordered) * 0.99)]:.2f} s, "
        f"max {ordered[-1]:.2f} s of {len(ordered)}"
    )


class Load:
    """Changes the roots at a constant rate, by a way that does not fail."""

    def __init__(
        self,
        client: ctrl.Client,
        namespace: str,
        rng: random.Random,
        *,
        roots: int,
        rate: float,
        spaces: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.namespace = namespace
        self.spaces = spaces or [namespace]
        self.rng = rng
        self.roots = roots
        self.rate = rate
        self.done = 0

    def root(self, number: int) -> core.ConfigMap:
        space = self.spaces[number % len(self.spaces)]
        metadata = meta.ObjectMeta(
            name=f"root-{number:04d}", namespace=space, labels=ROOT, annotations={VALUE: str(self.done)}
        )
        return core.ConfigMap(metadata=metadata)

    async def fill(self) -> None:
        await self.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=LEADER, namespace=self.namespace)))
        numbers = iter(range(self.roots))

        async def create() -> None:
            for number in numbers:
                await self.client.create(self.root(number))

        await asyncio.gather(*(create() for _ in range(20)))

    async def run(self) -> None:
        """Change roots until cancelled."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(1_000_000_000):
                await asyncio.sleep(max(0.0, began + number / self.rate - time.monotonic()))
                group.create_task(self._change())

    async def _change(self) -> None:
        self.done += 1
        number = self.rng.randrange(self.roots)
        target = self.root(number)
        with contextlib.suppress(NotFound, Conflict, AlreadyExists):  # two changes of one root at once
            if self.rng.random() < 0.05:
                await self.client.delete(target)
                await self.client.create(target)
            else:
                stubborn = "yes" if self.rng.random() < 0.02 else None
                annotations = {VALUE: str(self.done), STUBBORN: stubborn}
                await self.client.patch(target, ctrl.merge_patch({"metadata": {"annotations": annotations}}))


@dataclass
class Replica:
    """A process behind a proxy of its own."""

    pod: str
    proxy: FaultProxy
    process: Process


class Soak:
    def __init__(
        self,
        server: Environment,
        folder: Path,
        operators: Operators,
        client: ctrl.Client,
        namespace: str,
        times: Times,
        seed: int,
        report: Report,
        *,
        fleet: bool,
    ) -> None:
        self.fleet = fleet
        self.divide = by_cluster if fleet else whole
        self.server = server
        self.folder = folder
        self.operators = operators
        self.client = client
        self.namespace = namespace
        self.times = times
        self.rng = random.Random(seed)
        self.report = report
        self.tell: Callable[[str], object] = lambda line: None
        self.names = list(FAULTS)
        self.replicas: list[Replica] = []
        self.kills: list[Kill] = []
        self._proxies = ExitStack()
        self._started = 0
        self._live = Audit(divide=self.divide)
        self._looked_at = 0

    def close(self) -> None:
        for replica in self.replicas:
            replica.process.kill()
        self._proxies.close()

    # --- processes -----------------------------------------------------------------------------------------------------

    def start(self, proxy: FaultProxy | None = None) -> None:
        """Start one more replica."""
        self._started += 1
        pod = f"pod-{self._started}"
        proxy = proxy or self._proxies.enter_context(FaultProxy(self.server))
        process = self.operators.start(
            "sharer", self.folder, "--kubeconfig", str(proxy.kubeconfig_path), "--namespace", self.namespace,
            "--identity", pod, *self.times.arguments(), *(["--fleet"] if self.fleet else []),
        )  # fmt: skip
        self.replicas.append(Replica(pod, proxy, process))

    def replace(self, replica: Replica) -> None:
        """Start another process in place of one that has ended."""
        self._listen(replica)
        self.replicas.remove(replica)
        self.start(replica.proxy)

    async def end(self, replica: Replica) -> None:
        """End a process as a rollout does."""
        replica.process.send(signal.SIGTERM)
        self.report.exit_codes[await replica.process.ends(within=LONGEST_WAIT)] += 1
        pods = [pod for pod in await self.pods() if pod == replica.pod]
        if pods:
            self.report.noise.append(f"{replica.pod} ended, and its Lease is still there")

    def one(self) -> Replica:
        return self.rng.choice(self.replicas)

    # --- the ring, as clients see it -----------------------------------------------------------------------------------

    async def leases(self) -> Mapping[str, coordination.Lease]:
        found = await self.client.list(coordination.Lease, namespace=self.namespace)
        return {lease.metadata.name: lease for lease in found}

    async def pods(self) -> list[str]:
        """Return the Pods whose Leases have a holder."""
        found = [lease.spec.holder_identity or "" for name, lease in (await self.leases()).items() if name != ID]
        return [holder.partition("_")[0] for holder in found if holder]

    async def calm(self) -> None:
        """Wait until each replica has its share, and almost all roots are served."""
        await eventually(self._is_calm, timeout=2 * LONGEST_WAIT, interval=0.5)

    async def _is_calm(self) -> bool:
        for replica in list(self.replicas):
            if (
                replica.process.exit_code is not None
            ):  # it led, and lost its slots: it has to end, and its Deployment starts another one
                self.replace(replica)
                return False
        if sorted(await self.pods()) != sorted(replica.pod for replica in self.replicas):
            return False
        found = await asyncio.to_thread(self._now)
        shares = Counter(found.owners[:-1])
        return set(shares) == {replica.pod for replica in self.replicas} and (
            max(shares.values()) - min(shares.values()) <= 1 and len(found.pending) <= 10
        )

    def _now(self) -> Findings:
        """Return what the history says so far. The verdict is made at the end, of all versions."""
        settled = time.monotonic() - SETTLED
        fresh = [version for version in self.history.recorded(self._looked_at) if version.seen_at <= settled]
        self._looked_at += len(fresh)
        for version in sorted(fresh, key=lambda version: version.resource_version):
            self._live.take(version)
        return self._live.findings()

    # --- faults --------------------------------------------------------------------------------------------------------

    async def kill(self) -> None:
        """Kill a process. The next one starts once its objects are taken over."""
        victim = self.one()
        self.kills.append(Kill(victim.pod, victim.process.send(signal.SIGKILL)))
        await victim.process.ends(within=LONGEST_WAIT)
        await asyncio.sleep(1.2 * self.times.lease)
        self.replace(victim)

    async def freeze(self) -> None:
        """Freeze a process for longer than its Lease. When it wakes up, its requests are late."""
        victim = self.one()
        victim.process.send(signal.SIGSTOP)
        await asyncio.sleep(self.rng.uniform(1.2, 2.0) * self.times.lease)
        victim.process.send(signal.SIGCONT)

    async def partition(self) -> None:
        with self.one().proxy.black_hole():
            await asyncio.sleep(self.rng.uniform(1.2, 2.0) * self.times.lease)

    async def slow(self) -> None:
        """All responses of one replica are later than its renewals may be."""
        with self.one().proxy.delay(Match(), self.times.renew):
            await asyncio.sleep(2 * self.times.lease)

    async def late(self) -> None:
        """The requests of one replica arrive late, but not later than what it leaves between its last write and its end."""
        with self.one().proxy.delay(Match(), self.rng.uniform(0.1, 0.6) * self.times.margin, at="request"):
            await asyncio.sleep(2 * self.times.lease)

    async def cut(self) -> None:
        proxy = self.one().proxy
        for _ in range(5):
            with proxy.reset():
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2 * self.times.period)

    async def late_watches(self) -> None:
        """One replica sees changes late, while its slots move: another one is restarted."""
        victim, other = self.rng.sample(self.replicas, 2)
        with victim.proxy.delay(Match(verb="watch"), 0.5 * self.times.lease):
            await self.end(other)
            self.replace(other)
            await asyncio.sleep(self.times.lease)

    async def outage(self) -> None:
        """No replica reaches the server, for longer than any Lease. Only the slots of a process that ends may move: the leader's, after 45 s."""
        before, running = (await asyncio.to_thread(self._now)).owners, list(self.replicas)
        with ExitStack() as stack:
            for replica in self.replicas:
                stack.enter_context(replica.proxy.refuse())
            await asyncio.sleep(self.rng.uniform(1.5, 3.0) * self.times.lease)
        await asyncio.sleep(2 * self.times.lease)
        after = (await asyncio.to_thread(self._now)).owners
        stayed = {replica.pod for replica in running if replica.process.exit_code is None}
        moved = sum(1 for owner, now in zip(before, after, strict=True) if owner in stayed and owner != now)
        if moved:
            self.report.noise.append(f"{moved} slots moved by an outage: {Counter(before)} to {Counter(after)}")

    async def roll(self) -> None:
        """Restart all replicas, one after the other."""
        for replica in list(self.replicas):
            await self.end(replica)
            if "ERROR" in replica.process.text():
                self._note_error(replica)
            self.replace(replica)
            await self.calm()

    async def delete_lease(self) -> None:
        """A user deletes the Lease of a replica that works."""
        names = [name for name in await self.leases() if name != ID]
        await self._delete(self.rng.choice(names))

    async def delete_ring(self) -> None:
        await self._delete(ID)

    async def _delete(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(coordination.Lease(metadata=meta.ObjectMeta(name=name, namespace=self.namespace)))
        await asyncio.sleep(2 * self.times.lease)

    # --- the run -------------------------------------------------------------------------------------------------------

    async def run(self, history: History, load: Load) -> None:
        self.history = history
        await load.fill()
        for _ in range(REPLICAS):
            self.start()
        await self.calm()
        changing = asyncio.create_task(load.run())
        try:
            await self._fail(self.report.seconds)
        finally:
            changing.cancel()
            await asyncio.wait({changing})
        self.report.changes = load.done
        await self.calm()
        missed = await self._missed(history)
        for replica in list(self.replicas):
            await self.end(replica)
            self._listen(replica)
        self.report.findings = audit(history.versions, self.kills, divide=self.divide)
        self.report.findings.pending = missed
        if missed:
            self.report.missed = story(history.versions, missed[0], divide=self.divide)
        if take_overs := self.report.findings.take_overs:
            slowest = max(take_overs, key=lambda each: each.last.seconds)
            self.report.slowest = [
                f"each object: {_spread([seconds for seconds, _ in slowest.served])}",
                *(f"{seconds:8.2f} s  served: {root}" for seconds, root in slowest.served[-10:]),
                *story(history.versions, slowest.last, divide=self.divide),
            ]

    async def _missed(self, history: History) -> list[Wait]:
        """Return the roots that are not served long after the last change.

        A root is pending for a moment once more when the server removes the child of its predecessor. So one look is no verdict.
        """
        deadline = time.monotonic() + LONGEST_WAIT
        while True:
            found = await asyncio.to_thread(lambda: audit(history.versions, divide=self.divide).pending)
            if not found or time.monotonic() > deadline:
                return found
            await asyncio.sleep(2 * SETTLED)

    async def _fail(self, seconds: float) -> None:
        """Let faults happen, each of them once before one happens again."""
        began = time.monotonic()
        while True:
            for name in self.rng.sample(self.names, len(self.names)):
                if time.monotonic() - began > seconds:
                    return
                started = time.monotonic()
                await FAULTS[name](self)
                ended = time.monotonic()
                await self.calm()
                self.report.faults[name] += 1
                now = time.monotonic()
                self.tell(f"{now - began:6.0f} s  {name}: {ended - started:.1f} s, calm {now - ended:.1f} s later")
                for replica in self.replicas:
                    replica.proxy.forget()

    def _listen(self, replica: Replica) -> None:
        text = replica.process.text()
        for word in ("Traceback (most recent call last):\n", "never retrieved", "Unclosed", "was destroyed"):
            if word in text:
                at = text.index(word)
                self.report.noise.append(f"the log of {replica.pod} has {text[max(0, at - 200) : at + 600]!r}")

    def _note_error(self, replica: Replica) -> None:
        line = next(line for line in replica.process.text().splitlines() if "ERROR" in line)
        self.report.noise.append(f"{replica.pod}, which was restarted, logged {line[:600]}")


FAULTS: dict[str, Callable[[Soak], Awaitable[None]]] = {
    "kill": Soak.kill,
    "freeze": Soak.freeze,
    "partition": Soak.partition,
    "slow": Soak.slow,
    "late-requests": Soak.late,
    "cut": Soak.cut,
    "late-watches": Soak.late_watches,
    "outage": Soak.outage,
    "rollout": Soak.roll,
    "deleted-lease": Soak.delete_lease,
    "deleted-ring": Soak.delete_ring,
}


async def soak(
    server: Environment,
    folder: Path,
    seconds: float,
    *,
    roots: int = 1000,
    rate: float = 20.0,
    times: Times | None = None,
    fleet: bool = False,
    seed: int = 1,
    faults: Iterable[str] = (),
    tell: Callable[[str], object] = lambda line: None,
) -> Report:
    """Run a soak of so many seconds, and a little more: the last fault ends, and each object is served.

    rate: changes a second. fleet: the processes divide clusters, not objects. faults: names of `FAULTS`; default: all.
    """
    times = times or Times()
    namespace = await asyncio.to_thread(server.create_namespace, "soak")
    spaces = [f"{namespace}-{number}" for number in range(CLUSTERS)] if fleet else []
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    report = Report(seconds, times)
    with short_turns(), Operators() as operators:
        one = Soak(server, folder, operators, cluster.unfenced_client(), namespace, times, seed, report, fleet=fleet)
        one.tell, one.names = tell, list(faults or FAULTS)
        try:
            for name in spaces:
                labels = {CLUSTER: namespace}
                await one.client.create(core.Namespace(metadata=meta.ObjectMeta(name=name, labels=labels)))
            recorded = IN_CLUSTERS if fleet else RECORDED
            with History(server, namespace, recorded, seconds=int(seconds) + 1800, slim=slim) as history:
                load = Load(one.client, namespace, random.Random(seed), roots=roots, rate=rate, spaces=spaces)
                await one.run(history, load)
        finally:
            one.close()
            await cluster.close()
            for name in (*spaces, namespace):
                await asyncio.to_thread(server.delete_namespace, name)
    return report
