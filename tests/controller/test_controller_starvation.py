"""Start-up does not hold up fresh changes, and fresh changes do not hold up start-up for ever. In virtual time: one worker, 10 ms a reconcile."""

from __future__ import annotations

import asyncio

from ctrlruntime.controller.controller import Controller
from ctrlruntime.reconcile import Request
from ctrlruntime.source import LOW_PRIORITY
from ctrlruntime.testing.virtual_time import in_virtual_time
from ctrlruntime.workqueue.priority import AGED_SHARE

WORK = 0.01
AGING = 10.0


class Initial:
    """A source whose initial list is long; afterwards a test adds what it likes to `queue`."""

    def __init__(self, count):
        self.requests = [Request("initial", f"{number:05d}") for number in range(count)]
        self.queue = None

    async def start(self, queue):
        self.queue = queue
        for request in self.requests:
            queue.add(request, priority=LOW_PRIORITY)

    async def wait_for_sync(self):
        pass

    async def stop(self):
        pass


class Starts:
    """Reconciles for 10 ms, and notes when it began with each request."""

    def __init__(self):
        self.at = {}

    async def reconcile(self, request):
        self.at.setdefault(request, asyncio.get_running_loop().time())
        await asyncio.sleep(WORK)


def begin(count):
    source, starts = Initial(count), Starts()
    controller = Controller("any", starts.reconcile, clock=asyncio.get_running_loop().time)
    controller.watch(source)
    return source, starts, asyncio.ensure_future(controller.start()), controller


@in_virtual_time
async def test_a_users_change_starts_within_100_ms_while_10000_initial_items_wait():
    loop = asyncio.get_running_loop()
    source, starts, task, controller = begin(10_000)
    waits = []

    for number in range(100):
        # At any moment: before the backlog is overdue, and after.
        await asyncio.sleep(0.37)
        change, added = Request("live", str(number)), loop.time()
        source.queue.add(change)
        while change not in starts.at:  # noqa: ASYNC110 - the reconciler is plain on purpose
            await asyncio.sleep(WORK / 10)
        waits.append(starts.at[change] - added)

    assert max(waits) <= 0.1
    assert len(source.queue) > 5000
    await controller.stop(0)
    await task


@in_virtual_time
async def test_under_changes_at_95_percent_of_capacity_each_initial_item_starts_within_the_bound():
    loop = asyncio.get_running_loop()
    count = 1000
    began = loop.time()
    source, starts, task, controller = begin(count)
    bound = AGING + AGED_SHARE * (count + 1) * WORK

    number = 0
    while not all(request in starts.at for request in source.requests[-1:]):
        await asyncio.sleep(WORK / 0.95)
        if source.queue is not None:
            number += 1
            source.queue.add(Request("live", str(number)))
        assert loop.time() - began < 2 * bound

    for place, request in enumerate(source.requests):
        assert starts.at[request] - began <= AGING + AGED_SHARE * (place + 1) * WORK + WORK
    live = [at for request, at in starts.at.items() if request.namespace == "live"]
    assert len(live) > 0.9 * number
    await controller.stop(0)
    await task
