"""Whether the operator in the cluster runs: its Deployment, its restarts, its memory."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ctrlruntime.api import apps, core
from ctrlruntime.api.object import Unstructured
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import CtrlError
from ctrlruntime.project.deployment.objects import Named
from ctrlruntime.project.deployment.rollout import rollout_of
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned
from ctrlruntime.project.doctor.local import bytes_of, mebibytes

__all__ = ["deployed", "workload_checks"]

_TIGHT = 0.8  # of the memory limit
_PodMetrics = Unstructured.of("metrics.k8s.io/v1beta1", "PodMetrics")


async def deployed(cluster: Cluster, subject: Subject) -> apps.Deployment | None:
    """Return the operator's Deployment in the cluster, None where it is not deployed."""
    if subject.deployment is None:
        return None
    return await cluster.api_reader.get_or_none(apps.Deployment, Named.of(subject.deployment).key)


async def workload_checks(cluster: Cluster, subject: Subject, deployment: apps.Deployment) -> AsyncIterator[Check]:
    """Yield the checks of a Deployment that exists."""
    name = f"{deployment.metadata.namespace}/{deployment.metadata.name}"
    state = await rollout_of(cluster, Named.of(deployment.to_dict()).key)
    if state.is_done:
        yield fine("deployment", f"{name}: {state.text}")
    else:
        yield failed(
            "deployment", f"{name}: {state.text}", f"See kubectl -n {deployment.metadata.namespace} describe pods"
        )
    yield _image(subject, deployment)
    pods = await _pods(cluster, deployment)
    for pod in pods:
        for check in _ends(pod):
            yield check
    async for check in _memory(cluster, pods):
        yield check


def _image(subject: Subject, deployment: apps.Deployment) -> Check:
    wanted = str(subject.container.get("image") or "")
    images = [each.image for each in deployment.spec.template.spec.containers]
    if wanted in images:
        return fine("image", wanted)
    return warned(
        "image",
        f"{', '.join(images)} runs, but config/default has {wanted}",
        "Run `ctrl deploy`, except after `ctrl deploy --image`",
    )


async def _pods(cluster: Cluster, deployment: apps.Deployment) -> list[core.Pod]:
    labels = deployment.spec.selector.match_labels if deployment.spec.selector is not None else {}
    listed = await cluster.api_reader.list(core.Pod, namespace=deployment.metadata.namespace, labels=labels)
    return [pod for pod in listed.valid if pod.metadata.deletion_timestamp is None]


def _ends(pod: core.Pod) -> list[Check]:
    """Return the checks of containers that ended before."""
    found: list[Check] = []
    for status in pod.status.container_statuses:
        ended = status.last_state.terminated
        if ended is None:
            continue
        where = f"container {status.name} of Pod {pod.metadata.name}"
        count = f"{status.restart_count} restart{'' if status.restart_count == 1 else 's'}"
        if ended.reason == "OOMKilled":
            text = f"{where} ended at its memory limit ({count})"
            found.append(failed("restarts", text, "Raise resources.limits.memory in config/manager/manager.yaml"))
        else:
            log = f"kubectl -n {pod.metadata.namespace} logs {pod.metadata.name} --previous"
            found.append(warned("restarts", f"{where} ended with code {ended.exit_code} ({count})", f"See {log}"))
    return found


async def _memory(cluster: Cluster, pods: list[core.Pod]) -> AsyncIterator[Check]:
    """Compare the memory of containers with their limits, if the cluster measures it."""
    for pod in pods:
        try:
            found = await cluster.api_reader.get_or_none(_PodMetrics, Named.of(pod.to_dict()).key)
        except CtrlError:  # no metrics server, or it does not know the Pod yet
            return
        used = {each["name"]: each["usage"].get("memory") for each in found["containers"]} if found is not None else {}
        for container in pod.spec.containers:
            limit = container.resources.limits.get("memory")
            if limit is None or not used.get(container.name):
                continue
            now, most = bytes_of(str(used[container.name])), float(limit)
            text = f"container {container.name} of Pod {pod.metadata.name} uses {mebibytes(now)} of {mebibytes(most)}"
            if now > most * _TIGHT:
                yield warned("usage", text, "Raise resources.limits.memory in config/manager/manager.yaml")
            else:
                yield fine("usage", text)
