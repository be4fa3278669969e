"""ReplicaSets, and ReplicationControllers before them: as many pods of the template as `spec.replicas` says, and a
status that counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    Relabelled,
    claim,
    condition,
    is_active,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    matching_keys,
    metadata,
    own_key,
    pod_from,
    seconds_until_available,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document


class ReplicaSets:
    """One controller for either kind; `served` is its group and plural."""

    def __init__(self, now: Now, *, name: str = "replicaset", kind: str = "ReplicaSet") -> None:
        self.name = name
        self._served = ("apps", "replicasets") if kind == "ReplicaSet" else ("", "replicationcontrollers")
        self._is_new = kind == "ReplicaSet"
        self._now = now
        self._events = Recorder("replicaset-controller" if self._is_new else "replication-controller", now)
        self._relabelled = Relabelled(kind)

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        owned, orphaned = self._relabelled, matching_keys(api, *self._served)
        return [
            keys_of(api.watch(*self._served), own_key),
            keys_of(api.watch("", "pods"), lambda change: (*owned(change), *orphaned(change))),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        replica_set = api.get(*self._served, *key)
        if replica_set is None:
            return None
        pods = await claim(api, replica_set, "", "pods", relabelled=self._relabelled.take(key))
        failure: APIStatusError | None = None
        if not is_deleting(replica_set):
            try:
                await self._scale(api, replica_set, [pod for pod in pods if is_active(pod)])
            except APIStatusError as error:
                failure = error
        after = await self._write_status(api, key, failure)
        if failure is not None:
            raise failure
        return after

    async def _scale(self, api: API, replica_set: Document, pods: list[Document]) -> None:
        missing = int(replica_set["spec"].get("replicas", 1)) - len(pods)
        for _ in range(missing):
            await self._create_pod(api, replica_set)
            await asyncio.sleep(0)  # hundreds of pods must not hold up the server
        for pod in sorted(pods, key=_deletion_rank)[: max(0, -missing)]:
            namespace, name = key_of(pod)
            await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"])
            await self._events.normal(api, replica_set, "SuccessfulDelete", f"Deleted pod: {name}")

    async def _create_pod(self, api: API, replica_set: Document) -> None:
        namespace, name = key_of(replica_set)
        pod = pod_from(
            replica_set["spec"].get("template") or {}, replica_set, generateName=f"{name}-", namespace=namespace
        )
        try:
            created = await api.create("", "pods", namespace, pod)
        except APIStatusError as error:
            await self._events.warning(api, replica_set, "FailedCreate", f"Error creating: {error}")
            raise
        await self._events.normal(api, replica_set, "SuccessfulCreate", f"Created pod: {metadata(created)['name']}")

    async def _write_status(self, api: API, key: Key, failure: APIStatusError | None) -> float | None:
        replica_set = api.get(*self._served, *key)
        if replica_set is None:
            return None
        pods = await claim(api, replica_set, "", "pods")
        active = [pod for pod in pods if is_active(pod)]
        waits = [
            seconds_until_available(pod, int(replica_set["spec"].get("minReadySeconds", 0)), self._now())
            for pod in active
        ]
        template_labels = ((replica_set["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
        status: dict[str, Any] = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(1 for pod in active if template_labels.items() <= labels_of(pod).items()),
            "readyReplicas": sum(1 for pod in active if is_true(pod, "Ready")),
            "availableReplicas": sum(1 for wait in waits if wait == 0),
            "observedGeneration": metadata(replica_set).get("generation", 0),
        }
        status = {name: value for name, value in status.items() if value or name == "replicas"}
        if self._is_new:
            status["terminatingReplicas"] = sum(1 for pod in pods if is_deleting(pod))
        conditions = self._conditions(replica_set, failure)
        if conditions:
            status["conditions"] = conditions
        await write_status(api, *self._served, replica_set, status)
        return min((wait for wait in waits if wait), default=None)

    def _conditions(self, replica_set: Document, failure: APIStatusError | None) -> list[Document]:
        if failure is None:
            return []
        present = condition(replica_set, "ReplicaFailure")
        if present is not None:
            # The first message stays (calculateStatus): each refusal names another Pod, and each write is a change to look at again.
            return [present]
        return [
            {
                "type": "ReplicaFailure",
                "status": "True",
                "lastTransitionTime": timestamp(self._now()),
                "reason": "FailedCreate",
                "message": str(failure),
            }
        ]


def _deletion_rank(pod: Document) -> tuple[Any, ...]:
    """Those that cost least go first: unassigned, pending, not ready, cheap by annotation, the youngest."""
    status = pod.get("status") or {}
    cost = str((metadata(pod).get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", "0"))
    ready = condition(pod, "Ready") or {}
    return (
        bool(pod["spec"].get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(str(status.get("phase")), 2),
        is_true(pod, "Ready"),
        int(cost) if cost.lstrip("+-").isdigit() else 0,
        _latest_first(ready.get("lastTransitionTime")),
        _latest_first(metadata(pod).get("creationTimestamp")),
        metadata(pod)["name"],
    )


def _latest_first(moment: str | None) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in moment or "")
