"""Who is acting, and whether it may still write.

The actor is the one context variable of this package: a controller sets it around a reconcile, and everything the reconcile calls carries
it, so a write deep inside knows for whom it is made. The fence is asked before every mutating request; what is bound to leadership may not
begin a write once the lease could have passed to somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass

from ctrlruntime.errors import FencedError, RequestTimeoutError


@dataclass(frozen=True, slots=True)
class Actor:
    """For whom a call is made: the controller's name, the request it reconciles, the reconcile's id; `fenced`: only while leader."""

    controller: str
    request: object = None
    reconcile_id: str = ""
    fenced: bool = True


_actor: ContextVar[Actor | None] = ContextVar("ctrlruntime_actor", default=None)


def current_actor() -> Actor | None:
    """Return for whom the running code acts, or None outside controllers and runnables."""
    return _actor.get()


@contextlib.contextmanager
def acting(actor: Actor) -> Generator[None, None, None]:
    """Run a block on behalf of `actor`."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


class Fence:
    """Refuses writes that are bound to leadership when this process may no longer be the leader.

    It is open until `arm` gives it a deadline to watch (the manager does, when leader election is on). `deadline` returns the moment, by
    `clock`, until which we are certainly the leader, or None while we are not.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deadline: Callable[[], float | None] | None = None

    def arm(self, deadline: Callable[[], float | None]) -> None:
        self._deadline = deadline

    def time_left(self) -> float | None:
        """Return the seconds a write of the current actor may take, None for no bound. Raises: FencedError when it may not begin."""
        if self._deadline is None:
            return None
        actor = _actor.get()
        if actor is not None and not actor.fenced:
            return None
        until = self._deadline()
        left = -1.0 if until is None else until - self._clock()
        if left <= 0:
            who = f"controller {actor.controller}" if actor else "a caller outside controllers"
            raise FencedError(f"write by {who} refused: this process does not hold the lease (any more)")
        return left

    @contextlib.asynccontextmanager
    async def enforced(self, request: str) -> AsyncGenerator[None, None]:
        """Cut the block off when leadership ends; a lease that is renewed meanwhile lengthens it.

        Raises: FencedError when it may not begin, RequestTimeoutError, which names `request`, when it is cut off.
        """
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def check() -> None:
            nonlocal timer
            try:
                left = self.time_left()
            except FencedError:
                scope.reschedule(loop.time())
            else:
                timer = None if left is None else loop.call_later(left, check)

        left = self.time_left()
        scope = asyncio.timeout(None)
        try:
            async with scope:
                timer = None if left is None else loop.call_later(left, check)
                try:
                    yield
                finally:
                    if timer is not None:
                        timer.cancel()
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise RequestTimeoutError(
                f"{request}: cut off, for this process does not hold the lease any more; whether it was done is unknown"
            ) from error
