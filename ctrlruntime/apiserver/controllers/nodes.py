"""The one simulated node, always ready, and the scheduler that binds pods to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    condition,
    is_deleting,
    key_of,
    labels_of,
    own_key,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.controllers.placement import Load, obstacles, summary
from ctrlruntime.apiserver.controllers.volumes import SELECTED_NODE, STORAGE, PodClaim, claims_of, is_bound
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.data import KUBERNETES_VERSION
from ctrlruntime.schema.trees import Document

NODE_NAME: Final = "node-1"
NODE_ADDRESS: Final = "10.0.1.1"
_NODE_KEY: Final = ("", NODE_NAME)
_LEASES: Final = ("coordination.k8s.io", "leases")
_LEASE_KEY: Final = ("kube-node-lease", NODE_NAME)
_LEASE_SECONDS: Final = 40
_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "10k"}
_FEATURES: Final = ("InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers")
"""Which changes of Pods the simulated kubelet follows; without them the API server refuses the changes."""
_PRESSURES: Final = (("MemoryPressure", "Memory"), ("DiskPressure", "Disk"), ("PIDPressure", "PID"))


class Nodes:
    """Keeps the node registered and ready with its Lease, even if a client deletes it."""

    name = "node"

    def __init__(self, now: Now) -> None:
        self._now = now

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def of_lease(change: Change) -> Iterable[Key]:
            if change.type == "DELETED" and key_of(change.object) == _LEASE_KEY:
                yield _NODE_KEY

        return [
            _once(_NODE_KEY),
            keys_of(api.watch("", "nodes"), own_key),
            keys_of(api.watch(*_LEASES), of_lease),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        if key != _NODE_KEY:
            return None
        node = api.get("", "nodes", *key) or await api.create("", "nodes", "", _new_node())
        if is_deleting(node):
            return None
        if not (node.get("status") or {}).get("conditions"):
            node = await write_status(api, "", "nodes", node, self._status())
        taints = (node.get("spec") or {}).get("taints") or []
        kept = [taint for taint in taints if taint.get("key") != "node.kubernetes.io/not-ready"]
        if kept != taints:
            await api.merge_patch("", "nodes", "", NODE_NAME, {"spec": {"taints": kept or None}})
        if api.get(*_LEASES, *_LEASE_KEY) is None and api.get("", "namespaces", "", _LEASE_KEY[0]) is not None:
            await api.create(*_LEASES, _LEASE_KEY[0], self._lease(node))
        return None

    def _lease(self, node: Document) -> Document:
        """Return the Lease that a kubelet makes for its node (kubernetes' pkg/kubelet/util/nodelease.go).

        It is not renewed, so that an idle server writes nothing.
        """
        owner = {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME, "uid": node["metadata"]["uid"]}
        renewed = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "metadata": {"name": NODE_NAME, "ownerReferences": [owner]},
            "spec": {"holderIdentity": NODE_NAME, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": renewed},
        }

    def _status(self) -> Document:
        moment = timestamp(self._now())
        conditions = [
            {"type": kind, "status": "False", "reason": f"KubeletHasSufficient{what}", "message": ""}
            for kind, what in _PRESSURES
        ]
        conditions.append(
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "the node is simulated"}
        )
        for item in conditions:
            item.update({"lastHeartbeatTime": moment, "lastTransitionTime": moment})
        return {
            "capacity": dict(_CAPACITY),
            "allocatable": dict(_CAPACITY),
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}, {"type": "Hostname", "address": NODE_NAME}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "declaredFeatures": list(_FEATURES),
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated://1",
                "kubeletVersion": KUBERNETES_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }


class Scheduler:
    """Binds each pod of `default-scheduler` that nothing holds back to a node that it may run on."""

    name = "scheduler"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("default-scheduler", now)
        self._load = Load()
        self._refused: set[Key] = set()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def waiting(change: Change) -> Iterable[Key]:
            # A node's heartbeat concerns nobody; a new one, or other labels, taints and resources, may be what a pod waits for.
            if change.old is None or _offer(change.object) != _offer(change.old):
                yield from (key_of(pod) for pod in api.list("", "pods") if _is_schedulable(pod))

        return [
            keys_of(api.watch("", "pods"), self._keys),
            keys_of(api.watch("", "nodes"), waiting),
            keys_of(api.watch("", "persistentvolumeclaims"), self._with_claim),
            keys_of(api.watch(STORAGE, "storageclasses"), lambda _: list(self._refused)),
        ]

    def _with_claim(self, change: Change) -> Iterable[Key]:
        namespace = str(change.object["metadata"]["namespace"])
        return [key for key in self._refused if key[0] == namespace]

    def _keys(self, change: Change) -> Iterable[Key]:
        if change.type == "DELETED":
            self._refused.discard(key_of(change.object))
        if self._load.observe(change):
            yield from self._refused  # there may be room for them now
        yield from own_key(change)

    async def reconcile(self, api: API, key: Key) -> float | None:
        pod = api.get("", "pods", *key)
        if pod is None or not _is_schedulable(pod):
            return None
        claims = list(claims_of(api, pod))
        problem = next((claim.problem for claim in claims if claim.problem), "")
        if problem:
            self._refused.add(key)
            await self._refuse(api, pod, f"0/{len(api.list('', 'nodes'))} nodes are available: {problem}.")
            return None
        found = {str(node["metadata"]["name"]): self._obstacles(pod["spec"], node) for node in api.list("", "nodes")}
        fit = [name for name, reasons in found.items() if not reasons]
        if not fit:
            if found:  # else the node is about to register
                self._refused.add(key)
                await self._refuse(api, pod, summary(found.values()))
            return None
        node = NODE_NAME if NODE_NAME in fit else min(fit)
        self._refused.add(key)  # before anything is written: what it waits for may be there right after
        if not await self._has_volumes(api, claims, node):
            return None
        self._refused.discard(key)
        self._load.place(pod, node)  # at once: another pod is looked at before the change comes back
        namespace, name = key_of(pod)
        await api.bind(pod, node)
        await self._events.normal(api, pod, "Scheduled", f"Successfully assigned {namespace}/{name} to {node}")
        return None

    async def _has_volumes(self, api: API, claims: Sequence[PodClaim], node: str) -> bool:
        """Tell whether all claims have their volumes; choose the node for those that wait for that."""
        waiting = [claim.document for claim in claims if claim.document is not None and not is_bound(claim.document)]
        for claim in waiting:
            if SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
                patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
                await api.merge_patch("", "persistentvolumeclaims", *key_of(claim), patch)
        return not waiting

    def _obstacles(self, spec: Document, node: Document) -> Sequence[str]:
        return obstacles(spec, node, self._load.lacking(spec, node))

    async def _refuse(self, api: API, pod: Document, text: str) -> None:
        present = condition(pod, "PodScheduled")
        if present is not None and (present.get("reason"), present.get("message")) == ("Unschedulable", text):
            return
        status: Document = dict(pod.get("status") or {})
        refused = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(self._now()),
            "reason": "Unschedulable",
            "message": text,
        }
        status["conditions"] = [*(c for c in status.get("conditions") or () if c["type"] != "PodScheduled"), refused]
        await write_status(api, "", "pods", pod, status)
        await self._events.warning(api, pod, "FailedScheduling", text)


def _offer(node: Document) -> tuple[Any, ...]:
    return labels_of(node), node.get("spec"), (node.get("status") or {}).get("allocatable")


def _is_schedulable(pod: Document) -> bool:
    spec = pod["spec"]
    is_ours = spec.get("schedulerName", "default-scheduler") == "default-scheduler"
    return is_ours and not spec.get("nodeName") and not spec.get("schedulingGates") and not is_deleting(pod)


def _new_node() -> Document:
    labels = {
        "kubernetes.io/hostname": NODE_NAME,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE_NAME, "labels": labels}, "spec": {}}


async def _once(key: Key) -> AsyncIterator[Key]:
    yield key
