"""Named finalizers: clean-ups that run, in the order they were registered, before an object may go.

A registry is pure bookkeeping on the object in memory; its result says what has to be written and can write it. It uses the finalizer
functions of `controllerutil` and serves reconcilers.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from ctrlruntime.api import Object
from ctrlruntime.client.interfaces import Client
from ctrlruntime.controllerutil import add_finalizer, contains_finalizer, remove_finalizer

T = TypeVar("T", bound=Object)


Finalizer: TypeAlias = Callable[[T], Awaitable[bool | None] | bool | None]
"""Cleans up for an object that is being deleted; plain or async. It is called again until it does not raise.

It returns True when it changed the object's status, which is then written. What it changed before it raised is written, too: a condition
that says why it failed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizerResult(Generic[T]):
    """What `Finalizers.finalize` did: what has to be written, and which finalizers failed (they stay and are called again)."""

    obj: T
    needs_update: bool = False
    needs_status_update: bool = False
    failures: Mapping[str, Exception]

    async def write(self, client: Client) -> None:
        """Write what has to be written, status first (without finalizers the object may be gone), then raise what failed.

        Both writes are guarded by the version that was read. Raises: Conflict, the one failure, or an ExceptionGroup of several.
        """
        obj = self.obj
        if self.needs_status_update:
            # A write refreshes what it is given: a copy, or the removed finalizer would be back.
            written = await client.status.update(obj.deep_copy())
            obj.metadata.resource_version = written.metadata.resource_version
        if self.needs_update:
            await client.update(obj)
        self.raise_failures()

    def raise_failures(self) -> None:
        """Raise the failure, or an ExceptionGroup of them; do nothing when there is none."""
        failures = list(self.failures.values())
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ExceptionGroup(f"finalizers failed: {', '.join(self.failures)}", failures)


class Finalizers(Generic[T]):
    """The finalizers of one kind, by name (`example.com/name`)."""

    def __init__(self) -> None:
        self._finalizers: dict[str, Finalizer[T]] = {}

    def register(self, name: str, finalizer: Finalizer[T]) -> None:
        """Add a finalizer at the end of the order. Raises: ValueError when the name is taken or has no domain."""
        if "/" not in name:
            raise ValueError(f"the finalizer {name!r} needs a domain: example.com/{name or 'name'}")
        if name in self._finalizers:
            raise ValueError(f"a finalizer {name} is registered already")
        self._finalizers[name] = finalizer

    async def finalize(self, obj: T) -> FinalizerResult[T]:
        """Add the missing finalizers to a live object; on one that is being deleted call and remove those it still has.

        The object is changed in memory only. One that raises stays on the object, and the others run all the same.
        """
        if obj.metadata.deletion_timestamp is None:
            added = [add_finalizer(obj, name) for name in self._finalizers]
            return FinalizerResult(obj=obj, needs_update=any(added), failures={})
        needs_update = needs_status_update = False
        failures: dict[str, Exception] = {}
        for name, finalizer in self._finalizers.items():
            if not contains_finalizer(obj, name):
                continue
            before = obj.to_dict()
            try:
                outcome = finalizer(obj)
                changed_status = await outcome if inspect.isawaitable(outcome) else outcome
            except Exception as error:  # noqa: BLE001 - user code; the other finalizers run all the same
                error.add_note(f"in finalizer {name}")
                failures[name] = error
                after = obj.to_dict()
                needs_status_update = before.pop("status", None) != after.pop("status", None) or needs_status_update
                needs_update = before != after or needs_update
                continue
            remove_finalizer(obj, name)
            needs_update = True
            needs_status_update = needs_status_update or bool(changed_status)
        return FinalizerResult(
            obj=obj, needs_update=needs_update, needs_status_update=needs_status_update, failures=failures
        )
