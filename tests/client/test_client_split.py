"""The manager's client: which reads the cache answers, and which the server."""

from __future__ import annotations

import pytest

from ctrlruntime.api import core
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client import intercept
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.split import SplitClient
from ctrlruntime.errors import NamespaceNotCachedError, NotCachedError, NotFound, ObjectNotCachedError
from ctrlruntime.scheme import Scheme

KEY = NamespacedName("ns", "a")


class Side:
    """The cache, or the server: it notes what it is asked and answers with its name, or with an error."""

    scheme = Scheme()

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    @property
    def api_reader(self):
        return self

    async def get(self, kind, key, *, live_fallback=False):
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def get_or_none(self, kind, key):
        try:
            return await self.get(kind, key)
        except NamespaceNotCachedError:
            raise
        except NotFound:
            return None

    async def list(self, kind, **options):
        self.asked += 1
        self.options = options
        return [self.answer]

    async def get_live(self, kind, key):
        return await self.get(kind, key)

    async def list_live(self, kind, **options):
        return await self.list(kind, **options)


def client(cache, *, reads_live=None):
    api = Side("server's")
    return SplitClient(api, cache, Gate(), reads_live=reads_live), api


@pytest.mark.parametrize(
    "error", [ObjectNotCachedError("only some"), NamespaceNotCachedError("elsewhere"), NotCachedError("refused")]
)
async def test_what_the_cache_cannot_know_is_asked_of_the_server_when_the_call_says_so(error):
    cache = Side(error)
    split, api = client(cache)

    with pytest.raises(type(error)):
        await split.get(core.ConfigMap, KEY)
    assert api.asked == 0

    assert await split.get(core.ConfigMap, KEY, live_fallback=True) == "server's"
    assert await split.get_or_none(core.ConfigMap, KEY, live_fallback=True) == "server's"
    assert (cache.asked, api.asked) == (3, 2)


async def test_what_the_cache_knows_to_be_absent_is_not_asked_of_the_server():
    split, api = client(Side(NotFound("gone")))

    with pytest.raises(NotFound):
        await split.get(core.ConfigMap, KEY, live_fallback=True)
    assert await split.get_or_none(core.ConfigMap, KEY, live_fallback=True) is None
    assert api.asked == 0


async def test_find_gives_none_for_a_miss_in_a_selection_and_raises_for_a_namespace_that_is_not_cached():
    assert await client(Side(ObjectNotCachedError("only some")))[0].get_or_none(core.ConfigMap, KEY) is None
    with pytest.raises(NamespaceNotCachedError):
        await client(Side(NamespaceNotCachedError("elsewhere")))[0].get_or_none(core.ConfigMap, KEY)


async def test_reads_that_belong_to_the_server_do_not_reach_the_cache():
    cache = Side("cached")
    split, _ = client(cache, reads_live=lambda kind: kind is core.ConfigMap)

    assert await split.get(core.ConfigMap, KEY) == "server's"
    assert list(await split.list(core.ConfigMap)) == ["server's"]
    assert cache.asked == 0
    assert await split.get(core.Secret, KEY) == "cached"


async def test_a_continue_token_is_refused_by_the_cache_and_not_read_live():
    cache = Side("cached")
    split, api = client(cache)

    await split.list(core.Secret, limit=5, continue_token="token")

    assert (cache.options["continue_token"], api.asked) == ("token", 0)


async def test_a_hook_that_misses_is_followed_by_a_live_read_when_the_call_says_so():
    async def missing(client, kind, key):
        raise ObjectNotCachedError("only some")

    intercepted = intercept(client(Side("cached"))[0], get=missing)

    with pytest.raises(ObjectNotCachedError):
        await intercepted.get(core.ConfigMap, KEY)
    assert await intercepted.get_or_none(core.ConfigMap, KEY) is None
    assert await intercepted.get(core.ConfigMap, KEY, live_fallback=True) == "server's"
