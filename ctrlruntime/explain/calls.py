"""Notes the API calls that reconciles make: in the journal, and as spans."""

from __future__ import annotations

import time
from collections.abc import Callable

from ctrlruntime.client.observers import Call, Ended
from ctrlruntime.journal import Call as Noted
from ctrlruntime.journal import Journal
from ctrlruntime.tracing import Tracing


def call_observer(
    journal: Journal, tracing: Tracing | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[Call], Ended | None]:
    """Return an observer for `CallObservers.add_observer`. A call outside a reconcile gets a span, but no entry in the journal."""

    def begins(call: Call) -> Ended | None:
        if call.origin != "client":
            return None
        actor, what = call.actor, described(call)
        end_span = None if tracing is None else tracing.call(call.verb, what, actor.controller if actor else "")
        if actor is None or actor.request is None:
            return end_span
        controller, request, run = actor.controller, actor.request, actor.reconcile_id
        started, began = journal.now(), clock()

        def ended(error: BaseException | None) -> None:
            outcome = "ok" if error is None else type(error).__name__
            noted = Noted(started=started, seconds=clock() - began, verb=call.verb, what=what, outcome=outcome, run=run)
            journal.called(controller, request, noted)
            if end_span is not None:
                end_span(error)

        return ended

    return begins


def described(call: Call) -> str:
    """Return what a call is about: `deployments.apps/status default/web`."""
    resource = f"{call.resource}.{call.group}" if call.group else call.resource
    if call.subresource:
        resource += f"/{call.subresource}"
    key = f"{call.namespace}/{call.name}" if call.namespace and call.name else call.name or call.namespace
    where = f" of {call.cluster}" if call.cluster else ""
    return f"{resource} {key}{where}".rstrip()
