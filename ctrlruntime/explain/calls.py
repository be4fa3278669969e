"""Records the API calls of reconciles in the journal, and as spans."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from ctrlruntime.client.observers import Call, Ended
from ctrlruntime.client.unchanged import LeftOut
from ctrlruntime.journal import Call as Noted
from ctrlruntime.journal import Journal
from ctrlruntime.rest.fence import current_actor
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


def left_out_observer(journal: Journal, cluster: str = "") -> Callable[[LeftOut], None]:
    """Return an observer for `CallObservers.add_left_out_observer`.

    The journal has a skipped write among the calls of its reconcile.
    """

    def left_out(write: LeftOut) -> None:
        actor = current_actor()
        if actor is None or actor.request is None:
            return
        now = journal.now()
        ends = datetime.fromtimestamp(now + write.seconds, UTC)
        outcome = f"not sent: the server changed nothing the last time; sent again from {ends:%H:%M:%S} UTC on"
        kind = f"{write.kind.kind}.{write.kind.group}" if write.kind.group else write.kind.kind
        what = _placed(kind, write.namespace, write.name, cluster)
        noted = Noted(started=now, seconds=0.0, verb=write.verb, what=what, outcome=outcome, run=actor.reconcile_id)
        journal.called(actor.controller, actor.request, noted)

    return left_out


def described(call: Call) -> str:
    """Return the target of a call: `deployments.apps/status default/web`."""
    resource = f"{call.resource}.{call.group}" if call.group else call.resource
    if call.subresource:
        resource += f"/{call.subresource}"
    return _placed(resource, call.namespace, call.name, call.cluster)


def _placed(what: str, namespace: str, name: str, cluster: str) -> str:
    key = f"{namespace}/{name}" if namespace and name else name or namespace
    where = f" of {cluster}" if cluster else ""
    return f"{what} {key}{where}".rstrip()
