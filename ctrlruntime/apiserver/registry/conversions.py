"""Built-in kinds served in two versions from one store: HorizontalPodAutoscaler v1 and v2, Event of events.k8s.io and core.

Each entry names the table and the two functions between the served version and the canonical one (v2, core). They change the tree
they are given; the caller reads the result with the Go type, which drops what the version does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ctrlruntime.apiserver.registry.autoscaler_conversion import from_v2, to_v2
from ctrlruntime.schema.trees import Document

Conversion: TypeAlias = tuple[tuple[str, str], Callable[[Document], Document], Callable[[Document], Document]]

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "source": "deprecatedSource",
    "reportingComponent": "reportingController",
}


def _renamed(document: Document, names: Mapping[str, str]) -> Document:
    return {names.get(key, key): value for key, value in document.items()}


def _event_to_core(document: Document) -> Document:
    return _renamed(document, {new: old for old, new in _EVENT_NAMES.items()})


def _event_from_core(document: Document) -> Document:
    return _renamed(document, _EVENT_NAMES)


CONVERSIONS: Mapping[tuple[str, str, str], Conversion] = {
    ("events.k8s.io", "v1", "events"): (("", "events"), _event_to_core, _event_from_core),
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        ("autoscaling", "horizontalpodautoscalers"),
        to_v2,
        from_v2,
    ),
}
