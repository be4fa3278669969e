"""How many connections and requests a client allows itself; on both servers."""

from __future__ import annotations

import asyncio
import dataclasses

import psutil
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.leases.connection import LeaseConnection


def connections(host: str) -> int:
    port = int(host.rpartition(":")[2])
    found = psutil.Process().net_connections("tcp")
    return sum(
        each.status == psutil.CONN_ESTABLISHED and bool(each.raddr) and each.raddr.port == port for each in found
    )


async def test_many_writes_at_once_share_a_few_connections_beside_the_watches(server, namespace):
    config = dataclasses.replace(ctrl.get_config(str(server.kubeconfig_path)), max_connections=5)
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        kinds = (core.ConfigMap, core.Secret, core.Service, core.Pod, core.ServiceAccount, core.Endpoints)
        for kind in kinds:  # more watches than the bound
            await mgr.client.list(kind)
        before = connections(config.host)
        most = 0

        async def create(i: int) -> None:
            nonlocal most
            await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=f"c{i}", namespace=namespace)))
            most = max(most, connections(config.host))

        await asyncio.gather(*(create(i) for i in range(100)))
        assert most <= before + 5
        assert len(await mgr.client.list(core.ConfigMap, namespace=namespace)) >= 100
    text = mgr.metrics.render()[0].decode()
    assert 'ctrlruntime_rest_wait_seconds_total{host="' in text


async def test_elections_are_not_limited(server, namespace):
    config = dataclasses.replace(ctrl.get_config(str(server.kubeconfig_path)), qps=0.001, burst=20)
    cluster = ctrl.Cluster(config)
    leases = LeaseConnection(cluster.transport, scheme=cluster.scheme)
    lease = await leases.client.create(
        ctrl.Unstructured.from_dict(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "limited", "namespace": namespace},
                "spec": {"leaseTransitions": 0},
            }
        )
    )
    for _ in range(40):
        await leases.client.update(lease)
    await leases.close()
    await cluster.close()
