"""Controllers: take a request from the queue, bind the log, run the reconciler, decide what happens next."""

from ctrlruntime.controller.controller import Controller, Reconcile, Watch
from ctrlruntime.controller.options import ControllerOptions, LogFields, OptionKeywords
from ctrlruntime.controller.running import ReconcileCancelledError, ReconcileTimeoutError

__all__ = [
    "Controller",
    "ControllerOptions",
    "LogFields",
    "OptionKeywords",
    "Reconcile",
    "ReconcileCancelledError",
    "ReconcileTimeoutError",
    "Watch",
]
