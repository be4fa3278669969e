"""HTTP endpoints of an operator: metrics and probes."""

from ctrlruntime.serving.endpoints import health_server, metrics_server
from ctrlruntime.serving.server import Handler, HTTPServer, parse_address

__all__ = ["HTTPServer", "Handler", "health_server", "metrics_server", "parse_address"]
