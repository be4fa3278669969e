"""A kopf operator: each Widget gets a ConfigMap of its own, a status, a finalizer and an Event."""

from __future__ import annotations

import asyncio
from typing import Any

import kopf
from kubernetes_asyncio import client, config

GROUP = "clients.example.com"


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = 20
    settings.watching.server_timeout = 60
    await config.load_kube_config()


@kopf.on.create(GROUP, "v1", "widgets")
async def created(spec: Any, name: str, namespace: str, body: Any, **_: Any) -> dict[str, Any]:
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"size": str(spec["size"])}}
    kopf.adopt(child, owner=body)
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).create_namespaced_config_map(namespace, child)
    kopf.info(body, reason="Made", message=f"made the ConfigMap of {name}")
    return {"size": spec["size"]}


@kopf.on.update(GROUP, "v1", "widgets", field="spec.size")
async def resized(new: Any, name: str, namespace: str, patch: Any, **_: Any) -> None:
    async with client.ApiClient() as api:
        await client.CoreV1Api(api).patch_namespaced_config_map(name, namespace, {"data": {"size": str(new)}})
    patch.status["size"] = new


@kopf.on.delete(GROUP, "v1", "widgets")
async def deleted(name: str, **_: Any) -> None:
    await asyncio.sleep(0)


@kopf.timer(GROUP, "v1", "widgets", interval=1.0, initial_delay=0.2)
async def ticked(patch: Any, status: Any, **_: Any) -> None:
    if not status.get("ticked"):
        patch.status["ticked"] = True
