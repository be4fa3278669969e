"""List and watch against recorded answers: what is asked, what comes out, how long is waited."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing

import pytest
from cache_server import (
    HANGS,
    PAGES,
    Script,
    Time,
    added,
    bookmark,
    deleted,
    modified,
    obj,
    page,
    reflector_of,
    take,
)
from servers import LONGEST_WAIT

from ctrlruntime.cache.reflector import (
    Backoff,
    Change,
    Changed,
    Failed,
    ListBehindError,
    Listed,
    Progressed,
    Replaced,
    State,
    WatchOptions,
)
from ctrlruntime.errors import (
    APIStatusError,
    BadRequest,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    Invalid,
    NoMatchError,
    NotFound,
    RequestTimeoutError,
    ServiceUnavailable,
    StatusCause,
    Timeout,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from ctrlruntime.rest.watch import Frame

STREAM = WatchOptions(streaming_list=True, stream_idle_timeout=0.05)
A1, B2 = obj("a", 1), obj("b", 2)


@pytest.fixture
def time():
    return Time()


async def test_a_list_in_pages_keeps_all_and_the_watch_goes_on_from_its_version(time):
    script = Script(time, page(A1, version=5, token="t1"), page(B2, version=5, token="t2"), page(version=5), [[modified("a", 6)]])  # fmt: skip

    updates = await take(reflector_of(script), 2)

    assert updates == [Replaced([A1, B2], "5"), Changed([Change("MODIFIED", obj("a", 6))], "6")]
    assert script.asked == [("list", 500, ""), ("list", 500, "t1"), ("list", 500, "t2"), ("watch", "5")]


async def test_a_watch_that_ends_is_resumed_from_its_last_version_without_a_list(time):
    script = Script(
        time, page(A1, version=5), [40, [modified("a", 6)]], [40, [bookmark(9)], 1], [40], [[deleted("a", 12)]]
    )

    updates = await take(reflector_of(script), 7)

    assert script.asked[1:] == [("watch", "5"), ("watch", "6"), ("watch", "9"), ("watch", "9")]
    assert updates[1:] == [
        Changed([Change("MODIFIED", obj("a", 6))], "6"),
        Progressed("6"),
        Progressed("9"),
        Progressed("9"),
        Progressed("9"),
        Changed([Change("DELETED", obj("a", 12))], "12"),
    ]
    assert time.slept == []


async def test_changes_and_bookmarks_of_one_batch_keep_their_order_and_versions(time):
    script = Script(time, page(version=1), [[added("a", 2), modified("a", 3), bookmark(7), added("b", 8)]])

    updates = await take(reflector_of(script), 4)

    assert [(type(u).__name__, u.resource_version) for u in updates[1:]] == [
        ("Changed", "3"), ("Progressed", "7"), ("Changed", "8"),
    ]  # fmt: skip


# --- 410 ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "gone",
    [
        Expired("too old"),
        Gone("too old"),
        APIStatusError.from_response(410, b"gone"),
        APIStatusError.from_response(500, b'{"kind":"Status","code":410,"reason":"Expired"}'),
        APIStatusError.from_response(500, b'{"kind":"Status","code":410}'),
    ],
)
@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_410_leads_to_one_relist_at_once_and_to_nothing_the_user_sees(time, gone, in_stream):
    script = Script(time, page(A1, version=5), [[modified("a", 6)], gone] if in_stream else gone, page(B2, version=50), [HANGS])  # fmt: skip
    reflector = reflector_of(script)

    updates = await take(reflector, 3 if in_stream else 2)

    assert updates[-1] == Replaced([B2], "50")
    assert not any(isinstance(update, Failed) for update in updates)
    assert script.kinds_asked == ["list", "watch", "list"]
    assert time.slept == []
    assert reflector.relists == 2


async def test_versions_that_expire_again_and_again_are_listed_with_growing_waits(time):
    script = Script(time, *[answer for _ in range(5) for answer in (page(version=5), Expired("no"))])
    reflector = reflector_of(script)

    async with asyncio.timeout(LONGEST_WAIT), aclosing(reflector.updates()) as updates:
        lists = 0
        async for update in updates:
            lists += isinstance(update, Replaced)
            if lists == 5:
                break

    assert time.slept == [0.8, 1.6, 3.2]


@pytest.mark.parametrize("gone", [Expired("old token"), Gone("old token")])
async def test_a_token_that_expires_on_page_k_starts_over_with_larger_bounded_pages(time, gone):
    script = Script(time, page(A1, version=5, token="t"), gone, page(A1, version=9, token="u"), page(B2, version=9), [HANGS])  # fmt: skip
    reflector = reflector_of(script)

    updates = await take(reflector, 1)

    assert updates == [Replaced([A1, B2], "9")]
    assert script.asked == [("list", 500, ""), ("list", 500, "t"), ("list", 1000, ""), ("list", 1000, "u")]
    assert reflector.relists == 1


async def test_pages_that_always_expire_are_bounded_in_size_and_waited_for(time):
    expiring = [answer for _ in range(10) for answer in (page(A1, version=5, token="t"), Expired("old"))]
    script = Script(time, *expiring, page(A1, version=9))

    updates = await take(reflector_of(script), 2)

    assert [type(update) for update in updates] == [Failed, Replaced]
    assert max(asked[1] for asked in script.asked) == 8000
    assert time.slept


async def test_the_next_page_is_asked_for_before_this_one_is_worked_on_and_no_further_one(time):
    script = Script(time, page(A1, version=5, token="t1"), page(B2, version=5, token="t2"), page(version=5), [HANGS])
    async with asyncio.timeout(LONGEST_WAIT), aclosing(reflector_of(script).updates()) as updates:
        assert await anext(updates) == Listed([A1], 0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert [token for _, _, token in script.asked] == ["", "t1"]

        assert await anext(updates) == Listed([B2], 1)
        assert [token for _, _, token in script.asked] == ["", "t1", "t2"]

        assert await anext(updates) == Replaced([], "5", pages=2)


@pytest.mark.parametrize("answers", [[], [TransportError("reset")], [page(B2, version=5)]])
async def test_a_page_that_is_on_its_way_ends_with_its_list(time, answers):
    faults = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
    script = Script(time, page(A1, version=5, token="t"), *answers)
    async with asyncio.timeout(LONGEST_WAIT), aclosing(reflector_of(script).updates()) as updates:
        assert await anext(updates) == Listed([A1], 0)
        assert script.asked[-1] == ("list", 500, "t")

    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()
    await asyncio.sleep(0)
    assert faults == []


async def test_a_list_that_is_cancelled_while_it_waits_for_a_page_leaves_no_request_behind(time):
    script = Script(time, page(A1, version=5, token="t"))
    taking = asyncio.create_task(take(reflector_of(script), 1))
    async with asyncio.timeout(LONGEST_WAIT):
        await script.exhausted.wait()
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_list_that_begins_anew_counts_its_pages_anew(time):
    script = Script(time, page(A1, version=5, token="t"), Expired("old"), page(B2, version=9, token="u"), page(A1, version=9), [HANGS])  # fmt: skip
    async with asyncio.timeout(LONGEST_WAIT), aclosing(reflector_of(script).updates()) as updates:
        taken = [await anext(updates) for _ in range(3)]

    assert taken == [Listed([A1], 0), Listed([B2], 0), Replaced([A1], "9", pages=1)]


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        TransportError("reset"),
        RequestTimeoutError("dead"),
        InternalError("boom"),
        ServiceUnavailable("not now"),
        TooManyRequests("slow down"),
        Unauthorized("token"),
        Forbidden("no"),
    ],
)
async def test_a_failing_watch_is_resumed_without_a_list(time, error):
    script = Script(time, page(A1, version=5), [[modified("a", 6)], error], error, [[modified("a", 7)]])

    updates = await take(reflector_of(script), 5)

    assert [type(update) for update in updates] == [Replaced, Changed, Failed, Failed, Changed]
    assert updates[2] == Failed(error, State.WATCHING)
    assert script.asked[1:] == [("watch", "5"), ("watch", "6"), ("watch", "6")]
    assert time.slept == [0.8, 1.6]


@pytest.mark.parametrize("kind", [TooManyRequests, ServiceUnavailable])
async def test_a_server_that_asks_for_patience_gets_it_within_reason(time, kind):
    script = Script(time, kind("later", retry_after=7), kind("later", retry_after=9999), page(version=1))

    await take(reflector_of(script), 3)

    assert time.slept == [7.0, 60.0]


async def test_waits_double_up_to_the_longest(time):
    script = Script(time, *[TransportError("down")] * 8, page(version=1))

    await take(reflector_of(script), 9)

    assert time.slept == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_the_wait_is_jittered_and_starts_over_after_a_calm_time(time):
    backoff = Backoff(WatchOptions(), clock=time, rng=lambda: 0.5)

    assert backoff.next() == pytest.approx(1.2)
    assert backoff.next() == pytest.approx(2.4)
    time.now += 200
    assert backoff.next() == pytest.approx(1.2)


async def test_a_watch_that_lived_starts_the_wait_over(time):
    dead = [40, [bookmark(6)], RequestTimeoutError("dead")]
    script = Script(time, page(version=5), dead, dead, dead, [HANGS])

    await take(reflector_of(script), 7)

    assert time.slept == [0.8, 0.8]  # a silent proxy: each is replaced in the same short time


@pytest.mark.parametrize("answer", [[], [[bookmark(5)]]])
async def test_watches_that_end_at_once_are_asked_at_a_bounded_rate(time, answer):
    script = Script(time, page(version=5), *[answer] * 8, [HANGS])
    began = time.now

    await take(reflector_of(script), 1 + 8 * (1 + len(answer)))

    assert time.now - began >= 50
    assert script.kinds_asked == ["list"] + ["watch"] * 8


async def test_short_watches_that_bring_changes_are_slowed_down_a_little_only(time):
    script = Script(time, page(version=5), *[[[modified("a", 6 + n)]] for n in range(10)])

    await take(reflector_of(script), 20)

    assert max(time.slept) <= 1.0
    assert len(time.slept) == 9


@pytest.mark.parametrize("error", [NoMatchError("no such kind"), NotFound("404")])
async def test_a_kind_that_is_not_served_is_asked_for_until_it_is_and_then_listed(time, error):
    script = Script(time, page(A1, version=5), [error], page(B2, version=9), [HANGS])
    resolved, forgotten = [], []

    async def resolve():
        resolved.append(True)
        if len(resolved) in (1, 2, 4):
            raise NoMatchError("not yet")
        return script

    reflector = reflector_of(script, resolve=resolve, forget=lambda: forgotten.append(True))
    updates = await take(reflector, 6)

    assert [type(u).__name__ for u in updates] == ["Failed", "Failed", "Replaced", "Failed", "Failed", "Replaced"]
    assert [u.state for u in updates if isinstance(u, Failed)] == [State.RESOLVING, State.RESOLVING, State.WATCHING, State.RESOLVING]  # fmt: skip
    assert len(forgotten) == 4
    assert max(time.slept) <= 5.0


async def test_a_forbidden_kind_is_tried_again_often(time):
    script = Script(time, *[Forbidden("no")] * 10, page(A1, version=5))

    updates = await take(reflector_of(script), 11)

    assert updates[0] == Failed(script_error := updates[0].error, State.LISTING)
    assert isinstance(script_error, Forbidden)
    assert max(time.slept) == 5.0


async def test_an_object_without_metadata_does_not_stop_the_watch(time):
    bad = Frame("MODIFIED", b'{"metadata":[]}')
    script = Script(time, page(version=5), [[added("a", 6), bad, Frame("BOOKMARK", b"{}"), Frame("ODD", b"{}")]], [HANGS])  # fmt: skip
    reflector = reflector_of(script)

    updates = await take(reflector, 3)

    assert updates[1].resource_version == "6"
    assert [change.raw for change in updates[1].changes] == [obj("a", 6), bad.object]
    assert reflector.version == "6"


async def test_only_frames_lists_and_clean_ends_prove_life(time):
    script = Script(time, page(version=5), [10, [bookmark(6)], 20], [TransportError("x")])
    reflector = reflector_of(script)

    async with aclosing(reflector.updates()) as updates:
        await anext(updates)
        assert reflector.last_activity == 1000.0
        await anext(updates)
        assert reflector.last_activity == 1010.0
        await anext(updates)
        assert reflector.last_activity == 1030.0
        time.now += 5
        assert isinstance(await anext(updates), Failed)
        assert reflector.last_activity == 1030.0


async def test_a_silent_watch_is_replaced_on_request_and_continues_from_its_version(time):
    silent = [HANGS]
    script = Script(time, page(A1, version=5), [[modified("a", 6)], HANGS], silent, silent, [[modified("a", 7)], HANGS])
    reflector = reflector_of(script)
    replaced_at = {}

    async with aclosing(reflector.updates()) as updates:
        for _ in range(2):
            await anext(updates)
        following = asyncio.ensure_future(anext(updates))
        while not following.done():
            time.now += 1
            reflector.refresh()
            for _ in range(10):
                await asyncio.sleep(0)
            replaced_at.setdefault(reflector.watches, time.now)

    assert script.asked[1:] == [("watch", "5"), ("watch", "6"), ("watch", "6"), ("watch", "6")]
    # After 5 s, and then after twice the time, because the next one was silent as well.
    assert list(replaced_at.values())[1:] == [1005.0, 1015.0, 1035.0]
    assert reflector.restarts == {"silent": 3}
    assert time.slept == []


async def test_a_reflector_that_lists_or_waits_is_not_refreshed(time):
    script = Script(time, page(A1, version=5), TransportError("x"))
    reflector = reflector_of(script)
    time.now += 100
    reflector.refresh()

    await take(reflector, 2)
    assert reflector.state is State.WATCHING
    assert reflector.restarts == {"cut": 1}


async def test_the_open_watch_is_closed_when_nobody_listens_any_more(time):
    script = Script(time, page(version=5), [[added("a", 6)], HANGS])

    await take(reflector_of(script), 2)

    assert script.closed == 1


async def test_watches_differ_in_length(time):
    lengths = []
    script = Script(time, page(version=1), [40], [40], [HANGS])
    watch = script.watch
    script.watch = lambda **asked: (lengths.append(asked["timeout"]), watch(**asked))[1]
    reflector = reflector_of(script)
    chances = iter([0.0, 0.5, 1.0])
    reflector._rng = lambda: next(chances)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await take(reflector, 4)

    assert lengths == [30.0, 37.5, 45.0]


@pytest.mark.parametrize("wrong", [{"timeout": (0.5, 40)}, {"timeout": (50, 40)}, {"page_size": 0}])
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=r"timeout|page_size"):
        WatchOptions(**wrong)


# --- a server that goes back ------------------------------------------------------------------------------------------


async def test_a_list_older_than_what_was_seen_is_asked_for_again(time):
    script = Script(time, page(A1, version=50), Expired("old"), page(version=40), page(A1, version=60))

    updates = await take(reflector_of(script), 3)

    assert [type(u).__name__ for u in updates] == ["Replaced", "Failed", "Replaced"]
    assert isinstance(updates[1].error, ListBehindError)
    assert updates[2].resource_version == "60"


async def test_a_server_restored_from_a_backup_is_believed_after_a_few_tries(time):
    too_large = Timeout("Too large resource version: 50, current: 20", causes=[StatusCause("ResourceVersionTooLarge")])
    script = Script(time, page(A1, version=50), too_large, *[page(B2, version=20)] * 4, [[modified("b", 21)]])

    updates = await take(reflector_of(script), 7)

    assert [type(u).__name__ for u in updates] == ["Replaced", *["Failed"] * 4, "Replaced", "Changed"]
    assert updates[-2] == Replaced([B2], "20")
    assert script.asked[-1] == ("watch", "20")
    assert sum(time.slept) < 30


# --- streaming lists -------------------------------------------------------------------------------------------------


async def test_without_the_option_lists_come_in_pages(time):
    script = Script(time, page(A1, version=5), [HANGS])

    await take(reflector_of(script, options=WatchOptions()), 1)

    assert script.kinds_asked[0] == "list"


async def test_a_streaming_list_is_one_request_that_goes_on_as_a_watch(time):
    script = Script(time, [[added("a", 1)], [added("b", 2), bookmark(5, ends_initial=True), modified("a", 6)], [modified("b", 7)]], [HANGS])  # fmt: skip

    updates = await take(reflector_of(script, options=STREAM), 4)

    assert updates == [
        Replaced([A1, B2], "5", []),
        Changed([Change("MODIFIED", obj("a", 6))], "6"),
        Changed([Change("MODIFIED", obj("b", 7))], "7"),
        Progressed("7"),
    ]
    assert script.asked == [("stream", "")]


async def test_changes_during_the_initial_events_come_with_the_list_in_order(time):
    script = Script(time, [[added("a", 1), added("b", 2), bookmark(2), deleted("a", 3), added("a", 4), modified("b", 5), bookmark(5, ends_initial=True)], HANGS])  # fmt: skip

    (replaced,) = await take(reflector_of(script, options=STREAM), 1)

    assert replaced.items == [A1, B2]
    assert [(change.type, change.raw) for change in replaced.changes] == [
        ("DELETED", obj("a", 3)), ("ADDED", obj("a", 4)), ("MODIFIED", obj("b", 5)),
    ]  # fmt: skip
    assert replaced.resource_version == "5"


@pytest.mark.parametrize(
    "answer", [Invalid("sendInitialEvents is forbidden"), BadRequest("?"), [[added("a", 1)]], [[added("a", 1)], HANGS], [HANGS]]
)  # fmt: skip
async def test_a_server_without_streaming_lists_is_listed_in_pages_and_not_asked_again(time, answer):
    script = Script(time, answer, page(A1, version=5), Expired("old"), page(A1, version=9), [HANGS])

    updates = await take(reflector_of(script, options=STREAM), 2)

    assert updates == [Replaced([A1], "5"), Replaced([A1], "9")]
    assert script.kinds_asked == ["stream", "list", "watch", "list"]
    assert time.slept == []


async def test_a_streaming_list_that_breaks_is_asked_for_again(time):
    script = Script(time, [[added("a", 1)], TransportError("reset")], [[added("b", 2), bookmark(5, ends_initial=True)], HANGS])  # fmt: skip

    updates = await take(reflector_of(script, options=STREAM), 2)

    assert isinstance(updates[0], Failed)
    assert updates[1] == Replaced([B2], "5", [])


async def test_a_stream_that_breaks_after_its_list_is_resumed_without_a_list(time):
    script = Script(time, [[bookmark(5, ends_initial=True)], [added("a", 6)], TransportError("reset")], [HANGS])

    await take(reflector_of(script, options=STREAM), 3)
    updates = await take(reflector := reflector_of(Script(time, [[bookmark(5, ends_initial=True)], Invalid("odd")], [[added("a", 6)]]), options=STREAM), 3)  # fmt: skip

    assert [type(u).__name__ for u in updates] == ["Replaced", "Failed", "Changed"]
    assert reflector.relists == 1


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (2, "ended"),
        (Expired("old"), "expired"),
        (Gone("old"), "expired"),
        (RequestTimeoutError("silent"), "stalled"),
        (TransportError("reset"), "cut"),
        (TooManyRequests("busy"), "throttled"),
        (ServiceUnavailable("busy"), "throttled"),
        (Forbidden("no"), "refused"),
        (Unauthorized("who"), "refused"),
        (NotFound("no such kind"), "refused"),
        (InternalError("oh"), "failed"),
    ],
)
async def test_watches_that_end_are_counted_by_why(time, end, reason):
    reflector = reflector_of(Script(time, page(A1, version=5), [end], page(A1, version=6), [HANGS]))

    await take(reflector, 2)  # the list; then its end, or the list after it

    assert reflector.restarts == {reason: 1}


async def test_a_list_that_fails_is_no_watch_that_ended(time):
    reflector = reflector_of(Script(time, TransportError("reset"), page(A1, version=5), [HANGS]))

    await take(reflector, 2)

    assert reflector.restarts == {}


async def test_restart_lists_again(time):
    script = Script(time, page(A1, version=5), page(B2, version=9))
    reflector = reflector_of(script)
    await take(reflector, 1)

    reflector.restart()

    assert await take(reflector, 1) == [Replaced([B2], "9")]


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        (PAGES, [BadRequest("invalid shard selector"), page(A1, version=5)]),
        (PAGES, [InternalError("invalid shard selector"), page(A1, version=5)]),
        # The first refusal may be one of streaming lists.
        (STREAM, [BadRequest("invalid"), BadRequest("invalid shard selector"), page(A1, version=5)]),
        (STREAM, [InternalError("invalid shard selector"), [[added("a", 1), bookmark(5, ends_initial=True)]]]),
    ],
)
async def test_a_selector_of_shards_that_the_server_refuses_is_not_sent_again(time, options, answers):
    script = Script(time, *answers)
    script.shards = "shardRange(a) || shardRange(b)"
    reflector = reflector_of(script, options=options)

    updates = await take(reflector, 1)

    assert [type(update) for update in updates] == [Replaced]  # and no failure
    assert (script.shards, reflector.server_ranges) == ("", 0)
    assert time.slept == []


async def test_another_error_keeps_the_selector_of_shards(time):
    script = Script(time, ServiceUnavailable("try later"), page(A1, version=5))
    script.shards = "shardRange(a) || shardRange(b)"
    reflector = reflector_of(script)

    updates = await take(reflector, 2)

    assert [type(update) for update in updates] == [Failed, Replaced]
    assert reflector.server_ranges == 2
