"""Runnables and their groups, which a manager starts and stops together."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from ctrlruntime import log
from ctrlruntime.errors import CtrlError
from ctrlruntime.frames import name_of
from ctrlruntime.rest.fence import Actor, acting

_MARGIN = 5.0  # seconds a runnable with a stop method may take on top of the grace, to cancel what did not end in it
_LAST_WORD = 1.0  # seconds between the last cancellation and being left behind


@runtime_checkable
class Runnable(Protocol):
    """Anything that a manager runs: `start` runs until it is cancelled or done.

    The attribute `needs_leader_election` (default True) sets whether it waits for leadership. If it has a method `async stop(grace)`, the
    manager calls it instead of cancelling `start`, as controllers need to finish their reconciles.
    """

    async def start(self) -> None: ...


@runtime_checkable
class Stoppable(Protocol):
    """A runnable that ends by itself within `grace` seconds (None: no limit) after `stop` is called.

    `stop` is called again with 0 if no time is left, because the Lease is lost.
    """

    async def stop(self, grace: float | None) -> None: ...


@runtime_checkable
class WarmUp(Protocol):
    """A runnable that can prepare before it becomes the leader."""

    async def warmup(self) -> None: ...


class StopTimeoutError(CtrlError):
    """A runnable did not end within the graceful shutdown timeout, and was abandoned."""


class Phase(enum.Enum):
    """The phase of a group."""

    COLLECTING = "runnables are kept until the group starts"
    RUNNING = "runnables start as they are added"
    STOPPING = "nothing is accepted any more"


class Grace:
    """The grace period of a stop, shared by all runnables.

    `seconds`: None means no limit; it can be cut short.
    """

    def __init__(self, seconds: float | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self.is_cut = asyncio.Event()
        self._clock = clock
        self._ends = None if seconds is None else clock() + seconds

    def left(self) -> float | None:
        """Return the remaining seconds, 0 or more; None for no limit."""
        return None if self._ends is None else max(0.0, self._ends - self._clock())

    @property
    def is_over_early(self) -> bool:
        """Whether the grace period is 0 or was cut short.

        A runnable that does not end is then not an error.
        """
        return not self.seconds or self.is_cut.is_set()

    def cut(self) -> None:
        """End the grace period now."""
        self._ends = self._clock()
        self.is_cut.set()

    async def wait(self, tasks: set[asyncio.Task[None]], *, margin: float) -> set[asyncio.Task[None]]:
        """Wait for the tasks until `margin` seconds after the end of the grace period.

        Return those that are not done.
        """
        cut = asyncio.ensure_future(self.is_cut.wait())
        try:
            while pending := {task for task in tasks if not task.done()}:
                left = None if self._ends is None else self._ends + margin - self._clock()
                if left is not None and left <= 0:
                    return pending
                watched: set[asyncio.Future[Any]] = {*pending} if cut.done() else {*pending, cut}
                await asyncio.wait(watched, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            return set()
        finally:
            cut.cancel()


class FunctionRunnable:
    """An async function as a runnable."""

    def __init__(self, function: Callable[[], Awaitable[None]], *, needs_leader_election: bool = True) -> None:
        self._function = function
        self.needs_leader_election = needs_leader_election

    async def start(self) -> None:
        await _awaitable(self._function(), self)

    def __repr__(self) -> str:
        return name_of(self._function)


def actor_of(runnable: object, *, fenced: bool) -> Actor:
    """Return the actor of a runnable's calls. A controller has a name, and perhaps a share."""
    return Actor(str(getattr(runnable, "name", "") or ""), fenced=fenced, share=getattr(runnable, "shard", None))


def needs_leader_election(runnable: Runnable) -> bool:
    return bool(getattr(runnable, "needs_leader_election", True))


