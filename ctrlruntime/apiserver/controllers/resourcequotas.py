"""Counts what the namespaces of ResourceQuotas use (pkg/controller/resourcequota): admission only adds to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final

from ctrlruntime.apiserver.admission.plugins.quota_usage import IGNORED, Name, evaluator_of, kinds_of, total_usage
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import key_of
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.quantity import parse
from ctrlruntime.schema.trees import Document

_AGAIN: Final = 300.0
"""Seconds after which a quota is counted again although nothing was freed, as upstream does."""


class ResourceQuotas:
    """Keeps the status of ResourceQuotas."""

    name = "resourcequota"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._quotas: dict[str, set[Key]] = {}
        """By namespace."""
        self._is_needed = asyncio.Event()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch("", "resourcequotas"), self._changed), self._freed(api)]

    async def reconcile(self, api: API, key: Key) -> float | None:
        quota = api.get("", "resourcequotas", *key)
        if quota is None:
            return None
        hard: Document = (quota.get("spec") or {}).get("hard") or {}
        status: Document = quota.get("status") or {}
        kinds = kinds_of(hard, api.resources())
        counted = total_usage(quota, kinds, lambda name: api.list(*name, key[0]), self._now())
        used = {name: text for name, text in {**(status.get("used") or {}), **counted}.items() if name in hard}
        if not _is_equal(hard, status.get("hard")) or not _is_equal(used, status.get("used")):
            await api.update(
                "", "resourcequotas", {**quota, "status": {"hard": hard, "used": used}}, subresource="status"
            )
        return _AGAIN

    def _changed(self, change: Change) -> Iterable[Key]:
        key = key_of(change.object)
        keys = self._quotas.setdefault(key[0], set())
        if change.type == "DELETED":
            keys.discard(key)
            return
        keys.add(key)
        self._is_needed.set()
        if change.old is None or change.old.get("spec") != change.object.get("spec"):
            yield key

    async def _freed(self, api: API) -> AsyncIterator[Key]:
        """Yield the quotas of which something is not used any more. Without quotas the writes are not looked at."""
        await self._is_needed.wait()
        async for group, plural, change in api.watch_all():
            quotas = self._quotas.get(change.object["metadata"].get("namespace", ""))
            if quotas and change.type != "ADDED" and self._is_freeing((group, plural), change):
                for key in quotas:
                    yield key

    def _is_freeing(self, name: Name, change: Change) -> bool:
        if change.type == "DELETED" or name in IGNORED or change.old is None:
            return name not in IGNORED
        usage, now = evaluator_of(name).usage, self._now()
        return usage(change.old, now) != usage(change.object, now)


def _is_equal(amounts: Document, others: Document | None) -> bool:
    return (
        others is not None
        and amounts.keys() == others.keys()
        and all(parse(text) == parse(others[name]) for name, text in amounts.items())
    )
