"""A manager that elects a leader: what waits for the lease, what happens when it is won, lost and given back."""

from __future__ import annotations

import asyncio
import dataclasses
import threading

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.api.events.v1 import Event
from ctrlruntime.errors import ConfigError, Conflict, FencedError, LeaderElectionLostError
from ctrlruntime.leaderelection import LeaseLock
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def election(namespace):
    return ctrl.LeaderElection(
        "test", namespace=namespace, identity="me", lease_duration=3.0, renew_deadline=2.0, retry_period=1.0
    )


@pytest.fixture
def held(election, config):
    """Takes the lease for somebody else, as if it were renewed by another process."""
    identity = "another"

    async def take(client) -> None:
        lease = coordination.Lease(metadata=meta.ObjectMeta(name=election.id, namespace=election.namespace))
        lease.spec.holder_identity = identity
        lease.spec.lease_duration_seconds = 3600
        await client.create(lease)

    return take


async def holder(mgr, election):
    lease = await mgr.api_reader.get_or_none(coordination.Lease, ctrl.NamespacedName(election.namespace, election.id))
    return None if lease is None else lease.spec.holder_identity or ""


def config_map(namespace, name):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


class Waits:
    def __init__(self, *, leader=True):
        self.needs_leader_election = leader
        self.started = asyncio.Event()
        self.ended = asyncio.Event()

    async def start(self):
        self.started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            self.ended.set()


async def test_what_needs_the_leader_starts_when_the_lease_is_won(make, election):
    mgr = make(leader_election=election)
    runnable = Waits()
    mgr.add(runnable)

    async with running(mgr):
        await asyncio.wait_for(runnable.started.wait(), LONGEST_WAIT)
        assert mgr.elected.is_set()
        assert await holder(mgr, election) == "me"


async def test_the_lease_is_given_back_after_the_runnables_have_ended(make, election):
    mgr = make(leader_election=election)
    seen = []

    async def look():
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append(await holder(mgr, election))

    mgr.add(look)
    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
        await asyncio.sleep(0)

    assert seen == ["me"]
    assert await holder(mgr, election) == ""
    await mgr.cluster.close()


async def test_becoming_leader_and_ceasing_to_lead_are_recorded(make, election):
    mgr = make(leader_election=election)

    async with running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)

    events = await mgr.api_reader.list(Event, namespace=election.namespace)
    assert sorted(event.note for event in events) == ["me became leader", "me stopped leading"]
    assert {(event.regarding.kind, event.regarding.name, event.reason) for event in events} == {
        ("Lease", "test", "LeaderElection")
    }
    await mgr.cluster.close()


async def test_while_another_leads_only_what_needs_no_leader_runs(make, election, held):
    mgr = make(leader_election=election)
    await held(mgr.cluster.unfenced_client())
    leader, other = Waits(), Waits(leader=False)
    mgr.add(leader)
    mgr.add(other)

    async with running(mgr):
        await asyncio.wait_for(other.started.wait(), LONGEST_WAIT)
        assert not mgr.elected.is_set()

    assert not leader.started.is_set()
    assert await holder(mgr, election) == "another"
    await mgr.cluster.close()


async def test_a_lease_won_while_stopping_starts_nothing(make, election, monkeypatch):
    mgr = make(leader_election=election)
    runnable = Waits()
    mgr.add(runnable)
    create, asked, go_on = LeaseLock.create, threading.Event(), threading.Event()

    async def slow(self, record):
        asked.set()
        await create(self, record)
        await asyncio.to_thread(go_on.wait, LONGEST_WAIT)

    monkeypatch.setattr(LeaseLock, "create", slow)
    task = asyncio.ensure_future(mgr.start())
    assert await asyncio.to_thread(asked.wait, LONGEST_WAIT)
    await eventually(lambda: holder(mgr, election))

    mgr.stop()
    go_on.set()
    await asyncio.wait_for(task, LONGEST_WAIT)

    assert not runnable.started.is_set()
    assert not mgr.elected.is_set()
    assert await holder(mgr, election) == ""
    await mgr.cluster.close()


