"""The controller: from the queue to the reconciler, and what its outcome means."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from contextvars import ContextVar

import anyio
import pytest
import structlog
from servers import LONGEST_WAIT

from ctrlruntime.controller import ReconcileTimeoutError
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.controller.reconcilers import as_reconciler
from ctrlruntime.errors import (
    CacheError,
    CacheSyncTimeoutError,
    Conflict,
    Invalid,
    NotRegisteredError,
    RequeueAfter,
    TerminalError,
)
from ctrlruntime.journal import Journal
from ctrlruntime.log.options import ERROR, INFO, WARN
from ctrlruntime.log.output import sink
from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request, Result, reconcile_id
from ctrlruntime.rest.fence import current_actor
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

LEVELS = {INFO: "info", WARN: "warning", ERROR: "error"}
A, B, C = Request("ns", "a"), Request("ns", "b"), Request("ns", "c")


@contextlib.contextmanager
def capture_logs():
    """Collect log lines as dicts: event, log_level, and their fields, bound ones included."""

    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            lines.append({"event": event, "log_level": LEVELS.get(level, "debug"), **fields})

    lines, before = [], sink.output
    sink.output = Lines()
    try:
        yield lines
    finally:
        sink.output = before


class Feed:
    """A source a test feeds by hand."""

    def __init__(self, *requests, priority=0, gate=None, failure=None):
        self.requests = requests
        self.priority = priority
        self.gate = gate
        self.failure = failure
        self.queue = None
        self.starts = 0
        self.stopped = asyncio.Event()
        self.started = asyncio.Event()

    def __repr__(self):
        return "Feed"

    async def start(self, queue):
        self.starts += 1
        self.queue = queue
        if self.failure is not None:
            raise self.failure
        for request in self.requests:
            queue.add(request, priority=self.priority)
        self.started.set()

    async def wait_for_sync(self):
        if self.gate is not None:
            await self.gate.wait()

    async def stop(self):
        self.stopped.set()

    def add(self, request, **options):
        self.queue.add(request, **options)


class Script:
    """A reconciler that takes what it does from a list: results are returned, exceptions raised; each call is noted."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.calls = asyncio.Queue()

    async def reconcile(self, request):
        self.calls.put_nowait(request)
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def next(self):
        return await asyncio.wait_for(self.calls.get(), LONGEST_WAIT)


class Hanging:
    """Reconciles of `names` hang until `release` is set; `ignores` is how many cancellations they swallow."""

    def __init__(self, *names, ignores=0):
        self.names = names or ("a",)
        self.ignores = ignores
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.cleaned = asyncio.Event()
        self.calls = asyncio.Queue()
        self.left = []

    async def reconcile(self, request):
        self.calls.put_nowait(request)
        if request.name not in self.names:
            return
        self.entered.set()
        while True:
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                if self.ignores:
                    self.ignores -= 1
                    continue
                await asyncio.sleep(0)  # a clean-up may await
                self.cleaned.set()
                raise
            self.left.append(request)
            return


def controller_of(reconciler, *sources, metrics=None, journal=None, **options):
    options.setdefault("rate_limiter", ItemExponentialFailureRateLimiter(0.001, 0.01))
    controller = Controller(
        "test", reconciler, options=ControllerOptions(**options), metrics=metrics, journal=journal, kind="Thing"
    )
    for source in sources:
        controller.watch(source)
    return controller


@contextlib.asynccontextmanager
async def running(controller, *, grace=1.0):
    task = asyncio.create_task(controller.start())
    try:
        yield task
    finally:
        await asyncio.wait_for(controller.stop(grace), LONGEST_WAIT)
        await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), LONGEST_WAIT)


async def until(condition):
    await eventually(condition, timeout=LONGEST_WAIT, interval=0.001)


# --- results -----------------------------------------------------------------------------------------------------------


async def test_done_is_forgotten_and_not_repeated():
    script = Script(None, Result())
    controller = controller_of(script, Feed(A, B))
    async with running(controller):
        assert {await script.next(), await script.next()} == {A, B}
        await until(lambda: not controller.running)
        assert len(controller.queue) == 0
    assert script.calls.empty()


async def test_an_exception_is_repeated_with_back_off_and_logged_with_its_request():
    script = Script(KeyError("spec"), None)
    controller = controller_of(script, Feed(A))
    with capture_logs() as logs:
        async with running(controller):
            assert [await script.next(), await script.next()] == [A, A]
            await until(lambda: not controller.running)
            assert controller.queue.num_requeues(A) == 0

    line = next(line for line in logs if line["log_level"] == "error")
    assert (line["namespace"], line["name"], line["controller"], line["controllerKind"]) == ("ns", "a", "test", "Thing")
    assert line["Thing"] == {"name": "a", "namespace": "ns"}
    assert line["errorType"] == "KeyError"
    assert len(line["reconcileID"]) >= 32


