"""Time that jumps: an event loop for tests in which hours of waiting cost nothing.

When nothing is ready to run, the loop's time moves to its next timer instead of waiting for it; so `asyncio.sleep`, time
limits and `call_later` take no time, and what happens at which moment is exact. It is for code without sockets: queues,
elections, backoff. Hand the loop's time to what takes a clock::

    @in_virtual_time
    async def test_a_day_passes():
        queue = PriorityQueue(clock=asyncio.get_running_loop().time)
        queue.add("key", after=86_400)
        assert (await queue.get()).key == "key"
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from typing_extensions import override

__all__ = ["VirtualTimeDeadlockError", "VirtualTimeLoop", "in_virtual_time"]

P = ParamSpec("P")
T = TypeVar("T")


class VirtualTimeDeadlockError(AssertionError):
    """Every task waits, and no timer is left that could wake one."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time begins at `now` and jumps from timer to timer.

    `patience`: real seconds for which it waits for a thread when no timer is left; after them `VirtualTimeDeadlockError` is
    raised out of the loop.
    """

    def __init__(self, *, now: float = 1000.0, patience: float = 5.0) -> None:
        super().__init__(_Jumping(self.advance, patience))
        self._now = now
        # What is due at this very moment must run, whatever the resolution of the machine's own clock is.
        self._clock_resolution = 1e-9

    @override
    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass while nothing runs, as for a process that stood still."""
        self._now += seconds


class _Jumping(selectors.DefaultSelector):
    """Looks whether something is ready; moves the time where it would wait."""

    def __init__(self, jump: Callable[[float], None], patience: float) -> None:
        super().__init__()
        self._jump = jump
        self._patience = patience

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is not None:
            self._jump(timeout)
            return ready
        ready = super().select(self._patience)
        if not ready:
            raise VirtualTimeDeadlockError(
                f"every task waits and no timer is left (nothing came from a thread within {self._patience:g} s, either)"
            )
        return ready


def in_virtual_time(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Make a coroutine function a plain one that runs on a `VirtualTimeLoop`; pytest gives it its fixtures as before."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(function(*args, **kwargs))

    return run
