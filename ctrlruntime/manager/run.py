"""`ctrl.run(mgr)`: a manager as a process, with signals and an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, cast

from ctrlruntime import log
from ctrlruntime.errors import CtrlError
from ctrlruntime.signals import STOP, handled_by_loop
from ctrlruntime.terminal import escaped

if TYPE_CHECKING:
    from ctrlruntime.manager.manager import Manager

_LAST_WORD = 1.0  # seconds that tasks get to end which the manager left behind
_SHORTEST_BLOCK = 5.0  # seconds that an event loop may be blocked after the signal, however short the grace is


def exit_at_once(code: int) -> None:
    """End the process without waiting for anything: what is asked twice to stop may hang in its clean-up."""
    # A signal may have interrupted a write to the same stream.
    with contextlib.suppress(RuntimeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


async def run_until_signal(manager: Manager, *, exit_now: Callable[[int], object] = exit_at_once) -> None:
    """Run a manager until SIGTERM or SIGINT.

    A second signal ends the process with code 1, also while code blocks the event loop.

    A process whose event loop is blocked when the grace is over, and for at least 5 s after the signal, ends with code 1. Raises: what the
    manager raises.
    """

    def on_signal(received: signal.Signals) -> None:
        log.get_logger("manager").info("signal received, stopping", signal=received.name)
        manager.stop()

    insistence = _Insistence(manager.graceful_shutdown_timeout, exit_now)
    manager.on_stall = insistence.stalled
    with handled_by_loop(on_signal):
        for number in STOP:
            insistence.hear(number)
        await manager.start()


class _Insistence:
    """Ends the process in place of an event loop that is blocked: at the second signal, or when the grace after the first is over."""

    def __init__(
        self, grace: float | None, exit_now: Callable[[int], object], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # A little before the grace is over, because then the sender of the signal kills the process, and nothing would tell why. A short grace
        # is about tasks, not about a busy processor.
        self._patience = None if grace is None else max(_SHORTEST_BLOCK, grace - 1.0)
        self._exit_now = exit_now
        self._clock = clock
        self._asked: float | None = None

    def hear(self, number: signal.Signals) -> None:
        """Hear a signal beside the event loop, which has a handler for it already: Python calls this between any two steps of code."""
        loops_own = signal.getsignal(number)

        def heard(received: int, frame: FrameType | None) -> None:
            if self._asked is not None:
                self._exit_now(1)
            self._asked = self._clock()
            if callable(loops_own):
                loops_own(received, frame)

        signal.signal(number, heard)

    def stalled(self, where: str) -> None:
        """Take note that the event loop is blocked at this moment; called on the second loop."""
        if self._asked is None or self._patience is None:
            return
        if self._clock() - self._asked >= self._patience:
            log.get_logger("manager").error("exiting although the event loop is blocked", reason=where)
            self._exit_now(1)


_PYTHONS_OWN = {(700, 10, 10), (2000, 10, 10), (2000, 10, 0)}
"""The thresholds of the interpreters."""

_FULL_COLLECTION = 100
"""Collections of the middle generation between two full ones."""


def tune_gc() -> None:
    """Set up the garbage collector for a process that runs for a long time.

    `ctrl.run` calls it. If you call `mgr.start()` yourself, call it first, once, after the imports.

    All current objects become permanent (`gc.freeze`), so a collection does not examine them again. A full collection follows only after 100
    collections of the middle generation, in place of 10. It stops the event loop, with 20,000 decoded objects for a third of a second.
    Thresholds that you have set before are kept.
    """
    gc.collect()
    gc.freeze()
    current = gc.get_threshold()
    if current in _PYTHONS_OWN:
        gc.set_threshold(current[0], current[1], _FULL_COLLECTION)


def run(manager: Manager, *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> NoReturn:
    """Run a manager until a signal, then exit the process.

    The exit code is 0 after a planned stop, and 1 after failures, with a line on stderr for each.

    `loop_factory` makes the main event loop, e.g. `uvloop.new_event_loop`; without one it is asyncio's own. The garbage collector is set up
    by `tune_gc`. Raises: what is not a CtrlError, for a traceback says more of it than a line.
    """
    tune_gc()
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_run(manager))
    except BaseExceptionGroup as group:
        _, unexpected = group.split(CtrlError)
        if unexpected is not None:
            raise
        _tell(group)
        sys.exit(1)
    except CtrlError as error:
        _tell(error)
        sys.exit(1)
    sys.exit(0)


async def _run(manager: Manager) -> None:
    try:
        await run_until_signal(manager)
    except BaseException as error:
        await _leave_behind(error)
        raise
    await _leave_behind(None)


async def _leave_behind(error: BaseException | None) -> None:
    """End the process from here when tasks ignore their cancellation: asyncio.run would wait for them for ever."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if not rest or not (await asyncio.wait(rest, timeout=_LAST_WORD))[1]:
        return
    if error is not None:
        _tell(error)
    log.get_logger("manager").warning("exiting although tasks still run", tasks=len(rest))
    exit_at_once(0 if error is None else 1)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(each)


def _tell(error: BaseException) -> None:
    for each in _leaves(error):
        sys.stderr.write(f"error: {escaped(str(each))}\n")