async def test_each_reconcile_of_a_worker_has_its_own_fields_whatever_the_one_before_did_to_them():
    seen = []

    async def reconcile(request):
        seen.append(structlog.contextvars.get_contextvars())
        structlog.contextvars.clear_contextvars()

    elsewhere = Request("ns", "far", "edge")
    controller = controller_of(reconcile, Feed(A, elsewhere, B))
    async with running(controller):
        await until(lambda: len(seen) == 3)

    first, far, last = seen
    assert len({fields.pop("reconcileID") for fields in seen}) == 3
    fields = {"controller": "test", "controllerGroup": "", "controllerKind": "Thing", "namespace": "ns"}
    assert first == {**fields, "name": "a", "Thing": {"name": "a", "namespace": "ns"}}
    assert far == {**fields, "name": "far", "Thing": {"name": "far", "namespace": "ns"}, "cluster": "edge"}
    assert last == {**fields, "name": "b", "Thing": {"name": "b", "namespace": "ns"}}


async def test_reconciles_have_ids_in_the_form_of_uuids_that_never_come_twice():
    ids = []

    async def reconcile(request):
        ids.append(current_actor().reconcile_id)
        return Result(requeue_after=0.0001) if len(ids) < 50 else None

    async with running(controller_of(reconcile, Feed(A))), running(controller_of(reconcile, Feed(A))):
        await until(lambda: len(ids) >= 50)

    assert len(set(ids)) == len(ids)
    assert all(str(uuid.UUID(identity)) == identity for identity in ids)


async def test_requeue_after_forgets_failures_and_comes_again():
    script = Script(KeyError("x"), Result(requeue_after=0.001), None)
    controller = controller_of(script, Feed(A))
    async with running(controller):
        assert [await script.next() for _ in range(3)] == [A, A, A]
        await until(lambda: not controller.running)
        assert controller.queue.num_requeues(A) == 0


@pytest.mark.parametrize(
    "error",
    [
        RequeueAfter(0.001, "not yet"),
        ExceptionGroup("two", [RequeueAfter(60), ExceptionGroup("deeper", [RequeueAfter(0.001, "not yet")])]),
    ],
    ids=["one", "group"],
)
async def test_requeue_after_can_be_raised_and_is_not_a_failure(error):
    script, metrics, journal = Script(KeyError("x"), error, None), Metrics(), Journal()
    controller = controller_of(script, Feed(A), metrics=metrics, journal=journal)
    with capture_logs() as logs:
        async with running(controller):
            assert [await script.next() for _ in range(3)] == [A, A, A]
            await until(lambda: not controller.running)
            assert controller.queue.num_requeues(A) == 0

    assert len([line for line in logs if line["log_level"] == "error"]) == 1  # of the KeyError
    runs = journal.history("test", A).runs
    assert [(run.outcome, run.reason, run.error) for run in runs[1:]] == [
        ("requeue_after", "not yet", ""),
        ("success", "", ""),
    ]


async def test_requeue_after_next_to_a_failure_is_a_failure():
    script, metrics = Script(ExceptionGroup("two", [RequeueAfter(60), KeyError("x")])), Metrics()
    async with running(controller_of(script, Feed(A), metrics=metrics)):
        assert [await script.next(), await script.next()] == [A, A]
        assert metrics.controller("test").errors == 1


@pytest.mark.parametrize(
    ("seconds", "error"), [(0, ValueError), (float("nan"), ValueError), ("5", TypeError)], ids=repr
)
def test_requeue_after_takes_seconds(seconds, error):
    with pytest.raises(error, match="seconds is"):
        RequeueAfter(seconds)


async def test_terminal_error_is_not_repeated_and_clears_the_failures():
    script = Script(KeyError("x"), TerminalError("bad spec"))
    controller = controller_of(script, Feed(A))
    with capture_logs() as logs:
        async with running(controller):
            assert [await script.next(), await script.next()] == [A, A]
            await until(lambda: not controller.running)
            assert controller.queue.num_requeues(A) == 0
            assert len(controller.queue) == 0

    assert "terminally" in [line["event"] for line in logs if line["log_level"] == "error"][-1]


def raised_from(error, cause):
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ExceptionGroup("two", [KeyError("x"), TerminalError("broken spec")]),
        ExceptionGroup("deep", [ExceptionGroup("deeper", [TerminalError("broken spec")])]),
        raised_from(RuntimeError("wrapped"), TerminalError("broken spec")),
        raised_from(RuntimeError("wrapped"), ExceptionGroup("one", [TerminalError("broken spec")])),
    ],
    ids=["group", "nested group", "cause", "group as cause"],
)
async def test_a_terminal_error_inside_another_one_is_terminal(error):
    script, metrics = Script(error), Metrics()
    controller = controller_of(script, Feed(A), metrics=metrics)
    async with running(controller):
        await script.next()
        await until(lambda: metrics.controller("test").terminal_errors == 1)
        assert controller.queue.num_requeues(A) == 0


async def test_an_error_raised_while_a_terminal_one_was_handled_is_not_terminal():
    error = RuntimeError("another one")
    error.__context__ = TerminalError("broken spec")
    script = Script(error)
    async with running(controller_of(script, Feed(A))):
        assert [await script.next(), await script.next()] == [A, A]


