"""What the API server fills in on built-in kinds: defaults of the types, and values only a server can choose.

OpenAPI does not hold these defaults, so they are written here by hand, a function a kind. Takes the stored form of an
object and changes it in place; `assign` also reads what exists, to give out cluster IPs, node ports and names.
"""

from __future__ import annotations

import base64
import ipaddress
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.interfaces import API, Document
from ctrlruntime.apiserver.quantity import parse

SERVICE_NETWORK: Final = ipaddress.IPv4Network("10.0.0.0/24")
NODE_PORTS: Final = range(30000, 32768)
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_Rule: TypeAlias = Callable[[Document], None]


def default(group: str, kind: str, document: Document) -> None:
    """Set every default of a built-in kind on an object that was read as its Go type. Other kinds are left alone.

    Applying it twice changes nothing.
    """
    rule = _RULES.get((group, kind))
    if rule is not None:
        rule(document)


def assign(
    group: str,
    kind: str,
    document: Document,
    api: API,
    *,
    old: Document | None = None,
    rng: random.Random | None = None,
) -> None:
    """Set what only the server can choose. Call it after `default` with metadata.uid set and with no await before the
    write.

    `old` is the stored object when this is an update: what it holds and the new one leaves out is kept.
    """
    rng = rng or random.Random()  # noqa: S311 - addresses and ports are no secrets
    match (group, kind):
        case ("", "Service"):
            _assign_service(document, api, old, rng)
        case ("", "Namespace") if old is None:
            _spec(document).setdefault("finalizers", ["kubernetes"])
        case ("", "Pod") if old is None:
            _assign_pod(document, api)
        case ("", "Node") if old is None:
            _assign_node(document)
        case ("batch", "Job") if old is None:
            _assign_job(document)
        case _:
            pass


def default_pod_spec(spec: Document) -> None:
    """Set the defaults that pods and pod templates share."""
    _put(spec, "restartPolicy", "Always")
    _put(spec, "terminationGracePeriodSeconds", 30)
    _put(spec, "dnsPolicy", "ClusterFirst")
    _put(spec, "securityContext", {})
    _put(spec, "schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (
        *_items(spec, "initContainers"),
        *_items(spec, "containers"),
        *_items(spec, "ephemeralContainers"),
    ):
        _container(container, is_host_network=bool(spec.get("hostNetwork")))
    for volume in _items(spec, "volumes"):
        _volume(volume)


def qos_class(spec: Document) -> str:
    """Return Guaranteed, Burstable or BestEffort from the requests and limits of cpu and memory."""
    containers = [*_items(spec, "containers"), *_items(spec, "initContainers")]
    amounts = [
        ((c.get("resources") or {}).get("requests") or {}, (c.get("resources") or {}).get("limits") or {})
        for c in containers
    ]
    if not any(_amount(side, name) for pair in amounts for side in pair for name in ("cpu", "memory")):
        return "BestEffort"
    is_exact = all(
        _amount(limits, name) and _amount(requests, name) in {None, _amount(limits, name)}
        for requests, limits in amounts
        for name in ("cpu", "memory")
    )
    return "Guaranteed" if is_exact else "Burstable"


def _amount(side: Document, name: str) -> Any:
    try:
        return parse(side[name]) or None
    except (KeyError, ValueError):
        return None


def _put(tree: Document, name: str, value: Any) -> None:
    present = tree.get(name)
    if present is None or present == "":
        tree[name] = value


def _spec(document: Document) -> Document:
    spec: Document = document.setdefault("spec", {})
    return spec


def _items(tree: Document, name: str) -> Iterator[Document]:
    """Yield the members that are objects, whatever was sent; validation names the others."""
    found = tree.get(name)
    if isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))


def _inner(tree: Document, *path: str) -> Document | None:
    value: Any = tree
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _template(document: Document) -> None:
    spec = _inner(document, "spec", "template", "spec")
    if spec is not None:
        default_pod_spec(spec)


# --- pods


