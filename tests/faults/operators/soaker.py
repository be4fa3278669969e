"""The operator of the soak: it copies each parent into a child, for hours. SIGUSR1 makes it say how it is, as one JSON line.

The line has the versions its cache holds, its tasks by name, threads, sockets, and resident bytes after a garbage collection.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import re
import resource
import signal
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

ROLE = "example.com/role"


class Copy:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.reconciles = 0

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        self.reconciles += 1
        parent = await self.client.get_or_none(core.ConfigMap, request)
        if parent is None or parent.metadata.labels.get(ROLE) != "parent":
            return None

        def shape(child: core.ConfigMap) -> None:
            child.metadata.labels[ROLE] = "child"
            child.data = dict(parent.data)
            ctrl.set_controller_reference(parent, child)

        key = ctrl.NamespacedName(request.namespace, f"{request.name}-child")
        await ctrl.create_or_update(self.client, core.ConfigMap, key, shape)
        return None


def tasks() -> dict[str, int]:
    """Return how many tasks there are, by what they run; numbers in names do not count."""
    names: Counter[str] = Counter()
    for task in asyncio.all_tasks():
        code = getattr(task.get_coro(), "__qualname__", repr(task.get_coro()))
        names[code] += 1
    return dict(names)


def waits() -> dict[str, int]:
    """Return where tasks wait: the innermost line of this package in each."""
    lines: Counter[str] = Counter()
    for task in asyncio.all_tasks():
        awaited, where = task.get_coro(), ""
        while awaited is not None and not isinstance(awaited, asyncio.Future):
            frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
            if frame is not None and "ctrlruntime" in frame.f_code.co_filename:
                where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
        lines[where] += 1
    return dict(lines)


def sockets() -> int:
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            count += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue
    return count


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def state(mgr: ctrl.Manager, copy: Copy, namespace: str) -> dict[str, Any]:
    found = await mgr.cache.list(core.ConfigMap, namespace=namespace)
    versions = {meta.name: meta.resource_version for meta in found.metadata}
    gc.collect()
    return {
        "versions": versions,
        "tasks": tasks(),
        "waits": waits(),
        "threads": sorted(re.sub(r"\d+", "N", thread.name) for thread in threading.enumerate()),
        "sockets": sockets(),
        "resident": resident(),
        "reconciles": copy.reconciles,
    }


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--identity", default="soaker")
    parser.add_argument("--watch", type=float, nargs=3, metavar=("SHORTEST", "LONGEST", "GRACE"))
    flags = ctrl.parse_flags(argv, parser=parser)
    args = flags.args
    watch = (
        ctrl.cache.WatchOptions(timeout=(args.watch[0], args.watch[1]), timeout_grace=args.watch[2])
        if args.watch
        else None
    )
    mgr = ctrl.new_manager(
        flags.get_config(),
        cache=ctrl.CacheOptions(namespaces=[args.namespace], watch=watch or ctrl.cache.WatchOptions()),
        leader_election=ctrl.LeaderElection(
            "soak", namespace=args.namespace, identity=args.identity, lease_duration=60.0, renew_deadline=45.0
        ),
        metrics_bind_address="127.0.0.1:0",
        health_probe_bind_address="127.0.0.1:0",
    )
    copy = Copy(mgr.client)
    (
        ctrl.new_controller_managed_by(mgr)
        .for_(core.ConfigMap)
        .owns(core.ConfigMap)
        .with_options(max_concurrent_reconciles=8, rate_limiter=ItemExponentialFailureRateLimiter(0.005, 5.0))
        .complete(copy)
    )

    async def report() -> None:
        asked = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, asked.set)
        while True:
            await asked.wait()
            asked.clear()
            sys.stdout.write(json.dumps(await state(mgr, copy, args.namespace)) + "\n")
            sys.stdout.flush()

    class Report:
        needs_leader_election = False
        start = staticmethod(report)

    mgr.add(Report())
    ctrl.run(mgr)


if __name__ == "__main__":
    main()
