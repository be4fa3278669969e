"""The workloads: each fills a server of its own, then runs the programs on it in turns."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import aiohttp
import psutil

from benchmarks import apiserver, startup
from benchmarks.peers import objects
from benchmarks.peers.load import WARM_UP, Changes, Load, Reviews, Updates, on
from benchmarks.peers.process import Figures, Job, PeerFailed, run
from benchmarks.peers.programs import Program
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.testing import Environment

LINGER = 5.0  # seconds an idle operator is left alone
CONCURRENCY = 10
SUBSCRIBERS = (1, 5, 20)
SECONDS = 5
"""How long reviews are posted."""

Around = Callable[[Callable[..., Figures]], Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many objects each workload has; `rate` is reviews a second."""

    widgets: int = 20_000
    pods: int = 10_000
    metadata: int = 50_000
    children: int = 2_000
    idle: int = 1_000
    updates: int = 200
    keys: int = 20_000
    namespaces: int = 1_000
    controllers: int = 100
    rate: int = 500
    served: int = 1_000
    seconds: int = 60
    """How long objects are updated at `rate` in `load`."""

    def divided(self, by: int) -> Sizes:
        """The same, `by` times smaller. The controllers are as many as ever: what they reconcile is fewer."""
        made = replace(self, **{name: max(1, count // by) for name, count in asdict(self).items()})
        kept = {"controllers": self.controllers, "updates": min(self.updates, made.idle)}
        return replace(made, **kept, seconds=max(2, made.seconds))

    def multiplied(self, by: int) -> Sizes:
        """The same with `by` times as many objects in the caches."""
        return replace(self, widgets=by * self.widgets, pods=by * self.pods, metadata=by * self.metadata)


@dataclass(slots=True, kw_only=True)
class Bench:
    """One run of everything; `rows` is what was measured, one row a program, workload and run."""

    programs: list[Program]
    sizes: Sizes
    runs: int
    only: frozenset[str]
    backend: Literal["real", "embedded"]
    pin: bool = False
    quiet: bool = False
    rows: list[Figures] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def run(self) -> None:
        for names, workload in (
            ({"startup"}, self.startup),
            ({"queue"}, self.queue),
            ({"idle", "latency", "events", "controllers"}, self.idle),
            ({"webhook", "namespaces"}, self.namespaces),
            ({"children", "applied", "owns"}, self.children),
            ({"synced", "reconciled", "reads", "load"}, self.widgets),
            ({"pods", "metadata"}, self.pods),
            ({"server"}, self.servers),
        ):
            if names & self.only:
                workload()

    def startup(self) -> None:
        """No program keeps to the protocol here: what is started ends by itself."""
        wanted = [program.name for program in self.programs if program.name in startup.COMMANDS]
        for turn in range(self.runs):
            for name in wanted:
                try:
                    figures = startup.measure(name)
                except subprocess.CalledProcessError as error:
                    self.fail("startup", name, turn, error)
                    continue
                self.keep("startup", name, turn, 0, figures)

    def servers(self) -> None:
        """The embedded API server beside the real one; the programs have no part in it."""
        having = {"embedded": apiserver.embedded, "real": apiserver.real}
        if not any(program.name == "ctrlruntime" for program in self.programs):
            return
        for turn in range(self.runs):
            for name in sorted(having, reverse=bool(turn % 2)):
                try:
                    figures = apiserver.run(having[name], self.sizes.served, 20)
                    if name == "embedded":
                        apiserver.thread_ready()  # the first one imports
                        figures["thread_ready"] = apiserver.thread_ready() * 1e3
                except ConfigError as error:
                    print(f"left out: server, {name}: {error}", file=sys.stderr)
                    del having[name]
                except (RuntimeError, OSError, aiohttp.ClientError) as error:
                    self.fail("server", name, turn, error)
                else:
                    self.keep("server", name, turn, self.sizes.served, figures)

    def queue(self) -> None:
        self.turns(Job(workload="queue", objects=self.sizes.keys))

    def idle(self) -> None:
        with self.server() as kubeconfig:
            self.fill(kubeconfig, objects.WIDGETS, self.sizes.idle)
            job = Job(workload="idle", kubeconfig=kubeconfig, objects=self.sizes.idle, concurrency=CONCURRENCY)
            self.turns(replace(job, linger=LINGER))
            latency = replace(job, workload="latency", updates=self.sizes.updates)
            self.turns(latency, around=Updates(kubeconfig, self.sizes.updates).around)
            events = replace(job, workload="events", updates=self.sizes.idle, limit=120.0)
            changes = Changes(kubeconfig, self.sizes.idle)
            for width in SUBSCRIBERS:  # the floor has one reader, however many want to know
                around, but = changes.around(f"event_us_{width}"), {"floor"} if width > 1 else set[str]()
                self.turns(replace(events, width=width), around=around, but=but)
            self.turns(events, around=changes.around("event_us_rejected"), but={"floor"})
            reconciles = self.sizes.idle * self.sizes.controllers
            width = self.sizes.controllers
            self.turns(replace(job, workload="controllers", width=width, objects=reconciles))

    def namespaces(self) -> None:
        with self.server() as kubeconfig:
            if "webhook" in self.only:
                self.webhook(kubeconfig)
            if "namespaces" in self.only:
                count = self.sizes.namespaces
                self.say(f"creating {count} namespaces")
                on(kubeconfig, lambda server: objects.fill_namespaces(server, count))
                self.turns(Job(workload="namespaces", kubeconfig=kubeconfig, objects=count, width=count))

    def webhook(self, kubeconfig: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            authority, count = make_authority(), self.sizes.rate * SECONDS
            pair = authority.server(["127.0.0.1"])
            for name, content in (("ca.crt", authority.pem), ("tls.crt", pair.certificate), ("tls.key", pair.key)):
                Path(folder, name).write_bytes(content)
            port = free_port()
            job = Job(workload="webhook", kubeconfig=kubeconfig, objects=count + WARM_UP, port=port, certs=folder)
            self.turns(job, around=Reviews(port, Path(folder, "ca.crt"), self.sizes.rate, count).around)

    def children(self) -> None:
        count = self.sizes.children
        with self.server() as kubeconfig:
            job = Job(workload="children", kubeconfig=kubeconfig, objects=count, concurrency=CONCURRENCY)

            def children(measure: Callable[..., Figures]) -> Figures:
                self.fill(kubeconfig, objects.WIDGETS, count)
                return created(measure, objects.WIDGETS, objects.CONFIG_MAPS)

            def created(measure: Callable[..., Figures], *paths: str) -> Figures:
                """Measure how fast objects are created, and delete them."""
                try:
                    figures = measure()
                finally:
                    on(kubeconfig, lambda server: objects.empty(server, *paths))
                return {**figures, "rate": count / figures["wall"]}

            self.turns(job, around=children)
            owns = replace(job, workload="owns")
            self.turns(owns, around=lambda measure: created(measure, objects.WIDGETS, objects.CONFIG_MAPS))
            if "applied" in self.only:
                self.fill(kubeconfig, objects.WIDGETS, count)
                applied = replace(job, workload="applied")
                self.turns(applied, around=lambda measure: created(measure, objects.CONFIG_MAPS))

    def widgets(self) -> None:
        count = self.sizes.widgets
        with self.server() as kubeconfig:
            self.empty("synced", kubeconfig)
            self.fill(kubeconfig, objects.WIDGETS, count)
            self.facts["widget_bytes"] = on(kubeconfig, lambda server: objects.size(server, objects.WIDGETS))
            self.turns(Job(workload="synced", kubeconfig=kubeconfig, objects=count))
            self.turns(Job(workload="reconciled", kubeconfig=kubeconfig, objects=count, concurrency=CONCURRENCY))
            self.turns(Job(workload="reads", kubeconfig=kubeconfig, objects=count))
            load = Load(kubeconfig, count, self.sizes.rate, self.sizes.seconds)
            job = Job(workload="load", kubeconfig=kubeconfig, objects=count, updates=load.updates, limit=300.0)
            self.turns(replace(job, concurrency=CONCURRENCY), around=load.around)

    def pods(self) -> None:
        with self.server() as kubeconfig:
            if "pods" in self.only:
                self.empty("pods", kubeconfig)
                self.fill(kubeconfig, objects.PODS, self.sizes.pods)
                self.facts["pod_bytes"] = on(kubeconfig, lambda server: objects.size(server, objects.PODS))
                self.turns(Job(workload="pods", kubeconfig=kubeconfig, objects=self.sizes.pods))
            if "metadata" in self.only:
                self.metadata(kubeconfig)

    def metadata(self, kubeconfig: str) -> None:
        count = self.sizes.metadata
        self.empty("metadata", kubeconfig)
        self.say(f"creating {count} widgets with much metadata")
        on(kubeconfig, lambda server: objects.fill(server, objects.WIDGETS, range(count), objects.described))
        self.facts["metadata_bytes"] = on(kubeconfig, lambda server: objects.size(server, objects.WIDGETS))

        def around(measure: Callable[..., Figures]) -> Figures:
            figures = measure()
            return figures | ({"peak_ratio": figures["peak"] / figures["settled"]} if figures["peak"] else {})

        self.turns(Job(workload="metadata", kubeconfig=kubeconfig, objects=count), around=around)

    def empty(self, workload: str, kubeconfig: str) -> None:
        """What a program takes without any object: memory an object is what comes on top."""
        if workload in self.only:
            self.turns(Job(workload=workload, kubeconfig=kubeconfig), label=f"{workload}-empty")

    def turns(self, job: Job, *, label: str = "", around: Around | None = None, but: Collection[str] = ()) -> None:
        """Run the programs that have this workload (`but` these), one after the other, each time another one first."""
        if job.workload not in self.only:
            return
        having = [one for one in self.programs if job.workload in one.workloads and one.name not in but]
        for turn in range(self.runs):
            first = turn % max(1, len(having))
            for program in having[first:] + having[:first]:
                self.one(program, job, label or job.workload, turn, around)

    def one(
        self,
        program: Program,
        job: Job,
        label: str,
        turn: int,
        around: Around | None,
    ) -> None:
        def measure(while_synced: Callable[[], None] | None = None) -> Figures:
            return run(program, self.pinned(job), while_synced)

        began = time.perf_counter()
        try:
            figures = around(measure) if around is not None else measure()
            if (found := figures.get("objects", job.objects)) != job.objects:
                raise PeerFailed(f"it saw {found} of {job.objects} objects")
        except PeerFailed as error:
            self.fail(label, program.name, turn, error)
            return
        self.keep(label, program.name, turn, job.objects, figures, time.perf_counter() - began)

    def keep(self, label: str, program: str, turn: int, count: int, figures: Figures, took: float = 0.0) -> None:
        self.rows.append({"workload": label, "program": program, "run": turn, "count": count, **figures})
        self.say(f"{label}, run {turn + 1} of {self.runs}: {program}" + (f", {took:.1f} s" if took else ""))

    def fail(self, label: str, program: str, turn: int, error: Exception) -> None:
        self.failures.append(f"{label}, {program}: {error}")
        self.say(f"{label}, run {turn + 1}: {program} failed: {error}")

    def pinned(self, job: Job) -> Job:
        return replace(job, cpus=halves()[1]) if self.pin else job

    @contextmanager
    def server(self) -> Iterator[str]:
        """A server of its own, with the kind installed; yields its kubeconfig file."""
        me = psutil.Process()
        before = {child.pid for child in me.children(recursive=True)}
        with Environment(backend=self.backend, controller_manager=False, crds=[objects.DEFINITION]) as environment:
            if self.pin:
                for child in me.children(recursive=True):
                    if child.pid not in before:
                        child.cpu_affinity(halves()[0])
            self.facts["server"] = environment.connection.request("GET", "/version")["gitVersion"]
            kubeconfig = str(environment.kubeconfig_path)
            on(kubeconfig, objects.make_namespace)
            yield kubeconfig

    def fill(self, kubeconfig: str, path: str, count: int) -> None:
        self.say(f"creating {count} {path.rsplit('/', 1)[-1]}")
        on(kubeconfig, lambda server: objects.fill(server, path, range(count)))

    def say(self, line: str) -> None:
        if not self.quiet:
            print(f"  {line}", file=sys.stderr, flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def halves() -> tuple[list[int], list[int]]:
    """The processors of the server, and those of the programs."""
    all_of_them = sorted(psutil.Process().cpu_affinity() or [])
    middle = len(all_of_them) // 2
    return all_of_them[:middle], all_of_them[middle:]