async def test_a_lost_lease_ends_the_manager_without_grace(make, election, monkeypatch):
    mgr = make(leader_election=election, graceful_shutdown_timeout=None)
    started = asyncio.Event()
    ended = []

    async def reconcile(request):
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def fill(queue):
        queue.add(ctrl.Request("ns", "name"))

    ctrl.new_controller_managed_by(mgr).named("any").watches_raw_source(ctrl.source.Func(fill)).complete(reconcile)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(started.wait(), LONGEST_WAIT)
    client = mgr.cluster.unfenced_client()

    async def take_away():
        lease = await client.get(coordination.Lease, ctrl.NamespacedName(election.namespace, election.id))
        lease.spec.holder_identity = "another"
        try:
            return await client.update(lease)
        except Conflict:
            return None

    await eventually(take_away)

    with pytest.raises(LeaderElectionLostError, match="another holds it"):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert ended == ["cancelled"]
    assert await holder(mgr, election) == "another"
    await mgr.cluster.close()


async def test_a_lease_lost_during_the_graceful_stop_cuts_the_grace_short_and_is_no_failure(make, election, logs):
    mgr = make(leader_election=election, graceful_shutdown_timeout=None)
    started = asyncio.Event()

    async def reconcile(request):
        started.set()
        await asyncio.sleep(3600)

    async def fill(queue):
        queue.add(ctrl.Request("ns", "name"))

    ctrl.new_controller_managed_by(mgr).named("any").watches_raw_source(ctrl.source.Func(fill)).complete(reconcile)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(started.wait(), LONGEST_WAIT)
    client = mgr.cluster.unfenced_client()

    mgr.stop()
    lease = await client.get(coordination.Lease, ctrl.NamespacedName(election.namespace, election.id))
    await client.delete(lease)
    await client.create(
        coordination.Lease(
            metadata=meta.ObjectMeta(name=election.id, namespace=election.namespace),
            spec=coordination.LeaseSpec(holder_identity="another", lease_duration_seconds=3600),
        )
    )

    await asyncio.wait_for(task, LONGEST_WAIT)
    (line,) = [line for line in logs if line["event"] == "lease lost during shutdown"]
    assert line["level"] == "warning"
    await mgr.cluster.close()


async def test_a_release_that_gets_no_answer_ends_with_the_grace(make, election, logs, monkeypatch):
    async def hang(self, record):
        await asyncio.Event().wait()

    patient = dataclasses.replace(election, lease_duration=61.0, renew_deadline=60.0, retry_period=10.0)
    mgr = make(leader_election=patient, graceful_shutdown_timeout=0.01)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(mgr.elected.wait(), LONGEST_WAIT)
    monkeypatch.setattr(LeaseLock, "update", hang)

    mgr.stop()

    # The election itself would try for half of its renew deadline.
    await asyncio.wait_for(task, LONGEST_WAIT)
    assert [line["level"] for line in logs if "not released" in line["event"]] == ["warning"]
    await mgr.cluster.close()


async def test_writes_of_a_process_that_does_not_lead_are_refused(make, election, held, namespace):
    mgr = make(leader_election=election)
    await held(mgr.cluster.unfenced_client())
    written = asyncio.Event()

    class NeedsNoLeader:
        needs_leader_election = False

        async def start(self):
            await mgr.client.create(config_map(namespace, "free"))
            written.set()

    mgr.add(NeedsNoLeader())
    async with running(mgr):
        await asyncio.wait_for(written.wait(), LONGEST_WAIT)
        with pytest.raises(FencedError, match="does not hold the lease"):
            await mgr.client.create(config_map(namespace, "bound"))


async def test_the_fence_of_another_cluster_is_the_same(make, config, election, held, namespace):
    mgr = make(leader_election=election)
    await held(mgr.cluster.unfenced_client())
    early, late = ctrl.Cluster(config, name="early"), ctrl.Cluster(config, name="late")
    mgr.add(early)

    async with running(mgr):
        await early.wait_running()
        mgr.add(late)
        await late.wait_running()
        for cluster in (early, late):
            await eventually(lambda cluster=cluster: refused(cluster.client, config_map(namespace, "bound")))


async def refused(client, obj):
    try:
        await client.create(obj, dry_run=True)
    except FencedError:
        return True
    return False


async def test_without_election_the_fence_is_open(make, namespace):
    mgr = make()

    async with running(mgr):
        await mgr.client.create(config_map(namespace, "any"))


