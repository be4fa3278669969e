"""Protection of storage in use: a claim that a pod mounts, or a volume that a claim has, is not let go before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import FINISHED, is_deleting, key_of, metadata, own_key
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document

CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
CLASS_FINALIZER: Final = "kubernetes.io/vac-protection"


class ClaimProtection:
    """Lets a deleted PersistentVolumeClaim go when no pod uses it."""

    name = "persistentvolumeclaim-protection"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "persistentvolumeclaims"), own_key),
            keys_of(api.watch("", "pods"), _claims_of),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        claim = api.get("", "persistentvolumeclaims", *key)
        if claim is None or not is_deleting(claim):
            return None
        if not any(_uses(pod, key[1]) for pod in api.list("", "pods", key[0])):
            await _drop(api, "", "persistentvolumeclaims", claim, CLAIM_FINALIZER)
        return None


class VolumeProtection:
    """Lets a deleted PersistentVolume go when no claim has it."""

    name = "persistentvolume-protection"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch("", "persistentvolumes"), own_key)]

    async def reconcile(self, api: API, key: Key) -> float | None:
        volume = api.get("", "persistentvolumes", *key)
        if volume is not None and is_deleting(volume) and (volume.get("status") or {}).get("phase") != "Bound":
            await _drop(api, "", "persistentvolumes", volume, VOLUME_FINALIZER)
        return None


class AttributesClassProtection:
    """Lets a deleted VolumeAttributesClass go when no claim and no volume is of it."""

    name = "volumeattributesclass-protection"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("storage.k8s.io", "volumeattributesclasses"), own_key),
            keys_of(api.watch("", "persistentvolumeclaims"), _classes_of),
            keys_of(api.watch("", "persistentvolumes"), _classes_of),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        found = api.get("storage.k8s.io", "volumeattributesclasses", *key)
        if found is None or not is_deleting(found):
            return None
        users = (*api.list("", "persistentvolumeclaims"), *api.list("", "persistentvolumes"))
        if not any(key[1] in _class_names(user) for user in users):
            await _drop(api, "storage.k8s.io", "volumeattributesclasses", found, CLASS_FINALIZER)
        return None


def _classes_of(change: Change) -> Iterable[Key]:
    return [("", name) for name in _class_names(change.object)]


def _class_names(user: Document) -> set[str]:
    status: Document = user.get("status") or {}
    modified: Document = status.get("modifyVolumeStatus") or {}
    names = {
        (user.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modified.get("targetVolumeAttributesClassName"),
    }
    return {str(name) for name in names if name}


def _claims_of(change: Change) -> Iterable[Key]:
    for name in _names(change.object):
        yield (str(metadata(change.object)["namespace"]), name)


def _names(pod: Document) -> list[str]:
    found: list[str] = []
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("persistentVolumeClaim") is not None:
            found.append(str(volume["persistentVolumeClaim"].get("claimName", "")))
        elif volume.get("ephemeral") is not None:
            found.append(f"{metadata(pod)['name']}-{volume.get('name')}")
    return found


def _uses(pod: Document, claim: str) -> bool:
    is_running = pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in FINISHED
    return bool(is_running) and claim in _names(pod)


async def _drop(api: API, group: str, resource: str, obj: Document, finalizer: str) -> None:
    finalizers = metadata(obj).get("finalizers") or []
    if finalizer not in finalizers:
        return
    kept = [name for name in finalizers if name != finalizer]
    guard = {"uid": metadata(obj)["uid"], "resourceVersion": metadata(obj)["resourceVersion"]}
    await api.merge_patch(group, resource, *key_of(obj), {"metadata": {**guard, "finalizers": kept or None}})
