"""What a client write costs: CPU of this process for each request, create and status update of a typed object against a real API server.

    python -m benchmarks.client [--objects 2000] [--parallel 20] [--kubeconfig PATH] [--profile]

Without --kubeconfig it starts the real control plane of `tests/controlplane` (build it first) or what KUBEBUILDER_ASSETS names.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import time
from collections.abc import Awaitable, Callable

from ctrlruntime.api import apps, core, meta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client.api import APIClient
from ctrlruntime.rest.config import get_config
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import Environment


def deployment(name: str) -> apps.Deployment:
    labels = {"app": name, "app.kubernetes.io/managed-by": "benchmark"}
    container = core.Container(
        name="main",
        image="memcached:1.6",
        command=["memcached", "-m=64"],
        ports=[core.ContainerPort(container_port=11211)],
    )
    return apps.Deployment(
        metadata=meta.ObjectMeta(name=name, namespace="default", labels=labels),
        spec=apps.DeploymentSpec(
            replicas=3,
            selector=meta.LabelSelector(match_labels=labels),
            template=core.PodTemplateSpec(
                metadata=meta.ObjectMeta(labels=labels), spec=core.PodSpec(containers=[container])
            ),
        ),
    )


async def measured(
    name: str, parallel: int, count: int, do: Callable[[int], Awaitable[object]], *, requests: int = 1
) -> None:
    pending = iter(range(count))

    async def worker() -> None:
        for i in pending:
            await do(i)

    cpu, wall = time.process_time(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(parallel):
            group.create_task(worker())
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    total = count * requests
    print(f"{name:<16} {total / wall:8.0f} requests/s   {cpu / total * 1e6:7.0f} us CPU a request")


async def workload(path: str, count: int, parallel: int) -> None:
    transport = Transport(get_config(path))
    mapper = RESTMapper(transport.fetch)
    client = APIClient(transport, mapper, Scheme())

    async def write(i: int) -> None:
        """What a reconcile does; nothing is kept, as garbage collection would be measured too."""
        obj = await client.create(deployment(f"web-{i}"), field_owner="benchmark")
        obj.status.replicas = 3
        obj.status.observed_generation = obj.metadata.generation
        await client.status.update(obj, field_owner="benchmark")

    async def read(i: int) -> None:
        await client.get(apps.Deployment, NamespacedName("default", f"web-{i}"))

    async def delete(i: int) -> None:
        await client.delete(deployment(f"web-{i}"))

    async with asyncio.TaskGroup() as group:
        for i in range(parallel):  # connections, models and discovery are made before the clock runs
            group.create_task(write(-i - 1))
    await measured("create + status", parallel, count, write, requests=2)
    await measured("get", parallel, count, read)
    await measured("delete", parallel, count, delete)
    await transport.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="What a client write costs in CPU of this process.")
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--parallel", type=int, default=20)
    parser.add_argument("--kubeconfig")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    options = parser.parse_args()

    def run(path: str) -> None:
        profile = cProfile.Profile()
        if options.profile:
            profile.enable()
        asyncio.run(workload(path, options.objects, options.parallel))
        if options.profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(45)

    if options.kubeconfig:
        run(options.kubeconfig)
        return
    with Environment(backend="real", controller_manager=False) as environment:
        run(str(environment.kubeconfig_path))


if __name__ == "__main__":
    main()
