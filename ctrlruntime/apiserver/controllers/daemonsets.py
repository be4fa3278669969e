"""DaemonSets: one pod on every node whose labels the template's nodeSelector picks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    Relabelled,
    claim,
    is_active,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    metadata,
    own_key,
    pod_from,
    write_status,
)
from ctrlruntime.apiserver.controllers.placement import is_chosen, tolerates
from ctrlruntime.apiserver.controllers.revisions import drop_history, keep_revision, template_hash
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document

REVISION_LABEL: Final = "controller-revision-hash"
_GENERATION: Final = "deprecated.daemonset.template.generation"
_TOLERATIONS: Final = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
)
_NETWORK_TOLERATION: Final = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
    "effect": "NoSchedule",
}


class DaemonSets:
    name = "daemonset"

    def __init__(self, now: Now) -> None:
        self._events = Recorder("daemonset-controller", now)
        self._relabelled = Relabelled("DaemonSet")

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def every(change: Change) -> Iterable[Key]:
            # A node's heartbeat concerns nobody; its coming, going and labels do.
            if change.old is None or change.type == "DELETED" or labels_of(change.old) != labels_of(change.object):
                yield from (key_of(found) for found in api.list("apps", "daemonsets"))

        return [
            keys_of(api.watch("apps", "daemonsets"), own_key),
            keys_of(api.watch("", "pods"), self._relabelled),
            keys_of(api.watch("", "nodes"), every),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        owner = api.get("apps", "daemonsets", *key)
        if owner is None:
            return None
        pods = await claim(api, owner, "", "pods", relabelled=self._relabelled.take(key))
        if not is_deleting(owner):
            await keep_revision(api, owner, REVISION_LABEL, _revision_annotations)
            await self._place(api, owner, pods)
        await self._write_status(api, key)
        return None

    async def _place(self, api: API, owner: Document, pods: Sequence[Document]) -> None:
        nodes, occupied = _nodes(api, owner), {_node_of(pod) for pod in pods}
        for node in nodes:
            if node not in occupied:
                await self._create(api, owner, node)
        for pod in pods:
            is_finished = (pod.get("status") or {}).get("phase") in FINISHED
            if not is_deleting(pod) and (is_finished or _node_of(pod) not in nodes):
                await self._delete(api, owner, pod)
        if (owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            await self._update_one(api, owner, pods)

    async def _update_one(self, api: API, owner: Document, pods: Sequence[Document]) -> None:
        """Replace one pod of an older template, once all the others are ready."""
        old = [pod for pod in pods if is_active(pod) and labels_of(pod).get(REVISION_LABEL) != _revision(owner)]
        waiting = [pod for pod in pods if is_deleting(pod) or not is_true(pod, "Ready")]
        if old and all(pod in old and not is_deleting(pod) for pod in waiting):
            await self._delete(api, owner, waiting[0] if waiting else old[0])

    async def _create(self, api: API, owner: Document, node: str) -> None:
        namespace, name = key_of(owner)
        pod = pod_from(owner["spec"].get("template") or {}, owner, generateName=f"{name}-", namespace=namespace)
        generation = (metadata(owner).get("annotations") or {}).get(_GENERATION, "1")
        metadata(pod).setdefault("labels", {}).update(
            {REVISION_LABEL: _revision(owner), "pod-template-generation": generation}
        )
        _pin(pod["spec"], node)
        created = await api.create("", "pods", namespace, pod)
        await self._events.normal(api, owner, "SuccessfulCreate", f"Created pod: {metadata(created)['name']}")

    async def _delete(self, api: API, owner: Document, pod: Document) -> None:
        namespace, name = key_of(pod)
        await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"])
        await self._events.normal(api, owner, "SuccessfulDelete", f"Deleted pod: {name}")

    @staticmethod
    async def _write_status(api: API, key: Key) -> None:
        owner = api.get("apps", "daemonsets", *key)
        if owner is None:
            return
        nodes = _nodes(api, owner)
        pods = [pod for pod in await claim(api, owner, "", "pods") if is_active(pod)]
        placed = [pod for pod in pods if _node_of(pod) in nodes]
        ready = sum(1 for pod in placed if is_true(pod, "Ready"))
        counts = {
            "observedGeneration": metadata(owner).get("generation", 0),
            "updatedNumberScheduled": sum(1 for p in placed if labels_of(p).get(REVISION_LABEL) == _revision(owner)),
            "numberAvailable": ready,
            "numberUnavailable": len(nodes) - ready,
        }
        status = {name: value for name, value in counts.items() if value}
        status |= {
            "currentNumberScheduled": len(placed),
            "numberMisscheduled": len(pods) - len(placed),
            "desiredNumberScheduled": len(nodes),
            "numberReady": ready,
        }
        await write_status(api, "apps", "daemonsets", owner, status)
        in_use = {f"{key[1]}-{labels_of(pod).get(REVISION_LABEL, '')}" for pod in pods}
        await drop_history(api, owner, {*in_use, f"{key[1]}-{_revision(owner)}"})


def _nodes(api: API, owner: Document) -> list[str]:
    spec: Document = (owner["spec"].get("template") or {}).get("spec") or {}
    tolerating = {**spec, "tolerations": [*(spec.get("tolerations") or ()), *_TOLERATIONS]}
    nodes = [node for node in api.list("", "nodes") if is_chosen(spec, node) and tolerates(tolerating, node)]
    return [str(metadata(node)["name"]) for node in nodes]


def _node_of(pod: Document) -> str:
    """Return the node a pod runs on, or is made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def _pin(spec: Document, node: str) -> None:
    """Let a scheduler put the pod on this node, whatever ails it."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity: Document = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [term]}
    given: list[Document] = spec.setdefault("tolerations", [])
    wanted = [*_TOLERATIONS, *([_NETWORK_TOLERATION] if spec.get("hostNetwork") else [])]
    given.extend(dict(toleration) for toleration in wanted if toleration not in given)


def _revision_annotations(owner: Document) -> Document:
    return {_GENERATION: (metadata(owner).get("annotations") or {}).get(_GENERATION, "1")}


def _revision(owner: Document) -> str:
    return template_hash(owner)
