"""`ctrl.run(mgr)`: a manager as a process, with signals and an exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn, cast

from ctrlruntime import log
from ctrlruntime.errors import CtrlError

if TYPE_CHECKING:
    from ctrlruntime.manager.manager import Manager

_LAST_WORD = 1.0  # seconds that tasks get to end which the manager left behind


def exit_at_once(code: int) -> None:
    """End the process without waiting for anything: what is asked twice to stop may hang in its clean-up."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def run_until_signal(manager: Manager, *, exit_now: Callable[[int], object] = exit_at_once) -> None:
    """Run a manager; the first SIGTERM or SIGINT stops it, the second ends the process with code 1. Raises: what the manager raises."""
    loop = asyncio.get_running_loop()
    is_asked = False

    def on_signal(received: signal.Signals) -> None:
        nonlocal is_asked
        if is_asked:
            exit_now(1)
        is_asked = True
        log.get_logger("manager").info("signal received, stopping", signal=received.name)
        manager.stop()

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await manager.start()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def run(manager: Manager) -> NoReturn:
    """Run a manager until a signal, then leave the process: code 0 after a planned stop, 1 (and a line on stderr for each) after failures.

    Raises: what is no CtrlError, for a traceback says more of it than a line.
    """
    try:
        asyncio.run(_run(manager))
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
    log.get_logger("manager").warning("the process ends although tasks still run", tasks=len(rest))
    exit_at_once(0 if error is None else 1)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from _leaves(each)


def _tell(error: BaseException) -> None:
    for each in _leaves(error):
        sys.stderr.write(f"error: {each}\n")
