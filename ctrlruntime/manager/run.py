"""`ctrl.run(mgr)`: a manager as a process, with signals and an exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from ctrlruntime import log
from ctrlruntime.errors import CtrlError

if TYPE_CHECKING:
    from ctrlruntime.manager.manager import Manager


async def run_until_signal(manager: Manager, *, exit_now: Callable[[int], object] = sys.exit) -> None:
    """Run a manager; the first SIGTERM or SIGINT stops it, the second ends the process with code 1. Raises: what the manager raises."""
    loop = asyncio.get_running_loop()

    def on_signal(received: signal.Signals) -> None:
        if manager.is_stopping:
            exit_now(1)
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
    """Run a manager until a signal, then leave the process: code 0 after a planned stop, 1 (and one line on stderr) after a failure."""
    try:
        asyncio.run(run_until_signal(manager))
    except* CtrlError as group:
        for error in group.exceptions:
            sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    sys.exit(0)
