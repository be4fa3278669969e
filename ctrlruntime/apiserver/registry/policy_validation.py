"""Validation of RBAC, budgets, priorities, leases, events and API services, with kube-apiserver's words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.metadata import segment_causes, segment_problems
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    NON_NEGATIVE,
    PORT_RANGE,
    at_most_all_causes,
    choice_causes,
    immutable_causes,
    label_1035_problems,
    qualified_name_causes,
    selector_causes,
    share_causes,
    spec_of,
    subdomain_causes,
)
from ctrlruntime.selector import utf8_length

RBAC: Final = "rbac.authorization.k8s.io"
_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_EVENT_LIMITS: Final = (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))
_EVENT_FIXED: Final = (
    ("involvedObject", "core.ObjectReference"),
    ("reason", "s"),
    ("message", "s"),
    ("source", "core.EventSource"),
    ("firstTimestamp", "*~"),
    ("lastTimestamp", "*~"),
    ("count", "i"),
    ("reason", "s"),
    ("type", "s"),
    ("eventTime", "*~"),
    ("action", "s"),
    ("related", "*core.ObjectReference"),
    ("reportingComponent", "s"),
    ("reportingInstance", "s"),
)
"""What never changes of an Event of events.k8s.io, in upstream's order; it looks at the reason twice."""


# --- coordination and events


def lease_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, NON_NEGATIVE)


def event_causes(document: Document, old: Document | None, *, is_new_style: bool) -> Iterator[StatusCause]:
    """An Event in its core form; `is_new_style` is True for one written through events.k8s.io."""
    namespace = document["metadata"].get("namespace", "")
    about = (document.get("involvedObject") or {}).get("namespace", "")
    is_timed = bool(document.get("eventTime"))
    is_elsewhere = about != namespace and (about or namespace != "default")
    if (not about and namespace not in {"default", "kube-system"}) if is_timed else is_elsewhere:
        yield invalid_value("involvedObject.namespace", about, "does not match event.namespace")
    if is_timed:
        yield from _timed_event_causes(document, "reportingController" if is_new_style else "reportingComponent")
    if is_new_style and old is None:
        yield from _new_event_causes(document)
    if is_new_style and old is not None:
        if document.get("series") != old.get("series"):
            yield from _series_causes(document.get("series"))
        for name, kind in _EVENT_FIXED:
            if document.get(name) != old.get(name):
                shown = "reportingController" if name == "reportingComponent" else name
                yield invalid_value(shown, internal(kind, document.get(name)), IMMUTABLE)


def _timed_event_causes(document: Document, who: str) -> Iterator[StatusCause]:
    """An Event with an eventTime must say who reports what (legacyValidateEvent in pkg/apis/core/validation/events.go)."""
    component = document.get("reportingComponent", "")
    if not component:
        yield required(who)
    yield from qualified_name_causes(component, who)
    for name, limit in _EVENT_LIMITS:
        text = document.get(name, "")
        if not text and name != "message":
            yield required(name)
        if utf8_length(text) > limit:
            yield invalid_value(name, "", f"can have at most {limit} characters")