class BrokenLimiter:
    def __init__(self, delay=None):
        self.delay = delay

    def when(self, key):
        if self.delay is None:
            raise LookupError("no limit for you")
        return self.delay

    def forget(self, key):
        raise LookupError("nor this")

    def num_requeues(self, key):
        raise LookupError("nor that")


@pytest.mark.parametrize("delay", [None, "soon", -1.0, float("nan")])
async def test_a_rate_limiter_that_fails_is_reported_and_the_default_backoff_used(delay):
    script, metrics = Script(KeyError("x"), KeyError("x")), Metrics()
    controller = controller_of(script, Feed(A), rate_limiter=BrokenLimiter(delay), metrics=metrics)
    with capture_logs() as logs:
        async with running(controller) as task:
            assert [await script.next(), await script.next(), await script.next()] == [A, A, A]
            assert not task.done()
    assert "rate limiter failed, using the default backoff" in [line["event"] for line in logs]
    assert metrics.workqueue("test").limiter_failures > 2


class Panic(BaseException):
    """What an extension module may raise: no Exception."""


async def test_a_panic_is_counted_and_retried():
    script, metrics = Script(Panic("out of range"), None), Metrics()
    controller = controller_of(script, Feed(A), metrics=metrics)
    with capture_logs() as logs:
        async with running(controller):
            assert [await script.next(), await script.next()] == [A, A]
            await until(lambda: metrics.controller("test").results["success"] == 1)
    (line,) = [line for line in logs if line["log_level"] == "error"]
    assert line["error"] == "the reconcile of ns/a panicked: Panic: out of range"
    assert line["at"].endswith("in reconcile")
    assert (metrics.controller("test").panics, metrics.controller("test").errors) == (1, 1)


async def test_a_panic_ends_the_controller_when_it_is_not_recovered():
    metrics = Metrics()
    controller = controller_of(Script(Panic("out of range")), Feed(A), metrics=metrics, recover_panic=False)
    with pytest.raises(Panic):
        await asyncio.wait_for(controller.start(), LONGEST_WAIT)
    assert metrics.controller("test").panics == 1


@pytest.mark.parametrize(
    "error", [Invalid("no"), CacheError("no"), NotRegisteredError("no"), Conflict("no"), KeyError("x")], ids=repr
)
async def test_a_failed_reconcile_names_the_line_of_user_code(error):
    async def reconcile(request):
        if not calls:
            calls.append(request)
            raise error

    calls = []
    with capture_logs() as logs:
        async with running(controller_of(reconcile, Feed(A))):
            await until(lambda: any("reconcile failed" in line["event"] for line in logs))
    (line,) = [line for line in logs if "reconcile failed" in line["event"]]
    assert line["at"] == f"{__file__}:{reconcile.__code__.co_firstlineno + 3} in reconcile"


INVALID, CONFLICT = Invalid("no replicas"), Conflict("another client was faster")


@pytest.mark.parametrize(
    ("error", "level", "text", "has_traceback"),
    [
        (ExceptionGroup("2 copies failed", [INVALID, CONFLICT]), "error",
         "2 copies failed: Invalid: no replicas; Conflict: another client was faster", False),
        (ExceptionGroup("deep", [ExceptionGroup("deeper", [INVALID])]), "error",
         "deep: ExceptionGroup: deeper: Invalid: no replicas", False),
        (ExceptionGroup("1 copy failed", [CONFLICT]), "info", "1 copy failed: Conflict: another client was faster", False),
        (ExceptionGroup("two", [INVALID, KeyError("x")]), "error", "two: Invalid: no replicas; KeyError: 'x'", True),
    ],
    ids=str,
)  # fmt: skip
async def test_failed_group_is_logged_as_its_members_are(error, level, text, has_traceback):
    script = Script(error, None)
    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A))):
            assert [await script.next(), await script.next()] == [A, A]

    line = next(line for line in logs if "reconcile failed" in line["event"])
    assert (line["log_level"], line["error"], "exc_info" in line) == (level, text, has_traceback)


async def test_the_reconcile_knows_its_id():
    async def reconcile(request):
        ids.append(reconcile_id())

    ids = []
    controller = Controller("test", reconcile, new_id=lambda: "id-1")
    controller.watch(Feed(A))
    async with running(controller):
        await until(lambda: ids)
    assert ids == ["id-1"]
    assert reconcile_id() == ""


class OneObject:
    """A client that has one object."""

    async def get_or_none(self, kind, key):
        return kind(key) if key == A else None


@pytest.mark.parametrize("is_plain", [False, True])
async def test_an_object_reconciler_gets_the_object_and_is_not_called_without_one(is_plain):
    class Async:
        async def reconcile(self, obj):
            seen.append(obj)

    def plain(obj):
        seen.append(obj)

    seen, metrics = [], Metrics()
    reconciler = as_reconciler(OneObject(), str, plain if is_plain else Async())
    async with running(controller_of(reconciler, Feed(A, B), metrics=metrics)):
        await until(lambda: metrics.controller("test").results["success"] == 2)
    assert seen == ["ns/a"]


