"""The cache as a Reader: starting, widths, indexes, namespaces, removal; its collections are in memory."""

from __future__ import annotations

import asyncio
import json
from random import Random

import pytest
from cache_server import HANGS, Script, Time, deleted, drain, eventually, modified, obj, page
from captured_log import captured_log
from servers import LONGEST_WAIT

from ctrlruntime.api.core import v1 as core
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import PartialObjectMetadata, Unstructured
from ctrlruntime.cache import cache as cache_module
from ctrlruntime.cache.cache import Cache, running
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.options import ByObject, CacheOptions, NamespaceOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.client.marks import NOT_CACHED
from ctrlruntime.errors import (
    CacheError,
    CacheNotStartedError,
    CacheSyncTimeoutError,
    ConfigError,
    DecodeError,
    Forbidden,
    NamespaceNotCachedError,
    NoMatchError,
    NotCachedError,
    NotFound,
    ObjectNotCachedError,
)
from ctrlruntime.event import CreateEvent, DeleteEvent, UpdateEvent
from ctrlruntime.healthz import UnhealthyError
from ctrlruntime.metrics import Metrics
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.scheme import Scheme
from ctrlruntime.selector import NOTHING
from ctrlruntime.webhook.response import answer_to

PodMetadata = PartialObjectMetadata.of(core.Pod)
UnstructuredPod = Unstructured.of("v1", "Pod")
PAGES = WatchOptions(streaming_list=False)


def key(name, namespace="ns"):
    return NamespacedName(namespace, name)


def pod(name, version=1, *, node="n1", namespace="ns", **more):
    return obj(name, version, namespace=namespace, spec={"nodeName": node, "containers": []}, **more)


class Server:
    """A mapper and a maker of collections. `answers[kind]` is a script, or a function of (namespace, metadata_only)."""

    def __init__(self):
        self.time = Time()
        self.answers = {}
        self.asked = []
        self.absent = set()
        self.cluster_scoped = {"Node", "Namespace"}
        self.invalidated = []

    async def resource_for(self, gvk):
        if gvk.kind in self.absent:
            raise NoMatchError(f"the server does not serve {gvk}")
        return APIResource(
            group=gvk.group, version=gvk.version, kind=gvk.kind, plural=gvk.kind.lower() + "s",
            namespaced=gvk.kind not in self.cluster_scoped,
        )  # fmt: skip

    def invalidate(self, group=None):
        self.invalidated.append(group)

    def collection(self, transport, resource, *, namespace="", labels="", fields="", shards="", metadata_only=False):
        self.asked.append((resource.kind, namespace, labels, fields, "metadata" if metadata_only else "full"))
        answer = self.answers[resource.kind]
        return answer(namespace, metadata_only) if callable(answer) else answer

    def serve(self, kind, *raws, version=10, then=()):
        """Serve these objects: whole, or their metadata; `then` is the watch."""

        def make(namespace, metadata_only):
            mine = [raw for raw in raws if not namespace or json.loads(raw)["metadata"]["namespace"] == namespace]
            kept = [json.dumps({"metadata": json.loads(raw)["metadata"]}).encode() for raw in mine] if metadata_only else mine  # fmt: skip
            return Script(self.time, page(*kept, version=version), [*then, HANGS])

        self.answers[kind] = make


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setattr(cache_module, "Collection", server.collection)
    return server


@pytest.fixture
def make(server):
    def make(*, metrics=None, observer=None, **options):
        options = {"watch": PAGES, "sync_period": None, **options}
        parts = {"metrics": metrics, "observer": observer}
        return Cache(
            None, server, Scheme(), options=CacheOptions(**options), **parts, clock=server.time, rng=lambda: 0.0
        )

    return make


# --- starting -----------------------------------------------------------------------------------------------------------


async def test_the_first_read_starts_the_informer_and_waits_for_it(server, make):
    server.serve("Pod", pod("a"), pod("b"))
    async with running(make()) as cache:
        assert cache.informers() == {}

        found = await cache.get(core.Pod, key("a"))

        assert found.spec.node_name == "n1"
        assert [p.metadata.name for p in await cache.list(core.Pod)] == ["a", "b"]
        assert len(server.asked) == 1
        assert list(cache.informers()) == [GroupVersionKind("", "v1", "Pod")]


async def test_the_bytes_of_an_object_are_shown_only_while_it_is_cached_as_the_server_sent_it(server, make):
    server.serve("Pod", pod("a"))
    server.serve("ConfigMap", pod("a"))
    kind, other = GroupVersionKind("", "v1", "Pod"), GroupVersionKind("", "v1", "ConfigMap")
    cache = make()
    assert cache.whole_object(kind, "ns", "a") is None
    async with running(cache):
        assert cache.whole_object(kind, "ns", "a") is None  # it is asked and starts nothing
        assert cache.informers() == {}
        await cache.get(core.Pod, key("a"))
        await cache.get(PartialObjectMetadata.of(core.ConfigMap), key("a"))

        assert json.loads(cache.whole_object(kind, "ns", "a"))["spec"]["nodeName"] == "n1"
        assert cache.whole_object(kind, "ns", "b") is None
        assert cache.whole_object(other, "ns", "a") is None
    assert cache.whole_object(kind, "ns", "a") is None


async def test_typed_unstructured_and_metadata_readers_share_one_store(server, make):
    server.serve("Pod", pod("a"))
    async with running(make()) as cache:
        typed = await cache.get(core.Pod, key("a"))
        loose = await cache.get(UnstructuredPod, key("a"))
        narrow = await cache.get(PodMetadata, key("a"))

        assert typed.metadata.uid == loose.metadata.uid == narrow.metadata.uid == "uid-a"
        assert loose["spec"]["nodeName"] == "n1"
        assert narrow.kind == "Pod"
        assert "spec" not in narrow.to_dict()
        assert len(server.asked) == 1