async def test_elections_and_events_are_exempt_from_the_fence(make, election, held, namespace):
    mgr = make(leader_election=election)
    client = mgr.cluster.unfenced_client()
    await held(client)
    recorder = mgr.event_recorder("somebody")

    async with running(mgr):
        recorder.event(config_map(namespace, "subject"), reason="Tested", action="Test", note="it works")

        async def notes():
            return [event.note for event in await mgr.api_reader.list(Event, namespace=namespace)]

        assert await eventually(notes) == ["it works"]
        await client.create(config_map(namespace, "lease-like"))


async def test_warm_up_fills_the_queue_before_the_lease_is_won(make, election, held, namespace):
    mgr = make(leader_election=election)
    client = mgr.cluster.unfenced_client()
    await held(client)
    await client.create(config_map(namespace, "early"))
    seen = []

    async def reconcile(request):
        seen.append(request)

    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap)
    controller = builder.with_options(enable_warmup=True).build(reconcile)

    async with running(mgr):
        await eventually(lambda: len(controller.queue) > 0)
        assert not mgr.elected.is_set()
        assert seen == []

    assert seen == []


async def test_the_caches_of_a_standby_are_warm(make, election, held, namespace):
    mgr = make(leader_election=election)
    client = mgr.cluster.unfenced_client()
    await held(client)
    await client.create(config_map(namespace, "early"))
    seen = []

    async def reconcile(request):
        seen.append(request)

    controller = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).build(reconcile)

    async with running(mgr):
        await eventually(lambda: [informer for informer in mgr.cache.informers().values() if informer.is_synced])
        assert not mgr.elected.is_set()
        assert len(controller.queue) == 0

    assert seen == []
    assert not controller.watches or not any(watch.is_started for watch in controller.watches)


async def test_a_candidate_without_warm_caches_lists_nothing(make, election, held):
    mgr = make(leader_election=election, controller_defaults=ctrl.ControllerDefaults(warm_caches=False))
    await held(mgr.cluster.unfenced_client())
    other = Waits(leader=False)
    mgr.add(other)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(lambda request: None)

    async with running(mgr):
        await asyncio.wait_for(other.started.wait(), LONGEST_WAIT)
        await eventually(lambda: mgr._elector.leader == "another")
        assert not mgr.cache.informers()


async def test_a_controller_warmed_up_but_never_elected_leaves_nothing_behind(make, election, held):
    mgr = make(leader_election=election)
    await held(mgr.cluster.unfenced_client())
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap)
    controller = builder.with_options(enable_warmup=True).build(lambda request: None)

    async with running(mgr):
        await eventually(lambda: [watch for watch in controller.watches if watch.is_synced])

    assert not controller.watches


async def test_a_failed_warm_up_fails_the_manager(make, election, held):
    class Cold(Waits):
        async def warmup(self):
            raise LookupError("no luck")

    mgr = make(leader_election=election)
    await held(mgr.cluster.unfenced_client())
    mgr.add(Cold())

    with pytest.raises(LookupError, match="no luck"):
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)
    await mgr.cluster.close()


class MemoryLock:
    """A lock of the user's own; two managers share one."""

    name = "in memory"

    def __init__(self):
        self.record = None

    async def get(self):
        return self.record

    async def create(self, record):
        assert self.record is None
        self.record = record

    async def update(self, record):
        self.record = record


async def test_a_lock_of_the_users_own_elects_the_leader(make):
    lock = MemoryLock()

    def manager(identity):
        return make(leader_election=ctrl.LeaderElection("test", lock=lock, identity=identity, retry_period=1.0))

    async with running(manager("first")) as first:
        await asyncio.wait_for(first.elected.wait(), LONGEST_WAIT)
        async with running(manager("second")) as second:
            await eventually(lambda: second._elector.leader == "first")
            assert not second.elected.is_set()
    assert lock.record.holder == ""


async def test_a_leader_whose_work_failed_gives_the_lease_back(make, election):
    mgr = make(leader_election=election)

    async def work():
        raise LookupError("the work died")

    mgr.add(work)
    with pytest.raises(LookupError):
        await asyncio.wait_for(mgr.start(), LONGEST_WAIT)

    assert await holder(mgr, election) == ""
    await mgr.cluster.close()


async def test_election_outside_a_pod_needs_a_namespace(make, election):
    mgr = make(leader_election=dataclasses.replace(election, namespace=None))

    with pytest.raises(ConfigError, match="--leader-election-namespace"):
        await mgr.start()
