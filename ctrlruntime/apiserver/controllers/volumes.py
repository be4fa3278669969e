"""Binds PersistentVolumeClaims to PersistentVolumes (kube-controller-manager's pkg/controller/volume/persistentvolume), and makes the claims
of ephemeral volumes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.matching import (
    FitIndex,
    Groups,
    fits,
    has_other_mode,
    is_free,
    is_named_by,
    mismatches,
    place_of_claim,
    place_of_volume,
    rank,
)
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    is_active,
    is_deleting,
    key_of,
    metadata,
    owner_reference,
    patch_unchanged,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.schema.trees import Document

STORAGE: Final = "storage.k8s.io"
PROVISIONERS: Final = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
"""The annotations that ask a provisioner for the volume of a claim; the first one that is there counts."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CLAIM, _VOLUME, _CLASS = "claim", "volume", "class"
_IN_TREE: Final = "kubernetes.io/"
_HOST_PATH: Final = "kubernetes.io/host-path"
_PLUGINS: Final[Mapping[str, str]] = {_HOST_PATH: "hostPath", "kubernetes.io/nfs": "nfs"}
"""The binder's plugins, with the field of their volumes: all that can recycle (cmd/kube-controller-manager/app/plugins.go)."""
_MIGRATED: Final[Mapping[str, str]] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
"""The CSI drivers that do the work of former plugins (csi-translation-lib's plugins)."""
_DELETABLE: Final = re.compile("/tmp/.+")  # noqa: S108 - pkg/volume/hostpath/host_path.go; no file is touched here
_NO_CLASS: Final = "no persistent volumes available for this claim and no storage class is set"
_CONSUMER: Final = "waiting for first consumer to be created before binding"
_EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. If volume creation "
    "is delayed, please verify that the provisioner is running and correctly registered."
)


def is_bound(claim: Document) -> bool:
    """Tell whether a claim has its volume."""
    return _COMPLETED in _annotations(claim) and bool(claim["spec"].get("volumeName"))


def waits_for_consumer(api: API, claim: Document) -> bool:
    """Tell whether the volume of a claim is chosen when a Pod that uses it is scheduled."""
    found = api.get(STORAGE, "storageclasses", "", class_of(claim))
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def provisioner_of(storage_class: Document) -> str:
    """Return the name of what makes the volumes of a class, for the annotation of a claim (provisionClaimOperationExternal)."""
    return _driver(str(storage_class["provisioner"]))


def _driver(provisioner: str) -> str:
    return _MIGRATED.get(provisioner, provisioner)


def is_external(provisioner: str) -> bool:
    """Tell whether a program outside of kube-controller-manager makes the volumes."""
    return not provisioner.startswith(_IN_TREE)


def reference_to(claim: Document) -> Document:
    """Return the claimRef of a claim's volume."""
    fields = ("namespace", "name", "uid", "resourceVersion")
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        **{field: metadata(claim)[field] for field in fields},
    }


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that a Pod uses."""

    document: Document | None
    """None: nothing waits for it."""
    problem: str = ""
    """Why the Pod cannot be scheduled (VolumeBinding in the scheduler's plugins)."""


def claim_name(pod: Document, volume: Document) -> str:
    """Return the name of the claim that a volume of a Pod is; empty for another one."""
    if volume.get("ephemeral") is not None:
        return f"{metadata(pod)['name']}-{volume['name']}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName", ""))


def claims_of(api: API, pod: Document) -> Iterator[PodClaim]:
    """Yield the claims of a Pod. One without a class, which no volume is for, is left out: a server has no default class of itself."""
    namespace = str(metadata(pod)["namespace"])
    for volume in pod["spec"].get("volumes") or ():
        is_ephemeral, name = volume.get("ephemeral") is not None, claim_name(pod, volume)
        if not name:
            continue
        claim = api.get("", "persistentvolumeclaims", namespace, name)
        if claim is None and is_ephemeral:
            yield PodClaim(
                None, f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
            )
        elif claim is None:
            yield PodClaim(None, f'persistentvolumeclaim "{name}" not found')
        elif is_deleting(claim):
            yield PodClaim(None, f'persistentvolumeclaim "{name}" is being deleted')
        elif (claim.get("status") or {}).get("phase") == "Lost":
            yield PodClaim(
                None,
                f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim["spec"].get("volumeName", "")}"',
            )
        elif is_bound(claim) or waits_for_consumer(api, claim):
            yield PodClaim(claim)
        elif class_of(claim) or claim["spec"].get("volumeName"):
            yield PodClaim(None, "pod has unbound immediate PersistentVolumeClaims")