async def test_what_a_reader_gets_is_its_own(server, make):
    server.serve("Pod", pod("a"))
    async with running(make()) as cache:
        mine = await cache.get(core.Pod, key("a"))
        mine.spec.node_name = "changed"
        (listed,) = await cache.list(core.Pod)
        listed.metadata.name = "changed"

        again = await cache.get(core.Pod, key("a"))
        assert (again.metadata.name, again.spec.node_name) == ("a", "n1")


async def test_a_read_before_the_start_says_what_to_do(server, make):
    server.serve("Pod")
    cache = make()

    with pytest.raises(CacheNotStartedError, match="api_reader"):
        await cache.get(core.Pod, key("a"))
    async with running(cache):
        assert len(await cache.list(core.Pod)) == 0
    with pytest.raises(CacheNotStartedError, match="has stopped"):
        await cache.get(core.Pod, key("a"))
    with pytest.raises(CacheError, match="has stopped"):
        await cache.subscribe(core.Pod, name="late")
    with pytest.raises(CacheError, match="was started before"):
        await cache.run()


async def test_with_refusal_of_unwatched_reads_a_kind_nobody_watches_is_refused(server, make):
    server.serve("Pod", pod("a"))
    async with running(make(on_missing_informer="fail")) as cache:
        with pytest.raises(NotCachedError, match="no informer"):
            await cache.get(core.Pod, key("a"))
        assert server.asked == []

        await cache.subscribe(PodMetadata, name="test")
        assert (await cache.get(PodMetadata, key("a"))).metadata.name == "a"
        with pytest.raises(NotCachedError, match="only the metadata"):
            await cache.get(core.Pod, key("a"))
        assert len(server.asked) == 1


async def test_a_read_of_a_kind_that_is_not_served_fails_at_once_and_leaves_nothing_running(server, make):
    server.absent.add("Pod")
    async with running(make()) as cache:
        with pytest.raises(NoMatchError):
            await cache.get(core.Pod, key("a"))
        assert cache.informers() == {}

        server.absent.clear()
        server.serve("Pod", pod("a"))
        assert (await cache.get(core.Pod, key("a"))).metadata.name == "a"


async def test_a_forbidden_read_fails_at_once_and_works_once_it_is_permitted(server, make):
    script = Script(server.time, Forbidden("pods is forbidden"), page(pod("a"), version=5), [HANGS])
    server.answers["Pod"] = script
    permitted = asyncio.Event()

    async def sleep(_):
        await permitted.wait()

    cache = make()
    cache._sleep = sleep
    async with running(cache):
        for _ in range(2):
            with pytest.raises(Forbidden, match="pods is forbidden"):
                await cache.get(core.Pod, key("a"))
        assert cache.unsynced() == {"v1, Kind=Pod": "pods is forbidden"}

        permitted.set()
        await asyncio.wait_for(cache.wait_for_cache_sync(), LONGEST_WAIT)
        assert (await cache.get(core.Pod, key("a"))).metadata.name == "a"
        assert cache.unsynced() == {}


async def test_a_list_that_does_not_come_ends_in_an_error_that_names_the_kind(server, make):
    server.answers["Pod"] = Script(server.time)
    async with running(make(sync_timeout=0.05)) as cache:
        with pytest.raises(CacheSyncTimeoutError, match=r"Pod has not synced within 0\.05 s"):
            await cache.get(core.Pod, key("a"))


async def test_a_subscription_does_not_wait_for_a_kind_that_is_not_served(server, make):
    server.absent.add("Pod")
    server.serve("Pod", pod("a"))
    cache = make()
    cache._sleep = lambda _: asyncio.sleep(0.01)
    with captured_log() as logs:
        async with running(cache):
            subscription = await asyncio.wait_for(cache.subscribe(core.Pod, name="test"), LONGEST_WAIT)
            await asyncio.sleep(0.05)
            assert not subscription.is_synced

            server.absent.clear()
            event = await asyncio.wait_for(subscription.get(), LONGEST_WAIT)
            assert event.object.spec.node_name == "n1"
    assert [line["hint"] for line in logs if "not served" in line["event"]] == [
        "install the CustomResourceDefinition of Pod in group core"
    ]


# --- get ------------------------------------------------------------------------------------------------------------------


async def test_what_is_not_there_is_not_found_and_says_so_as_the_server_does(server, make):
    server.serve("Pod", pod("a"))
    async with running(make()) as cache:
        with pytest.raises(NotFound, match=r'^pods "x" not found$') as caught:
            await cache.get(core.Pod, key("x"))
        assert caught.value.details["name"] == "x"
        assert await cache.get_or_none(core.Pod, key("x")) is None
        assert (await cache.get_or_none(core.Pod, key("a"))).metadata.name == "a"


async def test_an_object_of_a_kind_whose_list_is_not_found_is_missing(server, make):
    server.answers["Pod"] = Script(server.time, NotFound("the server could not find the requested resource"), HANGS)
    async with running(make()) as cache:
        with pytest.raises(NotFound, match="could not find the requested resource"):
            await cache.get(core.Pod, key("x"))
        assert await cache.get_or_none(core.Pod, key("x")) is None


async def test_a_webhook_does_not_return_the_error_of_a_cached_read_to_its_client(server, make):
    server.serve("Pod")
    async with running(
        make(by_object={core.Pod: ByObject(namespaces={"some": NamespaceOptions(labels="app=x")})})
    ) as cache:
        for namespace, expected in (("some", ObjectNotCachedError), ("other", NamespaceNotCachedError)):
            with pytest.raises(expected) as caught:
                await cache.get(core.Pod, key("x", namespace))
            assert answer_to(caught.value) is None
    async with running(make()) as cache:
        with pytest.raises(NotFound) as caught:
            await cache.get(core.Pod, key("x"))
        assert answer_to(caught.value) is None


async def test_a_miss_in_a_selected_cache_says_that_there_may_be_more(server, make):
    server.serve("Pod")
    async with running(make(labels="app=x")) as cache:
        with pytest.raises(
            ObjectNotCachedError, match=r"holds only objects with labels app=x\. .* live_fallback=True"
        ) as caught:
            await cache.get(core.Pod, key("x"))
        assert isinstance(caught.value, NotFound)
        assert (caught.value.reason, caught.value.code, caught.value.details["name"]) == ("NotFound", 404, "x")
        assert await cache.get_or_none(core.Pod, key("x")) is None


