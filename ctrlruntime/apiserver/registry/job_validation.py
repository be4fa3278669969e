"""Validation of Jobs and CronJobs with kube-apiserver's words (pkg/apis/batch/validation), except for the status."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.apiserver import cron
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.job_indexes import count_indexes
from ctrlruntime.apiserver.registry.pod_validation import template_causes
from ctrlruntime.apiserver.registry.workload_validation import is_bad_selector, no_match, template_labels
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, not_supported, required, too_long, too_many
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    choice_causes,
    domain_path_causes,
    immutable_causes,
    label_problems,
    not_negative,
    qualified_name_causes,
    selector_causes,
    spec_of,
    without,
)
from ctrlruntime.selector import from_label_selector, utf8_length

_LARGEST_INDEXED: Final = 100_000
"""Of parallelism and of failed indexes. From here on there are limits for Jobs that count failures for each index."""
_MANY: Final = 10_000
_LONGEST_MANAGER: Final = 63
_LONGEST_INDEXES: Final = 64 * 1024
_MOST_RULES: Final = 20
_MOST_CODES: Final = 255
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_SELECTOR_LABELS: Final = (
    ("controller-uid", "uid"),
    ("job-name", "name"),
    ("batch.kubernetes.io/controller-uid", "uid"),
    ("batch.kubernetes.io/job-name", "name"),
)
_FREE_WHILE_SUSPENDED: Final = ("nodeSelector", "tolerations", "schedulingGates")
_ZONE: Final = re.compile(r"(?!-)(?!\.{1,2}\Z)[A-Za-z.\-_0-9+]{1,14}\Z")
_MORE_THAN_TRACKED: Final = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able "
    "to track completedIndexes when a big number of indexes fail"
)


def job_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, before = spec_of(document), spec_of(old)
    yield from _generated_selector_causes(document, spec)
    found = [*_job_spec_causes(spec, "spec"), *_selector_causes(spec)]
    yield from found
    name, completions = str(document["metadata"].get("name", "")), spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        longest = f"{name}-{completions - 1}"
        for _ in label_problems(longest)[:1]:
            text = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid_value("metadata.name", name, text)
    if old is None:
        return
    yield from found  # an update is looked at as a new object, too
    yield from _completions_causes(spec, before)
    yield from immutable_causes(document, old, "spec.selector")
    yield from _template_update_causes(spec, before, old)
    yield from immutable_causes(document, old, "spec.completionMode")
    for name, kind in (
        ("podFailurePolicy", "*batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", "*i"),
        ("managedBy", "*s"),
        ("successPolicy", "*batch.SuccessPolicy"),
    ):
        if spec.get(name) != before.get(name):
            yield invalid_value(f"spec.{name}", internal(kind, spec.get(name)), IMMUTABLE)


def _completions_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """Only with its parallelism does an indexed Job grow."""
    now = spec.get("completions")
    if now == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid_value("spec.completions", now, IMMUTABLE)
    elif now is not None and now != spec.get("parallelism"):
        yield invalid_value("spec.completions", now, "can only be modified in tandem with spec.parallelism")


def _template_update_causes(spec: Document, before: Document, old: Document) -> Iterator[StatusCause]:
    """Pods of a suspended Job without Pods may still go elsewhere, with other resources (validatePodTemplateUpdate)."""
    now, then, status = spec.get("template") or {}, before.get("template") or {}, old.get("status") or {}
    if not before.get("suspend") or not _is_marked_suspended(status) or status.get("active"):
        if now != then:
            yield invalid_value("spec.template", internal("core.PodTemplateSpec", now), IMMUTABLE)
        return
    pod, allowed = spec_of(now), dict(spec_of(then))
    allowed["affinity"] = _with_node_affinity(allowed.get("affinity"), pod.get("affinity"))
    for name in ("affinity", *_FREE_WHILE_SUSPENDED):
        given = allowed.get(name) if name == "affinity" else pod.get(name)
        allowed = {**allowed, name: given} if given is not None else without(allowed, (name,))
    for name in ("containers", "initContainers"):
        containers = pod.get(name) or ()
        if containers and len(containers) == len(allowed.get(name) or ()):
            allowed[name] = [
                {**one, "resources": new.get("resources")} if one.get("name") == new.get("name") else one
                for one, new in zip(allowed[name], containers, strict=True)
            ]
    if pod != allowed:
        yield invalid_value("spec.template.spec", internal("core.PodSpec", pod), IMMUTABLE)


def _with_node_affinity(before: Document | None, now: Document | None) -> Document | None:
    """Return the affinity of before with the nodes of now."""
    kept = without(before or {}, ("nodeAffinity",))
    if now is not None and now.get("nodeAffinity") is not None:
        kept["nodeAffinity"] = now["nodeAffinity"]
    return None if now is None and not kept else kept


def _is_marked_suspended(status: Document) -> bool:
    return any(one.get("type") == "Suspended" and one.get("status") == "True" for one in status.get("conditions") or ())


def _generated_selector_causes(document: Document, spec: Document) -> Iterator[StatusCause]:
    """The selector is the server's to make, unless `manualSelector` says otherwise."""
    selector, labels = spec.get("selector"), template_labels(spec) or {}
    if selector is None or spec.get("manualSelector"):
        return
    wanted = {label: str(document["metadata"].get(of, "")) for label, of in _SELECTOR_LABELS}
    for label, value in wanted.items():
        if labels.get(label) != value:
            path = f"spec.template.metadata.labels[{label}]"
            yield invalid_value(path, dict(sorted(labels.items())), f"must be '{value}'")
    if not is_bad_selector(selector) and not from_label_selector(selector).matches(wanted):
        yield invalid_value("spec.selector", selector, "`selector` not auto-generated")