class VolumeBinding:
    """Keys are those of claims and of volumes, with what they are before them.

    Upstream looks at every claim without a volume again every 15 seconds. Here a change leads to the claims that it may help: a volume that
    becomes free is offered to one claim that waits, and to the next one if that claim takes another.
    """

    name = "persistentvolume-binder"

    def __init__(self, now: Now) -> None:
        self._events = Recorder("persistentvolume-controller", now)
        self._free = FitIndex()
        """The volumes that any claim may have. It may be late: what it finds is looked at before it is used."""
        self._waiting = FitIndex()
        """The claims that take any volume that fits, and to which none was offered since they were last looked at."""
        self._offered: dict[Key, list[Key]] = {}
        """By claim: the volumes that were offered to it since then."""
        self._related = Groups()
        """Claims by the volume they name, volumes by the claim they name, unbound claims by their class."""
        self._told: dict[tuple[str, str], tuple[str, str, str]] = {}

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def of_class(change: Change) -> Iterable[Key]:
            return self._related.of((_CLASS, str(metadata(change.object)["name"])))

        return [
            keys_of(api.watch("", "persistentvolumeclaims"), partial(self._claims, api)),
            keys_of(api.watch("", "persistentvolumes"), partial(self._volumes, api)),
            keys_of(api.watch(STORAGE, "storageclasses"), of_class),
        ]

    def _claims(self, api: API, change: Change) -> Iterable[Key]:
        key = (_CLAIM, *key_of(change.object))
        yield key
        volume = change.object["spec"].get("volumeName")
        if volume:
            yield (_VOLUME, "", volume)
        claim = _get(api, key)
        if claim is None:
            self._told.pop(key_of(change.object), None)
            yield from self._related.of(key)
        if claim is None or claim["spec"].get("volumeName"):
            self._waiting.remove(key)
            for offered in self._offered.pop(key, ()):
                yield from self._offer(api, offered)
        self._related.put(key, *_related_of_claim(claim))

    def _volumes(self, api: API, change: Change) -> Iterable[Key]:
        key = (_VOLUME, *key_of(change.object))
        self._learn(key, _get(api, key))
        yield key
        yield from self._related.of(key)
        yield from _claim_of(change.object)
        if change.type == "DELETED":
            self._told.pop(key_of(change.object), None)
        yield from self._offer(api, key)

    def _learn(self, key: Key, volume: Document | None) -> None:
        self._related.put(key, *(() if volume is None else _claim_of(volume)))
        if volume is not None and is_free(volume):
            self._free.put(key, place_of_volume(volume))
        else:
            self._free.remove(key)

    def _offer(self, api: API, key: Key) -> Iterable[Key]:
        """Yield the claim that a volume is for, if it is free and one waits for such a volume."""
        volume = _get(api, key)
        if volume is None or not is_free(volume):
            return
        for waiting in self._waiting.claims_for(place_of_volume(volume)):
            claim = _get(api, waiting)
            if claim is not None and fits(volume, claim):
                self._waiting.remove(waiting)
                self._offered.setdefault(waiting, []).append(key)
                yield waiting
                return

    async def reconcile(self, api: API, key: Key) -> float | None:
        found = _get(api, key)
        if found is None:
            return None
        if key[0] == _VOLUME:
            await self._sync_volume(api, found)
        elif _COMPLETED in _annotations(found):
            await self._sync_bound(api, found)
        else:
            await self._sync_unbound(api, key, found)
        return None

    # Claims

    async def _sync_unbound(self, api: API, key: Key, claim: Document) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            is_delayed = waits_for_consumer(api, claim) and SELECTED_NODE not in _annotations(claim)
            volume = self._choose(api, key, claim, is_delayed=is_delayed)
            if volume is not None:
                await self._bind(api, volume, claim)
                return
            self._offered.pop(key, None)
            if not is_delayed:
                self._waiting.put(key, place_of_claim(claim))
            await self._provide(api, claim, is_delayed=is_delayed)
            return
        volume = _get(api, (_VOLUME, "", name))
        is_reserved = volume is not None and volume["spec"].get("claimRef") is not None
        problem = None if volume is None or is_reserved else next(mismatches(volume, claim), None)
        if volume is not None and problem is None and (not is_reserved or is_named_by(volume, claim)):
            await self._bind(api, volume, claim)
            return
        await self._write_claim(api, claim, "Pending")
        if problem is not None:
            text = f'Cannot bind to requested volume "{name}": {problem}'
            await self._tell(api, claim, "VolumeMismatch", text)
        elif volume is not None:
            await self._tell(api, claim, "FailedBinding", f'volume "{name}" already bound to a different claim.')

    def _choose(self, api: API, key: Key, claim: Document, *, is_delayed: bool) -> Document | None:
        """Return the volume for a claim: one that names it, else the smallest of those with the fewest access modes (findByClaim)."""
        keys = () if is_delayed else self._free.volumes_for(place_of_claim(claim))
        free = (volume for volume in _all(api, keys) if fits(volume, claim))
        named = [volume for volume in _all(api, self._related.of(key)) if fits(volume, claim)]
        best = next(free, None)
        return min([*named, *([] if best is None else [best])], key=rank, default=None)

    async def _provide(self, api: API, claim: Document, *, is_delayed: bool) -> None:
        """Say what a claim waits for, and ask the provisioner of its class."""
        name = class_of(claim)
        found = api.get(STORAGE, "storageclasses", "", name)
        provisioner = "" if found is None else provisioner_of(found)
        problem = "" if is_external(provisioner) else _plugin_problem(provisioner, "provisionable")
        if is_delayed or not name:
            told = ("WaitForFirstConsumer", _CONSUMER) if is_delayed else ("FailedBinding", _NO_CLASS)
            await self._tell(api, claim, *told, warns=False)
            await self._write_claim(api, claim, "Pending")
        elif found is None:
            await self._tell(api, claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
        elif problem:
            await self._tell(api, claim, "ProvisioningFailed", problem)
        else:
            if _annotations(claim).get(PROVISIONERS[0]) != provisioner:
                annotations = dict.fromkeys(PROVISIONERS, provisioner)
                claim = await patch_unchanged(
                    api, "", "persistentvolumeclaims", claim, {"metadata": {"annotations": annotations}}
                )
            if provisioner == _HOST_PATH:
                text = f'Failed to create provisioner: provisioning in volume plugin "{provisioner}" is disabled'
                await self._tell(api, claim, "ProvisioningFailed", text)
            else:
                await self._tell(api, claim, "ExternalProvisioning", _EXTERNAL.format(provisioner), warns=False)

    async def _sync_bound(self, api: API, claim: Document) -> None:
        name = claim["spec"].get("volumeName")
        volume = _get(api, (_VOLUME, "", name)) if name else None
        lost = None
        if not name:
            lost = "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
        elif volume is None:
            lost = "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        elif (volume["spec"].get("claimRef") or metadata(claim)).get("uid") != metadata(claim)["uid"]:
            lost = "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"
        else:
            await self._bind(api, volume, claim)
        if lost is not None and (claim.get("status") or {}).get("phase") != "Lost":
            await self._write_claim(api, claim, "Lost")
            await self._events.warning(api, claim, *lost)

    async def _bind(self, api: API, volume: Document, claim: Document) -> None:
        """Write on both sides that they belong together, what is not yet there of it."""
        key = (_VOLUME, *key_of(volume))
        reference: Document = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            patch: Document = {"spec": {"claimRef": reference_to(claim)}}
            if not reference:
                patch["metadata"] = {"annotations": {_BOUND_BY_CONTROLLER: "yes"}}
            volume = await patch_unchanged(api, "", "persistentvolumes", volume, patch)
            self._learn(key, volume)
        await self._write_volume(api, volume, "Bound")
        annotations = {_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[_BOUND_BY_CONTROLLER] = "yes"
        if not is_bound(claim):
            patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": metadata(volume)["name"]}}
            claim = await patch_unchanged(api, "", "persistentvolumeclaims", claim, patch)
        await self._write_claim(api, claim, "Bound", volume)

    # Volumes

    async def _sync_volume(self, api: API, volume: Document) -> None:
        reference: Document = volume["spec"].get("claimRef") or {}
        if not reference.get("uid"):
            await self._write_volume(api, volume, "Available")
            return
        claim = next(iter(_all(api, _claim_of(volume))), None)
        if claim is None or metadata(claim)["uid"] != reference["uid"]:
            await self._release(api, volume)
            return
        name, volume_name = metadata(claim)["name"], metadata(volume)["name"]
        match claim["spec"].get("volumeName"):
            case None | "":
                if has_other_mode(volume, claim):
                    what = "Cannot bind PersistentVolume{} to requested PersistentVolumeClaim{} due to incompatible volumeMode."
                    await self._tell(api, volume, "VolumeMismatch", what.format("", f' "{name}"'))
                    await self._tell(api, claim, "VolumeMismatch", what.format(f' "{volume_name}"', ""))
            case wanted if wanted == volume_name:
                await self._write_volume(api, volume, "Bound")
            case _ if PROVISIONED_BY in _annotations(volume) and _is_to_be_deleted(volume):
                await self._release(api, volume)
            case _:
                await self._unbind(api, volume)

    async def _unbind(self, api: API, volume: Document) -> None:
        """Take back the binding to a claim that has another volume; a volume that was reserved for it stays reserved (unbindVolume)."""
        patch: Document = {"spec": {"claimRef": {"uid": None}}}
        if _BOUND_BY_CONTROLLER in _annotations(volume):
            patch = {"spec": {"claimRef": None}, "metadata": {"annotations": {_BOUND_BY_CONTROLLER: None}}}
        volume = await patch_unchanged(api, "", "persistentvolumes", volume, patch)
        await self._write_volume(api, volume, "Available")

    async def _release(self, api: API, volume: Document) -> None:
        """The volume is not its claim's any more: keep it, or delete it."""
        phase = (volume.get("status") or {}).get("phase")
        if phase not in {"Released", "Failed"}:
            volume = await self._write_volume(api, volume, "Released")
        if not _is_to_be_deleted(volume) or _is_deleted_outside(volume):
            return
        problem = _deletion_problem(volume)
        if not problem:
            await api.delete("", "persistentvolumes", "", metadata(volume)["name"], uid=metadata(volume)["uid"])
        elif phase != "Failed":
            volume = await self._write_volume(api, volume, "Failed", problem)
            await self._events.warning(api, volume, "VolumeFailedDelete", problem)

    # Writing

    async def _write_volume(self, api: API, volume: Document, phase: str, text: str = "") -> Document:
        before: Document = volume.get("status") or {}
        if before.get("phase") == phase:
            return volume
        kept = {name: value for name, value in before.items() if name not in {"phase", "message", "reason"}}
        status = {**kept, "phase": phase, **({"message": text} if text else {})}
        return await write_status(api, "", "persistentvolumes", volume, status)

    async def _write_claim(self, api: API, claim: Document, phase: str, volume: Document | None = None) -> None:
        """Write the phase of a claim and what it has of its volume (updateClaimStatus)."""
        before: Document = claim.get("status") or {}
        offered: Document = {} if volume is None else volume["spec"]
        given = {"accessModes": offered.get("accessModes")}
        if volume is None or before.get("phase") != phase:  # later they are the resizer's
            given["capacity"] = offered.get("capacity")
        if volume is None or before.get("phase") == "Pending":
            given["currentVolumeAttributesClassName"] = offered.get("volumeAttributesClassName")
        status = {name: value for name, value in {**before, **given, "phase": phase}.items() if value is not None}
        await write_status(api, "", "persistentvolumeclaims", claim, status)

    async def _tell(self, api: API, obj: Document, reason: str, text: str, *, warns: bool = True) -> None:
        """Record an Event about a claim or a volume, unless it is the last one: a claim is looked at each time that its volume changes."""
        key, told = key_of(obj), (str(metadata(obj)["uid"]), reason, text)
        if self._told.get(key) != told:
            self._told[key] = told
            await (self._events.warning if warns else self._events.normal)(api, obj, reason, text)


class EphemeralVolumes:
    """Makes the claims that Pods have templates for (kube-controller-manager's pkg/controller/volume/ephemeral)."""

    name = "ephemeral-volume"

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch("", "pods"), _with_templates)]

    async def reconcile(self, api: API, key: Key) -> float | None:
        pod = api.get("", "pods", *key)
        if pod is None or not is_active(pod):
            return None
        for volume in pod["spec"].get("volumes") or ():
            template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
            name = claim_name(pod, volume)
            if template is None or api.get("", "persistentvolumeclaims", key[0], name) is not None:
                continue
            meta: Document = template.get("metadata") or {}
            kept = {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
            made = {"name": name, **kept, "ownerReferences": [owner_reference(pod)]}
            await api.create("", "persistentvolumeclaims", key[0], {"metadata": made, "spec": template["spec"]})
        return None


def _with_templates(change: Change) -> Iterable[Key]:
    if any(volume.get("ephemeral") for volume in change.object["spec"].get("volumes") or ()):
        yield key_of(change.object)


def _annotations(obj: Document) -> Document:
    return metadata(obj).get("annotations") or {}


def _get(api: API, key: Key) -> Document | None:
    return api.get("", "persistentvolumes" if key[0] == _VOLUME else "persistentvolumeclaims", *key[1:])


def _all(api: API, keys: Iterable[Key]) -> Iterator[Document]:
    return (found for key in keys if (found := _get(api, key)) is not None)


def _claim_of(volume: Document) -> Iterator[Key]:
    reference = volume["spec"].get("claimRef")
    if reference:
        yield (_CLAIM, str(reference.get("namespace", "")), str(reference.get("name", "")))


def _related_of_claim(claim: Document | None) -> Iterator[Key]:
    name = None if claim is None else claim["spec"].get("volumeName")
    if name:
        yield (_VOLUME, "", name)
    if claim is not None and not is_bound(claim):
        yield (_CLASS, class_of(claim))


def _is_to_be_deleted(volume: Document) -> bool:
    return bool(volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete")


def _is_deleted_outside(volume: Document) -> bool:
    """Tell whether a program outside of kube-controller-manager deletes a volume (findDeletablePlugin in pv_controller.go)."""
    provisioner = _annotations(volume).get(PROVISIONED_BY)
    return is_external(_driver(provisioner)) if provisioner else volume["spec"].get("csi") is not None


def _deletion_problem(volume: Document) -> str:
    """Return why kube-controller-manager cannot delete a volume, or nothing."""
    provisioner, spec = _annotations(volume).get(PROVISIONED_BY), volume["spec"]
    found = provisioner or next((name for name, source in _PLUGINS.items() if spec.get(source) is not None), "")
    problem = _plugin_problem(found, "deletable") if found else "no volume plugin matched"
    if problem:
        name = metadata(volume)["name"]
        return problem if provisioner else f'error getting deleter volume plugin for volume "{name}": {problem}'
    path = (spec.get("hostPath") or {}).get("path", "")
    return "" if _DELETABLE.search(path) else f"host_path deleter only supports /tmp/.+ but received provided {path}"


def _plugin_problem(name: str, ability: str) -> str:
    """Return why a plugin cannot do something, or nothing (FindPluginByName and its callers in pkg/volume/plugins.go)."""
    if name not in _PLUGINS:
        return f"no volume plugin matched name: {name}"
    return "" if name == _HOST_PATH else f"no {ability} volume plugin matched"


__all__ = [
    "PROVISIONED_BY", "PROVISIONERS", "SELECTED_NODE", "STORAGE", "EphemeralVolumes", "PodClaim", "VolumeBinding", "claim_name",
    "claims_of", "is_bound", "is_external", "provisioner_of", "reference_to", "waits_for_consumer",
]  # fmt: skip
