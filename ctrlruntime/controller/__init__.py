"""Controllers: take a request from the queue, bind the log, run the reconciler, decide what happens next."""

from ctrlruntime.controller.controller import Controller, Reconcile, Watch
from ctrlruntime.controller.options import ControllerDefaults, ControllerOptions, LogFields, OptionKeywords
from ctrlruntime.controller.reconcilers import as_reconciler
from ctrlruntime.controller.running import ReconcileCancelledError, ReconcilePanicError, ReconcileTimeoutError

__all__ = [
    "Controller",
    "ControllerDefaults",
    "ControllerOptions",
    "LogFields",
    "OptionKeywords",
    "Reconcile",
    "ReconcileCancelledError",
    "ReconcilePanicError",
    "ReconcileTimeoutError",
    "Watch",
    "as_reconciler",
]
