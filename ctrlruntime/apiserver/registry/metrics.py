"""`metrics.k8s.io/v1beta1` as metrics-server serves it: PodMetrics and NodeMetrics, computed when they are read.

What a Pod uses is said by its annotations (`apiserver.usage`). A Node uses what its Pods use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import PODS
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.apiserver.usage import IDLE, UsageError, measured
from ctrlruntime.quantities import add
from ctrlruntime.schema.trees import Document

GROUP: Final = "metrics.k8s.io"
_NODES: Final = ("", "nodes")
_RBAC: Final = "rbac.authorization.k8s.io"
_VERBS: Final = ("get", "list")
_WINDOW: Final = "0s"
"""The amounts are those of the moment. So an autoscaler counts a Pod as soon as it is ready, and not a window later."""
_AMOUNTS: Final[Document] = {"type": "object", "additionalProperties": {"type": "string"}}
_TIMES: Final[Document] = {
    "timestamp": {"type": "string", "format": "date-time"},
    "window": {"type": "string"},
}
_PODS_SCHEMA: Final[Document] = {
    "type": "object",
    "required": ["timestamp", "window", "containers"],
    "properties": {
        **_TIMES,
        "containers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "usage"],
                "properties": {"name": {"type": "string"}, "usage": _AMOUNTS},
            },
        },
    },
}
_NODES_SCHEMA: Final[Document] = {
    "type": "object",
    "required": ["timestamp", "window", "usage"],
    "properties": {**_TIMES, "usage": _AMOUNTS},
}
READER: Final[Document] = {
    "metadata": {
        "name": "system:aggregated-metrics-reader",
        "labels": {
            "k8s-app": "metrics-server",
            **{f"{_RBAC}/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")},
        },
    },
    "rules": [{"apiGroups": [GROUP], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"]}],
}
"""The ClusterRole that comes with metrics-server: who may view, edit or administer a namespace may read its metrics."""


class PodMetrics:
    """The metrics of running Pods."""

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        self._registry = registry
        self._now = now
        self.schema = _PODS_SCHEMA
        self.resource = _resource("pods", "PodMetrics", namespaced=True)
        self.resource.computed = self

    def records(self, namespace: str, warnings: list[str]) -> Iterator[Record]:
        for pod in self._registry.list(*PODS, namespace):
            record = self._record(pod, warnings)
            if record is not None:
                yield record

    def record(self, namespace: str, name: str, warnings: list[str]) -> Record:
        pod = self._registry.get(*PODS, namespace, name)
        if pod is None:
            raise failures.not_found("pods", "", name)
        record = self._record(pod, warnings)
        if record is None:
            raise failures.not_found("podmetrics", GROUP, f"{namespace}/{name}")
        return record

    def _record(self, pod: Document, warnings: list[str]) -> Record | None:
        try:
            containers = [{"name": name, "usage": usage} for name, usage in measured(pod)]
        except UsageError as error:
            warnings.append(f"Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}: {error}")
            return None
        return _record(self.resource, pod, self._now(), {"containers": containers}) if containers else None


class NodeMetrics:
    """The metrics of Nodes: the sums of what their Pods use."""

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        self._registry = registry
        self._now = now
        self.schema = _NODES_SCHEMA
        self.resource = _resource("nodes", "NodeMetrics", namespaced=False)
        self.resource.computed = self

    def records(self, namespace: str, warnings: list[str]) -> Iterator[Record]:
        used = self._used(warnings)
        for node in self._registry.list(*_NODES):
            yield self._record(node, used)

    def record(self, namespace: str, name: str, warnings: list[str]) -> Record:
        node = self._registry.get(*_NODES, "", name)
        if node is None:
            raise failures.not_found("nodes", "", name)
        return self._record(node, self._used(warnings))

    def _record(self, node: Document, used: dict[str, dict[str, str]]) -> Record:
        usage = used.get(str(node["metadata"]["name"])) or dict.fromkeys(IDLE, "0")
        return _record(self.resource, node, self._now(), {"usage": usage})

    def _used(self, warnings: list[str]) -> dict[str, dict[str, str]]:
        """Return what the Pods of each Node use."""
        totals: dict[str, dict[str, str]] = {}
        for pod in self._registry.list(*PODS):
            total = totals.setdefault(str(pod["spec"].get("nodeName", "")), dict.fromkeys(IDLE, "0"))
            try:
                for _, usage in list(measured(pod)):
                    for name, amount in usage.items():
                        total[name] = add(total[name], amount)
            except UsageError as error:
                warnings.append(f"Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}: {error}")
        return totals


def serve_metrics(registry: Registry, now: Callable[[], float]) -> None:
    """Serve the group. A definition cannot have the names under which it does."""
    for computed in (PodMetrics(registry, now), NodeMetrics(registry, now)):
        registry.serve(f"{GROUP}/{computed.resource.plural}", [computed.resource])


def _resource(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(GROUP, "v1beta1", plural, "", kind, namespaced, _VERBS)


def _record(resource: Resource, about: Document, moment: float, amounts: Document) -> Record:
    """Return the metrics of a Pod or a Node, which have its name and labels."""
    metadata, labels = about["metadata"], about["metadata"].get("labels")
    namespace, name, read_at = str(metadata.get("namespace", "")), str(metadata["name"]), timestamp(moment)
    shown: Document = {"name": name}
    if namespace:
        shown["namespace"] = namespace
    shown["creationTimestamp"] = read_at
    if labels:
        shown["labels"] = labels
    document: Document = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": shown,
        "timestamp": read_at,
        "window": _WINDOW,
        **amounts,
    }
    return Record((namespace, name), 0, resource.encode(document), resource, labels)


__all__ = ["GROUP", "READER", "serve_metrics"]
