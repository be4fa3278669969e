"""Reads after writes whose outcome is unknown: answered by the cache's own scope, and at once on a quiet kind; on both servers."""

from __future__ import annotations

import asyncio
import time

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta, rbac
from ctrlruntime.errors import APIStatusError, NotFound, ObjectNotCachedError, StaleReadError, TransportError
from ctrlruntime.testing.faults import FaultProxy, Match

WAIT = 240.0  # seconds a read may wait: a read that ends much earlier did not wait for a bookmark
PROMPT = WAIT / 2
WRITES = Match(verb={"create", "update", "patch", "delete", "deletecollection"}, resource="configmaps")


@pytest.fixture
def proxy(server):
    with FaultProxy(server) as proxy:
        yield proxy


def manager(proxy, namespace, **options):
    cache = ctrl.CacheOptions(**{"namespaces": [namespace], **options})
    return ctrl.new_manager(proxy.config, cache=cache, metrics_bind_address="0", read_your_writes_timeout=WAIT)


def config_map(namespace, name, **labels):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=labels))


def names(items):
    """Return the names of the ConfigMaps of the tests: kube-controller-manager creates one in each namespace, at any time."""
    return sorted(item.name for item in items.metadata if item.name != "kube-root-ca.crt")


async def lose(proxy, write, *, reaches_server):
    """Run a write whose answer does not arrive."""
    fault = proxy.drop_response(WRITES) if reaches_server else proxy.respond(WRITES, 503, count=None)
    with fault, pytest.raises((TransportError, APIStatusError)):
        await write


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_lost_create_is_settled_by_one_list_of_its_key(proxy, namespace, reaches_server):
    mgr = manager(proxy, namespace)
    key = ctrl.NamespacedName(namespace, "lost")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await lose(proxy, mgr.client.create(config_map(namespace, "lost")), reaches_server=reaches_server)
        proxy.forget()
        started = time.monotonic()

        listed = names(await mgr.client.list(core.ConfigMap))
        found = await mgr.client.get_or_none(core.ConfigMap, key)

        assert listed == (["lost"] if reaches_server else [])
        assert (found is not None) is reaches_server
        assert time.monotonic() - started < PROMPT
        assert mgr.cluster.gate.read_fallbacks == 0


async def test_a_collection_delete_that_matched_nothing_delays_no_read(proxy, namespace):
    mgr = manager(proxy, namespace)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.ConfigMap)
        await mgr.client.delete_all_of(core.ConfigMap, namespace=namespace, labels={"app": "none"})
        proxy.forget()

        await mgr.client.list(core.ConfigMap)

        assert proxy.matching(Match(verb={"get", "list"}, resource="configmaps")) == []
        assert mgr.cluster.gate.waits == 0


async def test_a_collection_delete_shows_what_finalizers_keep_as_terminating(proxy, namespace):
    mgr = manager(proxy, namespace)
    mine = {"example.com/mine": "yes"}
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        for number in range(5):
            kept, gone = (
                config_map(namespace, f"kept-{number}", **mine),
                config_map(namespace, f"gone-{number}", **mine),
            )
            ctrl.add_finalizer(kept, "example.com/held")
            await mgr.client.create(kept)
            await mgr.client.create(gone)

            await mgr.client.delete_all_of(core.ConfigMap, namespace=namespace, labels=mine)

            listed = await mgr.client.list(core.ConfigMap, labels=mine)
            assert [(one.name, one.deletion_timestamp is not None) for one in listed.metadata] == [
                (f"kept-{number}", True)
            ]
            kept = await mgr.client.get(core.ConfigMap, ctrl.object_key(kept))
            ctrl.remove_finalizer(kept, "example.com/held")
            await mgr.client.update(kept)


@pytest.mark.parametrize("reaches_server", [True, False])
async def test_a_lost_collection_delete_is_settled_by_one_list(proxy, namespace, reaches_server):
    mgr = manager(proxy, namespace, by_object={core.ConfigMap: ctrl.cache.ByObject(labels={"app": "x"})})
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        for name in ("a", "b"):
            await mgr.client.create(config_map(namespace, name, app="x"))
        delete = mgr.client.delete_all_of(core.ConfigMap, namespace=namespace, labels={"app": "x"})
        await lose(proxy, delete, reaches_server=reaches_server)
        started = time.monotonic()

        assert names(await mgr.client.list(core.ConfigMap)) == ([] if reaches_server else ["a", "b"])
        assert time.monotonic() - started < PROMPT


async def test_a_live_list_has_the_selectors_of_the_cache_and_its_indexes(proxy, namespace):
    """While the watch is silent the cache cannot show a write: the read falls back to a live one."""
    cache = {"by_object": {core.ConfigMap: ctrl.cache.ByObject(labels={"app": "x"})}}
    mgr = ctrl.new_manager(
        proxy.config,
        cache=ctrl.CacheOptions(namespaces=[namespace], **cache),
        metrics_bind_address="0",
        read_your_writes_timeout=0.2,
    )
    mgr.cache.index_field(core.ConfigMap, "data.color")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.create(config_map(namespace, "outside", app="other"))
        first = config_map(namespace, "first", app="x")
        first.data = {"color": "red"}
        await mgr.client.create(first)
        await mgr.client.get(core.ConfigMap, ctrl.object_key(first))
        with proxy.stall(Match(verb="watch", resource="configmaps")):
            second = config_map(namespace, "second", app="x")
            second.data = {"color": "red"}
            await mgr.client.create(second)

            assert names(await mgr.client.list(core.ConfigMap)) == ["first", "second"]
            assert names(await mgr.client.list(core.ConfigMap, labels={"app": "other"})) == []
            red = await mgr.client.list(core.ConfigMap, fields={"data.color": "red"})
            assert names(red) == ["first", "second"]
            assert (await mgr.client.get(core.ConfigMap, ctrl.object_key(second))).data == {"color": "red"}
            other = ctrl.NamespacedName(namespace, "outside")
            with pytest.raises(ObjectNotCachedError):
                await mgr.client.get(core.ConfigMap, other)
        assert mgr.cluster.gate.read_fallbacks >= 3