@pytest.mark.parametrize("nonsense", [True, 5, "done", {"requeue": True}])
async def test_nonsense_results_are_errors_that_say_what_to_return(nonsense):
    script = Script(nonsense, None)
    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A))):
            assert [await script.next(), await script.next()] == [A, A]

    line = next(line for line in logs if line["log_level"] == "error")
    assert "Script.reconcile returned" in line["error"]
    assert "requeue_after=seconds" in line["error"]


async def test_a_conflict_is_repeated_and_is_no_error_line():
    script = Script(Conflict("changed"), None)
    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A))):
            await script.next()
            await script.next()
    assert [line["log_level"] for line in logs if line.get("errorType") == "Conflict"] == ["info"]


@pytest.mark.parametrize("outcome", [KeyError("x"), Result(requeue_after=0.001)])
async def test_every_requeue_keeps_the_priority(outcome):
    seen = []
    script = Script(outcome, None)
    controller = controller_of(script, Feed(A, priority=-100))
    add = controller.queue.add
    controller.queue.add = lambda key, **options: (seen.append(options["priority"]), add(key, **options))[1]
    async with running(controller):
        await script.next()
        await script.next()
    assert seen == [-100, -100]


async def test_a_result_may_set_the_priority_of_the_next_run():
    seen = []
    script = Script(Result(requeue_after=0.001, priority=3), None)
    controller = controller_of(script, Feed(A))
    add = controller.queue.add
    controller.queue.add = lambda key, **options: (seen.append(options["priority"]), add(key, **options))[1]
    async with running(controller):
        await script.next()
        await script.next()
    assert seen == [0, 3]


async def test_an_event_during_a_reconcile_leads_to_exactly_one_more():
    hanging, feed = Hanging(), Feed(A)
    async with running(controller_of(hanging, feed, max_concurrent_reconciles=3)):
        await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
        feed.add(A)
        feed.add(A)
        await asyncio.sleep(0)
        assert hanging.calls.qsize() == 1

        hanging.release.set()
        await until(lambda: len(hanging.left) == 2)
    assert hanging.calls.qsize() == 2


async def test_one_hung_reconcile_leaves_the_other_workers_free():
    hanging = Hanging("a")
    async with running(controller_of(hanging, Feed(A, B, C), max_concurrent_reconciles=2), grace=0):
        seen = {await asyncio.wait_for(hanging.calls.get(), LONGEST_WAIT) for _ in range(3)}
    assert seen == {A, B, C}


async def test_a_function_is_a_reconciler_too():
    seen = asyncio.Queue()

    async def reconcile(request):
        seen.put_nowait(request)

    async with running(controller_of(reconcile, Feed(A))):
        assert await asyncio.wait_for(seen.get(), LONGEST_WAIT) == A


async def test_requests_may_be_any_hashable_value():
    script = Script()
    async with running(controller_of(script, Feed(("tenant", 7)))):
        assert await script.next() == ("tenant", 7)


async def test_the_actor_of_a_reconcile_is_known_below():
    seen = asyncio.Queue()

    async def reconcile(request):
        seen.put_nowait(current_actor())

    async with running(controller_of(reconcile, Feed(A), needs_leader_election=False)):
        actor = await asyncio.wait_for(seen.get(), LONGEST_WAIT)
    assert (actor.controller, actor.request, actor.fenced) == ("test", A, False)
    assert actor.reconcile_id


async def test_log_constructor_replaces_the_fields_and_is_asked_without_a_request_too():
    script = Script(KeyError("x"), None)
    asked = []

    def fields(request):
        asked.append(request)
        return {"tenant": "none" if request is None else request.name}

    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A), log_constructor=fields)):
            await script.next()
            await script.next()
    assert None in asked
    assert [line["tenant"] for line in logs if line["log_level"] == "error"] == ["a"]


async def test_a_log_constructor_that_fails_is_reported_once_and_stops_nothing():
    def broken(request):
        raise KeyError("tenant")

    script = Script()
    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A, B), log_constructor=broken)):
            assert {await script.next(), await script.next()} == {A, B}
    assert [line["event"] for line in logs if line["log_level"] == "error"] == [
        "log_constructor failed, using the default fields"
    ]


