"""A controller that reconciles a share of the requests."""

from __future__ import annotations

import asyncio
from typing import Self

import pytest

from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.errors import ForeignShardError
from ctrlruntime.reconcile import Request, Result
from ctrlruntime.rest.fence import Grant, current_actor
from ctrlruntime.testing.virtual_time import in_virtual_time

A, B, C = SLOTS = Request("ns", "a"), Request("ns", "b"), Request("ns", "c")


class Share:
    """The share of a process: some requests, and a grant until `until`."""

    is_divided = True
    has_lanes = False

    def __init__(self, *mine: Request) -> None:
        self.mine = set(mine)
        self.until: float | None = 1e9
        self.one = Grant(lambda: self.until)
        self.finished: list[Request] = []

    def slot(self, request):
        return SLOTS.index(request)

    def admits(self, request):
        return request in self.mine

    def grant(self, request):
        return self.one if request in self.mine else None

    def done(self, request):
        self.finished.append(request)


class Sharded:
    """A running controller whose reconciles hang until the test ends them."""

    def __init__(self, share: Share, *, ignores: int = 0) -> None:
        self.started: list[Request] = []
        self.grants: list[Grant | None] = []
        self.may_end = asyncio.Event()
        self.cancelled = 0
        self.reconciles_once = False
        self._ignores = ignores
        self.controller = Controller(
            "test",
            self.reconcile,
            options=ControllerOptions(max_concurrent_reconciles=3),
            shard=share,
            clock=asyncio.get_running_loop().time,
        )
        self.queue = self.controller.queue

    async def reconcile(self, request: Request) -> Result:
        self.started.append(request)
        actor = current_actor()
        assert actor is not None
        self.grants.append(actor.grant)
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self.cancelled > self._ignores:
                    raise
        return Result() if self.reconciles_once else Result(requeue_after=1.0)

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self.controller.start())
        await self.controller.wait_synced()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.may_end.set()
        await self.controller.stop(1.0)
        await self._task


async def hand_over(controller: Controller, within: float, *requests: Request) -> list[Request]:
    slots = [SLOTS.index(request) for request in requests]
    withdrawn = controller.withdraw(slots)
    await controller.end_moved(slots, within)
    assert all(SLOTS[slot] == request for slot, request in withdrawn)
    return [request for _, request in withdrawn]


@in_virtual_time
async def test_requests_of_others_are_not_reconciled_and_writes_have_the_grant():
    share = Share(A)
    async with Sharded(share) as sharded:
        for request in (A, B):
            sharded.queue.add(request)
        await asyncio.sleep(1)

        assert sharded.started == [A]
        assert sharded.grants == [share.one]


def test_a_sharded_controller_runs_without_leadership():
    assert not Controller("test", lambda _: None, shard=Share()).needs_leader_election
    assert Controller("test", lambda _: None).needs_leader_election


@in_virtual_time
async def test_nothing_starts_without_a_valid_lease_and_nothing_is_lost():
    share = Share(A)
    share.until = None
    async with Sharded(share) as sharded:
        sharded.queue.add(A)
        await asyncio.sleep(60)
        assert sharded.started == []

        share.until = 1e9
        await asyncio.sleep(1.5)
        assert sharded.started == [A]


@in_virtual_time
async def test_requests_that_move_leave_the_queue_and_their_reconciles_may_end():
    loop = asyncio.get_running_loop()
    share = Share(A, B, C)
    async with Sharded(share) as sharded:
        sharded.queue.add(A)
        sharded.queue.add(B, after=100.0)
        await asyncio.sleep(1)
        share.mine = {C}
        began = loop.time()
        loop.call_later(4, sharded.may_end.set)
        assert set(await hand_over(sharded.controller, 10.0, A, B)) == {A, B}

        assert loop.time() - began == pytest.approx(4)
        assert sharded.cancelled == 0
        await asyncio.sleep(200)
        assert sharded.started == [A]  # its requeue_after stays behind, too
        assert sharded.queue.pending(A) is None


@in_virtual_time
async def test_a_reconcile_that_takes_longer_is_cancelled_and_no_failure(capsys):
    loop = asyncio.get_running_loop()
    share = Share(A, B)
    async with Sharded(share) as sharded:
        for request in (A, B):
            sharded.queue.add(request)
        await asyncio.sleep(1)
        share.mine = {B}
        began = loop.time()
        await hand_over(sharded.controller, 10.0, A)

        assert loop.time() - began == pytest.approx(10)
        assert sharded.cancelled == 1
        assert sharded.controller.running.keys() == {B}
        assert sharded.queue.num_requeues(A) == 0
    log = capsys.readouterr().err
    assert "its object moves" in log
    assert "failed" not in log


@in_virtual_time
async def test_a_reconcile_that_ignores_its_cancellation_delays_the_move_by_a_second_and_is_locked():
    loop = asyncio.get_running_loop()
    share = Share(A)
    async with Sharded(share, ignores=1) as sharded:
        sharded.queue.add(A)
        await asyncio.sleep(1)
        began = loop.time()
        await hand_over(sharded.controller, 10.0, A)
        assert loop.time() - began == pytest.approx(11)

        sharded.queue.add(A)  # it comes back before the reconcile has ended
        await asyncio.sleep(5)
        assert sharded.started == [A]
        sharded.may_end.set()
        await asyncio.sleep(0.1)
        assert sharded.started == [A, A]


@in_virtual_time
async def test_the_share_is_told_when_a_request_is_neither_queued_nor_reconciled():
    share = Share(A)
    async with Sharded(share) as sharded:
        sharded.queue.add(A)
        await asyncio.sleep(1)
        sharded.may_end.set()
        await asyncio.sleep(0.5)
        assert sharded.started == [A]
        assert share.finished == []  # it waits for its requeue_after

        sharded.reconciles_once = True
        await asyncio.sleep(1)
        assert share.finished == [A]


@in_virtual_time
async def test_a_name_that_was_given_to_an_object_of_another_replica_is_no_failure(capsys):
    share = Share(A, B)

    async def reconcile(request: Request) -> None:
        if request == A:
            share.mine = {B}
        raise ForeignShardError("of another replica", slot=1, owner="other")

    controller = Controller("test", reconcile, shard=share, clock=asyncio.get_running_loop().time)
    task = asyncio.ensure_future(controller.start())
    await controller.wait_synced()
    controller.queue.add(A)
    await asyncio.sleep(1)
    assert controller.queue.pending(A) is None
    assert "failed" not in capsys.readouterr().err

    controller.queue.add(B)  # which reads an object of another replica, and stays here
    await asyncio.sleep(1)
    assert controller.queue.num_requeues(B) > 0
    assert "reconcile failed" in capsys.readouterr().err
    await controller.stop(1.0)
    await task
