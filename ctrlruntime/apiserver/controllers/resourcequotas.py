"""Counts what the namespaces of ResourceQuotas use (pkg/controller/resourcequota): admission only adds to it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Final

from ctrlruntime.apiserver.admission.plugins.quota_usage import (
    IGNORED,
    Name,
    evaluator_of,
    is_in_scope,
    kinds_of,
    total_usage,
)
from ctrlruntime.apiserver.controllers.keyed import Key, keys_in, keys_of
from ctrlruntime.apiserver.controllers.objects import key_of
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document

_AGAIN: Final = 300.0
"""Seconds after which a quota is counted again although nothing was freed, as upstream does."""


class ResourceQuotas:
    """Keeps the status of ResourceQuotas."""

    name = "resourcequota"

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._quotas: defaultdict[str, dict[Key, Document]] = defaultdict(dict)
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
        if change.type == "DELETED":
            self._quotas[key[0]].pop(key, None)
            if not self._quotas[key[0]]:
                del self._quotas[key[0]]
            return
        self._quotas[key[0]][key] = change.object
        self._is_needed.set()
        if change.old is None or change.old.get("spec") != change.object.get("spec"):
            yield key

    async def _freed(self, api: API) -> AsyncIterator[Key]:
        """Yield the quotas of which something is not used any more. Without quotas the writes are not looked at."""
        await self._is_needed.wait()  # the objects that are there then are counted for the new quota
        async for group, plural, change in api.watch_all(with_present=False):
            for key in keys_in(change, partial(self._freed_by, (group, plural))):
                yield key

    def _freed_by(self, name: Name, change: Change) -> Iterable[Key]:
        quotas = self._quotas.get(change.object["metadata"].get("namespace", ""))
        if quotas and change.type != "ADDED" and name not in IGNORED:
            yield from (key for key, quota in quotas.items() if self._is_freed(quota, name, change))

    def _is_freed(self, quota: Document, name: Name, change: Change) -> bool:
        """Tell whether a quota counts the object otherwise than before (DefaultUpdateFilter in pkg/quota/v1/install/update_filter.go)."""
        evaluator, hard = evaluator_of(name), (quota.get("spec") or {}).get("hard") or {}
        if not any(map(evaluator.counts, hard)):
            return False
        if (
            change.type == "DELETED" or change.old is None
        ):  # not by usage: a Pod whose grace period has passed uses nothing
            return is_in_scope(evaluator, quota, change.object)
        now = self._now()
        old, new = (
            {name: text for name, text in evaluator.usage(document, now).items() if name in hard}
            if is_in_scope(evaluator, quota, document)
            else {}
            for document in (change.old, change.object)
        )
        return old != new


def _is_equal(amounts: Document, others: Document | None) -> bool:
    return (
        others is not None
        and amounts.keys() == others.keys()
        and all(parse(text) == parse(others[name]) for name, text in amounts.items())
    )
