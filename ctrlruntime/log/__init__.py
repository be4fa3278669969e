"""Logging: structlog, with the flags and meanings of controller-runtime's zap.

    log = get_logger("cache").bind(kind="Pod")
    log.info("synced", objects=3)
    log.v(2).info("rarely of interest")

Every line passes through one chain of structlog processors: ours, those of structlog's loggers and those of the
standard library's. `setup(options)` chooses its form and level, once for the process, and brings the foreign loggers
in. Without it, our lines go to stderr in console form from level info on, and nothing else of the process is touched.

A controller binds its request with `bound`, which keeps the fields in structlog's contextvars: every line below a
reconcile carries them, a plain `structlog.get_logger()`'s too, and in the reconcile's threads. An API object among the
fields is written as its apiVersion, kind, namespace and name.

    setup(Options(), processors=[drop_secrets, structlog.processors.CallsiteParameterAdder()])

adds processors of your own to the chain, see `setup`. structlog is imported with the first line, binding or `setup`.
"""

from ctrlruntime.log.logger import Logger, bind, bound, get_logger, unbind
from ctrlruntime.log.options import Options, add_flags
from ctrlruntime.log.process import setup
from ctrlruntime.log.values import describe

__all__ = ["Logger", "Options", "add_flags", "bind", "bound", "describe", "get_logger", "setup", "unbind"]
