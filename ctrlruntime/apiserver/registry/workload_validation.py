"""Validation of what makes Pods: Deployments and the sets, with kube-apiserver's words. Jobs are in `job_validation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.claim_validation import claim_spec_causes
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_validation import pod_spec_causes, template_causes, template_metadata_causes
from ctrlruntime.apiserver.registry.workload_defaults import TEMPLATE_GENERATION
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    NON_NEGATIVE,
    at_most_all_causes,
    choice_causes,
    immutable_causes,
    key_problems,
    label_causes,
    not_negative,
    selector_causes,
    share_causes,
    share_value,
    spec_of,
    without,
)
from ctrlruntime.selector import from_label_selector

_STATEFUL_FREE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


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
        shown = internal("apps.DeploymentStrategy", strategy)
        yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        yield from share_causes(unavailable, f"{path}.maxUnavailable")
        yield from share_causes(surge, f"{path}.maxSurge")
        if not share_value(unavailable) and not share_value(surge):
            yield invalid_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from at_most_all_causes(unavailable, f"{path}.maxUnavailable")


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
    labels = template_labels(spec)
    if selector and not selector.items() <= (labels or {}).items():
        yield no_match(labels, "spec")
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
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or () if old is None else ()):  # they never change
        yield from claim_spec_causes(spec_of(claim), f"spec.volumeClaimTemplates[{index}].spec")
    if spec.get("serviceName") and old is None:
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
    names = list(dict.fromkeys((claim.get("metadata") or {}).get("name", "") for claim in claims))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    return {**without(pod, ("hostname", "subdomain")), "volumes": volumes}


def _stateful_strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, rolling, path = strategy.get("type"), strategy.get("rollingUpdate"), "spec.updateStrategy"
    if kind == "OnDelete":
        if rolling is not None:
            shown = internal("apps.RollingUpdateStatefulSetStrategy", rolling)
            yield invalid_value(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from not_negative(rolling or {}, f"{path}.rollingUpdate", "partition")
    else:
        shown = internal("apps.StatefulSetUpdateStrategy", strategy)
        yield invalid_value(path, shown, "must be 'RollingUpdate' or 'OnDelete'")


def daemon_set_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    count = int(document["metadata"]["annotations"][TEMPLATE_GENERATION])
    if count < 0:
        yield invalid_value("spec.templateGeneration", count, "must not be decremented")
    yield from immutable_causes(document, old, "spec.selector")
    if count < 0:
        yield invalid_value("spec.templateGeneration", count, "must be greater than or equal to 0")
    selector = spec.get("selector")
    yield from selector_causes(selector, "spec.selector")
    labels = template_labels(spec)
    if not is_bad_selector(selector) and (selector is None or not from_label_selector(selector).matches(labels)):
        yield no_match(labels, "spec")
    if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid_value("spec.selector", selector, "empty selector is invalid for daemonset")
    yield from _template_causes(spec, "spec", "DaemonSet")
    yield from not_negative(spec, "spec", "minReadySeconds")
    yield from _daemon_strategy_causes(spec.get("updateStrategy") or {})
    yield from not_negative(spec, "spec", "revisionHistoryLimit")


def _daemon_strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, path = strategy.get("type"), "spec.updateStrategy.rollingUpdate"
    if kind not in {"RollingUpdate", "OnDelete"}:
        shown = internal("apps.DaemonSetUpdateStrategy", strategy)
        yield not_supported("spec.updateStrategy", shown, ("RollingUpdate", "OnDelete"))
    if kind != "RollingUpdate":
        return
    rolling = strategy.get("rollingUpdate")
    if rolling is None:
        yield required(path)
        return
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    yield from share_causes(unavailable, f"{path}.maxUnavailable")
    yield from share_causes(surge, f"{path}.maxSurge")
    yield from at_most_all_causes(unavailable, f"{path}.maxUnavailable")
    yield from at_most_all_causes(surge, f"{path}.maxSurge")
    if share_value(unavailable) and share_value(surge):
        yield invalid_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not share_value(unavailable) and not share_value(surge):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def pod_template_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    return template_causes(document.get("template") or {}, "template")


def revision_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    if document.get("revision", 0) < 0:
        yield invalid_value("revision", document["revision"], NON_NEGATIVE)
    data = document.get("data")
    if old is None and not isinstance(data, dict):
        yield required("data", "data is mandatory" if data is None else "data must be a valid JSON object")
    yield from immutable_causes(document, old, "data")


# --- selector and template


def _selector_and_template(
    spec: Document, kind: str, template_of: str, *, bad_text: str, is_checked: bool = True
) -> Iterator[StatusCause]:
    selector, labels = spec.get("selector"), template_labels(spec)
    is_bad = is_bad_selector(selector)
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
        yield no_match(labels, "spec")
    # A template is not looked at where the selector cannot be read; of a StatefulSet's a little is.
    if not is_bad or template_of == "StatefulSet":
        yield from _template_causes(spec, "spec", template_of, is_checked=is_checked, is_bad=is_bad)


def is_bad_selector(selector: Document | None) -> bool:
    """Tell whether a selector cannot be read."""
    if not selector:
        return False
    try:
        from_label_selector(selector)
    except ValueError:
        return True
    return any(key_problems(key) for key in selector.get("matchLabels") or ())


def template_labels(spec: Document) -> Any:
    """Return the labels of a kind's template, or None."""
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels")


def no_match(labels: Any, path: str) -> StatusCause:
    """Return what is wrong with a selector that does not select the Pods of its template."""
    text = "`selector` does not match template `labels`"
    return invalid_value(f"{path}.template.metadata.labels", labels, text)


def _template_causes(
    spec: Document, path: str, kind: str, *, is_checked: bool = True, is_bad: bool = False
) -> Iterator[StatusCause]:
    template = spec.get("template") or {}
    pod, where = spec_of(template), f"{path}.template.spec"
    if is_checked and not is_bad:
        checked = {**template, "spec": _as_created(spec)} if kind == "StatefulSet" else template
        yield from template_causes(checked, f"{path}.template")
    if kind == "StatefulSet" and not is_bad:  # looked at again (ValidatePodTemplateSpecForStatefulSet)
        yield from template_metadata_causes(template, f"{path}.template")
    if pod.get("restartPolicy") != "Always" and pod:
        yield not_supported(f"{where}.restartPolicy", pod.get("restartPolicy"), ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field(f"{where}.activeDeadlineSeconds", text)
