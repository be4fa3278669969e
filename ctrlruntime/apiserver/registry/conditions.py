"""Conditions that kube-apiserver itself writes: Available of an APIService, Dangling of a FlowSchema.

They are written soon after the object and whenever something they look at changes. Nothing is proxied to an aggregated API server here, so
an APIService of a Service never becomes available.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import Change
from ctrlruntime.apiserver.registry.after_writes import AfterWrites
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.registry.writes import WriteOptions
from ctrlruntime.schema.trees import Document, copy_tree
from ctrlruntime.schema.values import spec_of

_API_SERVICES: Final = ("apiregistration.k8s.io", "apiservices")
_FLOW_SCHEMAS: Final = ("flowcontrol.apiserver.k8s.io", "flowschemas")
_LEVELS: Final = ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
_SLICES: Final = ("discovery.k8s.io", "endpointslices")
_BUILT_IN_LEVELS: Final = frozenset(
    {
        "catch-all",
        "exempt",
        "global-default",
        "leader-election",
        "node-high",
        "system",
        "workload-high",
        "workload-low",
    }
)
"""Each API server makes these; here they do nothing, so they are not stored."""


class _Condition(NamedTuple):
    type: str
    status: str
    reason: str
    message: str


class Conditions:
    """Keeps the conditions of one registry."""

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now
        self._look_later = AfterWrites(self._sync)
        self._looks_at_services = False

    def follow(self) -> None:
        """Keep the conditions from now on, also of what an earlier run left; call it on the server's loop."""
        for resource in (_API_SERVICES, _FLOW_SCHEMAS, _LEVELS):
            self._registry.store.table(*resource).listen(self._look_later)
        for resource in (SERVICES, _SLICES):
            self._registry.store.table(*resource).listen(self._service_changed)
        self._sync()

    def _service_changed(self, _: Change) -> None:
        if self._looks_at_services:
            self._look_later()

    def _sync(self) -> None:
        services = [one for one in self._registry.list(*_API_SERVICES) if spec_of(one).get("service")]
        self._looks_at_services = bool(services)
        for service in services:
            self._write(_API_SERVICES, service, self._availability(spec_of(service)["service"]))
        for schema in self._registry.list(*_FLOW_SCHEMAS):
            self._write(_FLOW_SCHEMAS, schema, self._dangling(schema))

    def _availability(self, reference: Document) -> _Condition:
        """What sync in kube-aggregator's pkg/controllers/status/remote says."""
        namespace, name, number = reference.get("namespace", ""), reference.get("name", ""), reference.get("port", 443)
        service = self._registry.get(*SERVICES, namespace, name)
        if service is None:
            return _unavailable("ServiceNotFound", f'service/{name} in "{namespace}" is not present')
        if spec_of(service).get("type") == "ClusterIP":
            port = next((one for one in spec_of(service).get("ports") or () if one.get("port") == number), None)
            if port is None:
                text = f'service/{name} in "{namespace}" is not listening on port {number}'
                return _unavailable("ServicePortError", text)
            slices = [
                one
                for one in self._registry.list(*_SLICES, namespace)
                if (one["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
            ]
            if not slices:
                text = f'cannot find endpointslices for service/{name} in "{namespace}"'
                return _unavailable("EndpointsNotFound", text)
            if not any(_is_served(one, port.get("name", "")) for one in slices):
                shown = port.get("name", "")
                text = f'endpoints for service/{name} in "{namespace}" have no addresses with port name "{shown}"'
                return _unavailable("MissingEndpoints", text)
        return _unavailable("FailedDiscoveryCheck", "aggregated API servers are not called by the embedded server")

    def _dangling(self, schema: Document) -> _Condition:
        """What pkg/util/flowcontrol says of the priority level that a FlowSchema names."""
        name = (spec_of(schema).get("priorityLevelConfiguration") or {}).get("name", "")
        named = f'This FlowSchema references the PriorityLevelConfiguration object named "{name}"'
        if name in _BUILT_IN_LEVELS or self._registry.get(*_LEVELS, "", name) is not None:
            return _Condition("Dangling", "False", "Found", f"{named} and it exists")
        absent = "no such object"  # apart from its sentence, which scripts/check-words would refuse
        return _Condition("Dangling", "True", "NotFound", f"{named} but there is {absent}")

    def _write(self, key: tuple[str, str], document: Document, wanted: _Condition) -> None:
        conditions: list[Document] = (document.get("status") or {}).get("conditions") or []
        present = next((one for one in conditions if one["type"] == wanted.type), {})
        if all(present.get(name) == value for name, value in wanted._asdict().items()):
            return
        is_turned = present.get("status") != wanted.status
        changed = timestamp(self._now()) if is_turned else present["lastTransitionTime"]
        condition = {**wanted._asdict(), "lastTransitionTime": changed}
        resource, name = self._registry.canonical(*key), document["metadata"]["name"]
        fields = self._registry.extensions.fields
        applies = key == _FLOW_SCHEMAS and fields is not None
        manager = "api-priority-and-fairness-config-consumer-v1" if key == _FLOW_SCHEMAS else "kube-apiserver"
        options = WriteOptions(field_manager=manager, is_inside=True, is_apply=applies)

        def edit(old: Document | None) -> Document:
            assert old is not None
            if not applies or fields is None:
                others = [one for one in conditions if one["type"] != wanted.type]
                return {**old, "status": {**(old.get("status") or {}), "conditions": [*others, condition]}}
            head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
            config = {**head, "status": {"conditions": [condition]}}
            return copy_tree(fields.apply(resource, old, config, manager=manager, force=True, subresource="status"))

        self._registry.writer.update_directly(resource, "", name, edit, options, "status")


def _unavailable(reason: str, message: str) -> _Condition:
    return _Condition("Available", "False", reason, message)


def _is_served(slice_: Document, port_name: str) -> bool:
    ready = any((one.get("conditions") or {}).get("ready") is not False for one in slice_.get("endpoints") or ())
    return ready and any(port.get("name", "") == port_name for port in slice_.get("ports") or ())
