"""The manager: starts caches, controllers and servers, elects a leader, and stops them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.lazy import lazy_attributes

if TYPE_CHECKING:
    from ctrlruntime.manager.run import tune_gc
    from ctrlruntime.manager.watchdog import Watchdog
    from ctrlruntime.serving.connections import ServerLimits

__all__ = ["ServerLimits", "Watchdog", "tune_gc"]

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(
        __name__,
        {"ServerLimits": "ctrlruntime.serving.connections", "Watchdog": ".watchdog", "tune_gc": ".run"},
    )
