"""Converts the records of queues and the journal to facts.

Pure functions; times are as in `facts`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from ctrlruntime import journal as record
from ctrlruntime.cache.scope import Scope
from ctrlruntime.changes import changed_paths
from ctrlruntime.explain import facts
from ctrlruntime.explain.loops import WriteLoop
from ctrlruntime.reconcile import Request
from ctrlruntime.workqueue import Pending

_EARLY: Final = 0.05  # seconds a timer may fire before its time


def queued_of(pending: Pending[Any]) -> facts.Queued:
    state: Any = "in work"
    seconds = pending.in_work or 0.0
    if pending.in_work is not None and pending.ready_in is not None:
        state = "in work, and again"
    elif pending.ready_in is not None:
        state, seconds = ("waiting", pending.ready_in) if pending.ready_in > 0 else ("ready", -pending.ready_in)
    return facts.Queued(
        request=str(pending.key),
        state=state,
        seconds=seconds,
        priority=pending.priority,
        attempts=pending.attempts,
        triggers=triggers_of(pending.triggers),
        omitted=pending.omitted,
    )


def reason_of(pending: Pending[Any], history: record.History) -> str:
    if pending.triggers:
        return "; ".join(str(trigger) for trigger in pending.triggers[:3])
    if pending.attempts:
        last = history.runs[-1].error if history.runs else ""
        return f"backoff after {pending.attempts} failure{'s'[: pending.attempts != 1]}" + (
            f" ({last})" if last else ""
        )
    if history.wakes_at is not None:
        waited = history.runs[-1].reason if history.runs else ""
        return f"requeue_after of the last run{f': {waited}' if waited else ''}"
    return "a source asked for it and gave no reason"


def runs_of(history: record.History) -> list[facts.Run]:
    return [
        facts.Run(
            id=run.id,
            started=run.started,
            seconds=run.seconds,
            outcome=run.outcome,
            error=run.error,
            reason=run.reason,
            attempts=run.attempts,
            priority=run.priority,
            cause=cause_of(run, before),
            triggers=triggers_of(run.triggers),
            omitted=run.omitted,
            wakes_at=run.wakes_at,
            calls=calls_of(history, run.id),
        )
        for run, before in reversed([*zip(history.runs, (None, *history.runs), strict=False)])
    ]


def cause_of(run: record.Run, before: record.Run | None) -> facts.Cause:
    if run.triggers:
        return "events"
    if run.attempts:
        return "retry"
    if before is not None and before.wakes_at is not None and run.started >= before.wakes_at - _EARLY:
        return "requeue_after"
    return "unknown"


def triggers_of(triggers: Sequence[object]) -> list[facts.Trigger]:
    return [trigger_of(trigger) for trigger in triggers]


def trigger_of(trigger: object) -> facts.Trigger:
    if not isinstance(trigger, record.Trigger):
        return facts.Trigger(text=text_of(trigger))
    old, new = trigger.old, trigger.new
    return facts.Trigger(
        text=str(trigger),
        event=trigger.event,
        source=trigger.source,
        namespace=trigger.namespace,
        name=trigger.name,
        cluster=trigger.cluster,
        old_version=trigger.old_version,
        version=trigger.resource_version,
        seen_at=trigger.seen_at,
        changed=None if old is None or new is None else changed_paths(old, new),
    )


def text_of(trigger: object) -> str:
    try:
        return str(trigger)
    except Exception as error:  # noqa: BLE001 - a source of the user's may give any object
        return f"{type(trigger).__name__} ({error!r})"


def calls_of(history: record.History, run: str) -> list[facts.Call]:
    return [
        facts.Call(verb=call.verb, what=call.what, started=call.started, seconds=call.seconds, outcome=call.outcome)
        for call in history.calls
        if call.run == run
    ]


def recent_of(controller: str, kind: str, key: Hashable, run: record.Run) -> facts.Recent:
    request = key if isinstance(key, Request) else Request("", str(key))
    return facts.Recent(
        controller=controller,
        kind=kind,
        request=str(key),
        namespace=request.namespace,
        name=request.name,
        started=run.started,
        seconds=run.seconds,
        outcome=run.outcome,
        error=run.error,
        reason=run.reason,
        attempts=run.attempts,
        triggers=triggers_of(run.triggers),
        omitted=run.omitted,
    )


def led_to_of(controller: str, kind: str, key: Hashable, run: record.Run, trigger: object) -> facts.LedTo:
    return facts.LedTo(
        controller=controller,
        kind=kind,
        request=str(key),
        started=run.started,
        outcome=run.outcome,
        trigger=trigger_of(trigger),
    )


def loop_of(loop: WriteLoop, cluster: str) -> facts.Loop:
    key = f"{loop.namespace}/{loop.name}" if loop.namespace else loop.name
    return facts.Loop(
        controller=loop.controller,
        cluster=cluster,
        kind=f"{loop.kind}.{loop.group}" if loop.group else loop.kind,
        object=f"{key} ({loop.subresource})" if loop.subresource else key,
        why=loop.why.value,
        writes=loop.writes,
        fields=list(loop.fields),
        others=list(loop.others),
    )


def scope_of(scope: Scope) -> str:
    parts = (scope.namespace, "" if scope.labels is None else str(scope.labels), scope.fields)
    return " ".join(part for part in parts if part)
