"""The chain of structlog processors for every line, and its output to a stream.

A line from any logger has `event`, fields and `exc_info`, and its context. Steps that drop a line come first: level, sampling, time, the
user's processors, exceptions, form.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TextIO

import msgspec
import structlog
from structlog.dev import Column, ConsoleRenderer, KeyValueColumnFormatter, LogLevelColumnFormatter, plain_traceback
from structlog.processors import JSONRenderer, StackInfoRenderer, format_exc_info
from structlog.typing import EventDict, Processor, WrappedLogger

from ctrlruntime.log.options import DEBUG, ERROR, INFO, LOG_LEVELS, WARN, Options, TimeEncoding
from ctrlruntime.log.values import describe, on_one_line, plain, text, word
from ctrlruntime.terminal import escaped, is_terminal

SAMPLED_FIRST: Final = 100
"""The number of equal lines (level and message) per second that are all written in production; then every `SAMPLED_EVERY`th."""

SAMPLED_EVERY: Final = 100


class Chain:
    """Writes lines in one form to one stream. Safe in any thread.

    `processors` is the chain, for structlog's configuration; the context is merged before it.
    """

    def __init__(
        self,
        options: Options,
        *,
        stream: TextIO | None = None,
        processors: Sequence[Processor] = (),
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.threshold = options.threshold
        self._stream = stream
        self._lock = threading.RLock()  # a signal's handler may log while its thread is writing
        # Once: all lines of a process have one form.
        for_people = options.devel or is_terminal(stream or sys.stderr)
        encoder = options.encoder or ("console" if for_people else "json")
        self.processors: Sequence[Processor] = (
            _Level(options.threshold),
            *(() if options.devel else (_Sampler(clock),)),
            _Stamp(TIMES[options.time_encoding or "rfc3339"], wall),
            StackInfoRenderer(additional_ignores=["ctrlruntime.log", "logging"]),
            *(_Guarded(processor) for processor in processors),
            _Exceptions(options.stack_threshold),
            # The last structlog calls is the renderer; a console's depends on the stream of the moment.
            *((_as_json, JSONRenderer(serializer=_dumps)) if encoder == "json" else (_as_text, self._console)),
        )

    def write(self, level: int, name: str, event: str, fields: Mapping[str, object]) -> None:
        """Write one line. Never raises, because logging must not break the program.

        level: zap's level (V(n) is -n).
        fields: the bound fields and those of the line.
        """
        context = dict(fields)
        if "event" in context:
            context["event_"] = context.pop("event")
        if level < DEBUG:
            context["v"] = -level
        try:
            _Line(self.door(name), self.processors, context).write(_METHODS.get(level, "debug"), event)
        except Exception as error:  # noqa: BLE001 - see above
            self._print(f"a line could not be written: {event!r}: {escaped(describe(error))}")

    def door(self, name: object = "", *_: object) -> Door:
        """Return the end of the chain for loggers of this name: structlog's logger factory."""
        return Door(str(name or ""), self._print)

    def _print(self, line: str) -> None:
        # stderr is looked up each time, as it may have been replaced (structlog's loggers keep theirs). One write a line
        # keeps the lines of two threads apart. What cannot be written is nobody's to handle; stderr may be None.
        stream = self._stream or sys.stderr
        with self._lock, contextlib.suppress(OSError, ValueError, AttributeError):
            stream.write(line + "\n")
            stream.flush()

    def _console(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> str:
        render = _COLOURED if _wants_colours(self._stream or sys.stderr) else _PLAIN
        return render(logger, method, event_dict)


class Door:
    """The logger at the end of the chain. It receives finished lines with any method."""

    __slots__ = ("msg", "name")

    def __init__(self, name: str, write: Callable[[str], None]) -> None:
        self.name = name
        self.msg = write

    def __getattr__(self, method: str) -> Callable[[str], None]:
        if method.startswith("_"):
            raise AttributeError(method)
        return self.msg


class _Line(structlog.BoundLoggerBase):
    """Sends one line of this package through the chain."""

    def write(self, method: str, event: str) -> None:
        self._proxy_to_logger(method, event)


_METHODS: Final = {INFO: "info", WARN: "warning", ERROR: "error"}
_NAMES: Final = {"notset": "debug", "warning": "warn", "exception": "error", "critical": "error", "fatal": "error"}


# --- processors ----------------------------------------------------------------------------------------------------


class _Level:
    """Drops lines below the threshold, and sets level and logger name of the others, which fields do not override."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def __call__(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> EventDict:
        level = _NAMES.get(method, method)
        if LOG_LEVELS.get(level, INFO) < self._threshold:
            raise structlog.DropEvent
        name = getattr(logger, "name", "")
        for key in _RESERVED & event_dict.keys():
            event_dict[f"{key}_"] = event_dict.pop(key)
        if name and "logger" in event_dict:
            event_dict["logger_"] = event_dict.pop("logger")
        event_dict["level"] = level
        if name:
            event_dict["logger"] = name
        if method == "exception":
            event_dict.setdefault("exc_info", True)
        return event_dict


_RESERVED: Final = frozenset({"level", "ts", "msg", "stacktrace", "exception", "stack"})


class _Sampler:
    """Drops repeated lines within a second."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._second = -1
        self._counts: dict[tuple[str, str], int] = {}

    def __call__(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> EventDict:
        second = int(self._clock())
        if second != self._second:
            self._second = second
            self._counts.clear()
        key = (event_dict["level"], text(event_dict.get("event")))
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count > SAMPLED_FIRST and (count - SAMPLED_FIRST) % SAMPLED_EVERY:
            raise structlog.DropEvent
        return event_dict


class _Stamp:
    """Adds the time in zap's encodings, which structlog's TimeStamper does not have."""

    def __init__(self, encode: Callable[[int], str | float], wall: Callable[[], int]) -> None:
        self._encode = encode
        self._wall = wall

    def __call__(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> EventDict:
        event_dict["ts"] = self._encode(self._wall())
        return event_dict


class _Guarded:
    """Calls a user's processor.

    If it fails, the line is written without it, with a field that reports this.
    """

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._name = getattr(processor, "__name__", type(processor).__name__)

    def __call__(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> EventDict:
        kept = {"level": event_dict["level"], "ts": event_dict["ts"]}  # the steps below need them
        try:
            changed = self._processor(logger, method, event_dict)
        except structlog.DropEvent:
            raise
        except Exception as error:  # noqa: BLE001 - logging must not break what it tells about
            problem = describe(error)
        else:
            if isinstance(changed, Mapping):
                return {**kept, **changed}
            problem = f"returned {type(changed).__name__}, must return the event_dict"
        return {**kept, **event_dict, "processor_error": f"{self._name}: {problem}"}


class _Exceptions:
    """Writes the exception of a line to `error`; from the stack trace level on, structlog writes its traceback."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold

    def __call__(self, logger: WrappedLogger, method: str, event_dict: EventDict) -> EventDict:
        error = _exception_of(event_dict.pop("exc_info", None))
        if error is None:
            return event_dict
        event_dict.setdefault("error", describe(error))
        if LOG_LEVELS.get(event_dict["level"], INFO) < self._threshold:
            return event_dict
        return dict(format_exc_info(logger, method, {**event_dict, "exc_info": error}))


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


# --- JSON ----------------------------------------------------------------------------------------------------------


def _as_json(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Put zap's keys first and in zap's words, and the values in a form JSON can hold."""
    line: EventDict = {"level": event_dict.pop("level"), "ts": event_dict.pop("ts")}
    if name := event_dict.pop("logger", ""):
        line["logger"] = text(name)
    line["msg"] = text(event_dict.pop("event", ""))
    traceback = event_dict.pop("exception", None)
    for key, value in event_dict.items():
        line[key] = value if type(value) is str else plain(value)
    if traceback is not None:
        line["stacktrace"] = plain(traceback)
    return line


def _dumps(line: object, **_: object) -> str:
    try:
        return msgspec.json.encode(line).decode()
    except (UnicodeEncodeError, OverflowError, TypeError, msgspec.MsgspecError):
        # Half a surrogate pair, as in a file name that is not text: escaped, it can be written.
        return json.dumps(line, default=str, separators=(",", ":"))


# --- console -------------------------------------------------------------------------------------------------------


def _as_text(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """Make each part of the line readable, and the line one line but for its traceback."""
    event_dict["event"] = on_one_line(text(event_dict.get("event", "")))
    event_dict["level"] = text(event_dict["level"]).upper()
    if "logger" in event_dict:
        event_dict["logger"] = on_one_line(text(event_dict["logger"]))
    for key in ("exception", "stack"):  # a user's processor may have made a tree of them
        if (said := event_dict.get(key)) is not None:
            event_dict[key] = escaped(said) if isinstance(said, str) else word(said)
    return event_dict


def _renderer(*, colours: bool) -> ConsoleRenderer:
    def styled(code: str) -> str:
        return f"\033[{code}m" if colours else ""

    reset = styled("0")
    levels = {"DEBUG": styled("32"), "INFO": styled("36"), "WARN": styled("33;1"), "ERROR": styled("31;1")}
    level = LogLevelColumnFormatter(levels, reset)

    def column(style: str, width: int = 0) -> KeyValueColumnFormatter:
        return KeyValueColumnFormatter(None, style, reset, str, width=width)

    return ConsoleRenderer(
        columns=[
            Column("ts", column(styled("2"))),
            Column("level", lambda key, value: level(key, value)[1:-1]),  # without its brackets
            Column("logger", column(styled("34"), _NAME_WIDTH)),
            Column("event", column(styled("1"), _EVENT_WIDTH)),
            Column("", KeyValueColumnFormatter(styled("36"), styled("35"), reset, word)),
        ],
        sort_keys=False,
        exception_formatter=plain_traceback,
    )


_NAME_WIDTH: Final = 14  # "leaderelection"
_EVENT_WIDTH: Final = 30  # as in structlog
_PLAIN: Final = _renderer(colours=False)
_COLOURED: Final = _renderer(colours=True)


def _wants_colours(stream: TextIO) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


# --- time ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def _rfc3339(nanoseconds: int) -> str:
    return f"{_second(nanoseconds // 1_000_000_000)}Z"


def _rfc3339nano(nanoseconds: int) -> str:
    fraction = f"{nanoseconds % 1_000_000_000:09}".rstrip("0")
    return f"{_second(nanoseconds // 1_000_000_000)}{'.' if fraction else ''}{fraction}Z"


def _iso8601(nanoseconds: int) -> str:
    return f"{_second(nanoseconds // 1_000_000_000)}.{nanoseconds % 1_000_000_000 // 1_000_000:03}Z"


TIMES: Final[Mapping[TimeEncoding, Callable[[int], str | float]]] = {
    "epoch": lambda nanoseconds: nanoseconds / 1e9,
    "millis": lambda nanoseconds: nanoseconds / 1e6,
    "nano": lambda nanoseconds: nanoseconds,
    "iso8601": _iso8601,
    "rfc3339": _rfc3339,
    "rfc3339nano": _rfc3339nano,
}
