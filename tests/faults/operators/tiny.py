"""A small operator for tests of its end: one child for each parent, leader election, probes and metrics as a Deployment would ask for.

python -X dev -W error tests/faults/operators/tiny.py --kubeconfig PATH --namespace NS --identity NAME
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

import ctrlruntime as ctrl
from ctrlruntime.api import core

PARENT = {"example.com/role": "parent"}
CHILD = {"example.com/role": "child"}


class Tiny:
    def __init__(self, client: ctrl.Client, recorder: ctrl.EventRecorder) -> None:
        self.client = client
        self.recorder = recorder

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        parent = await self.client.get_or_none(core.ConfigMap, request)
        if parent is None or parent.metadata.labels.get("example.com/role") != "parent":
            return None
        child = ctrl.NamespacedName(request.namespace, f"{request.name}-child")

        def shape(obj: core.ConfigMap) -> None:
            obj.metadata.labels.update(CHILD)
            obj.data = dict(parent.data)
            ctrl.set_controller_reference(parent, obj)

        _, result = await ctrl.create_or_update(self.client, core.ConfigMap, child, shape)
        if result is not ctrl.OperationResult.UNCHANGED:
            self.recorder.event(parent, reason="Shaped", action="Shape", note=result.value)
        # Changes the parent for ever: there is always work under way.
        parent.data["round"] = str(int(parent.data.get("round", "0")) + 1)
        await self.client.update(parent)
        return None


async def _ask(queue: ctrl.source.Queue) -> None:
    queue.add(ctrl.Request("", "hanging"))


async def _hang(_request: ctrl.Request) -> None:
    sys.stderr.write("hanging\n")
    await asyncio.Event().wait()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--identity", default="tiny")
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--hang", action="store_true", help="have a reconcile under way that never ends by itself")
    parser.add_argument(
        "--lease", type=float, default=15.0, help="seconds of the lease; the leader renews for two thirds of it"
    )
    flags = ctrl.parse_flags(argv, parser=parser)
    args = flags.args
    election = ctrl.LeaderElection(
        "tiny",
        namespace=args.namespace,
        identity=args.identity,
        lease_duration=args.lease,
        renew_deadline=args.lease / 1.5,
        retry_period=args.lease / 7.5,
    )
    mgr = ctrl.new_manager(
        flags.get_config(),
        cache=ctrl.CacheOptions(namespaces=[args.namespace]),
        leader_election=election,
        metrics_bind_address="127.0.0.1:0",
        health_probe_bind_address="127.0.0.1:0",
        graceful_shutdown_timeout=args.grace,
    )
    mgr.add_readyz_check("ping", ctrl.healthz.ping)
    tiny = Tiny(mgr.client, mgr.event_recorder("tiny"))
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).owns(core.ConfigMap).with_options(
        max_concurrent_reconciles=4
    ).complete(tiny)
    if args.hang:
        ctrl.new_controller_managed_by(mgr).named("hanging").watches_raw_source(ctrl.source.Func(_ask)).complete(_hang)
    sys.stderr.write("begin\n")
    ctrl.run(mgr)


if __name__ == "__main__":
    main()
