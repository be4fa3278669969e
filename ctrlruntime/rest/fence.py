"""The actor of a call, and the fence that rejects writes without leadership.

The actor is the only context variable of this package. A controller sets it for a reconcile, and all its calls inherit it, so that a write
knows for whom it is sent. The fence is checked before every mutating request: a write that needs leadership must not start after another
process may hold the Lease. If replicas share the keys, a reconcile has a grant in place of leadership.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar, Token
from types import TracebackType

import msgspec

from ctrlruntime.errors import FencedError, RequestTimeoutError


def lease_clock() -> float:
    """Return the seconds of the clock for leases.

    It is monotonic, and continues while the machine is suspended.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Grant:
    """The right to write for a share of the keys, from its opening to `close`. Use it on one event loop; `deadline` is safe in any thread.

    deadline: returns the time on the clock of the fence until which the grant is certainly valid, or None.
    whole: the grant that this one is a part of. A write is open for both.
    """

    def __init__(self, deadline: Callable[[], float | None], *, whole: Grant | None = None) -> None:
        self._deadline = deadline
        self.whole = whole
        self._is_closed = False
        self._writes = 0
        self._settled = asyncio.Event()
        self._settled.set()

    def deadline(self) -> float | None:
        """Return the time until which a write may be open, or None if no write may start."""
        return None if self._is_closed else self._deadline()

    def close(self) -> None:
        """Let no more writes start."""
        self._is_closed = True

    def reopen(self) -> None:
        """Let writes start again."""
        self._is_closed = False

    @property
    def is_settled(self) -> bool:
        """Whether no write is open."""
        return not self._writes

    async def settled(self) -> None:
        """Wait until no write is open: each has a response, or cannot be stored any more."""
        await self._settled.wait()

    def begin(self) -> None:
        self._writes += 1
        self._settled.clear()
        if self.whole is not None:
            self.whole.begin()

    def end(self) -> None:
        self._writes -= 1
        if not self._writes:
            self._settled.set()
        if self.whole is not None:
            self.whole.end()


class Actor(msgspec.Struct, frozen=True):
    """The actor of a call: the controller, the request, the reconcile ID, and what triggered the reconcile.

    `fenced`: only while leader. `grant`: only while it is valid, in place of leadership. `share`: the share of a sharded controller; its
    cached reads see no other objects of the kinds that are divided.
    """

    controller: str
    request: object = None
    reconcile_id: str = ""
    fenced: bool = True
    triggers: tuple[object, ...] = ()
    grant: Grant | None = None
    share: object = None


_actor: ContextVar[Actor | None] = ContextVar("ctrlruntime_actor", default=None)


def current_actor() -> Actor | None:
    """Return the actor of the running code, or None outside controllers and runnables."""
    return _actor.get()


class acting:  # noqa: N801 - a context manager; as a generator function it takes three times as long
    """Run a block with this actor."""

    __slots__ = ("_actor", "_token")

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        self._token: Token[Actor | None] = _actor.set(self._actor)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _actor.reset(self._token)


class Fence:
    """Rejects writes that need leadership if this process may no longer be the leader.

    It is open until `arm` sets a deadline (the manager does with leader election).

    deadline: returns the time on `clock` until which this process is certainly the leader, or None if it is not.
    refused: called with the controller's name ("" outside controllers) for each rejected write.

    Safe in any thread.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = lease_clock,
        refused: Callable[[str], None] = lambda _controller: None,
    ) -> None:
        self._clock = clock
        self._refused = refused
        self._deadline: Callable[[], float | None] | None = None

    def arm(self, deadline: Callable[[], float | None]) -> None:
        self._deadline = deadline

    def deadline(self) -> float | None:
        """Return the time until which this process is certainly the leader, None if it is not, or infinity without leader election."""
        return math.inf if self._deadline is None else self._deadline()

    def time_left(self) -> float | None:
        """Return the seconds a write of the current actor may take, or None without a limit.

        Raises: FencedError if it must not start.
        """
        left = self._left()
        if left is not None and left <= 0:
            actor = _actor.get()
            self._refused(actor.controller if actor else "")
            who = f"controller {actor.controller}" if actor else "a caller outside controllers"
            what = "hold the lease" if actor is None or actor.grant is None else f"own {actor.request} any more"
            raise FencedError(f"write by {who} rejected: this process does not {what}")
        return left

    def _left(self) -> float | None:
        actor = _actor.get()
        if actor is not None and actor.grant is not None:
            until = actor.grant.deadline()
        elif self._deadline is None or (actor is not None and not actor.fenced):
            return None
        else:
            until = self._deadline()
        if until is None:
            return -1.0
        return None if until == math.inf else until - self._clock()

    @contextlib.asynccontextmanager
    async def enforced(self, request: str, *, stored_until: float = 0.0) -> AsyncGenerator[None, None]:
        """Abort the block when leadership or the grant ends; a renewed Lease extends it.

        stored_until: the time on the event loop until which a write without a response may be stored. So long it counts as open for the
        grant.

        Raises: FencedError if it must not start, RequestTimeoutError with `request` if it is aborted.
        """
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def check() -> None:
            nonlocal timer
            left = self._left()
            if left is not None and left <= 0:
                scope.reschedule(loop.time())
            else:
                timer = None if left is None else loop.call_later(left, check)

        left = self.time_left()
        scope = asyncio.timeout(None)
        actor = _actor.get()
        grant = None if actor is None else actor.grant
        is_known = False
        if grant is not None:
            grant.begin()
        try:
            async with scope:
                timer = None if left is None else loop.call_later(left, check)
                try:
                    yield
                    is_known = True
                except FencedError:
                    is_known = True  # it was not sent
                    raise
                finally:
                    if timer is not None:
                        timer.cancel()
        except TimeoutError as error:
            if not scope.expired():
                raise
            raise RequestTimeoutError(
                f"{request}: aborted, because this process no longer holds the lease. The write may or may not have been done"
            ) from error
        finally:
            if grant is not None and (is_known or stored_until <= loop.time()):
                grant.end()
            elif grant is not None:
                loop.call_at(stored_until, grant.end)
