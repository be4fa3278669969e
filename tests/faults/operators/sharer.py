"""A replica of an operator whose objects are shared. Each of its writes says which process it is from, and in which term it owned the object.

    python tests/faults/operators/sharer.py --kubeconfig PATH --namespace NS --identity POD [--times LEASE RENEW PERIOD] [--fleet]

The roots are ConfigMaps with the label `role=root`. A reconcile writes the value of its root into annotations of the root and of its child, a
Secret, if they do not have it, or have it from another process. The leader does the same with the ConfigMap `leader`, again and again. All writes are
merge patches without a resourceVersion: no conflict at the server hides a write that should not have been sent.

With --fleet the processes divide clusters: each namespace with the label `soak=NS` is one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.api.object import Object
from ctrlruntime.errors import AlreadyExists, CtrlError, NotFound
from ctrlruntime.fleet import Namespaces
from ctrlruntime.rest.fence import Grant, current_actor
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

ID: Final = "soak"
SLOTS: Final = 64
ROOT: Final = {"role": "root"}
CLUSTER: Final = "soak"
"""The label of the namespaces that are clusters."""

LEADER: Final = "leader"
CHILD: Final = "-child"

WRITER: Final = "example.com/writer"
TERM: Final = "example.com/term"
VALUE: Final = "example.com/value"
"""On a root: what its reconcile has to write."""

SEEN: Final = "example.com/seen"
STUBBORN: Final = "example.com/stubborn"
"""On a root: its reconcile writes for some seconds more, and ignores cancellation and errors."""

WORKERS: Final = 64
"""More than there are stubborn roots at a time. Each of them holds a worker until it is changed, because its own writes wake it up."""

STUBBORN_WRITES: Final = 30
PAUSE: Final = 0.1


class Sharer:
    def __init__(self, client_of: Callable[[str], ctrl.Client], identity: str, namespace: str) -> None:
        self.client_of = client_of
        self.identity = identity
        self.namespace = namespace
        self._terms: dict[Grant | None, int] = {}
        self._numbers = count()

    def stamp(self, seen: str) -> dict[str, Any]:
        """Return the metadata of a write. The term is a number that grows with each slot that this process gets."""
        actor = current_actor()
        grant = None if actor is None else actor.grant
        if grant is not None and grant.whole is not None:  # a cluster has a new one each time that it responds again
            grant = grant.whole
        term = self._terms.setdefault(grant, len(self._terms))
        return {"annotations": {WRITER: self.identity, TERM: f"{term} {next(self._numbers)}", SEEN: seen}}

    async def write(self, client: ctrl.Client, obj: Object, seen: str) -> None:
        await client.patch(obj, ctrl.merge_patch({"metadata": self.stamp(seen)}))

    async def reconcile(self, request: ctrl.Request) -> None:
        client = self.client_of(request.cluster)
        root = await client.get_or_none(core.ConfigMap, request)
        if root is None or root.metadata.labels.get("role") != ROOT["role"]:
            return
        value = root.metadata.annotations.get(VALUE, "")
        with contextlib.suppress(NotFound):  # the root was deleted meanwhile, and its child with it
            await self._write_child(client, root, value)
            if not self._has(root, value):
                await self.write(client, root.deep_copy(), value)
        if STUBBORN in root.metadata.annotations:
            await self._insist(client, root, value)

    async def _write_child(self, client: ctrl.Client, root: core.ConfigMap, value: str) -> None:
        key = ctrl.NamespacedName(root.metadata.namespace, root.metadata.name + CHILD)
        child = await client.get_or_none(core.Secret, key)
        if child is not None:
            if not self._has(child, value):
                await self.write(client, child, value)
            return
        child = core.Secret(metadata=meta.ObjectMeta(name=key.name, namespace=key.namespace, **self.stamp(value)))
        ctrl.set_controller_reference(root, child)
        with contextlib.suppress(
            AlreadyExists
        ):  # of a root of the same name before; the next reconcile finds it, or that it is gone
            await client.create(child)

    def _has(self, obj: Object, value: str) -> bool:
        annotations = obj.metadata.annotations
        return annotations.get(SEEN) == value and annotations.get(WRITER) == self.identity

    async def _insist(self, client: ctrl.Client, root: core.ConfigMap, value: str) -> None:
        for _ in range(STUBBORN_WRITES):
            with contextlib.suppress(asyncio.CancelledError, CtrlError, TimeoutError):
                await self.write(client, root.deep_copy(), value)
                await asyncio.sleep(PAUSE)

    async def lead(self) -> None:
        key = core.ConfigMap(metadata=meta.ObjectMeta(name=LEADER, namespace=self.namespace))
        while True:
            with contextlib.suppress(CtrlError, TimeoutError):
                await self.write(self.client_of(""), key.deep_copy(), "")
            await asyncio.sleep(PAUSE)


def scaled(sharding: ctrl.Sharding, lease: float, renew: float, period: float) -> ctrl.Sharding:
    """Return the options with times shorter than users may choose, so that a test takes seconds and not minutes."""
    for name, seconds in (("lease_duration", lease), ("renew_deadline", renew), ("renew_period", period)):
        object.__setattr__(sharding, name, seconds)
    return sharding


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--identity", required=True)
    parser.add_argument("--fleet", action="store_true")
    parser.add_argument("--times", type=float, nargs=3, metavar=("LEASE", "RENEW", "PERIOD"))
    flags = ctrl.parse_flags(argv, parser=parser)
    args = flags.args
    sharding = ctrl.Sharding(ID, namespace=args.namespace, identity=args.identity, slots=SLOTS, strict=True)
    if args.times:
        sharding = scaled(sharding, *args.times)
    mgr = ctrl.new_manager(
        flags.get_config(),
        cache=ctrl.CacheOptions(namespaces=[args.namespace]),
        sharding=sharding,
        fleet=ctrl.Fleet(Namespaces(labels={CLUSTER: args.namespace}), sharded=True) if args.fleet else None,
        metrics_bind_address="0",
    )
    sharer = Sharer(mgr.fleet.client, args.identity, args.namespace)
    roots = [lambda event: (event.meta.labels or {}).get("role") == ROOT["role"]]
    (
        ctrl.new_controller_managed_by(mgr)
        .for_(core.ConfigMap, predicates=roots, on="fleet" if args.fleet else "hub")
        .owns(core.Secret)
        .with_options(
            sharded=not args.fleet,
            max_concurrent_reconciles=WORKERS,
            max_concurrent_total=WORKERS,
            rate_limiter=ItemExponentialFailureRateLimiter(0.005, 5.0),
        )
        .complete(sharer)
    )
    mgr.add(sharer.lead)
    ctrl.run(mgr)


if __name__ == "__main__":
    main()
