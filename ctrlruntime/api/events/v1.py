"""The classes of events.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.core.v1 import EventSource, ObjectReference
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import MicroTime, Time

__all__ = [
    "Event",
    "EventSeries",
]


class EventSeries(Model, always_sent=("count",)):
    count: int = 0
    last_observed_time: MicroTime | None = None


class Event(Object, group="events.k8s.io", version="v1", short_names=("ev",)):
    action: str = ""
    deprecated_count: int = 0
    deprecated_first_timestamp: Time | None = None
    deprecated_last_timestamp: Time | None = None
    deprecated_source: EventSource = Field(default_factory=EventSource)
    event_time: MicroTime | None = None
    note: str = ""
    reason: str = ""
    regarding: ObjectReference = Field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    type: str = ""
