"""Binds PersistentVolumeClaims to PersistentVolumes (kube-controller-manager's pkg/controller/volume/persistentvolume), and makes the claims
of ephemeral volumes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    is_active,
    is_deleting,
    key_of,
    labels_of,
    metadata,
    owner_reference,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.quantity import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

STORAGE: Final = "storage.k8s.io"
PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_OLD_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_CLAIM, _VOLUME = "claim", "volume"
_NO_CLASS: Final = "no persistent volumes available for this claim and no storage class is set"
_EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. If volume creation "
    "is delayed, please verify that the provisioner is running and correctly registered."
)


def class_of(obj: Document) -> str:
    """Return the storage class of a claim or a volume; empty without one."""
    annotated = (metadata(obj).get("annotations") or {}).get(_OLD_CLASS)
    return str(annotated if annotated is not None else obj["spec"].get("storageClassName") or "")


def is_bound(claim: Document) -> bool:
    """Tell whether a claim has its volume."""
    return _COMPLETED in (metadata(claim).get("annotations") or {}) and bool(claim["spec"].get("volumeName"))


def waits_for_consumer(api: API, claim: Document) -> bool:
    """Tell whether the volume of a claim is chosen when a Pod that uses it is scheduled."""
    found = api.get(STORAGE, "storageclasses", "", class_of(claim))
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim that a Pod uses."""

    document: Document | None
    """None: nothing waits for it."""
    problem: str = ""
    """Why the Pod cannot be scheduled (VolumeBinding in the scheduler's plugins)."""


