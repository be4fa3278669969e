"""Formats an explanation as lines for a terminal or a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctrlruntime.explain import facts
from ctrlruntime.ownership.state import SlotOwner

_NOTABLE = 1.0  # seconds between event and run that are worth a word


def lines(why: facts.Why) -> list[str]:
    """Return the explanation as lines of text."""
    told: list[str] = []
    for answer in why.answers:
        told += [*_answer(answer, why.now), ""]
    troubled = [watch for watch in why.watches if watch.trouble or not watch.is_synced]
    for watch in troubled:
        told.append(f"the watch of {watch.kind} is {watch.state}, {_alive(watch)}: {watch.trouble or 'not synced yet'}")
    if why.led_to:
        key = f"{why.namespace}/{why.name}" if why.namespace else why.name
        told.append(f"{why.kind} {key} led to")
        told += [
            f"  {led.kind or led.controller} {led.request}: {led.outcome} {ago(why.now - led.started)} ago, for {because(led.trigger)}"
            for led in why.led_to
        ]
    return told[:-1] if told and not told[-1] else told


def ago(seconds: float) -> str:
    """Return a length of time in a suitable unit."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def because(trigger: facts.Trigger) -> str:
    """Return a trigger with the changed fields, if known."""
    if trigger.changed is None:
        return trigger.text
    return f"{trigger.text}: {', '.join(trigger.changed) or 'nothing but its version'}"


def in_words(loop: facts.Loop) -> str:
    """Return a write loop as text."""
    reasons = {
        "no_op": "change nothing",
        "reverted": "undo the write before",
        "contested": f"are reverted by {', '.join(loop.others) or 'another client'}",
    }
    fields = f": {', '.join(loop.fields)}" if loop.fields else ""
    return f"{loop.writes} writes in a row to {loop.kind} {loop.object} {reasons.get(loop.why, loop.why)}{fields}"


def owned_by(shard: SlotOwner) -> str:
    """Return which replica reconciles an object, as text."""
    owner = f"{shard.owner or shard.member}{' (this one)' if shard.is_here else ''}" if shard.member else "none so far"
    following = f", moves to {shard.following}" if shard.following else ""
    return f"{owner}, slot {shard.slot} of {shard.of}{following}"


def _alive(watch: facts.Watch) -> str:
    return "no activity yet" if watch.alive is None else f"last activity {ago(watch.alive)} ago"


def _answer(answer: facts.Answer, now: float) -> Iterator[str]:
    name = f"{answer.kind} {answer.request}" if answer.kind else answer.request
    cached = f"version {answer.cached_version} in the cache"
    if answer.cached_version is None:
        cached = "not cached in this replica" if answer.elsewhere else "not in the cache"
    yield f"{name}  (controller {answer.controller}{'' if answer.is_started else ', not started'}; {cached})"
    if answer.shard is not None:
        yield _field("replica", owned_by(answer.shard))
    elif answer.elsewhere:
        yield _field("replica", f"not known here, perhaps {' or '.join(answer.elsewhere)}")
    if answer.running is not None:
        yield from _running(answer.running)
    yield _field("next", answer.next)
    if answer.unsynced:
        yield _field("waiting for sync", f"{', '.join(answer.unsynced)}; no reconcile starts before")
    if answer.unseen and not answer.elsewhere:  # the reads of this replica do not matter then
        yield _field("pending write", answer.unseen)
    for loop in answer.loops:
        yield _field("loop", in_words(loop))
    if answer.failures:
        yield _field("failures", f"{answer.failures} in a row")
    if not answer.runs:
        yield _field("last run", "none that is remembered")
    for position, run in enumerate(answer.runs):
        yield _field("before" if position else "last run", _run(run, now))
        yield from _why(run.triggers, run.omitted, run.cause, run.attempts)
        yield from _calls(run.calls)


def _running(running: facts.Running) -> Iterator[str]:
    where = f" at {running.stands_at}" if running.stands_at else ""
    yield _field("now", f"runs for {ago(running.seconds)}, waits{where}  (reconcile {running.id})")
    yield from _why(running.triggers, running.omitted, "retry" if running.attempts else "unknown", running.attempts)
    yield from _calls(running.calls)


def _run(run: facts.Run, now: float) -> str:
    error = f": {run.error or run.reason}" if run.error or run.reason else ""
    waited = run.started - min((trigger.seen_at for trigger in run.triggers if trigger.seen_at), default=run.started)
    after = f", {ago(waited)} after the first event" if waited >= _NOTABLE else ""
    priority = f", priority {run.priority}" if run.priority else ""
    times = f"{ago(now - run.started)} ago{after}, took {run.seconds:.3f} s{priority}"
    return f"{run.outcome}{error}, {times}  (reconcile {run.id})"


def _why(triggers: Sequence[facts.Trigger], omitted: int, cause: facts.Cause, attempts: int) -> Iterator[str]:
    reasons = [because(trigger) for trigger in triggers]
    if omitted:
        reasons.append(f"and {omitted} more events")
    if attempts:
        reasons.append(f"again after {attempts} failure{'s'[: attempts != 1]}")
    elif not reasons:
        known = {"requeue_after": "the run before asked for it (requeue_after)"}
        reasons.append(known.get(cause, "added by a source that gave no reason"))
    for position, reason in enumerate(reasons):
        yield _field("" if position else "  triggers", reason)


def _calls(calls: Sequence[facts.Call]) -> Iterator[str]:
    for position, call in enumerate(calls):
        text = f"{call.verb} {call.what}  {call.seconds * 1000:.0f} ms  {call.outcome}"
        yield _field("" if position else "  API calls", text)


def _field(name: str, text: str) -> str:
    return f"  {name:<16} {text}".rstrip()
