"""StatefulSets: pods with ordinals, made and removed one after the other unless the policy is Parallel.

Each template is kept as a ControllerRevision; pods below the partition of a rolling update are made from the revision
before.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    Relabelled,
    claim,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    matching_keys,
    metadata,
    own_key,
    owner_reference,
    pod_from,
    seconds_until_available,
    write_status,
)
from ctrlruntime.apiserver.controllers.revisions import drop_history, keep_revision, template_hash
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import NotFound
from ctrlruntime.schema.trees import Document

REVISION_LABEL: Final = "controller-revision-hash"
_HASH_LABEL: Final = "controller.kubernetes.io/hash"


class StatefulSets:
    name = "statefulset"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("statefulset-controller", now)
        self._relabelled = Relabelled("StatefulSet")

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        orphaned = matching_keys(api, "apps", "statefulsets")
        return [
            keys_of(api.watch("apps", "statefulsets"), own_key),
            keys_of(api.watch("", "pods"), lambda change: (*self._relabelled(change), *orphaned(change))),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        found = api.get("apps", "statefulsets", *key)
        if found is None:
            return None
        pods = await claim(api, found, "", "pods", relabelled=self._relabelled.take(key))
        if not is_deleting(found):
            await keep_revision(api, found, _HASH_LABEL)
            if await self._keep(api, found, {_ordinal(pod): pod for pod in pods}):
                await self._update_pods(api, found, pods)
        return await self._write_status(api, key)

    async def _keep(self, api: API, owner: Document, pods: dict[int, Document]) -> bool:
        """Make missing pods and remove those beyond the count; return True when all that is wanted stands and is ready."""
        is_parallel = owner["spec"].get("podManagementPolicy") == "Parallel"
        are_ready = True
        for ordinal in _wanted(owner):
            pod = pods.get(ordinal)
            if pod is None:
                await self._create(api, owner, ordinal)
            elif (pod.get("status") or {}).get("phase") in FINISHED and not is_deleting(pod):
                await self._delete(api, owner, pod)
            elif not is_deleting(pod) and is_true(pod, "Ready"):
                continue
            are_ready = False
            if not is_parallel:
                return False
        surplus = sorted((ordinal for ordinal in pods if ordinal not in _wanted(owner)), reverse=True)
        for ordinal in surplus:
            if not is_deleting(pods[ordinal]):
                await self._delete(api, owner, pods[ordinal])
                await self._drop_claims(api, owner, pods[ordinal])
            if not is_parallel:
                break
        return are_ready and not surplus

    async def _update_pods(self, api: API, owner: Document, pods: Sequence[Document]) -> None:
        """Replace the highest pod of an older template; the next one follows when this one is ready again."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        for pod in sorted(pods, key=_ordinal, reverse=True):
            if _ordinal(pod) >= _partition(owner) and labels_of(pod).get(REVISION_LABEL) != _revision(owner):
                await self._delete(api, owner, pod)
                return

    async def _create(self, api: API, owner: Document, ordinal: int) -> None:
        namespace, name = key_of(owner)
        pod_name = f"{name}-{ordinal}"
        template, revision = _template_for(api, owner, ordinal)
        pod = pod_from(template, owner, name=pod_name, namespace=namespace)
        metadata(pod).setdefault("labels", {}).update(
            {
                REVISION_LABEL: revision,
                "statefulset.kubernetes.io/pod-name": pod_name,
                "apps.kubernetes.io/pod-index": str(ordinal),
            }
        )
        pod["spec"]["hostname"] = pod_name
        if owner["spec"].get("serviceName"):
            pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
        for claim_template in owner["spec"].get("volumeClaimTemplates") or ():
            await self._claim_volume(api, owner, claim_template, pod)
        await api.create("", "pods", namespace, pod)
        message = f"Create Pod {pod_name} in StatefulSet {name} successful"
        await self._events.normal(api, owner, "SuccessfulCreate", message)

    async def _claim_volume(self, api: API, owner: Document, template: Document, pod: Document) -> None:
        namespace, volume = metadata(pod)["namespace"], metadata(template)["name"]
        name = f"{volume}-{metadata(pod)['name']}"
        volumes = [v for v in pod["spec"].get("volumes") or () if v["name"] != volume]
        pod["spec"]["volumes"] = [*volumes, {"name": volume, "persistentVolumeClaim": {"claimName": name}}]
        if api.get("", "persistentvolumeclaims", namespace, name) is not None:
            return
        wanted = copy.deepcopy(template)
        chosen = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
        labels = {**(wanted["metadata"].get("labels") or {}), **chosen}
        wanted["metadata"] = {**wanted["metadata"], "name": name, "namespace": namespace, "labels": labels}
        if _retention(owner, "whenDeleted") == "Delete":
            reference = {**owner_reference(owner), "controller": True}
            wanted["metadata"]["ownerReferences"] = [reference]
        wanted.pop("status", None)
        await api.create("", "persistentvolumeclaims", namespace, wanted)
        where = f"Pod {metadata(pod)['name']} in StatefulSet {metadata(owner)['name']}"
        await self._events.normal(api, owner, "SuccessfulCreate", f"Create Claim {name} {where} success")

    async def _delete(self, api: API, owner: Document, pod: Document) -> None:
        namespace, name = key_of(pod)
        await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"])
        message = f"Delete Pod {name} in StatefulSet {metadata(owner)['name']} successful"
        await self._events.normal(api, owner, "SuccessfulDelete", message)

    @staticmethod
    async def _drop_claims(api: API, owner: Document, pod: Document) -> None:
        """Delete the claims of a pod that scaling removes, where the retention policy says so."""
        if _retention(owner, "whenScaled") != "Delete":
            return
        namespace, name = key_of(pod)
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            try:
                await api.delete("", "persistentvolumeclaims", namespace, f"{metadata(template)['name']}-{name}")
            except NotFound:
                continue

    async def _write_status(self, api: API, key: Key) -> float | None:
        owner = api.get("apps", "statefulsets", *key)
        if owner is None:
            return None
        pods = await claim(api, owner, "", "pods")
        revision = _revision(owner)
        updated = [pod for pod in pods if labels_of(pod).get(REVISION_LABEL) == revision]
        current = (owner.get("status") or {}).get("currentRevision") or revision
        if len(updated) == len(pods) and all(is_true(pod, "Ready") for pod in pods):
            current = revision
        waits = [
            seconds_until_available(pod, int(owner["spec"].get("minReadySeconds", 0)), self._now()) for pod in pods
        ]
        counts: dict[str, Any] = {
            "observedGeneration": metadata(owner).get("generation", 0),
            "readyReplicas": sum(1 for pod in pods if is_true(pod, "Ready")),
            "currentReplicas": len(updated) if current == revision else len(pods) - len(updated),
            "updatedReplicas": len(updated),
            "currentRevision": current,
            "updateRevision": revision,
        }
        status = {name: value for name, value in counts.items() if value}
        status |= {
            "replicas": len(pods),
            "availableReplicas": sum(1 for wait in waits if wait == 0),
            "collisionCount": 0,
        }
        await write_status(api, "apps", "statefulsets", owner, status)
        in_use = {current, revision, *(labels_of(pod).get(REVISION_LABEL, "") for pod in pods)}
        await drop_history(api, owner, in_use)
        return min((wait for wait in waits if wait), default=None)


def _wanted(owner: Document) -> range:
    start = int((owner["spec"].get("ordinals") or {}).get("start", 0))
    return range(start, start + int(owner["spec"].get("replicas", 1)))


def _partition(owner: Document) -> int:
    """Return the first ordinal that a rolling update touches."""
    rolling = (owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return _wanted(owner).start + int(rolling.get("partition", 0))


def _template_for(api: API, owner: Document, ordinal: int) -> tuple[Document, str]:
    """Return the template of a pod and the name of its revision."""
    current = str((owner.get("status") or {}).get("currentRevision", ""))
    if current and current != _revision(owner) and ordinal < _partition(owner):
        revision = api.get("apps", "controllerrevisions", str(metadata(owner)["namespace"]), current)
        if revision is not None:
            return revision["data"]["spec"]["template"], current
    return owner["spec"].get("template") or {}, _revision(owner)


def _retention(owner: Document, when: str) -> str:
    return str((owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when, "Retain"))


def _ordinal(pod: Document) -> int:
    text = str(metadata(pod)["name"]).rpartition("-")[2]
    return int(text) if text.isdigit() else -1


def _revision(owner: Document) -> str:
    return f"{metadata(owner)['name']}-{template_hash(owner)}"
