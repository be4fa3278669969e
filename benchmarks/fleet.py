"""Fleets: memory, descriptors and requests of an operator for many clusters, and what one bad cluster does to the others.

    python -m benchmarks.fleet [--only engage|cycles|dead|takeover] [--program ctrlruntime|go] [--clusters 1000] [--objects 0] [--one-authority]

| part | how it is measured |
|---|---|
| engage | an operator with three kinds, for a tenth of the clusters and for all of them, each in a new process |
| cycles | one cluster is added and removed 3,000 times: what remains of it |
| dead | 20 clusters; a ConfigMap is created in 19 of them in turns, and the first one has each fault |
| takeover | three replicas divide 50 clusters: requests for Leases, and the time until another replica has the clusters of one that ends |

All but `cycles` also run with Go's multicluster-runtime (`benchmarks/peers/fleet-go`).

The clusters are simulated: one process with a minimal API stand-in, which is not an API server (`benchmarks/_clusters.py`). It uses the
same processors, so the seconds of `engage` are those of both.

Goals: 512 KiB of memory and five descriptors for an idle cluster, at most 25 watches started per second, memory after cycle 600 within 2 % of
that after cycle 100, and no effect of a bad cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import psutil

import ctrlruntime as ctrl
from benchmarks._clusters import MODES, Address, Standin, standin
from benchmarks.peers import programs
from ctrlruntime.api import core
from ctrlruntime.fleet import Static
from ctrlruntime.handler import enqueue_requests_from_map_func
from ctrlruntime.rest.tls import TLSConfig
from ctrlruntime.testing import Environment
from ctrlruntime.testing.faults import FaultProxy, Match

_LIMIT: Final = 900.0
"""Seconds that a step may take."""

_UNTIL_STEADY: Final = 120.0
"""Seconds until the watches end at different times."""

_STEADY: Final = 75.0
"""Seconds of the steady time: two times the mean length of our watches."""

_CYCLES: Final = (100, 200, 600, 3000)
"""The cycles after which the process is looked at; the first and the third are compared."""

_OTHERS: Final = 20
_BAD: Final = 1
"""The cluster with a fault. It is the first one, after the hub."""

_EVENTS: Final = 1000
_REPLICAS: Final = 3
_DIVIDED: Final = 50
_EVERY: Final = 0.02


# --- our operator -----------------------------------------------------------------------------------------------------


class Operator:
    """Runs as a process of its own: the first cluster is the hub. It answers each line with one.

    kubeconfig: of another hub, where replicas divide the clusters.
    """

    def __init__(self, addresses: Sequence[Address], kubeconfig: str | None = None) -> None:
        self._latencies: list[float] = []
        self._seen: dict[str, float] = {}
        hub, *others = map(config_of, addresses)
        clusters = Static({str(number): each for number, each in enumerate(others, 1)})
        fleet = ctrl.Fleet(clusters, sharded=kubeconfig is not None)
        if kubeconfig is None:
            self._mgr = ctrl.new_manager(hub, fleet=fleet, metrics_bind_address="0")
        else:
            sharding = ctrl.Sharding("bench", namespace="default")
            hub = ctrl.get_config(kubeconfig)
            self._mgr = ctrl.new_manager(hub, fleet=fleet, sharding=sharding, metrics_bind_address="0")
        watch(self._mgr, self.reconcile)
        self._mgr.add(_Everywhere(self))

    async def reconcile(self, request: ctrl.Request) -> None:
        if request.name.startswith("t-"):
            now = time.time()
            self._latencies.append(now * 1e3 - int(request.name[2:]) / 1e6)
            self._seen.setdefault(request.cluster.rpartition("/")[2], now)

    async def answer(self) -> None:
        reader, loop = asyncio.StreamReader(), asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        _say("started")
        while line := await reader.readline():
            _say(getattr(self, line.decode().strip())())
        self._mgr.stop()

    def engaged(self) -> int:
        return self._mgr.fleet.counts().get("Engaged", 0)

    def latencies(self) -> list[float]:
        found, self._latencies = self._latencies, []
        return found

    def owned(self) -> dict[str, float]:
        """Return when each cluster was reconciled first since the last call."""
        found, self._seen = self._seen, {}
        return found

    def settle(self) -> dict[str, int]:
        """Give free memory back, and return what the process has."""
        return settled()

    def run(self) -> None:
        ctrl.run(self._mgr)


class _Everywhere:
    needs_leader_election = False

    def __init__(self, operator: Operator) -> None:
        self.start = operator.answer


def _no_requests(_: core.Service) -> list[ctrl.Request]:
    return []


def watch(mgr: ctrl.Manager, reconcile: Any) -> None:
    """Watch three kinds in each cluster."""
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").owns(core.Secret)
    builder.watches(core.Service, enqueue_requests_from_map_func(_no_requests), on="fleet").complete(reconcile)


def config_of(address: Address) -> ctrl.Config:
    return ctrl.Config(host=address.url, tls=TLSConfig(ca_data=address.ca.encode()))


def settled() -> dict[str, int]:
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return {"tasks": len(asyncio.all_tasks()), "python threads": threading.active_count()}


def _say(document: object) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


async def cycle(addresses: Sequence[Address]) -> None:
    """Add and remove a cluster, and print what the process has after some of the cycles."""
    hub, other = map(config_of, addresses)
    mgr = ctrl.new_manager(hub, metrics_bind_address="0")
    seen = asyncio.Event()

    async def reconcile(_: ctrl.Request) -> None:
        seen.set()

    watch(mgr, reconcile)
    async with ctrl.running(mgr):
        for number in range(1, _CYCLES[-1] + 1):
            begun = time.monotonic()
            seen.clear()
            mgr.add(ctrl.Cluster(other, name="other"))
            await seen.wait()
            await mgr.fleet.remove("other")
            took = time.monotonic() - begun
            if number in _CYCLES:
                found: dict[str, Any] = {"cycle": number, "seconds": took, **settled()}
                found["descriptors"] = psutil.Process().num_fds()
                found["metric lines"] = len(mgr.metrics.render("")[0].splitlines())
                found["resident"] = psutil.Process().memory_info().rss / 1e6
                _say(found)


# --- an operator, seen from here --------------------------------------------------------------------------------------


class Process:
    """An operator: ours, or that of another program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._ps = psutil.Process(process.pid)
        self.begun = time.monotonic()

    def read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the operator ended")
        return json.loads(line)

    def ask(self, what: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self.read()

    def wait_engaged(self, number: int, *, within: float = _LIMIT) -> float | None:
        """Return the seconds since the start until so many clusters are engaged; None if they are not within the time."""
        while (engaged := self.ask("engaged")) < number:
            if time.monotonic() > self.begun + within:
                return None
            time.sleep(0.1 if engaged else 0.02)
        return time.monotonic() - self.begun

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    @property
    def resident(self) -> float:
        """Resident memory in KiB."""
        return float(self._ps.memory_info().rss) / 1024

    @property
    def cpu(self) -> float:
        used = self._ps.cpu_times()
        return float(used.user + used.system)

    @property
    def threads(self) -> int:
        return int(self._ps.num_threads())

    @property
    def descriptors(self) -> int:
        return int(self._ps.num_fds())


OURS: Final = (sys.executable, "-m", "benchmarks.fleet", "--operator")


@contextmanager
def operator(addresses: Sequence[Address], command: Sequence[str] = OURS, *more: str) -> Iterator[Process]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([address._asdict() for address in addresses], file)
        file.flush()
        pipe, errors = subprocess.PIPE, None if os.environ.get("BENCH_ERRORS") else subprocess.DEVNULL
        with subprocess.Popen(
            [*command, file.name, *more], stdin=pipe, stdout=pipe, stderr=errors, text=True
        ) as process:
            try:
                yield Process(process)
            finally:
                process.kill()


# --- the parts --------------------------------------------------------------------------------------------------------


class Idle:
    """What an operator with idle clusters has."""

    def __init__(self, number: int, process: Process, clusters: Standin) -> None:
        assert process.read() == "started"
        self.number = number
        self.started = time.monotonic() - process.begun
        seconds = process.wait_engaged(number)
        if seconds is None:
            raise RuntimeError(f"{number} clusters were not engaged within {_LIMIT:g} s")
        self.seconds = seconds
        self.cpu = process.cpu
        time.sleep(_UNTIL_STEADY)
        clusters.forget()
        before = process.cpu
        time.sleep(_STEADY)
        self.cpu_idle = (process.cpu - before) / _STEADY
        self.requests, begun = clusters.counts()
        self.watches = self.requests.get("watch", 0) / _STEADY
        self.most_watches = max(begun, default=0)
        self.resident, self.descriptors, self.threads = process.resident, process.descriptors, process.threads
        process.ask("settle")
        time.sleep(1)
        self.settled = process.resident

    def show(self) -> None:
        others = ", ".join(f"{what} {count / _STEADY:.1f}" for what, count in sorted(self.requests.items()))
        print(
            f"  {self.number:5} clusters: engaged after {self.seconds:.1f} s (program started after {self.started:.1f} s), CPU {self.cpu:.1f} s"
        )
        print(
            f"        idle: {self.resident / 1024:.0f} MiB, {self.settled / 1024:.0f} MiB with free memory given back, "
            f"{self.descriptors} descriptors, {self.threads} threads, {100 * self.cpu_idle:.1f} % of a CPU"
        )
        print(
            f"        requests a second: {others}; watches started in a second: at most {self.most_watches}",
            flush=True,
        )


@contextmanager
def fronted(addresses: Sequence[Address], command: Sequence[str]) -> Iterator[Sequence[Address]]:
    """Serve the clusters with HTTP/2, at other addresses, by a program in Go. Without a command, return them as they are."""
    if command:
        with operator(addresses, command, "front") as front:
            yield [Address(**each) for each in front.read()]
    else:
        yield addresses


def engage(
    number: int,
    objects: int,
    command: Sequence[str],
    *,
    front: Sequence[str],
    has_one_authority: bool,
) -> None:
    """Print what each idle cluster takes."""
    print(f"engage: three kinds in each cluster, {objects} objects", flush=True)
    found: list[Idle] = []
    for count in (number // 10, number):
        with (
            standin(count + 1, objects=objects, has_one_authority=has_one_authority) as clusters,
            fronted(clusters.addresses, front) as addresses,
            operator(addresses, command) as process,
        ):
            found.append(Idle(count, process, clusters))
        found[-1].show()
    few, many = found
    more = many.number - few.number
    memory, back = (many.resident - few.resident) / more, (many.settled - few.settled) / more
    descriptors = (many.descriptors - few.descriptors) / more
    print(
        f"  each cluster: {memory:.0f} KiB, goal 512: {_judged(memory <= 512)}; {back:.0f} KiB with free memory given back"
    )
    print(f"  each cluster: {descriptors:.2f} descriptors, goal 5: {_judged(descriptors <= 5)}")
    print(f"  watches started a second: {many.watches:.1f}, goal 25: {_judged(many.watches <= 25)}", flush=True)


def _judged(is_held: object) -> str:
    return "held" if is_held else "missed"


def cycles() -> None:
    """Print what remains of clusters that were removed."""
    print(f"cycles: one cluster is added, reconciled and removed {_CYCLES[-1]} times", flush=True)
    with standin(2, objects=1) as clusters, operator(clusters.addresses, [*OURS[:-1], "--cycle"]) as process:
        found = [process.read() for _ in _CYCLES]
    for each in found:
        print(f"  {', '.join(f'{name} {value:.4g}' for name, value in each.items())}")
    share = 100 * (found[2]["resident"] / found[0]["resident"] - 1)
    print(
        f"  memory after cycle {_CYCLES[2]}: {share:+.1f} % of cycle {_CYCLES[0]}, goal 2 %: {_judged(share <= 2)}",
        flush=True,
    )


def dead(command: Sequence[str]) -> None:
    """Print the time from the creation of a ConfigMap to its reconcile, in clusters that respond, while one has a fault."""
    print(
        f"dead: {_OTHERS} clusters, of which one has a fault; ms from a creation in another cluster to its reconcile",
        flush=True,
    )
    for mode in MODES:
        with standin(_OTHERS + 1) as clusters:
            clusters.enter(_BAD, mode)
            with operator(clusters.addresses, command) as process:
                assert process.read() == "started"
                started = time.monotonic() - process.begun
                healthy = _OTHERS - (mode not in {"ok", "slow TLS"})
                engaged = process.wait_engaged(_OTHERS - 1, within=60)
                all_engaged = process.wait_engaged(healthy, within=60)
                shown = "not within 60 s" if engaged is None else f"{engaged:.2f} s"
                print(
                    f"  {mode} from the start: program started {started:.2f} s, {_OTHERS - 1} engaged {shown}", end=""
                )
                if all_engaged is None or engaged is None:
                    print(f", {process.ask('engaged')} after that")
                    continue
                print(f", {_latency(process, clusters)}", flush=True)
    for mode in MODES[1:]:
        with standin(_OTHERS + 1) as clusters, operator(clusters.addresses, command) as process:
            assert process.read() == "started"
            process.wait_engaged(_OTHERS)
            clusters.enter(_BAD, mode)
            print(f"  {mode} while it runs: {_latency(process, clusters)}", flush=True)


def _latency(process: Process, clusters: Standin) -> str:
    time.sleep(2)
    process.ask("latencies")
    clusters.load(range(_BAD + 1, _OTHERS + 1), count=_EVENTS, every=_EVERY)
    time.sleep(2)
    found: list[float] = process.ask("latencies")
    if len(found) < 2:
        return f"{len(found)} reconciles of {_EVENTS}"
    percentiles = statistics.quantiles(found, n=100)
    return f"p50 {percentiles[49]:.2f}, p99 {percentiles[98]:.2f}, {len(found)} reconciles of {_EVENTS}"


def takeover(command: Sequence[str]) -> None:
    """Print what Leases cost when three replicas divide the clusters, and how long no replica reconciles those of one that was killed."""
    print(f"takeover: {_REPLICAS} replicas divide {_DIVIDED} clusters", flush=True)
    with (
        Environment(backend="embedded") as server,
        FaultProxy(server) as proxy,
        standin(_DIVIDED + 1) as clusters,
        contextlib.ExitStack() as stack,
    ):
        hub = str(proxy.kubeconfig_path)
        running = [
            stack.enter_context(operator(clusters.addresses, command, f"replica-{number}", hub))
            for number in range(_REPLICAS)
        ]
        for each in running:
            assert each.read() == "started"
        _load(clusters, 60)  # until no cluster moves any more
        proxy.forget()
        time.sleep(40)
        verbs = {
            verb: proxy.count(Match(verb=verb, resource="leases")) / 40
            for verb in ("create", "update", "patch", "get", "list")
        }
        print(
            f"  requests for Leases a second: {', '.join(f'{verb} {count:.2f}' for verb, count in verbs.items() if count)}"
        )
        for how, end in (("killed", Process.kill), ("stopped", Process.stop)):
            for each in running:
                each.ask("owned")
            _load(clusters, 2)
            shares: list[dict[str, float]] = [each.ask("owned") for each in running]
            print(
                f"  clusters of each: {[len(share) for share in shares]}, {sum(map(len, shares)) - _DIVIDED} of two replicas"
            )
            gone, *running = running
            ended = time.time()
            end(gone)
            _load(clusters, 70)
            taken: dict[str, float] = {}
            for each in running:
                taken |= {cluster: at for cluster, at in each.ask("owned").items() if cluster in shares[0]}
            waits = sorted(at - ended for at in taken.values())
            shown = (
                f"{waits[0]:.1f} to {waits[-1]:.1f} s, median {statistics.median(waits):.1f} s" if waits else "never"
            )
            print(
                f"  one is {how}: {len(taken)} of its {len(shares[0])} clusters are reconciled again after {shown}",
                flush=True,
            )


def _load(clusters: Standin, seconds: float) -> None:
    clusters.load(range(1, _DIVIDED + 1), count=int(seconds * 200), every=0.005)


def main() -> int:
    if sys.argv[1:2] == ["--operator"]:
        Operator(_read(sys.argv[2]), *sys.argv[4:]).run()
        return 0
    if sys.argv[1:2] == ["--cycle"]:
        asyncio.run(cycle(_read(sys.argv[2])))
        return 0
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=("engage", "cycles", "dead", "takeover"))
    parser.add_argument("--program", choices=("ctrlruntime", "go"))
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=0, help="ConfigMaps in each cluster")
    parser.add_argument("--one-authority", action="store_true", help="all clusters have the same certificate authority")
    options = parser.parse_args()
    if options.program in {None, "ctrlruntime"}:
        run("ctrlruntime", OURS, options)
        if options.only in {None, "cycles"}:
            cycles()
    if options.program in {None, "go"} and (program := programs.fleet_go()) is not None:
        run(program.version, program.command, options, front=program.command)
    return 0


def run(name: str, command: Sequence[str], options: argparse.Namespace, *, front: Sequence[str] = ()) -> None:
    """Print the parts of one program. `front`: serves HTTP/2 for it, which the stand-in does not have."""
    print(f"{name}:", flush=True)
    if options.only in {None, "engage"}:
        engage(options.clusters, options.objects, command, front=front, has_one_authority=options.one_authority)
    if options.only in {None, "dead"}:
        dead(command)
    if options.only in {None, "takeover"}:
        takeover(command)


def _read(file: str) -> Sequence[Address]:
    found: Iterable[dict[str, str]] = json.loads(Path(file).read_text())
    return [Address(**each) for each in found]


if __name__ == "__main__":
    sys.exit(main())
