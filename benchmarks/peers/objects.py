"""The objects of the benchmark: custom resources of 1.3 KB and Pods of 10 KB, and the server they are put on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from benchmarks.peers.bare import Bare, encoded

Maker = Callable[[int], dict[str, Any]]
NAMESPACE = "bench"
WIDGETS = f"/apis/bench.example.com/v1/namespaces/{NAMESPACE}/widgets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

_STRINGS = {"type": "array", "items": {"type": "string"}}
_VARIABLE = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
}
_SPEC = {
    "size": {"type": "integer", "format": "int32"},
    "image": {"type": "string"},
    "args": _STRINGS,
    "env": {"type": "array", "items": _VARIABLE},
    "selector": {"type": "object", "additionalProperties": {"type": "string"}},
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": _SPEC},
        "status": {"type": "object", "properties": {"nodes": _STRINGS}},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": _SCHEMA},
            }
        ],
    },
}


def widget(number: int) -> dict[str, Any]:
    """A custom resource, 1.3 KB as the server returns it."""
    name = f"widget-{number:06}"
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app": "bench", "tier": f"t{number % 10}", "instance": name},
        },
        "spec": {
            "size": number % 7,
            "image": f"registry.example.com/team/image:{number % 100}",
            "args": [f"--setting-{index}=value-{number}" for index in range(8)],
            "env": [{"name": f"VARIABLE_{index}", "value": f"value {number}"} for index in range(7)],
            "selector": {"app": "bench", "instance": name},
        },
    }


def pod(number: int) -> dict[str, Any]:
    """A Pod, 10 KB as the server returns it."""
    name = f"pod-{number:06}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "bench", "tier": f"t{number % 10}"}},
        "spec": {
            "serviceAccountName": "default",
            "containers": [container(number, index) for index in range(3)],
            "volumes": [{"name": f"volume-{index}", "emptyDir": {}} for index in range(3)],
            "nodeSelector": {"example.com/pool": f"pool-{number % 10}"},
        },
    }


def container(number: int, index: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    resources = {"cpu": "100m", "memory": "128Mi"}
    return {
        "name": f"container-{index}",
        "image": f"registry.example.com/team/image:{number % 100}",
        "command": ["/bin/program", f"--number={number}"],
        "env": [{"name": f"VARIABLE_{index}_{n}", "value": f"some value {number}"} for n in range(8)],
        "ports": [{"containerPort": 8000 + index, "name": f"port-{index}"}],
        "volumeMounts": [{"name": f"volume-{n}", "mountPath": f"/var/volume-{n}"} for n in range(3)],
        "resources": {"requests": resources, "limits": resources},
        "livenessProbe": probe,
        "readinessProbe": probe,
    }


def described(number: int) -> dict[str, Any]:
    """A custom resource that is hardly more than its metadata, 2 KiB as the server returns it."""
    made = widget(number)
    made["spec"] = {"size": number % 7}
    made["metadata"]["annotations"] = {
        f"bench.example.com/note-{index}": f"{number} said {index}: " + "a longer remark, " * 6 for index in range(8)
    }
    return made


MAKERS = {WIDGETS: widget, PODS: pod}


async def make_namespace(server: Bare) -> None:
    await server.ask("POST", "/api/v1/namespaces", encoded({"metadata": {"name": NAMESPACE}}))


async def fill(server: Bare, path: str, numbers: range, make: Maker | None = None) -> None:
    """Create objects, 20 at a time."""
    pending, make = iter(numbers), make or MAKERS[path]

    async def create() -> None:
        for number in pending:
            await server.ask("POST", path, encoded(make(number)))

    await asyncio.gather(*(create() for _ in range(20)))


async def fill_namespaces(server: Bare, count: int) -> None:
    """Create namespaces with a custom resource in each, 20 at a time."""
    pending = iter(range(count))

    async def create() -> None:
        for number in pending:
            name = f"bench-{number:04}"
            made = widget(number)
            made["metadata"]["namespace"] = name
            await server.ask("POST", "/api/v1/namespaces", encoded({"metadata": {"name": name}}))
            path = f"/apis/bench.example.com/v1/namespaces/{name}/widgets"
            await server.ask("POST", path, encoded(made))

    await asyncio.gather(*(create() for _ in range(20)))


async def empty(server: Bare, *paths: str) -> None:
    for path in paths:
        await server.ask("DELETE", path)


async def size(server: Bare, path: str) -> float:
    """Return the bytes of one object as it is listed, on average over the first ones."""
    listed = json.loads(await server.ask("GET", f"{path}?limit=100"))["items"]
    return sum(len(encoded(item)) for item in listed) / max(1, len(listed))
