"""Validation of a write to a Job's status (validateJobStatus and ValidateJobStatusUpdate in pkg/apis/batch/validation).

Most rules hold only for what the write changes, so that a status that breaks one can still be written
(getStatusValidationOptions in pkg/registry/batch/job).
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlruntime.apiserver.registry.job_indexes import count_indexes, overlap
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import not_negative, spec_of

_PATH = "status.conditions"


def job_status_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, status, before = spec_of(document), document.get("status") or {}, (old or {}).get("status") or {}
    now, then = _true_conditions(status), _true_conditions(before)
    yield from not_negative(status, "status", "active", "succeeded", "failed", "ready", "terminating")
    yield from _uncounted_causes(status.get("uncountedTerminatedPods") or {})
    yield from _finished_causes(spec, status, before, now, then)
    yield from _index_causes(spec, status, before)
    finishes = _is_finished(now) != _is_finished(then)
    if (finishes or _differs("terminating", status, before)) and _is_finished(now) and status.get("terminating", 0) > 0:
        yield invalid_value("status.terminating", status["terminating"], "terminating>0 is invalid for finished job")
    if _differs("ready", status, before) or _differs("active", status, before):
        ready = status.get("ready")
        if ready is not None and ready > status.get("active", 0):
            yield invalid_value("status.ready", ready, "cannot set more ready pods than active")
    for other, shown in (("Failed", "Failed"), ("FailureTarget", "FailureTarget")):
        if {"SuccessCriteriaMet", other} <= now:
            yield _plain(f"cannot set SuccessCriteriaMet=True and {shown}=true conditions")
    if spec.get("successPolicy") is not None and "SuccessCriteriaMet" not in now and "Complete" in now:
        text = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield _plain(text)
    yield from _backward_causes(spec, status, before, now, then)


def _true_conditions(status: Document) -> set[str]:
    return {str(one.get("type")) for one in status.get("conditions") or () if one.get("status") == "True"}


def _is_finished(conditions: set[str]) -> bool:
    return bool(conditions & {"Complete", "Failed"})


def _differs(name: str, status: Document, before: Document) -> bool:
    return status.get(name) != before.get(name)


def _plain(text: str) -> StatusCause:
    """What is wrong with the conditions, which upstream does not print."""
    return StatusCause("FieldValueInvalid", f"Invalid value: {text}", _PATH)


def _uncounted_causes(uncounted: Document) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(name) or ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                yield invalid_value(path, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(path, uid)
            seen.add(uid)


def _finished_causes(
    spec: Document, status: Document, before: Document, now: set[str], then: set[str]
) -> Iterator[StatusCause]:
    """What belongs to a Job that is complete or has failed."""
    changed, finished = now ^ then, _is_finished(now)
    start, end = status.get("startTime"), status.get("completionTime")
    has_new_start, has_new_end = _differs("startTime", status, before), _differs("completionTime", status, before)
    for other in ("Failed", "FailureTarget"):
        if {"Complete", other} <= now and changed & {"Complete", other}:
            yield _plain(f"cannot set Complete=True and {other}=true conditions")
    if "Complete" in changed or has_new_end:
        if end is not None and "Complete" not in now:
            missing = "no Complete=True condition"
            yield invalid_value("status.completionTime", end, f"cannot set completionTime when there is {missing}")
        if end is None and "Complete" in now:
            yield required("status.completionTime", "completionTime is required for Complete jobs")
    if (has_new_start or has_new_end) and start is not None and end is not None and end < start:
        yield invalid_value("status.completionTime", end, "must be equal to or after `startTime`")
    has_new_failures = "Failed" in changed or _differs("failedIndexes", status, before)
    if has_new_failures and "Failed" in now and "FailureTarget" not in now:
        yield _plain("cannot set Failed=True condition without the FailureTarget=true condition")
    if changed & {"Complete", "SuccessCriteriaMet"} and "Complete" in now and "SuccessCriteriaMet" not in now:
        yield _plain("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    finishes = finished != _is_finished(then)
    if (finishes or _differs("active", status, before)) and finished and status.get("active", 0) > 0:
        yield invalid_value("status.active", status["active"], "active>0 is invalid for finished job")
    never_starts = spec.get("suspend") is True and spec.get("completions") == 0
    if (finishes or has_new_start) and not never_starts and finished and start is None:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted: Document = status.get("uncountedTerminatedPods") or {}
    if (finishes or _differs("uncountedTerminatedPods", status, before)) and finished:
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        if any(shown.values()):
            yield invalid_value("status.uncountedTerminatedPods", shown, "must be empty for finished job")


def _index_causes(spec: Document, status: Document, before: Document) -> Iterator[StatusCause]:
    completed, failed, completions = status.get("completedIndexes") or "", status.get("failedIndexes"), None
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    are_new, are_newly_failed = (_differs(name, status, before) for name in ("completedIndexes", "failedIndexes"))
    if are_new and completions is not None:
        yield from _unreadable("completedIndexes", completed, completions)
    if are_newly_failed and None not in (completions, limit, failed):
        yield from _unreadable("failedIndexes", str(failed), completions or 0)
    if are_new and completed and spec.get("completionMode") != "Indexed":
        text = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield invalid_value("status.completedIndexes", completed, text)
    if are_newly_failed and limit is None and failed is not None:
        text = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield invalid_value("status.failedIndexes", failed, text)
    if (are_new or are_newly_failed) and completions is not None and failed is not None:
        problem = overlap(completed, failed, completions)
        if problem:
            yield invalid_value("status.failedIndexes", failed, problem)


def _unreadable(name: str, text: str, completions: int) -> Iterator[StatusCause]:
    try:
        count_indexes(text, completions)
    except ValueError as error:
        yield invalid_value(f"status.{name}", text, f"error parsing {name}: {error}")


def _backward_causes(
    spec: Document, status: Document, before: Document, now: set[str], then: set[str]
) -> Iterator[StatusCause]:
    """What a Job never takes back."""
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in then - now:
            yield _plain(f"cannot disable the terminal {kind}=True condition")
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if is_elastic else ("failed", "succeeded"):
        if status.get(name, 0) < before.get(name, 0):
            yield invalid_value(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
    end, start = status.get("completionTime"), before.get("startTime")
    if end is not None and before.get("completionTime") not in {None, end}:
        yield invalid_value("status.completionTime", end, "field is immutable")
    conditions = status.get("conditions") or ()
    resumes = any(one.get("type") == "Suspended" and one.get("status") == "False" for one in conditions)
    may_start_anew = spec.get("suspend") or (resumes and "Suspended" in then)
    if start is not None and start != status.get("startTime") and not may_start_anew:
        text = "field is immutable for unsuspended job once set"
        yield invalid_value("status.startTime", status.get("startTime"), text)
    if "SuccessCriteriaMet" in then - now:
        yield _plain("cannot disable the SuccessCriteriaMet=True condition")
    if "Complete" in then and "SuccessCriteriaMet" in now - then:
        yield _plain("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


__all__ = ["job_status_causes"]
