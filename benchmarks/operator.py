"""An operator against a real API server: start to synced, start to all reconciled, and end to end.

    python -m benchmarks.operator [--objects 20000] [--end-to-end 2000] [--runs 5] [--backend real|embedded]

Each measurement is a fresh process against the same filled server; printed are the medians and, as JSON, every run. CPU and memory are those
of the process under test only, imports excluded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from examples.memcached.api import Memcached, MemcachedSpec

CRDS = Path(__file__).parent.parent / "examples" / "memcached" / "config" / "crd"
PADDING = {f"bench.example.com/{i}": "x" * 60 for i in range(8)}


def new_object(index: int, namespace: str) -> Memcached:
    """A Memcached of about 1.3 KB as the server returns it."""
    labels = {"app.kubernetes.io/name": "memcached", "tier": f"t{index % 10}"}
    name = f"bench-{index:06d}"
    metadata = meta.ObjectMeta(name=name, namespace=namespace, labels=labels, annotations=PADDING)
    return Memcached(metadata=metadata, spec=MemcachedSpec(size=index % 7))


def usage() -> tuple[float, float]:
    """CPU seconds and resident MB of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return used.ru_utime + used.ru_stime, pages * resource.getpagesize() / 1e6


def new_manager(kubeconfig: str, cache: ctrl.CacheOptions | None = None) -> ctrl.Manager:
    return ctrl.new_manager(
        ctrl.get_config(kubeconfig), scheme=ctrl.Scheme(Memcached), cache=cache, metrics_bind_address="0"
    )


async def fill(kubeconfig: str, objects: int, namespace: str) -> None:
    mgr = new_manager(kubeconfig)
    client = mgr.cluster.unfenced_client()
    await ctrl.install_crds(client, CRDS)
    if namespace != "default":
        await client.create(core.Namespace(metadata=meta.ObjectMeta(name=namespace)))
    numbers = iter(range(objects))

    async def create() -> None:
        for number in numbers:
            await client.create(new_object(number, namespace))

    await asyncio.gather(*(create() for _ in range(20)))
    await mgr.cluster.close()


async def synced(kubeconfig: str, objects: int) -> dict[str, float]:
    mgr = new_manager(kubeconfig)
    task = asyncio.ensure_future(mgr.start())
    await mgr.cache.wait_running()
    cpu, memory = usage()
    started = time.perf_counter()
    found = await mgr.client.list(Memcached)
    wall = time.perf_counter() - started
    cpu_after, memory_after = usage()
    assert len(found) >= objects, len(found)
    mgr.stop()
    await task
    return {"wall": wall, "cpu": cpu_after - cpu, "kib_per_object": (memory_after - memory) * 1e6 / 1024 / len(found)}


class Count:
    """Reads each object, as a reconciler that finds nothing to do."""

    def __init__(self, client: ctrl.Client, wanted: int) -> None:
        self.client = client
        self.wanted = wanted
        self.seen = 0
        self.done = asyncio.Event()

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        await self.client.get(Memcached, request)
        self.seen += 1
        if self.seen >= self.wanted:
            self.done.set()
        return None


async def reconciled(kubeconfig: str, objects: int) -> dict[str, float]:
    mgr = new_manager(kubeconfig)
    count = Count(mgr.client, objects)
    ctrl.new_controller_managed_by(mgr).for_(Memcached).complete(count)
    cpu, memory = usage()
    started = time.perf_counter()
    task = asyncio.ensure_future(mgr.start())
    await count.done.wait()
    wall = time.perf_counter() - started
    cpu_after, memory_after = usage()
    mgr.stop()
    await task
    return {
        "wall": wall,
        "cpu": cpu_after - cpu,
        "rss_mb": memory_after,
        "kib_per_object": (memory_after - memory) * 1e6 / 1024 / objects,
    }


class Children:
    """Creates a ConfigMap for each object and writes its status."""

    def __init__(self, client: ctrl.Client, wanted: int) -> None:
        self.client = client
        self.wanted = wanted
        self.finished = 0
        self.done = asyncio.Event()

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        memcached = await self.client.get(Memcached, request)
        if memcached.status.nodes:
            return None
        child = core.ConfigMap(metadata=meta.ObjectMeta(name=f"{request.name}-child", namespace=request.namespace))
        child.data = {"size": str(memcached.spec.size)}
        ctrl.set_controller_reference(memcached, child)
        await self.client.create(child)
        memcached.status.nodes = ["one"]
        await self.client.status.update(memcached)
        self.finished += 1
        if self.finished >= self.wanted:
            self.done.set()
        return None


async def end_to_end(kubeconfig: str, objects: int, namespace: str) -> dict[str, float]:
    mgr = new_manager(kubeconfig, ctrl.CacheOptions(namespaces=[namespace]))
    children = Children(mgr.client, objects)
    ctrl.new_controller_managed_by(mgr).for_(Memcached).with_options(max_concurrent_reconciles=10).complete(children)
    cpu, _ = usage()
    started = time.perf_counter()
    task = asyncio.ensure_future(mgr.start())
    await children.done.wait()
    wall = time.perf_counter() - started
    cpu_after, _ = usage()
    mgr.stop()
    await task
    return {"wall": wall, "cpu": cpu_after - cpu, "objects_per_second": objects / wall}


WORKLOADS: dict[str, Callable[..., Awaitable[dict[str, float] | None]]] = {
    "fill": fill,
    "synced": synced,
    "reconciled": reconciled,
    "end_to_end": end_to_end,
}


def child(workload: str, *arguments: object) -> dict[str, float]:
    """Run one workload in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.operator", "--child", workload, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_child(workload: str, kubeconfig: str, objects: str, *rest: str) -> None:
    ctrl.log.setup(ctrl.log.Options(log_level="error"))
    print(json.dumps(asyncio.run(WORKLOADS[workload](kubeconfig, int(objects), *rest))))


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        run_child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operator", description=__doc__.partition("\n")[0])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--end-to-end", type=int, default=2_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--backend", choices=["real", "embedded"], default="real")
    options = parser.parse_args()

    from ctrlruntime.testing import Environment

    results: dict[str, list[dict[str, float]]] = {}
    with Environment(backend=options.backend) as environment:
        kubeconfig = str(environment.kubeconfig_path)
        child("fill", kubeconfig, options.objects, "default")
        for _ in range(options.runs):
            for workload in ("synced", "reconciled"):
                results.setdefault(workload, []).append(child(workload, kubeconfig, options.objects))
        for run in range(options.runs):
            namespace = f"e2e-{run}"
            child("fill", kubeconfig, options.end_to_end, namespace)
            results.setdefault("end_to_end", []).append(child("end_to_end", kubeconfig, options.end_to_end, namespace))
    report(results, options)


def report(results: dict[str, list[dict[str, float]]], options: argparse.Namespace) -> None:
    print(
        f"{options.backend} API server, {options.objects} objects, {options.end_to_end} end to end, median of {options.runs} (min to max)"
    )
    for workload, runs in results.items():
        for figure in runs[0]:
            values = [run[figure] for run in runs]
            print(
                f"  {workload:12} {figure:20} {statistics.median(values):10.3f}  ({min(values):.3f} to {max(values):.3f})"
            )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
