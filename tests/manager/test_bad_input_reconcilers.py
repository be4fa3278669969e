"""A reconciler that raises, returns nonsense, or never returns: what is said, and that the other keys go on."""

from __future__ import annotations

import asyncio

import pytest

import ctrlruntime as ctrl
from ctrlruntime.manager.manager import running
from ctrlruntime.testing import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


class Mixed:
    """Does `bad` for the request of that name and notes the others."""

    def __init__(self, bad):
        self.bad = bad
        self.seen = set()

    async def reconcile(self, request):
        if request.name == "bad":
            return await self.bad()
        self.seen.add(request.name)
        return None


async def first_line(make, logs, bad, **options):
    """Run a controller until the bad request is reported and the good one is done; return the line."""
    mgr = make(graceful_shutdown_timeout=0)
    reconciler = Mixed(bad)

    async def fill(queue):
        queue.add(ctrl.Request("ns", "bad"))
        queue.add(ctrl.Request("ns", "good"))

    builder = ctrl.new_controller_managed_by(mgr).named("mixed").watches_raw_source(ctrl.source.Func(fill))
    builder.with_options(max_concurrent_reconciles=2, **options).complete(reconciler)
    async with running(mgr):
        await eventually(lambda: reconciler.seen == {"good"})
        return await eventually(lambda: next((line for line in logs if line["level"] == "error"), None))


async def test_one_that_raises_is_repeated_and_its_traceback_is_logged(make, logs):
    async def bad():
        raise LookupError("no luck")

    line = await first_line(make, logs, bad)

    assert line["event"] == "reconcile failed, retrying with backoff"
    assert (line["error"], line["errorType"]) == ("no luck", "LookupError")
    assert isinstance(line["exc_info"], LookupError)
    assert (line["controller"], line["name"], line["namespace"]) == ("mixed", "bad", "ns")


@pytest.mark.parametrize("nonsense", [True, 5, "later", object()], ids=["bool", "int", "str", "object"])
async def test_one_that_returns_nonsense_is_told_what_to_return(make, logs, nonsense):
    async def bad():
        return nonsense

    line = await first_line(make, logs, bad)

    assert "Mixed.reconcile returned " in line["error"]
    assert "return None when done, Result(requeue_after=seconds) to reconcile again" in line["error"]


async def test_one_that_never_returns_is_cancelled_at_its_timeout(make, logs):
    async def bad():
        await asyncio.sleep(3600)

    line = await first_line(make, logs, bad, reconciliation_timeout=0.05)

    assert line["error"] == "the reconcile of ns/bad took longer than 0.05 s and was cancelled"
    assert line["errorType"] == "ReconcileTimeoutError"


async def test_one_that_never_returns_is_named_with_the_line_it_waits_at(make, logs):
    async def bad():
        await asyncio.sleep(3600)

    mgr = make(graceful_shutdown_timeout=0)

    async def fill(queue):
        queue.add(ctrl.Request("ns", "bad"))

    builder = ctrl.new_controller_managed_by(mgr).named("slow").watches_raw_source(ctrl.source.Func(fill))
    builder.with_options(slow_reconcile_warning=0.05).complete(Mixed(bad))
    async with running(mgr):
        line = await eventually(lambda: next((line for line in logs if line["event"] == "reconcile is slow"), None))

    assert line["request"] == "ns/bad"
    assert "test_bad_input_reconcilers.py" in line["waitingAt"]
    assert line["waitingAt"].endswith("in bad")
