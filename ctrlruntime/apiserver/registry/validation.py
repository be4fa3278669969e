"""Validation of built-in kinds: the rules people run into, with kube-apiserver's words, never stricter than it.

Metadata is checked elsewhere, for all kinds alike. Takes an object that was read as its Go type and defaulted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.failures import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry.pod_validation import (
    NON_NEGATIVE,
    PORT_RANGE,
    PROTOCOLS,
    label_causes,
    pod_causes,
    pod_spec_causes,
    port_name_causes,
)
from ctrlruntime.errors import StatusCause
from ctrlruntime.selector import from_label_selector

_Rule: TypeAlias = Callable[[Document, Document | None], Iterator[StatusCause]]
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
IMMUTABLE: Final = "field is immutable"
_CONFIG_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
    "regex used for validation is '[-._a-zA-Z0-9]+')"
)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_IPV4: Final = re.compile(r"\d{1,3}(\.\d{1,3}){3}")


def validate(group: str, kind: str, document: Document, old: Document | None) -> list[StatusCause]:
    """Return what is wrong with an object (as an update of `old`, unless it is None); an empty list when nothing is."""
    rule = _RULES.get((group, kind))
    return list(rule(document, old)) if rule is not None else []


def _spec(document: Document | None) -> Document:
    found: Document = (document or {}).get("spec") or {}
    return found


# --- workloads


def _deployment(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    yield from _not_negative(spec, "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    yield from _selector_causes(spec, "deployment")
    yield from _template_causes(spec, "spec")
    yield from _strategy_causes(spec.get("strategy") or {})
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _immutable(document, old, "spec.selector")


def _strategy_causes(strategy: Document) -> Iterator[StatusCause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate" and rolling is not None:
        text = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden_field("spec.strategy.rollingUpdate", text)
    elif kind == "RollingUpdate" and rolling is not None:
        if {rolling.get("maxUnavailable"), rolling.get("maxSurge")} <= {0, "0%"}:
            text = "may not be 0 when `maxSurge` is 0"
            yield invalid_value("spec.strategy.rollingUpdate.maxUnavailable", rolling.get("maxUnavailable"), text)
    elif kind not in {"Recreate", "RollingUpdate"}:
        yield not_supported("spec.strategy.type", kind, ("Recreate", "RollingUpdate"))


def _replica_set(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    yield from _not_negative(spec, "replicas", "minReadySeconds")
    yield from _selector_causes(spec, "replicaset")
    yield from _template_causes(spec, "spec")
    yield from _immutable(document, old, "spec.selector")


def _stateful_set(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    yield from _not_negative(spec, "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from _selector_causes(spec, "statefulset")
    yield from _template_causes(spec, "spec")
    if spec.get("podManagementPolicy") not in {None, "OrderedReady", "Parallel"}:
        text = "must be 'OrderedReady' or 'Parallel'"
        yield invalid_value("spec.podManagementPolicy", spec["podManagementPolicy"], text)
    free = (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
    if old is not None and _without(spec, free) != _without(_spec(old), free):
        listed = ", ".join(f"'{name}'" for name in free[:-1])
        text = f"updates to statefulset spec for fields other than {listed} and '{free[-1]}' are forbidden"
        yield forbidden_field("spec", text)


def _daemon_set(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    yield from _not_negative(spec, "minReadySeconds", "revisionHistoryLimit")
    yield from _selector_causes(spec, "daemonset")
    yield from _template_causes(spec, "spec")
    yield from _immutable(document, old, "spec.selector")


def _job(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    yield from _not_negative(spec, "parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished")
    yield from _run_to_end_causes(spec, "spec")
    fields = ["spec.completions", "spec.selector", "spec.completionMode"]
    # A suspended job that never started may still be moved to other nodes.
    if not (_spec(old).get("suspend") and not ((old or {}).get("status") or {}).get("startTime")):
        fields.append("spec.template")
    yield from _immutable(document, old, *fields)


def _cron_job(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, name = _spec(document), str(document["metadata"].get("name", ""))
    if not spec.get("schedule"):
        yield required("spec.schedule")
    else:
        problem = _schedule_problem(str(spec["schedule"]))
        if problem:
            yield invalid_value("spec.schedule", spec["schedule"], problem)
    if spec.get("concurrencyPolicy") not in {"Allow", "Forbid", "Replace"}:
        yield not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy", ""), ("Allow", "Forbid", "Replace"))
    yield from _not_negative(spec, "startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    yield from _run_to_end_causes(_spec(spec.get("jobTemplate")), "spec.jobTemplate.spec")
    if old is None and len(name) > 52:
        yield invalid_value("metadata.name", name, "must be no more than 52 characters")


def _run_to_end_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """A Job's pods must come to an end."""
    template = spec.get("template") or {}
    policy = _spec(template).get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if policy in {None, "", "Always"}:
        yield required(where, 'valid values: "OnFailure", "Never"')
    elif policy not in {"OnFailure", "Never"}:
        yield not_supported(where, policy, ("OnFailure", "Never"))
    for cause in pod_spec_causes(_spec(template), f"{path}.template.spec"):
        if cause.field != where:
            yield cause


