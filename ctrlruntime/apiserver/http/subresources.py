"""Paths below an object: those like its status, those to which something is posted, and those that need a kubelet, refused honestly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.http.bindings import Bindings
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.evictions import Evictions
from ctrlruntime.apiserver.http.logs import log_answer
from ctrlruntime.apiserver.http.objects import Objects
from ctrlruntime.apiserver.http.posted import Posted, post
from ctrlruntime.apiserver.http.scale import Scales
from ctrlruntime.apiserver.http.tokens import Tokens
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.errors import APIStatusError, BadRequest
from ctrlruntime.schema.trees import Document

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
        self._posted: Mapping[str, Posted] = {
            "binding": Bindings(registry, now),
            "eviction": Evictions(registry, now),
            "token": tokens,
        }
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
        if name == "proxy":
            await self.admit_connection(call, resource, target)
            raise self._refusal(resource, target)
        posted = self._posted.get(name)
        if posted is None:
            raise failures.no_such_resource()
        return await post(self._registry, call, resource, target, posted)

    async def bind(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        """Respond to a Binding that comes to the namespace."""
        return await post(self._registry, call, resource, target, self._posted["binding"])

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
        document = resource.tree(self._registry.record(resource, target.namespace, target.name))
        if resource.kind == "Pod" and not (document.get("spec") or {}).get("nodeName"):
            return BadRequest("address not allowed")
        message = (
            f'proxy of {resource.plural} "{target.name}" is not available: the embedded API server simulates Pods and runs no '
            "containers, so nothing can be proxied"
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


__all__ = ["Subresources"]
