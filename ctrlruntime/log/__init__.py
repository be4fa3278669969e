"""Logging: events with fields, with the flags and meanings of controller-runtime's zap.

    log = get_logger("cache").bind(kind="Pod")
    log.info("synced", objects=3)
    log.v(2).info("rarely of interest")

Without `setup`, lines go to stderr in console form from level info on, and nothing else of the process is touched.
`setup(options)` chooses form and level, once for the process, and brings structlog's own loggers and the standard
library's into the same form.

A controller binds its request with `bound`, so every line below a reconcile carries it, in the reconcile's threads
too. An API object among the fields is written as its apiVersion, kind, namespace and name. structlog is for user code
and for `setup`: its 60 ms of import are not paid for a line of ours.
"""

from ctrlruntime.log.encoding import describe
from ctrlruntime.log.logger import Logger, bind, bound, get_logger, unbind
from ctrlruntime.log.options import Options, add_flags
from ctrlruntime.log.process import setup

__all__ = ["Logger", "Options", "add_flags", "bind", "bound", "describe", "get_logger", "setup", "unbind"]