async def test_every_outcome_is_counted():
    metrics = Metrics()
    outcomes = [None, KeyError("x"), Result(requeue_after=0.001), TerminalError("bad")]
    counts = metrics.controller("test")
    script = Script(*outcomes)
    controller = controller_of(script, Feed(A, B), metrics=metrics, max_concurrent_reconciles=3)
    assert counts.results == {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
    with capture_logs():
        async with running(controller):
            await until(lambda: sum(counts.results.values()) == 4 and not controller.running)
            assert counts.max_concurrent_reconciles == 3
            assert counts.active_workers == 0

    assert counts.results == {"success": 1, "error": 2, "requeue": 0, "requeue_after": 1}
    assert (counts.errors, counts.terminal_errors, counts.timeouts) == (2, 1, 0)


async def test_only_the_deadline_of_the_reconcile_counts_as_timeout():
    metrics = Metrics()
    hanging = Hanging()
    with capture_logs():
        async with running(controller_of(hanging, Feed(A), metrics=metrics, reconciliation_timeout=0.01), grace=0):
            await until(lambda: metrics.controller("test").timeouts == 1)
            hanging.release.set()

        stopped = Hanging()
        async with running(controller_of(stopped, Feed(A), metrics=metrics, reconciliation_timeout=60.0), grace=0):
            await asyncio.wait_for(stopped.entered.wait(), LONGEST_WAIT)
    assert metrics.controller("test").timeouts == 1


async def test_the_journal_says_how_a_request_went_and_when_it_comes_again():
    journal = Journal(clock=lambda: 1000.0)
    script = Script(KeyError("spec"), Result(requeue_after=50.0))
    with capture_logs():
        async with running(controller_of(script, Feed(A, priority=-100), journal=journal)):
            await until(lambda: len(journal.history("test", A).runs) == 2)

    first, second = journal.history("test", A).runs
    assert (first.outcome, first.error, first.attempts, first.priority) == ("error", "KeyError: 'spec'", 0, -100)
    assert (second.outcome, second.attempts, second.wakes_at) == ("requeue_after", 1, 1050.0)


# --- deadlines, threads, stubborn user code ------------------------------------------------------------------------------


async def test_a_reconcile_past_its_deadline_is_cancelled_counted_and_repeated():
    hanging = Hanging()
    controller = controller_of(hanging, Feed(A), reconciliation_timeout=0.02)
    with capture_logs() as logs:
        async with running(controller, grace=0):
            await asyncio.wait_for(hanging.cleaned.wait(), LONGEST_WAIT)
            hanging.release.set()
            await until(lambda: hanging.left == [A])
    assert any(line.get("errorType") == ReconcileTimeoutError.__name__ for line in logs)


async def test_a_cancellation_from_inside_is_an_error_but_no_timeout():
    async def reconcile(request):
        calls.append(request)
        if len(calls) == 1:
            raise asyncio.CancelledError

    calls = []
    controller = controller_of(reconcile, Feed(A), reconciliation_timeout=60.0)
    with capture_logs() as logs:
        async with running(controller):
            await until(lambda: len(calls) == 2)
    assert [line["errorType"] for line in logs if line["log_level"] == "error"] == ["ReconcileCancelledError"]


async def cancel_and_await(task):
    task.cancel()
    await asyncio.sleep(0)


async def cancel_and_return(task):
    task.cancel()


async def cancel_twice(task):
    task.cancel()
    task.cancel()
    await asyncio.sleep(0)


async def cancel_and_fail(task):
    task.cancel()
    raise KeyError("after the cancellation")


@pytest.mark.parametrize(
    ("cancel", "error"),
    [
        (cancel_and_await, "ReconcileCancelledError"),
        (cancel_and_return, "ReconcileCancelledError"),
        (cancel_twice, "ReconcileCancelledError"),
        (cancel_and_fail, "KeyError"),
    ],
)
async def test_a_reconcile_that_cancels_its_own_task_fails_and_its_worker_goes_on(cancel, error):
    async def reconcile(request):
        calls.append(request)
        counts.append(asyncio.current_task().cancelling())
        if len(calls) <= 2:
            await cancel(asyncio.current_task())
        await asyncio.sleep(0)

    calls, counts, metrics = [], [], Metrics()
    controller = controller_of(reconcile, Feed(A), metrics=metrics)
    with capture_logs() as logs:
        async with running(controller) as task:
            await until(lambda: metrics.controller("test").results["success"] == 1)
            assert not task.done()
    assert calls == [A, A, A]
    assert counts == [0, 0, 0]
    assert metrics.controller("test").errors == 2
    assert [line["errorType"] for line in logs if line["log_level"] == "error"] == [error, error]


async def test_a_worker_that_is_cancelled_while_it_waits_goes_on():
    async def reconcile(request):
        workers.append(asyncio.current_task())

    workers, feed = [], Feed(A)
    controller = controller_of(reconcile, feed)
    with capture_logs() as logs:
        async with running(controller):
            await until(lambda: workers)
            await asyncio.sleep(0)
            workers[0].cancel()
            await asyncio.sleep(0)
            feed.add(B)
            await until(lambda: len(workers) == 2)
    assert "worker cancelled between reconciles, continuing" in [line["event"] for line in logs]


async def test_a_start_whose_workers_end_without_a_stop_fails():
    controller = controller_of(Script(), Feed())
    task = asyncio.create_task(controller.start())
    await asyncio.sleep(0)
    controller.queue.shut_down()
    with pytest.raises(RuntimeError, match="workers ended before stop"):
        await asyncio.wait_for(task, LONGEST_WAIT)


async def test_a_time_limit_of_the_reconciler_itself_is_an_ordinary_error():
    async def reconcile(request):
        calls.append(request)
        if len(calls) == 1:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()

    calls = []
    with capture_logs() as logs:
        async with running(controller_of(reconcile, Feed(A), reconciliation_timeout=60.0)):
            await until(lambda: len(calls) == 2)
    assert [line["errorType"] for line in logs if line["log_level"] == "error"] == ["TimeoutError"]


async def test_a_reconcile_that_ignores_cancellation_is_cancelled_again_and_keeps_its_key():
    hanging, feed = Hanging(ignores=2), Feed(A)
    controller = controller_of(
        hanging, feed, reconciliation_timeout=0.01, cancel_interval=0.01, max_concurrent_reconciles=2
    )
    with capture_logs() as logs:
        async with running(controller, grace=0):
            await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
            feed.add(A)
            await until(lambda: any("ignores cancellation" in line["event"] for line in logs))
            assert hanging.calls.qsize() == 1
            await asyncio.wait_for(hanging.cleaned.wait(), LONGEST_WAIT)
    line = next(line for line in logs if "ignores cancellation" in line["event"])
    assert line["request"] == "ns/a"
    assert "in reconcile" in line["waitingAt"]
    assert __file__ in line["waitingAt"]


async def test_a_slow_reconcile_is_reported_with_key_age_and_line():
    hanging = Hanging()
    with capture_logs() as logs:
        async with running(controller_of(hanging, Feed(B, A), slow_reconcile_warning=0.01), grace=0):
            await until(lambda: any(line["event"] == "reconcile is slow" for line in logs))
    line = next(line for line in logs if line["event"] == "reconcile is slow")
    assert line["request"] == "ns/a"
    assert "name" not in line  # not one of the reconcile before either
    assert line["durationSeconds"] >= 0.01
    assert __file__ in line["waitingAt"]
    assert line["waitingAt"].endswith("in reconcile")


async def test_plain_reconcile_runs_in_a_thread_with_the_context_of_the_reconcile():
    variable = ContextVar("variable", default="unset")
    loop_thread = threading.get_ident()
    seen = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def reconcile(request):
        facts = (request, threading.get_ident() != loop_thread, current_actor().controller)
        variable.set("changed")
        loop.call_soon_threadsafe(seen.put_nowait, facts)
        return Result()

    async with running(controller_of(reconcile, Feed(A))):
        assert await asyncio.wait_for(seen.get(), LONGEST_WAIT) == (A, True, "test")
    assert variable.get() == "unset"


async def test_plain_reconciles_run_side_by_side_up_to_the_limit():
    barrier = threading.Barrier(2, timeout=LONGEST_WAIT)
    met = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def reconcile(request):
        barrier.wait()
        loop.call_soon_threadsafe(met.put_nowait, request)

    async with running(controller_of(reconcile, Feed(A, B), max_concurrent_reconciles=2)):
        assert {await asyncio.wait_for(met.get(), LONGEST_WAIT) for _ in range(2)} == {A, B}


async def test_an_exception_in_a_thread_is_repeated():
    calls = []

    def reconcile(request):
        calls.append(request)
        if len(calls) == 1:
            raise KeyError("spec")

    with capture_logs():
        async with running(controller_of(reconcile, Feed(A))):
            await until(lambda: len(calls) == 2)


async def test_a_plain_reconcile_past_its_deadline_keeps_its_key_until_the_thread_ends():
    release = threading.Event()
    calls = []

    def reconcile(request):
        calls.append(request)
        assert release.wait(LONGEST_WAIT)

    feed = Feed(A)
    controller = controller_of(
        reconcile, feed, reconciliation_timeout=0.01, cancel_interval=0.01, max_concurrent_reconciles=2
    )
    with capture_logs() as logs:
        async with running(controller):
            await until(lambda: any("ignores cancellation" in line["event"] for line in logs))
            feed.add(A)
            await asyncio.sleep(0.01)
            assert len(calls) == 1
            release.set()
            await until(lambda: len(calls) == 2)
    assert "in reconcile" in next(line for line in logs if "ignores" in line["event"])["waitingAt"]


# --- start, sync, warm-up ------------------------------------------------------------------------------------------------


async def test_no_reconcile_before_every_source_has_synced():
    gate, script = asyncio.Event(), Script()
    ready, waiting = Feed(A), Feed(B, gate=gate)
    async with running(controller_of(script, ready, waiting)):
        await asyncio.wait_for(waiting.started.wait(), LONGEST_WAIT)
        await asyncio.sleep(0.01)
        assert script.calls.empty()

        gate.set()
        assert {await script.next(), await script.next()} == {A, B}


async def test_sources_are_started_side_by_side():
    class Slow(Feed):
        async def start(self, queue):
            barrier.append(self)
            await until(lambda: len(barrier) == 2)
            await super().start(queue)

    barrier = []
    script = Script()
    async with running(controller_of(script, Slow(A), Slow(B))):
        assert {await script.next(), await script.next()} == {A, B}


async def test_a_source_that_cannot_sync_is_named_in_the_log_and_the_rest_waits(monkeypatch):
    monkeypatch.setattr("ctrlruntime.controller.controller._FIRST_SYNC_REPORT", 0.01)
    gate, script = asyncio.Event(), Script()
    with capture_logs() as logs:
        async with running(controller_of(script, Feed(A, gate=gate))):
            await until(lambda: any("waiting for sources" in line["event"] for line in logs))
            gate.set()
            assert await script.next() == A
    assert next(line for line in logs if "waiting for sources" in line["event"])["sources"] == ["Feed (not synced)"]


async def test_cache_sync_timeout_ends_the_controller_and_names_the_source():
    feed = Feed(A, gate=asyncio.Event())
    controller = controller_of(Script(), feed, cache_sync_timeout=0.01)
    with pytest.raises(CacheSyncTimeoutError, match=r"Feed \(not synced\) did not sync within 0.01 s"):
        await asyncio.wait_for(controller.start(), LONGEST_WAIT)
    assert feed.stopped.is_set()


async def test_a_start_that_blocks_is_told_apart_from_a_sync_that_does_not_come():
    class Blocking(Feed):
        async def start(self, queue):
            await asyncio.Event().wait()

    controller = controller_of(Script(), Blocking(), cache_sync_timeout=0.01)
    with pytest.raises(CacheSyncTimeoutError, match="start has not returned"):
        await asyncio.wait_for(controller.start(), LONGEST_WAIT)


async def test_a_source_that_fails_to_start_ends_the_controller_with_its_error():
    controller = controller_of(Script(), Feed(failure=ValueError("no such kind")))
    with pytest.raises(ValueError, match="no such kind") as caught:
        await asyncio.wait_for(controller.start(), LONGEST_WAIT)
    assert caught.value.__notes__ == ["while controller test started Feed"]


async def test_stop_while_sources_sync_ends_the_start_without_an_error():
    feed = Feed(A, gate=asyncio.Event())
    script = Script()
    controller = controller_of(script, feed)
    async with running(controller) as task:
        await asyncio.wait_for(feed.started.wait(), LONGEST_WAIT)
        await asyncio.wait_for(controller.stop(0), LONGEST_WAIT)
        assert await asyncio.wait_for(task, LONGEST_WAIT) is None
    assert script.calls.empty()


async def test_a_controller_starts_once():
    controller = controller_of(Script(), Feed())
    async with running(controller):
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="started before"):
            await controller.start()


