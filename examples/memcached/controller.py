"""The Memcached controller: one Deployment for each Memcached, and the names of its pods in the status."""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core, meta
from ctrlruntime.handler import enqueue_requests_from_map_func
from ctrlruntime.operatorlib import related_image
from ctrlruntime.predicate import ResourceVersionChangedPredicate
from examples.memcached.api import Memcached

IMAGE = related_image("memcached", default="memcached:1.6")  # the mirrored image in a disconnected cluster
INSTANCE = "cache.example.com/memcached"

ELECTION = ctrl.LeaderElection("memcached.cache.example.com")

PodMetadata = ctrl.PartialObjectMetadata.of(core.Pod)


def setup(mgr: ctrl.Manager, *, sharded: bool = False) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    MemcachedReconciler(mgr.client).setup_with_manager(mgr, sharded=sharded)


@ctrl.rbac(groups="apps", resources="deployments", verbs="create;update")
@ctrl.rbac(groups="cache.example.com", resources="memcacheds", verbs="get")
@ctrl.rbac(groups="cache.example.com", resources="memcacheds/status", verbs="update")
class MemcachedReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.log = ctrl.get_logger("memcached")

    def setup_with_manager(self, mgr: ctrl.Manager, *, sharded: bool = False) -> None:
        (
            ctrl.new_controller_managed_by(mgr)
            .for_(Memcached)
            .owns(apps.Deployment)
            .watches_metadata(core.Pod, enqueue_requests_from_map_func(memcached_of))
            .with_event_filter(ResourceVersionChangedPredicate())
            .with_options(max_concurrent_reconciles=2, sharded=sharded)
            .complete(self)
        )

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        memcached = await self.client.get_or_none(Memcached, request)
        if memcached is None:
            self.log.info("memcached is gone; its children are collected")
            return None

        def shape(deployment: apps.Deployment) -> None:
            labels = {INSTANCE: memcached.metadata.name}
            deployment.spec.replicas = memcached.spec.size
            deployment.spec.selector = meta.LabelSelector(match_labels=labels)
            deployment.spec.template.metadata.labels = labels
            if not deployment.spec.template.spec.containers:
                deployment.spec.template.spec.containers = [core.Container(name="memcached")]
            container = deployment.spec.template.spec.containers[0]
            container.image = IMAGE
            container.command = ["memcached", "-m=64", "-o", "modern", "-v"]
            container.ports = [core.ContainerPort(name="memcached", container_port=11211, protocol="TCP")]
            ctrl.set_controller_reference(memcached, deployment)

        _, result = await ctrl.create_or_update(self.client, apps.Deployment, request, shape)
        if result is not ctrl.OperationResult.UNCHANGED:
            self.log.info("deployment written", result=result.value, replicas=memcached.spec.size)

        pods = await self.client.list(PodMetadata, namespace=request.namespace, labels={INSTANCE: request.name})
        nodes = sorted(pod.name for pod in pods.metadata if pod.deletion_timestamp is None)
        if nodes != memcached.status.nodes:
            memcached.status.nodes = nodes
            await self.client.status.update(memcached)
            self.log.info("status written", nodes=nodes)
        return None


def memcached_of(pod: ctrl.PartialObjectMetadata) -> list[ctrl.Request]:
    """Return the request for the Memcached of a pod, from its label."""
    name = pod.metadata.labels.get(INSTANCE)
    return [ctrl.Request(pod.metadata.namespace, name)] if name else []