def _selector_causes(spec: Document, kind: str) -> Iterator[StatusCause]:
    selector = spec.get("selector")
    if selector is None:
        yield required("spec.selector")
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}")
        return
    problems = [
        cause
        for index, requirement in enumerate(selector.get("matchExpressions") or ())
        for cause in _requirement_causes(requirement, f"spec.selector.matchExpressions[{index}]")
    ]
    yield from problems
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    try:
        is_match = bool(problems) or from_label_selector(selector).matches(labels)
    except ValueError as error:
        yield invalid_value("spec.selector", selector, str(error))
        return
    if not is_match:
        text = "`selector` does not match template `labels`"
        yield invalid_value("spec.template.metadata.labels", labels, text)


def _requirement_causes(requirement: Document, path: str) -> Iterator[StatusCause]:
    operator = requirement.get("operator")
    if operator in {"In", "NotIn"} and not requirement.get("values"):
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in {"Exists", "DoesNotExist"} and requirement.get("values"):
        yield forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")


def _template_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    template = _spec(spec.get("template"))
    where = f"{path}.template.spec"
    yield from pod_spec_causes(template, where)
    if template.get("restartPolicy") in {"OnFailure", "Never"}:
        yield not_supported(f"{where}.restartPolicy", template["restartPolicy"], ("Always",))


_SCHEDULE_FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MACROS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_NAMES: Final = re.compile(r"(?i)(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)")


def _schedule_problem(schedule: str) -> str:
    if schedule in _MACROS or schedule.startswith("@every "):
        return ""
    if schedule.startswith("@"):
        return f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, (least, most) in zip(fields, _SCHEDULE_FIELDS, strict=True):
        for text in re.split(r"[,/-]", _NAMES.sub(str(least), field)):
            if text in {"*", "?"}:
                continue
            if not text.isdigit():
                return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
        for text in field.split(","):
            first = text.partition("/")[0].partition("-")[0]
            if first.isdigit() and int(first) > most:
                return f"end of range ({first}) above maximum ({most}): {text}"
            if first.isdigit() and int(first) < least:
                return f"beginning of range ({first}) below minimum ({least}): {text}"
    return ""


# --- services, networking


