"""The whole store: tables by resource and the one revision counter all of them share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from ctrlruntime.apiserver.interfaces import Change, EventType
from ctrlruntime.apiserver.storage.table import Event, Key, Record, Table

__all__ = ["Backing", "Key", "Record", "Store"]


class Backing(Protocol):
    """Where writes outlive the process."""

    @property
    def failure(self) -> Exception | None:
        """Why the last write did not get there."""
        ...

    def note(self, name: tuple[str, str, str, str], revision: int, body: bytes | None) -> None:
        """Take (group, plural, namespace, name), the revision, and the new bytes; None: the object is gone."""
        ...

    async def committed(self) -> None:
        """Return when everything noted so far is there. Raises: OSError."""
        ...


class Store:
    """Tables and the counter. The counter starts at the clock's milliseconds, so versions of an earlier run are never in the future."""

    def __init__(self, *, history: int = 10_000, now: Callable[[], float] = time.time) -> None:
        self.revision = int(now() * 1000)
        self._oldest = self.revision
        """Before it nothing can be read, of tables that were never dropped."""
        self._dropped: dict[tuple[str, str], int] = {}
        self._history = history
        self._tables: dict[tuple[str, str], Table] = {}
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self.backing: Backing | None = None
        """The data file, if the server has one."""

    def table(self, group: str, plural: str) -> Table:
        """Return the table of a resource, made on first use."""
        table = self._tables.get((group, plural))
        if table is None:
            known = max(self._oldest, self._dropped.get((group, plural), 0))  # from there on it had nothing
            table = Table(group, plural, history=self._history, revision=known)
            self._tables[group, plural] = table
        return table

    def tables(self) -> list[Table]:
        return list(self._tables.values())

    def drop(self, table: Table) -> None:
        """Forget a resource and end its watches."""
        table.close_subscriptions()
        self._tables.pop((table.group, table.plural), None)
        self._dropped[table.group, table.plural] = self.revision

    def next_revision(self) -> int:
        self.revision += 1
        return self.revision

    def commit(self, table: Table, type: EventType, record: Record, old: Record | None, change: Change | None) -> None:
        table.write(Event(type, record, old, record.revision), change)
        if self.backing is not None:
            self.backing.note(
                (table.group, table.plural, *record.key), record.revision, None if type == "DELETED" else record.body
            )
        if self._waiting:
            self._wake()

    def forget_history(self) -> None:
        self._oldest = self.revision
        for table in self._tables.values():
            table.forget_history(self.revision)

    async def wait_for(self, revision: int, timeout: float) -> bool:
        """Wait until the counter has reached `revision`; tell whether it did within `timeout` seconds."""
        if revision <= self.revision:
            return True
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (revision, reached)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(timeout):
                await reached
        except TimeoutError:
            return False
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
        return True

    def _wake(self) -> None:
        for revision, reached in self._waiting:
            if revision <= self.revision and not reached.done():
                reached.set_result(None)
