"""The simulated provisioner: creates, resizes and deletes the volumes of every StorageClass that is not for kube-controller-manager.

It decides as external provisioners do (shouldProvision in kubernetes-sigs/sig-storage-lib-external-provisioner's controller/controller.go).

A class with the annotation `simulation.ctrlruntime.dev/provision: "false"` is left to a provisioner of the user. Volumes that are made here
have the annotation with `"true"`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from ctrlruntime.apiserver.behaviour import PREFIX
from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    is_deleting,
    key_of,
    metadata,
    own_key,
    patch_unchanged,
    write_status,
)
from ctrlruntime.apiserver.controllers.volumes import (
    PROVISIONED_BY,
    PROVISIONERS,
    SELECTED_NODE,
    STORAGE,
    is_bound,
    is_external,
    provisioner_of,
    reference_to,
    waits_for_consumer,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document

ANNOTATION: Final = f"{PREFIX}provision"


class Provisioner:
    name = "provisioner"

    def __init__(self, now: Now) -> None:
        self._events = Recorder("simulated-provisioner", now)

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def of_class(change: Change) -> Iterable[Key]:
            name = metadata(change.object)["name"]
            yield from (key_of(claim) for claim in api.list("", "persistentvolumeclaims") if class_of(claim) == name)

        return [
            keys_of(api.watch("", "persistentvolumeclaims"), own_key),
            keys_of(api.watch("", "persistentvolumes"), _released),
            keys_of(api.watch(STORAGE, "storageclasses"), of_class),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        if not key[0]:
            await self._delete(api, key[1])
            return None
        claim = api.get("", "persistentvolumeclaims", *key)
        if claim is None or is_deleting(claim):
            return None
        if is_bound(claim):
            await self._resize(api, claim)
        elif not claim["spec"].get("volumeName"):
            await self._provision(api, claim)
        return None

    async def _provision(self, api: API, claim: Document) -> None:
        annotations: Document = metadata(claim).get("annotations") or {}
        found = api.get(STORAGE, "storageclasses", "", class_of(claim))
        asked = next((annotations[name] for name in PROVISIONERS if name in annotations), None)
        if found is None or asked is None or asked != provisioner_of(found) or not _is_ours(found):
            return
        node = annotations.get(SELECTED_NODE)
        if waits_for_consumer(api, claim) and not node:
            return
        name = f"pvc-{metadata(claim)['uid']}"
        if api.get("", "persistentvolumes", "", name) is not None:
            return
        if node is not None and api.get("", "nodes", "", node) is None:
            await self._reschedule(api, claim, node)
            return
        namespace, claim_name = key_of(claim)
        text = f'External provisioner is provisioning volume for claim "{namespace}/{claim_name}"'
        await self._events.normal(api, claim, "Provisioning", text)
        spec = claim["spec"]
        volume: Document = {
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: asked, ANNOTATION: "true"}},
            "spec": {
                "accessModes": spec.get("accessModes"),
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "claimRef": reference_to(claim),
                **_source(asked, name),
                "mountOptions": found.get("mountOptions"),
                "persistentVolumeReclaimPolicy": found.get("reclaimPolicy"),
                "storageClassName": metadata(found)["name"],
                "volumeAttributesClassName": spec.get("volumeAttributesClassName"),
                "volumeMode": spec.get("volumeMode"),
            },
        }
        volume["spec"] = {field: value for field, value in volume["spec"].items() if value is not None}
        await api.create("", "persistentvolumes", "", volume)
        await self._events.normal(api, claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    async def _reschedule(self, api: API, claim: Document, node: str) -> None:
        """Let the scheduler choose a node again: the one it chose is gone."""
        text = f'failed to provision volume with StorageClass "{class_of(claim)}": node "{node}" not found'
        await self._events.warning(api, claim, "ProvisioningFailed", text)
        patch = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await patch_unchanged(api, "", "persistentvolumeclaims", claim, patch)

    async def _resize(self, api: API, claim: Document) -> None:
        asked = claim["spec"]["resources"]["requests"]["storage"]
        has = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
        volume = api.get("", "persistentvolumes", "", claim["spec"]["volumeName"])
        if has is None or volume is None or parse(asked) <= parse(has) or not _is_provisioned(volume):
            return
        if parse(volume["spec"]["capacity"]["storage"]) < parse(asked):
            patch = {"spec": {"capacity": {"storage": asked}}}
            await api.merge_patch("", "persistentvolumes", "", metadata(volume)["name"], patch)
        status = {**claim["status"], "capacity": {**claim["status"]["capacity"], "storage": asked}}
        await write_status(api, "", "persistentvolumeclaims", claim, status)
        await self._events.normal(
            api, claim, "FileSystemResizeSuccessful", "MountVolume.NodeExpandVolume succeeded for volume"
        )

    async def _delete(self, api: API, name: str) -> None:
        volume = api.get("", "persistentvolumes", "", name)
        if volume is None or not _is_released(volume) or is_deleting(volume):
            return
        await api.delete("", "persistentvolumes", "", name, uid=metadata(volume)["uid"])


def _source(provisioner: str, name: str) -> Document:
    """Return where the data is: with a CSI driver, or in a folder of the node where the provisioner's name is no driver's."""
    if "/" in provisioner:
        return {"hostPath": {"path": f"/var/lib/volumes/{name}", "type": "DirectoryOrCreate"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}


def _is_ours(storage_class: Document) -> bool:
    is_given_away = (metadata(storage_class).get("annotations") or {}).get(ANNOTATION) == "false"
    return not is_given_away and is_external(provisioner_of(storage_class))


def _released(change: Change) -> Iterable[Key]:
    if change.type != "DELETED" and _is_released(change.object):
        yield key_of(change.object)


def _is_provisioned(volume: Document) -> bool:
    return (metadata(volume).get("annotations") or {}).get(ANNOTATION) == "true"


def _is_released(volume: Document) -> bool:
    is_free = (volume.get("status") or {}).get("phase") == "Released"
    return is_free and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and _is_provisioned(volume)


__all__ = ["ANNOTATION", "Provisioner"]
