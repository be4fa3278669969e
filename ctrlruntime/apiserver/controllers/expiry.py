"""Events go after an hour, as upstream's storage lets them go by a lease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import anyio

from ctrlruntime.apiserver.controllers.keyed import Key
from ctrlruntime.apiserver.controllers.objects import Now, key_of, metadata, parse_time
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import NotFound
from ctrlruntime.schema.trees import Document


class EventExpiry:
    """Deletes Events `ttl` seconds after they were written last; looks sixty times in that span, for a timer for each
    Event would cost more than the Event.
    """

    name = "event-ttl"

    def __init__(self, now: Now, *, ttl: float) -> None:
        self._now = now
        self._ttl = ttl

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [self._ticks()]

    async def _ticks(self) -> AsyncIterator[Key]:
        while True:
            await anyio.sleep(self._ttl / 60)
            yield ("all",)

    async def reconcile(self, api: API, key: Key) -> float | None:
        now = self._now()
        for event in api.list("", "events"):
            written = _written(event)
            if written is None or (now - written).total_seconds() < self._ttl:
                continue
            try:
                await api.delete("", "events", *key_of(event), uid=metadata(event)["uid"])
            except NotFound:
                continue
        return None


def _written(event: Document) -> datetime | None:
    """Return the latest moment that the event itself names."""
    times = [
        metadata(event).get("creationTimestamp"),
        event.get("lastTimestamp"),
        (event.get("series") or {}).get("lastObservedTime"),
    ]
    return max((moment for moment in map(parse_time, times) if moment is not None), default=None)