async def test_warm_up_fills_the_queue_and_runs_no_worker_and_start_starts_no_source_again():
    feed, script = Feed(A), Script()
    controller = controller_of(script, feed, enable_warmup=True)
    await asyncio.wait_for(controller.warmup(), LONGEST_WAIT)
    assert len(controller.queue) == 1
    assert script.calls.empty()

    async with running(controller):
        assert await script.next() == A
    assert feed.starts == 1


async def test_warm_up_and_start_may_race():
    feed, script = Feed(A), Script()
    controller = controller_of(script, feed, enable_warmup=True)
    warm = asyncio.create_task(controller.warmup())
    async with running(controller):
        assert await script.next() == A
        await asyncio.wait_for(warm, LONGEST_WAIT)
    assert feed.starts == 1


async def test_warm_up_is_off_by_default():
    feed = Feed(A)
    controller = controller_of(Script(), feed)
    await asyncio.wait_for(controller.warmup(), LONGEST_WAIT)
    assert feed.starts == 0


async def test_a_warmed_up_controller_that_is_never_elected_stops_its_sources():
    feed = Feed(A)
    controller = controller_of(Script(), feed, enable_warmup=True)
    await controller.warmup()
    await asyncio.wait_for(controller.stop(0), LONGEST_WAIT)
    assert feed.stopped.is_set()


