"""Choosing the form of the log, for ours and for the other loggers of the process."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any, Final, TextIO

from typing_extensions import override

from ctrlruntime.log.logger import bound_fields
from ctrlruntime.log.options import DEBUG, ERROR, INFO, WARN, Options
from ctrlruntime.log.output import Output, sink


def setup(options: Options | None = None, *, stream: TextIO | None = None) -> None:
    """Log in this form from now on, in the whole process: ours, structlog's loggers and the standard library's.

    `stream` None is stderr. May be called again. The standard library's loggers write from info on (or from the higher
    level asked for), and from debug on at verbosity 2. Handlers that others gave its root logger stay.
    """
    sink.output = Output(options or Options(), stream=stream)
    _adopt_structlog()
    _adopt_logging(sink.output.threshold)


def _adopt_structlog() -> None:
    """Have structlog's loggers write here: their lines carry what is bound with us and with structlog's contextvars."""
    import structlog

    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _from_structlog],
        wrapper_class=structlog.make_filtering_bound_logger(_logging_level(sink.output.threshold)),
        context_class=dict,
        logger_factory=structlog.ReturnLoggerFactory(),
        # Not cached: a later setup must reach loggers that have written before.
        cache_logger_on_first_use=False,
    )


def _from_structlog(_logger: object, method: str, event_dict: MutableMapping[str, Any]) -> Mapping[str, Any]:
    import structlog

    level = _STRUCTLOG_LEVELS.get(method, INFO)
    if method == "exception":
        event_dict.setdefault("exc_info", True)
    name = str(event_dict.pop("logger", ""))
    event = str(event_dict.pop("event", ""))
    sink.output.write(level, name, event, {**bound_fields.get(), **event_dict})
    raise structlog.DropEvent


_STRUCTLOG_LEVELS: Final = {
    "debug": DEBUG,
    "info": INFO,
    "warning": WARN,
    "warn": WARN,
    "error": ERROR,
    "exception": ERROR,
    "critical": ERROR,
    "fatal": ERROR,
}


class _Handler(logging.Handler):
    """Takes the lines of the standard library's loggers."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        level = (
            ERROR
            if record.levelno >= logging.ERROR
            else WARN
            if record.levelno >= logging.WARNING
            else INFO
            if record.levelno >= logging.INFO
            else DEBUG
        )
        try:
            fields = {**bound_fields.get(), **({"exc_info": record.exc_info} if record.exc_info else {})}
            sink.output.write(level, record.name, record.getMessage(), fields)
        except Exception:  # noqa: BLE001 - as every handler does: a bad format string is reported, not raised
            self.handleError(record)


def _adopt_logging(threshold: int) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Handler):
            root.removeHandler(handler)
    root.addHandler(_Handler())
    # Libraries say at debug what only their authors want to read.
    root.setLevel(_logging_level(INFO if threshold == DEBUG else threshold))


def _logging_level(threshold: int) -> int:
    return {INFO: logging.INFO, WARN: logging.WARNING, ERROR: logging.ERROR}.get(threshold, logging.DEBUG)