async def test_a_miss_where_one_namespace_is_selected_is_an_ordinary_one_in_the_others(server, make):
    server.serve("Pod")
    options = ByObject(
        namespaces={"some": NamespaceOptions(labels="app=x", fields="spec.nodeName=n1"), "": NamespaceOptions()}
    )
    async with running(make(by_object={core.Pod: options})) as cache:
        with pytest.raises(ObjectNotCachedError, match=r"labels app=x and fields spec.nodeName=n1\."):
            await cache.get(core.Pod, key("x", "some"))
        with pytest.raises(NotFound) as caught:
            await cache.get(core.Pod, key("x", "other"))
        assert type(caught.value) is NotFound


async def test_a_get_outside_the_namespaces_is_a_not_found_that_find_does_not_swallow(server, make):
    server.serve("Pod")
    async with running(make(namespaces=["ns"])) as cache:
        with pytest.raises(NamespaceNotCachedError, match="'z' is outside the cache, which holds ns") as caught:
            await cache.get_or_none(core.Pod, key("x", "z"))
        assert isinstance(caught.value, NotFound)
        assert isinstance(caught.value, NotCachedError)


async def test_reads_of_kinds_nobody_watches_are_left_to_the_server_where_that_is_the_policy(server, make):
    server.serve("Pod", pod("a"))
    async with running(make(on_missing_informer="live")) as cache:
        assert cache.reads_live(core.Pod)
        with pytest.raises(NotCachedError, match="on_missing_informer is 'live'"):
            await cache.get(core.Pod, key("a"))
        assert server.asked == []

        await cache.subscribe(PodMetadata, name="test")

        assert not cache.reads_live(PodMetadata)
        assert cache.reads_live(core.Pod)  # metadata is not a whole object


async def test_the_namespace_of_a_key_is_ignored_for_a_cluster_scoped_kind(server, make):
    server.serve("Node", obj("n", 1, namespace=""))
    async with running(make(namespaces=["ns"])) as cache:
        assert (await cache.get(core.Node, key("n", "whatever"))).metadata.name == "n"
        assert len(await cache.list(core.Node, namespace="whatever")) == 1
        assert server.asked == [("Node", "", "", "", "full")]


async def test_an_object_that_does_not_fit_the_class_fails_for_its_reader_alone(server, make):
    bad = obj("bad", 2, spec={"containers": 7})
    server.serve("Pod", pod("a"), bad)
    async with running(make()) as cache:
        with pytest.raises(DecodeError) as caught:
            await cache.get(core.Pod, key("bad"))
        assert caught.value.raw == bad
        assert (await cache.get(UnstructuredPod, key("bad")))["spec"]["containers"] == 7
        listed = await cache.list(core.Pod)
        assert [meta.name for meta in listed.metadata] == ["a", "bad"]
        assert listed[0].spec.node_name == "n1"
        with pytest.raises(DecodeError):
            listed[1]
        assert [item.metadata.name for item in listed.valid] == ["a"]
        assert [error.raw for error in listed.decode_errors] == [bad]


async def test_each_version_of_an_object_that_does_not_fit_is_counted_and_told_once(server, make):
    told, metrics = [], Metrics()
    observer = CacheObserver()
    observer.unreadable = told.append
    gate = asyncio.Event()
    server.answers["Pod"] = lambda *_: Script(
        server.time, page(pod("a"), obj("bad", 2, spec={"containers": 7}), version=5),
        [[modified("bad", 6, spec={"containers": "x"})], gate, [modified("bad", 7, spec={"containers": []})], HANGS],
    )  # fmt: skip
    async with running(make(metrics=metrics, observer=observer)) as cache:
        with captured_log() as logs:
            subscription = await cache.subscribe(core.Pod, name="test")
            await cache.list(core.Pod)
            for _ in range(3):
                for read in (cache.get(core.Pod, key("bad")), cache.get(core.Pod, key("bad"))):
                    with pytest.raises(DecodeError):
                        await read
                await eventually(lambda: len(told) > 0)
            for event in drain(subscription):
                if event.meta.name == "bad":
                    with pytest.raises(DecodeError):
                        _ = event.new if isinstance(event, UpdateEvent) else event.object
            gate.set()
            await eventually(lambda: cache.views(("", "Pod"))[0].position("ns") == 7)
            assert (await cache.get(core.Pod, key("bad"))).spec.containers == []

    versions = [found.meta.resource_version for found in told]
    assert sorted(versions) == ["2", "6"]
    assert all("spec.containers" in str(found.error) for found in told)
    assert metrics.caches[0].decode_errors == len(told)
    assert sum("cannot decode object" in line["event"] for line in logs) == len(told)


# --- namespaces -----------------------------------------------------------------------------------------------------------


async def test_one_request_for_each_namespace_and_an_error_for_those_beside(server, make):
    server.serve("Pod", pod("a", namespace="x"), pod("b", namespace="y"))
    async with running(make(namespaces=["x", "y"])) as cache:
        assert {p.metadata.name for p in await cache.list(core.Pod)} == {"a", "b"}
        assert [p.metadata.name for p in await cache.list(core.Pod, namespace="x")] == ["a"]
        assert sorted(server.asked) == [("Pod", "x", "", "", "full"), ("Pod", "y", "", "", "full")]
        with pytest.raises(NotFound):
            await cache.get(core.Pod, key("x", "x"))
        for read in (cache.get(core.Pod, key("a", "z")), cache.list(core.Pod, namespace="z"),
                     cache.list(core.Pod, fields={"metadata.namespace": "z"})):  # fmt: skip
            with pytest.raises(NotCachedError, match=r"'z' is outside the cache, which holds x, y"):
                await read


