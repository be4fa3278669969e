"""The cells of the kinds whose columns are more than one field each, one function a kind.

Each takes an object and the present time and returns the cells in the order of the recorded columns. The words are
kube-apiserver's: `<none>`, `<unset>`, `0/1`, `Init:0/1`, `Terminating`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.apiserver.tables.durations import age, duration, moment_of
from ctrlruntime.apiserver.tables.metrics import metric_targets
from ctrlruntime.schema.trees import Document

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def config_map(obj: Document, now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), _age(obj, now)]


def secret(obj: Document, now: datetime) -> list[Any]:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), _age(obj, now)]


def namespace(obj: Document, now: datetime) -> list[Any]:
    return [_name(obj), _status(obj).get("phase", ""), _age(obj, now)]


def pod(obj: Document, now: datetime) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    ready = sum(1 for c in _statuses(status) if c.get("ready") and _state(c, "running") is not None)
    ready += sum(1 for c in _sidecars(spec, status) if c.get("ready"))
    total = len(spec.get("containers") or ()) + len(_sidecar_names(spec))
    ips = status.get("podIPs") or ()
    return [
        _name(obj),
        f"{ready}/{total}",
        _pod_reason(obj),
        _pod_restarts(status, now),
        _age(obj, now),
        ips[0].get("ip", NONE) if ips else status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, status),
    ]


def deployment(obj: Document, now: datetime) -> list[Any]:
    status = _status(obj)
    return [
        _name(obj),
        f"{status.get('readyReplicas', 0)}/{_spec(obj).get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(obj, now),
        *_containers(_template(obj)),
        _selector(_spec(obj).get("selector")),
    ]


def replica_set(obj: Document, now: datetime) -> list[Any]:
    """ReplicaSet and ReplicationController; the latter's selector is a plain map."""
    status, selector = _status(obj), _spec(obj).get("selector")
    return [
        _name(obj),
        _spec(obj).get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        _age(obj, now),
        *_containers(_template(obj)),
        _labels(selector) if obj.get("kind") == "ReplicationController" else _selector(selector),
    ]


def stateful_set(obj: Document, now: datetime) -> list[Any]:
    ready = f"{_status(obj).get('readyReplicas', 0)}/{_spec(obj).get('replicas', 0)}"
    return [_name(obj), ready, _age(obj, now), *_containers(_template(obj))]


