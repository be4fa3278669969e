"""One manager's metrics: counters are handed out from here, and turned into samples when somebody scrapes.

Names, labels and buckets are controller-runtime's, so its dashboards carry over; caches, which it does not measure,
stand under `ctrlruntime_cache_`. Counting is adding to plain attributes: prometheus_client (50 ms to import) is loaded
for the first scrape or the first metric of your own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ctrlruntime.metrics.counters import Counters

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


class Metrics(Counters):
    """Hands out counters by name, always the same ones for the same name; their series exist, at zero, from then on.

    Without a `registry` of yours it has one of its own, with the process's and the interpreter's metrics in it.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock=clock)
        self._registry: CollectorRegistry | None = None
        if registry is not None:
            self._attach(registry)

    @property
    def registry(self) -> CollectorRegistry:
        """The registry that is scraped; register metrics of your own with it."""
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
        """Return the body of a scrape and its content type, in the format an Accept header asks for. Safe in any
        thread.
        """
        from ctrlruntime.metrics.collector import render

        return render(self.registry, accept)