async def test_a_namespace_added_later_is_listed_told_and_read_and_others_keep_their_watches(server, make):
    server.serve("Pod", pod("a", namespace="x"), pod("b", namespace="y"))
    server.serve("Node", obj("n", 1, namespace=""))
    async with running(make(namespaces=["x"])) as cache:
        subscription = await cache.subscribe(core.Pod, name="test")
        await cache.list(core.Pod)
        await cache.list(core.Node)
        asked = list(server.asked)
        drain(subscription)

        await cache.add_namespace("y")

        assert cache.namespaces == {"x", "y"}
        assert (await cache.get(core.Pod, key("b", "y"))).metadata.name == "b"  # waits for the list
        assert {p.metadata.name for p in await cache.list(core.Pod)} == {"a", "b"}
        assert server.asked[len(asked) :] == [("Pod", "y", "", "", "full")]
        (event,) = drain(subscription)
        assert (type(event), event.meta.name) == (CreateEvent, "b")


async def test_a_namespace_that_is_removed_is_freed_told_as_deleted_and_refused(server, make):
    server.serve("Pod", pod("a", namespace="x"), pod("b", namespace="y"), pod("c", namespace="y"))
    metrics = Metrics()
    async with running(make(namespaces=["x", "y"], metrics=metrics)) as cache:
        cache.index_field(core.Pod, "spec.nodeName")
        subscription = await cache.subscribe(core.Pod, name="test")
        assert len(await cache.list(core.Pod)) == 3
        drain(subscription)
        (informer,) = cache.informers().values()

        await cache.remove_namespace("y")

        assert cache.namespaces == {"x"}
        events = drain(subscription)
        assert {(type(event), event.meta.name, event.delete_state_unknown) for event in events} == {
            (DeleteEvent, "b", True), (DeleteEvent, "c", True)
        }  # fmt: skip
        assert len(informer.store) == 1
        assert metrics.caches[0].objects == 1
        assert [p.metadata.name for p in await cache.list(core.Pod, fields={"spec.nodeName": "n1"})] == ["a"]
        with pytest.raises(NamespaceNotCachedError):
            await cache.get(core.Pod, key("b", "y"))
        assert cache.views(("", "Pod"))[0].position("y") == NOT_CACHED  # no read has to wait for what is not cached

        await cache.add_namespace("y", NamespaceOptions(labels="app=x"))

        await cache.get(core.Pod, key("b", "y"))
        assert server.asked[-1] == ("Pod", "y", "app=x", "", "full")


async def test_the_last_namespace_removed_leaves_none_and_not_all(server, make):
    server.serve("Pod", pod("a", namespace="x"))
    async with running(make(namespaces=["x"])) as cache:
        await cache.list(core.Pod)

        await cache.remove_namespace("x")

        assert len(await cache.list(core.Pod)) == 0
        with pytest.raises(NamespaceNotCachedError, match="holds no namespace"):
            await cache.get(core.Pod, key("a", "x"))
        server.serve("Service", obj("s", 1, namespace="x"))
        assert len(await cache.list(core.Service)) == 0  # a kind first read now is planned without any, too
        assert server.asked == [("Pod", "x", "", "", "full")]

        await cache.add_namespace("x")
        assert len(await cache.list(core.Pod)) == 1
        assert len(await cache.list(core.Service)) == 1


async def test_kinds_with_namespaces_of_their_own_are_left_alone(server, make):
    server.serve("Pod", pod("a", namespace="own"))
    async with running(make(namespaces=["x"], by_object={core.Pod: ByObject(namespaces=["own"])})) as cache:
        await cache.list(core.Pod)
        await cache.add_namespace("y")
        await cache.remove_namespace("x")

        assert [p.metadata.name for p in await cache.list(core.Pod)] == ["a"]
        assert server.asked == [("Pod", "own", "", "", "full")]


async def test_namespaces_may_be_added_before_the_start(server, make):
    server.serve("Pod", pod("a", namespace="y"))
    cache = make(namespaces=["x"])
    await cache.add_namespace("y")
    async with running(cache):
        assert len(await cache.list(core.Pod, namespace="y")) == 1


async def test_a_namespace_that_cannot_be_read_disturbs_no_reader_of_another(server, make):
    def answer(namespace, metadata_only):
        raw = pod("a", namespace=namespace)
        return Script(server.time, *([Forbidden("no")] * 50 if namespace == "y" else [page(raw, version=5), [HANGS]]))

    server.answers["Pod"] = answer
    async with running(make(namespaces=["x"])) as cache:
        await cache.list(core.Pod)
        await cache.add_namespace("y")

        with pytest.raises(Forbidden):
            await cache.get(core.Pod, key("a", "y"))
        assert (await cache.get(core.Pod, key("a", "x"))).metadata.name == "a"
        with pytest.raises(Forbidden):
            await cache.list(core.Pod)  # all of them: a part must not pass for the whole
        assert "Pod" in str(cache.unsynced())

        await cache.remove_namespace("y")
        assert len(await cache.list(core.Pod)) == 1
        assert cache.unsynced() == {}


async def test_a_list_that_was_under_way_when_its_namespace_was_removed_leaves_nothing_behind(server, make):
    raws = [pod(f"p{number}", namespace="y") for number in range(2000)]  # long enough to be put in turns
    server.serve("Pod", *raws)
    async with running(make(namespaces=["x", "y"])) as cache:
        subscription = await cache.subscribe(core.Pod, name="test")
        (informer,) = cache.informers().values()
        await eventually(lambda: 0 < len(informer.store) < 2000)

        await cache.remove_namespace("y")
        for _ in range(50):
            await asyncio.sleep(0)

        assert len(informer.store) == 0
        alive = set()
        for event in drain(subscription):
            (alive.discard if isinstance(event, DeleteEvent) else alive.add)(event.meta.name)
        assert alive == set()
        assert len(await cache.list(core.Pod)) == 0


