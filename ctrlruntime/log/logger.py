"""Loggers and bound fields: a typed wrapper of structlog."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from contextvars import Token
from typing import Literal

from ctrlruntime.log.options import DEBUG, ERROR, INFO, LOG_LEVELS, WARN
from ctrlruntime.log.output import sink


class Logger:
    """Writes events: a short constant message and fields.

    Cheap to create; it finds its output when it writes.

    You can also use structlog's own loggers. This one adds names, zap's verbosity and types, and costs less than 1 µs for a line that is
    not written.
    """

    __slots__ = ("_fields", "_verbosity", "name")

    def __init__(self, name: str, fields: Mapping[str, object] | None = None, verbosity: int = 0) -> None:
        self.name = name
        self._fields = fields or {}
        self._verbosity = verbosity

    def bind(self, **fields: object) -> Logger:
        """Return a logger that adds these fields to its lines."""
        return Logger(self.name, {**self._fields, **fields}, self._verbosity)

    def named(self, name: str) -> Logger:
        """Return the logger `<this name>.<name>`."""
        return Logger(f"{self.name}.{name}" if self.name else name, self._fields, self._verbosity)

    def v(self, verbosity: int) -> Logger:
        """Return a logger whose info and debug lines have this verbosity.

        1 is debug. A line is written if the log has at least this verbosity.

        Raises: ValueError below 0.
        """
        if verbosity < 0:
            raise ValueError(f"verbosity {verbosity}: give 0 or more")
        return Logger(self.name, self._fields, self._verbosity + verbosity)

    def is_enabled(self, level: Literal["debug", "info", "warn", "error"] = "info") -> bool:
        """Return whether a line of this level is written.

        Check it before expensive work only for the log.
        """
        return self._level(LOG_LEVELS[level]) >= sink.output.threshold

    def debug(self, event: str, /, **fields: object) -> None:
        self._write(self._level(DEBUG), event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        self._write(self._level(INFO), event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        self._write(WARN, event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Log an error.

        With `exc_info=error` the exception is written, from the stack trace level on with its traceback.
        """
        self._write(ERROR, event, fields)

    def exception(self, event: str, /, **fields: object) -> None:
        """Log an error with the exception that is being handled."""
        self._write(ERROR, event, {"exc_info": True, **fields})

    def _level(self, level: int) -> int:
        # As in zap, verbosity concerns info and debug; warnings and errors are always of interest.
        return level if level > INFO else min(level, -self._verbosity)

    def _write(self, level: int, event: str, fields: Mapping[str, object]) -> None:
        output = sink.output
        if level >= output.threshold:
            from ctrlruntime.log.context import current_fields

            output.write(level, self.name, event, {**current_fields(), **self._fields, **fields})


def get_logger(name: str = "") -> Logger:
    """Return a logger; `name` is the part of the program."""
    return Logger(name)


def bind(**fields: object) -> Sequence[Token[object]]:
    """Add fields to every line of the running context.

    This includes the lines of structlog's own loggers.

    Pass the tokens to `unbind`.

    Usually `bound` is simpler.
    """
    from ctrlruntime.log.context import bind_fields

    return bind_fields(fields)


def unbind(tokens: Sequence[Token[object]]) -> None:
    """Remove the fields of the `bind` that returned these tokens."""
    from ctrlruntime.log.context import reset_fields

    reset_fields(tokens)


@contextlib.contextmanager
def bound(**fields: object) -> Generator[None]:
    """Add fields to every line inside the block.

    This includes the lines of tasks and threads that are started there.
    """
    tokens = bind(**fields)
    try:
        yield
    finally:
        unbind(tokens)
