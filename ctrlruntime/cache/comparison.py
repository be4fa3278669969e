"""Is what a cache shows as new as the server, now? For a process that begins to lead: its caches must show all that the last leader wrote.

The server is asked for one consistent list of metadata, and the informer is waited for until it shows each object of it at that version or a
later one, and none that is gone. It takes a `Collection` and an `Informer` from below and beside it, and hands up when they agree.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import metadata_of
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Entry
from ctrlruntime.rest.collection import Collection

_PAGE: Final = 5000  # objects; a page of metadata is small, and an expired token costs the whole list


class Comparison:
    """What the server had in one scope of a kind, and how much of it the cache shows. `position`: the version of the list."""

    def __init__(self, position: int, versions: dict[tuple[str, str], int]) -> None:
        self.position = position
        self._missing = versions
        self._shown: set[tuple[str, str]] = set()

    async def shown(self, informer: Informer, scope: Scope) -> None:
        """Wait until the informer shows all of it, or has nothing to do with the scope any more."""
        while not (informer.is_stopped or scope not in informer.scopes or self._is_shown(informer, scope)):
            await informer.changed()

    def _is_shown(self, informer: Informer, scope: Scope) -> bool:
        if informer.version(scope.namespace) >= self.position:
            return True
        for key, version in list(self._missing.items()):
            entry = informer.store.get(*key)
            if entry is None or int(entry.meta.resource_version) < version:
                return False
            # Not looked at again: when it is deleted later, that is newer than what was listed.
            del self._missing[key]
            self._shown.add(key)
        return not any(self._is_gone(entry, scope) for entry in informer.store)

    def _is_gone(self, entry: Entry, scope: Scope) -> bool:
        """Whether the cache still shows what the server did not have any more."""
        meta = entry.meta
        if not scope.holds(meta.namespace) or (meta.namespace, meta.name) in self._shown:
            return False
        return int(meta.resource_version) <= self.position


class CatchUp:
    """The comparisons of all kinds that a cache held at one moment. Each kind is waited for by itself, by those who need it."""

    def __init__(self, gvk_of: Callable[[type[Any]], GroupVersionKind]) -> None:
        self._gvk_of = gvk_of
        self._kinds: dict[GroupVersionKind, tuple[asyncio.Task[None], asyncio.Event]] = {}

    def begin(self, gvk: GroupVersionKind, compared: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
        """Compare a kind in a task. `compared` sets the event it is given when the comparison fails for now; its end sets it, too."""
        is_settled = asyncio.Event()
        task = asyncio.create_task(compared(is_settled), name=f"catch up {gvk}")
        task.add_done_callback(lambda _: is_settled.set())
        self._kinds[gvk] = (task, is_settled)

    async def shown(self, kinds: Iterable[type[Any]]) -> None:
        """Wait until these kinds show what the server had, or are given up."""
        wanted = {self._gvk_of(kind) for kind in kinds}
        if tasks := [task for gvk, (task, _) in self._kinds.items() if gvk in wanted]:
            await asyncio.wait(tasks)

    async def shown_if_healthy(self, limit: float) -> None:
        """Wait for all kinds, for `limit` seconds at most, and for none that cannot be compared at once."""
        waits = [asyncio.ensure_future(is_settled.wait()) for _, is_settled in self._kinds.values()]
        try:
            if waits:
                await asyncio.wait(waits, timeout=limit)
        finally:
            for wait in waits:
                wait.cancel()

    def cancel(self) -> None:
        """Give up what is still compared."""
        for task, _ in self._kinds.values():
            task.cancel()


async def compare(collection: Collection) -> Comparison | None:
    """List a collection (of metadata) as it is now; None when its versions are no numbers, so that nothing can be compared.

    Raises: CtrlError.
    """
    versions: dict[tuple[str, str], int] = {}
    position = ""
    async with contextlib.aclosing(collection.pages(_PAGE)) as pages:
        async for page in pages:
            if page.is_first:
                versions.clear()
                position = ""
            position = position or page.resource_version
            for raw in page.items:
                meta = metadata_of(raw)
                if not meta.resource_version.isdecimal():
                    return None
                versions[meta.namespace, meta.name] = int(meta.resource_version)
    return Comparison(int(position), versions) if position.isdecimal() else None
