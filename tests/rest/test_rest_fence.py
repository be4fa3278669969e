"""The fence by itself; what it does to requests is in test_rest_transport."""

import asyncio
import contextlib
import time

import pytest

from ctrlruntime.errors import FencedError, RequestTimeoutError
from ctrlruntime.rest.fence import Actor, Fence, Grant, acting, current_actor, lease_clock

LEADER = Actor("memcached")
FREE = Actor("events", fenced=False)


def test_an_actor_holds_for_the_block_and_what_it_calls():
    assert current_actor() is None
    with acting(LEADER):
        with acting(FREE):
            assert current_actor() is FREE
        assert current_actor() is LEADER
    assert current_actor() is None


def test_an_unarmed_fence_is_open():
    assert Fence().time_left() is None


def test_an_armed_fence_counts_down_and_closes():
    now = 10.0
    until: float | None = 15.0
    fence = Fence(clock=lambda: now)
    fence.arm(lambda: until)

    assert fence.time_left() == 5.0
    with acting(LEADER):
        assert fence.time_left() == 5.0
    now = 15.0
    with pytest.raises(FencedError, match="a caller outside controllers rejected"):
        fence.time_left()
    now, until = 12.0, None
    with acting(LEADER), pytest.raises(FencedError, match="write by controller memcached rejected"):
        fence.time_left()
    with acting(FREE):
        assert fence.time_left() is None


def test_writes_that_are_refused_are_told_with_the_controller():
    refused = []
    fence = Fence(refused=refused.append)
    fence.arm(lambda: None)

    for actor in (LEADER, FREE, None):
        with contextlib.suppress(FencedError), acting(actor) if actor else contextlib.nullcontext():
            fence.time_left()

    assert refused == ["memcached", ""]


def test_leases_are_measured_by_a_clock_that_goes_on_while_the_machine_sleeps():
    before = time.clock_gettime(time.CLOCK_BOOTTIME)

    assert before <= lease_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


async def test_what_is_enforced_ends_with_leadership():
    loop = asyncio.get_running_loop()
    until = loop.time() + 0.02
    fence = Fence(clock=loop.time)
    fence.arm(lambda: until)

    with pytest.raises(RequestTimeoutError, match="PUT /x: aborted"):
        async with fence.enforced("PUT /x"):
            await asyncio.Event().wait()
    with pytest.raises(FencedError):
        async with fence.enforced("PUT /x"):
            pytest.fail("it may not begin")


async def test_what_is_enforced_and_ends_in_time_is_left_alone():
    loop = asyncio.get_running_loop()
    fence = Fence(clock=loop.time)
    fence.arm(lambda: loop.time() + 60)

    async with fence.enforced("PUT /x"):
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError, match="mine"):
        async with fence.enforced("PUT /x"):
            raise TimeoutError("mine")
    with acting(FREE):
        async with fence.enforced("PUT /x"):
            await asyncio.sleep(0)


async def test_a_part_of_a_grant_ends_with_it_and_its_writes_are_those_of_the_whole():
    whole = Grant(lambda: 5.0)
    part = Grant(whole.deadline, whole=whole)
    part.begin()
    assert (part.deadline(), whole.is_settled) == (5.0, False)
    part.close()
    assert (part.deadline(), whole.deadline()) == (None, 5.0)
    part.end()
    await whole.settled()
    whole.close()
    assert Grant(whole.deadline, whole=whole).deadline() is None
