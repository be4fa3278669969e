"""Logging: structlog, with the flags of controller-runtime's zap.

    log = get_logger("cache").bind(kind="Pod")
    log.info("synced", objects=3)
    log.v(2).info("rarely of interest")

Every line passes through one chain of structlog processors: lines of this package, of structlog's loggers and of the standard library's
loggers. `setup(options)` sets its form and level once for the process, and connects the other loggers. Without it, lines of this package go
to stderr in console form from level info, and other loggers do not change.

A controller binds its request with `bound`, which stores the fields in structlog's contextvars. Every line during a reconcile has them,
including those of a plain `structlog.get_logger()` and of the reconcile's threads. An API object in a field is written as its apiVersion,
kind, namespace and name.

    setup(Options(), processors=[drop_secrets, structlog.processors.CallsiteParameterAdder()])

adds your own processors to the chain, see `setup`. structlog is imported with the first line, binding or `setup`.
"""

from ctrlruntime.log.logger import Logger, bind, bound, get_logger, unbind
from ctrlruntime.log.options import Options, add_flags
from ctrlruntime.log.process import setup
from ctrlruntime.log.values import describe

__all__ = ["Logger", "Options", "add_flags", "bind", "bound", "describe", "get_logger", "setup", "unbind"]