def _container(container: Document, *, is_host_network: bool) -> None:
    _put(container, "terminationMessagePath", "/dev/termination-log")
    _put(container, "terminationMessagePolicy", "File")
    _put(container, "imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    for port in _items(container, "ports"):
        _put(port, "protocol", "TCP")
        if is_host_network and port.get("containerPort"):
            _put(port, "hostPort", port["containerPort"])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        _probe(_inner(container, name))
    for hook in ("postStart", "preStop"):
        _http_get(_inner(container, "lifecycle", hook, "httpGet"))
    for variable in _items(container, "env"):
        _field_ref(_inner(variable, "valueFrom", "fieldRef"))


def _pull_policy(image: str) -> str:
    """Always for `latest` or no tag at all; a digest without a tag counts as a tag."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def _probe(probe: Document | None) -> None:
    if probe is None:
        return
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        _put(probe, name, value)
    _http_get(_inner(probe, "httpGet"))
    grpc = _inner(probe, "grpc")
    if grpc is not None:
        grpc.setdefault("service", "")


def _http_get(action: Document | None) -> None:
    if action is not None:
        _put(action, "path", "/")
        _put(action, "scheme", "HTTP")


def _field_ref(ref: Document | None) -> None:
    if ref is not None:
        _put(ref, "apiVersion", "v1")


def _volume(volume: Document) -> None:
    if not any(isinstance(value, dict) for value in volume.values()):
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        source = _inner(volume, name)
        if source is not None:
            _put(source, "defaultMode", 420)
            for item in _items(source, "items"):
                _field_ref(_inner(item, "fieldRef"))
    host_path = _inner(volume, "hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")
    for source in _items(_inner(volume, "projected") or {}, "sources"):
        token = _inner(source, "serviceAccountToken")
        if token is not None:
            _put(token, "expirationSeconds", 3600)
        for item in _items(_inner(source, "downwardAPI") or {}, "items"):
            _field_ref(_inner(item, "fieldRef"))
    claim = _inner(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if claim is not None:
        _put(claim, "volumeMode", "Filesystem")


def _pod(document: Document) -> None:
    spec = _spec(document)
    default_pod_spec(spec)
    _put(spec, "enableServiceLinks", True)
    for container in (*_items(spec, "containers"), *_items(spec, "initContainers")):
        resources = _inner(container, "resources") or {}
        for name, value in (_inner(resources, "limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, value)
    status = document.setdefault("status", {})
    _put(status, "phase", "Pending")
    _put(status, "qosClass", qos_class(spec))


def _assign_pod(document: Document, api: API) -> None:
    """What the admission plugins Priority and DefaultTolerationSeconds do on create."""
    spec = _spec(document)
    name = str(spec.get("priorityClassName", ""))
    chosen = api.get("scheduling.k8s.io", "priorityclasses", "", name) if name else None
    _put(spec, "priority", int(chosen["value"]) if chosen else 0)
    _put(spec, "preemptionPolicy", chosen.get("preemptionPolicy") if chosen else "PreemptLowerPriority")
    tolerations: list[Document] = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _tolerates(toleration: Document, key: str) -> bool:
    return toleration.get("key") in {None, "", key} and toleration.get("effect") in {None, "", "NoExecute"}


def _assign_node(document: Document) -> None:
    """A new node counts as not ready until it says otherwise."""
    taints: list[Document] = _spec(document).setdefault("taints", [])
    key = "node.kubernetes.io/not-ready"
    if not any(taint.get("key") == key and taint.get("effect") == "NoSchedule" for taint in taints):
        taints.append({"key": key, "effect": "NoSchedule"})


# --- workloads


def _deployment(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "replicas", 1)
    strategy: Document = spec.setdefault("strategy", {})
    _put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _put(strategy, "rollingUpdate", {})
        _put(strategy["rollingUpdate"], "maxUnavailable", "25%")
        _put(strategy["rollingUpdate"], "maxSurge", "25%")
    _put(spec, "revisionHistoryLimit", 10)
    _put(spec, "progressDeadlineSeconds", 600)
    _template(document)


def _replica_set(document: Document) -> None:
    _put(_spec(document), "replicas", 1)
    _template(document)


def _replication_controller(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "replicas", 1)
    labels = _inner(spec, "template", "metadata", "labels")
    if labels:
        _put(spec, "selector", dict(labels))
        _put(document["metadata"], "labels", dict(labels))
    _template(document)


def _stateful_set(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "podManagementPolicy", "OrderedReady")
    strategy: Document = spec.setdefault("updateStrategy", {})
    _put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _put(strategy, "rollingUpdate", {})
        _put(strategy["rollingUpdate"], "partition", 0)
    retention: Document = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    _put(retention, "whenDeleted", "Retain")
    _put(retention, "whenScaled", "Retain")
    _put(spec, "replicas", 1)
    _put(spec, "revisionHistoryLimit", 10)
    for claim in _items(spec, "volumeClaimTemplates"):
        claim.update({"kind": "PersistentVolumeClaim", "apiVersion": "v1"})
        _persistent_volume_claim(claim)
    _template(document)


def _daemon_set(document: Document) -> None:
    spec = _spec(document)
    strategy: Document = spec.setdefault("updateStrategy", {})
    _put(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _put(strategy, "rollingUpdate", {})
        _put(strategy["rollingUpdate"], "maxUnavailable", 1)
        _put(strategy["rollingUpdate"], "maxSurge", 0)
    _put(spec, "revisionHistoryLimit", 10)
    _template(document)


def _job(document: Document) -> None:
    spec = _spec(document)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _put(spec, "parallelism", 1)
    _put(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
    _put(spec, "completionMode", "NonIndexed")
    _put(spec, "suspend", False)
    _put(spec, "manualSelector", False)
    _put(spec, "podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    for rule in _items(_inner(spec, "podFailurePolicy") or {}, "rules"):
        for pattern in _items(rule, "onPodConditions"):
            _put(pattern, "status", "True")
    _template(document)


def _assign_job(document: Document) -> None:
    spec, metadata = _spec(document), document["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = metadata.get("uid", ""), metadata.get("name", "")
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("batch.kubernetes.io/", ""):
        labels.setdefault(f"{prefix}controller-uid", uid)
        labels.setdefault(f"{prefix}job-name", name)
    if not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    spec.setdefault("selector", {}).setdefault("matchLabels", {})["batch.kubernetes.io/controller-uid"] = uid


def _cron_job(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "concurrencyPolicy", "Allow")
    _put(spec, "suspend", False)
    _put(spec, "successfulJobsHistoryLimit", 3)
    _put(spec, "failedJobsHistoryLimit", 1)
    job = _inner(spec, "jobTemplate")
    if job is not None:
        _template(job)


def _horizontal_pod_autoscaler(document: Document) -> None:
    _put(_spec(document), "minReplicas", 1)


# --- services and networking


def _service(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "ClientIP":
        _put(spec, "sessionAffinityConfig", {})
        _put(spec["sessionAffinityConfig"], "clientIP", {})
        _put(spec["sessionAffinityConfig"]["clientIP"], "timeoutSeconds", 10800)
    _put(spec, "type", "ClusterIP")
    for port in _items(spec, "ports"):
        _put(port, "protocol", "TCP")
        if port.get("targetPort") in {None, "", 0}:
            port["targetPort"] = port.get("port")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        _put(spec, "externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        _put(spec, "allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        _put(spec, "internalTrafficPolicy", "Cluster")


def _assign_service(document: Document, api: API, old: Document | None, rng: random.Random) -> None:
    spec, before = _spec(document), (old or {}).get("spec") or {}
    if spec.get("type") == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if before.get(name):
            _put(spec, name, before[name])
    if spec.get("clusterIPs") and not spec.get("clusterIP"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    services = [service for service in api.list("", "services") if not _is_same(service, document)]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_ip(services, rng)
    _put(spec, "clusterIPs", [spec["clusterIP"]])
    if spec["clusterIP"] != "None" or spec.get("selector"):
        _put(spec, "ipFamilies", ["IPv4"])
        _put(spec, "ipFamilyPolicy", "SingleStack")
    if spec.get("type") == "NodePort" or (
        spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts")
    ):
        _assign_node_ports(spec, before, services, rng)


def _assign_node_ports(spec: Document, before: Document, services: Iterable[Document], rng: random.Random) -> None:
    held = {(port.get("port"), port.get("protocol")): port.get("nodePort") for port in _items(before, "ports")}
    used = {port.get("nodePort") for service in services for port in _items(_spec(service), "ports")}
    used |= {port.get("nodePort") for port in _items(spec, "ports")}
    for port in _items(spec, "ports"):
        if port.get("nodePort"):
            continue
        kept = held.get((port.get("port"), port.get("protocol")))
        free = [number for number in NODE_PORTS if number not in used]
        port["nodePort"] = kept or rng.choice(free)
        used.add(port["nodePort"])


def _free_ip(services: Iterable[Document], rng: random.Random) -> str:
    used = {str(_spec(service).get("clusterIP", "")) for service in services} | {str(SERVICE_NETWORK[1])}
    return rng.choice([str(address) for address in SERVICE_NETWORK.hosts() if str(address) not in used])


def _is_same(one: Document, other: Document) -> bool:
    return all(one["metadata"].get(name) == other["metadata"].get(name) for name in ("namespace", "name"))


def _network_policy(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in (*_items(spec, "ingress"), *_items(spec, "egress")):
        for port in _items(rule, "ports"):
            _put(port, "protocol", "TCP")


def _endpoints(document: Document) -> None:
    for subset in _items(document, "subsets"):
        for port in _items(subset, "ports"):
            _put(port, "protocol", "TCP")


def _endpoint_slice(document: Document) -> None:
    for port in _items(document, "ports"):
        port.setdefault("name", "")
        _put(port, "protocol", "TCP")


def _ingress_class(document: Document) -> None:
    parameters = _inner(document, "spec", "parameters")
    if parameters is not None:
        _put(parameters, "scope", "Cluster")


# --- configuration, storage, policy


def _namespace(document: Document) -> None:
    metadata = document["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    _put(document.setdefault("status", {}), "phase", "Active")


def _secret(document: Document) -> None:
    _fold_string_data(document)
    _put(document, "type", "Opaque")


def _fold_string_data(document: Document) -> None:
    given = document.pop("stringData", None)
    if isinstance(given, Mapping):
        data = document.get("data")
        folded: Document = {key: base64.b64encode(str(value).encode()).decode() for key, value in given.items()}
        document["data"] = {**(data if isinstance(data, dict) else {}), **folded}


def _persistent_volume(document: Document) -> None:
    _put(document.setdefault("status", {}), "phase", "Pending")
    _put(_spec(document), "persistentVolumeReclaimPolicy", "Retain")
    _put(_spec(document), "volumeMode", "Filesystem")


def _persistent_volume_claim(document: Document) -> None:
    _put(document.setdefault("status", {}), "phase", "Pending")
    _put(_spec(document), "volumeMode", "Filesystem")


def _storage_class(document: Document) -> None:
    _put(document, "reclaimPolicy", "Delete")
    _put(document, "volumeBindingMode", "Immediate")


def _csi_driver(document: Document) -> None:
    spec = _spec(document)
    for name, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        _put(spec, name, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _priority_class(document: Document) -> None:
    _put(document, "preemptionPolicy", "PreemptLowerPriority")


def _limit_range(document: Document) -> None:
    for item in _items(_spec(document), "limits"):
        if item.get("type") != "Container":
            continue
        for source, target in (("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")):
            for name, value in (_inner(item, source) or {}).items():
                item.setdefault(target, {}).setdefault(name, value)


def _node(document: Document) -> None:
    status = document.setdefault("status", {})
    if status.get("capacity"):
        _put(status, "allocatable", dict(status["capacity"]))


def _role_binding(document: Document) -> None:
    ref = _inner(document, "roleRef")
    if ref is not None:
        _put(ref, "apiGroup", _RBAC)
    for subject in _items(document, "subjects"):
        if subject.get("kind") in {"User", "Group"}:
            _put(subject, "apiGroup", _RBAC)


def _lease(document: Document) -> None:
    """A Lease has no defaults; its struct is written even when empty."""
    _spec(document)


def _webhook_configuration(document: Document) -> None:
    is_mutating = document.get("kind") == "MutatingWebhookConfiguration"
    for webhook in _items(document, "webhooks"):
        _put(webhook, "failurePolicy", "Fail")
        _put(webhook, "matchPolicy", "Equivalent")
        _put(webhook, "namespaceSelector", {})
        _put(webhook, "objectSelector", {})
        _put(webhook, "timeoutSeconds", 10)
        if is_mutating:
            _put(webhook, "reinvocationPolicy", "Never")
        for rule in _items(webhook, "rules"):
            _put(rule, "scope", "*")
        _service_port(_inner(webhook, "clientConfig", "service"))


def _admission_policy(document: Document) -> None:
    spec = _spec(document)
    _put(spec, "failurePolicy", "Fail")
    constraints = _inner(spec, "matchConstraints")
    if constraints is not None:
        _put(constraints, "matchPolicy", "Equivalent")
        _put(constraints, "namespaceSelector", {})
        _put(constraints, "objectSelector", {})
        for rule in _items(constraints, "resourceRules"):
            _put(rule, "scope", "*")


def _custom_resource_definition(document: Document) -> None:
    names = _inner(document, "spec", "names")
    if names is not None and names.get("kind"):
        _put(names, "singular", str(names["kind"]).lower())
        _put(names, "listKind", f"{names['kind']}List")
    spec = _spec(document)
    _put(spec, "conversion", {})
    _put(spec["conversion"], "strategy", "None")
    _service_port(_inner(spec, "conversion", "webhook", "clientConfig", "service"))


def _api_service(document: Document) -> None:
    _service_port(_inner(document, "spec", "service"))


def _service_port(service: Document | None) -> None:
    if service is not None:
        _put(service, "port", 443)


_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("", "Endpoints"): _endpoints,
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Node"): _node,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _persistent_volume_claim,
    ("", "Pod"): _pod,
    ("", "PodTemplate"): lambda document: default_pod_spec(document.setdefault("template", {}).setdefault("spec", {})),
    ("", "ReplicationController"): _replication_controller,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("autoscaling", "HorizontalPodAutoscaler"): _horizontal_pod_autoscaler,
    ("networking.k8s.io", "IngressClass"): _ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("discovery.k8s.io", "EndpointSlice"): _endpoint_slice,
    ("coordination.k8s.io", "Lease"): _lease,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("storage.k8s.io", "CSIDriver"): _csi_driver,
    ("storage.k8s.io", "StorageClass"): _storage_class,
    (_RBAC, "ClusterRoleBinding"): _role_binding,
    (_RBAC, "RoleBinding"): _role_binding,
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhook_configuration,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhook_configuration,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _admission_policy,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
}