class Group:
    """Runnables of one type.

    `failed` is called with the error of a runnable, `ended` with a runnable that ended without one. Cancellation is not an error.
    """

    def __init__(
        self,
        name: str,
        failed: Callable[[Runnable, BaseException], None],
        *,
        fenced: bool,
        ended: Callable[[Runnable], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.phase = Phase.COLLECTING
        self._failed = failed
        self._tell_ended = ended
        self._fenced = fenced
        self._waiting: list[Runnable] = []
        self._tasks: dict[asyncio.Task[None], Runnable] = {}
        self._log = log.get_logger("manager")

    @property
    def is_empty(self) -> bool:
        return not self._waiting and not self._tasks

    def add(self, runnable: Runnable) -> None:
        """Start the runnable with the group, or at once.

        Raises: RuntimeError while the group stops.
        """
        match self.phase:
            case Phase.COLLECTING:
                self._waiting.append(runnable)
            case Phase.RUNNING:
                self._start(runnable)
            case Phase.STOPPING:
                raise RuntimeError(f"cannot add {runnable!r}: the manager is stopping")

    def start(self) -> None:
        """Start all runnables. Does nothing the second time, or once the group stops."""
        if self.phase is not Phase.COLLECTING:
            return
        self.phase = Phase.RUNNING
        waiting, self._waiting = self._waiting, []
        for runnable in waiting:
            self._start(runnable)

    async def stop(self, grace: Grace) -> list[BaseException]:
        """Stop all runnables in parallel, and return their errors.

        A runnable that does not end in time is abandoned and named.
        """
        self.phase = Phase.STOPPING
        waiting, self._waiting = self._waiting, []
        # A runnable that was warmed up and never started holds watches all the same.
        stops = [_stop_unstarted(runnable) for runnable in waiting if isinstance(runnable, WarmUp)]
        stops += [self._stop_one(task, runnable, grace) for task, runnable in self._tasks.items()]
        outcomes = await asyncio.gather(*stops, return_exceptions=True)
        return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]

    def _start(self, runnable: Runnable) -> None:
        task = asyncio.ensure_future(self._run(runnable))
        self._tasks[task] = runnable
        task.add_done_callback(self._ended)

    async def _run(self, runnable: Runnable) -> None:
        with acting(actor_of(runnable, fenced=self._fenced)):
            await _awaitable(runnable.start(), runnable)

    def _ended(self, task: asyncio.Task[None]) -> None:
        runnable = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            self._tell_ended(runnable)
        else:
            self._failed(runnable, error)

    async def _stop_one(self, task: asyncio.Task[None], runnable: Runnable, grace: Grace) -> None:
        if not isinstance(runnable, Stoppable):
            task.cancel()
            pending = await grace.wait({task}, margin=0.1)
        else:
            stopping = asyncio.ensure_future(runnable.stop(grace.left()))
            hurrying = asyncio.ensure_future(_stop_when_cut(runnable, grace))
            pending = await grace.wait({task, stopping}, margin=_MARGIN)
            hurrying.cancel()
            if stopping.done():
                stopping.result()
        for late in pending:
            late.cancel()
        if pending and (await asyncio.wait(pending, timeout=_LAST_WORD))[1]:
            self._leave_behind(runnable, grace)

    def _leave_behind(self, runnable: Runnable, grace: Grace) -> None:
        if grace.is_over_early:
            self._log.warning("runnable ignores cancellation and is abandoned", runnable=repr(runnable))
            return
        raise StopTimeoutError(
            f"{runnable!r} did not end within the {grace.seconds:g} s of graceful_shutdown_timeout, and ignored its cancellation"
        )


async def _stop_unstarted(runnable: WarmUp) -> None:
    if isinstance(runnable, Stoppable):
        await runnable.stop(0.0)


async def _stop_when_cut(runnable: Stoppable, grace: Grace) -> None:
    await grace.is_cut.wait()
    # What goes wrong is told by the first call, which waits for the same end.
    with contextlib.suppress(Exception):
        await runnable.stop(0.0)


def _awaitable(started: object, runnable: object) -> Awaitable[None]:
    if not inspect.isawaitable(started):
        raise TypeError(f"cannot run {runnable!r}: its start must be async, but returned {started!r}")
    return started


def as_runnable(runnable: Any) -> Runnable:
    """Return the argument of `Manager.add` as a runnable. Raises: TypeError."""
    given: object = runnable
    if isinstance(given, type) or not (hasattr(given, "start") or callable(given)):
        raise TypeError(f"cannot run {runnable!r}: pass an object with `async def start(self)`, or an async function")
    return runnable if hasattr(runnable, "start") else FunctionRunnable(runnable)