@pytest.mark.parametrize("options", [{}, {"namespaces": {"": NamespaceOptions(), "x": NamespaceOptions(labels="a")}}])
async def test_a_cache_of_all_namespaces_takes_and_gives_none(make, options):
    cache = make(**options)
    assert cache.namespaces is None
    for change in (cache.add_namespace("x"), cache.remove_namespace("x"), cache.select_namespaces("team=a")):
        with pytest.raises(ValueError, match="has all namespaces"):
            await change


async def test_a_selector_of_no_namespaces_is_refused(make):
    with pytest.raises(ValueError, match="matches nothing"):
        make(namespace_selector=NOTHING)
    with pytest.raises(ValueError, match="matches nothing"):
        await make(namespaces=["x"]).select_namespaces(NOTHING)
    with pytest.raises(ValueError, match="needs named namespaces"):
        make(namespace_selector="team=a", namespaces={"": NamespaceOptions()})


@pytest.mark.parametrize("seed", range(20))
async def test_however_namespaces_come_and_go_the_end_is_what_was_said_last(server, make, seed):
    random = Random(seed)
    raws = [pod(f"{space}-{number}", namespace=space) for space in "xyz" for number in range(300)]
    server.serve("Pod", *raws)
    held, alive = {"x"}, set()
    async with running(make(namespaces=["x"])) as cache:
        subscription = await cache.subscribe(core.Pod, name="test")
        for _ in range(30):
            space = random.choice("xyz")
            if space in held:
                await cache.remove_namespace(space)
            else:
                await cache.add_namespace(space)
            held ^= {space}
            for _ in range(random.randrange(12)):
                await asyncio.sleep(0)

        names = {meta.name for meta in (await cache.list(core.Pod)).metadata}

        assert names == {f"{space}-{number}" for space in held for number in range(300)}
        for event in drain(subscription):
            (alive.discard if isinstance(event, DeleteEvent) else alive.add)(event.meta.name)
        assert alive == names


async def test_what_is_no_namespace_of_the_cache_cannot_be_removed(make):
    with pytest.raises(ValueError, match=r"'y': it is not cached \(added by name: x\)"):
        await make(namespaces=["x"]).remove_namespace("y")
    with pytest.raises(ValueError, match="without a name"):
        await make(namespaces=["x"]).add_namespace("")


def namespace(name, version=1, **labels):
    return obj(name, version, namespace="", metadata={"labels": labels})


async def test_namespaces_are_chosen_by_their_labels_and_followed(server, make):
    gate = asyncio.Event()

    def namespaces(_namespace, _metadata_only):
        return Script(server.time, page(namespace("x", team="a"), version=5), [gate, [
            modified("z", 7, namespace="", metadata={"labels": {"team": "a"}}), deleted("x", 8, namespace=""),
        ], HANGS])  # fmt: skip

    server.answers["Namespace"] = namespaces
    server.serve("Pod", pod("a", namespace="x"), pod("b", namespace="y"), pod("c", namespace="z"))
    async with running(make(namespace_selector="team=a", namespaces=["y"])) as cache:
        subscription = await cache.subscribe(core.Pod, name="test")
        assert {p.metadata.name for p in await cache.list(core.Pod)} == {
            "a",
            "b",
        }  # the first list waits for the labels
        assert server.asked[0] == ("Namespace", "", "team=a", "", "metadata")
        drain(subscription)

        gate.set()
        await eventually(lambda: cache.namespaces == {"y", "z"})

        assert {p.metadata.name for p in await cache.list(core.Pod)} == {"b", "c"}
        assert {(type(event), event.meta.name) for event in drain(subscription)} == {
            (CreateEvent, "c"),
            (DeleteEvent, "a"),
        }
        with pytest.raises(ValueError, match="is selected by its labels"):
            await cache.remove_namespace("z")


async def test_another_selector_takes_over_when_it_is_known_and_none_leaves_those_added_by_name(server, make):
    def namespaces(_namespace, _metadata_only):
        labels = server.asked[-1][2]
        found = {"team=a": ["x", "y"], "team=b": ["y", "z"]}[labels]
        return Script(server.time, page(*(namespace(name) for name in found), version=5), [HANGS])

    server.answers["Namespace"] = namespaces
    server.serve("Pod", pod("a", namespace="x"), pod("b", namespace="y"), pod("c", namespace="z"))
    async with running(make(namespace_selector="team=a")) as cache:
        assert {p.metadata.name for p in await cache.list(core.Pod)} == {"a", "b"}
        before = [asked for asked in server.asked if asked[:2] == ("Pod", "y")]

        await cache.select_namespaces("team=b")
        assert cache.namespaces == {"x", "y"}  # until the new one is known
        await eventually(lambda: cache.namespaces == {"y", "z"})

        assert {p.metadata.name for p in await cache.list(core.Pod)} == {"b", "c"}
        assert [asked for asked in server.asked if asked[:2] == ("Pod", "y")] == before  # never dropped in between
        await cache.add_namespace("x")
        await cache.select_namespaces(None)
        assert cache.namespaces == {"x"}


async def test_a_selector_that_may_not_be_followed_is_told_to_whoever_reads(server, make):
    server.answers["Namespace"] = lambda *_: Script(server.time, *([Forbidden("namespaces is forbidden")] * 50))
    server.serve("Pod")
    async with running(make(namespace_selector="team=a")) as cache:
        with pytest.raises(Forbidden, match="namespaces is forbidden"):
            await cache.list(core.Pod)
        assert ("Pod", "", "", "", "full") not in server.asked


# --- silence --------------------------------------------------------------------------------------------------------------


async def test_a_kind_is_stale_when_nothing_was_heard_of_it_for_too_long_and_is_named_with_why(server, make):
    silent = asyncio.Event()
    server.answers["Pod"] = lambda *_: Script(
        server.time, page(pod("a"), version=5), [silent, [modified("a", 7)], HANGS]
    )
    async with running(make()) as cache:
        await cache.list(core.Pod)
        cache.check()

        server.time.now += 115
        cache.check()  # two watches' time and more: an ordinary reconnect is no silence
        server.time.now += 6
        with pytest.raises(UnhealthyError, match=r"^v1, Kind=Pod: no activity for 121 s$"):
            cache.check()
        assert list(cache.stale().values()) == ["no activity for 121 s"]

        silent.set()
        await eventually(lambda: not cache.stale())
        cache.check()


