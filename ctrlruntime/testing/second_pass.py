"""Checks that reconcilers are idempotent: a second pass over the same objects writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctrlruntime.client.observers import Call
    from ctrlruntime.controller.controller import Controller
    from ctrlruntime.journal import Run
    from ctrlruntime.manager.manager import Manager

__all__ = ["second_pass"]

_READS = frozenset({"get", "list", "watch"})
_FAILED = frozenset({"error", "timeout"})  # a terminal error is a result


async def second_pass(manager: Manager, *, timeout: float = 60.0) -> list[str]:
    """Reconcile each object again, and return the writes of these reconciles.

    Call it after the reconcilers reached their result. An idempotent reconciler returns an empty list:

        assert await second_pass(mgr) == []

    A write is a line such as "update deployments shop/web" or "patch websites/status shop/web". The helper enqueues each request that the
    controllers of the manager reconciled before, and waits until their queues have no ready request. Requests that wait for
    `requeue_after` are reconciled too. A terminal error is a result, other errors are not.

    Args:
        manager: A manager that runs on this event loop.
        timeout: Seconds until the reconciles must have ended.

    Raises: AssertionError if a reconcile fails or does not end in time, or if no request was reconciled before.

    """
    from ctrlruntime.client.observers import witnesses  # pytest loads this package for its plugin in every run

    controllers: list[Controller[Any]] = list(manager._controllers)  # noqa: SLF001 - of this package
    writes: list[str] = []
    names = {controller.name for controller in controllers}

    def note(call: Call) -> None:
        if call.verb not in _READS and call.actor is not None and call.actor.controller in names:
            resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
            writes.append(f"{call.verb} {resource} {'/'.join(part for part in (call.namespace, call.name) if part)}")

    try:
        async with asyncio.timeout(timeout):
            await _wait_idle(controllers)
            requests = {each.name: manager.journal.keys(each.name) for each in controllers}
            if not any(requests.values()):
                raise AssertionError("no request was reconciled. Create an object, and wait for the result first")
            witnesses.append(note)
            try:
                for controller in controllers:
                    for request in requests[controller.name]:
                        controller.queue.add(request)
                await _wait_idle(controllers)
            finally:
                witnesses.remove(note)
    except TimeoutError as error:
        busy = ", ".join(f"{each.name}: {each.queue.overview(5)}" for each in controllers)
        raise AssertionError(f"the reconciles did not end within {timeout:g} s; {busy}") from error
    failed = [
        f"{name} {request}: {run.error}" for name, request, run in _last_runs(manager, names) if run.outcome in _FAILED
    ]
    if failed:
        raise AssertionError(f"reconciles of the second pass failed: {'; '.join(failed)}")
    return writes


async def _wait_idle(controllers: list[Controller[Any]]) -> None:
    """Wait until no controller has a request that is ready or in work."""
    while busy := [each for each in controllers if (state := each.queue.overview(1)).ready or state.in_work]:
        await busy[0].queue.wait_idle()


def _last_runs(manager: Manager, names: Collection[str]) -> Iterator[tuple[str, Hashable, Run]]:
    for name, request, runs in manager.journal.latest():
        if name in names:
            yield name, request, runs[-1]
