"""Defaults of Pods, and of what Pods and the templates of workloads share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ctrlruntime.apiserver.registry.pod_amounts import (
    amounts_of,
    is_huge_pages,
    is_of_pods,
    may_exceed,
    round_up,
    total_of,
)
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put
from ctrlruntime.schema.trees import Document

_DOMAIN: Final = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST: Final = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_IMAGE: Final = re.compile(
    rf"(?![a-f0-9]{{64}}\Z)(?:{_DOMAIN}/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
"""The name of an image as ParseImageName in pkg/util/parsers/parsers.go can read it."""
_SOURCES: Final[Mapping[str, Document]] = {
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared"},
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "configMap": {"defaultMode": 420},
    "secret": {"defaultMode": 420},
    "downwardAPI": {"defaultMode": 420},
    "projected": {"defaultMode": 420},
}
"""Fields of volumes and their values when they are not given."""


def pod(document: Document) -> None:
    spec = ensure_spec(document)
    default_pod_spec(spec)
    put(spec, "enableServiceLinks", True)
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        resources = inner(container, "resources") or {}
        for name, value in (inner(resources, "limits") or {}).items():
            resources.setdefault("requests", {}).setdefault(name, value)
        for port in items(container, "ports") if spec.get("hostNetwork") else ():
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]
    _own_resources(spec)
    if isinstance(spec["terminationGracePeriodSeconds"], int) and spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status = document.setdefault("status", {})
    _pair_addresses(status)
    if spec.get("schedulingGates") and document["metadata"].get("creationTimestamp"):
        _mark_gated(document)


def default_pod_spec(spec: Document) -> None:
    """Set the defaults that pods and pod templates share."""
    put(spec, "restartPolicy", "Always")
    put(spec, "terminationGracePeriodSeconds", 30)
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
        _container(container)
    round_up(inner(spec, "overhead"))
    _round_resources(spec)
    for volume in items(spec, "volumes"):
        _volume(volume)


def _own_resources(spec: Document) -> None:
    """What a Pod itself asks for (defaultPodRequests and defaultHugePagePodLimits in pkg/apis/core/v1/defaults.go)."""
    resources = inner(spec, "resources")
    if resources is None or not (resources.get("limits") or resources.get("requests")):
        return
    limits, requests = dict(amounts_of(spec, "limits")), dict(amounts_of(spec, "requests"))
    for name, text in total_of(spec, "limits").items():
        if is_huge_pages(name) and name not in requests:
            limits.setdefault(name, text)
    if limits:
        resources["limits"] = limits
        for name, text in total_of(spec, "requests").items():
            if is_of_pods(name) and may_exceed(name):
                requests.setdefault(name, text)
        for name, text in limits.items():
            if is_of_pods(name):
                requests.setdefault(name, text)
    if requests:
        resources["requests"] = requests


def default_template(document: Document) -> None:
    spec = inner(document, "spec", "template", "spec")
    if spec is not None:
        default_pod_spec(spec)


def _round_resources(tree: Document) -> None:
    resources = inner(tree, "resources")
    if resources:
        round_up(inner(resources, "limits"))
        round_up(inner(resources, "requests"))


def _container(container: Document) -> None:
    put(container, "terminationMessagePath", "/dev/termination-log")
    put(container, "terminationMessagePolicy", "File")
    put(container, "imagePullPolicy", _pull_policy(str(container.get("image", ""))))
    _round_resources(container)
    for port in items(container, "ports"):
        put(port, "protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        _probe(inner(container, name))
    for hook in ("postStart", "preStop"):
        _http_get(inner(container, "lifecycle", hook, "httpGet"))
    for variable in items(container, "env"):
        _field_ref(inner(variable, "valueFrom", "fieldRef"))
        file = inner(variable, "valueFrom", "fileKeyRef")
        if file is not None and file.get("optional") is None:
            file["optional"] = False


@lru_cache(maxsize=256)
def _pull_policy(image: str) -> str:
    """Always for `latest`, or for neither tag nor digest; what cannot be read has a policy, too."""
    name = _IMAGE.fullmatch(image)
    is_latest = name is not None and (name["tag"] == "latest" or not (name["tag"] or name["digest"]))
    return "Always" if is_latest else "IfNotPresent"


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
    default_source(volume)
    for item in items(inner(volume, "downwardAPI") or {}, "items"):
        _field_ref(inner(item, "fieldRef"))
    image = inner(volume, "image")
    if image is not None:
        put(image, "pullPolicy", _pull_policy(str(image.get("reference", ""))))
    projected = inner(volume, "projected")
    if projected is not None:
        projected["sources"] = projected.get("sources") or None
    for source in items(inner(volume, "projected") or {}, "sources"):
        token = inner(source, "serviceAccountToken")
        if token is not None:
            put(token, "expirationSeconds", 3600)
        for item in items(inner(source, "downwardAPI") or {}, "items"):
            _field_ref(inner(item, "fieldRef"))
    claim = inner(volume, "ephemeral", "volumeClaimTemplate", "spec")
    if claim is not None:
        put(claim, "volumeMode", "Filesystem")
        _round_resources(claim)


def default_source(volume: Document) -> None:
    """Set the defaults of where the data of a volume is, which Pods and PersistentVolumes share."""
    for name, fields in _SOURCES.items():
        source = inner(volume, name)
        if source is not None:
            for field, value in fields.items():
                put(source, field, value)
    for name, field, absent in (("hostPath", "type", ""), ("azureDisk", "readOnly", False)):
        source = inner(volume, name)
        if source is not None and source.get(field) is None:
            source[field] = absent


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
