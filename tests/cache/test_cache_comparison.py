"""Whether a cache shows what the server had at a moment: what a new leader waits for before it works."""

from __future__ import annotations

import asyncio
import json

import pytest

from ctrlruntime.api.metadata import metadata_of
from ctrlruntime.cache.comparison import compare
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Entry, Store
from ctrlruntime.errors import Expired
from ctrlruntime.rest.collection import Collection, Page

WHOLE = Scope()


def raw(name, version, namespace="ns"):
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(version)}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).encode()


class Server(Collection):
    """A collection that lists what it is given, page by page."""

    def __init__(self, position, *pages):
        self.position = str(position)
        self.contents = pages
        self.expire = 0
        self.limits = []

    async def page(self, *, limit, continue_token=""):
        self.limits.append(limit)
        number = int(continue_token or 0)
        if number and self.expire:
            self.expire -= 1
            raise Expired("the token is too old")
        following = str(number + 1) if number + 1 < len(self.contents) else ""
        return Page([*self.contents[number]], self.position, following, None, not number)


class Shown:
    """An informer of which the test says what it shows."""

    def __init__(self, *objects, version=0, scopes=(WHOLE,)):
        self.store = Store()
        self.scopes = scopes
        self.is_stopped = False
        self._version = version
        self._changed = asyncio.Event()
        for each in objects:
            self.put(each)

    def version(self, namespace):
        return self._version

    def put(self, each):
        self.store.put(Entry(each, metadata_of(each)))
        self.tell()

    def tell(self):
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    def changed(self):
        return self._changed.wait()


async def is_shown(comparison, informer):
    """Let the comparison look once more; say whether it is content."""
    task = asyncio.ensure_future(comparison.shown(informer, WHOLE))
    for _ in range(3):
        await asyncio.sleep(0)
    if not task.done():
        task.cancel()
        return False
    await task
    return True


async def test_a_cache_that_shows_each_object_is_as_far():
    comparison = await compare(Server(9, [raw("a", 3)], [raw("b", 4)]))

    assert await is_shown(comparison, Shown(raw("a", 3), raw("b", 4)))


async def test_an_object_that_is_missing_or_older_is_waited_for():
    comparison = await compare(Server(9, [raw("a", 3), raw("b", 4)]))
    informer = Shown(raw("a", 2))

    waiting = asyncio.ensure_future(comparison.shown(informer, WHOLE))
    for each in (raw("a", 3), raw("b", 3), raw("b", 4)):
        await asyncio.sleep(0)
        assert not waiting.done()
        informer.put(each)

    await asyncio.wait_for(waiting, 5)


async def test_an_object_the_server_does_not_have_any_more_is_waited_out():
    comparison = await compare(Server(9, [raw("a", 3)]))
    informer = Shown(raw("a", 3), raw("gone", 2))

    waiting = asyncio.ensure_future(comparison.shown(informer, WHOLE))
    await asyncio.sleep(0)
    assert not waiting.done()
    informer.store.remove("ns", "gone")
    informer.tell()

    await asyncio.wait_for(waiting, 5)


async def test_what_was_created_after_the_list_is_no_concern():
    comparison = await compare(Server(9, [raw("a", 3)]))

    assert await is_shown(comparison, Shown(raw("a", 10), raw("new", 11)))


async def test_what_was_shown_and_is_deleted_later_is_not_waited_for_again():
    comparison = await compare(Server(9, [raw("a", 3), raw("b", 4)]))
    informer = Shown(raw("a", 3))
    assert not await is_shown(comparison, informer)

    informer.store.remove("ns", "a")
    informer.put(raw("b", 4))

    assert await is_shown(comparison, informer)


async def test_a_cache_that_has_seen_the_position_of_the_list_needs_no_look_at_objects():
    comparison = await compare(Server(9, [raw("created and deleted again", 3)]))

    assert await is_shown(comparison, Shown(version=9))


@pytest.mark.parametrize("change", [{"is_stopped": True}, {"scopes": ()}])
async def test_a_scope_that_is_not_followed_any_more_is_not_waited_for(change):
    comparison = await compare(Server(9, [raw("a", 3)]))
    informer = Shown()
    for name, value in change.items():
        setattr(informer, name, value)

    assert await is_shown(comparison, informer)


async def test_versions_that_are_no_numbers_are_not_compared():
    assert await compare(Server(9, [raw("a", "x1")])) is None
    assert await compare(Server("x9", [raw("a", 1)])) is None


async def test_a_list_that_expires_midway_begins_again_with_larger_pages():
    server = Server(9, [raw("a", 3)], [raw("b", 4)])
    server.expire = 1

    comparison = await compare(server)

    assert await is_shown(comparison, Shown(raw("a", 3), raw("b", 4)))
    assert server.limits[-1] > server.limits[0]
