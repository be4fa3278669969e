"""What a manager counts, under controller-runtime's names."""

from ctrlruntime.metrics.cache import CacheMetrics
from ctrlruntime.metrics.controller import ControllerMetrics, ReconcileResult
from ctrlruntime.metrics.histogram import Histogram
from ctrlruntime.metrics.leader import LeaderMetrics
from ctrlruntime.metrics.metrics import Metrics
from ctrlruntime.metrics.rest import RestMetrics
from ctrlruntime.metrics.workqueue import QueueMetrics, QueueState

__all__ = [
    "CacheMetrics",
    "ControllerMetrics",
    "Histogram",
    "LeaderMetrics",
    "Metrics",
    "QueueMetrics",
    "QueueState",
    "ReconcileResult",
    "RestMetrics",
]