async def test_a_kind_that_was_never_readable_is_stale_after_the_same_time(server, make):
    server.absent.add("Pod")
    cache = make(stale_after=200.0)
    subscription = await cache.subscribe(core.Pod, name="test")
    assert cache.stale() == {}
    async with running(cache):
        await eventually(lambda: cache.unsynced().get("v1, Kind=Pod"))
        cache.check()
        server.time.now += 201

        (why,) = cache.stale().values()
        assert "does not serve" in why
        subscription.stop()
        await cache.remove_informer(core.Pod)
        cache.check()


async def test_kinds_with_longer_watches_have_longer_and_never_is_never(server, make):
    server.serve("Pod")
    server.serve("Service")
    by_object = {core.Pod: ByObject(watch=WatchOptions(timeout=(300.0, 300.0), streaming_list=False))}
    async with running(make(by_object=by_object)) as cache, running(make(stale_after=None)) as careless:
        for each in (cache, careless):
            await each.list(core.Pod)
            await each.list(core.Service)
        server.time.now += 400

        assert [kind.endswith("Service") for kind in cache.stale()] == [True]
        careless.check()
        server.time.now += 300
        assert len(cache.stale()) == 2


async def test_selectors_go_to_the_server(server, make):
    server.serve("Pod")
    by_object = {core.Pod: ByObject(labels="app in (a, b)", fields={"spec.nodeName": "n1"})}
    async with running(make(by_object=by_object, labels="other=1")) as cache:
        await cache.list(core.Pod)
        assert server.asked == [("Pod", "", "app in (a,b)", "spec.nodeName=n1", "full")]


async def test_namespaces_for_a_cluster_scoped_kind_are_refused_at_construction_where_that_is_known(server, make):
    with pytest.raises(ValueError, match="Node is cluster-scoped"):
        make(by_object={core.Node: ByObject(namespaces=["a"])})


async def test_and_else_by_the_first_read(server, make):
    server.cluster_scoped.add("Pod")
    async with running(make(by_object={core.Pod: ByObject(namespaces=["a"])})) as cache:
        with pytest.raises(ConfigError, match="cluster-scoped"):
            await asyncio.wait_for(cache.list(core.Pod), LONGEST_WAIT)


# --- list and indexes -----------------------------------------------------------------------------------------------------


async def test_a_list_is_limited_selected_and_has_a_version(server, make):
    server.serve("Pod", *(pod(f"p{n}", metadata={"labels": {"odd": str(n % 2)}}) for n in range(6)), version=42)
    async with running(make()) as cache:
        assert len(await cache.list(core.Pod, limit=4)) == 4
        odd = await cache.list(core.Pod, labels={"odd": "1"})
        assert [meta.name for meta in odd.metadata] == ["p1", "p3", "p5"]
        assert odd.resource_version == "42"
        assert len(await cache.list(core.Pod, labels="odd notin (1), odd")) == 3
        assert len(await cache.list(core.Pod, namespace="other")) == 0
        with pytest.raises(CacheError, match="continue"):
            await cache.list(core.Pod, continue_token="x")


