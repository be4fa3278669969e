"""A manager that is one of several replicas: what starts when, and what happens when it loses its share."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from dataclasses import replace

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import coordination, core, meta
from ctrlruntime.errors import ConfigError, FencedError, ForeignShardError, LeaderElectionLostError
from ctrlruntime.ownership.machine import Change, SlotState
from ctrlruntime.rest.fence import Actor, Grant, acting, lease_clock
from ctrlruntime.testing import eventually
from ctrlruntime.testing.faults import FaultProxy

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def sharding(namespace):
    return ctrl.Sharding(
        "test", namespace=namespace, slots=64, identity="me", lease_duration=5.0, renew_deadline=4.0, renew_period=1.0
    )


@pytest.fixture
async def given_back(direct, namespace):
    """The Lease as the last replica leaves it. Without it, the first one would wait for the time of a Lease."""
    await direct.create(coordination.Lease(metadata=meta.ObjectMeta(name="test", namespace=namespace)))


@pytest.fixture
async def direct(config):
    cluster = ctrl.Cluster(config)
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
def mgr(config, namespace, sharding):
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), sharding=sharding)


def add(mgr, reconcile, **options):
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).with_options(sharded=True, **options).complete(reconcile)


def config_map(namespace, name):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace))


async def members(direct, namespace) -> set[str]:
    leases = await direct.list(coordination.Lease, namespace=namespace)
    return {lease.metadata.name for lease in leases if lease.metadata.name.startswith("test-")}


async def expire(direct, namespace) -> None:
    """Do what another replica does when the Lease of a member has run out."""
    (member,) = [
        lease
        for lease in await direct.list(coordination.Lease, namespace=namespace)
        if lease.metadata.name.startswith("test-") and lease.spec.holder_identity
    ]
    await direct.patch(member, ctrl.merge_patch({"spec": {"holderIdentity": None}}))


@pytest.mark.usefixtures("given_back")
async def test_a_replica_alone_reconciles_everything_and_leads(mgr, direct, namespace):
    seen = set()

    async def reconcile(request: ctrl.Request) -> None:
        seen.add(request.name)

    add(mgr, reconcile)
    led = asyncio.Event()

    async def lead() -> None:
        led.set()

    mgr.add(lead)
    names = {f"c-{number}" for number in range(20)}
    for name in names:
        await direct.create(config_map(namespace, name))
    async with ctrl.running(mgr):
        await asyncio.wait_for(led.wait(), LONGEST_WAIT)
        await eventually(lambda: names <= seen, timeout=LONGEST_WAIT)
        assert mgr.elected.is_set()

    leases = await direct.list(coordination.Lease, namespace=namespace)
    assert [(lease.metadata.name, lease.spec.holder_identity) for lease in leases] == [("test", None)]


@pytest.mark.usefixtures("given_back")
async def test_the_debug_pages_probes_and_metrics_of_a_replica(config, sharding, direct, namespace):
    mgr = ctrl.new_manager(
        config,
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        sharding=sharding,
        debug_bind_address="127.0.0.1:0",
        health_probe_bind_address="127.0.0.1:0",
    )
    add(mgr, lambda _: None)
    mgr.add(asyncio.Event().wait)
    await direct.create(config_map(namespace, "mine"))
    async with ctrl.running(mgr):

        async def is_ready() -> bool:
            return (await mgr.readiness.answer_one("sharding")).status == 200

        await eventually(is_ready, timeout=LONGEST_WAIT)
        await eventually(mgr.elected.is_set, timeout=LONGEST_WAIT)
        shards = await page(mgr, "shards")
        why = await page(mgr, f"why?kind=ConfigMap&namespace={namespace}&name=mine")
        html = await page(mgr, "")
        metrics = mgr.metrics.render()[0].decode()

    (replica,) = shards["ring"]["replicas"]
    assert (replica["pod"], replica["is_here"], replica["slots"], replica["leads"]) == ("me", True, 64, True)
    assert (shards["ring"]["slots"], shards["ring"]["unowned"], shards["ring"]["trouble"]) == (64, 0, "")
    shard = why["answers"][0]["shard"]
    assert (shard["owner"], shard["is_here"], shard["state"], shard["of"]) == ("me", True, "open", 64)
    assert "me (this one)" in html
    assert 'ctrlruntime_shard_slots{name="test",state="open"} 64.0' in metrics
    assert 'ctrlruntime_shard_members{name="test"} 1.0' in metrics
    assert 'ctrlruntime_shard_opened_total{name="test"} 65.0' in metrics
    assert 'leader_election_master_status{name="test"} 1.0' in metrics


async def notify(event: asyncio.Event) -> None:
    event.set()


async def page(mgr, path):
    """Return a debug page, decoded if it is JSON."""
    address = mgr.debug_address

    def get():
        with urllib.request.urlopen(f"http://{address}/debug/ctrlruntime/{path}", timeout=LONGEST_WAIT) as response:
            return response.headers["Content-Type"], response.read()

    kind, body = await asyncio.to_thread(get)
    return json.loads(body) if "json" in kind else body.decode()


@pytest.mark.usefixtures("given_back")
async def test_a_reconcile_of_a_lost_share_is_cancelled_and_cannot_write(mgr, direct, namespace):
    errors = []
    began = asyncio.Event()
    again = asyncio.Event()

    async def reconcile(request: ctrl.Request) -> None:
        if request.name != "mine":
            return
        if began.is_set():
            again.set()
            return
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await mgr.client.create(config_map(namespace, "too-late"))
            except FencedError as error:
                errors.append(str(error))

    add(mgr, reconcile)
    await direct.create(config_map(namespace, "mine"))
    async with ctrl.running(mgr):
        await asyncio.wait_for(began.wait(), LONGEST_WAIT)
        await expire(direct, namespace)
        await asyncio.wait_for(again.wait(), LONGEST_WAIT)  # it joined again, and got its share back
        await eventually(mgr.elected.is_set, timeout=LONGEST_WAIT)
        led = asyncio.Event()
        mgr.add(lambda: notify(led))
        await asyncio.wait_for(led.wait(), LONGEST_WAIT)

    assert errors == [f"write by controller configmap rejected: this process does not own {namespace}/mine any more"]
    assert await direct.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "too-late")) is None


@pytest.mark.usefixtures("given_back")
async def test_a_replica_that_was_cut_off_sees_what_happened_meanwhile(
    server, sharding, direct, namespace, monkeypatch
):
    """All its connections are dead, and no limit of a request or a watch would show that within this test."""
    monkeypatch.setattr("ctrlruntime.cache.reflector.SILENT_FOR", 0.0)
    seen: list[str] = []
    watch = ctrl.cache.WatchOptions(timeout=(600.0, 600.0))

    async def reconcile(request: ctrl.Request) -> None:
        found = await mgr.client.get_or_none(core.ConfigMap, request)
        seen.append(f"{request.name} {found.data.get('value') if found is not None else None}")

    with FaultProxy(server) as proxy:
        mgr = ctrl.new_manager(
            replace(proxy.config, timeout=600.0),
            cache=ctrl.CacheOptions(namespaces=[namespace], watch=watch),
            sharding=sharding,
        )
        add(mgr, reconcile)
        await direct.create(config_map(namespace, "mine"))
        async with ctrl.running(mgr):
            await eventually(lambda: "mine None" in seen, timeout=LONGEST_WAIT)
            before = await members(direct, namespace)
            with proxy.black_hole():
                pass
            await direct.patch(config_map(namespace, "mine"), ctrl.merge_patch({"data": {"value": "new"}}))
            await expire(direct, namespace)

            async def has_rejoined() -> bool:
                return not await members(direct, namespace) <= before

            await eventually(has_rejoined, timeout=LONGEST_WAIT)
            await eventually(lambda: "mine new" in seen, timeout=LONGEST_WAIT)


@pytest.mark.parametrize("moment", ["it gets slots", "it begins to write"])
async def test_a_process_that_takes_over_uses_no_idle_connection_from_before(server, namespace, sharding, moment):
    with FaultProxy(server) as proxy:
        config = replace(proxy.config, timeout=600.0)
        mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), sharding=sharding)
        await asyncio.gather(*(mgr.api_reader.list(core.ConfigMap, namespace=namespace) for _ in range(4)))
        with proxy.black_hole():
            pass

        if moment == "it gets slots":
            await mgr._fill(1)
        else:
            mgr._catch_up([])

        async with asyncio.timeout(LONGEST_WAIT):
            await mgr.api_reader.list(core.ConfigMap, namespace=namespace)
        await mgr.cluster.close()


@pytest.mark.usefixtures("given_back")
async def test_a_leader_that_loses_its_lease_ends_the_process(mgr, direct, namespace):
    led = asyncio.Event()

    async def lead() -> None:
        led.set()
        await asyncio.Event().wait()

    mgr.add(lead)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(led.wait(), LONGEST_WAIT)
    await expire(direct, namespace)

    with pytest.raises(LeaderElectionLostError, match="another replica may lead"):
        await asyncio.wait_for(task, LONGEST_WAIT)


@pytest.mark.usefixtures("given_back")
async def test_a_leader_whose_part_moves_ends_the_process(mgr):
    led = asyncio.Event()
    ended = asyncio.Event()

    async def lead() -> None:
        led.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    mgr.add(lead)
    task = asyncio.ensure_future(mgr.start())
    await asyncio.wait_for(led.wait(), LONGEST_WAIT)
    leader = mgr._replica.shards.count
    mgr._replica.shards.changed([Change(leader, SlotState.DRAINING, 1)])

    with pytest.raises(LeaderElectionLostError, match="moves to another replica"):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert ended.is_set()


async def test_writes_outside_controllers_wait_for_the_leader(mgr, namespace, direct):
    other = coordination.Lease(metadata=meta.ObjectMeta(name="test", namespace=namespace))
    other.spec.holder_identity, other.spec.lease_duration_seconds = "an elector", 3600
    await direct.create(other)
    add(mgr, lambda _: None)
    async with ctrl.running(mgr):
        await eventually(lambda: mgr._replica._task is not None, timeout=LONGEST_WAIT)
        answer = await mgr.readiness.answer_one("sharding")
        assert answer.status != 200
        with pytest.raises(FencedError):
            await mgr.client.create(config_map(namespace, "x"))
        assert not mgr.elected.is_set()


def in_a_reconcile(shard):
    """Run a block as a reconcile of the controller of a share. Before the start, no replica owns anything."""
    return acting(Actor("config", grant=Grant(lambda: lease_clock() + LONGEST_WAIT), share=shard))


async def test_a_write_to_an_object_of_another_replica_is_counted_and_logged_once(mgr, direct, namespace, logs):
    shard = mgr.new_shard("config", "name", core.ConfigMap)
    theirs = await direct.create(config_map(namespace, "theirs"))

    await mgr.cluster.client.update(theirs)  # outside a reconcile
    with in_a_reconcile(shard):
        await mgr.cluster.client.update(theirs, dry_run=True)
        await mgr.cluster.client.create(core.Secret(metadata=meta.ObjectMeta(name="child", namespace=namespace)))
        assert 'foreign_writes_total{name="test"} 0.0' in mgr.metrics.render()[0].decode()
        for _ in range(2):
            await mgr.cluster.client.update(theirs)

    assert 'foreign_writes_total{name="test"} 2.0' in mgr.metrics.render()[0].decode()
    (line,) = [each for each in logs if each["event"] == "a reconcile writes an object of another replica"]
    assert (line["controller"], line["kind"], line["object"]) == ("config", "ConfigMap", f"{namespace}/theirs")
    await mgr.cluster.close()


async def test_strict_sharding_rejects_a_write_to_an_object_of_another_replica(config, sharding, direct, namespace):
    mgr = ctrl.new_manager(config, sharding=replace(sharding, strict=True))
    shard = mgr.new_shard("config", "name", core.ConfigMap)
    theirs = await direct.create(config_map(namespace, "theirs"))
    theirs.data = {"changed": "yes"}

    with in_a_reconcile(shard):
        for write in (mgr.cluster.client.update, mgr.cluster.client.delete):
            with pytest.raises(ForeignShardError, match=f"write to ConfigMap {namespace}/theirs rejected") as raised:
                await write(theirs)
            assert raised.value.slot == shard.slot(ctrl.Request(namespace, "theirs"))

    assert (await direct.get(core.ConfigMap, ctrl.NamespacedName(namespace, "theirs"))).data == {}
    assert 'foreign_writes_total{name="test"} 2.0' in mgr.metrics.render()[0].decode()
    await mgr.cluster.close()


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("name", "other replicas reconcile some of them"),
        ("uid", "other replicas reconcile some of them"),
        ("namespace", "another replica reconciles slot"),
    ],
)
async def test_strict_sharding_rejects_the_deletion_of_all_objects(config, sharding, direct, namespace, by, why):
    mgr = ctrl.new_manager(config, sharding=replace(sharding, strict=True))
    shard = mgr.new_shard("config", by, core.ConfigMap)
    await direct.create(config_map(namespace, "theirs"))

    with (
        in_a_reconcile(shard),
        pytest.raises(ForeignShardError, match=f"write to all ConfigMap objects of {namespace} rejected: {why}"),
    ):
        await mgr.cluster.client.delete_all_of(core.ConfigMap, namespace=namespace)

    assert await direct.get(core.ConfigMap, ctrl.NamespacedName(namespace, "theirs"))
    await mgr.cluster.close()


@pytest.mark.usefixtures("sets_up_log")
@pytest.mark.parametrize("has_flags", [True, False])
async def test_without_sharding_a_sharded_controller_of_several_replicas_does_not_start(config, has_flags):
    elected = {"flags": ctrl.parse_flags(["--leader-elect"], environ={})} if has_flags else {}
    mgr = ctrl.new_manager(config, **(elected or {"leader_election": ctrl.LeaderElection("test")}))
    add(mgr, lambda _: None)

    with pytest.raises(ConfigError, match=r"sharded=True, but the manager has no sharding.*sharding=ctrl\.Sharding"):
        await mgr.start()


async def test_a_process_alone_needs_no_sharding_and_reconciles_everything(config, direct, namespace, logs):
    seen = asyncio.Queue()
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]))
    add(mgr, lambda request: seen.put_nowait(request.name))
    await direct.create(config_map(namespace, "mine"))

    async with ctrl.running(mgr):
        while await asyncio.wait_for(seen.get(), LONGEST_WAIT) != "mine":
            pass

    assert [each["level"] for each in logs if each["event"].startswith("no sharding")] == ["warning"]


def test_one_of_sharding_and_leader_election(config, sharding):
    with pytest.raises(ConfigError, match="Remove leader_election"):
        ctrl.new_manager(config, sharding=sharding, leader_election=ctrl.LeaderElection("test"))


async def test_outside_a_pod_sharding_needs_a_namespace(config):
    mgr = ctrl.new_manager(config, sharding=ctrl.Sharding("test"))
    with pytest.raises(ConfigError, match=r"sharding needs a namespace.*Sharding\(namespace=…\)"):
        await mgr.start()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slots": 100}, "slots is 100: give 64, 128 or 256"),
        ({"weight": 0}, "weight is 0"),
        ({"renew_period": 0.5}, "renew_period is 0.5 s"),
        ({"drain_timeout": -1}, "drain_timeout is -1 s"),
        ({"renew_deadline": 13}, "must be at least 1.25 times renew_deadline"),
        ({"renew_period": 6}, "must be at least twice renew_period"),
    ],
)
def test_options_that_do_not_fit_are_errors(options, message):
    with pytest.raises(ConfigError, match=message):
        ctrl.Sharding("test", **options)


def test_ids_and_rules_need_names():
    with pytest.raises(ConfigError, match="needs an id"):
        ctrl.Sharding("")
    with pytest.raises(ConfigError, match="needs a name"):
        ctrl.ShardKey("", lambda key: key.name)


def test_an_unknown_rule_is_an_error(mgr):
    with pytest.raises(ConfigError, match="controller configmap: shard_by is 'size'"):
        add(mgr, lambda _: None, shard_by="size")


def test_the_uid_is_that_of_an_object_in_for(mgr):
    builder = ctrl.new_controller_managed_by(mgr).named("texts").with_options(sharded=True, shard_by="uid")
    with pytest.raises(ConfigError, match=r"controller texts: shard_by='uid' needs for_\(\)"):
        builder.watches_raw_source(ctrl.source.Func(lambda queue: asyncio.sleep(0))).complete(lambda _: None)


def test_other_requests_need_an_own_rule(mgr):
    builder = ctrl.new_controller_managed_by(mgr, request=str).named("texts").with_options(sharded=True)
    with pytest.raises(ConfigError, match="needs requests of the class Request"):
        builder.watches_raw_source(ctrl.source.Func(lambda queue: asyncio.sleep(0))).complete(lambda _: None)
