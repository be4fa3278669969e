"""HTTP endpoints of an operator: metrics and probes."""

from ctrlruntime.serving.endpoints import Ask, asking, health_server, metrics_server
from ctrlruntime.serving.loops import LoopBlockedError, run_on
from ctrlruntime.serving.server import Handler, HTTPServer, parse_address
from ctrlruntime.serving.tls import SecureMetrics

__all__ = [
    "Ask",
    "HTTPServer",
    "Handler",
    "LoopBlockedError",
    "SecureMetrics",
    "asking",
    "health_server",
    "metrics_server",
    "parse_address",
    "run_on",
]
