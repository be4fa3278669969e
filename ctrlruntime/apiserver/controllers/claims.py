"""Protection of storage in use: a claim that a pod mounts, or a volume that a claim has, is not let go before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.matching import Groups
from ctrlruntime.apiserver.controllers.objects import is_deleting, key_of, metadata, own_key, patch_unchanged
from ctrlruntime.apiserver.controllers.volumes import claim_name
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document

CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
CLASS_FINALIZER: Final = "kubernetes.io/vac-protection"
_CLASS_USERS: Final = ("persistentvolumeclaims", "persistentvolumes")


class ClaimProtection:
    """Lets a deleted PersistentVolumeClaim go when no pod uses it."""

    name = "persistentvolumeclaim-protection"

    def __init__(self) -> None:
        self._pods = Groups()
        """By the claims they use."""

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "persistentvolumeclaims"), own_key),
            keys_of(api.watch("", "pods"), self._claims_of),
        ]

    def _claims_of(self, change: Change) -> Iterable[Key]:
        pod = change.object
        claims = [(key_of(pod)[0], name) for name, _ in _claims(pod)]
        self._pods.put(key_of(pod), *(claims if change.type != "DELETED" else ()))
        return claims

    async def reconcile(self, api: API, key: Key) -> float | None:
        claim = api.get("", "persistentvolumeclaims", *key)
        if claim is None or not is_deleting(claim):
            return None
        if not self._is_used(api, key):
            await _drop(api, "", "persistentvolumeclaims", claim, CLAIM_FINALIZER)
        return None

    def _is_used(self, api: API, key: Key) -> bool:
        """Tell whether a Pod that is there now uses the claim.

        The index follows the watch, so it can only say "in use": a Pod made this moment is not yet in it. Before a claim is let go, the Pods
        themselves are looked at, as upstream asks the API server (askAPIServer in pvc_protection_controller.go).
        """
        known = (api.get("", "pods", *pod) for pod in self._pods.of(key))
        if any(pod is not None and _uses(pod, key[1]) for pod in known):
            return True
        return any(_uses(pod, key[1]) for pod in api.list("", "pods", key[0]))


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

    def __init__(self) -> None:
        self._users = Groups()
        """Claims and volumes by their classes."""

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("storage.k8s.io", "volumeattributesclasses"), own_key),
            *(keys_of(api.watch("", resource), partial(self._classes_of, resource)) for resource in _CLASS_USERS),
        ]

    def _classes_of(self, resource: str, change: Change) -> Iterable[Key]:
        """Yield the classes that the object does not use any more."""
        key = (resource, *key_of(change.object))
        used = [("", name) for name in _class_names(change.object)] if change.type != "DELETED" else []
        left = [name for name in self._users.groups_of(key) if name not in used]
        self._users.put(key, *used)
        return left

    async def reconcile(self, api: API, key: Key) -> float | None:
        found = api.get("storage.k8s.io", "volumeattributesclasses", *key)
        if found is None or not is_deleting(found):
            return None
        if not self._users.of(key) and not _has_users(api, key[1]):
            await _drop(api, "storage.k8s.io", "volumeattributesclasses", found, CLASS_FINALIZER)
        return None


def _has_users(api: API, class_name: str) -> bool:
    """Tell whether a claim or a volume that is there now is of the class; the index may be a moment behind, as for claims."""
    users = (user for resource in _CLASS_USERS for user in api.list("", resource))
    return any(class_name in _class_names(user) for user in users)


def _class_names(user: Document) -> set[str]:
    status: Document = user.get("status") or {}
    modified: Document = status.get("modifyVolumeStatus") or {}
    names = {
        (user.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        modified.get("targetVolumeAttributesClassName"),
    }
    return {str(name) for name in names if name}


def _claims(pod: Document) -> Iterator[tuple[str, bool]]:
    """Yield the names of a Pod's claims, and whether the claim is ephemeral."""
    for volume in pod["spec"].get("volumes") or ():
        if name := claim_name(pod, volume):
            yield name, volume.get("ephemeral") is not None


def _uses(pod: Document, claim: str) -> bool:
    """Tell whether a Pod keeps its claim from going: a finished one does, too (podUsesPVCForDeletion in pvc_protection_controller.go)."""
    is_gone = is_deleting(pod) and metadata(pod).get("deletionGracePeriodSeconds") == 0
    is_used = any(name == claim and not (is_ephemeral and is_gone) for name, is_ephemeral in _claims(pod))
    return bool(pod["spec"].get("nodeName")) and is_used


async def _drop(api: API, group: str, resource: str, obj: Document, finalizer: str) -> None:
    finalizers = metadata(obj).get("finalizers") or []
    if finalizer in finalizers:
        kept = [name for name in finalizers if name != finalizer]
        await patch_unchanged(api, group, resource, obj, {"metadata": {"finalizers": kept or None}})
