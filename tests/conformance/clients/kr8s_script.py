"""kr8s against one server: objects, selectors, scale, patches, watches, waits.

python kr8s_script.py KUBECONFIG NAMESPACE
"""

from __future__ import annotations

import asyncio
import sys

import kr8s
from kr8s.asyncio.objects import ConfigMap, Deployment, Pod, new_class

GROUP = "clients.example.com"


async def main(kubeconfig: str, namespace: str) -> None:
    api = await kr8s.asyncio.api(kubeconfig=kubeconfig, namespace=namespace)
    assert (await api.version())["major"] == "1"
    await objects(api, namespace)
    await custom(api, namespace)
    await workload(api, namespace)
    print("done")


async def objects(api: kr8s.Api, namespace: str) -> None:
    one = await ConfigMap(
        {"metadata": {"name": "kr8s", "namespace": namespace, "labels": {"by": "kr8s"}}, "data": {"a": "1"}}, api=api
    )
    await one.create()
    assert await one.exists()
    await one.patch({"data": {"b": "2"}})
    await one.label({"more": "yes"})
    await one.annotate({"note": "here"})
    await one.refresh()
    assert (one.data, one.labels["more"]) == ({"a": "1", "b": "2"}, "yes")
    found = [item.name async for item in api.get("configmaps", namespace=namespace, label_selector={"by": "kr8s"})]
    assert found == ["kr8s"], found
    kinds = [kind["name"] for kind in await api.api_resources()]
    assert {"pods", "deployments", "widgets"} <= set(kinds)
    await one.delete()
    await one.wait("delete", timeout=120)
    print("objects")


async def custom(api: kr8s.Api, namespace: str) -> None:
    widget_class = new_class("Widget", f"{GROUP}/v1", namespaced=True, asyncio=True)
    widget = await widget_class({"metadata": {"name": "kr8s", "namespace": namespace}, "spec": {"size": 1}}, api=api)
    await widget.create()
    await widget.patch({"status": {"size": 4}}, subresource="status")
    await widget.refresh()
    assert widget.status.size == 4
    changed = asyncio.create_task(first_change(api, namespace))
    while not changed.done():  # the watch begins when it begins
        await widget.patch({"spec": {"size": int(widget.spec.size) + 1}})
        await asyncio.wait({changed}, timeout=0.2)
    assert changed.result() == "MODIFIED"
    await widget.delete()
    print("custom")


async def first_change(api: kr8s.Api, namespace: str) -> str:
    async for event, _ in api.watch(f"widgets.{GROUP}", namespace=namespace):
        if event == "MODIFIED":
            return event
    raise AssertionError("the watch ended")


async def workload(api: kr8s.Api, namespace: str) -> None:
    labels = {"app": "kr8s"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    deployment = await Deployment({"metadata": {"name": "kr8s", "namespace": namespace}, "spec": spec}, api=api)
    await deployment.create()
    await deployment.wait("condition=Available", timeout=120)
    await deployment.scale(2)
    pods: list[Pod] = []
    for _ in range(600):
        pods = [pod async for pod in Pod.list(namespace=namespace, label_selector=labels, api=api)]
        if len(pods) == 2:
            break
        await asyncio.sleep(0.1)
    assert all(pod.kind == "Pod" for pod in pods)
    await deployment.delete()
    print("workload")


asyncio.run(main(sys.argv[1], sys.argv[2]))
