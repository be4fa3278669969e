"""Virtual time: an event loop for tests in which waiting takes no time.

If nothing is ready to run, the loop's clock jumps to its next timer. So `asyncio.sleep`, timeouts and `call_later` take no time, and the
moment of each event is exact. It is for code without sockets: queues, leader election, backoff. Pass the loop's clock to code with a
clock::

    @in_virtual_time
    async def test_delay_of_a_day():
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
    """Every task waits, and no timer is set."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at `now` and jumps from timer to timer.

    `patience`: real seconds for which it waits for a thread without a timer; after them it raises `VirtualTimeDeadlockError`.
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
        """Advance the time while nothing runs, as for a paused process."""
        self._now += seconds


class _Jumping(selectors.DefaultSelector):
    """Checks whether something is ready; else moves the time."""

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
    """Make a coroutine function a plain function that runs on a `VirtualTimeLoop`; pytest passes its fixtures as before."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(function(*args, **kwargs))

    return run
