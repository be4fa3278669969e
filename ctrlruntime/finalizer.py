"""Named finalizers: cleanup functions that run, in order of registration, before Kubernetes deletes an object."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

from ctrlruntime.api import Object
from ctrlruntime.client.interfaces import Client
from ctrlruntime.controllerutil import add_finalizer, contains_finalizer, remove_finalizer
from ctrlruntime.errors import CtrlError, RequeueAfter
from ctrlruntime.reconcile import is_terminal

T = TypeVar("T", bound=Object)


Finalizer: TypeAlias = Callable[[T], Awaitable[bool | None] | bool | None]
"""Cleans up for an object that is being deleted.

Plain or async. It is retried until it does not raise. If it has to wait, for a backup Job for example, it raises `RequeueAfter`, which is not
logged as an error.

Return True if you changed the object's status, which is then written. Changes before an exception are written too, such as a condition with
the cause.
"""


class Finalizers(Generic[T]):
    """The finalizers of one kind, by name (`example.com/name`).

    Raises: as `register`.
    """

    def __init__(self, finalizers: Mapping[str, Finalizer[T]] | None = None) -> None:
        self._finalizers: dict[str, Finalizer[T]] = {}
        for name, finalizer in (finalizers or {}).items():
            self.register(name, finalizer)

    def register(self, name: str, finalizer: Finalizer[T]) -> None:
        """Register a finalizer, after the others.

        Raises: ValueError if the name is in use or has no domain.
        """
        if "/" not in name:
            raise ValueError(f"cannot use the finalizer {name!r}: it has no domain. Write example.com/{name or 'name'}")
        if name in self._finalizers:
            raise ValueError(f"a finalizer {name} is registered already")
        self._finalizers[name] = finalizer

    async def reconcile(self, client: Client, obj: T) -> None:
        """Add missing finalizers to `obj`, or run them if it is being deleted.

        The result is written.

        If a finalizer raises, it stays on the object, and the others still run. The status is written first, because the object may no
        longer exist after its last finalizer. Both writes detect conflicts.

        Raises:
            Conflict: The object changed since it was read.
            Exception: The error of the finalizer that failed, or an ExceptionGroup of several. It is terminal only if no other finalizer
                has to be retried.
            RequeueAfter: No finalizer failed, but some wait. It has the shortest of their times, and all reasons.

        """
        if obj.metadata.deletion_timestamp is None:
            added = [add_finalizer(obj, name) for name in self._finalizers]
            if any(added):
                await client.update(obj)
            return
        needs_update = needs_status_update = False
        failures: dict[str, Exception] = {}
        waits: dict[str, RequeueAfter] = {}
        for name, finalizer in self._finalizers.items():
            if not contains_finalizer(obj, name):
                continue
            before = obj.to_dict()
            try:
                outcome = finalizer(obj)
                changed_status = await outcome if inspect.isawaitable(outcome) else outcome
            except Exception as error:  # noqa: BLE001 - user code; the other finalizers run all the same
                if isinstance(error, RequeueAfter):
                    waits[name] = error
                else:
                    error.add_note(f"in finalizer {name}")
                    failures[name] = error
                after = obj.to_dict()
                needs_status_update = before.pop("status", None) != after.pop("status", None) or needs_status_update
                needs_update = before != after or needs_update
                continue
            remove_finalizer(obj, name)
            needs_update = True
            needs_status_update = needs_status_update or bool(changed_status)
        if needs_status_update:
            # A write refreshes what it is given: a copy, or the removed finalizer would be back.
            written = await client.status.update(obj.deep_copy())
            obj.metadata.resource_version = written.metadata.resource_version
        if needs_update:
            await client.update(obj)
        _raise(failures, waits)


def _raise(failures: dict[str, Exception], waits: dict[str, RequeueAfter]) -> None:
    """Raise what the failures and the waits of finalizers, by name, mean together."""
    terminal = {name: error for name, error in failures.items() if is_terminal(error)}
    retried = {name: error for name, error in failures.items() if name not in terminal}
    if terminal and (retried or waits):
        # A terminal error would end the retries of the other finalizers, so only its text is passed on.
        texts = "; ".join(f"finalizer {name}: {error}" for name, error in (terminal | waits).items())
        if not retried:
            raise CtrlError(f"{texts}. Retried for {', '.join(waits)}")
        raise ExceptionGroup(f"finalizers failed: {', '.join(retried)}; also {texts}", list(retried.values()))
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise ExceptionGroup(f"finalizers failed: {', '.join(failures)}", list(failures.values()))
    if waits:
        reasons = [f"finalizer {name}: {error}" for name, error in waits.items()]
        raise RequeueAfter(min(error.seconds for error in waits.values()), "; ".join(reasons))