def daemon_set(obj: Document, now: datetime) -> list[Any]:
    status = _status(obj)
    return [
        _name(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        _labels(_template(obj).get("nodeSelector")),
        _age(obj, now),
        *_containers(_template(obj)),
        _selector(_spec(obj).get("selector")),
    ]


def job(obj: Document, now: datetime) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    parallelism = spec.get("parallelism", 0)
    succeeded = status.get("succeeded", 0)
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    return [
        _name(obj),
        _job_status(obj),
        completions,
        _job_duration(status, now),
        _age(obj, now),
        *_containers(_template(obj)),
        _selector(spec.get("selector")),
    ]


def cron_job(obj: Document, now: datetime) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    last, job_spec = status.get("lastScheduleTime"), _spec(spec.get("jobTemplate") or {})
    return [
        _name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        _boolean(spec.get("suspend")),
        len(status.get("active") or ()),
        age(last, now) if last else NONE,
        _age(obj, now),
        *_containers((job_spec.get("template") or {}).get("spec") or {}),
        _selector(job_spec.get("selector")),
    ]


def service(obj: Document, now: datetime) -> list[Any]:
    spec = _spec(obj)
    ips = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    ports = ",".join(_service_port(port) for port in spec.get("ports") or ())
    return [
        _name(obj),
        spec.get("type", ""),
        ips[0] if spec.get("type") != "ExternalName" else NONE,
        _external_ip(spec, _status(obj)),
        ports or NONE,
        _age(obj, now),
        _labels(spec.get("selector")),
    ]


def endpoints(obj: Document, now: datetime) -> list[Any]:
    return [_name(obj), _endpoint_addresses(obj.get("subsets") or []) if obj.get("subsets") else NONE, _age(obj, now)]


def endpoint_slice(obj: Document, now: datetime) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [str(address) for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [
        _name(obj),
        obj.get("addressType", ""),
        _first_three(ports) or UNSET,
        _first_three(addresses) or UNSET,
        _age(obj, now),
    ]


def node(obj: Document, now: datetime) -> list[Any]:
    info = _status(obj).get("nodeInfo") or {}
    return [
        _name(obj),
        _node_status(obj),
        _node_roles(obj),
        _age(obj, now),
        info.get("kubeletVersion", ""),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def event(obj: Document, now: datetime) -> list[Any]:
    """Event of the core group and of events.k8s.io, whose fields have other names."""
    regarding = obj.get("involvedObject") or obj.get("regarding") or {}
    series = obj.get("series") or {}
    event_time = obj.get("eventTime")
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or event_time
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    kind = str(regarding.get("kind", "")).lower()
    return [
        age(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{regarding['name']}" if regarding.get("name") else kind,
        regarding.get("fieldPath", ""),
        _event_source(obj),
        str(obj.get("message") or obj.get("note") or "").strip(),
        age(first, now),
        series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1,
        _name(obj),
    ]


def ingress(obj: Document, now: datetime) -> list[Any]:
    spec = _spec(obj)
    return [
        _name(obj),
        spec.get("ingressClassName") or NONE,
        _hosts(spec.get("rules") or []),
        ",".join(_balancers(_status(obj))),
        "80, 443" if spec.get("tls") else "80",
        _age(obj, now),
    ]


def ip_address(obj: Document, now: datetime) -> list[Any]:
    """One cell more than there are columns, as upstream has it."""
    parent: Document = _spec(obj).get("parentRef") or {}
    resource = ".".join(filter(None, (parent.get("resource"), parent.get("group"))))
    shown = "/".join(filter(None, (resource, parent.get("namespace"), parent.get("name"))))
    return [_name(obj), shown, _age(obj, now)]


def network_policy(obj: Document, now: datetime) -> list[Any]:
    return [_name(obj), _selector(_spec(obj).get("podSelector")), _age(obj, now)]


def persistent_volume_claim(obj: Document, now: datetime) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    is_bound = bool(spec.get("volumeName"))
    return [
        _name(obj),
        _phase(obj),
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "0") if is_bound else "",
        _access_modes(status.get("accessModes")) if is_bound else "",
        class_of(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        _age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def persistent_volume(obj: Document, now: datetime) -> list[Any]:
    spec, claim = _spec(obj), _spec(obj).get("claimRef") or {}
    return [
        _name(obj),
        (spec.get("capacity") or {}).get("storage", ""),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        class_of(obj),
        spec.get("volumeAttributesClassName") or UNSET,
        _status(obj).get("reason", ""),
        _age(obj, now),
        spec.get("volumeMode") or UNSET,
    ]


def pod_template(obj: Document, _: datetime) -> list[Any]:
    template = obj.get("template") or {}
    return [_name(obj), *_containers(_spec(template)), _labels((template.get("metadata") or {}).get("labels"))]


def resource_quota(obj: Document, now: datetime) -> list[Any]:
    hard, used = _status(obj).get("hard") or {}, _status(obj).get("used") or {}
    shares = {name: f"{name}: {used.get(name, '0')}/{limit}" for name, limit in sorted(hard.items())}
    limits = ", ".join(text for name, text in shares.items() if name.startswith("limits"))
    requests = ", ".join(text for name, text in shares.items() if not name.startswith("limits"))
    return [_name(obj), requests, limits, _age(obj, now)]


def controller_revision(obj: Document, now: datetime) -> list[Any]:
    owner = next((ref for ref in _metadata(obj).get("ownerReferences") or () if ref.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")).lower()
        controller = f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return [_name(obj), controller, obj.get("revision", 0), _age(obj, now)]


def horizontal_pod_autoscaler(obj: Document, now: datetime) -> list[Any]:
    spec, target = _spec(obj), _spec(obj).get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    return [
        _name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        metric_targets(spec, _status(obj)),
        UNSET if minimum is None else str(minimum),
        spec.get("maxReplicas", 0),
        _status(obj).get("currentReplicas", 0),
        _age(obj, now),
    ]


def pod_disruption_budget(obj: Document, now: datetime) -> list[Any]:
    spec = _spec(obj)
    return [
        _name(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        _status(obj).get("disruptionsAllowed", 0),
        _age(obj, now),
    ]


def role_binding(obj: Document, now: datetime) -> list[Any]:
    ref, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()

    def named(kind: str) -> str:
        return ", ".join(str(s.get("name", "")) for s in subjects if s.get("kind") == kind)

    accounts = ", ".join(
        f"{s.get('namespace', '')}/{s.get('name', '')}" for s in subjects if s.get("kind") == "ServiceAccount"
    )
    return [
        _name(obj),
        f"{ref.get('kind', '')}/{ref.get('name', '')}",
        _age(obj, now),
        named("User"),
        named("Group"),
        accounts,
    ]


def _metadata(obj: Document) -> Document:
    return obj.get("metadata") or {}


def _name(obj: Document) -> str:
    return str(_metadata(obj).get("name", ""))


def _age(obj: Document, now: datetime) -> str:
    return age(_metadata(obj).get("creationTimestamp"), now)


def admission_policy(obj: Document, now: datetime) -> list[Any]:
    """The validating and the mutating kind."""
    spec, kind = _spec(obj), _spec(obj).get("paramKind")
    shown = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [_name(obj), len(spec.get("validations") or spec.get("mutations") or ()), shown, _age(obj, now)]


def admission_policy_binding(obj: Document, now: datetime) -> list[Any]:
    reference = _spec(obj).get("paramRef") or {}
    shown = UNSET
    if reference.get("name"):
        shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
    elif reference.get("selector") is not None:
        shown = _go_selector(reference["selector"])
    return [_name(obj), _spec(obj).get("policyName", ""), shown, _age(obj, now)]


def _go_selector(selector: Document) -> str:
    """A selector as Go prints the struct."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    listed = f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},{listed},}}"


def api_service(obj: Document, now: datetime) -> list[Any]:
    service = _spec(obj).get("service")
    shown = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    found = [each for each in _status(obj).get("conditions") or () if each.get("type") == "Available"]
    available = "Unknown"
    if found:
        status, reason = found[0].get("status", ""), found[0].get("reason")
        available = f"{status} ({reason})" if reason and status != "True" else status
    return [_name(obj), shown, available, _age(obj, now)]


def resource_claim(obj: Document, now: datetime) -> list[Any]:
    status, is_deleted = _status(obj), obj["metadata"].get("deletionTimestamp") is not None
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", *(["reserved"] if status.get("reservedFor") else [])]
    elif not is_deleted:
        states.append("pending")
    return [_name(obj), ",".join(states), _age(obj, now)]


def _spec(obj: Document) -> Document:
    return obj.get("spec") or {}


def _status(obj: Document) -> Document:
    return obj.get("status") or {}


def _template(obj: Document) -> Document:
    return _spec(_spec(obj).get("template") or {})


def _phase(obj: Document) -> str:
    return "Terminating" if _metadata(obj).get("deletionTimestamp") else str(_status(obj).get("phase", ""))


def _boolean(value: Any) -> str:
    return UNSET if value is None else str(bool(value))


def _condition(obj: Document, kind: str) -> Document | None:
    return next((c for c in _status(obj).get("conditions") or () if c.get("type") == kind), None)


def _is_true(obj: Document, kind: str) -> bool:
    condition = _condition(obj, kind)
    return condition is not None and condition.get("status") == "True"


def _containers(pod_spec: Document) -> list[str]:
    containers = pod_spec.get("containers") or ()
    return [",".join(str(c.get("name", "")) for c in containers), ",".join(str(c.get("image", "")) for c in containers)]


def _labels(labels: Document | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _selector(selector: Document | None) -> str:
    if selector is None:
        return NONE
    parts = {key: f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()}
    for wanted in selector.get("matchExpressions") or ():
        key, values = wanted.get("key", ""), ",".join(sorted(wanted.get("values") or ()))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts[f"{key} "] = str(text.get(wanted.get("operator", ""), "<error>"))
    return ",".join(parts[key] for key in sorted(parts)) or NONE


def _first_three(values: Sequence[str]) -> str:
    shown = ",".join(values[:3])
    return f"{shown} + {len(values) - 3} more..." if len(values) > 3 else shown


def _hosts(rules: Sequence[Document]) -> str:
    """The first three hosts; the others are counted with rules that have none (formatHosts in pkg/printers/internalversion)."""
    named = [index for index, rule in enumerate(rules) if rule.get("host")]
    shown = ",".join(str(rules[index]["host"]) for index in named[:3])
    has_more = len(named) >= 3 and named[2] < len(rules) - 1
    return f"{shown} + {len(rules) - 3} more..." if has_more else shown or "*"


def _access_modes(modes: Iterable[str] | None) -> str:
    wanted = set(modes or ())
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in wanted)


def _statuses(status: Document) -> Sequence[Document]:
    return status.get("containerStatuses") or ()


def _state(container: Document, kind: str) -> Document | None:
    state: Document | None = (container.get("state") or {}).get(kind)
    return state


def _sidecar_names(spec: Document) -> set[str]:
    return {str(c.get("name")) for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}


def _sidecars(spec: Document, status: Document) -> list[Document]:
    names = _sidecar_names(spec)
    return [c for c in status.get("initContainerStatuses") or () if c.get("name") in names]


def _pod_reason(obj: Document) -> str:
    spec, status = _spec(obj), _status(obj)
    reason = str(status.get("reason") or status.get("phase", ""))
    scheduled = _condition(obj, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    initializing = _init_reason(spec, status)
    is_initializing = initializing is not None and not _is_true(obj, "Initialized")
    reason = initializing or "" if is_initializing else _container_reason(obj, reason)
    if _metadata(obj).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in _FINISHED:
            return "Terminating"
    return reason


def _init_reason(spec: Document, status: Document) -> str | None:
    sidecars = _sidecar_names(spec)
    total = len(spec.get("initContainers") or ())
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        terminated, waiting = _state(container, "terminated"), _state(container, "waiting")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            continue
        if terminated is not None:
            return f"Init:{terminated.get('reason') or _ended(terminated)}"
        if waiting is not None and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return None


def _container_reason(obj: Document, reason: str) -> str:
    has_running = False
    for container in reversed(_statuses(_status(obj))):
        waiting, terminated = _state(container, "waiting"), _state(container, "terminated")
        if waiting is not None and waiting.get("reason"):
            reason = str(waiting["reason"])
        elif terminated is not None:
            reason = str(terminated.get("reason") or _ended(terminated))
        elif container.get("ready") and _state(container, "running") is not None:
            has_running = True
    if reason == "Completed" and has_running:
        return "Running" if _is_true(obj, "Ready") else "NotReady"
    return reason


def _ended(terminated: Document) -> str:
    return f"Signal:{terminated['signal']}" if terminated.get("signal") else f"ExitCode:{terminated.get('exitCode', 0)}"


def _pod_restarts(status: Document, now: datetime) -> str:
    containers = [*_statuses(status)]
    restarts = sum(int(c.get("restartCount", 0)) for c in containers)
    ends = [((c.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for c in containers]
    last = max((end for end in ends if end), default=None)
    return f"{restarts} ({age(last, now)} ago)" if restarts and last else str(restarts)


def _readiness_gates(spec: Document, status: Document) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    met = sum(1 for gate in gates if _is_true({"status": status}, gate.get("conditionType", "")))
    return f"{met}/{len(gates)}"


def _job_status(obj: Document) -> str:
    for kind, text in (("Complete", "Complete"), ("Failed", "Failed")):
        if _is_true(obj, kind):
            return text
    if _metadata(obj).get("deletionTimestamp"):
        return "Terminating"
    return next((k for k in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if _is_true(obj, k)), "Running")


def _job_duration(status: Document, now: datetime) -> str:
    start, end = moment_of(status.get("startTime")), moment_of(status.get("completionTime"))
    return duration(((end or now) - start).total_seconds()) if start is not None else ""


def _service_port(port: Document) -> str:
    node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node_port}/{port.get('protocol', 'TCP')}"


def _external_ip(spec: Document, status: Document) -> str:
    external = [str(ip) for ip in spec.get("externalIPs") or ()]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") != "LoadBalancer":
        return ",".join(external) or NONE
    return ",".join([*_balancers(status), *external]) or "<pending>"


def _balancers(status: Document) -> list[str]:
    """The addresses of load balancers, or their hosts, in order."""
    addresses = (status.get("loadBalancer") or {}).get("ingress") or ()
    return sorted({str(one.get("ip") or one.get("hostname") or "") for one in addresses} - {""})


def _endpoint_addresses(subsets: Iterable[Document]) -> str:
    found: list[str] = []
    for subset in subsets:
        addresses = [str(address.get("ip", "")) for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        joined = [f"[{ip}]" if ":" in ip else ip for ip in addresses]
        found += [f"{ip}:{port.get('port')}" for port in ports for ip in joined] if ports else addresses
    return _first_three(found)


def _node_status(obj: Document) -> str:
    ready = _condition(obj, "Ready")
    text = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if _spec(obj).get("unschedulable") else text


def _node_roles(obj: Document) -> str:
    labels = _metadata(obj).get("labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(roles)) or NONE


def _node_address(obj: Document, kind: str) -> str:
    found = (a.get("address") for a in _status(obj).get("addresses") or () if a.get("type") == kind)
    return str(next(found, NONE))


def _event_source(obj: Document) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else str(component)
