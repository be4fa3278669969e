"""The watchdog: checks repeatedly whether the main event loop responds, and reports the line at which it is blocked.

It runs on the second loop. It sends a beat to the main loop with `call_soon_threadsafe`. Until the response arrives, the loop is *stalled*.
After `warn_after` seconds there is a warning with the stack of the main thread. After `unhealthy_after` seconds the loop is *hung*:
`trouble` returns the cause, which leader election and the liveness probe read.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Final

from ctrlruntime import frames, log
from ctrlruntime.errors import ConfigError
from ctrlruntime.healthz import UnhealthyError
from ctrlruntime.metrics import LoopMetrics

BEATS: Final = 4
"""The number of beats within `warn_after` seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchdog:
    """Limits for code that blocks the event loop, in seconds.

    First a warning with the stack is logged, then leadership ends.

    Raises: ConfigError for invalid times.
    """

    warn_after: float = 1.0
    """The time without a response after which there is a warning."""

    unhealthy_after: float = 60.0
    """The time without a response after which the Lease is no longer renewed and liveness fails."""

    def __post_init__(self) -> None:
        if not 0 < self.warn_after <= self.unhealthy_after:
            raise ConfigError(
                f"warn_after is {self.warn_after:g} s and unhealthy_after is {self.unhealthy_after:g} s: "
                "give numbers above 0, the second not below the first"
            )


USUAL: Final = Watchdog()


class _Beat:
    """One beat to the main loop.

    `sent` is moved forward by the time in which the whole process was paused.
    """

    __slots__ = ("answered", "sent")

    def __init__(self, sent: float) -> None:
        self.sent = sent
        self.answered: float | None = None


class LoopWatch:
    """Watches the loop `watched`, which runs in the thread `thread` (its ident).

    `on_stall` is called at each check while a warning is active, with the line of the loop. `clock` is in seconds.
    """

    def __init__(
        self,
        options: Watchdog,
        watched: asyncio.AbstractEventLoop,
        *,
        thread: int | None = None,
        metrics: LoopMetrics | None = None,
        on_stall: Callable[[str], None] = lambda _where: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._watched = watched
        self._thread = threading.get_ident() if thread is None else thread
        self._metrics = metrics or LoopMetrics()
        self._on_stall = on_stall
        self._clock = clock
        self._period = options.warn_after / BEATS
        self._beat: _Beat | None = None
        self._looked: float | None = None
        self._has_warned = False
        self._has_given_up = False
        self._has_ended = False
        self._log = log.get_logger("manager")

    # --- what others ask; safe in any thread ------------------------------------------------------------------------

    def stalled_for(self) -> float:
        """Return the seconds for which the loop has not responded; 0 if no response is pending."""
        beat = self._beat
        return 0.0 if beat is None or beat.answered is not None else max(0.0, self._clock() - beat.sent)

    def describe(self) -> str:
        """Return the time for which the loop has not responded, and its line."""
        if self._has_ended:
            return "the main event loop has ended"
        place = where(self._frame())
        return f"the main event loop has not answered for {self.stalled_for():.1f} s" + (f": {place}" if place else "")

    def stack(self) -> list[str]:
        """Return the current stack of the watched loop's thread, with the innermost line last."""
        return [frames.line(place) for place in frames.outwards(self._frame())][::-1]

    def trouble(self) -> str:
        """Return why the loop counts as hung, so that this process must not lead; empty if it does not."""
        return self.describe() if self.stalled_for() >= self._options.unhealthy_after else ""

    def check(self) -> None:
        """Raise UnhealthyError if the loop is hung or has ended. This is the liveness check."""
        if self._has_ended or self.trouble():
            raise UnhealthyError(self.describe())

    # --- watching ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch until cancelled, or until the watched loop is closed."""
        while True:
            if not self.look():
                return
            await asyncio.sleep(self._period)

    def look(self) -> bool:
        """Check once, as `run` does at intervals. Return False if the loop has ended."""
        self._has_ended = self._watched.is_closed()
        if self._has_ended:
            return False
        now = self._clock()
        before, self._looked = self._looked, now
        if before is not None:
            self._notice_standstill(now - before - self._period)
        if self._beat is not None:
            if self._beat.answered is None:
                self._owes(self._beat, now)
                return True
            self._answers(self._beat, self._beat.answered)
        return self._send()

    def _send(self) -> bool:
        beat = _Beat(self._clock())
        try:
            self._watched.call_soon_threadsafe(self._answer, beat)
        except RuntimeError:
            self._has_ended = True
            return False
        self._beat = beat
        return True

    def _answer(self, beat: _Beat) -> None:
        beat.answered = self._clock()

    def _answers(self, beat: _Beat, answered: float) -> None:
        seconds = max(0.0, answered - beat.sent)
        self._metrics.lag.observe(seconds)
        self._metrics.stalled = 0.0
        if self._has_warned:
            self._has_warned = self._has_given_up = False
            self._log.info("event loop responds again", blockedFor=round(seconds, 3))

    def _owes(self, beat: _Beat, now: float) -> None:
        seconds = self._metrics.stalled = now - beat.sent
        # A period early: the loop may have been blocked that long already when the beat was sent.
        if not self._has_warned and seconds >= self._options.warn_after - self._period:
            self._has_warned = True
            self._metrics.blocked += 1
            self._log.warning(
                "event loop is blocked",
                hint="call blocking code with asyncio.to_thread, or write reconcile as a plain function",
                durationSeconds=round(seconds, 3),
                at=where(self._frame()),
                trace=self.stack(),
            )
        if self._has_warned:
            self._on_stall(self.describe())
        if not self._has_given_up and seconds >= self._options.unhealthy_after:
            self._has_given_up = True
            self._log.error(
                "event loop hangs: lease not renewed, liveness fails",
                durationSeconds=round(seconds, 3),
                at=where(self._frame()),
                trace=self.stack(),
            )

    def _notice_standstill(self, overslept: float) -> None:
        """Take time in which this thread stood still, too, off what the loop owes: that was not code on the loop, or cannot be told."""
        if overslept < self._options.warn_after - self._period:
            return
        if self._beat is not None and self._beat.answered is None:
            self._beat.sent += overslept
        self._log.warning(
            "process was paused",
            hint="it was frozen, had no CPU, or an extension module held the interpreter lock",
            durationSeconds=round(overslept, 3),
            at=where(self._frame()),
        )

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self._thread)  # noqa: SLF001 - the documented way to see another thread


def where(frame: FrameType | None) -> str:
    """Return the innermost line of user code in a stack as `file:line in function`, else of any code; empty without a stack."""
    places = list(frames.outwards(frame))
    return frames.user_line(places) or (frames.line(places[0]) if places else "")
