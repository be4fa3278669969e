"""The classes of events.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.events.v1 import Event, EventSeries

__all__ = [
    "Event",
    "EventSeries",
]
