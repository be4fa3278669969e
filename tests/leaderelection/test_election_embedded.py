from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.cluster import Cluster
from ctrlruntime.leaderelection import Elector, LeaderElection, LeaseLock
from ctrlruntime.metrics import Metrics
from ctrlruntime.rest.config import get_config
from ctrlruntime.rest.fence import Fence
from ctrlruntime.testing.environment import Environment


@pytest.fixture(scope="module")
def server():
    with Environment(backend="embedded") as environment:
        yield environment


async def test_leadership_passes_on_through_a_lease_of_a_server(server):
    namespace = server.create_namespace()
    options = LeaderElection(id="lock", namespace=namespace, lease_duration=4, renew_deadline=3, retry_period=1)
    cluster = Cluster(get_config(str(server.kubeconfig_path), None), fence=Fence(), metrics=Metrics())
    leads = [asyncio.Event(), asyncio.Event()]
    first, second = (
        Elector(LeaseLock(cluster.unfenced_client(), options), options, on_started=event.set) for event in leads
    )
    tasks = [asyncio.create_task(first.run())]
    try:
        await asyncio.wait_for(leads[0].wait(), LONGEST_WAIT)
        tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(0)
        assert not second.is_leader

        tasks[0].cancel()
        await asyncio.wait_for(leads[1].wait(), LONGEST_WAIT)

        lease = await cluster.unfenced_client().get(Lease, NamespacedName(namespace, "lock"))
        assert lease.spec.holder_identity == second.identity
        assert lease.spec.lease_transitions == 1
        assert not first.is_leader
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await cluster.close()
