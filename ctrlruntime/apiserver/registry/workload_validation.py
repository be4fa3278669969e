"""Validation of what makes Pods: Deployments, the sets, Jobs and CronJobs, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from zoneinfo import ZoneInfo

from ctrlruntime.apiserver import cron
from ctrlruntime.apiserver.registry.pod_validation import pod_spec_causes, template_causes
from ctrlruntime.apiserver.registry.storage_validation import claim_spec_causes
from ctrlruntime.apiserver.registry.workload_defaults import TEMPLATE_GENERATION
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    NON_NEGATIVE,
    at_most_all_causes,
    choice_causes,
    go_struct,
    immutable_causes,
    key_problems,
    label_causes,
    not_negative,
    qualified_name_causes,
    selector_causes,
    share_causes,
    spec_of,
    without,
)
from ctrlruntime.selector import from_label_selector

_LARGEST_INDEXED: Final = 100_000
_STATEFUL_FREE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_NOTHING: Final = {None, 0, "0%"}


def deployment_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from not_negative(spec, "spec", "replicas")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet", bad_text="invalid label selector")
    yield from _strategy_causes(spec.get("strategy") or {})
    yield from not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from immutable_causes(document, old, "spec.selector")


def _strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden_field(path, "may not be specified when strategy `type` is 'Recreate'")
    elif kind != "RollingUpdate":
        shown = go_struct(strategy, "Type", "RollingUpdate")
        yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        # Upstream looks at surge first where a text is wrong and at unavailability first where a number is.
        names = ("maxUnavailable", "maxSurge")
        found = [cause for name in names for cause in share_causes(rolling.get(name), f"{path}.{name}")]
        if any("percent" in cause.message for cause in found):
            found.reverse()
        yield from found
        if rolling.get("maxUnavailable") in _NOTHING and rolling.get("maxSurge") in _NOTHING:
            text = "may not be 0 when `maxSurge` is 0"
            yield invalid_value(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), text)
        yield from at_most_all_causes(rolling.get("maxUnavailable"), f"{path}.maxUnavailable")


def deployment_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    status: Document = document.get("status") or {}
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    yield from not_negative(status, "status", "observedGeneration", *names)
    yield from _within(status, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", path="status.")
    yield from _within(status, "readyReplicas", "availableReplicas", path="")


def replica_set_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    status: Document = document.get("status") or {}
    names = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    yield from not_negative(status, "status", "replicas", *names, "observedGeneration")
    yield from _within(status, "replicas", *names, path="status.")
    yield from _within(status, "readyReplicas", "availableReplicas", path="")


def _within(status: Document, whole: str, *parts: str, path: str) -> Iterator[StatusCause]:
    for part in parts:
        if status.get(part, 0) > status.get(whole, 0):
            yield invalid_value(f"status.{part}", status.get(part, 0), f"cannot be greater than {path}{whole}")


def replica_set_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from _selector_and_template(spec, "deployment", "ReplicaSet", bad_text="invalid label selector")
    yield from immutable_causes(document, old, "spec.selector")


def replication_controller_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from not_negative(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        yield required("spec.selector")
    yield from not_negative(spec, "spec", "replicas")
    if template is None:
        yield required("spec.template")
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector and not selector.items() <= labels.items():
        yield _no_match(labels, "spec")
    yield from _template_causes(spec, "spec", "ReplicationController")


def stateful_set_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    if spec.get("podManagementPolicy") not in {None, "OrderedReady", "Parallel"}:
        text = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", spec["podManagementPolicy"], text)
    yield from _stateful_strategy_causes(spec.get("updateStrategy") or {})
    for name in ("whenDeleted", "whenScaled"):
        value = (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(name)
        path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
        if value is not None:
            yield from choice_causes(value, path, ("Retain", "Delete"))
    yield from not_negative(spec, "spec", "replicas", "minReadySeconds")
    yield from not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_spec_causes(spec_of(claim), f"spec.volumeClaimTemplates[{index}].spec")
    if spec.get("serviceName"):
        yield from label_causes(spec["serviceName"], "spec.serviceName")
    # What was stored before templates were looked at may stay as it is (ValidateStatefulSetUpdate in pkg/apis/apps/validation).
    is_checked = old is None or not any(pod_spec_causes(_as_created(spec_of(old)), ""))
    yield from _selector_and_template(spec, "statefulset", "StatefulSet", bad_text="", is_checked=is_checked)
    if old is not None and without(spec, _STATEFUL_FREE) != without(spec_of(old), _STATEFUL_FREE):
        listed = ", ".join(f"'{name}'" for name in _STATEFUL_FREE[:-1])
        text = f"updates to statefulset spec for fields other than {listed} and '{_STATEFUL_FREE[-1]}' are forbidden"
        yield forbidden_field("spec", text)


def _as_created(spec: Document) -> Document:
    """Return the spec of a set's Pods: with its claims as volumes, and without the names that the set gives."""
    pod, claims = spec_of(spec.get("template")), spec.get("volumeClaimTemplates") or ()
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    return {**without(pod, ("hostname", "subdomain")), "volumes": volumes}


