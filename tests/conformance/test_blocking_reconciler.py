"""A reconciler that blocks the event loop for longer than the renew deadline loses neither lease, nor probe, nor watch."""

from __future__ import annotations

import asyncio
import time
import urllib.request

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta

BLOCKED = 6.0
"""Longer than the renew deadline, which a renewal must meet on a loaded machine."""


def config_map(namespace, name):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


def block(address):
    """Block the calling thread and look at the probes meanwhile; return the statuses."""
    statuses = set()
    end = time.monotonic() + BLOCKED
    while time.monotonic() < end:
        for path in ("/healthz", "/readyz"):
            with urllib.request.urlopen(f"http://127.0.0.1:{address.port}{path}") as answer:
                statuses.add(answer.status)
        time.sleep(0.1)
    return statuses


async def test_blocking_costs_no_lease_no_probe_and_no_watch(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    election = ctrl.LeaderElection(
        "blocking", namespace=namespace, identity="me", lease_duration=6.0, renew_deadline=5.0, retry_period=1.0
    )
    mgr = ctrl.new_manager(
        config,
        leader_election=election,
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        metrics_bind_address="0",
        health_probe_bind_address="127.0.0.1:0",
    )
    statuses, seen = set(), asyncio.Queue()

    async def reconcile(request):
        if request.name == "blocks":
            statuses.update(block(mgr.health_probe_address))
        seen.put_nowait(request.name)

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    async with ctrl.running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        await mgr.client.create(config_map(namespace, "blocks"))
        while await asyncio.wait_for(seen.get(), LONGEST_WAIT) != "blocks":
            pass
        lists = mgr.metrics.cache("ConfigMap.v1").relists
        await mgr.client.create(config_map(namespace, "after"))
        while await asyncio.wait_for(seen.get(), LONGEST_WAIT) != "after":
            pass
        lease = await mgr.api_reader.get(coordination.Lease, ctrl.NamespacedName(namespace, "blocking"))
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("me", 0)
        assert mgr.metrics.cache("ConfigMap.v1").relists == lists
        assert mgr.metrics.loop.blocked >= 1

    assert statuses == {200}
