"""Sets the form of the log, for this package and for the other loggers of the process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from typing_extensions import override

from ctrlruntime.log.options import DEBUG, ERROR, INFO, WARN, Options
from ctrlruntime.log.output import sink

if TYPE_CHECKING:  # structlog is imported by `setup`, not by `import ctrlruntime`
    from structlog.typing import EventDict, Processor, WrappedLogger

    from ctrlruntime.log.chain import Chain


def setup(
    options: Options | None = None, *, stream: TextIO | None = None, processors: Sequence[Processor] = ()
) -> None:
    """Configure logging for the whole process.

    This includes this package, structlog's loggers and those of the standard library.

    Args:
        options: level, format and sampling.
        stream: None is stderr.
        processors: structlog processors, `processor(logger, method, event_dict)`. Each returns the event_dict with its changes, or raises
            `structlog.DropEvent`. They see every line after level, sampling and time (`level`, `ts`, `logger`), and before exceptions
            (`exc_info`) and API objects become text. If a processor fails, the line has a field that reports this.

    May be called again. The standard library's loggers write from info (or from the higher level requested), and from debug at verbosity 2.
    Other handlers of its root logger stay.

    """
    from ctrlruntime.log.chain import Chain

    chain = Chain(options or Options(), stream=stream, processors=processors)
    sink.output = chain
    _adopt_structlog(chain)
    _adopt_logging(chain)


def _adopt_structlog(chain: Chain) -> None:
    """Have structlog's loggers write here; the first argument of `structlog.get_logger` names them."""
    import structlog

    structlog.configure(
        processors=[_merge_context, *chain.processors],
        wrapper_class=structlog.make_filtering_bound_logger(_logging_level(chain.threshold)),
        context_class=dict,
        logger_factory=chain.door,
        # Not cached: a later setup must reach loggers that have written before.
        cache_logger_on_first_use=False,
    )


def _merge_context(_logger: WrappedLogger, _method: str, event_dict: EventDict) -> EventDict:
    """As structlog's merge_contextvars, with the fields in a steady order."""
    from ctrlruntime.log.context import current_fields

    return {**current_fields(), **event_dict}


class _Handler(logging.Handler):
    """Receives the lines of the standard library's loggers."""

    def __init__(self, chain: Chain) -> None:
        from ctrlruntime.log.context import current_fields  # here: while Python shuts down, nothing can be imported

        super().__init__()
        self._chain = chain
        self._current_fields = current_fields

    @override
    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = self._current_fields()
        if record.exc_info:
            fields["exc_info"] = record.exc_info
        try:
            self._chain.write(_level(record.levelno), record.name, record.getMessage(), fields)
        except Exception:  # noqa: BLE001 - as every handler does: a bad format string is reported, not raised
            self.handleError(record)


def _adopt_logging(chain: Chain) -> None:
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Handler):
            root.removeHandler(handler)
    root.addHandler(_Handler(chain))
    # Libraries say at debug what only their authors want to read.
    root.setLevel(_logging_level(INFO if chain.threshold == DEBUG else chain.threshold))


def _level(number: int) -> int:
    """Return zap's level for one of the standard library's."""
    if number >= logging.ERROR:
        return ERROR
    if number >= logging.WARNING:
        return WARN
    return INFO if number >= logging.INFO else DEBUG


def _logging_level(threshold: int) -> int:
    return {INFO: logging.INFO, WARN: logging.WARNING, ERROR: logging.ERROR}.get(threshold, logging.DEBUG)