def _stateful_strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if kind == "OnDelete":
        if rolling is not None:
            shown = go_struct(rolling, "Partition", "MaxUnavailable")
            yield invalid_value(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from not_negative(rolling or {}, f"{path}.rollingUpdate", "partition")
    else:
        shown = go_struct(strategy, "Type", "RollingUpdate")
        yield invalid_value(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def daemon_set_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    count = int(document["metadata"]["annotations"][TEMPLATE_GENERATION])
    if count < 0:
        for problem in ("must not be decremented", "must be greater than or equal to 0"):
            yield invalid_value("spec.templateGeneration", count, problem)
    selector = spec.get("selector")
    yield from selector_causes(selector, "spec.selector")
    labels = _template_labels(spec)
    if not _is_bad(selector) and (selector is None or not from_label_selector(selector).matches(labels)):
        yield _no_match(labels, "spec")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid_value("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from _template_causes(spec, "spec", "DaemonSet")
    yield from not_negative(spec, "spec", "minReadySeconds")
    yield from _daemon_strategy_causes(spec.get("updateStrategy") or {})
    yield from not_negative(spec, "spec", "revisionHistoryLimit")
    yield from immutable_causes(document, old, "spec.selector")


def _daemon_strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, path = strategy.get("type"), "spec.updateStrategy.rollingUpdate"
    if kind not in {"RollingUpdate", "OnDelete"}:
        shown = go_struct(strategy, "Type", "RollingUpdate")
        yield not_supported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
    if kind != "RollingUpdate":
        return
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        yield required(path)
        return
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    found = [*share_causes(unavailable, f"{path}.maxUnavailable"), *share_causes(surge, f"{path}.maxSurge")]
    yield from found
    yield from at_most_all_causes(unavailable, f"{path}.maxUnavailable")
    yield from at_most_all_causes(surge, f"{path}.maxSurge")
    if found:
        return
    if unavailable not in _NOTHING and surge not in _NOTHING:
        yield invalid_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif unavailable in _NOTHING and surge in _NOTHING:
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def job_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from _job_spec_causes(spec, "spec")
    yield from _job_selector_causes(document, spec)
    fields = ["spec.completions", "spec.selector", "spec.completionMode", "spec.podFailurePolicy",
              "spec.backoffLimitPerIndex", "spec.managedBy"]  # fmt: skip
    is_elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if is_elastic:
        fields.remove("spec.completions")
    # A suspended job may still be moved to other nodes, once its controller has marked it as suspended.
    if old is not None and spec_of(old).get("suspend") and _is_marked_suspended(old):
        yield from _moved_template_causes(spec, spec_of(old))
    else:
        fields.append("spec.template")
    yield from immutable_causes(document, old, *fields)


def _is_marked_suspended(job: Document) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)


def _moved_template_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """Of a job that is suspended only the scheduling of its pods may change."""
    free = ("nodeSelector", "affinity", "tolerations", "schedulingGates", "topologySpreadConstraints")
    now, then = spec_of(spec.get("template")), spec_of(before.get("template"))
    if _with_resources_out(without(now, free)) != _with_resources_out(without(then, free)):
        yield invalid_value("spec.template.spec", now, "field is immutable")


def _with_resources_out(spec: Document) -> Document:
    containers = [{**container, "resources": {}} for container in spec.get("containers") or ()]
    return {**spec, "containers": containers}


def _job_selector_causes(document: Document, spec: Document) -> Iterator[StatusCause]:
    """The selector is the server's to make, unless `manualSelector` says otherwise."""
    selector, labels = spec.get("selector"), _template_labels(spec)
    if selector is None:
        yield required("spec.selector")
    elif not spec.get("manualSelector"):
        uid, name = document["metadata"].get("uid", ""), document["metadata"].get("name", "")
        for prefix in ("batch.kubernetes.io/", ""):
            for label, value in (("controller-uid", uid), ("job-name", name)):
                if (labels or {}).get(prefix + label) != value:
                    path = f"spec.template.metadata.labels[{prefix}{label}]"
                    yield invalid_value(path, labels, f"must be '{value}'")
        if selector.get("matchExpressions") or set(selector.get("matchLabels") or {}) - {
            "batch.kubernetes.io/controller-uid",
            "controller-uid",
        }:
            yield invalid_value("spec.selector", selector, "`selector` not auto-generated")
    if not _is_bad(selector) and (selector is None or not from_label_selector(selector).matches(labels)):
        yield _no_match(labels, "spec")


def _job_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    names = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from not_negative(spec, path, *names, "backoffLimitPerIndex", "maxFailedIndexes")
    mode = spec.get("completionMode", "NonIndexed")
    yield from choice_causes(mode, f"{path}.completionMode", ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        yield from _indexed_causes(spec, path)
    else:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid_value(f"{path}.{name}", spec[name], "requires indexed completion mode")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("managedBy") is not None and "/" not in spec["managedBy"]:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield invalid_value(f"{path}.managedBy", spec["managedBy"], text)
    yield from _failure_policy_causes(spec, path)
    yield from _success_policy_causes(spec, path)
    allowed = ("Failed",) if spec.get("podFailurePolicy") else ("Failed", "TerminatingOrFailed")
    if spec.get("podReplacementPolicy") is not None:
        yield from choice_causes(spec["podReplacementPolicy"], f"{path}.podReplacementPolicy", allowed)
    yield from _run_to_end_causes(spec, path)


def _indexed_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    if spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if spec.get("parallelism", 1) > _LARGEST_INDEXED:
        text = f"must be less than or equal to {_LARGEST_INDEXED} when completion mode is Indexed"
        yield invalid_value(f"{path}.parallelism", spec["parallelism"], text)
    failed = spec.get("maxFailedIndexes")
    if failed is not None and spec.get("completions") is not None and failed > spec["completions"]:
        yield invalid_value(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")


def _failure_policy_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    template = spec_of(spec.get("template"))
    names = {c.get("name") for part in ("containers", "initContainers") for c in template.get(part) or ()}
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        where, codes, patterns = f"{path}.podFailurePolicy.rules[{index}]", rule.get("onExitCodes"), rule.get(
            "onPodConditions"
        )  # fmt: skip
        action = rule.get("action", "")
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield invalid_value(f"{where}.action", action, "requires the backoffLimitPerIndex to be set")
        elif not action:
            yield required(f"{where}.action", 'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]')
        else:
            yield from choice_causes(action, f"{where}.action", ("Count", "FailIndex", "FailJob", "Ignore"))
        if codes is not None:
            yield from _exit_code_causes(codes, f"{where}.onExitCodes", names)
        for number, pattern in enumerate(patterns or ()):
            place = f"{where}.onPodConditions[{number}]"
            yield from qualified_name_causes(pattern.get("type", ""), f"{place}.type")
            yield from choice_causes(pattern.get("status", ""), f"{place}.status", ("False", "True", "Unknown"))
        if codes is not None and patterns:
            yield _plain(where, "specifying both OnExitCodes and OnPodConditions is not supported")
        elif codes is None and not patterns:
            yield _plain(where, "specifying one of OnExitCodes and OnPodConditions is required")


def _exit_code_causes(codes: Document, path: str, names: set[Any]) -> Iterator[StatusCause]:
    operator, values = codes.get("operator", ""), codes.get("values") or []
    yield from choice_causes(operator, f"{path}.operator", ("In", "NotIn"))
    if codes.get("containerName") is not None and codes["containerName"] not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", codes["containerName"], text)
    if not values:
        yield invalid_value(f"{path}.values", [], "at least one value is required")
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid_value(f"{path}.values[{index}]", 0, "must not be 0 for the In operator")
        if value in values[:index]:
            yield duplicate(f"{path}.values[{index}]", value)


def _success_policy_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    policy = spec.get("successPolicy")
    if policy is None:
        return
    if spec.get("completionMode") != "Indexed":
        shown = {"Rules": [go_struct(rule, "SucceededIndexes", "SucceededCount") for rule in policy.get("rules") or ()]}
        yield invalid_value(f"{path}.successPolicy", shown, "requires indexed completion mode")
        return
    for index, rule in enumerate(policy.get("rules") or ()):
        if rule.get("succeededCount") is None and rule.get("succeededIndexes") is None:
            text = "at least one of succeededCount or succeededIndexes must be specified"
            yield required(f"{path}.successPolicy.rules[{index}]", text)


def _plain(path: str, text: str) -> StatusCause:
    """A value that upstream does not print."""
    return StatusCause("FieldValueInvalid", f"Invalid value: {text}", path)


def _run_to_end_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """A Job's pods must come to an end."""
    template = spec.get("template") or {}
    policy = spec_of(template).get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    for cause in template_causes(template, f"{path}.template"):
        if cause.field != where or policy not in {None, "", "Always"}:
            yield cause
    if policy in {None, "", "Always"}:
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in {"OnFailure", "Never"}:
        yield not_supported(where, policy, ("OnFailure", "Never"))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        yield invalid_value(where, policy, 'only "Never" is supported when podFailurePolicy is specified')


def cron_job_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, name = spec_of(document), str(document["metadata"].get("name", ""))
    if not spec.get("schedule"):
        yield required("spec.schedule")
    else:
        yield from _schedule_causes(str(spec["schedule"]))
    yield from not_negative(spec, "spec", "startingDeadlineSeconds")
    yield from _zone_causes(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy", "")
    yield from choice_causes(policy, "spec.concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    job = spec_of(spec.get("jobTemplate"))
    yield from _job_spec_causes(job, "spec.jobTemplate.spec")
    if job.get("selector") is not None:
        yield invalid_value("spec.jobTemplate.spec.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported("spec.jobTemplate.spec.manualSelector", True, ("nil", "false"))
    yield from not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if old is None and len(name) > 52:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")


def _schedule_causes(schedule: str) -> Iterator[StatusCause]:
    if "TZ" in schedule:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield invalid_value("spec.schedule", schedule, text)
        return
    try:
        cron.parse(schedule)
    except ValueError as error:
        yield invalid_value("spec.schedule", schedule, str(error))


def _zone_causes(zone: str | None) -> Iterator[StatusCause]:
    if zone is None:
        return
    path = "spec.timeZone"
    if not zone:
        yield invalid_value(path, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid_value(path, zone, text)
    else:
        try:
            ZoneInfo(zone)
        except (OSError, ValueError, LookupError):
            yield invalid_value(path, zone, f"unknown time zone {zone}")


def pod_template_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    return template_causes(document.get("template") or {}, "template")


def revision_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    if document.get("revision", 0) < 0:
        yield invalid_value("revision", document["revision"], NON_NEGATIVE)
    if document.get("data") is None:
        yield required("data", "data is mandatory")
    yield from immutable_causes(document, old, "data")


# --- selector and template


def _selector_and_template(
    spec: Document, kind: str, template_of: str, *, bad_text: str, is_checked: bool = True
) -> Iterator[StatusCause]:
    selector, labels = spec.get("selector"), _template_labels(spec)
    is_bad = _is_bad(selector)
    is_empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
    if selector is None:
        yield required("spec.selector")
    elif is_empty:
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}")
    else:
        yield from selector_causes(selector, "spec.selector")
    if is_bad:
        cause = invalid_value("spec.selector", selector, bad_text)
        yield StatusCause(cause.reason, cause.message.removesuffix(": "), cause.field)
    elif not is_empty and (selector is None or not from_label_selector(selector).matches(labels)):
        yield _no_match(labels, "spec")
    yield from _template_causes(spec, "spec", template_of, is_checked=is_checked)


def _is_bad(selector: Document | None) -> bool:
    """Tell whether a selector cannot be read."""
    if not selector:
        return False
    try:
        from_label_selector(selector)
    except ValueError:
        return True
    return any(key_problems(key) for key in selector.get("matchLabels") or ())


def _template_labels(spec: Document) -> Any:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels")


def _no_match(labels: Any, path: str) -> StatusCause:
    text = "`selector` does not match template `labels`"
    return invalid_value(f"{path}.template.metadata.labels", labels, text)


def _template_causes(spec: Document, path: str, kind: str, *, is_checked: bool = True) -> Iterator[StatusCause]:
    template = spec.get("template") or {}
    pod, where = spec_of(template), f"{path}.template.spec"
    if is_checked:
        checked = {**template, "spec": _as_created(spec)} if kind == "StatefulSet" else template
        yield from template_causes(checked, f"{path}.template")
    if pod.get("restartPolicy") != "Always" and pod:
        yield not_supported(f"{where}.restartPolicy", pod.get("restartPolicy"), ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field(f"{where}.activeDeadlineSeconds", text)
