"""Metrics of a webhook server, with the names of controller-runtime; computed at a scrape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from ctrlruntime.metrics.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

__all__ = ["PathMetrics", "Totals", "make_collector"]

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class PathMetrics:
    """Plain counters of one path, for the event loop of the server."""

    __slots__ = ("codes", "in_flight", "latency", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.codes = {"200": 0, "500": 0}
        """Requests by HTTP status of the response."""
        self.in_flight = 0
        self.latency = Histogram(_BOUNDS)

    def ended(self, status: int, seconds: float) -> None:
        """Count one request."""
        code = str(status)
        self.codes[code] = self.codes.get(code, 0) + 1
        self.latency.observe(seconds)


class Totals(Protocol):
    """The data that the collector reads at a scrape, from another thread."""

    def paths(self) -> list[PathMetrics]: ...

    def panics(self) -> dict[str, int]:
        """Return the panics by kind of endpoint."""
        ...

    def certificate_reads(self) -> tuple[int, int]:
        """Return the number of reads of the certificate, and of failed ones."""
        ...


def make_collector(totals: Totals) -> Collector:
    """Return a collector to register. It imports prometheus_client."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
    from prometheus_client.registry import Collector as Base

    prefix = "controller_runtime_webhook"

    class WebhookCollector(Base):
        def collect(self) -> Iterable[Metric]:
            latency = HistogramMetricFamily(
                f"{prefix}_latency_seconds", "Seconds to respond to a review", labels=("webhook",)
            )
            requests = CounterMetricFamily(
                f"{prefix}_requests_total", "Reviews by HTTP status", labels=("webhook", "code")
            )
            in_flight = GaugeMetricFamily(f"{prefix}_requests_in_flight", "Reviews in progress", labels=("webhook",))
            for path in totals.paths():
                latency.add_metric((path.path,), path.latency.buckets(), path.latency.sum)
                in_flight.add_metric((path.path,), path.in_flight)
                for code, count in sorted(path.codes.items()):
                    requests.add_metric((path.path, code), count)
            panics, (reads, errors) = totals.panics(), totals.certificate_reads()
            yield from (latency, requests, in_flight)
            for name, text, value in (
                (
                    f"{prefix}_panics_total",
                    "Admission handlers that raised an unexpected exception",
                    panics.get("admission", 0),
                ),
                (
                    "controller_runtime_conversion_webhook_panics_total",
                    "Converters that raised an unexpected exception",
                    panics.get("conversion", 0),
                ),
                ("certwatcher_read_certificate_total", "Times the certificate was read", reads),
                ("certwatcher_read_certificate_errors_total", "Times the certificate could not be read", errors),
            ):
                family = CounterMetricFamily(name, text)
                family.add_metric((), value)
                yield family

    return WebhookCollector()
