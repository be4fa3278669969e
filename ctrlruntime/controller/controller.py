"""The controller: sources add requests to its queue, workers reconcile them, and results decide about the next run.

It uses `source`, `workqueue` and `reconcile`, and gives the manager `warmup`, `start` and `stop`. No worker starts before every source has
enqueued its initial list. Workers are plain tasks and not children of an anyio scope, because user code is cancelled only with asyncio's
own methods (see `running`).
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import itertools
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import Token
from typing import TYPE_CHECKING, Any, Generic, cast

import anyio
import msgspec
from typing_extensions import TypeVar

from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.controller.reconcilers import checked, reconcile_of, requeue_of
from ctrlruntime.controller.running import (
    Deadline,
    Job,
    ReconcileCancelledError,
    ReconcilePanicError,
    ReconcileTimeoutError,
    Threads,
    finish,
    is_async,
    take_back,
    where,
)
from ctrlruntime.controller.sharding import Shard
from ctrlruntime.controller.triggers import summary
from ctrlruntime.errors import CacheSyncTimeoutError, Conflict, CtrlError, FencedError, ForeignShardError
from ctrlruntime.frames import line_of_error
from ctrlruntime.journal import Journal, Run
from ctrlruntime.log import bind, get_logger, unbind
from ctrlruntime.log.values import message_of
from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Reconciler, Request, Result, is_terminal
from ctrlruntime.rest.fence import Actor, Grant, acting
from ctrlruntime.source import Kind, Source
from ctrlruntime.tracing import Tracing
from ctrlruntime.workqueue import Item, ItemExponentialFailureRateLimiter, PriorityQueue, QueueShutDownError
from ctrlruntime.workqueue.fair import FairQueue

if TYPE_CHECKING:
    from ctrlruntime.log.context import Refill

R = TypeVar("R", default=Request)

_log = get_logger("controller")

_SLICE = 0.005  # seconds of reconciles in a row before other tasks get their turn
_FIRST_SYNC_REPORT = 5.0  # seconds until the log says what a controller waits for
_SYNC_REPORT = 60.0  # and how often it says so again
_RETRY_GRANT = 1.0  # seconds until a request is tried again whose grant has no valid Lease
_MOVE_AFTER = 1.0  # seconds that a cancelled reconcile has, before its object moves
_ABANDON_AFTER = 3  # cancellations at stop that may be ignored
_ABANDON_INTERVAL = 1.0  # and the longest time between two of them, in seconds


class Watch(Generic[R]):
    """A handle of one source of a controller.

    Wait for it, or stop it while the controller continues.
    """

    def __init__(self, source: Source[R]) -> None:
        self.source = source
        self._bring_up: asyncio.Task[None] | None = None
        self.is_started = False
        self._is_stopped = False
        self._on_stop: Callable[[Watch[R]], None] = lambda _: None

    @property
    def is_synced(self) -> bool:
        """Whether the initial list is in the queue."""
        task = self._bring_up
        return task is not None and task.done() and not task.cancelled() and task.exception() is None

    def __repr__(self) -> str:
        state = "synced" if self.is_synced else "not synced" if self.is_started else "start has not returned"
        return f"{self.source!r} ({state})"

    async def stop(self) -> None:
        """Stop the source.

        Requests in the queue are still reconciled. You can call it twice.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._on_stop(self)
        if self._bring_up is not None:
            self._bring_up.cancel()
            await asyncio.wait({self._bring_up})
        await self.source.stop()