def claims_of(api: API, pod: Document) -> Iterator[PodClaim]:
    """Yield the claims of a Pod. One without a class, which no volume is for, is left out: a server has no default class of itself."""
    namespace = str(metadata(pod)["namespace"])
    for volume in pod["spec"].get("volumes") or ():
        is_ephemeral = volume.get("ephemeral") is not None
        source: Document | None = volume.get("persistentVolumeClaim")
        name = f"{metadata(pod)['name']}-{volume['name']}" if is_ephemeral else str((source or {}).get("claimName", ""))
        if not is_ephemeral and source is None:
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
    """Keys are those of claims and of volumes, with what they are before them."""

    name = "persistentvolume-binder"

    def __init__(self, now: Now) -> None:
        self._events = Recorder("persistentvolume-controller", now)
        self._waiting: set[Key] = set()
        """The claims without a volume."""
        self._told: dict[tuple[str, str], tuple[str, str, str]] = {}

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("", "persistentvolumeclaims"), self._claims),
            keys_of(api.watch("", "persistentvolumes"), self._volumes),
            keys_of(api.watch(STORAGE, "storageclasses"), lambda _: set(self._waiting)),
        ]

    def _claims(self, change: Change) -> Iterable[Key]:
        key = (_CLAIM, *key_of(change.object))
        if change.type == "DELETED":
            self._waiting.discard(key)
            self._told.pop(key_of(change.object), None)
        yield key
        if change.object["spec"].get("volumeName"):
            yield (_VOLUME, "", change.object["spec"]["volumeName"])

    def _volumes(self, change: Change) -> Iterable[Key]:
        yield (_VOLUME, "", metadata(change.object)["name"])
        reference = change.object["spec"].get("claimRef")
        if reference:
            yield (_CLAIM, str(reference.get("namespace", "")), str(reference.get("name", "")))
        yield from self._waiting

    async def reconcile(self, api: API, key: Key) -> float | None:
        if key[0] == _VOLUME:
            volume = api.get("", "persistentvolumes", *key[1:])
            if volume is not None:
                await self._sync_volume(api, volume)
            return None
        claim = api.get("", "persistentvolumeclaims", *key[1:])
        if claim is None:
            return None
        if _COMPLETED in (metadata(claim).get("annotations") or {}):
            self._waiting.discard(key)
            await self._sync_bound(api, claim)
        else:
            self._waiting.add(key)
            await self._sync_unbound(api, claim)
        return None

    # Claims

    async def _sync_unbound(self, api: API, claim: Document) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            is_delayed = waits_for_consumer(api, claim) and SELECTED_NODE not in (
                metadata(claim).get("annotations") or {}
            )
            volume = _best_match(api.list("", "persistentvolumes"), claim, is_delayed=is_delayed)
            if volume is not None:
                await self._bind(api, volume, claim)
                return
            await self._write_claim(api, claim, {"phase": "Pending"})
            await self._provide(api, claim, is_delayed=is_delayed)
            return
        volume = api.get("", "persistentvolumes", "", name)
        reference = None if volume is None else volume["spec"].get("claimRef")
        problem = None if volume is None or reference else _mismatch(volume, claim)
        if volume is not None and problem is None and (not reference or _refers(reference, claim)):
            await self._bind(api, volume, claim)
            return
        await self._write_claim(api, claim, {"phase": "Pending"})
        if problem is not None:
            text = f'Cannot bind to requested volume "{name}": {problem}'
            await self._tell(api, claim, "VolumeMismatch", text)
        elif volume is not None:
            await self._tell(api, claim, "FailedBinding", f'volume "{name}" already bound to a different claim.')

    async def _provide(self, api: API, claim: Document, *, is_delayed: bool) -> None:
        """Say what a claim waits for, and ask the provisioner of its class."""
        name = class_of(claim)
        if not name:
            await self._tell(api, claim, "FailedBinding", _NO_CLASS, warns=False)
            return
        found = api.get(STORAGE, "storageclasses", "", name)
        if is_delayed:
            text = "waiting for first consumer to be created before binding"
            await self._tell(api, claim, "WaitForFirstConsumer", text, warns=False)
        elif found is None:
            await self._tell(api, claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
        elif found["provisioner"] == "kubernetes.io/no-provisioner":
            text = f"no volume plugin matched name: {found['provisioner']}"
            await self._tell(api, claim, "ProvisioningFailed", text)
        elif found["provisioner"].startswith("kubernetes.io/"):
            await self._tell(api, claim, "ProvisioningFailed", "no provisionable volume plugin matched")
        else:
            annotations = dict.fromkeys((PROVISIONER, _OLD_PROVISIONER), found["provisioner"])
            if not annotations.items() <= (metadata(claim).get("annotations") or {}).items():
                await _patch(api, "persistentvolumeclaims", claim, {"metadata": {"annotations": annotations}})
            await self._tell(api, claim, "ExternalProvisioning", _EXTERNAL.format(found["provisioner"]), warns=False)

    async def _sync_bound(self, api: API, claim: Document) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            await self._lose(
                api,
                claim,
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            )
            return
        volume = api.get("", "persistentvolumes", "", name)
        if volume is None:
            await self._lose(
                api, claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            )
            return
        reference = volume["spec"].get("claimRef")
        if not reference or reference.get("uid") in {None, metadata(claim)["uid"]}:
            await self._bind(api, volume, claim)
        else:
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(api, claim, "ClaimMisbound", text)

    async def _lose(self, api: API, claim: Document, reason: str, text: str) -> None:
        if (claim.get("status") or {}).get("phase") != "Lost":
            await self._write_claim(api, claim, {"phase": "Lost"})
            await self._events.warning(api, claim, reason, text)

    async def _bind(self, api: API, volume: Document, claim: Document) -> None:
        """Write on both sides that they belong together, what is not yet there of it."""
        reference = volume["spec"].get("claimRef")
        meta = metadata(claim)
        if not reference or not reference.get("uid"):
            full = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta["resourceVersion"],
            }
            patch: Document = {"spec": {"claimRef": full}}
            if not reference:
                patch["metadata"] = {"annotations": {_BOUND_BY_CONTROLLER: "yes"}}
            volume = await _patch(api, "persistentvolumes", volume, patch)
        await self._write_volume(api, volume, "Bound")
        annotations = {_COMPLETED: "yes"}
        if not claim["spec"].get("volumeName"):
            annotations[_BOUND_BY_CONTROLLER] = "yes"
        if not is_bound(claim):
            patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": metadata(volume)["name"]}}
            claim = await _patch(api, "persistentvolumeclaims", claim, patch)
        before: Document = claim.get("status") or {}
        if before.get("phase") != "Bound":
            given = {"accessModes": volume["spec"].get("accessModes"), "capacity": volume["spec"].get("capacity")}
            await self._write_claim(api, claim, {**before, **given, "phase": "Bound"})

    # Volumes

    async def _sync_volume(self, api: API, volume: Document) -> None:
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            await self._write_volume(api, volume, "Available")
            return
        claim = api.get("", "persistentvolumeclaims", str(reference.get("namespace")), str(reference.get("name")))
        if claim is None or metadata(claim)["uid"] != reference["uid"]:
            await self._release(api, volume)
        elif claim["spec"].get("volumeName") == metadata(volume)["name"]:
            await self._write_volume(api, volume, "Bound")

    async def _release(self, api: API, volume: Document) -> None:
        """The claim is gone: keep the volume, or delete it."""
        phase = (volume.get("status") or {}).get("phase")
        if phase not in {"Released", "Failed"}:
            volume = await self._write_volume(api, volume, "Released")
        is_ours = PROVISIONED_BY not in (metadata(volume).get("annotations") or {})  # else its provisioner deletes it
        if volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete" or not is_ours:
            return
        path = (volume["spec"].get("hostPath") or {}).get("path", "/tmp/")  # noqa: S108 - upstream's rule, no file is touched
        if not path.startswith("/tmp/"):  # noqa: S108
            text = f"host_path deleter only supports /tmp/.+ but received provided {path}"
            if phase != "Failed":
                await self._write_volume(api, volume, "Failed", text)
                await self._events.warning(api, volume, "VolumeFailedDelete", text)
            return
        await api.delete("", "persistentvolumes", "", metadata(volume)["name"], uid=metadata(volume)["uid"])

    # Writing

    async def _write_volume(self, api: API, volume: Document, phase: str, text: str = "") -> Document:
        before: Document = volume.get("status") or {}
        if before.get("phase") == phase:
            return volume
        kept = {name: value for name, value in before.items() if name not in {"phase", "message", "reason"}}
        status = {**kept, "phase": phase, **({"message": text} if text else {})}
        return await write_status(api, "", "persistentvolumes", volume, status)

    async def _write_claim(self, api: API, claim: Document, status: Document) -> None:
        await write_status(api, "", "persistentvolumeclaims", claim, status)

    async def _tell(self, api: API, claim: Document, reason: str, text: str, *, warns: bool = True) -> None:
        """Record an Event about a claim, unless it is the last one: a claim is looked at each time that a volume changes."""
        key, told = key_of(claim), (str(metadata(claim)["uid"]), reason, text)
        if self._told.get(key) != told:
            self._told[key] = told
            await (self._events.warning if warns else self._events.normal)(api, claim, reason, text)


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
            name = f"{key[1]}-{volume['name']}"
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


