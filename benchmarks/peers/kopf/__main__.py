"""The kopf peer: `python -m benchmarks.peers.kopf WORKLOAD …`, with handlers as kopf's own documents write them.

It has no cache to read from, so that only the workloads with handlers are there. Nothing is posted as an event and nothing is kept in
annotations but what its handlers need.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import kopf

from benchmarks.peers.protocol import Asked, Figures, Tally, asked, obey, ready

WORKLOADS = {"idle", "reconciled", "latency", "children"}
KIND = ("bench.example.com", "v1", "widgets")


def settings() -> kopf.OperatorSettings:
    """No events. The number of workers is not limited: each keeps its object for some seconds, and others would wait for that."""
    made = kopf.OperatorSettings()
    made.posting.enabled = False
    return made


def login(**_: Any) -> Any:
    return kopf.login_with_kubeconfig(logger=logging.getLogger("login"), settings=kopf.OperatorSettings())


class Operator:
    """Handlers in a registry of their own, and what they count."""

    def __init__(self, given: Asked) -> None:
        self.given = given
        self.tally = Tally(given.objects)
        self.registry = kopf.OperatorRegistry()
        self.task: asyncio.Task[None] | None = None
        self.made: set[str] = set()
        kopf.on.login(registry=self.registry)(login)

    def seen(self, name: str, spec: Any, **_: Any) -> None:
        self.tally.begin(name)
        assert spec["size"] >= 0
        self.tally.finish()

    def other(self, **_: Any) -> None:
        """A further kind is watched."""

    async def create_child(self, name: str, namespace: str, body: Any, spec: Any, patch: kopf.Patch, **_: Any) -> None:
        from kubernetes_asyncio import client

        data = {"size": str(spec["size"])}
        child: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-child"}, "data": data}
        kopf.append_owner_reference(child, owner=body)
        await client.CoreV1Api(self.api).create_namespaced_config_map(namespace, child)
        patch.status["nodes"] = ["one"]

    def written(self, name: str, status: Any, **_: Any) -> None:
        if status.get("nodes") and name not in self.made:
            self.made.add(name)
            self.tally.finish()

    def start(self) -> None:
        ready()
        running = kopf.operator(registry=self.registry, settings=settings(), standalone=True, clusterwide=True)
        self.task = asyncio.create_task(running)

    async def reconciled(self) -> Figures:
        kopf.on.event(*KIND, registry=self.registry)(self.seen)
        self.start()
        await self.tally.done.wait()
        return {"objects": self.tally.finished}

    async def idle(self) -> Figures:
        for kind in (("", "v1", "configmaps"), ("apps", "v1", "deployments")):
            kopf.on.event(*kind, registry=self.registry)(self.other)
        return await self.reconciled()

    async def latency(self) -> Figures:
        await self.reconciled()
        return await self.tally.updates(self.given.updates)

    async def children(self) -> Figures:
        from kubernetes_asyncio import client, config

        await config.load_kube_config(self.given.kubeconfig)
        self.api = client.ApiClient()
        create: Any = self.create_child  # kopf passes arguments by name; its types want all of them
        kopf.on.create(*KIND, registry=self.registry)(create)
        kopf.on.event(*KIND, registry=self.registry)(self.written)
        self.start()
        await self.tally.done.wait()
        return {"objects": self.tally.finished}


async def main() -> None:
    logging.disable(logging.WARNING)
    given = asked(WORKLOADS)
    os.environ["KUBECONFIG"] = given.kubeconfig
    await obey(getattr(Operator(given), given.workload)())


if __name__ == "__main__":
    asyncio.run(main())
