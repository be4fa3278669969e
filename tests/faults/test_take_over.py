"""A new leader compares its caches kind by kind: what cannot be compared fails only the reads of it."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from cases import on_both_servers
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.errors import StaleReadError
from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy, Match

PROMPT = 5.0  # seconds in which a controller starts whose kinds can be compared
LEASE = "takes-over"

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


class Standby:
    """A manager whose lease another process holds, until `win`; each controller notes when it first reconciles."""

    def __init__(self, server, namespace: str, proxy: FaultProxy) -> None:
        self.namespace = namespace
        config = ctrl.get_config(str(server.kubeconfig_path))
        options = ctrl.CacheOptions(namespaces=[namespace])
        self.mgr = ctrl.new_manager(
            config,
            cache=options,
            metrics_bind_address="0",
            leader_election=ctrl.LeaderElection(LEASE, namespace=namespace, identity="me", retry_period=1.0),
        )
        self.behind_proxy = ctrl.Cluster(proxy.config, name="behind", cache=options)
        self.mgr.add(self.behind_proxy)
        self.lease = coordination.Lease(metadata=meta.ObjectMeta(name=LEASE, namespace=namespace))
        self.started: dict[str, float] = {}
        self.stale: set[str] = set()
        """The controllers that could not read yet."""

        self.kinds = 0

    def controls(self, name: str, kind: type[ctrl.Object], cluster: ctrl.Cluster | None = None) -> None:
        client = (cluster or self.mgr.cluster).client

        async def reconcile(request: ctrl.Request) -> None:
            try:
                await client.get_or_none(kind, ctrl.NamespacedName(request.namespace, request.name))
            except StaleReadError:
                self.stale.add(name)
                raise
            self.started.setdefault(name, time.monotonic())

        self.kinds += 1
        cache = (cluster or self.mgr.cluster).cache
        source = ctrl.source.Kind(cache, kind, ctrl.handler.EnqueueRequestForObject())
        ctrl.new_controller_managed_by(self.mgr).named(name).watches_raw_source(source).complete(reconcile)

    @contextlib.asynccontextmanager
    async def waiting(self):
        """Run it as a candidate with warm caches."""
        client = self.mgr.cluster.unfenced_client()
        self.lease.spec.holder_identity = "another"
        self.lease.spec.lease_duration_seconds = 3600
        self.lease = await client.create(self.lease)
        for kind in (core.ConfigMap, core.Secret):
            await client.create(kind(metadata=meta.ObjectMeta(name="one", namespace=self.namespace)))
        async with ctrl.running(self.mgr):
            caches = [self.mgr.cluster.cache, self.behind_proxy.cache]
            await eventually(lambda: sum(len(one.informers()) for one in caches) == self.kinds, timeout=LONGEST_WAIT)
            for cache in caches:
                await asyncio.wait_for(cache.wait_for_cache_sync(), LONGEST_WAIT)
            assert not self.mgr.elected.is_set()
            yield

    async def win(self) -> float:
        """Let it become the leader; return when that was."""
        self.lease.spec.holder_identity = None
        await self.mgr.cluster.unfenced_client().update(self.lease)
        await asyncio.wait_for(self.mgr.elected.wait(), LONGEST_WAIT)
        return time.monotonic()


@pytest.mark.parametrize(
    ("server", "fault"), on_both_servers(["black_hole", "refuse"], real=["black_hole"]), indirect=["server"]
)
async def test_a_dead_second_cluster_delays_only_those_who_read_it(server, namespace, fault):
    with FaultProxy(server) as proxy:
        standby = Standby(server, namespace, proxy)
        standby.controls("home", core.ConfigMap)
        standby.controls("far", core.ConfigMap, standby.behind_proxy)
        async with standby.waiting():
            with getattr(proxy, fault)():
                won = await standby.win()
                home = await eventually(lambda: standby.started.get("home"), timeout=LONGEST_WAIT)
                assert home - won < PROMPT
                await eventually(lambda: "far" in standby.stale, timeout=LONGEST_WAIT)
                assert "far" not in standby.started
            await eventually(lambda: standby.started.get("far"))


async def test_a_kind_that_answers_503_delays_only_those_who_read_it(server, namespace):
    with FaultProxy(server) as proxy:
        standby = Standby(server, namespace, proxy)
        standby.controls("well", core.ConfigMap, standby.behind_proxy)
        standby.controls("ill", core.Secret, standby.behind_proxy)
        async with standby.waiting():
            with proxy.respond(Match(verb="list", resource="secrets"), 503):
                won = await standby.win()
                well = await eventually(lambda: standby.started.get("well"), timeout=LONGEST_WAIT)
                assert well - won < PROMPT
                await eventually(lambda: "ill" in standby.stale, timeout=LONGEST_WAIT)
                assert "ill" not in standby.started
            await eventually(lambda: standby.started.get("ill"))


async def test_a_kind_that_only_is_read_shows_what_the_last_leader_wrote(server, namespace):
    """Its watch is late, and no controller watches it: the read is compared, and falls back to a live one."""
    with FaultProxy(server) as proxy:
        standby = Standby(proxy, namespace, proxy)  # its own cluster is behind the proxy, too
        standby.controls("home", core.ConfigMap)
        async with standby.waiting():
            cache = standby.mgr.cluster.cache
            await cache.list(core.Secret)
            with proxy.delay(Match(verb="watch", resource="secrets"), 30.0):
                user = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0").cluster
                late = core.Secret(metadata=meta.ObjectMeta(name="late", namespace=namespace))
                await user.unfenced_client().create(late)
                await user.close()
                await standby.win()

                assert await standby.mgr.client.get_or_none(core.Secret, ctrl.object_key(late)) is not None
                assert "late" in {item.name for item in (await standby.mgr.client.list(core.Secret)).metadata}
