"""What a cache holds may change while it runs: namespaces, their labels, kinds. Exactly those requests begin and end, on both servers."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.errors import NamespaceNotCachedError, NotFound, ObjectNotCachedError
from ctrlruntime.testing import eventually


@pytest.fixture
def three(new_namespace):
    return [new_namespace() for _ in range(3)]


def manager(server, **options):
    config = ctrl.get_config(str(server.kubeconfig_path))
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(**options), metrics_bind_address="0")


def config_map(namespace, name, **labels):
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=labels))


class Seen:
    """A reconciler that notes what it is asked about."""

    def __init__(self):
        self.requests = set()

    async def reconcile(self, request):
        self.requests.add((request.namespace, request.name))


class Calls:
    """Lists and watches of ConfigMaps by namespace, as the cache announces them to observers."""

    def __init__(self, mgr):
        self.noted = []
        mgr.cluster.observers.add_observer(self.note)

    def note(self, call):
        if call.origin == "cache" and call.resource in {"configmaps", "services"}:
            self.noted.append((call.verb, call.resource, call.namespace))


async def test_namespaces_come_and_go_while_a_controller_works(server, three):
    one, two, other = three
    mgr = manager(server, namespaces=[one])
    calls, seen = Calls(mgr), Seen()
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("scopes").complete(seen)
    for name in three:
        await mgr.api_reader.create(config_map(name, "mine"))
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.Service)
        await eventually(lambda: (one, "mine") in seen.requests, timeout=LONGEST_WAIT)
        informer = next(found for gvk, found in mgr.cache.informers().items() if gvk.kind == "ConfigMap")
        kept = next(iter(informer._reflectors.values()))
        watches = kept.watches
        calls.noted.clear()

        await mgr.cache.add_namespace(two)
        await eventually(lambda: (two, "mine") in seen.requests)

        assert set(calls.noted) == {
            (verb, what, two) for verb in ("list", "watch") for what in ("configmaps", "services")
        }
        assert (await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(two, "mine"))).metadata.namespace == two

        seen.requests.clear()
        size = informer.store.size_bytes
        await mgr.cache.remove_namespace(two)
        await eventually(lambda: (two, "mine") in seen.requests)

        assert informer.store.size_bytes < size
        with pytest.raises(NamespaceNotCachedError):
            await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(two, "mine"))
        live = await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(two, "mine"), live_fallback=True)
        assert live.metadata.name == "mine"
        seen.requests.clear()
        await mgr.client.create(config_map(two, "later"))
        await mgr.client.create(config_map(one, "later"))
        await eventually(lambda: (one, "later") in seen.requests, timeout=LONGEST_WAIT)
        assert (two, "later") not in seen.requests
        assert kept in informer._reflectors.values()
        assert kept.watches <= watches + 1  # it may have ended by itself meanwhile
        assert (other, "mine") not in seen.requests


async def test_namespaces_are_followed_by_their_labels(server, three):
    one, two, _ = three
    mgr = manager(server, namespace_selector="scopes.example.com/team=a")
    seen = Seen()
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("labels").complete(seen)
    for name in three:
        await mgr.api_reader.create(config_map(name, "mine"))

    async def label(name, team):
        patch = ctrl.merge_patch({"metadata": {"labels": {"scopes.example.com/team": team}}})
        await mgr.client.patch(core.Namespace(metadata=meta.ObjectMeta(name=name)), patch)

    await label(one, "a")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await eventually(lambda: (one, "mine") in seen.requests, timeout=LONGEST_WAIT)
        assert mgr.cache.namespaces == {one}

        await label(two, "a")
        await eventually(lambda: (two, "mine") in seen.requests)
        seen.requests.clear()
        await label(one, None)
        await eventually(lambda: (one, "mine") in seen.requests)

        assert mgr.cache.namespaces == {two}
        with pytest.raises(NamespaceNotCachedError):
            await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(one, "mine"))

        await label(one, "b")
        await mgr.cache.select_namespaces("scopes.example.com/team=b")
        await eventually(lambda: mgr.cache.namespaces == {one})
        assert (await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(one, "mine"))).metadata.name == "mine"


async def test_a_miss_in_a_selection_is_told_from_a_missing_object(server, namespace):
    options = {core.ConfigMap: ctrl.cache.ByObject(labels="app=shown")}
    mgr = manager(server, namespaces=[namespace], by_object=options)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.create(config_map(namespace, "shown", app="shown"))
        await mgr.client.create(config_map(namespace, "hidden"))
        shown, hidden, none = (ctrl.NamespacedName(namespace, name) for name in ("shown", "hidden", "none"))

        assert (await mgr.client.get(core.ConfigMap, shown)).metadata.name == "shown"
        with pytest.raises(ObjectNotCachedError, match=r"labels app=shown\. .*live_fallback=True"):
            await mgr.client.get(core.ConfigMap, hidden)
        assert await mgr.client.get_or_none(core.ConfigMap, hidden) is None
        assert (await mgr.client.get(core.ConfigMap, hidden, live_fallback=True)).metadata.name == "hidden"
        with pytest.raises(NotFound) as caught:
            await mgr.client.get(core.ConfigMap, none, live_fallback=True)
        assert type(caught.value) is NotFound


async def test_a_kind_nobody_watches_is_read_live_where_that_is_declared_and_no_watch_begins(server, namespace):
    mgr = manager(server, namespaces=[namespace], on_missing_informer="live")
    calls = Calls(mgr)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.create(config_map(namespace, "live"))

        assert (await mgr.client.get(core.ConfigMap, ctrl.NamespacedName(namespace, "live"))).metadata.name == "live"
        assert "live" in {item.name for item in (await mgr.client.list(core.ConfigMap, namespace=namespace)).metadata}
        assert calls.noted == []
        assert mgr.cache.informers() == {}


async def test_a_kind_removed_ends_its_watch_and_frees_it_while_others_go_on(server, namespace):
    mgr = manager(server, namespaces=[namespace])
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await mgr.client.list(core.ConfigMap)
        await mgr.client.list(core.Service)
        informers = {gvk.kind: informer for gvk, informer in mgr.cache.informers().items()}
        watches = [reflector.watches for reflector in informers["Service"]._reflectors.values()]

        await mgr.cache.remove_informer(core.ConfigMap)

        assert {gvk.kind for gvk in mgr.cache.informers()} == {"Service"}
        assert informers["ConfigMap"].is_stopped
        await mgr.client.create(config_map(namespace, "again"))
        assert "again" in {item.name for item in (await mgr.client.list(core.ConfigMap)).metadata}
        assert [reflector.watches for reflector in informers["Service"]._reflectors.values()] <= [
            n + 1 for n in watches
        ]