def _service(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    kind, ports = spec.get("type"), spec.get("ports") or ()
    if kind not in {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}:
        yield not_supported("spec.type", kind, ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    if kind == "ExternalName" and not spec.get("externalName"):
        yield required("spec.externalName")
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        yield required("spec.ports")
    yield from _service_port_causes(ports, kind)
    if spec.get("sessionAffinity") not in {"ClientIP", "None"}:
        yield not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    yield from _cluster_ip_causes(spec, _spec(old))


def _service_port_causes(ports: Iterable[Document], kind: Any) -> Iterator[StatusCause]:
    ports = list(ports)
    names: set[str] = set()
    for index, port in enumerate(ports):
        where, name, number = f"spec.ports[{index}]", port.get("name", ""), port.get("port", 0)
        if len(ports) > 1 and not name:
            yield required(f"{where}.name")
        elif name:
            yield from label_causes(name, f"{where}.name")
            if name in names:
                yield duplicate(f"{where}.name", name)
            names.add(name)
        if not 0 < number < 65536:
            yield invalid_value(f"{where}.port", number, PORT_RANGE)
        if port.get("protocol") not in PROTOCOLS:
            yield not_supported(f"{where}.protocol", port.get("protocol", ""), PROTOCOLS)
        target = port.get("targetPort")
        if isinstance(target, str):
            yield from port_name_causes(target, f"{where}.targetPort")
        elif target is not None and not 0 < target < 65536:
            yield invalid_value(f"{where}.targetPort", target, PORT_RANGE)
        if port.get("nodePort") and kind in {"ClusterIP", "ExternalName"}:
            yield forbidden_field(f"{where}.nodePort", f"may not be used when `type` is '{kind}'")


def _cluster_ip_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """An address is given once; only a change of type to or from ExternalName may change it."""
    held, wanted = before.get("clusterIP"), spec.get("clusterIP")
    if held and wanted and wanted != held and "ExternalName" not in {spec.get("type"), before.get("type")}:
        yield invalid_value("spec.clusterIPs[0]", spec.get("clusterIPs") or [wanted], "may not change once set")


def _ingress(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield invalid_value("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    for index, rule in enumerate(spec.get("rules") or ()):
        where = f"spec.rules[{index}]"
        yield from _host_causes(str(rule.get("host", "")), f"{where}.host")
        if rule.get("http") is not None and not rule["http"].get("paths"):
            yield required(f"{where}.http.paths")
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _ingress_path_causes(path, f"{where}.http.paths[{number}]")
    if spec.get("defaultBackend") is not None:
        yield from _backend_causes(spec["defaultBackend"], "spec.defaultBackend")


def _host_causes(host: str, path: str) -> Iterator[StatusCause]:
    if not host:
        return
    if _IPV4.fullmatch(host):
        yield invalid_value(path, host, "must be a DNS name, not an IP address")
    elif not _SUBDOMAIN.fullmatch(host.removeprefix("*.")):
        yield invalid_value(path, host, _SUBDOMAIN_TEXT)


def _ingress_path_causes(path: Document, where: str) -> Iterator[StatusCause]:
    kind, text = path.get("pathType"), str(path.get("path", ""))
    if not kind:
        yield required(f"{where}.pathType", "pathType must be specified")
    elif kind not in {"Exact", "ImplementationSpecific", "Prefix"}:
        yield not_supported(f"{where}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    elif not text.startswith("/") and (kind != "ImplementationSpecific" or text):
        yield invalid_value(f"{where}.path", text, "must be an absolute path")
    yield from _backend_causes(path.get("backend") or {}, f"{where}.backend")


def _backend_causes(backend: Document, path: str) -> Iterator[StatusCause]:
    service = backend.get("service")
    if service is None:
        if backend.get("resource") is None:
            yield required(path, "resource or service backend is required")
        return
    if not service.get("name"):
        yield required(f"{path}.service.name")
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        yield required(f"{path}.service.port", "port name or number is required")


# --- configuration


def _config_map(document: Document, old: Document | None) -> Iterator[StatusCause]:
    for name in ("data", "binaryData"):
        yield from _key_causes(document.get(name) or {}, name)
    for key in (document.get("data") or {}).keys() & (document.get("binaryData") or {}).keys():
        yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _sealed_causes(document, old, "data", "binaryData")


def _secret(document: Document, old: Document | None) -> Iterator[StatusCause]:
    data: Document = document.get("data") or {}
    yield from _key_causes(data, "data")
    match document.get("type"):
        case "kubernetes.io/tls":
            wanted: tuple[str, ...] = ("tls.crt", "tls.key")
        case "kubernetes.io/dockerconfigjson":
            wanted = (".dockerconfigjson",)
        case "kubernetes.io/dockercfg":
            wanted = (".dockercfg",)
        case "kubernetes.io/ssh-auth":
            wanted = ("ssh-privatekey",)
        case "kubernetes.io/basic-auth" if not {"username", "password"} & data.keys():
            wanted = ("username", "password")
        case _:
            wanted = ()
    yield from (required(f"data[{key}]") for key in wanted if key not in data)
    yield from _immutable(document, old, "type")
    yield from _sealed_causes(document, old, "data")


def _key_causes(data: Document, path: str) -> Iterator[StatusCause]:
    for key in data:
        if len(key) > 253:
            yield invalid_value(f"{path}[{key}]", key, "must be no more than 253 characters")
        if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
            yield invalid_value(f"{path}[{key}]", key, _CONFIG_KEY_TEXT)
        elif key in {".", ".."} or key.startswith(".."):
            yield invalid_value(f"{path}[{key}]", key, "must not start with '..'" if key != "." else "must not be '.'")


def _sealed_causes(document: Document, old: Document | None, *names: str) -> Iterator[StatusCause]:
    """Once `immutable` is true neither it nor the data changes."""
    if old is None or not old.get("immutable"):
        return
    text = "field is immutable when `immutable` is set"
    if not document.get("immutable"):
        yield forbidden_field("immutable", text)
    for name in names:
        if (document.get(name) or {}) != (old.get(name) or {}):
            yield forbidden_field(name, text)


def _claim(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield required("spec.resources[storage]")
    if old is not None and _spec(old).get("volumeName"):
        free = ("resources", "volumeAttributesClassName")
        if _without(spec, free) != _without(_spec(old), free):
            text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
            yield forbidden_field("spec", text)


# --- policy, coordination, RBAC, admission


def _lease(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, NON_NEGATIVE)


def _disruption_budget(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid_value("spec", spec, "minAvailable and maxUnavailable cannot be both set")


def _autoscaler(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = _spec(document)
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        yield invalid_value("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield invalid_value("spec.maxReplicas", most, "must be greater than 0")
    elif most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def _priority_class(document: Document, old: Document | None) -> Iterator[StatusCause]:
    if old is not None and document.get("value") != old.get("value"):
        yield forbidden_field("value", "may not be changed in an update.")


def _event(document: Document, old: Document | None) -> Iterator[StatusCause]:
    namespace = document["metadata"].get("namespace", "")
    about = (document.get("involvedObject") or {}).get("namespace", "")
    if old is None and about != namespace and (about or namespace != "default"):
        yield invalid_value("involvedObject.namespace", about, "does not match event.namespace")


def _role(document: Document, _: Document | None) -> Iterator[StatusCause]:
    is_namespaced = document.get("kind") == "Role"
    for index, rule in enumerate(document.get("rules") or ()):
        where, paths = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield required(f"{where}.verbs", "verbs must contain at least one value")
        if paths:
            if is_namespaced:
                yield invalid_value(
                    f"{where}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs"
                )
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid_value(f"{where}.nonResourceURLs", paths, text)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{where}.resources", "resource rules must supply at least one resource")


def _role_binding(document: Document, old: Document | None) -> Iterator[StatusCause]:
    ref = document.get("roleRef") or {}
    kinds = ("Role", "ClusterRole") if document.get("kind") == "RoleBinding" else ("ClusterRole",)
    if ref.get("apiGroup") != _RBAC:
        yield not_supported("roleRef.apiGroup", ref.get("apiGroup", ""), (_RBAC,))
    if ref.get("kind") not in kinds:
        yield not_supported("roleRef.kind", ref.get("kind", ""), kinds)
    if not ref.get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(document.get("subjects") or ()):
        where = f"subjects[{index}]"
        if not subject.get("name"):
            yield required(f"{where}.name")
        if subject.get("kind") not in {"ServiceAccount", "User", "Group"}:
            yield not_supported(f"{where}.kind", subject.get("kind", ""), ("ServiceAccount", "User", "Group"))
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"{where}.namespace")
    if old is not None and ref != old.get("roleRef"):
        yield invalid_value("roleRef", ref, "cannot change roleRef")


def _webhook_configuration(document: Document, _: Document | None) -> Iterator[StatusCause]:
    names: set[str] = set()
    for index, webhook in enumerate(document.get("webhooks") or ()):
        where, name = f"webhooks[{index}]", str(webhook.get("name", ""))
        if not name:
            yield required(f"{where}.name")
        elif len(name.split(".")) < 3:
            yield invalid_value(
                f"{where}.name", name, "should be a domain with at least three segments separated by dots"
            )
        if name in names:
            yield duplicate(f"{where}.name", name)
        names.add(name)
        if not webhook.get("admissionReviewVersions"):
            yield required(f"{where}.admissionReviewVersions", "must specify one of v1, v1beta1")
        if webhook.get("sideEffects") not in {"None", "NoneOnDryRun"}:
            yield _side_effects_cause(webhook.get("sideEffects"), f"{where}.sideEffects")
        timeout = webhook.get("timeoutSeconds", 10)
        if not 1 <= timeout <= 30:
            yield invalid_value(
                f"{where}.timeoutSeconds", timeout, "the timeout value must be between 1 and 30 seconds"
            )
        client = webhook.get("clientConfig") or {}
        if (client.get("url") is None) == (client.get("service") is None):
            yield required(f"{where}.clientConfig", "exactly one of url or service is required")


def _side_effects_cause(given: Any, path: str) -> StatusCause:
    if not given:
        return required(path, "must specify one of None, NoneOnDryRun")
    return not_supported(path, given, ("None", "NoneOnDryRun"))


# --- shared steps


def _not_negative(spec: Document, *names: str) -> Iterator[StatusCause]:
    for name in names:
        if spec.get(name) is not None and spec[name] < 0:
            yield invalid_value(f"spec.{name}", spec[name], NON_NEGATIVE)


def _immutable(document: Document, old: Document | None, *paths: str) -> Iterator[StatusCause]:
    for path in paths if old is not None else ():
        before, now = _at(old, path), _at(document, path)
        if before != now:
            yield invalid_value(path, now, IMMUTABLE)


def _at(document: Document | None, path: str) -> Any:
    value: Any = document
    for name in path.split("."):
        value = (value or {}).get(name)
    return value


def _without(spec: Document, names: Iterable[str]) -> Document:
    dropped = set(names)
    return {name: value for name, value in spec.items() if name not in dropped}


_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "ConfigMap"): _config_map,
    ("", "Event"): _event,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): pod_causes,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("coordination.k8s.io", "Lease"): _lease,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhook_configuration,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhook_configuration,
    (_RBAC, "ClusterRole"): _role,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    (_RBAC, "Role"): _role,
    (_RBAC, "RoleBinding"): _role_binding,
}
