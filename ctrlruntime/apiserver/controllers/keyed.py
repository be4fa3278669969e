"""The loop that every simulated controller runs in: watches give keys, each key is reconciled by one worker at a
time.

Keys are deduplicated while they wait. A failed reconcile is retried with a growing delay; no failure ends the
controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeAlias

import anyio

from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import AlreadyExists, Conflict, CtrlError, Forbidden, NotFound
from ctrlruntime.log import get_logger

Key: TypeAlias = tuple[str, ...]

_FIRST_DELAY: Final = 0.01
_LONGEST_DELAY: Final = 30.0
_log = get_logger("apiserver")


class Reconciler(Protocol):
    """What a controller does: `feeds` yield the keys to look at, `reconcile` looks at one."""

    name: str

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]: ...

    async def reconcile(self, api: API, key: Key) -> float | None:
        """Bring one object nearer to what it should be; return seconds after which to look again, or None."""
        ...


async def keys_of(changes: AsyncIterator[Change], keys: Callable[[Change], Iterable[Key]]) -> AsyncIterator[Key]:
    """Yield the keys that each change concerns; an object that cannot be mapped is logged and passed over."""
    async for change in changes:
        for key in keys_in(change, keys):
            yield key


def keys_in(change: Change, keys: Callable[[Change], Iterable[Key]]) -> list[Key]:
    """Return the keys that one change concerns, as `keys_of` does."""
    try:
        return list(keys(change))
    except Exception:  # noqa: BLE001 - one odd object must not end the watch
        _log.exception("cannot decode change", name=change.object.get("metadata", {}).get("name"))
        return []


class KeyedController:
    """Runs a Reconciler until cancelled."""

    def __init__(self, reconciler: Reconciler, *, workers: int = 8) -> None:
        self.name = reconciler.name
        self._reconciler = reconciler
        self._workers = workers
        self._queue = _KeyQueue()

    async def run(self, api: API) -> None:
        async with anyio.create_task_group() as tasks:
            for feed in self._reconciler.feeds(api):
                tasks.start_soon(self._follow, feed)
            for _ in range(self._workers):
                tasks.start_soon(self._work, api)

    async def _follow(self, feed: AsyncIterator[Key]) -> None:
        async for key in feed:
            self._queue.add(key)

    async def _work(self, api: API) -> None:
        while True:
            key = await self._queue.take()
            try:
                after = await self._reconciler.reconcile(api, key)
            except Exception as error:  # noqa: BLE001 - no failure ends a controller
                delay = self._queue.retry(key)
                self._report(key, error, delay)
            else:
                self._queue.finish(key, after)
            # Yield between keys: a reconcile that finds nothing to do never suspends.
            await asyncio.sleep(0)

    def _report(self, key: Key, error: Exception, delay: float) -> None:
        log = _log.bind(controller=self.name, key="/".join(key), retryAfter=delay)
        match error:
            case Conflict() | NotFound() | AlreadyExists() | Forbidden():
                # Forbidden: nothing may be created in a namespace that is going; its Pods go with it.
                log.debug("reconcile conflicted, retrying", error=str(error))
            case CtrlError():
                log.warning("reconcile failed", error=str(error))
            case _:
                log.error("reconcile failed", exc_info=error)


class _KeyQueue:
    """Keys that wait, keys in work, and the delays of those that failed."""

    def __init__(self) -> None:
        self._waiting: dict[Key, None] = {}
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def add(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._active:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._wake.set()

    async def take(self) -> Key:
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._active.add(key)
        return key

    def finish(self, key: Key, after: float | None) -> None:
        self._failures.pop(key, None)
        self._release(key, after)

    def retry(self, key: Key) -> float:
        """Put a failed key back after its next delay, and return that delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(_FIRST_DELAY * float(2 ** min(failures, 20)), _LONGEST_DELAY)
        self._again.discard(key)
        self._release(key, delay)
        return delay

    def _release(self, key: Key, after: float | None) -> None:
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)
        elif after is not None:
            self._timers[key] = asyncio.get_running_loop().call_later(after, self._due, key)

    def _due(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)
