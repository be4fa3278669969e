"""Where lines go: one output for the process, thinned out and written whole."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from traceback import format_exception
from typing import Final, TextIO

from ctrlruntime.log.encoding import TIMES, Fields, console_line, describe, json_line
from ctrlruntime.log.options import DEBUG, ERROR, INFO, WARN, Options

_NAMES: Final = {INFO: "info", WARN: "warn", ERROR: "error"}

SAMPLED_FIRST: Final = 100
"""Equal lines (same level and message) of one second that are all written in production; then every `SAMPLED_EVERY`th."""

SAMPLED_EVERY: Final = 100


class Output:
    """The one place lines go to, in one form. Safe in any thread."""

    def __init__(
        self,
        options: Options,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.threshold = options.threshold
        self._stack_threshold = options.stack_threshold
        self._stream = stream
        encoder = options.encoder or ("console" if options.devel else "json")
        self._line = json_line if encoder == "json" else console_line
        self._time = TIMES[options.time_encoding or "rfc3339"]
        self._sampler = None if options.devel else _Sampler(clock)
        self._wall = wall
        self._lock = threading.Lock()

    def write(self, level: int, name: str, event: str, fields: Fields) -> None:
        """Write one line, if sampling lets it pass. Never raises: logging must not break what it tells about."""
        if self._sampler is not None and not self._sampler.lets_pass(level, event):
            return
        merged = dict(fields)
        error = _exception_of(merged.pop("exc_info", None))
        traceback = ""
        if error is not None:
            merged.setdefault("error", describe(error))
            if level >= self._stack_threshold:
                traceback = "".join(format_exception(error)).rstrip()
        if level < DEBUG:
            merged["v"] = -level
        line = self._line(self._time(self._wall()), _NAMES.get(level, "debug"), name, event, merged, traceback)
        # stderr is looked up each time, as it may have been replaced. One write a line keeps the lines of two threads
        # apart.
        stream = self._stream or sys.stderr
        with self._lock, contextlib.suppress(OSError, ValueError):
            stream.write(line + "\n")
            stream.flush()


class _Sampler:
    """Thins out equal lines, second by second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = -1
        self._counts: dict[tuple[int, str], int] = {}

    def lets_pass(self, level: int, event: str) -> bool:
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        key = (level, event)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return count <= SAMPLED_FIRST or (count - SAMPLED_FIRST) % SAMPLED_EVERY == 0


class Sink:
    """Holds the output that is in use. A process has one stderr, so it has one of these."""

    __slots__ = ("output",)

    def __init__(self, output: Output) -> None:
        self.output = output


sink: Final = Sink(Output(Options(devel=True, log_level="info", stacktrace_level="error")))


def _exception_of(exc_info: object) -> BaseException | None:
    match exc_info:
        case BaseException():
            return exc_info
        case (_, BaseException() as error, _):
            return error
        case None | False:
            return None
        case _:
            return sys.exc_info()[1]
