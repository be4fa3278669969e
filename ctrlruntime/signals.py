"""Handlers of the signals that stop a process, restored afterwards.

Not every process has Python's default handlers: a shell starts background jobs with SIGINT ignored, and a program that embeds an operator
handles both signals itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Generator
from types import FrameType
from typing import Final

__all__ = ["STOP", "handled", "handled_by_loop"]

STOP: Final = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def handled(handler: Callable[[int, FrameType | None], object]) -> Generator[None]:
    """Handle SIGTERM and SIGINT, and restore the handlers afterwards.

    Raises: ValueError outside the main thread.
    """
    with _put_back():
        for number in STOP:
            signal.signal(number, handler)
        yield


@contextlib.contextmanager
def handled_by_loop(callback: Callable[[signal.Signals], object]) -> Generator[None]:
    """Call `callback` on the running event loop for SIGTERM and SIGINT, and restore the handlers afterwards.

    Raises: outside the main thread RuntimeError, or ValueError with uvloop.
    """
    loop = asyncio.get_running_loop()
    with _put_back():
        for number in STOP:
            loop.add_signal_handler(number, callback, number)
        try:
            yield
        finally:
            for number in STOP:
                loop.remove_signal_handler(number)  # it sets the handler that Python starts with, whatever was there


@contextlib.contextmanager
def _put_back() -> Generator[None]:
    before = {number: signal.getsignal(number) for number in STOP}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: one that was not set from Python
                signal.signal(number, handler)
