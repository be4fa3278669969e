"""Subresources that are not the object itself: binding, eviction, token; and those that need a kubelet, refused honestly."""

from __future__ import annotations

import time
from collections.abc import Callable

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.http.answers import document_answer
from ctrlruntime.apiserver.http.bodies import read_tree
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.evictions import Evictions
from ctrlruntime.apiserver.http.logs import log_answer
from ctrlruntime.apiserver.http.objects import Objects
from ctrlruntime.apiserver.http.options import read_delete_options, write_options
from ctrlruntime.apiserver.http.scale import Scales
from ctrlruntime.apiserver.http.tokens import Tokens
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.errors import APIStatusError, BadRequest
from ctrlruntime.schema.trees import Document

_NO_KUBELET = frozenset({"portforward", "proxy"})
_LIKE_STATUS = frozenset({"status", "finalize", "approval", "ephemeralcontainers", "resize"})


_CONNECTIONS = {
    ("pods", "exec"): "PodExecOptions",
    ("pods", "attach"): "PodAttachOptions",
    ("pods", "portforward"): "PodPortForwardOptions",
    ("pods", "proxy"): "PodProxyOptions",
    ("services", "proxy"): "ServiceProxyOptions",
    ("nodes", "proxy"): "NodeProxyOptions",
}
_CONNECTION_FIELDS = (
    ("stdin", True),
    ("stdout", True),
    ("stderr", True),
    ("tty", True),
    ("container", False),
    ("path", False),
)


class Subresources:
    """Handlers of paths below an object."""

    def __init__(
        self, registry: Registry, objects: Objects, tokens: Tokens, now: Callable[[], float] = time.time
    ) -> None:
        self._registry = registry
        self._objects = objects
        self._scales = Scales(registry, objects)
        self._tokens = tokens
        self._evictions = Evictions(registry, now)
        self._now = now

    async def handle(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        name = target.subresource
        if name in _LIKE_STATUS:
            return await self._like_status(call, resource, target)
        if name == "scale":
            return await self._scales.handle(call, resource, target)
        if name == "log":
            pod = resource.tree(self._registry.record(resource, target.namespace, target.name))
            return log_answer(call, pod, self._now())
        if name in _NO_KUBELET:
            await self.admit_connection(call, resource, target)
            raise self._refusal(call, resource, target)
        if name == "binding":
            return await self.bind(call, resource, target.namespace, target.name, read_tree(call, "Binding"))
        if name == "eviction":
            return await self._evict(call, resource, target)
        if name == "token":
            return await self._tokens.request(call, resource, target)
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

    def _refusal(self, call: Call, resource: Resource, target: ResourcePath) -> APIStatusError:
        document = resource.tree(self._registry.record(resource, target.namespace, target.name))
        spec: Document = document.get("spec") or {}
        if resource.kind == "Pod" and target.subresource == "proxy" and not spec.get("nodeName"):
            return BadRequest("address not allowed")
        if resource.kind == "Pod" and not spec.get("nodeName"):
            return BadRequest(f"pod {target.name} does not have a host assigned")
        what = "nothing can be proxied" if target.subresource == "proxy" else "nothing runs there"
        message = (
            f'{target.subresource} of {resource.plural} "{target.name}" is not available: the embedded API server simulates '
            f"Pods and runs no containers, so {what}"
        )
        error = failures.plain_internal(message, 501)
        return APIStatusError.from_status({**error.status, "reason": "NotImplemented"})

    async def admit_connection(self, call: Call, resource: Resource, target: ResourcePath) -> None:
        """Ask the webhooks about what is to be opened (`CONNECT`)."""
        kind = _CONNECTIONS.get((resource.plural, target.subresource))
        if kind is None:
            return
        shown: Document = {"kind": kind, "apiVersion": "v1"}
        for field, is_truth in _CONNECTION_FIELDS:
            if is_truth and call.asks(field):
                shown[field] = True
            elif not is_truth and call.query.get(field):
                shown[field] = call.query[field]
        if "command" in call.queries:
            shown["command"] = call.queries["command"]
        options = WriteOptions(user=call.user, warnings=call.warnings)
        await self._registry.writer.admit(
            resource,
            target.namespace,
            target.name,
            shown,
            options,
            subresource=target.subresource,
            operation="CONNECT",
        )

    # Pods

    async def bind(self, call: Call, resource: Resource, namespace: str, name: str, binding: Document) -> web.Response:
        """Assign a pod to a node."""
        if (binding.get("metadata") or {}).get("name") != name:
            raise BadRequest("name in URL does not match name in Binding object")
        options = write_options(call, "CreateOptions")
        options.is_patch = True
        part = "binding" if resource.plural == "pods" else ""
        whole = {"kind": "Binding", "apiVersion": "v1", **binding}
        whole["metadata"] = {**binding["metadata"], "namespace": namespace}
        binding = await self._registry.writer.admit(resource, namespace, name, whole, options, subresource=part)
        kind = (binding.get("target") or {}).get("kind", "")
        if kind not in {"", "Node"}:
            raise failures.plain_internal(
                f'target.kind: Unsupported value: {field_errors.shown(kind)}: supported values: "Node", "<empty>"'
            )
        node = str((binding.get("target") or {}).get("name", ""))
        if not node:
            raise failures.plain_internal("target.name: Required value")
        pods = self._registry.canonical("", "pods")
        moment = timestamp(self._now())
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}

        def edit(pod: Document | None) -> Document:
            assert pod is not None
            assigned = pod["spec"].get("nodeName")
            if assigned:
                why = f'pod {name} is already assigned to node "{assigned}"'
                raise failures.conflict("pods/binding", "", name, why)
            pod["spec"]["nodeName"] = node
            conditions = [c for c in pod["status"].get("conditions") or () if c["type"] != "PodScheduled"]
            pod["status"]["conditions"] = [*conditions, scheduled]
            return pod

        self._registry.writer.update_directly(pods, namespace, name, edit, options, "binding")
        return document_answer(call, _success(), 201)

    async def _evict(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        eviction: Document = {"kind": "Eviction", "apiVersion": "policy/v1", **read_tree(call, "Eviction")}
        if (eviction.get("metadata") or {}).get("name") != target.name:
            raise BadRequest("name in URL does not match name in Eviction object")
        eviction["metadata"] = {**(eviction.get("metadata") or {}), "namespace": target.namespace}
        eviction = await self._registry.writer.admit(
            resource,
            target.namespace,
            target.name,
            eviction,
            write_options(call, "CreateOptions"),
            subresource="eviction",
        )
        options = read_delete_options(call, eviction.get("deleteOptions") or {})
        self._evictions.evict(resource, target.namespace, target.name, options)
        return document_answer(call, _success(), 201)


def _success() -> Document:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


__all__ = ["Subresources"]
