"""The parts of kinds that sharded controllers have in the cache. The server is in memory, and names stand for slots."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from random import Random

import pytest
from cache_server import Time, World, content, drain, eventually
from captured_log import captured_log
from servers import LONGEST_WAIT

from ctrlruntime.api.core import v1 as core
from ctrlruntime.api.metadata import Metadata, NamespacedName, metadata_of
from ctrlruntime.api.object import PartialObjectMetadata
from ctrlruntime.cache import cache as cache_module
from ctrlruntime.cache.cache import Cache, running
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.errors import Expired, ForeignShardError, NotFound
from ctrlruntime.event import CreateEvent, DeleteEvent, UpdateEvent
from ctrlruntime.rest.fence import Actor, Grant, acting
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.scheme import Scheme

ROOT = core.ConfigMap
CHILD = core.Secret


class Share:
    """The share of one controller: the roots with these names, and their children."""

    def __init__(self, *names: str, selection: Share | None = None) -> None:
        self.names = set(names)
        self.gains = 0
        self.selection = selection or self

    @property
    def keeps_nothing(self) -> bool:
        return not self.names

    def gain(self, *names: str) -> int:
        self.names |= set(names)
        self.selection.gains += 1
        return self.selection.gains


class Roots:
    is_of_roots = True

    def __init__(self, share: Share) -> None:
        self.share = share

    def keeps(self, meta):
        return meta.name in self.share.names

    def has(self, namespace, name):
        return name in self.share.names

    def foreign(self, namespace, name):
        return ForeignShardError(f"{namespace}/{name} is not here", slot=7, owner="other")

    def foreign_object(self, meta):
        return None if meta.name in self.share.names else Roots.foreign(self, meta.namespace, meta.name)

    def server_ranges(self):
        return f"ranges of {','.join(sorted(self.share.names))}"


class Children(Roots):
    is_of_roots = False

    def keeps(self, meta):
        return any(owner.name in self.share.names for owner in meta.owner_references or ())

    def has(self, namespace, name):
        return False

    def foreign(self, namespace, name):
        return None

    def foreign_object(self, meta):
        return None

    def server_ranges(self):
        return ""


class RootsByUid(Roots):
    """Roots whose key does not say which slot they are in."""

    def has(self, namespace, name):
        return False

    def foreign(self, namespace, name):
        return None


class Server:
    """One `World` for each kind."""

    def __init__(self) -> None:
        self.time = Time()
        self.worlds = {"ConfigMap": World(self.time), "Secret": World(self.time)}
        self.ranges: list[tuple[str, str]] = []
        """The kind and the shardSelector of each collection that has one."""

    async def resource_for(self, gvk):
        return APIResource(group="", version="v1", kind=gvk.kind, plural=f"{gvk.kind.lower()}s", namespaced=True)

    def invalidate(self, group=None): ...

    def collection(self, transport, resource, *, shards="", **_):
        if shards:
            self.ranges.append((resource.kind, shards))
        return self.worlds[resource.kind]

    @property
    def roots(self) -> World:
        return self.worlds["ConfigMap"]

    @property
    def children(self) -> World:
        return self.worlds["Secret"]


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setattr(cache_module, "Collection", server.collection)
    return server


@pytest.fixture
def cache(server):
    watch = WatchOptions(streaming_list=False, page_size=2)
    options = CacheOptions(watch=watch, sync_period=None)
    return Cache(None, server, Scheme(), options=options, clock=server.time, rng=lambda: 0.0, sleep=server.time.sleep)


def hold(cache: Cache, *names: str) -> Share:
    share = Share(*names)
    cache.hold_part(ROOT, share, Roots(share), share)
    cache.hold_part(CHILD, share, Children(share), share)
    return share


@contextmanager
def reconciling(share: Share):
    with acting(Actor("sharded", grant=Grant(lambda: None), share=share)):
        yield


@contextmanager
def handling(share: Share):
    with acting(Actor("sharded", share=share)):
        yield


@asynccontextmanager
async def started(cache: Cache, share: Share, kind=ROOT):
    """Run the cache with a synced watch of the share."""
    async with running(cache):
        subscription = await cache.subscribe(kind, name="test", share=share)
        await cache.fill_parts(share.gains)
        drain(subscription)
        yield subscription


def part(cache: Cache, kind: str = "ConfigMap"):
    (informer,) = [
        informer for gvk, informer in cache.all_informers() if gvk.kind == kind and informer.part is not None
    ]
    return informer


def names(objects) -> list[str]:
    return sorted(each.metadata.name for each in objects)


def key(name: str) -> NamespacedName:
    return NamespacedName("ns", name)


# --- who reads what -----------------------------------------------------------------------------------------------------


async def test_a_sharded_controller_has_its_share_and_every_other_reader_the_whole_kind(server, cache):
    for name in "abcd":
        server.roots.put(name)
    share = hold(cache, "a", "b")
    async with started(cache, share):
        with reconciling(share):
            assert names(await cache.list(ROOT)) == ["a", "b"]
        with handling(share):
            assert names(await cache.list(ROOT)) == ["a", "b"]
        assert len(cache.all_informers()) == 1
        with captured_log() as lines, acting(Actor("other")):
            assert names(await cache.list(ROOT)) == ["a", "b", "c", "d"]
        assert names(await cache.list(ROOT)) == ["a", "b", "c", "d"]

        assert len(cache.all_informers()) == 2
        (line,) = [line for line in lines if line["event"] == "caching all objects of a sharded kind"]
        assert (line["kind"], line["reader"]) == ("ConfigMap.v1", "other")


async def test_a_reconcile_that_lists_a_part_of_the_roots_is_a_warning_once(server, cache):
    share = hold(cache, "a")
    async with started(cache, share):
        with captured_log() as lines:
            with handling(share):
                await cache.list(ROOT)
            with reconciling(share):
                await cache.list(CHILD)
                assert [line for line in lines if line["level"] == "warning"] == []
                await cache.list(ROOT)
                await cache.list(ROOT)
    (line,) = [line for line in lines if line["level"] == "warning"]
    assert line["event"] == "list returns only the objects of this replica"
    assert (line["kind"], line["controller"]) == ("ConfigMap.v1", "sharded")


async def test_two_controllers_that_divide_a_kind_by_different_keys_each_list_their_own_share(server, cache):
    for name in "abc":
        server.roots.put(name)
    first = hold(cache, "a")
    second = Share("b", selection=first)
    first.names.add("a")
    cache.hold_part(ROOT, second, Roots(second), first)
    async with started(cache, first):
        assert sorted(name for _, name in content(part(cache).store)) == ["a", "b"]
        for share, name in ((first, "a"), (second, "b")):
            with reconciling(share):
                assert names(await cache.list(ROOT)) == [name]


async def test_metadata_and_whole_objects_of_a_share_use_one_store(server, cache):
    server.roots.put("a")
    server.roots.put("b")
    share = Share("a")
    narrow = PartialObjectMetadata.of(ROOT)
    cache.hold_part(narrow, share, Roots(share), share)
    async with started(cache, share, narrow) as subscription:
        with reconciling(share):
            assert names(await cache.list(narrow)) == ["a"]
            assert names(await cache.list(ROOT)) == ["a"]  # a wider informer takes its place
        await eventually(lambda: len(part(cache).subscribers) == 1)
        server.roots.put("b")
        server.roots.put("a")
        await subscription.ready()
        assert [event.meta.name for event in drain(subscription)] == ["a"]


async def test_an_index_works_in_the_share_and_in_the_whole_kind(server, cache):
    for name in "ab":
        server.roots.put(name)
    cache.index_field(ROOT, "first", lambda obj: ["letter"])
    share = hold(cache, "a")
    async with started(cache, share):
        cache.index_field(ROOT, "second", lambda obj: [obj.metadata.name])
        with reconciling(share):
            assert names(await cache.list(ROOT, fields={"first": "letter"})) == ["a"]
            assert names(await cache.list(ROOT, fields={"second": "b"})) == []
        assert names(await cache.list(ROOT, fields={"first": "letter"})) == ["a", "b"]
        assert names(await cache.list(ROOT, fields={"second": "b"})) == ["b"]


# --- what is missing ----------------------------------------------------------------------------------------------------


async def test_a_root_of_another_replica_is_refused_in_a_reconcile(server, cache):
    server.roots.put("b")
    share = hold(cache, "a")
    async with started(cache, share):
        with reconciling(share):
            for read in (cache.get, cache.get_or_none):
                with pytest.raises(ForeignShardError) as refused:
                    await read(ROOT, key("b"))
                assert (refused.value.slot, refused.value.owner) == (7, "other")


async def test_a_root_of_the_share_that_is_not_cached_does_not_exist(server, cache):
    share = hold(cache, "a")
    async with started(cache, share):
        with reconciling(share):
            assert await cache.get_or_none(ROOT, key("a")) is None
            with pytest.raises(NotFound):
                await cache.get(ROOT, key("a"))


async def test_a_handler_reads_a_root_of_another_replica_live(server, cache):
    server.roots.put("b")
    share = hold(cache, "a")
    async with started(cache, share):
        with handling(share):
            assert (await cache.get(ROOT, key("b"))).metadata.name == "b"
            assert (await cache.get_or_none(ROOT, key("b"))).metadata.name == "b"
            assert await cache.get_or_none(ROOT, key("c")) is None


async def test_a_child_that_is_not_cached_is_read_live(server, cache):
    server.children.put("child-a", owner="a")
    server.children.put("other")
    share = hold(cache, "a")
    async with started(cache, share, CHILD):
        assert [name for _, name in content(part(cache, "Secret").store)] == ["child-a"]
        with reconciling(share):
            assert (await cache.get(CHILD, key("other"))).metadata.name == "other"
            assert await cache.get_or_none(CHILD, key("missing")) is None
            with pytest.raises(NotFound):
                await cache.get(CHILD, key("missing"))
            assert names(await cache.list(CHILD)) == ["child-a"]
            assert names(await cache.list_live(CHILD)) == ["child-a"]


async def test_a_process_without_an_object_lists_nothing_and_its_handlers_read_live(server, cache):
    server.roots.put("b")
    share = hold(cache)
    async with started(cache, share) as subscription:
        assert subscription.is_synced
        assert server.roots.lists == 0
        with handling(share):
            assert (await cache.get(ROOT, key("b"))).metadata.name == "b"
            assert names(await cache.list(ROOT, namespace="ns")) == []
        assert server.roots.lists == 0


async def test_a_root_whose_key_does_not_say_its_slot_is_read_live(server, cache):
    for name in "ab":
        server.roots.put(name)
    share = Share("a", "missing")
    cache.hold_part(ROOT, share, RootsByUid(share), share)
    async with started(cache, share):
        server.roots.put("c")
        share.names.add("c")  # of this share, and not in the cache so far
        with reconciling(share):
            assert (await cache.get(ROOT, key("a"))).metadata.name == "a"
            for read in (cache.get, cache.get_or_none, cache.get_live):
                with pytest.raises(ForeignShardError):
                    await read(ROOT, key("b"))
            assert (await cache.get(ROOT, key("c"))).metadata.name == "c"
            assert await cache.get_or_none(ROOT, key("missing")) is None
        with handling(share):
            assert (await cache.get(ROOT, key("b"))).metadata.name == "b"


async def test_what_is_known_of_an_object_without_a_read(server, cache):
    for name in "ab":
        server.roots.put(name)
    share = hold(cache, "a")
    assert cache.known(ROOT, share, "ns", "a") is None
    async with started(cache, share):
        assert cache.known(ROOT, share, "ns", "a").name == "a"
        assert cache.known(ROOT, share, "ns", "b") is None
        assert cache.known(ROOT, object(), "ns", "a") is None  # the whole kind is not cached
        assert len(cache.all_informers()) == 1


# --- what the server selects --------------------------------------------------------------------------------------------


async def test_the_server_is_asked_for_the_share_alone_and_live_reads_for_every_object(server, cache):
    share = hold(cache, "a")
    async with started(cache, share):
        with handling(share):
            await cache.get_or_none(ROOT, key("b"))
        assert server.ranges == [("ConfigMap", "ranges of a")]
        await cache.fill_parts(share.gain("b"))
        assert server.ranges[1:] == [("ConfigMap", "ranges of a,b")]
        await cache.list(ROOT)
        assert len(server.ranges) == 2  # the whole kind has none


async def test_a_kind_under_two_rules_is_not_selected_by_the_server(server, cache):
    share = Share("a")
    cache.hold_part(ROOT, share, Roots(share), share)
    cache.hold_part(ROOT, share, Children(share), share)
    async with started(cache, share):
        assert server.ranges == []


# --- what changes -------------------------------------------------------------------------------------------------------


async def test_only_events_of_the_share_are_delivered(server, cache):
    for name in "ab":
        server.roots.put(name)
    share = hold(cache, "a")
    async with started(cache, share) as subscription:
        server.roots.put("b")
        server.roots.delete("b")
        server.roots.put("c")
        server.roots.put("a")
        await subscription.ready()
        assert [(type(event), event.meta.name) for event in drain(subscription)] == [(UpdateEvent, "a")]
        server.roots.delete("a")
        await subscription.ready()
        assert [(type(event), event.meta.name) for event in drain(subscription)] == [(DeleteEvent, "a")]


async def test_what_is_gained_is_delivered_like_an_initial_list(server, cache):
    for name in "abc":
        server.roots.put(name)
    share = hold(cache, "a")
    async with started(cache, share) as subscription:
        lists = server.roots.lists
        await cache.fill_parts(share.gain("b", "c"))

        assert {(type(e), e.meta.name, e.is_in_initial_list) for e in drain(subscription)} == {
            (CreateEvent, "b", True),
            (CreateEvent, "c", True),
        }
        assert server.roots.lists == lists + 1
        await cache.fill_parts(share.gains)
        assert server.roots.lists == lists + 1
        server.roots.put("c")
        await subscription.ready()
        (event,) = drain(subscription)
        assert isinstance(event, UpdateEvent)


async def test_a_first_gain_starts_the_list(server, cache):
    server.roots.put("a")
    share = hold(cache)
    async with started(cache, share) as subscription:
        await cache.fill_parts(share.gain("a"))
        assert [event.meta.name for event in drain(subscription)] == ["a"]
        assert server.roots.lists == 1


async def test_a_gain_during_a_list_is_waited_for(server, cache):
    for name in "abcdef":
        server.roots.put(name)
    share = hold(cache, "a")
    async with started(cache, share):
        first = asyncio.ensure_future(cache.fill_parts(share.gain("b")))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(cache.fill_parts(share.gain("c")))
        async with asyncio.timeout(LONGEST_WAIT):
            await first
            await second
        assert sorted(name for _, name in content(part(cache).store)) == ["a", "b", "c"]


async def test_what_is_lost_goes_without_an_event(server, cache):
    for name in "ab":
        server.roots.put(name)
    share = hold(cache, "a", "b")
    async with started(cache, share) as subscription:
        share.names.discard("a")
        await cache.release_parts()
        assert [name for _, name in content(part(cache).store)] == ["b"]
        share.names.clear()
        await cache.release_parts()
        assert content(part(cache).store) == {}
        assert part(cache).scopes == ()  # nothing is watched

        await cache.fill_parts(share.gain("a"))
        assert [(type(event), event.meta.name) for event in drain(subscription)] == [(CreateEvent, "a")]


async def test_the_last_change_of_a_child_with_another_owner_is_delivered(server, cache):
    server.children.put("child", owner="a")
    share = hold(cache, "a")
    async with started(cache, share, CHILD) as subscription:
        server.children.put("child", owner="b")
        await subscription.ready()
        (event,) = drain(subscription)
        assert isinstance(event, UpdateEvent)
        assert [event.old_meta.owner_references[0].name, event.meta.owner_references[0].name] == ["a", "b"]
        assert content(part(cache, "Secret").store) == {}
        server.children.put("child", owner="a")
        await subscription.ready()
        assert [type(event) for event in drain(subscription)] == [CreateEvent]


async def test_a_write_to_an_object_of_another_replica_delays_no_read_of_the_share(server, cache):
    share = hold(cache, "a")
    async with started(cache, share):
        with reconciling(share):
            view, _ = await cache.view(ROOT, "ns")
        assert view.is_part
        assert view.covers("ns", Metadata(name="a", namespace="ns"))
        assert not view.covers("ns", Metadata(name="b", namespace="ns"))


async def test_a_comparison_with_the_server_says_what_belongs_to_the_share(server, cache):
    for name in "ab":
        server.roots.put(name)
    share = hold(cache, "a")
    async with started(cache, share):
        await cache.list(ROOT)
        with reconciling(share):
            mine, _ = await cache.view(ROOT, "ns")
        whole, _ = await cache.view(ROOT, "ns")
        for compared_by in (mine, whole):
            listing = await compared_by.compare(("ns", ""))
            assert set(listing.expected(mine, "ns")) == {("ns", "a")}
            assert set(listing.expected(whole, "ns")) == {("ns", "a"), ("ns", "b")}
            assert listing.version(mine, ("ns", "b")) is None
            assert listing.version(whole, ("ns", "b")) == "3"


@pytest.mark.parametrize("seed", range(100))
async def test_any_history_ends_with_exactly_the_share_in_the_cache(server, cache, seed):
    random = Random(seed)
    letters = "abcdef"
    for name in letters[:4]:
        server.roots.put(name)
    share = hold(cache, *random.sample(letters, random.randrange(4)))
    state: dict[str, str] = {}
    tasks = []
    async with started(cache, share) as subscription:
        for entry in part(cache).store:
            state[entry.meta.name] = entry.meta.resource_version
        for _ in range(30):
            name = random.choice(letters)
            match random.randrange(8):
                case 0 | 1:
                    server.roots.put(name)
                case 2:
                    server.roots.delete(name)
                case 3:
                    server.roots.faults = [("in-stream", Expired("compacted"))]
                    server.roots.forget()
                case 4:
                    tasks.append(asyncio.ensure_future(cache.fill_parts(share.gain(name))))
                case 5:
                    share.names.discard(name)
                    tasks.append(asyncio.ensure_future(cache.release_parts()))
                case _:
                    for _ in range(random.randrange(20)):
                        await asyncio.sleep(0)
            follow(subscription, state)
        async with asyncio.timeout(LONGEST_WAIT):
            await asyncio.gather(*tasks)
            await cache.release_parts()
            await cache.fill_parts(share.gain("z"))
        server.roots.put("z")
        expected = {key: raw for key, raw in server.roots.content.items() if key[1] in share.names}
        await eventually(lambda: content(part(cache).store) == expected)
        follow(subscription, state)

    # A subscriber may know more: no event says that an object of another replica is gone.
    versions = {meta.name: meta.resource_version for meta in map(metadata_of, expected.values())}
    assert versions.items() <= state.items()


def follow(subscription, state: dict[str, str]) -> None:
    for event in drain(subscription):
        if isinstance(event, DeleteEvent):
            state.pop(event.meta.name, None)
        else:
            state[event.meta.name] = event.meta.resource_version
