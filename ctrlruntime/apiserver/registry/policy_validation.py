"""Validation of RBAC, budgets, autoscalers, priorities, leases, events and API services, with kube-apiserver's words."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.pod_resources import resource_name_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.metadata import segment_causes
from ctrlruntime.schema.quantity import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    NON_NEGATIVE,
    PORT_RANGE,
    at_most_all_causes,
    choice_causes,
    go_struct,
    immutable_causes,
    label_1035_problems,
    label_causes,
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
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reportingComponent",
    "reportingInstance",
    "action",
    "type",
    "eventTime",
)
_METRICS: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""Where a metric comes from, in the order in which upstream looks."""
_SELECTS: Final = ("Disabled", "Max", "Min")
_EITHER: Final = "must set either a target raw value or a target utilization"


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
        for name in _EVENT_FIXED:
            if document.get(name) != old.get(name):
                yield invalid_value(name, document.get(name), "field is immutable")


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
    if not document.get("eventTime"):
        yield required("eventTime")
    if document.get("type") not in {"Normal", "Warning"}:
        yield invalid_value("type", "", f"has invalid value: {document.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if document.get(name):
            yield invalid_value(name, "", "needs to be unset")
    series = document.get("series")
    if series is not None:
        if series.get("count", 0) < 2:
            yield invalid_value("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield required("series.lastObservedTime")


# --- budgets, priorities, autoscalers


def budget_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = go_struct(spec, "MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
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
    if old is not None and value != old.get("value", 0):
        yield forbidden_field("value", "may not be changed in an update.")
    yield from immutable_causes(document, old, "preemptionPolicy")


def autoscaler_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    metrics = spec.get("metrics") or []
    share = spec.get("targetCPUUtilizationPercentage")
    if share is not None:  # autoscaling/v1
        target = {"type": "Utilization", "averageUtilization": share}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    if least < 1:
        yield invalid_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _target_ref_causes(spec.get("scaleTargetRef") or {}, "spec.scaleTargetRef")
    for index, metric in enumerate(metrics):
        yield from _metric_causes(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in {"Object", "External"} for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden_field("spec.metrics", text)
    for side in ("scaleUp", "scaleDown"):
        yield from _scaling_causes((spec.get("behavior") or {}).get(side) or {}, f"spec.behavior.{side}")


def _target_ref_causes(ref: Document, path: str) -> Iterator[StatusCause]:
    for name in ("kind", "name"):
        text = ref.get(name, "")
        if not text:
            yield required(f"{path}.{name}")
        yield from segment_causes(text, f"{path}.{name}")
    version = ref.get("apiVersion", "")
    if version.count("/") > 1:
        yield invalid_value(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    elif not version.rpartition("/")[0] and ref.get("kind") != "ReplicationController":
        yield invalid_value(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _metric_causes(metric: Document, path: str) -> Iterator[StatusCause]:
    """A metric: the first source that it has is judged, whatever its type says (validateMetricSpec in pkg/apis/autoscaling/validation)."""
    kind = metric.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _METRICS:
        yield not_supported(f"{path}.type", kind, tuple(sorted(_METRICS)))
    present = [(one, name) for one, name in _METRICS.items() if metric.get(name) is not None]
    for one, name in present[:1]:
        yield from _metric_source_causes(one, metric[name], f"{path}.{name}")
    if kind not in _METRICS:
        yield not_supported(f"{path}.type", kind, tuple(sorted(_METRICS)))
    elif metric.get(_METRICS[kind]) is None:
        yield required(f"{path}.{_METRICS[kind]}", "must populate information for the given metric source")
    if len(present) != 1:
        for one, name in present:
            if one != kind:
                yield forbidden_field(f"{path}.{name}", "must populate the given metric source only")


def _metric_source_causes(kind: str, source: Document, path: str) -> Iterator[StatusCause]:
    target: Document = source.get("target") or {}
    if kind == "Object":
        described: Document = source.get("describedObject") or {}
        yield from (required(f"{path}.describedObject.{name}") for name in ("kind", "name") if not described.get(name))
    if kind in {"Resource", "ContainerResource"}:
        if not source.get("name"):
            yield required(f"{path}.name", "must specify a resource name")
        elif kind == "ContainerResource":
            yield from resource_name_causes(source["name"], f"{path}.name", "containers")
        if kind == "ContainerResource" and not source.get("container"):
            yield required(f"{path}.container", "must specify a container")
        elif kind == "ContainerResource":
            yield from label_causes(source["container"], f"{path}.container")
    elif not (source.get("metric") or {}).get("name"):
        yield required(f"{path}.metric.name", "must specify a metric name")
    yield from _metric_target_causes(target, f"{path}.target")
    has_value = {name for name in ("value", "averageValue", "averageUtilization") if target.get(name) is not None}
    match kind:
        case "Pods" if "averageValue" not in has_value:
            yield required(f"{path}.target.averageValue", "must specify a positive target averageValue")
        case "Object" | "External" if not has_value & {"value", "averageValue"}:
            text = "must set either a target value or averageValue"
            if kind == "External":
                text = "must set either a target value for metric or a per-pod target"
            yield required(f"{path}.target.averageValue", text)
        case "Resource" | "ContainerResource":
            if not has_value & {"averageUtilization", "averageValue"}:
                yield required(f"{path}.target.averageUtilization", _EITHER)
            elif has_value >= {"averageUtilization", "averageValue"}:
                text = "may not set both a target raw value and a target utilization"
                yield forbidden_field(f"{path}.target.averageValue", text)
        case _:
            pass


def _metric_target_causes(target: Document, path: str) -> Iterator[StatusCause]:
    kind = target.get("type", "")
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in {"Utilization", "Value", "AverageValue"}:
        yield invalid_value(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for name in ("value", "averageValue"):
        if target.get(name) is not None and parse(target[name]) <= 0:
            yield invalid_value(f"{path}.{name}", target[name], "must be positive")
    if target.get("averageUtilization") is not None and target["averageUtilization"] < 1:
        yield invalid_value(f"{path}.averageUtilization", target["averageUtilization"], "must be greater than 0")


def _scaling_causes(rules: Document, path: str) -> Iterator[StatusCause]:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid_value(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid_value(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    if rules.get("selectPolicy") is not None and rules["selectPolicy"] not in _SELECTS:
        yield not_supported(f"{path}.selectPolicy", rules["selectPolicy"], _SELECTS)
    if rules.get("policies") == []:
        yield required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(rules.get("policies") or ()):
        where, seconds = f"{path}.policies[{index}]", policy.get("periodSeconds", 0)
        yield from choice_causes(policy.get("type", ""), f"{where}.type", ("Percent", "Pods"))
        if policy.get("value", 0) <= 0:
            yield invalid_value(f"{where}.value", policy.get("value", 0), "must be greater than zero")
        if seconds <= 0:
            yield invalid_value(f"{where}.periodSeconds", seconds, "must be greater than zero")
        elif seconds > 1800:
            yield invalid_value(f"{where}.periodSeconds", seconds, "must be less than or equal to 1800")


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
        shown = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
        yield invalid_value("roleRef", shown, "cannot change roleRef")


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
    if name != wanted:
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