async def test_a_watch_added_later_starts_at_once_and_its_handle_stops_it():
    script, late = Script(), Feed(B)
    controller = controller_of(script, Feed(A))
    async with running(controller):
        await script.next()
        watch = controller.watch(late)
        assert await script.next() == B
        await until(lambda: watch.is_synced)
        assert watch in controller.watches

        await watch.stop()
        await watch.stop()
        assert late.stopped.is_set()
        assert watch not in controller.watches


async def test_a_late_watch_that_fails_is_logged_and_the_controller_goes_on():
    script, feed = Script(), Feed(A)
    controller = controller_of(script, feed)
    with capture_logs() as logs:
        async with running(controller):
            await script.next()
            controller.watch(Feed(failure=ValueError("no such kind")))
            await until(lambda: any(line["log_level"] == "error" for line in logs))
            feed.add(B)
            assert await script.next() == B


async def test_no_watch_after_the_stop():
    controller = controller_of(Script(), Feed())
    await controller.stop(0)
    with pytest.raises(RuntimeError, match="has stopped"):
        controller.watch(Feed())


# --- the end -------------------------------------------------------------------------------------------------------------


async def test_running_reconciles_finish_inside_the_grace_and_no_new_one_begins():
    hanging, feed = Hanging("a"), Feed(A, B)
    controller = controller_of(hanging, feed)
    with capture_logs() as logs:
        async with running(controller) as task:
            await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
            stopping = asyncio.create_task(controller.stop(grace=LONGEST_WAIT))
            await asyncio.wait_for(feed.stopped.wait(), LONGEST_WAIT)
            feed.add(C)
            hanging.release.set()
            await asyncio.wait_for(stopping, LONGEST_WAIT)
            await asyncio.wait_for(task, LONGEST_WAIT)
    assert hanging.left == [A]
    assert hanging.calls.qsize() == 1
    assert [line for line in logs if line["log_level"] in {"warning", "error"}] == []


