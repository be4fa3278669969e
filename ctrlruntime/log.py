"""Logging: events with fields, through structlog, with the flags and meanings of controller-runtime's zap.

    log = get_logger("cache").bind(kind="Pod")
    log.info("synced", objects=3)
    log.v(2).info("rarely of interest")

Without `setup`, lines go to stderr in console form from level info on, and nothing else of the process is touched. `setup(options)` chooses
form and level, once for the process, and brings structlog's own loggers and the standard library's into the same form.

A controller binds its request with `bound`, so every line below a reconcile carries it, in the reconcile's threads too. An API object
among the fields is written as its apiVersion, kind, namespace and name. structlog (60 ms to import) is loaded for the first line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, cast, get_args

if TYPE_CHECKING:
    import structlog

Fields: TypeAlias = Mapping[str, object]
Encoder: TypeAlias = Literal["json", "console"]
TimeEncoding: TypeAlias = Literal["epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"]

# zap's scale: a line is written when its level is at or above the threshold; V(n) is level -n, so V(1) is debug.
_DEBUG, _INFO, _WARN, _ERROR, _NEVER = -1, 0, 1, 2, 1000
_LOG_LEVELS: Final = {"debug": _DEBUG, "info": _INFO, "warn": _WARN, "error": _ERROR}
_STACK_LEVELS: Final = {"info": _INFO, "warn": _WARN, "error": _ERROR, "panic": _NEVER}
_NAMES: Final = {_INFO: "info", _WARN: "warn", _ERROR: "error"}

SAMPLED_FIRST: Final = 100
"""Equal lines (same level and message) of one second that are all written in production; then every `SAMPLED_EVERY`th."""

SAMPLED_EVERY: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is logged, and in which form. None takes the mode's default: production or, with `devel`, development.

    Raises: ValueError for a value that means nothing.
    """

    devel: bool = False
    """Development: console form, from debug on, tracebacks from warn on, no sampling. Production: JSON, info, error, sampling."""

    encoder: Encoder | None = None

    log_level: str | int | None = None
    """"debug", "info", "warn", "error", or a verbosity above 0: lines of `v(n)` with n up to it are written, too."""

    stacktrace_level: str | None = None
    """The lowest level whose exceptions are written with traceback: "info", "warn", "error", or "panic" for none."""

    time_encoding: TimeEncoding | None = None
    """Default: rfc3339, as text; epoch (seconds), millis and nano are numbers."""

    def __post_init__(self) -> None:
        for name, parse in (("encoder", parse_encoder), ("time_encoding", parse_time_encoding)):
            if (value := getattr(self, name)) is not None:
                parse(value)
        _ = self.threshold, self.stack_threshold

    @staticmethod
    def from_args(args: argparse.Namespace) -> Options:
        """Return the options of parsed flags (see `add_flags`)."""
        return Options(
            devel=args.zap_devel,
            encoder=args.zap_encoder,
            log_level=args.zap_log_level,
            stacktrace_level=args.zap_stacktrace_level,
            time_encoding=args.zap_time_encoding,
        )

    @property
    def threshold(self) -> int:
        """The lowest level that is written, on zap's scale (verbosity n is -n)."""
        if self.log_level is None:
            return _DEBUG if self.devel else _INFO
        return _parse_level(self.log_level)

    @property
    def stack_threshold(self) -> int:
        if self.stacktrace_level is None:
            return _WARN if self.devel else _ERROR
        return _STACK_LEVELS[parse_stacktrace_level(self.stacktrace_level)]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the --zap-… flags to a parser; give what it parses to `Options.from_args`."""
    group = parser.add_argument_group("logging")
    group.add_argument(
        "--zap-devel",
        type=_flag(_parse_bool),
        nargs="?",
        const=True,
        default=False,
        metavar="true|false",
        help="development defaults: console form, level debug, tracebacks from warn on, no sampling; else JSON, info, error, sampling",
    )
    group.add_argument("--zap-encoder", type=_flag(parse_encoder), metavar="json|console", help="form of the lines")
    group.add_argument(
        "--zap-log-level",
        type=_flag(_checked_level),
        metavar="LEVEL",
        help="debug, info, warn, error, or an integer > 0 for more verbosity than debug",
    )
    group.add_argument(
        "--zap-stacktrace-level",
        type=_flag(parse_stacktrace_level),
        metavar="info|warn|error|panic",
        help="level at and above which exceptions are written with traceback (panic: never)",
    )
    group.add_argument(
        "--zap-time-encoding",
        type=_flag(parse_time_encoding),
        metavar="FORMAT",
        help=f"{', '.join(get_args(TimeEncoding))} (default rfc3339)",
    )


def parse_encoder(text: str) -> Encoder:
    return cast("Encoder", _one_of("encoder", text, get_args(Encoder)))


def parse_time_encoding(text: str) -> TimeEncoding:
    return cast("TimeEncoding", _one_of("time encoding", text, get_args(TimeEncoding)))


def parse_stacktrace_level(text: str) -> str:
    return _one_of("stacktrace level", text, tuple(_STACK_LEVELS))


def _one_of(what: str, text: str, choices: Sequence[str]) -> str:
    if text.lower() not in choices:
        raise ValueError(f"{what} {text!r} is not known: give one of {', '.join(choices)}")
    return text.lower()


def _parse_level(level: str | int) -> int:
    text = str(level).strip().lower()
    if text in _LOG_LEVELS:
        return _LOG_LEVELS[text]
    if text.isdecimal() and 0 < int(text) <= 127:
        return -int(text)
    raise ValueError(
        f"log level {level!r} is not known: give debug, info, warn, error, or an integer from 1 to 127 (a verbosity)"
    )


def _checked_level(text: str) -> str:
    _parse_level(text)
    return text


def _parse_bool(text: str) -> bool:
    if text.lower() in {"true", "t", "1"}:
        return True
    if text.lower() in {"false", "f", "0"}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def _flag(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Have argparse print the message of a ValueError instead of its own, which says nothing."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


# --- loggers -------------------------------------------------------------------------------------------------------


class Logger:
    """Writes events: a short constant message and fields. Cheap to make; it finds its output when it writes."""

    __slots__ = ("_fields", "_verbosity", "name")

    def __init__(self, name: str, fields: Fields | None = None, verbosity: int = 0) -> None:
        self.name = name
        self._fields = fields or {}
        self._verbosity = verbosity

    def bind(self, **fields: object) -> Logger:
        """Return a logger whose lines carry these fields, too."""
        return Logger(self.name, {**self._fields, **fields}, self._verbosity)

    def named(self, name: str) -> Logger:
        """Return the logger `<this name>.<name>`."""
        return Logger(f"{self.name}.{name}" if self.name else name, self._fields, self._verbosity)

    def v(self, verbosity: int) -> Logger:
        """Return a logger whose info and debug lines are written from this verbosity on (1 is debug). Raises: ValueError below 0."""
        if verbosity < 0:
            raise ValueError(f"verbosity {verbosity}: give 0 or more")
        return Logger(self.name, self._fields, self._verbosity + verbosity)

    def is_enabled(self, level: Literal["debug", "info", "warn", "error"] = "info") -> bool:
        """Say whether a line of this level is written; ask before work that is done for the log only."""
        return self._level(_LOG_LEVELS[level]) >= _output.threshold

    def debug(self, event: str, /, **fields: object) -> None:
        self._write(self._level(_DEBUG), event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        self._write(self._level(_INFO), event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        self._write(_WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Log a failure. With `exc_info=error`, the exception is written, from the stack trace level on with its traceback."""
        self._write(_ERROR, event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """Log a failure with the exception that is being handled."""
        self._write(_ERROR, event, {"exc_info": True, **fields})

    def _level(self, level: int) -> int:
        # As in zap, verbosity concerns info and debug; warnings and errors are always of interest.
        return level if level > _INFO else min(level, -self._verbosity)

    def _write(self, level: int, event: str, fields: Fields) -> None:
        output = _output
        if level >= output.threshold:
            output.write(level, self.name, event, {**self._fields, **fields})


def get_logger(name: str = "") -> Logger:
    """Return a logger; `name` says which part of the program speaks."""
    return Logger(name)


_bound: ContextVar[Fields] = ContextVar("ctrlruntime_log_fields", default={})  # noqa: B039 - never changed, only replaced


def bind(**fields: object) -> Token[Fields]:
    """Add fields to every line of the running context; give the token to `unbind`. See `bound` for the usual way."""
    return _bound.set({**_bound.get(), **fields})


def unbind(token: Token[Fields]) -> None:
    """Take back what the `bind` that returned the token added."""
    _bound.reset(token)


@contextlib.contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Add fields to every line logged inside the block, in tasks and threads started there, too."""
    token = bind(**fields)
    try:
        yield
    finally:
        _bound.reset(token)


def describe(error: BaseException) -> str:
    """Return an exception in one line, as a user wants to read it: type and message, and of what it was caused."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    cause = error.__cause__
    return text if cause is None or str(cause) in text else f"{text} (caused by {type(cause).__name__}: {cause})"


# --- output --------------------------------------------------------------------------------------------------------


def setup(options: Options | None = None, *, stream: TextIO | None = None) -> None:
    """Log in this form from now on, in the whole process: ours, structlog's loggers and the standard library's.

    `stream` None is stderr. May be called again. structlog's loggers that have written already may keep their old form.
    """
    global _output
    _output = _Output(options or Options(), stream)
    _output.adopt_structlog()
    _adopt_stdlib()


class _Output:
    """The one place lines go to."""

    def __init__(
        self,
        options: Options,
        stream: TextIO | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self.threshold = options.threshold
        self._stack_threshold = options.stack_threshold
        self._stream = stream
        self._encoder: Encoder = options.encoder or ("console" if options.devel else "json")
        self._time = _TIMES[options.time_encoding or "rfc3339"]
        self._sampler = None if options.devel else _Sampler(clock)
        self._wall = wall
        self._logger: structlog.BoundLoggerBase | None = None
        self._lock = threading.Lock()

    def write(self, level: int, name: str, event: str, fields: Fields) -> None:
        if self._sampler is not None and not self._sampler.lets_pass(level, event):
            return
        if self._logger is None:
            self._logger = self._make_logger()
        self._logger._proxy_to_logger("write", event, **{_LEVEL: level, _NAME: name, _FIELDS: fields})  # noqa: SLF001 - structlog documents it for wrappers like this one

    def _make_logger(self) -> structlog.BoundLoggerBase:
        import structlog

        processors = [self._merge, self._encode_json if self._encoder == "json" else self._encode_console]
        return structlog.BoundLoggerBase(self, processors, {})

    # What the processors below hand over ends here (structlog calls the method by the name given to _proxy_to_logger).

    def emit(self, line: str) -> None:
        # stderr is looked up each time: it may have been replaced since. One write a line keeps the lines of two threads apart.
        stream = self._stream or sys.stderr
        with self._lock, contextlib.suppress(ValueError, OSError):
            stream.write(line + "\n")
            stream.flush()