async def _patch(api: API, resource: str, obj: Document, patch: Document) -> Document:
    guard = {"uid": metadata(obj)["uid"], "resourceVersion": metadata(obj)["resourceVersion"]}
    patch = {**patch, "metadata": {**patch.get("metadata", {}), **guard}}
    return await api.merge_patch("", resource, *key_of(obj), patch)


def _refers(reference: Document, claim: Document) -> bool:
    is_named = (reference.get("namespace"), reference.get("name")) == key_of(claim)
    return is_named and reference.get("uid") in {None, "", metadata(claim)["uid"]}


def _best_match(volumes: Sequence[Document], claim: Document, *, is_delayed: bool) -> Document | None:
    """Return the volume that names the claim, or the smallest one that fits (findMatchingVolume in component-helpers' volumehelpers.go)."""
    named = [
        volume for volume in volumes if volume["spec"].get("claimRef") and _refers(volume["spec"]["claimRef"], claim)
    ]
    if named:
        return named[0]
    if is_delayed:
        return None
    free = [volume for volume in volumes if _is_free(volume) and _mismatch(volume, claim) is None]
    selector: Any = claim["spec"].get("selector")
    if selector:
        free = [volume for volume in free if from_label_selector(selector).matches(labels_of(volume))]
    return min(free, key=_size, default=None)


def _is_free(volume: Document) -> bool:
    is_available = (volume.get("status") or {}).get("phase") == "Available"
    return is_available and not volume["spec"].get("claimRef") and not metadata(volume).get("deletionTimestamp")


def _mismatch(volume: Document, claim: Document) -> str | None:
    """Return why a claim cannot have a volume (checkVolumeSatisfyClaim)."""
    wanted, offered = claim["spec"], volume["spec"]
    if parse((wanted.get("resources") or {}).get("requests", {}).get("storage", "0")) > _size(volume):
        return "requested PV is too small"
    if class_of(claim) != class_of(volume):
        return "storageClassName does not match"
    if wanted.get("volumeAttributesClassName") != offered.get("volumeAttributesClassName"):
        return "volumeAttributesClassName does not match"
    if wanted.get("volumeMode") != offered.get("volumeMode"):
        return "incompatible volumeMode"
    if not set(wanted.get("accessModes") or ()) <= set(offered.get("accessModes") or ()):
        return "incompatible accessMode"
    return None


def _size(volume: Document) -> Any:
    return parse((volume["spec"].get("capacity") or {}).get("storage", "0"))


__all__ = [
    "PROVISIONED_BY", "PROVISIONER", "SELECTED_NODE", "STORAGE", "EphemeralVolumes", "PodClaim", "VolumeBinding", "claims_of",
    "class_of", "is_bound", "waits_for_consumer",
]  # fmt: skip
