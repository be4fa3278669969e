"""Defaults of Pods, and of what Pods and the templates of workloads share."""

from __future__ import annotations

from typing import Any

from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.quantity import parse
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put


def pod(document: Document) -> None:
    spec = ensure_spec(document)
    default_pod_spec(spec)
    put(spec, "enableServiceLinks", True)
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        resources = inner(container, "resources") or {}
        for name, value in (inner(resources, "limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, value)
    status = document.setdefault("status", {})
    _pair_addresses(status)
    put(status, "qosClass", qos_class(spec))
    if spec.get("schedulingGates") and document["metadata"].get("creationTimestamp"):
        _mark_gated(document)


def default_pod_spec(spec: Document) -> None:
    """Set the defaults that pods and pod templates share."""
    put(spec, "restartPolicy", "Always")
    put(spec, "terminationGracePeriodSeconds", 30)
    if isinstance(spec["terminationGracePeriodSeconds"], int) and spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    put(spec, "dnsPolicy", "ClusterFirst")
    put(spec, "securityContext", {})
    put(spec, "schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for container in (
        *items(spec, "initContainers"),
        *items(spec, "containers"),
        *items(spec, "ephemeralContainers"),
    ):
        _container(container, is_host_network=bool(spec.get("hostNetwork")))
    for volume in items(spec, "volumes"):
        _volume(volume)


def default_template(document: Document) -> None:
    spec = inner(document, "spec", "template", "spec")
    if spec is not None:
        default_pod_spec(spec)


def qos_class(spec: Document) -> str:
    """Return Guaranteed, Burstable or BestEffort from the requests and limits of cpu and memory."""
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
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


def _container(container: Document, *, is_host_network: bool) -> None:
    put(container, "terminationMessagePath", "/dev/termination-log")
    put(container, "terminationMessagePolicy", "File")
    put(container, "imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    for port in items(container, "ports"):
        put(port, "protocol", "TCP")
        if is_host_network and port.get("containerPort"):
            put(port, "hostPort", port["containerPort"])
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        _probe(inner(container, name))
    for hook in ("postStart", "preStop"):
        _http_get(inner(container, "lifecycle", hook, "httpGet"))
    for variable in items(container, "env"):
        _field_ref(inner(variable, "valueFrom", "fieldRef"))


def _pull_policy(image: str) -> str:
    """Always for `latest` or no tag at all; a digest without a tag counts as a tag."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or (not tag and not digest) else "IfNotPresent"


def _probe(probe: Document | None) -> None:
    if probe is None:
        return
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        put(probe, name, value)
    _http_get(inner(probe, "httpGet"))
    grpc = inner(probe, "grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _http_get(action: Document | None) -> None:
    if action is not None:
        put(action, "path", "/")
        put(action, "scheme", "HTTP")


def _field_ref(ref: Document | None) -> None:
    if ref is not None:
        put(ref, "apiVersion", "v1")


def _volume(volume: Document) -> None:
    if not any(isinstance(value, dict) for value in volume.values()):
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        source = inner(volume, name)
        if source is not None:
            put(source, "defaultMode", 420)
            for item in items(source, "items"):
                _field_ref(inner(item, "fieldRef"))
    host_path = inner(volume, "hostPath")
    if host_path is not None:
        host_path.setdefault("type", "")
    for source in items(inner(volume, "projected") or {}, "sources"):
        token = inner(source, "serviceAccountToken")
        if token is not None:
            put(token, "expirationSeconds", 3600)
        for item in items(inner(source, "downwardAPI") or {}, "items"):
            _field_ref(inner(item, "fieldRef"))
    claim = inner(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if claim is not None:
        put(claim, "volumeMode", "Filesystem")


def _pair_addresses(status: Document) -> None:
    """Make the address of a Pod the first of its addresses, whichever of the two was written."""
    first, every = status.get("podIP"), list(items(status, "podIPs"))
    if first and (not every or every[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif every and not first:
        status["podIP"] = every[0].get("ip", "")


def _mark_gated(document: Document) -> None:
    conditions: list[Document] = document.setdefault("status", {}).setdefault("conditions", [])
    if not any(condition.get("type") == "PodScheduled" for condition in conditions):
        text = "Scheduling is blocked due to non-empty scheduling gates"
        moment = document["metadata"].get("creationTimestamp")
        conditions.append(
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": moment,
                "reason": "SchedulingGated",
                "message": text,
            }
        )
