"""Runnables and their groups: what a manager starts and stops together."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, runtime_checkable

from ctrlruntime import log
from ctrlruntime.rest.fence import Actor, acting


@runtime_checkable
class Runnable(Protocol):
    """Anything a manager runs: `start` works until it is cancelled or its work is done.

    An attribute `needs_leader_election` (default True) says whether it waits for leadership. A method `async stop(grace)` is called instead
    of cancelling, when there is one; so controllers end their reconciles in peace.
    """

    async def start(self) -> None: ...


@runtime_checkable
class Stoppable(Protocol):
    """A runnable that ends by itself when asked to, inside `grace` seconds (None: as long as it takes)."""

    async def stop(self, grace: float | None) -> None: ...


@runtime_checkable
class WarmUp(Protocol):
    """A runnable that can get ready before leadership is won."""

    async def warmup(self) -> None: ...


class Phase(enum.Enum):
    """Where a group stands."""

    COLLECTING = "runnables are kept until the group starts"
    RUNNING = "runnables start as they are added"
    STOPPING = "nothing is accepted any more"


class FunctionRunnable:
    """An async function as a runnable."""

    def __init__(self, function: Callable[[], Awaitable[None]], *, needs_leader_election: bool = True) -> None:
        self._function = function
        self.needs_leader_election = needs_leader_election

    async def start(self) -> None:
        await self._function()

    def __repr__(self) -> str:
        return getattr(self._function, "__qualname__", repr(self._function))


def needs_leader_election(runnable: Runnable) -> bool:
    return bool(getattr(runnable, "needs_leader_election", True))


class Group:
    """Runnables of one kind. `failed` is told of the first error of each; cancellation is no error."""

    def __init__(self, name: str, failed: Callable[[Runnable, BaseException], None], *, fenced: bool) -> None:
        self.name = name
        self.phase = Phase.COLLECTING
        self._failed = failed
        self._fenced = fenced
        self._waiting: list[Runnable] = []
        self._tasks: dict[asyncio.Task[None], Runnable] = {}
        self._log = log.get_logger("manager")

    def add(self, runnable: Runnable) -> None:
        """Start the runnable with the group, or at once. Raises: RuntimeError while the group stops."""
        match self.phase:
            case Phase.COLLECTING:
                self._waiting.append(runnable)
            case Phase.RUNNING:
                self._start(runnable)
            case Phase.STOPPING:
                raise RuntimeError(f"{runnable!r} cannot be added: the manager is stopping")

    def start(self) -> None:
        if self.phase is not Phase.COLLECTING:
            return
        self.phase = Phase.RUNNING
        waiting, self._waiting = self._waiting, []
        for runnable in waiting:
            self._start(runnable)

    async def stop(self, grace: float | None) -> list[BaseException]:
        """Stop all runnables side by side and return what went wrong; a runnable that does not end in time is left behind and named."""
        self.phase = Phase.STOPPING
        self._waiting.clear()
        if not self._tasks:
            return []
        outcomes = await asyncio.gather(
            *(self._stop_one(task, runnable, grace) for task, runnable in list(self._tasks.items())),
            return_exceptions=True,
        )
        return [outcome for outcome in outcomes if isinstance(outcome, BaseException)]

    def _start(self, runnable: Runnable) -> None:
        task = asyncio.ensure_future(self._run(runnable))
        self._tasks[task] = runnable
        task.add_done_callback(self._ended)

    async def _run(self, runnable: Runnable) -> None:
        with acting(Actor(str(getattr(runnable, "name", "") or ""), fenced=self._fenced)):
            await runnable.start()

    def _ended(self, task: asyncio.Task[None]) -> None:
        runnable = self._tasks.pop(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._failed(runnable, error)

    async def _stop_one(self, task: asyncio.Task[None], runnable: Runnable, grace: float | None) -> None:
        if isinstance(runnable, Stoppable):
            await runnable.stop(grace)
        else:
            task.cancel()
        done, _ = await asyncio.wait({task}, timeout=None if grace is None else max(grace, 0.1))
        if not done:
            task.cancel()
            raise TimeoutError(f"{runnable!r} in group {self.name} did not stop within {grace:g} s")


def as_runnable(runnable: Any) -> Runnable:
    """Return what `Manager.add` was given as a runnable. Raises: TypeError that says what is needed."""
    if isinstance(runnable, type) or not (hasattr(runnable, "start") or callable(runnable)):
        raise TypeError(
            f"{runnable!r} cannot be run: pass an object with `async def start(self)`, or an async function"
        )
    return runnable if hasattr(runnable, "start") else FunctionRunnable(runnable)
