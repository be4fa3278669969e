"""The metrics of a manager, with the names of controller-runtime."""

from ctrlruntime.metrics.cache import CacheMetrics
from ctrlruntime.metrics.client import ClientMetrics
from ctrlruntime.metrics.controller import ControllerMetrics, ReconcileResult
from ctrlruntime.metrics.events import EventMetrics
from ctrlruntime.metrics.histogram import Histogram
from ctrlruntime.metrics.leader import FenceMetrics, LeaderMetrics
from ctrlruntime.metrics.loop import LoopMetrics
from ctrlruntime.metrics.metrics import Metrics
from ctrlruntime.metrics.rest import RestMetrics
from ctrlruntime.metrics.secure import SecureMetrics
from ctrlruntime.metrics.workqueue import QueueMetrics, QueueState

__all__ = [
    "CacheMetrics",
    "ClientMetrics",
    "ControllerMetrics",
    "EventMetrics",
    "FenceMetrics",
    "Histogram",
    "LeaderMetrics",
    "LoopMetrics",
    "Metrics",
    "QueueMetrics",
    "QueueState",
    "ReconcileResult",
    "RestMetrics",
    "SecureMetrics",
]
