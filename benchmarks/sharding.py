"""An operator whose replicas share the objects: memory, throughput, and what the Leases cost.

    python -m benchmarks.sharding [--objects 30000] [--replicas 1,3,10] [--only memory|throughput|keep|leases] [--backend embedded|real]

| row | how it is measured |
|---|---|
| memory | resident memory of each replica once all objects are cached, after a garbage collection; base: a replica without objects |
| throughput | reconciles a second of all replicas, while all objects change: each waits 0.1 s for a slow system, 10 at once in a replica |
| keep | microseconds to decide that an object of another replica is not cached: one that the controller reconciles, and a child |
| Leases | writes of Leases a second, and lists of Leases a second, as the API server counts them, while nothing happens |

The replicas are processes of this machine, so with more of them than processors the throughput of reconciles that use a processor would not
grow. Reconciles that wait show what sharding itself allows.

Bars: memory of each of N replicas at most the base and 1.15/N of the rest; five replicas have 3.2 times the throughput of one; `keep`
takes at most 3 µs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psutil

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.api.metadata import Metadata, OwnerRecord
from ctrlruntime.cache.part import Rule
from ctrlruntime.handler import enqueue_request_for_owner, owners_of
from ctrlruntime.ownership.parts import Children, Roots
from ctrlruntime.ownership.shards import KeyShard, Shards, UidShard, key_of
from ctrlruntime.ownership.state import SlotOwner
from ctrlruntime.testing import Environment
from ctrlruntime.testing.faults import FaultProxy, Match

_ID: Final = "bench"
_MAPS: Final = "/api/v1/namespaces/{}/configmaps"
_WAIT: Final = 0.1
_AT_ONCE: Final = 10
_BAR: Final = 1.15
_LIMIT: Final = 600.0
"""Seconds that a step may take."""


# --- one replica -----------------------------------------------------------------------------------------------------


class Replica:
    """Runs as a process of its own. On SIGUSR1 it prints a line with its numbers."""

    def __init__(self, namespace: str, wait: float) -> None:
        self.namespace = namespace
        self.wait = wait
        self.reconciles = 0

    async def reconcile(self, request: ctrl.Request) -> None:
        if self.wait:
            await asyncio.sleep(self.wait)
        self.reconciles += 1

    async def tell(self, mgr: ctrl.Manager) -> None:
        asked = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, asked.set)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            await asked.wait()
            asked.clear()
            gc.collect()
            text = mgr.metrics.render("")[0].decode()
            numbers = {
                "objects": _metric(text, "ctrlruntime_cache_objects"),
                "queued": _metric(text, "workqueue_depth"),
                "resident": psutil.Process().memory_info().rss / 1e6,
                "reconciles": self.reconciles,
            }
            sys.stdout.write(json.dumps(numbers) + "\n")
            sys.stdout.flush()

    def run(self, arguments: Sequence[str]) -> None:
        flags = ctrl.parse_flags(arguments)
        mgr = ctrl.new_manager(
            flags.get_config(),
            cache=ctrl.CacheOptions(namespaces=[self.namespace]),
            sharding=ctrl.Sharding(_ID, namespace=self.namespace),
            metrics_bind_address="0",
        )
        (
            ctrl.new_controller_managed_by(mgr)
            .for_(core.ConfigMap)
            .with_options(sharded=True, max_concurrent_reconciles=_AT_ONCE)
            .complete(self)
        )

        async def tell() -> None:
            await self.tell(mgr)

        class Everywhere:
            needs_leader_election = False
            start = staticmethod(tell)

        mgr.add(Everywhere())
        ctrl.run(mgr)


def _metric(text: str, name: str) -> int:
    return int(sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name}{{")))


# --- all of them -----------------------------------------------------------------------------------------------------


class Process:
    """A replica, seen from here."""

    def __init__(self, kubeconfig: str, namespace: str, wait: float) -> None:
        command = [sys.executable, "-m", "benchmarks.sharding", "--replica", namespace, str(wait), "--kubeconfig"]
        self._process = subprocess.Popen(
            [*command, kubeconfig], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def wait_ready(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "a replica ended"

    def ask(self) -> dict[str, float]:
        self._process.send_signal(signal.SIGUSR1)
        assert self._process.stdout is not None
        return dict(json.loads(self._process.stdout.readline()))

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> None:
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def replicas(kubeconfig: str, namespace: str, count: int, wait: float = 0.0) -> Iterator[list[Process]]:
    """Start so many replicas at once. The first ring is made a Lease later, so each of them gets its share with the first plan."""
    started = [Process(kubeconfig, namespace, wait) for _ in range(count)]
    try:
        for process in started:
            process.wait_ready()
        yield started
    finally:
        for process in started:
            process.stop()
        for process in started:
            process.wait()


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT
    while not check():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not so within {_LIMIT:g} s")
        time.sleep(1)


class Objects:
    """The ConfigMaps of a namespace."""

    def __init__(self, server: Environment, count: int) -> None:
        self.server = server
        self.namespace = server.create_namespace("sharding")
        self._count = count
        self._send(self._create)
        found = server.connection.request("GET", _MAPS.format(self.namespace) + "?limit=1")
        self.count = len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)
        """With those that every namespace has."""

    def _send(self, one: Callable[[ctrl.Client, int], Any]) -> None:
        async def send() -> None:
            cluster = ctrl.Cluster(ctrl.get_config(str(self.server.kubeconfig_path)))
            client, numbers = cluster.unfenced_client(), iter(range(self._count))

            async def worker() -> None:
                for number in numbers:
                    await one(client, number)

            await asyncio.gather(*(worker() for _ in range(20)))
            await cluster.close()

        asyncio.run(send())

    def _object(self, number: int) -> core.ConfigMap:
        metadata = meta.ObjectMeta(name=f"map-{number:05d}", namespace=self.namespace)
        return core.ConfigMap(metadata=metadata, data={"text": "x" * 1000})

    async def _create(self, client: ctrl.Client, number: int) -> None:
        await client.create(self._object(number))

    def change(self) -> None:
        async def change(client: ctrl.Client, number: int) -> None:
            await client.patch(self._object(number), ctrl.merge_patch({"data": {"changed": str(time.monotonic_ns())}}))

        self._send(change)


def settled(running: list[Process], count: int) -> list[dict[str, float]]:
    """Return the numbers of the replicas once they have cached and reconciled so many objects."""
    found: list[dict[str, float]] = []

    def is_settled() -> bool:
        found[:] = [process.ask() for process in running]
        return sum(each["objects"] for each in found) == count and not any(each["queued"] for each in found)

    eventually(is_settled)
    return found


def memory(server: Environment, objects: int, counts: Iterable[int]) -> None:
    """Print the memory of each replica."""
    print(f"memory of each replica, MB, {objects} objects of 1 KB")
    base, alone = 0.0, 0.0
    for count, size in [(1, 0), *((count, objects) for count in counts)]:
        made = Objects(server, size)
        with replicas(str(server.kubeconfig_path), made.namespace, count) as running:
            found = settled(running, made.count)
            sizes = [each["resident"] for each in found]
        server.delete_namespace(made.namespace)
        if not size:
            base = sizes[0]
            print(f"  base, without objects: {base:.0f}", flush=True)
            continue
        alone = alone or max(sizes)
        bar = base + _BAR / count * (alone - base)
        shown = f"mean {statistics.fmean(sizes):.0f}, max {max(sizes):.0f}"
        print(f"  {count:2} replicas: {shown}, bar {bar:.0f}: {'held' if max(sizes) <= bar else 'missed'}", flush=True)


def throughput(server: Environment, objects: int, counts: Iterable[int]) -> None:
    """Print the reconciles a second of all replicas."""
    print(f"reconciles a second that wait {_WAIT:g} s, {_AT_ONCE} at once in a replica")
    first = 0.0
    for count in counts:
        made = Objects(server, objects)
        with replicas(str(server.kubeconfig_path), made.namespace, count, _WAIT) as running:
            settled(running, made.count)
            made.change()
            before, began = _done(running), time.monotonic()
            time.sleep(min(20.0, objects * _WAIT / _AT_ONCE / count / 2))
            rate = (_done(running) - before) / (time.monotonic() - began)
        server.delete_namespace(made.namespace)
        first = first or rate
        print(f"  {count:2} replicas: {rate:6.0f}, {rate / first:.2f} times that of one", flush=True)


def _done(running: list[Process]) -> float:
    return sum(process.ask()["reconciles"] for process in running)


class _NoMember:
    """A member that owns nothing."""

    def warmed(self, slots: Sequence[int]) -> None: ...

    def caught_up(self, slots: Sequence[tuple[int, int]]) -> None: ...

    def drained(self, slots: Sequence[tuple[int, int]]) -> None: ...

    def deadline(self, slot: int, grant: int) -> float | None: ...

    def owner(self, slot: int) -> SlotOwner:
        raise NotImplementedError


def keep() -> None:
    """Print the time that an event of another replica's object costs."""

    async def nothing(*_: object) -> None: ...

    def nothing_now() -> None: ...

    shards = Shards(
        256, _NoMember(), fill=nothing, free=nothing, catch_up=lambda _slots: None, lead=nothing_now, stop_leading=nothing, lost=nothing_now
    )  # fmt: skip
    by_name = KeyShard(shards, key_of("name", "", "ConfigMap"))
    by_uid = UidShard(shards, lambda _: None)
    owners = owners_of(enqueue_request_for_owner(core.ConfigMap, only_controller_owner=True))
    assert owners is not None
    uids = [str(uuid.UUID(int=number << 64)) for number in range(20_000)]
    found = [
        Metadata(
            name=f"map-{number:05}",
            namespace=f"ns-{number % 20}",
            uid=uid,
            owner_references=(OwnerRecord(api_version="v1", kind="ConfigMap", name="a", uid=uid, controller=True),),
        )
        for number, uid in enumerate(uids)
    ]
    rules: dict[str, Rule] = {
        "reconciled": Roots(by_name, "ConfigMap"),
        "child": Children(by_name.keeps, owners.owners),
        "reconciled, by uid": Roots(by_uid, "ConfigMap"),
        "child, by uid": Children(by_uid.keeps, owners.owner_uids),
    }
    for name, rule in rules.items():
        times: list[float] = []
        for _ in range(5):
            began = time.process_time()
            kept = sum(rule.keeps(meta) for meta in found)
            times.append((time.process_time() - began) / len(found) * 1e6)
            assert not kept
        print(f"keep, {name}: {min(times):.2f} µs: {'held' if min(times) <= 3 else 'missed'}", flush=True)


