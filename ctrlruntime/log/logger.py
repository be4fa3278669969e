"""Loggers, and the fields bound to what runs now."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar, Token
from typing import Literal

from ctrlruntime.log.encoding import Fields
from ctrlruntime.log.options import DEBUG, ERROR, INFO, LOG_LEVELS, WARN
from ctrlruntime.log.output import sink


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
        """Return a logger whose info and debug lines are written from this verbosity on (1 is debug). Raises:
        ValueError below 0.
        """
        if verbosity < 0:
            raise ValueError(f"verbosity {verbosity}: give 0 or more")
        return Logger(self.name, self._fields, self._verbosity + verbosity)

    def is_enabled(self, level: Literal["debug", "info", "warn", "error"] = "info") -> bool:
        """Say whether a line of this level is written; ask before work that is done for the log only."""
        return self._level(LOG_LEVELS[level]) >= sink.output.threshold

    def debug(self, event: str, /, **fields: object) -> None:
        self._write(self._level(DEBUG), event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        self._write(self._level(INFO), event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        self._write(WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Log a failure. With `exc_info=error`, the exception is written, from the stack trace level on with its
        traceback.
        """
        self._write(ERROR, event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """Log a failure with the exception that is being handled."""
        self._write(ERROR, event, {"exc_info": True, **fields})

    def _level(self, level: int) -> int:
        # As in zap, verbosity concerns info and debug; warnings and errors are always of interest.
        return level if level > INFO else min(level, -self._verbosity)

    def _write(self, level: int, event: str, fields: Fields) -> None:
        output = sink.output
        if level >= output.threshold:
            output.write(level, self.name, event, {**bound_fields.get(), **self._fields, **fields})


def get_logger(name: str = "") -> Logger:
    """Return a logger; `name` says which part of the program speaks."""
    return Logger(name)


bound_fields: ContextVar[Fields] = ContextVar("ctrlruntime_log_fields", default={})  # noqa: B039 - never changed, only replaced


def bind(**fields: object) -> Token[Fields]:
    """Add fields to every line of the running context; give the token to `unbind`. See `bound` for the usual way."""
    return bound_fields.set({**bound_fields.get(), **fields})


def unbind(token: Token[Fields]) -> None:
    """Take back what the `bind` that returned the token added."""
    bound_fields.reset(token)


@contextlib.contextmanager
def bound(**fields: object) -> Generator[None]:
    """Add fields to every line logged inside the block, in tasks and threads started there, too."""
    token = bind(**fields)
    try:
        yield
    finally:
        bound_fields.reset(token)
