"""The cache on both servers: it lists in pages, watches, waits for kinds, and never shows what a reader must not see."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from pydantic import Field
from servers import LONGEST_WAIT

from ctrlruntime.api import core, meta
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, PartialObjectMetadata, Unstructured
from ctrlruntime.cache.cache import Cache, running
from ctrlruntime.cache.options import ByObject, CacheOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.client import APIClient
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.split import SplitClient
from ctrlruntime.errors import CacheError, Forbidden, NoMatchError, NotCachedError, NotFound
from ctrlruntime.event import CreateEvent, DeleteEvent, UpdateEvent
from ctrlruntime.rest import RESTMapper, get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import eventually

PAGED, STREAMED = (WatchOptions(streaming_list=streamed, timeout=(2.0, 3.0)) for streamed in (False, True))
ConfigMapMetadata = PartialObjectMetadata.of(core.ConfigMap)


class SprocketSpec(Model):
    size: int = 0


class Sprocket(Object, group="cache-tests.example.com", version="v1"):
    spec: SprocketSpec = Field(default_factory=SprocketSpec)


SPROCKETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sprockets.cache-tests.example.com"},
    "spec": {
        "group": "cache-tests.example.com",
        "names": {"plural": "sprockets", "singular": "sprocket", "kind": "Sprocket", "listKind": "SprocketList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}},
            }
        ],
    },
}  # fmt: skip


class Cluster:
    """The parts of a cluster without a manager: api (direct), cache, client (reads from the cache)."""

    def __init__(self, kubeconfig, options):
        self.transport = Transport(get_config(str(kubeconfig)))
        mapper = RESTMapper(self.transport.fetch)
        scheme = Scheme(Sprocket)
        self.gate = Gate()
        self.api = APIClient(self.transport, mapper, scheme, gate=self.gate)
        self.cache = Cache(self.transport, mapper, scheme, options=options)
        self.gate.watch_views(self.cache.views)
        self.client = SplitClient(self.api, self.cache, self.gate)

    def informer(self, kind):
        return next(found for gvk, found in self.cache.informers().items() if gvk.kind == kind)


@asynccontextmanager
async def cluster(server, kubeconfig=None, **options):
    options.setdefault("watch", PAGED)
    made = Cluster(kubeconfig or server.kubeconfig_path, CacheOptions(**options))
    try:
        async with running(made.cache):
            yield made
    finally:
        await made.transport.close()
        await asyncio.sleep(0.05)  # TLS connections say good-bye


def config_map(namespace, name, **more):
    labels = more.pop("labels", {})
    return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace, labels=labels), **more)


async def next_event(subscription, name):
    """Return the next event of the object with this name: kube-controller-manager writes a ConfigMap of its own at any time."""
    async with asyncio.timeout(LONGEST_WAIT):
        while (event := await subscription.get()).meta.name != name:
            pass
    return event


async def create_many(api, namespace, count):
    limit = asyncio.Semaphore(20)

    async def create(number):
        async with limit:
            await api.create(config_map(namespace, f"many-{number:04}", data={"n": str(number)}))

    await asyncio.gather(*(create(number) for number in range(count)))


@pytest.mark.parametrize("watch", [PAGED, STREAMED], ids=["pages", "stream"])
async def test_a_list_of_1200_keeps_all(server, namespace, watch):
    async with cluster(server, namespaces=[namespace], watch=watch) as made:
        await create_many(made.api, namespace, 1200)

        found = await made.cache.list(core.ConfigMap)

        names = {item.name for item in found.metadata}
        assert {f"many-{number:04}" for number in range(1200)} <= names
        assert found.resource_version.isdecimal()
        listed = await made.cache.get(core.ConfigMap, NamespacedName(namespace, "many-0777"))
        assert listed.data == {"n": "777"}
        assert listed.metadata.managed_fields == []
        assert b"managedFields" not in b"".join(found.raw_items)


@pytest.mark.parametrize("watch", [PAGED, STREAMED], ids=["pages", "stream"])
async def test_changes_arrive_in_order_over_several_watches(server, namespace, watch):
    async with cluster(server, namespaces=[namespace], watch=watch) as made:
        first = await made.api.create(config_map(namespace, "first"))
        subscription = await made.cache.subscribe(core.ConfigMap, name="test")
        created = await next_event(subscription, "first")
        assert isinstance(created, CreateEvent)
        assert created.is_in_initial_list

        for round_ in range(3):
            first.data = {"round": str(round_)}
            await made.api.update(first)
            event = await next_event(subscription, "first")
            assert isinstance(event, UpdateEvent)
            assert event.new.data == {"round": str(round_)}
            reflector = next(iter(made.informer("ConfigMap")._reflectors.values()))
            watches = reflector.watches

            async def has_begun_another(reflector=reflector, watches=watches):
                return reflector.watches > watches

            await eventually(has_begun_another, timeout=LONGEST_WAIT)  # the watch ended; nothing may be lost in between
        await made.api.delete(first)
        event = await next_event(subscription, "first")
        assert isinstance(event, DeleteEvent)
        assert not event.delete_state_unknown
        with pytest.raises(NotFound):
            await made.cache.get(core.ConfigMap, NamespacedName(namespace, "first"))
        assert made.informer("ConfigMap")._reflectors
        assert reflector.relists == 1


async def test_a_read_after_a_write_is_never_older_than_it(server, namespace):
    async with cluster(server, namespaces=[namespace]) as made:
        client, key = made.client, NamespacedName(namespace, "mine")
        await client.list(core.ConfigMap)
        mine = await client.create(config_map(namespace, "mine"))
        for number in range(30):
            mine.data = {"n": str(number)}
            await client.update(mine)
            assert (await client.get(core.ConfigMap, key)).data == {"n": str(number)}
            listed = {item.metadata.name: item.data for item in await client.list(core.ConfigMap, namespace=namespace)}
            assert listed["mine"] == {"n": str(number)}
        await client.delete(mine)
        assert await client.get_or_none(core.ConfigMap, key) is None
        assert made.gate.read_fallbacks == 0


async def test_a_crd_installed_late_is_found_and_read(server, namespace):
    async with cluster(server, namespaces=[namespace]) as made:
        with pytest.raises(NoMatchError):
            await made.cache.get(Sprocket, NamespacedName(namespace, "one"))
        subscription = await made.cache.subscribe(Sprocket, name="test")
        assert not subscription.is_synced

        await asyncio.to_thread(server.install_crds, [SPROCKETS])
        try:
            one = Sprocket(metadata=meta.ObjectMeta(name="one", namespace=namespace), spec=SprocketSpec(size=3))

            async def is_created():
                try:
                    return await made.api.create(one)
                except NoMatchError:  # discovery is asked again after a moment
                    return None

            await eventually(is_created, timeout=LONGEST_WAIT)
            event = await asyncio.wait_for(subscription.get(), LONGEST_WAIT)
            assert event.object.spec.size == 3
            assert (await made.cache.get(Sprocket, NamespacedName(namespace, "one"))).spec.size == 3
        finally:
            await asyncio.to_thread(
                server.connection.request, "DELETE",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sprockets.cache-tests.example.com",
            )  # fmt: skip
        event = await asyncio.wait_for(subscription.get(), LONGEST_WAIT)
        assert isinstance(event, DeleteEvent)


async def test_a_set_of_namespaces_holds_those_and_no_others(server, namespace, new_namespace):
    second, third = [await asyncio.to_thread(new_namespace) for _ in range(2)]
    async with cluster(server, namespaces=[namespace, second]) as made:
        for space in (namespace, second, third):
            await made.api.create(config_map(space, "here"))

        async def found():
            return {item.key for item in (await made.cache.list(core.ConfigMap)).metadata if item.name == "here"}

        both = {NamespacedName(namespace, "here"), NamespacedName(second, "here")}
        async with asyncio.timeout(LONGEST_WAIT):
            while await found() != both:
                await made.informer("ConfigMap").changed()
        assert [item.name for item in (await made.cache.list(core.ConfigMap, namespace=second)).metadata if item.name == "here"] == ["here"]  # fmt: skip
        with pytest.raises(NotCachedError, match="outside the cache"):
            await made.cache.get(core.ConfigMap, NamespacedName(third, "here"))
        spaces = {item.name for item in (await made.cache.list(core.Namespace)).metadata}
        assert {namespace, second, third} <= spaces  # cluster-scoped kinds are held whole


async def test_selectors_are_the_servers_and_an_object_that_leaves_them_is_gone(server, namespace):
    options = {core.ConfigMap: ByObject(labels="app in (a,b),!hidden")}
    async with cluster(server, namespaces=[namespace], by_object=options) as made:
        for name, labels in (("one", {"app": "a"}), ("two", {"app": "c"}), ("three", {"app": "b", "hidden": "1"})):
            await made.api.create(config_map(namespace, name, labels=labels))
        assert [item.name for item in (await made.cache.list(core.ConfigMap)).metadata] == ["one"]
        subscription = await made.cache.subscribe(core.ConfigMap, name="test")
        assert isinstance(await next_event(subscription, "one"), CreateEvent)

        leaver = await made.client.get(core.ConfigMap, NamespacedName(namespace, "one"))
        leaver.metadata.labels = {"app": "c"}
        await made.client.update(leaver)

        assert isinstance(await next_event(subscription, "one"), DeleteEvent)
        with pytest.raises(NotFound, match="which holds only objects with labels"):
            await made.client.get(core.ConfigMap, NamespacedName(namespace, "one"))


async def test_field_selectors_go_to_the_server(server, namespace):
    options = {core.ConfigMap: ByObject(fields={"metadata.name": "only"})}
    async with cluster(server, namespaces=[namespace], by_object=options) as made:
        for name in ("only", "other"):
            await made.api.create(config_map(namespace, name))

        assert [item.name for item in (await made.cache.list(core.ConfigMap)).metadata] == ["only"]


@pytest.mark.parametrize("watch", [PAGED, STREAMED], ids=["pages", "stream"])
async def test_metadata_alone_comes_over_the_wire_and_a_wider_reader_makes_it_whole(server, namespace, watch):
    async with cluster(server, namespaces=[namespace], watch=watch) as made:
        await made.api.create(config_map(namespace, "mine", data={"large": "x" * 1000}, labels={"app": "a"}))
        key = NamespacedName(namespace, "mine")
        subscription = await made.cache.subscribe(ConfigMapMetadata, name="test")

        narrow = await made.cache.get(ConfigMapMetadata, key)

        assert (narrow.kind, narrow.metadata.labels) == ("ConfigMap", {"app": "a"})
        assert b"large" not in made.informer("ConfigMap").store.get(*key).raw
        event = await next_event(subscription, "mine")
        assert event.object.to_dict().keys() == {"apiVersion", "kind", "metadata"}
        changed = await made.api.update(config_map(namespace, "mine", data={"large": "y"}))
        event = await next_event(subscription, "mine")
        assert event.meta.resource_version == changed.metadata.resource_version

        assert (await made.cache.get(core.ConfigMap, key)).data == {"large": "y"}
        assert (await made.cache.get(Unstructured.of("v1", "ConfigMap"), key))["data"] == {"large": "y"}
        again = await made.api.update(config_map(namespace, "mine", data={"large": "z"}))
        while (await next_event(subscription, "mine")).meta.resource_version != again.metadata.resource_version:
            pass  # the wider list may tell the last version once more


async def test_a_forbidden_kind_is_told_at_once_and_read_once_it_is_permitted(server, namespace, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(await asyncio.to_thread(server.add_user, f"cache-{namespace}"))
    connection = server.connection
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    async with cluster(server, path, namespaces=[namespace]) as made:
        with pytest.raises(Forbidden, match="configmaps is forbidden"):
            await asyncio.wait_for(made.cache.list(core.ConfigMap), LONGEST_WAIT)
        assert "forbidden" in made.cache.unsynced()["v1, Kind=ConfigMap"]

        await asyncio.to_thread(connection.request, "POST", f"{rbac}/roles", {
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
        })  # fmt: skip
        await asyncio.to_thread(connection.request, "POST", f"{rbac}/rolebindings", {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"cache-{namespace}"}],
        })  # fmt: skip

        await asyncio.wait_for(made.informer("ConfigMap").wait_for_sync(), LONGEST_WAIT)
        assert made.cache.unsynced() == {}
        assert await made.cache.list(core.ConfigMap) is not None


async def test_a_removed_kind_is_read_anew(server, namespace):
    async with cluster(server, namespaces=[namespace]) as made:
        subscription = await made.cache.subscribe(core.ConfigMap, name="test")
        await made.cache.list(core.ConfigMap)
        with pytest.raises(CacheError, match="watched by test"):
            await made.cache.remove_informer(core.ConfigMap)
        subscription.stop()
        await made.cache.remove_informer(core.ConfigMap)
        assert made.cache.informers() == {}
        await made.client.create(config_map(namespace, "later"))

        assert (await made.client.get(core.ConfigMap, NamespacedName(namespace, "later"))).metadata.name == "later"


async def test_an_index_answers_field_selectors(server, namespace):
    async with cluster(server, namespaces=[namespace]) as made:
        made.cache.index_field(core.ConfigMap, "data.color")
        for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
            await made.client.create(config_map(namespace, name, data={"color": color}))

        async def of_color(color):
            return sorted(item.name for item in (await made.client.list(core.ConfigMap, fields={"data.color": color})).metadata)  # fmt: skip

        assert await of_color("red") == ["a", "c"]
        changed = await made.client.get(core.ConfigMap, NamespacedName(namespace, "a"))
        changed.data = {"color": "blue"}
        await made.client.update(changed)
        assert await of_color("red") == ["c"]
        assert await of_color("blue") == ["a", "b"]