def _selector_causes(spec: Document) -> Iterator[StatusCause]:
    selector, labels = spec.get("selector"), template_labels(spec)
    if selector is None:
        yield required("spec.selector")
    else:
        yield from selector_causes(selector, "spec.selector")
    if not is_bad_selector(selector) and (selector is None or not from_label_selector(selector).matches(labels)):
        yield no_match(labels, "spec")


def _job_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    names = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from not_negative(spec, path, *names, "backoffLimitPerIndex", "maxFailedIndexes")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    manager = spec.get("managedBy")
    if manager is not None:
        yield from domain_path_causes(manager, f"{path}.managedBy")
        if utf8_length(manager) > _LONGEST_MANAGER:
            yield too_long(f"{path}.managedBy", _LONGEST_MANAGER)
    mode = spec.get("completionMode")
    if mode is not None:
        yield from choice_causes(mode, f"{path}.completionMode", ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _indexed_causes(spec, path)
    if mode in {None, "NonIndexed"}:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid_value(f"{path}.{name}", spec[name], "requires indexed completion mode")
    yield from _failure_policy_causes(spec, f"{path}.podFailurePolicy")
    yield from _success_policy_causes(spec, f"{path}.successPolicy")
    allowed = ("Failed", "TerminatingOrFailed") if spec.get("podFailurePolicy") is None else ("Failed",)
    if spec.get("podReplacementPolicy") is not None:
        yield from choice_causes(spec["podReplacementPolicy"], f"{path}.podReplacementPolicy", allowed)
    yield from _run_to_end_causes(spec, path)


def _indexed_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    completions, parallelism, failed = (spec.get(name) for name in ("completions", "parallelism", "maxFailedIndexes"))
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _LARGEST_INDEXED:
        text = f"must be less than or equal to {_LARGEST_INDEXED} when completion mode is Indexed"
        yield invalid_value(f"{path}.parallelism", parallelism, text)
    if failed is not None:
        if completions is not None and failed > completions:
            yield invalid_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
        if failed > _LARGEST_INDEXED:
            text = f"must be less than or equal to {_LARGEST_INDEXED}"
            yield invalid_value(f"{path}.maxFailedIndexes", failed, text)
    if completions is None or completions <= _LARGEST_INDEXED or spec.get("backoffLimitPerIndex") is None:
        return
    above = f"completions are above {_LARGEST_INDEXED} and used with backoff limit per index"
    if failed is None:
        text = f"must be specified when completions is above {_LARGEST_INDEXED}"
        yield required(f"{path}.maxFailedIndexes", text)
    for name, number in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if number is not None and number > _MANY:
            yield invalid_value(f"{path}.{name}", number, f"must be less than or equal to {_MANY} when {above}")


def _failure_policy_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    template, rules = spec_of(spec.get("template")), (spec.get("podFailurePolicy") or {}).get("rules") or ()
    names = {c.get("name") for part in ("containers", "initContainers") for c in template.get(part) or ()}
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        where = f"{path}.rules[{index}]"
        action, codes, patterns = (rule.get(name) for name in ("action", "onExitCodes", "onPodConditions"))
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield invalid_value(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        else:
            yield from _word_causes(action, f"{where}.action", _ACTIONS)
        if codes is not None:
            yield from _exit_code_causes(codes, f"{where}.onExitCodes", names)
        if patterns and len(patterns) > _MOST_RULES:
            yield too_many(f"{where}.onPodConditions", len(patterns), _MOST_RULES)
        for number, pattern in enumerate(patterns or ()):
            place = f"{where}.onPodConditions[{number}]"
            yield from qualified_name_causes(pattern.get("type", ""), f"{place}.type")
            yield from _word_causes(pattern.get("status"), f"{place}.status", ("False", "True", "Unknown"))
        if codes is not None and patterns:
            yield _plain(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not patterns:
            yield _plain(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _word_causes(value: str | None, path: str, words: tuple[str, ...]) -> Iterator[StatusCause]:
    """One of a few words, which are listed as Go lists them when there is none."""
    if value:
        yield from choice_causes(value, path, words)
    else:
        listed = " ".join(f'"{word}"' for word in words)
        yield required(path, f"valid values: [{listed}]")


def _exit_code_causes(codes: Document, path: str, names: set[Any]) -> Iterator[StatusCause]:
    operator, values = codes.get("operator"), codes.get("values") or []
    yield from _word_causes(operator, f"{path}.operator", ("In", "NotIn"))
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", codes["containerName"], text)
    if not values:
        yield invalid_value(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > _MOST_CODES:
        yield too_many(f"{path}.values", len(values), _MOST_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid_value(f"{path}.values[{index}]", 0, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)
    if values != sorted(values):
        yield invalid_value(f"{path}.values", values, "must be ordered")


def _success_policy_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    policy = spec.get("successPolicy")
    if policy is None:
        return
    if spec.get("completionMode") != "Indexed":
        yield invalid_value(path, internal("batch.SuccessPolicy", policy), "requires indexed completion mode")
        return
    rules, completions = policy.get("rules") or (), spec.get("completions")
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > _MOST_RULES:
        yield too_many(f"{path}.rules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _success_rule_causes(rule, f"{path}.rules[{index}]", completions or 0)


def _success_rule_causes(rule: Document, path: str, completions: int) -> Iterator[StatusCause]:
    indexes, count, total = rule.get("succeededIndexes"), rule.get("succeededCount"), 0
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        if utf8_length(indexes) > _LONGEST_INDEXES:
            yield too_long(f"{path}.succeededIndexes", _LONGEST_INDEXES)
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            yield invalid_value(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    yield from not_negative(rule, path, "succeededCount")
    limits = [(completions, "specified completions")]
    if indexes is not None:
        limits.append((total, "indexes in the specified succeededIndexes field"))
    for limit, of in limits:
        if count > limit:
            text = f"must be less than or equal to {limit} (the number of {of})"
            yield invalid_value(f"{path}.succeededCount", count, text)


def _plain(path: str, text: str) -> StatusCause:
    """A value that upstream does not print."""
    return StatusCause("FieldValueInvalid", f"Invalid value: {text}", path)


def _run_to_end_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """A Job's pods must come to an end."""
    template = spec.get("template") or {}
    policy = spec_of(template).get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    yield from template_causes(template, f"{path}.template")
    if policy in {None, "", "Always"}:
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in {"OnFailure", "Never"}:
        yield not_supported(where, policy, ("OnFailure", "Never"))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        yield invalid_value(where, policy, 'only "Never" is supported when podFailurePolicy is specified')


def job_spec_warnings(spec: Document, path: str) -> Iterator[str]:
    """Yield the warning that is not of the template (WarningsForJobSpec in pkg/api/job)."""
    many = spec.get("completions", 0) > _LARGEST_INDEXED and spec.get("parallelism", 0) > _MANY
    if spec.get("completionMode") == "Indexed" and many:
        yield f"{path}: {_MORE_THAN_TRACKED}"


# --- CronJobs


def cron_job_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, before, name = spec_of(document), spec_of(old), str(document["metadata"].get("name", ""))
    schedule = spec.get("schedule")
    if not schedule:
        yield required("spec.schedule")
    else:
        allows_zone = "TZ" in before.get("schedule", "")
        yield from _schedule_causes(schedule, has_zone=spec.get("timeZone") is not None, allows_zone=allows_zone)
    yield from not_negative(spec, "spec", "startingDeadlineSeconds")
    if old is None or spec.get("timeZone") != before.get("timeZone"):
        yield from _zone_causes(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy")
    if policy:
        yield from choice_causes(policy, "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    else:
        yield required("spec.concurrencyPolicy")
    job = spec_of(spec.get("jobTemplate"))
    yield from _job_spec_causes(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        yield invalid_value("spec.jobTemplate.spec.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    yield from not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if old is None and len(name) > 52:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")


def _schedule_causes(schedule: str, *, has_zone: bool, allows_zone: bool) -> Iterator[StatusCause]:
    try:
        cron.parse(schedule)
    except ValueError as error:
        yield invalid_value("spec.schedule", schedule, str(error))
    if "TZ" not in schedule:
        return
    if not allows_zone:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_value("spec.schedule", schedule, text)
    elif has_zone:
        text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield invalid_value("spec.schedule", schedule, text)


def _zone_causes(zone: str | None) -> Iterator[StatusCause]:
    if zone is None:
        return
    path = "spec.timeZone"
    if not zone:
        yield invalid_value(path, zone, "timeZone must be nil or non-empty string")
        return
    unknown = invalid_value(path, zone, f"unknown time zone {zone}")
    if not all(_ZONE.match(part) for part in zone.split("/")):
        yield unknown
        return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid_value(path, zone, text)
    if not cron.has_zone(zone):
        yield unknown


__all__ = ["cron_job_causes", "job_causes", "job_spec_warnings"]
