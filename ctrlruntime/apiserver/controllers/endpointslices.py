"""Endpoints of Services: for each Service with a selector one EndpointSlice, and an Endpoints object of the Service's
name, with the addresses of the pods it picks.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    is_deleting,
    is_true,
    key_of,
    labels_of,
    metadata,
    own_key,
    owner_reference,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document

SERVICE_LABEL: Final = "kubernetes.io/service-name"
_HEADLESS: Final = "service.kubernetes.io/headless"
_TRIGGER: Final = "endpoints.kubernetes.io/last-change-trigger-time"
_ENDPOINTS_LABEL: Final = "endpoints.kubernetes.io/managed-by"
_ENDPOINTS_MANAGER: Final = "endpoint-controller"
_MANAGED: Final = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


class EndpointSlices:
    name = "endpointslice"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "services"), own_key),
            keys_of(api.watch("", "pods"), _ServiceKeys(api)),
            keys_of(api.watch("discovery.k8s.io", "endpointslices"), _slice_keys),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        service = api.get("", "services", *key)
        if service is None or is_deleting(service) or not (service.get("spec") or {}).get("selector"):
            return None
        wanted = _wanted(api, service)
        labels = {SERVICE_LABEL: metadata(service)["name"], **_MANAGED}
        if service["spec"].get("clusterIP") == "None":
            labels[_HEADLESS] = ""
        slices = api.list("discovery.k8s.io", "endpointslices", metadata(service)["namespace"], labels=labels)
        if not slices:
            await api.create("discovery.k8s.io", "endpointslices", key[0], _new_slice(service, labels, wanted))
            return None
        if any((slices[0].get(part) or []) != (value or []) for part, value in wanted.items()):
            await api.merge_patch("discovery.k8s.io", "endpointslices", *key_of(slices[0]), wanted)
        return None


class Endpoints:
    """The older form of the same: one object for each Service."""

    name = "endpoints"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "services"), own_key),
            keys_of(api.watch("", "pods"), _ServiceKeys(api)),
            keys_of(
                api.watch("", "endpoints"), lambda change: [] if change.type == "ADDED" else [key_of(change.object)]
            ),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        service, present = api.get("", "services", *key), api.get("", "endpoints", *key)
        labels = labels_of(present) if present is not None else {}
        if service is None:
            if labels.get(_ENDPOINTS_LABEL) == _ENDPOINTS_MANAGER:
                await api.delete("", "endpoints", *key)
            return None
        if is_deleting(service) or not (service.get("spec") or {}).get("selector"):
            return None
        subsets = _subsets(_wanted(api, service))
        if present is None:
            await api.create("", "endpoints", key[0], _new_endpoints(service, subsets))
        elif (present.get("subsets") or []) != subsets:
            await api.merge_patch("", "endpoints", *key_of(present), {"subsets": subsets or None})
        return None


def _subsets(wanted: Document) -> list[Document]:
    """Return the addresses of a slice as subsets: the ready ones beside the others."""
    subset: Document = {}
    for endpoint in wanted["endpoints"] or ():
        if endpoint["conditions"]["terminating"]:
            continue
        kind = "addresses" if endpoint["conditions"]["ready"] else "notReadyAddresses"
        shown = {"ip": endpoint["addresses"][0], "nodeName": endpoint["nodeName"], "targetRef": endpoint["targetRef"]}
        subset.setdefault(kind, []).append(shown)
    if not subset:
        return []
    ports = [{name: value for name, value in port.items() if value != ""} for port in wanted["ports"] or ()]
    order = ("addresses", "notReadyAddresses")
    return [{**{kind: subset[kind] for kind in order if kind in subset}, **({"ports": ports} if ports else {})}]


def _new_endpoints(service: Document, subsets: list[Document]) -> Document:
    labels = {**labels_of(service), _ENDPOINTS_LABEL: _ENDPOINTS_MANAGER}
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS] = ""
    meta = {"name": metadata(service)["name"], "namespace": metadata(service)["namespace"], "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**meta, "annotations": {_TRIGGER: metadata(service)["creationTimestamp"]}},
        **({"subsets": subsets} if subsets else {}),
    }


class _ServiceKeys:
    """Map a pod to the Services that pick it, before and after the change."""

    def __init__(self, api: API) -> None:
        self._api = api

    def __call__(self, change: Change) -> Iterable[Key]:
        for pod in filter(None, (change.object, change.old)):
            for service in self._api.list("", "services", str(metadata(pod).get("namespace", ""))):
                if _picks(service, pod):
                    yield key_of(service)


def _slice_keys(change: Change) -> Iterable[Key]:
    name = labels_of(change.object).get(SERVICE_LABEL)
    if name and change.type != "ADDED":
        yield (str(metadata(change.object)["namespace"]), name)


def _picks(service: Document, pod: Document) -> bool:
    selector: Mapping[str, str] = (service.get("spec") or {}).get("selector") or {}
    return bool(selector) and selector.items() <= labels_of(pod).items()


def _wanted(api: API, service: Document) -> Document:
    pods = [pod for pod in api.list("", "pods", metadata(service)["namespace"]) if _picks(service, pod)]
    endpoints = [_endpoint(pod) for pod in pods if (pod.get("status") or {}).get("podIP") and _is_running(pod)]
    # Upstream names ports only when there are pods whose ports could be meant.
    return {"endpoints": endpoints or None, "ports": (_ports(service, pods) or None) if endpoints else None}


def _is_running(pod: Document) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running"


def _endpoint(pod: Document) -> Document:
    is_serving, is_terminating = is_true(pod, "Ready"), is_deleting(pod)
    return {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": is_serving and not is_terminating,
            "serving": is_serving,
            "terminating": is_terminating,
        },
        "targetRef": {
            "kind": "Pod",
            "namespace": metadata(pod)["namespace"],
            "name": metadata(pod)["name"],
            "uid": metadata(pod)["uid"],
        },
        "nodeName": pod["spec"].get("nodeName", ""),
    }


def _ports(service: Document, pods: Sequence[Document]) -> list[Document]:
    found: list[Document] = []
    for port in service["spec"].get("ports") or ():
        number = _target(port, pods)
        if number is not None:
            shown: Document = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            if port.get("appProtocol"):
                shown["appProtocol"] = port["appProtocol"]
            found.append(shown)
    return found


def _target(port: Document, pods: Sequence[Document]) -> int | None:
    target: Any = port.get("targetPort", port.get("port"))
    if isinstance(target, int):
        return target
    declared = (p for pod in pods for c in pod["spec"].get("containers") or () for p in c.get("ports") or ())
    return next((int(p["containerPort"]) for p in declared if p.get("name") == target), None)


def _new_slice(service: Document, labels: Mapping[str, str], wanted: Document) -> Document:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{metadata(service)['name']}-",
            "namespace": metadata(service)["namespace"],
            "labels": {**labels_of(service), **labels},
            "annotations": {_TRIGGER: metadata(service)["creationTimestamp"]},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        **wanted,
    }