class Reconcile(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """A running reconcile, for diagnostics."""

    request: R
    id: str
    seconds: float
    """The seconds since its start."""

    attempts: int
    """The number of consecutive failures before it."""

    priority: int
    triggers: tuple[object, ...]
    omitted: int
    """The number of triggers that are not stored."""

    stands_at: str
    """The line of user code at which it waits, as `file:line in function`."""


class _Run(msgspec.Struct, Generic[R], eq=False):
    """A running reconcile."""

    item: Item[R]
    request: R
    id: str
    task: asyncio.Task[Any]
    started: float
    warn_at: float
    job: Job[Any] | None = None
    deadline: Deadline | None = None
    slot: int | None = None
    """The part of the requests that it belongs to, if replicas share them."""

    is_moved: bool = False
    """Another replica reconciles the request from now on."""


class Controller(Generic[R]):
    """Reconciles requests from its sources.

    It needs no manager: add sources and `await start()`.

    Args:
        name: labels its metrics and log lines, and is the default field manager of its writes.
        group: the API group of the reconciled objects, for log lines.
        kind: the kind of the reconciled objects, for log lines.
        shard: the share of the requests that this process reconciles. None: all.

    Raises: ValueError without a name, TypeError without a reconciler.

    """

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[R] | Callable[[R], Any],
        *,
        options: ControllerOptions[R] | None = None,
        metrics: Metrics | None = None,
        journal: Journal | None = None,
        group: str = "",
        kind: str = "",
        clock: Callable[[], float] = time.monotonic,
        new_id: Callable[[], str] | None = None,
        tracing: Tracing | None = None,
        shard: Shard[R] | None = None,
    ) -> None:
        if not name:
            raise ValueError(
                "cannot create a controller without a name. The name labels its metrics and log lines, and is its field manager"
            )
        self.name = name
        self.group = group
        self.kind = kind
        self.options: ControllerOptions[R] = options or ControllerOptions()
        self._reconcile = reconcile_of(reconciler)
        self._is_async = is_async(self._reconcile)
        metrics = metrics or Metrics()
        self._metrics = metrics.controller(name)
        self._queue_metrics = metrics.workqueue(name)
        self._journal = journal
        self._tracing = tracing
        self._shard = shard
        self._is_synced = asyncio.Event()
        self._ended = asyncio.Event()
        """Set by the end of each reconcile."""

        self._clock = clock
        self._new_id = new_id or _counted_ids()
        self._is_log_constructor_reported = False
        self._log = get_logger("controller").bind(**self._fields(None))
        self._bind_again: Refill | None = None
        self._context = contextvars.copy_context()
        self._queue: PriorityQueue[R] | FairQueue[R] | None = None
        self._watches: list[Watch[R]] = []
        self._workers: set[asyncio.Task[None]] = set()
        self._running: dict[R, _Run[R]] = {}
        self._slow_timer: asyncio.TimerHandle | None = None
        self._threads = Threads(f"reconcile-{name}", self.workers)
        self._is_started = False
        self._is_active = False
        self._stop_requested = asyncio.Event()
        self._grace: float | None = 0.0
        self._grace_changed = asyncio.Event()
        self._is_cut_off = False
        self._left_behind: list[R] = []
        self._ending: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"Controller({self.name})"

    # --- what the builder and the manager call ---------------------------------------------------------------------

    @property
    def needs_leader_election(self) -> bool:
        return self.shard is None and self.options.needs_leader_election

    @property
    def shard(self) -> Shard[R] | None:
        """The share of the requests that this process reconciles, or None for all."""
        return self._shard if self._shard is not None and self._shard.is_divided else None

    @property
    def queue(self) -> PriorityQueue[R] | FairQueue[R]:
        """The queue, created on first use inside the event loop."""
        if self._queue is None:
            limiter = self.options.rate_limiter or ItemExponentialFailureRateLimiter()
            admit = None if self._shard is None else self._shard.admits
            if self._shard is None or not self._shard.has_lanes:
                self._queue = PriorityQueue(
                    rate_limiter=limiter, metrics=self._queue_metrics, admit=admit, clock=self._clock
                )
            else:
                self._queue = FairQueue(
                    _cluster_of,
                    most_in_work=self.options.max_concurrent_reconciles,
                    rate_limiter=limiter,
                    metrics=self._queue_metrics,
                    admit=admit,
                    clock=self._clock,
                )
        return self._queue

    @property
    def workers(self) -> int:
        """The number of reconciles that run at the same time."""
        if self._shard is not None and self._shard.has_lanes:
            return self.options.max_concurrent_total
        return self.options.max_concurrent_reconciles

    @property
    def running(self) -> Mapping[R, float]:
        """The requests that are being reconciled, with the seconds since their start."""
        now = self._clock()
        return {request: now - run.started for request, run in self._running.items()}

    def reconciles(self) -> tuple[Reconcile[R], ...]:
        """Return the running reconciles.

        Each has its triggers, its duration, and the line at which it waits. Call it on the event loop.
        """
        now = self._clock()
        return tuple(
            Reconcile(
                request=run.request,
                id=run.id,
                seconds=now - run.started,
                attempts=run.item.attempts,
                priority=run.item.priority,
                triggers=run.item.triggers,
                omitted=run.item.omitted,
                stands_at=where(run.task, run.job),
            )
            for run in self._running.values()
        )

    @property
    def is_stopping(self) -> bool:
        """Whether it was stopped. It takes no more watches."""
        return self._stop_requested.is_set()

    @property
    def is_started(self) -> bool:
        """Whether it was started. With leader election, not before this process leads."""
        return self._is_started

    @property
    def left_behind(self) -> tuple[R, ...]:
        """The requests that may still be reconciled after the stop.

        Their reconcile ignored its cancellation.
        """
        return tuple(self._left_behind)

    @property
    def watches(self) -> tuple[Watch[R], ...]:
        return tuple(self._watches)

    def watch(self, source: Source[R]) -> Watch[R]:
        """Add a source.

        After the start, or after warm-up, it starts at once. Raises: RuntimeError after the stop.
        """
        if self._stop_requested.is_set():
            raise RuntimeError(f"cannot add a watch to controller {self.name}: it has stopped")
        watch = Watch(source)
        watch._on_stop = self._watches.remove  # noqa: SLF001 - Watch is this class's other half
        self._watches.append(watch)
        if self._is_active:
            self._begin(watch).add_done_callback(self._late_watch_ended)
        return watch

    async def warmup(self) -> None:
        """Prepare for leadership; no worker runs.

        `enable_warmup` and `warm_caches` decide what is prepared.
        """
        if self._stop_requested.is_set():
            return
        if self.options.enable_warmup:
            await self._sync()
            return
        for watch in list(self._watches):
            if self.options.warm_caches and isinstance(watch.source, Kind):
                await watch.source.warm()

    async def start(self) -> None:
        """Start the sources, wait for them, and run the workers.

        Returns after `stop`, when all work has ended.

        If the call is cancelled, running reconciles have no grace period. Raises: RuntimeError for a second start and if the workers end
        without a stop, CacheSyncTimeoutError, and the errors of a source's start.
        """
        if self._is_started:
            raise RuntimeError(f"cannot start controller {self.name}: it was started before. Create a new controller")
        self._is_started = True
        try:
            await self._until_stopped(self._sync())
            if not self._stop_requested.is_set():
                self._is_synced.set()
                self._start_workers()
                await self._until_stopped(None)
                self._refuse_to_idle()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end()

    async def stop(self, grace: float | None = 30.0) -> None:
        """Start no new reconcile, and wait for those that run.

        After `grace` seconds (None: no limit) they are cancelled.

        A reconcile that ignores its cancellation is logged and abandoned. A second call with a shorter grace period shortens it.
        """
        self._grace = grace
        self._stop_requested.set()
        self._grace_changed.set()
        await self._end()

    # --- a share of the requests -----------------------------------------------------------------------------------

    async def wait_synced(self) -> None:
        """Wait until each source has handed over its initial list."""
        await self._is_synced.wait()

    async def show(self, slots: Collection[int]) -> None:
        """Enqueue the cached objects in these slots, as after a start.

        A controller without a kind in `for_` enqueues for the objects of all its kinds.
        """
        kinds = [watch.source for watch in self._watches if isinstance(watch.source, Kind)]
        roots = [kind for kind in kinds if kind.reason == "for"]
        for kind in roots:
            await kind.show(lambda meta: self._is_in(slots, cast("R", Request(meta.namespace, meta.name))))
        for kind in () if roots else kinds:
            await kind.show(lambda _meta: True)

    def _is_in(self, slots: Collection[int], request: R) -> bool:
        return self._shard is not None and self._shard.slot(request) in slots

    def withdraw(self, slots: Collection[int]) -> list[tuple[int, R]]:
        """Start no reconcile for the requests of slots that move to another replica.

        Returns those that were in the queue or are being reconciled, with their slots. The results of the latter change nothing any more.
        """
        found: list[tuple[int, R]] = []

        def moves(request: R) -> bool:
            slot = None if self._shard is None else self._shard.slot(request)
            if slot is None or slot not in slots:
                return False
            found.append((slot, request))
            return True

        self.queue.remove(moves)
        for run in self._running.values():
            if run.slot is not None and run.slot in slots:
                run.is_moved = True
                found.append((run.slot, run.request))
        return found

    async def end_moved(self, slots: Collection[int], within: float) -> None:
        """Wait for the reconciles of withdrawn requests.

        After `within` seconds they are cancelled. One that ignores this is left alone, and cannot write any more once the caller closes its
        grant.
        """
        runs = [run for run in self._running.values() if run.is_moved and run.slot in slots]
        await self._ends_of(runs, within)
        for run in runs:
            if self._running.get(run.request) is run:
                self._log.warning("reconcile cancelled, because its object moves", **self._stands(run))
                run.task.cancel("the object moves to another replica")
        await self._ends_of(runs, _MOVE_AFTER)

    async def _ends_of(self, runs: Sequence[_Run[R]], within: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while any(self._running.get(run.request) is run for run in runs):
                    self._ended.clear()
                    await self._ended.wait()

    def _refuse_to_idle(self) -> None:
        """Raise when the workers ended and no stop was asked for: a controller that does nothing must not look healthy."""
        if not self._stop_requested.is_set():
            raise RuntimeError(f"controller {self.name} stopped: its workers ended before stop() was called")

    # --- sources ---------------------------------------------------------------------------------------------------

    def _begin(self, watch: Watch[R]) -> asyncio.Task[None]:
        # One task a watch, made once: warm-up and start may race, the source is started by whoever comes first.
        if watch._bring_up is None:  # noqa: SLF001 - as in watch()
            watch._bring_up = asyncio.create_task(self._bring_up(watch), name=f"{self.name}: start {watch.source!r}")  # noqa: SLF001 - as above
        return watch._bring_up  # noqa: SLF001 - as above

    async def _bring_up(self, watch: Watch[R]) -> None:
        await watch.source.start(self.queue)
        watch.is_started = True
        await watch.source.wait_for_sync()

    async def _sync(self) -> None:
        """Start all sources at once and wait until each has handed over its initial list."""
        self._is_active = True
        self._metrics.max_concurrent_reconciles = self.workers
        began = self._clock()
        limit = self.options.cache_sync_timeout
        patience = _FIRST_SYNC_REPORT
        while True:
            tasks = {self._begin(watch): watch for watch in self._watches}
            waiting = {task for task in tasks if not task.done()}
            for task, watch in tasks.items():
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    error.add_note(f"while controller {self.name} started {watch.source!r}")
                    raise error
            if not waiting:
                return
            left = patience if limit is None else min(patience, began + limit - self._clock())
            if left <= 0:
                names = ", ".join(repr(tasks[task]) for task in waiting)
                raise CacheSyncTimeoutError(
                    f"controller {self.name}: {names} did not sync within {limit:g} s; the log of the cache has the reason "
                    "(a missing CRD or permission, or a server that does not respond)"
                )
            done, _ = await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not done and limit is None:
                sources = [repr(tasks[task]) for task in waiting if not task.done()]
                self._log.warning(
                    "waiting for sources to sync",
                    sources=sources,
                    durationSeconds=round(self._clock() - began),
                )
                patience = _SYNC_REPORT

    def _late_watch_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("source added at run time did not start", task=task.get_name(), exc_info=error)

    # --- workers ---------------------------------------------------------------------------------------------------

    def _start_workers(self) -> None:
        self._log.info("starting workers", workers=self.workers)
        self._context = contextvars.copy_context()
        if self.options.log_constructor is None:
            from ctrlruntime.log.context import Refill  # here: it imports structlog

            kind = (self.kind,) if self.kind else ()
            self._bind_again = Refill(self._fields(None), (*kind, "namespace", "name", "reconcileID"))
        for number in range(self.workers):
            worker = asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
            self._workers.add(worker)

    async def _work(self) -> None:
        queue = self.queue
        task = asyncio.current_task()
        assert task is not None
        turn_ends = 0.0
        while not self._stop_requested.is_set():
            try:
                item = queue.get_nowait() or await queue.get()
                await self._process(item, queue, task)
                if (now := time.monotonic()) >= turn_ends:
                    # A reconcile that reads from the cache and finds nothing to do never suspends: let the others run.
                    await asyncio.sleep(0)
                    turn_ends = max(now, time.monotonic()) + _SLICE
            except QueueShutDownError:
                return
            except asyncio.CancelledError:
                if self._is_cut_off:
                    raise
                await take_back(task)
                self._log.warning("worker cancelled between reconciles, continuing")

    async def _process(self, item: Item[R], queue: PriorityQueue[R] | FairQueue[R], task: asyncio.Task[Any]) -> None:
        request = item.key
        grant: Grant | None = None
        slot: int | None = None
        if self._shard is not None:
            slot, grant = self._shard.slot(request), self._shard.grant(request)
            if grant is None or grant.deadline() is None:
                # Nothing starts before the Lease is renewed, or the request belongs to another replica.
                queue.add(request, priority=item.priority, after=_RETRY_GRANT)
                queue.done(request)
                return
        started = self._clock()
        warn_at = started + self.options.slow_reconcile_warning
        run = _Run(item, request, self._new_id(), task, started, warn_at, slot=slot)
        self._running[request] = run
        if self._slow_timer is None:
            self._look_for_slow_ones()
        self._metrics.active_workers += 1
        tokens = self._bind(request, run.id)
        try:
            is_fenced = self.options.needs_leader_election
            actor = Actor(
                self.name,
                request,
                run.id,
                fenced=is_fenced,
                triggers=item.triggers,
                grant=grant,
                share=self._shard,
            )
            with acting(actor):
                if self._tracing is None:
                    result, error = await self._call(run)
                else:
                    with self._tracing.reconcile(self.name, request, run.id, item.triggers, item.attempts) as span:
                        result, error = await self._call(run)
                        span.end(error)
            outcome = self._settle(queue, item, result, error, is_moved=run.is_moved)
            self._tell(self._note(run, outcome, result, error))
        finally:
            if tokens:
                unbind(tokens)
            self._metrics.active_workers -= 1
            self._metrics.observe(self._clock() - started)
            del self._running[request]
            self._ended.set()
            queue.done(request)
            if self._shard is not None and not run.is_moved and queue.pending(request) is None:
                self._shard.done(request)

    async def _call(self, run: _Run[R]) -> tuple[Result | None, Exception | None]:
        """Run the reconciler inside its deadline; return what it returned or raised. Raises: CancelledError when the controller stops."""
        timeout = self.options.reconciliation_timeout
        if timeout is not None:
            run.deadline = Deadline(
                run.task, timeout, self.options.cancel_interval, lambda times: self._ignored(run, times)
            )
        result: Result | None = None
        error: Exception | None = None
        cancelled: asyncio.CancelledError | None = None
        try:
            outcome = await (self._reconcile(run.request) if self._is_async else self._in_thread(run))
            if outcome is not None:
                result = checked(outcome, self._reconcile)
        except Exception as raised:  # noqa: BLE001 - whatever user code raises becomes a retry
            result = requeue_of(raised)
            error = raised if result is None else None
        except asyncio.CancelledError as raised:
            cancelled = raised
        except (KeyboardInterrupt, SystemExit):
            raise  # the process is told to end
        except BaseException as raised:
            self._metrics.panics += 1
            if not self.options.recover_panic:
                if run.deadline is not None:
                    run.deadline.close()
                raise
            error = ReconcilePanicError(f"the reconcile of {run.request} panicked: {type(raised).__name__}: {raised}")
            error.__cause__ = raised
        has_timed_out = run.deadline is not None and run.deadline.close()
        if has_timed_out:
            self._metrics.timeouts += 1
        if self._is_cut_off:
            if cancelled is not None:
                raise cancelled
            return result, error
        # Only the stop may end a worker: what else cancelled its task failed this reconcile, and no more.
        was_taken_back = bool(run.task.cancelling()) and await take_back(run.task)
        if error is None and (was_taken_back or cancelled is not None):
            error = (
                ReconcileTimeoutError(
                    f"the reconcile of {run.request} took longer than {timeout:g} s and was cancelled"
                )
                if has_timed_out
                else ReconcileCancelledError(
                    f"the reconcile of {run.request} was cancelled from inside: its own task, or something it awaited, was cancelled"
                )
            )
            error.__cause__ = cancelled  # it knows the line that was awaited
        return result, error

    async def _in_thread(self, run: _Run[R]) -> object:
        run.job = self._threads.submit(lambda: self._reconcile(run.request))
        outcome: object = await finish(run.job)
        run.job = None
        # A plain function that wraps an async one returns its coroutine.
        return await outcome if inspect.isawaitable(outcome) else outcome

    def _settle(
        self,
        queue: PriorityQueue[R] | FairQueue[R],
        item: Item[R],
        result: Result | None,
        error: Exception | None,
        *,
        is_moved: bool = False,
    ) -> str:
        """Decide what the outcome means for the request, and return the word for it."""
        request, priority = item.key, item.priority
        if is_moved or (isinstance(error, ForeignShardError) and self._is_elsewhere(request)):
            queue.forget(request)
            return "moved"
        if result is not None and result.priority is not None:
            priority = result.priority
        if error is not None and is_terminal(error):
            # Nobody will retry: the next event starts with the first delay again.
            queue.forget(request)
            self._metrics.terminal_errors += 1
            self._failed(item, error, "reconcile failed terminally, waiting for a change")
            return "terminal"
        if error is not None:
            queue.add(request, priority=priority, rate_limited=True)
            failures = queue.num_requeues(request)
            self._failed(item, error, "reconcile failed, retrying with backoff", failures=failures)
            return "timeout" if isinstance(error, ReconcileTimeoutError) else "error"
        # Forget before adding: a delayed run must not count as a failure.
        queue.forget(request)
        if result is not None and result.requeue_after > 0:
            queue.add(request, priority=priority, after=result.requeue_after)
            self._metrics.count("requeue_after")
            return "requeue_after"
        self._metrics.count("success")
        return "success"

    def _is_elsewhere(self, request: R) -> bool:
        """Return whether another replica reconciles a request, as its reconcile has found out: the name was given to another object."""
        return self._shard is not None and self._shard.grant(request) is None

    def _note(self, run: _Run[R], outcome: str, result: Result | None, error: Exception | None) -> Run:
        """Write into the journal how it went."""
        item = run.item
        seconds = self._clock() - run.started
        now = time.time() if self._journal is None else self._journal.now()
        wakes_at = None
        if result is not None and result.requeue_after > 0:
            wakes_at = now + result.requeue_after
        elif error is not None and (pending := self.queue.pending(item.key)) is not None:
            # The backoff, unless an event that came meanwhile is earlier.
            wakes_at = None if pending.ready_in is None else now + pending.ready_in
        done = Run(
            id=run.id,
            started=now - seconds,
            seconds=seconds,
            outcome=outcome,
            error="" if error is None else f"{type(error).__name__}: {message_of(error)}",
            reason="" if result is None else result.reason,
            attempts=item.attempts,
            priority=item.priority,
            triggers=item.triggers,
            omitted=item.omitted,
            wakes_at=wakes_at,
        )
        if self._journal is not None:
            self._journal.ran(self.name, item.key, done)
        return done

    def _tell(self, run: Run) -> None:
        if _log.is_enabled("debug"):
            _log.debug(
                "reconciled",
                outcome=run.outcome,
                durationSeconds=round(run.seconds, 6),
                triggers=summary(run.triggers, run.omitted),
                **({"reason": run.reason} if run.reason else {}),
            )

    def _failed(self, item: Item[R], error: Exception, event: str, **fields: object) -> None:
        self._metrics.errors += 1
        self._metrics.count("error")
        fields |= {"error": message_of(error), "errorType": type(error).__name__, "at": line_of_error(error)}
        if item.triggers:
            fields["triggers"] = summary(item.triggers, item.omitted)
        errors = list(_members(error))
        if self._stop_requested.is_set() or all(isinstance(each, (Conflict, FencedError)) for each in errors):
            # A conflict is how two writers learn of each other, a stop is planned: neither is anybody's alarm.
            _log.info(event, **fields)
        elif all(isinstance(each, CtrlError) and not isinstance(each, ReconcilePanicError) for each in errors):
            # Its message says what to do; of the way to it the line of user code is enough.
            _log.error(event, **fields)
        else:
            _log.error(event, exc_info=error, **fields)

    def _bind(self, request: R, identity: str) -> Sequence[Token[object]]:
        """Bind the fields of a reconcile's lines in its worker; return what has to be taken back at its end."""
        # The usual fields of the usual request are left to the worker's next one to replace: 2 µs a reconcile.
        if self._bind_again is None or not isinstance(request, Request) or request.cluster:
            return bind(**self._fields(request), reconcileID=identity)
        namespace, name = request.namespace, request.name
        if self.kind:
            self._bind_again({"name": name, "namespace": namespace}, namespace, name, identity)
        else:
            self._bind_again(namespace, name, identity)
        return ()

    def _fields(self, request: R | None) -> Mapping[str, object]:
        if self.options.log_constructor is not None:
            try:
                return self.options.log_constructor(request)
            except Exception as error:  # noqa: BLE001 - a line with the usual fields is better than no reconcile
                if not self._is_log_constructor_reported:
                    self._is_log_constructor_reported = True
                    get_logger("controller").error(
                        "log_constructor failed, using the default fields", controller=self.name, exc_info=error
                    )
        fields: dict[str, object] = {"controller": self.name}
        if self.kind:
            fields["controllerGroup"] = self.group
            fields["controllerKind"] = self.kind
        if isinstance(request, Request):
            if self.kind:
                fields[self.kind] = {"name": request.name, "namespace": request.namespace}
            fields["namespace"] = request.namespace
            fields["name"] = request.name
            if request.cluster:
                fields["cluster"] = request.cluster
        elif request is not None:
            fields["request"] = str(request)
        return fields

    # --- slow and stubborn reconciles ------------------------------------------------------------------------------

    def _look_for_slow_ones(self) -> None:
        if self.options.slow_reconcile_warning > 0:
            # Not in the worker's context: that has the fields of its reconcile.
            self._slow_timer = asyncio.get_running_loop().call_later(
                self.options.slow_reconcile_warning, self._warn_of_slow_ones, context=self._context
            )

    def _warn_of_slow_ones(self) -> None:
        self._slow_timer = None
        if not self._running:
            return
        now = self._clock()
        for run in self._running.values():
            if now >= run.warn_at:
                age = now - run.started
                # Each warning waits twice as long as the one before.
                run.warn_at = run.started + 2 * age
                self._log.warning("reconcile is slow", **self._stands(run))
        delay = max(min(run.warn_at for run in self._running.values()) - now, 0.001)
        self._slow_timer = asyncio.get_running_loop().call_later(delay, self._warn_of_slow_ones)

    def _ignored(self, run: _Run[R], times: int) -> None:
        self._log.warning(
            "reconcile ignores cancellation",
            hint="its request is not reconciled again until it ends",
            cancelled=times,
            **self._stands(run),
        )

    def _stands(self, run: _Run[R]) -> Mapping[str, object]:
        """Return log fields that say which reconcile it is, how long it has taken and at which line it waits."""
        return {
            "request": str(run.request),
            "reconcileID": run.id,
            "durationSeconds": round(self._clock() - run.started, 3),
            "waitingAt": where(run.task, run.job),
        }

    # --- the end ---------------------------------------------------------------------------------------------------

    async def _until_stopped(self, work: Any) -> None:
        """Await `work` (or for ever) until it ends or a stop is asked for."""
        stop = asyncio.create_task(self._stop_requested.wait())
        tasks: set[asyncio.Task[Any]] = {stop}
        if work is not None:
            tasks.add(asyncio.create_task(work, name=f"{self.name}: sync"))
        tasks |= self._workers
        try:
            while not stop.done():
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done - {stop}:
                    tasks.discard(task)
                    if not task.cancelled():
                        task.result()
                if tasks == {stop} and not stop.done():
                    return
        finally:
            for task in tasks - self._workers:
                task.cancel()

    async def _end(self) -> None:
        self._stop_requested.set()
        if self._ending is None:
            self._ending = asyncio.create_task(self._shut_down(), name=f"{self.name}: stop")
        # The shutdown is shared by start and stop: cancelling one of them must not tear it down for the other.
        await asyncio.shield(self._ending)

    async def _shut_down(self) -> None:
        self.queue.shut_down()
        # Side by side: a source that is slow to stop takes nothing off the grace of reconciles.
        await asyncio.gather(self._drain(), *(self._stop_watch(watch) for watch in tuple(self._watches)))
        self._is_cut_off = True
        for run in self._running.values():
            self._log.warning("reconcile cancelled by shutdown", **self._stands(run))
        for _ in range(_ABANDON_AFTER):
            if not (pending := self._unfinished()):
                break
            for worker in pending:
                worker.cancel("the controller stops")
            await asyncio.wait(pending, timeout=min(self.options.cancel_interval, _ABANDON_INTERVAL))
        for run in self._running.values():
            self._left_behind.append(run.request)
            self._log.warning("reconcile ignores cancellation and is abandoned", **self._stands(run))
        if self._slow_timer is not None:
            self._slow_timer.cancel()
        self._threads.close()

    async def _stop_watch(self, watch: Watch[R]) -> None:
        try:
            await watch.stop()
        except Exception as error:  # noqa: BLE001 - the other sources must stop, too
            self._log.error("source failed to stop", source=repr(watch.source), exc_info=error)

    async def _drain(self) -> None:
        """Wait for running reconciles until the grace ends; the grace may be shortened meanwhile."""
        began = self._clock()
        while pending := self._unfinished():
            self._grace_changed.clear()
            left = None if self._grace is None else began + self._grace - self._clock()
            if left is not None and left <= 0:
                return
            changed = asyncio.create_task(self._grace_changed.wait())
            try:
                await asyncio.wait({*pending, changed}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()

    def _unfinished(self) -> set[asyncio.Task[None]]:
        return {worker for worker in self._workers if not worker.done()}


def _cluster_of(request: Any) -> str:
    cluster: str = request.cluster
    return cluster


def _members(error: Exception) -> Iterator[BaseException]:
    """Yield an exception, or the exceptions of a group and of its groups."""
    if isinstance(error, ExceptionGroup):
        for each in cast("ExceptionGroup[Exception]", error).exceptions:
            yield from _members(each)
    else:
        yield error


def _counted_ids() -> Callable[[], str]:
    """Return what makes ids in the form of UUIDs: a random one for the controller, counted up in its first digits for each reconcile.

    They are as unique as random ones, and take a tenth of their time.
    """
    rest = str(uuid.uuid4())[8:]
    counter = itertools.count(random.getrandbits(31))
    return lambda: f"{next(counter):08x}{rest}"