async def test_an_index_finds_what_a_field_selector_asks_for_and_others_are_refused(server, make):
    server.serve("Pod", pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n1"))
    cache = make()
    cache.index_field(core.Pod, "spec.nodeName")
    async with running(cache):

        async def found(**fields):
            return [meta.name for meta in (await cache.list(core.Pod, **fields)).metadata]

        assert await found(fields={"spec.nodeName": "n1"}) == ["a", "c"]
        assert await found(fields="spec.nodeName=n1,metadata.name=c") == ["c"]
        assert await found(fields="metadata.name=b") == ["b"]
        assert await found(fields="metadata.name=b,metadata.name=c") == []
        assert await found(fields="spec.nodeName=n1,spec.nodeName=n2") == []
        assert await found(fields="metadata.namespace=ns,metadata.name=a") == ["a"]
        assert await found(namespace="ns", fields="metadata.namespace=other") == []
        with pytest.raises(CacheError, match=r"not indexed by status\.phase \(indexed: spec\.nodeName\)"):
            await found(fields="status.phase=Running")
        with pytest.raises(CacheError, match="supports only"):
            await found(fields="spec.nodeName!=n1")
        with pytest.raises(CacheError, match="supports only"):
            await found(fields="metadata.name!=a,metadata.name=a")


async def test_an_index_may_be_added_later_and_follows_changes(server, make):
    server.serve("Pod", pod("a", node="n1"), then=[[modified("a", 11, spec={"nodeName": "n2"}), deleted("gone", 12)]])
    async with running(make()) as cache:
        await cache.list(core.Pod)
        informer = next(iter(cache.informers().values()))
        while informer.version("ns") < 12:
            await informer.changed()

        cache.index_field(core.Pod, "node", lambda p: [p.spec.node_name, "any"])

        assert len(await cache.list(core.Pod, fields={"node": "n2"})) == 1
        assert len(await cache.list(core.Pod, fields={"node": "any"})) == 1
        assert len(await cache.list(core.Pod, fields={"node": "n1"})) == 0
        with pytest.raises(ValueError, match="this index exists"):
            cache.index_field(core.Pod, "node")
        with pytest.raises(ValueError, match="without an index"):
            cache.index_field(core.Pod, "metadata.name")


async def test_an_index_function_that_fails_for_some_names_each_once(server, make):
    server.serve("Pod", pod("a"), obj("bad", 2, spec={"containers": 7}), then=[[modified("bad", 11, spec={"containers": 8})]])  # fmt: skip
    cache = make()
    cache.index_field(core.Pod, "node", lambda p: [p.spec.node_name])
    with captured_log() as logs:
        async with running(cache):
            assert [meta.name for meta in (await cache.list(core.Pod, fields={"node": "n1"})).metadata] == ["a"]
            informer = next(iter(cache.informers().values()))
            while informer.version("ns") < 11:
                await informer.changed()
            assert (await cache.get(UnstructuredPod, key("bad")))["spec"]["containers"] == 8
    assert [line["object"] for line in logs if "index function" in line["event"]] == ["ns/bad"]


# --- width ----------------------------------------------------------------------------------------------------------------


async def test_a_metadata_reader_alone_asks_for_metadata_alone(server, make):
    server.serve("Pod", pod("a"))
    async with running(make()) as cache:
        assert (await cache.get(PodMetadata, key("a"))).metadata.name == "a"
        assert server.asked == [("Pod", "", "", "", "metadata")]


async def test_a_wider_reader_never_gets_a_narrowed_object_and_subscribers_move_over(server, make):
    server.serve("Pod", pod("a"))
    async with running(make()) as cache:
        subscription = await cache.subscribe(PodMetadata, name="test")
        assert (await subscription.get()).meta.name == "a"
        await cache.get(PodMetadata, key("a"))

        whole = await cache.get(core.Pod, key("a"))

        assert whole.spec.node_name == "n1"
        assert [asked[-1] for asked in server.asked] == ["metadata", "full"]
        (informer,) = cache.informers().values()
        await eventually(lambda: informer.subscriber_count)
        assert drain(subscription) == []
        assert not subscription.is_stopped
        assert (await cache.get(PodMetadata, key("a"))).to_dict().keys() == {"apiVersion", "kind", "metadata"}


async def test_narrow_readers_are_served_while_the_full_list_is_under_way(server, make):
    whole = Script(server.time)
    narrow = Script(server.time, page(obj("a", 1), version=10), [HANGS])
    server.answers["Pod"] = lambda namespace, metadata_only: narrow if metadata_only else whole
    async with running(make()) as cache:
        await cache.get(PodMetadata, key("a"))
        waiting = asyncio.create_task(cache.get(core.Pod, key("a")))
        await asyncio.wait_for(whole.exhausted.wait(), LONGEST_WAIT)

        assert (await asyncio.wait_for(cache.get(PodMetadata, key("a")), LONGEST_WAIT)).metadata.name == "a"
        assert not waiting.done()
        waiting.cancel()


async def test_subscribers_move_only_when_the_full_informer_has_seen_all_they_were_told(server, make):
    behind = Script(server.time, page(pod("a", 1), version=10), [[modified("a", 5, spec={}), modified("b", 20, spec={})], HANGS])  # fmt: skip
    ahead = Script(server.time, page(obj("a", 1), version=10), [[modified("b", 20)], HANGS])
    gate = asyncio.Event()
    watch = behind.watch

    async def delayed(**asked):
        await gate.wait()
        async for batch in watch(**asked):
            yield batch

    behind.watch = delayed
    server.answers["Pod"] = lambda namespace, metadata_only: ahead if metadata_only else behind
    async with running(make()) as cache:
        subscription = await cache.subscribe(PodMetadata, name="test")
        first, second = [await asyncio.wait_for(subscription.get(), LONGEST_WAIT) for _ in range(2)]
        assert (first.meta.name, second.meta.name) == ("a", "b")
        await cache.get(core.Pod, key("a"))
        (wide,) = cache.informers().values()
        assert wide.subscriber_count == 0

        gate.set()
        await eventually(lambda: wide.subscriber_count)
        assert [(type(e).__name__, e.meta.name, e.meta.resource_version) for e in drain(subscription)] == [
            ("UpdateEvent", "a", "5")
        ]


async def test_widening_before_the_start_makes_one_request(server, make):
    server.serve("Pod", pod("a"))
    cache = make()
    narrow = await cache.subscribe(PodMetadata, name="narrow")
    wide = await cache.subscribe(core.Pod, name="wide")
    async with running(cache):
        assert (await asyncio.wait_for(narrow.get(), LONGEST_WAIT)).object.metadata.name == "a"
        assert (await asyncio.wait_for(wide.get(), LONGEST_WAIT)).object.spec.node_name == "n1"
        assert [asked[-1] for asked in server.asked] == ["full"]


@pytest.mark.parametrize("late", [False, True])
async def test_an_index_over_more_than_metadata_makes_the_cache_hold_the_kind_whole(server, make, late):
    server.serve("Pod", pod("a"))
    cache = make()
    if not late:
        cache.index_field(core.Pod, "spec.nodeName")
    async with running(cache):
        await cache.get(PodMetadata, key("a"))
        if late:
            cache.index_field(core.Pod, "spec.nodeName")
        assert len(await cache.list(core.Pod, fields={"spec.nodeName": "n1"})) == 1
        assert server.asked[-1][-1] == "full"
        assert len(server.asked) == (2 if late else 1)


async def test_an_index_over_metadata_does_not(server, make):
    server.serve("Pod", pod("a", metadata={"labels": {"app": "x"}}))
    cache = make()
    cache.index_field(core.Pod, "metadata.labels.app")
    cache.index_field(PodMetadata, "upper", lambda p: [p.metadata.name.upper()])
    async with running(cache):
        assert len(await cache.list(PodMetadata, fields={"metadata.labels.app": "x", "upper": "A"})) == 1
        assert [asked[-1] for asked in server.asked] == ["metadata"]


# --- removal --------------------------------------------------------------------------------------------------------------


async def test_a_kind_that_is_watched_cannot_be_removed_and_its_events_go_on(server, make):
    gate = asyncio.Event()
    server.answers["Pod"] = lambda *_: Script(server.time, page(pod("a"), version=5), [gate, [modified("a", 6)], HANGS])
    async with running(make()) as cache:
        subscriptions = [await cache.subscribe(core.Pod, name=name) for name in ("webs", "pods")]
        await cache.get(core.Pod, key("a"))

        with pytest.raises(CacheError, match=r"cannot remove Pod from the cache: watched by pods, webs\. Stop these"):
            await cache.remove_informer(core.Pod)

        gate.set()
        for subscription in subscriptions:
            events = [await asyncio.wait_for(subscription.get(), LONGEST_WAIT) for _ in range(2)]
            assert [event.meta.resource_version for event in events] == ["1", "6"]
        subscriptions[0].stop()
        with pytest.raises(CacheError, match="watched by pods"):
            await cache.remove_informer(core.Pod)
        subscriptions[1].stop()
        await cache.remove_informer(core.Pod)
        assert cache.informers() == {}


async def test_a_kind_stays_cached_without_subscribers_and_the_metric_shows_it(server, make):
    server.serve("Pod", pod("a"))
    metrics = Metrics()
    async with running(make(metrics=metrics)) as cache:
        subscription = await cache.subscribe(PodMetadata, name="webs")
        await cache.list(PodMetadata)
        (counted,) = metrics.caches
        assert counted.subscribers == 1
        await cache.get(core.Pod, key("a"))  # a full informer takes the place of the metadata-only one
        await eventually(lambda: cache.informers()[GroupVersionKind("", "v1", "Pod")].subscriber_count == 1)
        assert counted.subscribers == 1

        subscription.stop()

        assert counted.subscribers == 0
        assert (await cache.get(core.Pod, key("a"))).metadata.name == "a"
        assert [asked[-1] for asked in server.asked] == ["metadata", "full"]


async def test_a_removed_kind_is_forgotten_and_the_next_read_starts_anew(server, make):
    server.serve("Pod", pod("a"))
    server.serve("Node", obj("n", 1, namespace=""))
    async with running(make()) as cache:
        await cache.get(core.Pod, key("a"))
        await cache.get(core.Node, key("n", ""))
        (informer, _) = cache.informers().values()

        await cache.remove_informer(core.Pod)

        assert informer.is_stopped
        assert [gvk.kind for gvk in cache.informers()] == ["Node"]
        assert (await cache.get(core.Pod, key("a"))).metadata.name == "a"
        assert [asked[0] for asked in server.asked] == ["Pod", "Node", "Pod"]


async def test_indexes_outlive_a_removal(server, make):
    server.serve("Pod", pod("a"))
    cache = make()
    cache.index_field(core.Pod, "spec.nodeName")
    async with running(cache):
        await cache.list(core.Pod)
        await cache.remove_informer(core.Pod)

        assert len(await cache.list(core.Pod, fields={"spec.nodeName": "n1"})) == 1


async def test_a_read_that_waits_is_told_of_the_removal(server, make):
    server.answers["Pod"] = Script(server.time)
    async with running(make()) as cache:
        waiting = asyncio.create_task(cache.get(core.Pod, key("a")))
        await asyncio.wait_for(server.answers["Pod"].exhausted.wait(), LONGEST_WAIT)

        await cache.remove_informer(core.Pod)

        with pytest.raises(NotCachedError, match="removed"):
            await asyncio.wait_for(waiting, LONGEST_WAIT)
        await cache.remove_informer(core.Pod)  # nothing to do


async def test_a_removal_while_widening_ends_both_informers(server, make):
    whole, narrow = Script(server.time), Script(server.time, page(obj("a", 1), version=10), [HANGS])
    server.answers["Pod"] = lambda namespace, metadata_only: narrow if metadata_only else whole
    async with running(make()) as cache:
        subscription = await cache.subscribe(PodMetadata, name="test")
        await cache.get(PodMetadata, key("a"))
        wide = await cache.subscribe(core.Pod, name="wide")
        await asyncio.wait_for(whole.exhausted.wait(), LONGEST_WAIT)

        with pytest.raises(CacheError, match="watched by test, wide"):
            await cache.remove_informer(core.Pod)
        subscription.stop()
        wide.stop()
        await cache.remove_informer(core.Pod)

        await eventually(lambda: narrow.closed)


# --- what the gate asks ---------------------------------------------------------------------------------------------------


async def test_the_views_of_a_kind_show_what_its_informers_have(server, make):
    server.serve("Pod", pod("a"), version=42)
    async with running(make()) as cache:
        assert cache.views(("", "Pod")) == []
        await cache.list(core.Pod)

        (view,) = cache.views(("", "Pod"))

        assert view.position("ns") == 42
        assert view.entry("ns", "a").uid == "uid-a"
        assert view.entry("ns", "b") is None
        assert [meta.name for meta in view.entries("ns")] == ["a"]
        assert view.covers("ns", None)
        assert not view.is_filtered_by_fields
        assert cache.views(("apps", "Pod")) == []
    assert list(cache.views(("", "Pod"))) == []


async def test_a_version_that_cannot_be_listed_does_not_hold_up_the_reads_of_another(server, make):
    server.serve("Thing", obj("a", 1), version=42)
    good, bad = Unstructured.of("example.com/v1", "Thing"), Unstructured.of("example.com/v2", "Thing")
    cache = make()
    cache._sleep = lambda _: asyncio.sleep(0.01)
    resource_for = server.resource_for

    async def one_version(gvk):
        if gvk.version == "v2":
            raise NoMatchError("no v2")
        return await resource_for(gvk)

    server.resource_for = one_version
    async with running(cache):
        await cache.subscribe(bad, name="test")
        await cache.list(good)
        await eventually(lambda: "no v2" in cache.unsynced().values())

        assert [view.position("ns") for view in cache.views(("example.com", "Thing"))] == [NOT_CACHED, 42]


async def test_metrics_stand_under_the_name_of_the_kind(server):
    server.serve("Pod", pod("a"))
    metrics = Metrics()
    cache = Cache(
        None, server, Scheme(), options=CacheOptions(watch=PAGES, sync_period=None), metrics=metrics, clock=server.time
    )
    async with running(cache):
        await cache.get(PodMetadata, key("a"))
        await cache.get(core.Pod, key("a"))
        (informer,) = cache.informers().values()
        await eventually(lambda: informer.has_caught_up(informer))

        assert metrics.cache("Pod.v1").objects == 1
        assert metrics.cache("Pod.v1").size_bytes == len(pod("a"))