async def test_a_key_of_another_cluster_is_refused_while_a_write_is_in_doubt(proxy, namespace):
    mgr = ctrl.new_manager(
        proxy.config,
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        metrics_bind_address="0",
        read_your_writes_timeout=0.2,
    )
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.ConfigMap)
        with proxy.stall(Match(verb="watch", resource="configmaps")):
            await mgr.client.create(config_map(namespace, "mine"))

            with pytest.raises(ValueError, match="belongs to the cluster 'other'"):
                await mgr.client.get(core.ConfigMap, ctrl.Request(namespace, "mine", cluster="other"))


async def test_under_a_namespaced_role_a_live_list_asks_for_no_more_than_the_cache(server, proxy, namespace, tmp_path):
    user = f"reader-{namespace}"
    kubeconfig = await asyncio.to_thread(server.add_user, user)
    admin = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0").cluster
    verbs = ["get", "list", "watch", "create", "update"]
    role = rbac.Role(
        metadata=meta.ObjectMeta(name="reader", namespace=namespace),
        rules=[rbac.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=verbs)],
    )
    binding = rbac.RoleBinding(
        metadata=meta.ObjectMeta(name="reader", namespace=namespace),
        role_ref=rbac.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader"),
        subjects=[rbac.Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")],
    )
    for obj in (role, binding):
        await admin.unfenced_client().create(obj)
    await admin.close()
    path = tmp_path / "kubeconfig"
    path.write_text(proxy.kubeconfig_for(kubeconfig))
    mgr = ctrl.new_manager(
        ctrl.get_config(str(path)),
        cache=ctrl.CacheOptions(namespaces=[namespace]),
        metrics_bind_address="0",
        read_your_writes_timeout=WAIT,
    )
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.ConfigMap)
        await lose(proxy, mgr.client.create(config_map(namespace, "lost")), reaches_server=True)

        assert "lost" in names(await mgr.client.list(core.ConfigMap))
        assert "lost" in names(await mgr.client.list(core.ConfigMap, namespace=namespace))


async def test_while_the_server_fails_only_reads_of_the_unknown_key_fail(proxy, namespace):
    mgr = manager(proxy, namespace)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.create(config_map(namespace, "known"))
        await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(namespace, "known"))
        with proxy.respond(Match(resource="configmaps", verb={"create", "get", "list"}), 503):
            with pytest.raises(APIStatusError):
                await mgr.client.create(config_map(namespace, "lost"))

            assert await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(namespace, "known"))
            with pytest.raises(
                StaleReadError, match=r"cannot read ConfigMap from the cache: since .* it may lack a write"
            ):
                await mgr.client.list(core.ConfigMap)
            with pytest.raises(StaleReadError) as raised:
                await mgr.client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "lost"))
        assert raised.value.kind == "ConfigMap"
        assert raised.value.age > 0

        assert await mgr.client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "lost")) is None
        assert "known" in names(await mgr.client.list(core.ConfigMap))


async def test_an_object_that_field_selectors_keep_out_delays_a_read_for_a_moment(proxy, namespace):
    fields = "metadata.name!=hidden"
    mgr = manager(proxy, namespace, by_object={core.ConfigMap: ctrl.cache.ByObject(fields=fields)})
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.ConfigMap)
        await mgr.client.create(config_map(namespace, "hidden"))
        started = time.monotonic()

        assert "hidden" not in names(await mgr.client.list(core.ConfigMap))

        assert time.monotonic() - started < PROMPT


@pytest.mark.parametrize("write", [ctrl.create_or_update, ctrl.create_or_patch])
async def test_a_cluster_scoped_object_is_created_and_updated_by_a_key_with_a_namespace(server, namespace, write):
    mgr = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0")
    kind = ctrl.Unstructured.of("rbac.authorization.k8s.io/v1", "ClusterRole")
    key = ctrl.NamespacedName("anywhere", f"{namespace}-{write.__name__.replace('_', '-')}")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        results = []
        for label in ("one", "one", "two"):

            def mutate(found, label=label):
                found.metadata.labels["label"] = label

            found, result = await write(mgr.client, kind, key, mutate)
            results.append(str(result))

        assert results == ["created", "unchanged", "updated"]
        await mgr.client.delete(found)


async def test_own_creates_of_a_cluster_scoped_kind_are_shown_for_a_key_with_a_namespace(server, namespace):
    mgr = ctrl.new_manager(ctrl.get_config(str(server.kubeconfig_path)), metrics_bind_address="0")
    kind = ctrl.Unstructured.of("rbac.authorization.k8s.io/v1", "ClusterRole")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(rbac.ClusterRole)
        await mgr.client.list(kind)
        for number in range(10):
            key = ctrl.NamespacedName("anywhere", f"{namespace}-{number}")
            created = rbac.ClusterRole(metadata=meta.ObjectMeta(name=key.name))
            await mgr.client.create(created)

            assert (await mgr.client.get(rbac.ClusterRole, key)).metadata.name == key.name
            assert (await mgr.client.get(kind, key)).metadata.name == key.name

            await mgr.client.delete(created)
            with pytest.raises(NotFound):
                await mgr.client.get(rbac.ClusterRole, key)
