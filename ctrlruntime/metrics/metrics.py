"""The metrics of one manager: returns counters, and converts them to samples at a scrape.

Names, labels and buckets are those of controller-runtime, so that its dashboards work. Metrics of caches, which it does not have, start
with `ctrlruntime_cache_`. Counting adds to plain attributes. prometheus_client (50 ms to import) is imported for the first scrape, or for
the first metric of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.metrics.counters import Counters

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class Metrics(Counters):
    """Returns counters by name, always the same ones for the same name.

    Their series then exist with the value zero.

    Without a `registry` it has its own, with the metrics of the process and the interpreter.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__()
        self._registry: CollectorRegistry | None = None
        if registry is not None:
            self._attach(registry)

    @property
    def registry(self) -> CollectorRegistry:
        """The registry of the scrape; register your own metrics with it."""
        if self._registry is None:
            from ctrlruntime.metrics.collector import make_registry

            self._attach(make_registry())
        assert self._registry is not None
        return self._registry

    def _attach(self, registry: CollectorRegistry) -> None:
        from ctrlruntime.metrics.collector import Collector

        registry.register(Collector(self))
        self._registry = registry

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Return the body of a scrape and its content type.

        The Accept header selects the format.

        Safe in any thread.
        """
        from ctrlruntime.metrics.collector import render

        return render(self.registry, accept)
