"""Form and level of the log, and their flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast, get_args

Encoder: TypeAlias = Literal["json", "console"]
TimeEncoding: TypeAlias = Literal["epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"]

# zap's scale: a line is written when its level is at or above the threshold; V(n) is level -n, so V(1) is debug.
DEBUG, INFO, WARN, ERROR, NEVER = -1, 0, 1, 2, 1000
LOG_LEVELS: Final = {"debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR}
_STACK_LEVELS: Final = {"info": INFO, "warn": WARN, "error": ERROR, "panic": NEVER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the log.

    None is the default of the mode: production or, with `devel`, development.

    Raises: ValueError for an invalid value.
    """

    devel: bool = False
    """Development: console form, from debug, tracebacks from warn, no sampling.

    Production: info, error, sampling, and JSON if the stream is not a terminal.
    """

    encoder: Encoder | None = None
    """Default: console in development and on a terminal, else json."""

    log_level: str | int | None = None
    """"debug", "info", "warn", "error", or a verbosity above 0: lines of `v(n)` up to this n are written too."""

    stacktrace_level: str | None = None
    """The lowest level whose exceptions have a traceback: "info", "warn", "error", or "panic" for none."""

    time_encoding: TimeEncoding | None = None
    """Default: rfc3339, as text. The others are numbers: epoch (seconds), millis and nano."""

    def __post_init__(self) -> None:
        for name, parse in (("encoder", parse_encoder), ("time_encoding", parse_time_encoding)):
            if (value := getattr(self, name)) is not None:
                parse(value)
        _ = self.threshold, self.stack_threshold

    @staticmethod
    def from_args(args: argparse.Namespace) -> Options:
        """Return the options for parsed flags (see `add_flags`)."""
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
            return DEBUG if self.devel else INFO
        return _parse_level(self.log_level)

    @property
    def stack_threshold(self) -> int:
        if self.stacktrace_level is None:
            return WARN if self.devel else ERROR
        return _STACK_LEVELS[parse_stacktrace_level(self.stacktrace_level)]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the --zap-… flags to a parser.

    Pass the parsed arguments to `Options.from_args`.
    """
    group = parser.add_argument_group("logging")
    group.add_argument(
        "--zap-devel",
        type=_flag(_parse_bool),
        nargs="?",
        const=True,
        default=False,
        metavar="true|false",
        help="development defaults: console form, level debug, tracebacks from warn on, no sampling; else info, error, sampling",
    )
    group.add_argument(
        "--zap-encoder",
        type=_flag(parse_encoder),
        metavar="json|console",
        help="form of the lines (default: console on a terminal, else json)",
    )
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
    if text in LOG_LEVELS:
        return LOG_LEVELS[text]
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