async def test_after_the_grace_reconciles_are_cancelled_and_may_clean_up():
    hanging = Hanging()
    controller = controller_of(hanging, Feed(A))
    with capture_logs() as logs:
        async with running(controller) as task:
            await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
            await asyncio.wait_for(controller.stop(grace=0.01), LONGEST_WAIT)
            assert hanging.cleaned.is_set()
            await asyncio.wait_for(task, LONGEST_WAIT)
    (line,) = [line for line in logs if line["log_level"] in {"warning", "error"}]
    assert (line["event"], line["request"]) == ("reconcile cancelled by shutdown", "ns/a")
    assert controller.left_behind == ()


async def test_a_second_stop_shortens_the_grace():
    hanging = Hanging()
    controller = controller_of(hanging, Feed(A))
    async with running(controller):
        await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
        patient = asyncio.create_task(controller.stop(grace=None))
        await asyncio.sleep(0.01)
        assert not patient.done()
        await asyncio.wait_for(controller.stop(grace=0), LONGEST_WAIT)
        await asyncio.wait_for(patient, LONGEST_WAIT)


async def test_a_reconcile_that_ignores_the_stop_is_reported_and_left_behind():
    hanging = Hanging(ignores=99)
    controller = controller_of(hanging, Feed(A), cancel_interval=0.01)
    with capture_logs() as logs:
        async with running(controller):
            await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
            await asyncio.wait_for(controller.stop(grace=0), LONGEST_WAIT)
    line = next(line for line in logs if "abandoned" in line["event"])
    assert line["request"] == "ns/a"
    assert __file__ in line["waitingAt"]
    assert list(controller.running) == [A]
    hanging.ignores = 0
    hanging.release.set()
    await until(lambda: not controller.running)


async def test_cancelling_the_start_cancels_running_reconciles_and_leaves_no_task():
    before = asyncio.all_tasks()
    hanging = Hanging()
    controller = controller_of(hanging, Feed(A))
    task = asyncio.create_task(controller.start())
    await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, LONGEST_WAIT)
    assert hanging.cleaned.is_set()
    await until(lambda: asyncio.all_tasks() == before)


async def test_a_cancelled_scope_around_the_start_reaches_reconciles_as_one_cancellation():
    hanging = Hanging()
    controller = controller_of(hanging, Feed(A))
    async with anyio.create_task_group() as group:
        group.start_soon(controller.start)
        await asyncio.wait_for(hanging.entered.wait(), LONGEST_WAIT)
        group.cancel_scope.cancel()
    assert hanging.cleaned.is_set()
    assert not controller.running


async def test_a_source_that_fails_to_stop_is_logged_and_the_others_stop():
    class Stubborn(Feed):
        async def stop(self):
            raise ConnectionError("no")

    other, script = Feed(A), Script()
    with capture_logs() as logs:
        async with running(controller_of(script, Stubborn(), other)):
            await script.next()
    assert other.stopped.is_set()
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["source failed to stop"]


async def test_a_stop_leaves_no_task_behind():
    before = asyncio.all_tasks()
    script = Script()
    async with running(controller_of(script, Feed(A), slow_reconcile_warning=60.0, max_concurrent_reconciles=4)):
        await script.next()
    await until(lambda: asyncio.all_tasks() == before)


async def test_a_busy_controller_lets_other_tasks_run():
    async def reconcile(request):
        seen.append(request)

    seen, turns = [], 0

    async def neighbour():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    requests = [Request("ns", str(number)) for number in range(5_000)]
    async with running(controller_of(reconcile, Feed(*requests))):
        task = asyncio.create_task(neighbour())
        await until(lambda: len(seen) == len(requests))
        task.cancel()
    assert turns > 3


# --- bad input -----------------------------------------------------------------------------------------------------------


def test_a_controller_needs_a_name_and_a_reconciler():
    with pytest.raises(ValueError, match="without a name"):
        Controller("", Script())
    with pytest.raises(TypeError, match="method reconcile"):
        Controller("test", None)
    with pytest.raises(TypeError, match="make an instance"):
        Controller("test", Script)


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrent_reconciles": 0},
        {"reconciliation_timeout": 0},
        {"cache_sync_timeout": -1},
        {"slow_reconcile_warning": -1},
        {"cancel_interval": 0},
    ],
)
def test_options_that_cannot_be_meant_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ControllerOptions(**options)


def test_reconciles_are_timed_with_the_clock_given():
    assert Controller("test", Script(), clock=time.monotonic).running == {}
