"""Whether a Deployment has come up, and if not, why: what its Pods, their containers and their Events say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.api import apps, core
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import APIStatusError, CtrlError

__all__ = ["Rollout", "rollout_of"]

_STUCK: Final = frozenset(
    {
        *("CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
"""Reasons of a waiting container that time alone does not fix."""

_LOG_LINES: Final = 10
_Event = Unstructured.of("v1", "Event")


@dataclass(frozen=True, slots=True)
class Rollout:
    """The progress of a rollout. `is_stuck`: it will not continue by itself; `log`: the last lines of a container that ended."""

    is_done: bool
    text: str
    is_stuck: bool = False
    log: tuple[str, ...] = ()


async def rollout_of(cluster: Cluster, key: NamespacedName) -> Rollout:
    """Return the progress of a Deployment's rollout. Raises: NotFound, APIStatusError, TransportError."""
    deployment = await cluster.api_reader.get(apps.Deployment, key)
    text = _progress(deployment)
    if text is None:
        return Rollout(True, _available(deployment))
    trouble = _of_deployment(deployment) or await _of_pods(cluster, deployment)
    if trouble is None:
        return Rollout(False, text)
    return Rollout(False, f"{text}; {trouble.text}", trouble.is_stuck, trouble.log)


def _progress(deployment: apps.Deployment) -> str | None:
    """Return what is not done yet, as `kubectl rollout status` sees it; None when all is."""
    wanted = 1 if deployment.spec.replicas is None else deployment.spec.replicas
    status = deployment.status
    if status.observed_generation < deployment.metadata.generation:
        return "not observed yet"
    if status.updated_replicas < wanted:
        return f"{status.updated_replicas} of {wanted} replicas updated"
    if status.replicas > status.updated_replicas:
        return f"{status.replicas - status.updated_replicas} old replicas are ending"
    if status.available_replicas < status.updated_replicas:
        return f"{status.available_replicas} of {wanted} replicas available"
    return None


def _available(deployment: apps.Deployment) -> str:
    count = deployment.status.available_replicas
    return f"{count} replica{'' if count == 1 else 's'} available"


@dataclass(frozen=True, slots=True)
class _Trouble:
    text: str
    is_stuck: bool = False
    log: tuple[str, ...] = ()


def _of_deployment(deployment: apps.Deployment) -> _Trouble | None:
    """Return why no Pods can be made: a quota, a missing ServiceAccount, pod security."""
    for condition in deployment.status.conditions:
        if condition.type == "ReplicaFailure" and condition.status == "True":
            return _Trouble(condition.message or condition.reason, is_stuck=True)
    return None


async def _of_pods(cluster: Cluster, deployment: apps.Deployment) -> _Trouble | None:
    labels = deployment.spec.selector.match_labels if deployment.spec.selector is not None else {}
    try:
        listed = await cluster.api_reader.list(core.Pod, namespace=deployment.metadata.namespace, labels=labels)
    except APIStatusError:  # who may deploy need not be allowed to look at Pods
        return None
    image = {container.image for container in deployment.spec.template.spec.containers}
    pods = [
        pod
        for pod in listed.valid
        # Those of the rollout, not those it replaces.
        if pod.metadata.deletion_timestamp is None and image <= {container.image for container in pod.spec.containers}
    ]
    pods.sort(key=lambda pod: str(pod.metadata.creation_timestamp), reverse=True)
    for pod in pods:
        trouble = await _of_pod(cluster, pod)
        if trouble is not None:
            return trouble
    return None


async def _of_pod(cluster: Cluster, pod: core.Pod) -> _Trouble | None:
    name = pod.metadata.name
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return _Trouble(f"cannot schedule Pod {name}: {condition.message or condition.reason}")
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is None or waiting.reason in {"", "ContainerCreating", "PodInitializing"}:
            continue
        is_stuck = waiting.reason in _STUCK
        if waiting.reason == "CrashLoopBackOff":
            text = f"container {status.name} of Pod {name} keeps crashing{_ending(status)}"
            return _Trouble(text, is_stuck, await _log(cluster, pod, status.name))
        message = f": {waiting.message}" if waiting.message else ""
        return _Trouble(
            f"container {status.name} of Pod {name} is waiting: {waiting.reason}{message} (image {status.image})",
            is_stuck,
        )
    return await _of_events(cluster, pod)


def _ending(status: core.ContainerStatus) -> str:
    ended = status.last_state.terminated
    if ended is None:
        return ""
    why = "memory limit exceeded" if ended.reason == "OOMKilled" else f"exit code {ended.exit_code}"
    return f" ({why}, {status.restart_count} restarts)"


async def _of_events(cluster: Cluster, pod: core.Pod) -> _Trouble | None:
    """Return the last warning about a Pod if its containers show no cause, such as a missing volume or a failed probe."""
    if _is_ready(pod):
        return None
    try:
        events = await cluster.api_reader.list(
            _Event, namespace=pod.metadata.namespace, fields={"involvedObject.uid": pod.metadata.uid}
        )
    except CtrlError:
        return None
    warnings = [event for event in events if event.get_path("type") == "Warning"]
    if not warnings:
        return None
    last: Unstructured = max(warnings, key=_when)
    return _Trouble(f"Pod {pod.metadata.name}: {last.get_path('reason')}: {_one_line(last.get_path('message'))}")


def _when(event: Unstructured) -> str:
    moments: Iterable[Any] = (event.get_path(name) for name in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return str(next((moment for moment in moments if moment), ""))


def _is_ready(pod: core.Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


async def _log(cluster: Cluster, pod: core.Pod, container: str) -> tuple[str, ...]:
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/log"
    params = [("container", container), ("tailLines", str(_LOG_LINES))]
    for previous in (
        ("previous", "true"),
        ("previous", "false"),
    ):  # right after a restart the current one has said little
        try:
            answer = await cluster.transport.request("GET", path, params=[*params, previous], accept="*/*")
        except CtrlError:
            continue
        lines = answer.body.decode("utf-8", "replace").splitlines()
        if lines:
            return tuple(lines[-_LOG_LINES:])
    return ()


def _one_line(text: Any) -> str:
    return " ".join(str(text or "").split())
