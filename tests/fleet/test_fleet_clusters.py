"""Controllers of a fleet: watches in each cluster, requests with its name, clusters that come and go."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import Counter
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.errors import ClusterGoneError, ClusterNotReadyError, ConfigError, FencedError
from ctrlruntime.fleet import ClusterSource, ClusterState
from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy


def config_map(namespace: str, name: str, **data: str) -> core.ConfigMap:
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace), data=data)


class Recorder:
    """Notes the requests with the data that the client of the cluster reads."""

    def __init__(self, mgr: ctrl.Manager, namespace: str) -> None:
        self.mgr = mgr
        self.namespace = namespace
        self.seen: dict[tuple[str, str], dict[str, str] | None] = {}

    async def reconcile(self, request: ctrl.Request) -> None:
        if request.namespace == self.namespace and request.name != "kube-root-ca.crt":
            found = await self.mgr.fleet.client(request).get_or_none(core.ConfigMap, request)
            self.seen[request.cluster, request.name] = None if found is None else found.data


def other(servers, number: int) -> ctrl.Cluster:
    return ctrl.Cluster(ctrl.get_config(str(servers[number].kubeconfig_path)), name=f"c{number}")


async def test_a_controller_watches_all_clusters_that_are_there_and_that_come(mgr, servers, clients, namespaces):
    recorder = Recorder(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").complete(recorder)
    for number, client in enumerate(clients):
        await client.create(config_map(namespaces, f"of-{number}", at=str(number)))
    mgr.add(other(servers, 1))

    async with ctrl.running(mgr):
        await eventually(lambda: recorder.seen == {("c1", "of-1"): {"at": "1"}})
        mgr.add(other(servers, 2))
        await eventually(lambda: recorder.seen.get(("c2", "of-2")) == {"at": "2"})
        await clients[2].delete(config_map(namespaces, "of-2"))
        await eventually(lambda: recorder.seen["c2", "of-2"] is None)

        assert mgr.fleet.status("c2").state is ClusterState.ENGAGED
        assert set(recorder.seen) == {("c1", "of-1"), ("c2", "of-2")}


async def test_of_a_removed_cluster_nothing_runs(mgr, servers, clients, namespaces):
    recorder = Recorder(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="all").complete(recorder)
    for client in clients[:2]:
        await client.create(config_map(namespaces, "one"))
    mgr.add(other(servers, 1))

    async with ctrl.running(mgr):
        await eventually(lambda: set(recorder.seen) == {("", "one"), ("c1", "one")})
        client = mgr.fleet.client("c1")
        await mgr.fleet.remove("c1")
        await clients[1].create(config_map(namespaces, "two"))
        await clients[0].create(config_map(namespaces, "two"))
        await eventually(lambda: ("", "two") in recorder.seen)

        assert ("c1", "two") not in recorder.seen
        assert mgr.fleet.names() == []
        with pytest.raises(ClusterGoneError, match="'c1' was removed"):
            await client.list(core.ConfigMap, namespace=namespaces)
        with pytest.raises(ClusterGoneError, match="has no cluster 'c1'"):
            mgr.fleet.client(ctrl.Request(namespaces, "one", "c1"))
        assert 'cluster="c1"' not in mgr.metrics.render()[0].decode()
        assert "c1" not in {key.cluster for key in mgr.journal.keys("configmap")}

        mgr.add(other(servers, 1))  # the same name again is another cluster
        await eventually(lambda: ("c1", "two") in recorder.seen)


async def test_clusters_that_come_and_go_leave_nothing(mgr, servers, clients, namespaces):
    recorder = Recorder(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").owns(core.Secret).complete(recorder)
    await clients[1].create(config_map(namespaces, "one"))
    alive: weakref.WeakSet[object] = weakref.WeakSet()

    async def cycle() -> None:
        cluster = other(servers, 1)
        alive.update((cluster, cluster.cache, cluster.transport))
        mgr.add(cluster)
        await eventually(lambda: recorder.seen, interval=0.001)
        await mgr.fleet.remove("c1")
        recorder.seen.clear()

    def left() -> dict[str, object]:
        gc.collect()
        return {
            "objects": len(alive),
            "tasks": Counter(task.get_name().rstrip("0123456789") for task in asyncio.all_tasks()),
            "threads": threading.active_count(),
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "metrics": len(mgr.metrics.render()[0].splitlines()),
            "journal": len(mgr.journal.keys("configmap")),
        }

    async with ctrl.running(mgr):
        for _ in range(2):
            await cycle()
        await eventually(lambda: not left()["objects"])
        before = left()
        for _ in range(20):
            await cycle()
        await eventually(lambda: all(now <= before[name] for name, now in left().items()))


async def test_indexes_and_transforms_are_those_of_all_clusters_also_of_later_ones(servers, clients, namespaces):
    def shorten(found):
        return {**found, "data": {"color": found["data"]["color"], "long": ""}}

    options = ctrl.CacheOptions(by_object={core.ConfigMap: ctrl.cache.ByObject(labels="kept=yes", transform=shorten)})
    source = Given()
    hub = ctrl.get_config(str(servers[0].kubeconfig_path))
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(source, cache=options))
    mgr.fleet.index_field(core.ConfigMap, "color", lambda found: [found.data.get("color", "")])
    seen: dict[str, list[dict[str, str]]] = {}

    async def reconcile(request):
        found = await mgr.fleet.client(request).list(core.ConfigMap, namespace=namespaces, fields={"color": "red"})
        seen[request.cluster] = [each.data for each in found]

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").complete(reconcile)
    for client in clients[1:]:
        for color in ("red", "blue"):
            made = config_map(namespaces, color, color=color, long="x" * 100)
            made.metadata.labels = {"kept": "yes"}
            await client.create(made)

    async with ctrl.running(mgr):
        for number in (1, 2):
            config = ctrl.get_config(str(servers[number].kubeconfig_path))
            source.inventory.set(str(number), ClusterSource(config=config))
            name = f"given/{number}"
            await eventually(lambda name=name: seen.get(name) == [{"color": "red", "long": ""}])
    with pytest.raises(ValueError, match="cannot index ConfigMap by color: this index of the fleet exists"):
        mgr.fleet.index_field(core.ConfigMap, "color")


class Given:
    """A provider whose inventory the test changes."""

    name = "given"

    async def run(self, inventory):
        self.inventory = inventory
        await asyncio.get_running_loop().create_future()


async def test_on_is_checked(mgr):
    builder = ctrl.new_controller_managed_by(mgr)
    with pytest.raises(ConfigError, match="on is 'spoke'; give 'hub', 'fleet' or 'all'"):
        builder.for_(core.ConfigMap, on="spoke")
    builder.for_(core.ConfigMap, on="fleet").owns(core.Secret, on="hub")
    with pytest.raises(ConfigError, match=r"owns\(Secret\) has on='hub', and for_\(\) has on='fleet'"):
        builder.complete(lambda _: None)
    await mgr.cluster.close()
    await asyncio.sleep(0)


class Gate:
    """A reconciler whose reconciles wait until they may end."""

    def __init__(self, mgr: ctrl.Manager, namespace: str) -> None:
        self.mgr = mgr
        self.namespace = namespace
        self.running: list[ctrl.Request] = []
        self.done: list[ctrl.Request] = []
        self.cancelled: list[ctrl.Request] = []
        self.open = asyncio.Event()

    async def reconcile(self, request: ctrl.Request) -> None:
        if request.namespace != self.namespace or request.name == "kube-root-ca.crt":
            return
        self.running.append(request)
        try:
            await self.open.wait()
            self.done.append(request)
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        finally:
            self.running.remove(request)


async def test_a_cluster_that_does_not_respond_delays_no_other_one(mgr, servers, clients, namespaces):
    recorder = Recorder(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="all").complete(recorder)
    for client in clients:
        await client.create(config_map(namespaces, "one"))
    with FaultProxy(servers[1]) as proxy:
        mgr.add(ctrl.Cluster(proxy.config, name="c1"))
        with proxy.refuse():
            async with ctrl.running(mgr):
                mgr.add(other(servers, 2))
                await eventually(lambda: set(recorder.seen) == {("", "one"), ("c2", "one")})
                await eventually(lambda: mgr.fleet.status("c1").reason != "")
                assert mgr.fleet.status("c1").state is ClusterState.CONNECTING
                client, key = mgr.fleet.client("c1"), ctrl.NamespacedName(namespaces, "one")
                for call in (client.get(core.ConfigMap, key), ctrl.create_or_update(client, core.ConfigMap, key)):
                    with pytest.raises(ClusterNotReadyError, match="the cluster 'c1' is not connected: GET /version"):
                        await call


async def test_requests_of_a_cluster_wait_while_it_does_not_respond(mgr, servers, clients, namespaces):
    gate = Gate(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="all").with_options(
        max_concurrent_reconciles=2
    ).complete(gate)
    for name in ("one", "two", "three"):
        await clients[1].create(config_map(namespaces, name))
    with FaultProxy(servers[1]) as proxy:
        mgr.add(ctrl.Cluster(proxy.config, name="c1"))
        async with ctrl.running(mgr):
            await eventually(lambda: len(gate.running) == 2)
            with proxy.refuse():
                await eventually(lambda: mgr.fleet.status("c1").state is ClusterState.DEGRADED)
                await eventually(lambda: len(gate.cancelled) == 2 and not gate.running)
                await clients[0].create(config_map(namespaces, "own"))
                gate.open.set()
                await eventually(lambda: [str(each) for each in gate.done] == [f"{namespaces}/own"])
                (shown,) = mgr.fleet.explained()
                assert (shown.name, shown.state) == ("c1", "Degraded")
                assert (shown.reason != "", shown.waiting >= 3) == (True, True)
                assert mgr.metrics.clusters() == {"Connecting": 0, "Standby": 0, "Engaged": 0, "Degraded": 1}
                assert 'ctrlruntime_fleet_clusters{state="Degraded"} 1.0' in mgr.metrics.render()[0].decode()
            await eventually(lambda: mgr.fleet.status("c1").state is ClusterState.ENGAGED)
            wanted = {ctrl.Request(namespaces, name, "c1") for name in ("one", "two", "three")}
            await eventually(lambda: wanted <= set(gate.done))


async def test_a_removed_cluster_takes_its_queued_and_running_requests_along(mgr, servers, clients, namespaces):
    gate = Gate(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").with_options(
        max_concurrent_reconciles=5
    ).complete(gate)
    for number in range(30):
        await clients[1].create(config_map(namespaces, f"map-{number}"))
    mgr.add(other(servers, 1))

    async with ctrl.running(mgr):
        await eventually(lambda: len(gate.running) == 5)
        removing = asyncio.ensure_future(mgr.fleet.remove("c1"))
        await asyncio.sleep(0)
        await eventually(lambda: mgr.fleet.names() == [])
        gate.open.set()  # the running ones end in their five seconds
        await removing

        assert len(gate.done) == 5
        (controller,) = mgr._controllers
        assert len(controller.queue) == 0


async def test_a_busy_cluster_does_not_delay_the_requests_of_another_one(mgr, servers, clients, namespaces):
    done: dict[str, set[str]] = {"c1": set(), "c2": set()}
    running: dict[str, int] = {"c1": 0, "c2": 0}
    most: dict[str, int] = {"c1": 0, "c2": 0}
    free = asyncio.Event()

    async def reconcile(request):
        if request.namespace != namespaces:
            return
        cluster = request.cluster
        running[cluster] += 1
        most[cluster] = max(most[cluster], running[cluster])
        if cluster == "c1":
            await free.wait()
        running[cluster] -= 1
        done[cluster].add(request.name)

    builder = ctrl.new_controller_managed_by(mgr).for_(core.Secret, on="fleet")
    builder.with_options(max_concurrent_reconciles=2).complete(reconcile)
    names = {f"s-{number}" for number in range(20)}
    for client in clients[1:]:
        for name in names:
            await client.create(core.Secret(metadata=meta.ObjectMeta(name=name, namespace=namespaces)))
    for number in (1, 2):
        mgr.add(other(servers, number))

    async with ctrl.running(mgr):
        await eventually(lambda: done["c2"] == names and running["c1"] == 2)
        assert not done["c1"]
        free.set()
        await eventually(lambda: done["c1"] == names)
    assert most["c1"] == 2


async def test_a_cluster_that_is_not_the_manager_s_is_not_in_its_readiness(mgr, servers, namespaces):
    with FaultProxy(servers[1]) as proxy, proxy.refuse():
        mgr.add(ctrl.Cluster(proxy.config, name="c1"))
        async with ctrl.running(mgr):
            await eventually(lambda: mgr.fleet.status("c1").reason != "")
            answer = await mgr.readiness.answer()
            assert answer.status == 200, answer


async def test_map_functions_of_the_hub_are_called_again_for_a_new_cluster(mgr, servers, clients, namespaces):
    recorder = Recorder(mgr, namespaces)

    def everywhere(secret: core.Secret) -> list[ctrl.Request]:
        return [ctrl.Request(secret.metadata.namespace, secret.metadata.name, name) for name in mgr.fleet.names()]

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").watches(
        core.Secret, ctrl.handler.enqueue_requests_from_map_func(everywhere)
    ).complete(recorder)
    await clients[0].create(core.Secret(metadata=meta.ObjectMeta(name="policy", namespace=namespaces)))
    mgr.add(other(servers, 1))

    async with ctrl.running(mgr):
        await eventually(lambda: recorder.seen == {("c1", "policy"): None})
        mgr.add(other(servers, 2))
        await eventually(lambda: recorder.seen == {("c1", "policy"): None, ("c2", "policy"): None})


async def test_objects_of_the_hub_are_reconciled_again_when_a_cluster_comes_or_goes(mgr, servers, clients, namespaces):
    seen: list[list[str]] = []

    async def reconcile(request: ctrl.Request) -> None:
        if request.namespace == namespaces:
            seen.append(mgr.fleet.names())

    nothing = ctrl.handler.enqueue_requests_from_map_func(lambda _copy: [])
    builder = ctrl.new_controller_managed_by(mgr).for_(core.Secret)
    builder.watches(core.ConfigMap, nothing, on="fleet").complete(reconcile)
    await clients[0].create(core.Secret(metadata=meta.ObjectMeta(name="site", namespace=namespaces)))

    async with ctrl.running(mgr):
        await eventually(lambda: seen == [[]])
        mgr.add(other(servers, 1))
        await eventually(lambda: seen == [[], ["c1"]])
        await mgr.fleet.remove("c1")
        await eventually(lambda: seen == [[], ["c1"], []])


async def test_a_replica_that_does_not_lead_lists_the_kinds_and_reconciles_nothing(servers, clients, namespaces):
    election = ctrl.LeaderElection("test", namespace=namespaces)
    hub = ctrl.get_config(str(servers[0].kubeconfig_path))
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", leader_election=election)
    recorder = Recorder(mgr, namespaces)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, on="fleet").complete(recorder)
    lease = coordination.Lease(metadata=meta.ObjectMeta(name="test", namespace=namespaces))
    lease.spec.holder_identity, lease.spec.lease_duration_seconds = "another", 3600
    await clients[0].create(lease)
    await clients[1].create(config_map(namespaces, "one"))
    mgr.add(other(servers, 1))

    async with ctrl.running(mgr):
        await eventually(lambda: mgr.fleet.status("c1").state is ClusterState.ENGAGED)
        assert len(await mgr.fleet.client("c1").list(core.ConfigMap, namespace=namespaces)) >= 1
        with pytest.raises(FencedError):
            await mgr.fleet.client("c1").create(config_map(namespaces, "two"))
        assert recorder.seen == {}

        await clients[0].patch(lease, ctrl.merge_patch({"spec": {"holderIdentity": ""}}))
        await eventually(lambda: ("c1", "one") in recorder.seen)
        await mgr.fleet.client("c1").create(config_map(namespaces, "two"))
