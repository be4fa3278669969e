"""Subresources that are not the object itself: scale, binding, eviction, token; and those that need a kubelet, refused honestly."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import encode
from ctrlruntime.apiserver.http.answers import document_answer
from ctrlruntime.apiserver.http.bodies import read_object, read_tree
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.objects import Objects, patched
from ctrlruntime.apiserver.http.options import delete_options, write_options
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.errors import APIStatusError, BadRequest, StatusCause, TooManyRequests
from ctrlruntime.selector import from_label_selector, from_labels

_NO_KUBELET = frozenset({"log", "exec", "attach", "portforward", "proxy"})
_LIKE_STATUS = frozenset({"status", "finalize", "approval", "ephemeralcontainers", "resize"})


class Subresources:
    """Handlers of paths below an object."""

    def __init__(
        self, registry: Registry, objects: Objects, secret: bytes, now: Callable[[], float] = time.time
    ) -> None:
        self._registry = registry
        self._objects = objects
        self._secret = secret
        self._now = now

    async def handle(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        name = target.subresource
        if name in _LIKE_STATUS:
            return await self._like_status(call, resource, target)
        if name == "scale":
            return await self._scale(call, resource, target)
        if name in _NO_KUBELET:
            raise self._refusal(resource, target)
        if name == "binding":
            return self.bind(call, resource, target.namespace, target.name, read_tree(call, "Binding"))
        if name == "eviction":
            return self._evict(call, resource, target)
        if name == "token":
            return self._token(call, resource, target)
        raise failures.no_such_resource()

    async def _like_status(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        match call.method:
            case "GET":
                return await self._objects.get(call, resource, target)
            case "PUT":
                return await self._objects.update(call, resource, target)
            case "PATCH":
                return await self._objects.patch(call, resource, target)
            case _:
                raise failures.method_not_allowed()

    def _refusal(self, resource: Resource, target: ResourcePath) -> APIStatusError:
        record = self._registry.record(resource, target.namespace, target.name)
        spec: Document = resource.tree(record).get("spec") or {}
        if resource.kind == "Pod" and not spec.get("nodeName") and target.subresource != "log":
            return BadRequest(f"pod {target.name} does not have a host assigned")
        what = {"log": "there are no logs", "proxy": "nothing can be proxied"}.get(
            target.subresource, "nothing runs there"
        )
        message = (
            f'{target.subresource} of {resource.plural} "{target.name}" is not available: the embedded API server simulates '
            f"Pods and runs no containers, so {what}"
        )
        error = failures.plain_internal(message, 501)
        return APIStatusError.from_status({**error.status, "reason": "NotImplemented"})

    # Scale

    async def _scale(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        record = self._registry.record(resource, target.namespace, target.name)
        document = resource.tree(record)
        match call.method:
            case "GET":
                return document_answer(call, _scale_of(resource, document))
            case "PUT":
                options = write_options(call, "UpdateOptions")
                scale = read_object(call, resource, options, kind="Scale", api_version="autoscaling/v1")
            case "PATCH":
                options = write_options(call, "PatchOptions")
                reader = self._objects.patch_reader(call, "autoscaling", "v1", "Scale", is_custom=resource.is_custom)
                scale = patched(reader, _scale_of(resource, document))
            case _:
                raise failures.method_not_allowed()
        replicas: Any = (scale.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise BadRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas must be an integer')
        if replicas < 0:
            text = "must be greater than or equal to 0"
            cause = failures.invalid_value("spec.replicas", replicas, text)
            raise failures.invalid("Scale", "autoscaling", target.name, [cause])
        version = (scale.get("metadata") or {}).get("resourceVersion", "")
        _set(document, resource.scale.spec_replicas if resource.scale else ".spec.replicas", replicas)
        document["metadata"]["resourceVersion"] = version
        options.is_patch = True
        options.field_validation = "Ignore"
        written = self._registry.writer.update(resource, target.namespace, target.name, document, options)
        return document_answer(call, _scale_of(resource, resource.tree(written.record)))

    # Pods

    def bind(self, call: Call, resource: Resource, namespace: str, name: str, binding: Document) -> web.Response:
        """Assign a pod to a node."""
        if (binding.get("metadata") or {}).get("name") != name:
            raise BadRequest("name in URL does not match name in Binding object")
        node = str((binding.get("target") or {}).get("name", ""))
        if not node:
            raise failures.invalid("Binding", "", name, [failures.required("target.name")])
        pods = self._registry.canonical("", "pods")
        document = pods.tree(self._registry.record(pods, namespace, name))
        assigned = document["spec"].get("nodeName")
        if assigned:
            raise failures.conflict("pods/binding", "", name, f'pod {name} is already assigned to node "{assigned}"')
        document["spec"]["nodeName"] = node
        options = write_options(call, "CreateOptions")
        options.is_patch = True
        self._registry.writer.update(pods, namespace, name, document, options)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._now()))
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}
        document = pods.tree(self._registry.record(pods, namespace, name))
        conditions = [c for c in document["status"].get("conditions") or () if c["type"] != "PodScheduled"]
        document["status"]["conditions"] = [*conditions, scheduled]
        self._registry.writer.update(pods, namespace, name, document, WriteOptions(is_patch=True), "status")
        return document_answer(call, _success(), 201)

    def _evict(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        eviction = read_tree(call, "Eviction")
        record = self._registry.record(resource, target.namespace, target.name)
        for budget in self._registry.list("policy", "poddisruptionbudgets", target.namespace):
            selector = from_label_selector(budget["spec"].get("selector"))
            if selector.matches(record.labels) and not (budget.get("status") or {}).get("disruptionsAllowed"):
                text = "Cannot evict pod as it would violate the pod's disruption budget."
                name = budget["metadata"]["name"]
                cause = StatusCause("DisruptionBudget", f"The disruption budget {name} does not allow an eviction now")
                raise TooManyRequests(text, causes=[cause], retry_after=10)
        options = delete_options(call, eviction.get("deleteOptions") or {})
        self._registry.writer.delete(resource, target.namespace, target.name, options)
        return document_answer(call, _success(), 201)

    # Service account tokens

    def _token(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        record = self._registry.record(resource, target.namespace, target.name)
        request = read_tree(call, "TokenRequest")
        spec: Document = request.get("spec") or {}
        seconds: int = spec.get("expirationSeconds") or 3600
        issued = int(self._now())
        audiences = spec.get("audiences") or ["https://kubernetes.default.svc.cluster.local"]
        claims = {
            "aud": audiences,
            "exp": issued + seconds,
            "iat": issued,
            "iss": "https://kubernetes.default.svc.cluster.local",
            "nbf": issued,
            "sub": f"system:serviceaccount:{target.namespace}:{target.name}",
            "kubernetes.io": {
                "namespace": target.namespace,
                "serviceaccount": {"name": target.name, "uid": record.uid},
            },
        }
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(issued + seconds))
        answer = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": target.name, "namespace": target.namespace},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": sign_token(claims, self._secret), "expirationTimestamp": expires},
        }
        return document_answer(call, answer, 201)


def sign_token(claims: Document, secret: bytes) -> str:
    """Return a JWT for a service account, signed with the server's own secret (HS256: nobody else checks it)."""
    head = _base64(encode({"alg": "HS256", "typ": "JWT"}))
    signed = f"{head}.{_base64(encode(claims))}"
    return f"{signed}.{_base64(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _success() -> Document:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _value_at(document: Any, path: str) -> Any:
    node = document
    for key in path.lstrip(".").split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _set(document: Document, path: str, value: Any) -> None:
    *parents, last = path.lstrip(".").split(".")
    node = document
    for key in parents:
        node = node.setdefault(key, {})
    node[last] = value


def _scale_of(resource: Resource, document: Document) -> Document:
    metadata: Document = document["metadata"]
    shown = {
        key: metadata[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in metadata
    }
    if resource.scale is not None:
        replicas = _value_at(document, resource.scale.spec_replicas)
        if replicas is None:
            raise failures.plain_internal(
                f'the spec replicas field "{resource.scale.spec_replicas}" does not exist in {resource.kind} {metadata["name"]}'
            )
        current = _value_at(document, resource.scale.status_replicas) or 0
        selector = _value_at(document, resource.scale.label_selector) if resource.scale.label_selector else None
    else:
        replicas = document["spec"].get("replicas", 0)
        current = (document.get("status") or {}).get("replicas", 0)
        selector = _selector_text(resource, document["spec"].get("selector"))
    status: Document = {"replicas": current}
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": status}


def _selector_text(resource: Resource, selector: Any) -> str:
    if not selector:
        return ""
    return str(from_labels(selector) if resource.kind == "ReplicationController" else from_label_selector(selector))


__all__ = ["Subresources", "sign_token"]