def _new_event_causes(document: Document) -> Iterator[StatusCause]:
    yield from _series_causes(document.get("series"))
    if not document.get("eventTime"):
        yield required("eventTime")
    if document.get("type") not in {"Normal", "Warning"}:
        yield invalid_value("type", "", f"has invalid value: {document.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if document.get(name):
            yield invalid_value(name, "", "needs to be unset")


def _series_causes(series: Document | None) -> Iterator[StatusCause]:
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield invalid_value("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield required("series.lastObservedTime")


# --- budgets, priorities, autoscalers


def budget_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = internal("policy.PodDisruptionBudgetSpec", spec)
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        yield from share_causes(spec.get(name), f"spec.{name}")
        yield from at_most_all_causes(spec.get(name), f"spec.{name}")
    yield from selector_causes(spec.get("selector"), "spec.selector")
    if spec.get("unhealthyPodEvictionPolicy") is not None:
        policy = spec["unhealthyPodEvictionPolicy"]
        yield from choice_causes(policy, "spec.unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))


def priority_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    name, value = str(document["metadata"].get("name", "")), document.get("value", 0)
    if old is not None:
        if value != old.get("value", 0):
            yield forbidden_field("value", "may not be changed in an update.")
        yield from immutable_causes(document, old, "preemptionPolicy")
        return
    if name.startswith("system-"):
        known, why = _SYSTEM_PRIORITIES.get(name), ""
        if known is None:
            why = f"{name} is not a known system priority class"
        elif value != known:
            why = f"value of {name} PriorityClass must be {known}"
        if why:
            text = "priority class names with 'system-' prefix are reserved for system use only. error:"
            yield forbidden_field("metadata.name", f"{text} {why}")
    elif value > _USER_PRIORITY:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_USER_PRIORITY}")
    policy = document.get("preemptionPolicy")
    if policy == "":
        yield required("preemptionPolicy")
    elif policy is not None:
        yield from choice_causes(policy, "preemptionPolicy", ("PreemptLowerPriority", "Never"))


# --- RBAC


def role_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    is_namespaced = document.get("kind") == "Role"
    for index, rule in enumerate(document.get("rules") or ()):
        where, paths = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{where}.verbs", "verbs must contain at least one value")
        if paths:
            if is_namespaced:
                text = "namespaced rules cannot apply to non-resource URLs"
                yield invalid_value(f"{where}.nonResourceURLs", paths, text)
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid_value(f"{where}.nonResourceURLs", paths, text)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{where}.resources", "resource rules must supply at least one resource")
    aggregation = document.get("aggregationRule")
    if aggregation is not None:
        path = "aggregationRule.clusterRoleSelectors"
        selectors = aggregation.get("clusterRoleSelectors") or ()
        if not selectors:
            yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(selectors):
            causes = list(selector_causes(selector, f"{path}[{index}]"))
            yield from causes
            if causes:
                yield invalid_value(f"{path}[{index}]", None, "invalid label selector.")


def role_binding_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    ref, is_namespaced = document.get("roleRef") or {}, document.get("kind") == "RoleBinding"
    if ref.get("apiGroup") != RBAC:
        yield not_supported("roleRef.apiGroup", ref.get("apiGroup", ""), (RBAC,))
    kinds = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)
    yield from choice_causes(ref.get("kind", ""), "roleRef.kind", kinds)
    if not ref.get("name"):
        yield required("roleRef.name")
    else:
        yield from segment_causes(ref["name"], "roleRef.name")
    for index, subject in enumerate(document.get("subjects") or ()):
        yield from _subject_causes(subject, f"subjects[{index}]", is_namespaced=is_namespaced)
    if old is not None and ref != old.get("roleRef"):
        yield invalid_value("roleRef", internal("rbac.RoleRef", ref), "cannot change roleRef")


def _subject_causes(subject: Document, path: str, *, is_namespaced: bool) -> Iterator[StatusCause]:
    kind, group = subject.get("kind"), subject.get("apiGroup", "")
    if not subject.get("name"):
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if subject.get("name"):
            yield from subdomain_causes(subject["name"], f"{path}.name")
        if group:
            yield not_supported(f"{path}.apiGroup", group, ("",))
        if not is_namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind in {"User", "Group"}:
        if group != RBAC:
            yield not_supported(f"{path}.apiGroup", group, (RBAC,))
    else:
        yield not_supported(f"{path}.kind", kind or "", ("ServiceAccount", "User", "Group"))


# --- API services


def api_service_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec, name = spec_of(document), str(document["metadata"].get("name", ""))
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted and not segment_problems(name):
        yield invalid_value("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if not spec.get("group") and spec.get("version") != "v1":
        yield required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    elif spec.get("group"):
        yield from subdomain_causes(spec["group"], "spec.group")
    version = spec.get("version", "")
    yield from (invalid_value("spec.version", version, problem) for problem in label_1035_problems(version))
    for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        number = spec.get(field, 0)
        if not 0 < number <= limit:
            yield invalid_value(f"spec.{field}", number, f"must be positive and less than {limit}")
    yield from _aggregated_causes(spec)


def api_service_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    for index, condition in enumerate((document.get("status") or {}).get("conditions") or ()):
        yield from choice_causes(condition.get("status"), f"status.conditions[{index}].status", _STATES)


_STATES: Final = ("True", "False", "Unknown")


def _aggregated_causes(spec: Document) -> Iterator[StatusCause]:
    """The server of a group version: another one, or this one."""
    service, bundle, is_insecure = spec.get("service"), spec.get("caBundle"), bool(spec.get("insecureSkipTLSVerify"))
    if service is None:
        if bundle:
            size = len(base64.b64decode(bundle))
            yield invalid_value("spec.caBundle", f"{size} bytes", "local APIServices may not have a caBundle")
        if is_insecure:
            text = "local APIServices may not have insecureSkipTLSVerify"
            yield invalid_value("spec.insecureSkipTLSVerify", True, text)
        return
    yield from (required(f"spec.service.{name}") for name in ("namespace", "name") if not service.get(name))
    port = service.get("port")
    if not 0 < port < 65536:
        yield invalid_value("spec.service.port", port, f"port is not valid: {PORT_RANGE}")
    if is_insecure and bundle:
        yield invalid_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")
