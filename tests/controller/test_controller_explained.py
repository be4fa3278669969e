"""What a controller says of its reconciles: in the journal, in the log, and to who asks while one runs."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest
from feed import Feed
from servers import LONGEST_WAIT

from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.errors import TerminalError
from ctrlruntime.journal import Changes, Journal, Trigger
from ctrlruntime.log.output import sink
from ctrlruntime.reconcile import Request, Result
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter
from ctrlruntime.workqueue.priority import MAX_TRIGGERS

A = Request("ns", "a")


def trigger(event="update", version="2"):
    return Trigger(event, "Thing", "ns", "a", version, "", "1" if event == "update" else "", 1000.0)


@pytest.fixture
def lines():
    kept = []

    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            kept.append({"event": event, **fields})

    before, sink.output = sink.output, Lines()
    yield kept
    sink.output = before


@contextlib.asynccontextmanager
async def running(reconcile, *triggers, journal=None, clock=None):
    controller = Controller(
        "things",
        reconcile,
        options=ControllerOptions(rate_limiter=ItemExponentialFailureRateLimiter(60.0)),
        journal=journal,
        kind="Thing",
        **({} if clock is None else {"clock": clock}),
    )
    controller.watch(Feed(A, *triggers))
    task = asyncio.create_task(controller.start())
    try:
        yield controller
    finally:
        await controller.stop(0)
        await task


async def first_run(journal):
    await eventually(lambda: journal.history("things", A).runs, timeout=LONGEST_WAIT, interval=0.001)
    return journal.history("things", A).runs[0]


async def nothing(request):
    return None


async def test_a_run_is_written_with_all_the_triggers_that_were_merged():
    journal = Journal()
    triggers = [trigger("create", "1"), trigger("update", "2"), trigger("update", "3")]
    async with running(nothing, *triggers, journal=journal):
        run = await first_run(journal)

    assert list(run.triggers) == triggers
    assert run.omitted == 0


async def test_triggers_beyond_those_kept_are_counted():
    journal = Journal()
    async with running(nothing, *(trigger() for _ in range(MAX_TRIGGERS + 2)), journal=journal):
        run = await first_run(journal)

    assert (len(run.triggers), run.omitted) == (MAX_TRIGGERS, 2)


async def test_a_failed_run_says_when_the_back_off_ends():
    journal = Journal(clock=lambda: 1000.0)

    async def fail(request):
        raise ValueError("no")

    async with running(fail, trigger(), journal=journal):
        run = await first_run(journal)

    assert run.outcome == "error"
    assert run.wakes_at == pytest.approx(1060.0, abs=1.0)


async def test_a_run_that_failed_for_good_wakes_at_nothing():
    journal = Journal()

    async def fail(request):
        raise TerminalError("never")

    async with running(fail, trigger(), journal=journal):
        run = await first_run(journal)

    assert (run.outcome, run.wakes_at) == ("terminal", None)


async def test_the_log_tells_each_outcome_with_its_triggers_and_the_fields_that_changed(lines):
    journal = Journal()
    update = trigger()
    changes = Changes()
    changes.hold(update, b'{"spec":{"size":1}}', b'{"spec":{"size":2}}')

    async def reconcile(request):
        return Result(requeue_after=60)

    async with running(reconcile, trigger("create", "1"), update, journal=journal):
        await first_run(journal)

    (line,) = [line for line in lines if line["event"] == "reconciled"]
    assert (line["outcome"], line["controller"], line["name"]) == ("requeue_after", "things", "a")
    assert line["triggers"] == ["create Thing ns/a@1", "update Thing ns/a@1→2 (spec.size)"]
    assert line["reconcileID"]


async def test_the_line_of_a_failure_carries_its_triggers(lines):
    journal = Journal()

    async def fail(request):
        raise ValueError("no")

    async with running(fail, *(trigger("delete", "9") for _ in range(MAX_TRIGGERS + 1)), journal=journal):
        await first_run(journal)

    (line,) = [line for line in lines if str(line["event"]).startswith("reconcile failed")]
    assert line["triggers"] == ["delete Thing ns/a@9"] * MAX_TRIGGERS + ["and 1 more"]


async def test_a_trigger_of_a_users_source_that_cannot_be_printed_stops_nothing(lines):
    class Odd:
        def __str__(self):
            raise RuntimeError("odd")

    journal = Journal()
    async with running(nothing, Odd(), journal=journal):
        await first_run(journal)

    (line,) = [line for line in lines if line["event"] == "reconciled"]
    assert line["triggers"] == ["Odd (RuntimeError('odd'))"]


async def test_a_running_reconcile_says_why_it_runs_and_where_it_waits():
    entered, release = asyncio.Event(), asyncio.Event()

    async def reconcile(request):
        entered.set()
        await release.wait()

    one = trigger("create", "1")
    async with running(reconcile, one) as controller:
        await asyncio.wait_for(entered.wait(), LONGEST_WAIT)
        (seen,) = controller.reconciles()
        release.set()
        await eventually(lambda: not controller.reconciles(), timeout=LONGEST_WAIT, interval=0.001)

    assert (seen.request, seen.triggers, seen.attempts, seen.omitted) == (A, (one,), 0, 0)
    assert seen.id
    assert seen.seconds >= 0
    assert f"{__file__}:" in seen.stands_at
    assert seen.stands_at.endswith(" in reconcile")


async def test_a_reconcile_in_a_thread_says_where_it_waits():
    entered, release = threading.Event(), threading.Event()

    def reconcile(request):
        entered.set()
        release.wait()

    async with running(reconcile, trigger()) as controller:
        await asyncio.to_thread(entered.wait, LONGEST_WAIT)
        (seen,) = controller.reconciles()
        release.set()

    assert seen.stands_at.endswith(" in reconcile")


async def test_a_controller_says_whether_it_was_started():
    controller = Controller("things", nothing)
    assert not controller.is_started

    async with running(nothing) as controller:
        await asyncio.sleep(0)
        assert controller.is_started
