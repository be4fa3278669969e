"""An operator that writes its name into one ConfigMap as fast as it may: two of it show whether there are ever two writers.

    python tests/faults/operators/writer.py --kubeconfig PATH --namespace NS --identity A [--mode plain|stubborn|blocking|thread]

It writes by merge patches without a resourceVersion: no conflict at the server hides a write that should not have been begun. On standard
output it says what happens to it and when (CLOCK_MONOTONIC, which all processes of a machine share).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Sequence

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import CtrlError
from ctrlruntime.workqueue import PriorityQueue

LEASE = "writer"
WRITTEN = "written"
PAUSE = 0.01
"""Seconds between two writes."""
BLOCKED_FOR = 3.0
"""Seconds the mode `blocking` stops the loop: longer than the scaled lease."""


def say(what: str) -> None:
    sys.stdout.write(f"{what} {time.monotonic():.6f}\n")
    sys.stdout.flush()


def scaled(election: ctrl.LeaderElection, lease: float, renew: float, retry: float) -> ctrl.LeaderElection:
    """Return the options with times shorter than users may choose, so that a test takes seconds and not minutes."""
    for name, seconds in (("lease_duration", lease), ("renew_deadline", renew), ("retry_period", retry)):
        object.__setattr__(election, name, seconds)
    return election


class Writer:
    def __init__(self, client: ctrl.Client, identity: str, namespace: str, mode: str) -> None:
        self.client = client
        self.identity = identity
        self.key = core.ConfigMap(metadata=meta.ObjectMeta(name=WRITTEN, namespace=namespace))
        self.counter = 0
        self.reconcile: Callable[..., object] = {
            "plain": self._plain,
            "stubborn": self._stubborn,
            "blocking": self._blocking,
            "thread": self._thread,
        }[mode]

    def patch(self) -> ctrl.client.Patch:
        self.counter += 1
        return ctrl.merge_patch({"data": {"writer": self.identity, "counter": str(self.counter)}})

    async def _plain(self, request: ctrl.Request) -> ctrl.Result | None:
        while True:
            await self.client.patch(self.key.model_copy(deep=True), self.patch())
            await asyncio.sleep(PAUSE)

    async def _stubborn(self, request: ctrl.Request) -> ctrl.Result | None:
        """Goes on whatever happens: cancellation, refusals, lost connections."""
        while True:
            with contextlib.suppress(asyncio.CancelledError, CtrlError, TimeoutError):
                await self.client.patch(self.key.model_copy(deep=True), self.patch())
                await asyncio.sleep(PAUSE)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(PAUSE)

    async def _blocking(self, request: ctrl.Request) -> ctrl.Result | None:
        """Blocks the loop again and again, and writes right after it as if nothing had happened."""
        while True:
            for _ in range(60):
                await self.client.patch(self.key.model_copy(deep=True), self.patch())
                await asyncio.sleep(PAUSE)
            say("blocked")
            time.sleep(BLOCKED_FOR)  # noqa: ASYNC251 - the fault this mode is for
            say("unblocked")

    def _thread(self, request: ctrl.Request) -> ctrl.Result | None:
        """A plain function, which nothing can cancel."""
        while True:
            with contextlib.suppress(CtrlError, TimeoutError):
                ctrl.blocking(self.client.patch(self.key.model_copy(deep=True), self.patch()))
            time.sleep(PAUSE)


class ListResult:
    """Looks at every object there is, as an operator does that begins to lead."""

    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.seen: set[str] = set()

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        if not self.seen:
            say("first-reconcile")
        await self.client.get_or_none(core.Secret, request)
        self.seen.add(request.name)
        if len(self.seen) % 100 == 0:
            say(f"reconciled-{len(self.seen)}")
        return None


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--mode", default="plain")
    parser.add_argument("--times", type=float, nargs=3, metavar=("LEASE", "RENEW", "RETRY"))
    parser.add_argument("--grace", type=float, default=0.5)
    flags = ctrl.parse_flags(argv, parser=parser)
    args = flags.args
    election = ctrl.LeaderElection(LEASE, namespace=args.namespace, identity=args.identity)
    if args.times:
        election = scaled(election, *args.times)
    mgr = ctrl.new_manager(
        flags.get_config(),
        cache=ctrl.CacheOptions(namespaces=[args.namespace]),
        leader_election=election,
        metrics_bind_address="0",
        graceful_shutdown_timeout=args.grace,
    )

    async def one(queue: PriorityQueue) -> None:
        queue.add(ctrl.Request(args.namespace, WRITTEN))

    writer = Writer(mgr.client, args.identity, args.namespace, args.mode)
    ctrl.new_controller_managed_by(mgr).named("writer").watches_raw_source(ctrl.source.Func(one)).complete(
        writer.reconcile
    )
    ctrl.new_controller_managed_by(mgr).named("items").for_(core.Secret).complete(ListResult(mgr.client))

    async def synced() -> None:
        await mgr.client.list(core.Secret, limit=1)
        say("synced")

    class Synced:
        needs_leader_election = False
        start = staticmethod(synced)

    mgr.add(Synced())
    say("begin")
    ctrl.run(mgr)


if __name__ == "__main__":
    main()
