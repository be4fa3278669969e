"""Controllers: take a request from the queue, run the reconciler, and decide about the next run."""

from ctrlruntime.controller.controller import Reconcile, Watch
from ctrlruntime.controller.options import LogFields, OptionKeywords
from ctrlruntime.controller.reconcilers import as_reconciler
from ctrlruntime.controller.running import ReconcileCancelledError, ReconcilePanicError, ReconcileTimeoutError

__all__ = [
    "LogFields",
    "OptionKeywords",
    "Reconcile",
    "ReconcileCancelledError",
    "ReconcilePanicError",
    "ReconcileTimeoutError",
    "Watch",
    "as_reconciler",
]
