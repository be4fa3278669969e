"""A key and an object belong to a cluster: no client of another cluster reads or writes with them; on both servers."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.client import intercept, namespaced, with_field_owner
from ctrlruntime.errors import WrongClusterError


@pytest.fixture
async def clusters(server, namespace):
    """A manager's own cluster and a further one named "eu", both running."""
    config = ctrl.get_config(str(server.kubeconfig_path))
    cache = ctrl.CacheOptions(namespaces=[namespace])
    mgr = ctrl.new_manager(config, cache=cache, metrics_bind_address="0")
    eu = ctrl.Cluster(config, name="eu", cache=cache)
    mgr.add(eu)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await eu.wait_running()
        yield mgr, eu


def readers(cluster, namespace):
    async def passed_on(client, kind, key):
        return await client.get(kind, key)

    client = cluster.client
    return {
        "client": client,
        "api_reader": cluster.api_reader,
        "cache": cluster.cache,
        "unfenced": cluster.unfenced_client(),
        "namespaced": namespaced(client, namespace),
        "namespaced api_reader": namespaced(client, namespace).api_reader,
        "with_field_owner": with_field_owner(client, "me"),
        "intercepted": intercept(client, get=passed_on),
    }


async def test_a_key_of_another_cluster_is_refused_by_every_reader(clusters, namespace):
    mgr, eu = clusters
    await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(namespace=namespace, name="web")))
    home_key, eu_key = ctrl.Request(namespace, "web"), ctrl.Request(namespace, "web", "eu")
    plain = ctrl.NamespacedName(namespace, "web")

    for name, reader in readers(mgr.cluster, namespace).items():
        with pytest.raises(
            ValueError, match="the key belongs to the cluster 'eu', the client to the manager's own cluster"
        ):
            await reader.get(core.ConfigMap, eu_key)
        with pytest.raises(ValueError, match=r"pass ctrl\.NamespacedName\(.*'web'\)"):
            await reader.get_or_none(core.ConfigMap, eu_key)
        for key in (home_key, plain):
            assert (await reader.get(core.ConfigMap, key)).metadata.name == "web", name
    for name, reader in readers(eu, namespace).items():
        with pytest.raises(
            ValueError, match="the key belongs to the manager's own cluster, the client to the cluster 'eu'"
        ):
            await reader.get(core.ConfigMap, home_key)
        for key in (eu_key, plain):
            assert (await reader.get(core.ConfigMap, key)).metadata.name == "web", name


@pytest.mark.parametrize("write", [ctrl.create_or_update, ctrl.create_or_patch])
async def test_no_object_is_created_for_a_key_of_another_cluster(clusters, namespace, write):
    mgr, eu = clusters
    with pytest.raises(ValueError, match="the key belongs to the cluster 'eu'"):
        await write(mgr.client, core.ConfigMap, ctrl.Request(namespace, "web", "eu"))
    assert await mgr.api_reader.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "web")) is None

    assert (await write(eu.client, core.ConfigMap, ctrl.Request(namespace, "web", "eu")))[1] == "created"
    assert await mgr.api_reader.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, "web")) is not None


async def test_an_object_of_another_cluster_is_refused_by_every_writer(clusters, namespace):
    mgr, eu = clusters
    key = ctrl.NamespacedName(namespace, "web")
    await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(namespace=namespace, name="web")))
    patch = ctrl.merge_patch({"data": {"a": "b"}})
    read_by = {
        "get": lambda cluster: cluster.client.get(core.ConfigMap, key),
        "live": lambda cluster: cluster.api_reader.get(core.ConfigMap, key),
        "list": lambda cluster: _first(cluster.client.list(core.ConfigMap)),
        "copy": lambda cluster: _copied(cluster.client.get(core.ConfigMap, key)),
    }
    for where, other, names in (
        (mgr.cluster, eu, ("the manager's own cluster", "the cluster 'eu'")),
        (eu, mgr.cluster, ("the cluster 'eu'", "the manager's own cluster")),
    ):
        message = f"web: it was read from {names[0]}, and the client is that of {names[1]}"
        for name, read in read_by.items():
            found = await read(where)
            for writes in (
                other.client.create(found),
                other.client.update(found),
                other.client.patch(found, patch),
                other.client.apply(found),
                other.client.delete(found),
                other.client.status.update(found),
                other.client.subresource("eviction").create(found, core.ConfigMap()),
            ):
                with pytest.raises(WrongClusterError, match=message):
                    await writes
            assert (await where.client.patch(found, patch)).data == {"a": "b"}, name
        fresh = core.ConfigMap(metadata=meta.ObjectMeta(namespace=namespace, name="web"), data=found.data)
        assert (await other.client.update(fresh)).data == {"a": "b"}


async def _first(listing):
    return next(each for each in await listing if each.metadata.name == "web")


async def _copied(getting):
    return (await getting).deep_copy()


async def test_a_plain_reconciler_is_refused_like_an_async_one(clusters, namespace):
    mgr, _ = clusters
    loop = asyncio.get_running_loop()
    refused = asyncio.Event()
    texts = []

    def reconcile(request):
        try:
            ctrl.blocking(mgr.client.get(core.ConfigMap, ctrl.Request(request.namespace, request.name, "eu")))
        except ValueError as error:
            texts.append(str(error))
            loop.call_soon_threadsafe(refused.set)

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(namespace=namespace, name="web")))
    await asyncio.wait_for(refused.wait(), LONGEST_WAIT)
    assert "the key belongs to the cluster 'eu'" in texts[0]


async def test_the_numbers_of_a_further_cluster_are_scraped_with_the_managers(clusters, namespace):
    mgr, eu = clusters
    await eu.client.list(core.ConfigMap)
    text = mgr.metrics.render()[0].decode()
    assert 'ctrlruntime_cache_objects{cluster="eu"' in text
    host = eu.config.host.removeprefix("https://")
    # Both talk to one server here: their requests are one sample, not two of one name.
    name = f'rest_client_requests_total{{code="200",host="{host}",method="GET"}}'
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    counts = [metrics.rest.counts().get(("200", "GET", host), 0) for metrics in (mgr.metrics, eu.metrics)]
    assert float(line.rpartition(" ")[2]) == sum(counts)
    assert counts[1] > 0
