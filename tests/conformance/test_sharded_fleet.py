"""Replicas that divide the clusters of a fleet, as managers in one process, on both servers. Each cluster is a namespace."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import ConfigError, ForeignShardError
from ctrlruntime.fleet import ClusterState, Namespaces
from ctrlruntime.testing import eventually

CLUSTERS = 12


class Replica:
    """A manager that writes its name into each ConfigMap `mark` of its clusters."""

    def __init__(self, server, namespace: str, name: str, running: Counter[str]) -> None:
        self.name = name
        self.seen: Counter[str] = Counter()
        self._running = running
        sharding = ctrl.Sharding(
            "fleet", namespace=namespace, identity=name, slots=64, lease_duration=5, renew_deadline=4, renew_period=1
        )
        config = ctrl.get_config(str(server.kubeconfig_path))
        fleet = ctrl.Fleet(Namespaces(labels={"fleet": namespace}), sharded=True)
        self.mgr = ctrl.new_manager(config, metrics_bind_address="0", sharding=sharding, fleet=fleet)
        (
            ctrl.new_controller_managed_by(self.mgr)
            .for_(core.ConfigMap, predicates=[lambda event: event.meta.name == "mark"], on="fleet")
            .complete(self.reconcile)
        )
        self.task = asyncio.ensure_future(self.mgr.start())

    async def reconcile(self, request: ctrl.Request) -> None:
        self._running[request.cluster] += 1
        assert self._running[request.cluster] == 1, f"two replicas reconcile {request}"
        try:
            client = self.mgr.fleet.client(request)
            found = await client.get_or_none(core.ConfigMap, request)
            if found is not None and found.data.get("owner") != self.name:
                found.data["owner"] = self.name
                await client.update(found)
            self.seen[request.cluster] += 1
        finally:
            self._running[request.cluster] -= 1

    def engaged(self) -> set[str]:
        fleet = self.mgr.fleet
        return {name for name in fleet.names() if fleet.status(name).state is ClusterState.ENGAGED}


@pytest.fixture
async def replicas(server, namespace):
    running: Counter[str] = Counter()
    started: list[Replica] = []

    def start(name: str) -> Replica:
        started.append(Replica(server, namespace, name, running))
        return started[-1]

    yield start
    for replica in started:
        replica.mgr.stop()
    for replica in started:
        with contextlib.suppress(asyncio.CancelledError):
            await replica.task


@pytest.fixture
async def spaces(server, client, namespace):
    """Namespaces that are the clusters of the fleet."""
    names = [f"{namespace}-{number}" for number in range(CLUSTERS)]
    for name in names:
        await client.create(core.Namespace(metadata=meta.ObjectMeta(name=name, labels={"fleet": namespace})))
        await client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="mark", namespace=name)))
    yield names
    for name in names:
        await asyncio.to_thread(server.delete_namespace, name)


async def owners(client, spaces) -> list[str]:
    found = [await client.get(core.ConfigMap, ctrl.NamespacedName(name, "mark")) for name in spaces]
    return [each.data.get("owner", "") for each in found]


async def test_replicas_divide_the_clusters_and_one_that_stops_gives_them_away(replicas, client, spaces):
    clusters = {f"namespaces/{name}" for name in spaces}
    first = replicas("first")
    await eventually(lambda: first.engaged() == clusters, timeout=LONGEST_WAIT)
    second = replicas("second")

    def are_divided() -> bool:
        ours, theirs = first.engaged(), second.engaged()
        return ours | theirs == clusters and not ours & theirs and min(len(ours), len(theirs)) >= 2

    await eventually(are_divided, timeout=LONGEST_WAIT)

    async def all_marked() -> bool:
        found = await owners(client, spaces)
        return all(
            (name == "second") == (f"namespaces/{space}" in second.engaged())
            for space, name in zip(spaces, found, strict=True)
        )

    await eventually(all_marked, timeout=LONGEST_WAIT)
    theirs = next(iter(second.engaged()))
    with pytest.raises(ForeignShardError, match=f"the replica second reconciles the cluster '{theirs}'"):
        await first.mgr.fleet.client(theirs).list(core.ConfigMap)
    assert first.mgr.shards.owner_of(ctrl.Request(spaces[0], "mark", theirs)).startswith("second/")
    assert not first.mgr.shards.owns(ctrl.Request(spaces[0], "mark", theirs))

    first.mgr.stop()
    await first.task
    await eventually(lambda: second.engaged() == clusters, timeout=LONGEST_WAIT)
    await eventually(lambda: clusters <= set(second.seen), timeout=LONGEST_WAIT)


async def test_clusters_that_are_divided_come_from_a_provider(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    fleet = ctrl.Fleet(Namespaces(), sharded=True)
    with pytest.raises(ConfigError, match=r"Pass sharding=ctrl\.Sharding\(id\) too"):
        ctrl.new_manager(config, fleet=fleet)
    mgr = ctrl.new_manager(config, fleet=fleet, sharding=ctrl.Sharding("fleet", namespace=namespace))
    with pytest.raises(ConfigError, match="Name it by a provider"):
        mgr.add(ctrl.Cluster(config, name="mine"))
    await mgr.cluster.close()