def leases(server: Environment, counts: Iterable[int]) -> None:
    """Print the requests for Leases a second of all replicas."""
    print("requests for Leases a second, of all replicas, without moves")
    options = ctrl.Sharding(_ID, namespace="default")
    for count in counts:
        made = Objects(server, 0)
        with (
            FaultProxy(server) as proxy,
            replicas(str(proxy.kubeconfig_path), made.namespace, count) as running,
        ):
            settled(running, made.count)
            time.sleep(20)  # until no slot moves any more
            proxy.forget()
            time.sleep(40)
            found = {
                verb: proxy.count(Match(verb=verb, resource="leases")) / 40
                for verb in ("create", "update", "list", "get")
            }
        server.delete_namespace(made.namespace)
        writes = found["create"] + found["update"]
        print(
            f"  {count:2} replicas: {writes:.2f} writes, {found['list']:.2f} lists, {found['get']:.2f} gets; "
            f"one renewal each {options.renew_period:g} s would be {count / options.renew_period:.2f} writes",
            flush=True,
        )


def main() -> int:
    if sys.argv[1:2] == ["--replica"]:
        Replica(sys.argv[2], float(sys.argv[3])).run(sys.argv[4:])
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sharding", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--objects", type=int, default=30_000)
    parser.add_argument("--replicas", default="1,3,10")
    parser.add_argument("--only", choices=("memory", "throughput", "keep", "leases"))
    parser.add_argument("--backend", choices=("embedded", "real"), default="embedded")
    options = parser.parse_args()
    if options.only in {None, "keep"}:
        keep()
        if options.only:
            return 0
    counts = [int(text) for text in options.replicas.split(",")]
    with Environment(backend=options.backend) as server:
        if options.only in {None, "memory"}:
            memory(server, options.objects, counts)
        if options.only in {None, "throughput"}:
            throughput(server, min(options.objects, 5000), range(1, 6))
        if options.only in {None, "leases"}:
            leases(server, counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
