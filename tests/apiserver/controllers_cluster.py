"""A registry with the simulated controllers running on it, and a way to wait for its state."""

import asyncio
import time
from contextlib import asynccontextmanager

from ctrlruntime.apiserver.admission import AdmissionChain
from ctrlruntime.apiserver.admission.plugins import PLUGINS
from ctrlruntime.apiserver.apply import ManagedFieldsTracker
from ctrlruntime.apiserver.controllers import build
from ctrlruntime.apiserver.registry import Registry
from ctrlruntime.apiserver.registry.metrics import serve_metrics
from ctrlruntime.apiserver.storage import Store


class Cluster:
    def __init__(self, registry: Registry) -> None:
        self.api = registry

    async def until(self, condition, *, seconds: float = 5.0):
        """Return the first true value of `condition`, asked after every write."""
        async with asyncio.timeout(seconds):
            if found := condition():
                return found
            async for _ in self.api.watch_all():
                if found := condition():
                    return found
        raise AssertionError("the watch ended")

    async def settle(self) -> None:
        """Return when a hundred turns of the loop have passed without a write."""
        revision, quiet = -1, 0
        while quiet < 100:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.api.store.revision == revision else 0
            revision = self.api.store.revision

    def pods(self, namespace: str = "default"):
        return self.api.list("", "pods", namespace)

    def ready(self, namespace: str = "default"):
        return [p for p in self.pods(namespace) if is_ready(p)]

    def deployment(self, name: str = "web"):
        return self.api.get("apps", "deployments", "default", name)

    def replica_sets(self):
        return self.api.list("apps", "replicasets", "default")

    async def create(self, group: str, resource: str, document, namespace: str = "default"):
        return await self.api.create(group, resource, namespace, document)


def is_ready(pod) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())


@asynccontextmanager
async def cluster(names=None, *, metrics=False, **options):
    registry = Registry(Store())
    if metrics:
        serve_metrics(registry, time.time)
    registry.extensions.fields = ManagedFieldsTracker(registry)
    registry.extensions.admission = AdmissionChain([plugin(registry) for plugin in PLUGINS.values()])
    async with asyncio.TaskGroup() as tasks:
        await registry.create("", "namespaces", "", {"metadata": {"name": "default"}})
        running = [tasks.create_task(controller.run(registry)) for controller in build(names, **options)]
        try:
            yield Cluster(registry)
        finally:
            for task in running:
                task.cancel()


def deployment(name="web", replicas=3, image="web:1", **spec):
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}},
            **spec,
        },
    }


def pod(name="p", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "web:1"}], **spec},
    }


def config_map(name, owners=(), **metadata):
    refs = [
        {
            "apiVersion": o["apiVersion"],
            "kind": o["kind"],
            "name": o["metadata"]["name"],
            "uid": o["metadata"]["uid"],
            **extra,
        }
        for o, extra in ((o if isinstance(o, tuple) else (o, {})) for o in owners)
    ]
    meta = {"name": name, "namespace": "default", **metadata}
    if refs:
        meta["ownerReferences"] = refs
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
