"""How far the cache has come, as the gate of the client asks: it holds back reads until own writes have arrived."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

from ctrlruntime.cache.informer import Informer


class CacheHorizon:
    """See `ctrlruntime.client.gate.Horizon`: what several informers of one group and kind (its versions) have all seen."""

    __slots__ = ("_informers",)

    def __init__(self, informers: list[Informer]) -> None:
        self._informers = informers

    def version(self, namespace: str) -> int:
        if len(self._informers) == 1:  # as good as always, and asked two or three times for each write
            only = self._informers[0]
            return only.version(namespace) if not namespace or only.has_namespace(namespace) else sys.maxsize
        # What no cache holds (any more) is never read from one: there is nothing to wait for.
        holding = [one for one in self._informers if not namespace or one.has_namespace(namespace)]
        return min((informer.version(namespace) for informer in holding), default=sys.maxsize)

    def uid(self, namespace: str, name: str) -> str | None:
        for informer in self._informers:
            entry = informer.store.get(namespace, name)
            if entry is not None:
                return entry.meta.uid
        return None

    def covers(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        return any(informer.covers(namespace, labels) for informer in self._informers)

    def changed(self) -> Coroutine[Any, Any, object]:
        if len(self._informers) == 1:
            return self._informers[0].changed()
        return _first([asyncio.ensure_future(informer.changed()) for informer in self._informers])


async def _first(tasks: list[asyncio.Future[object]]) -> None:
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
