"""Defaults of volumes, claims, storage classes and CSI drivers."""

from __future__ import annotations

from ctrlruntime.apiserver.registry.pod_amounts import round_up
from ctrlruntime.apiserver.registry.pod_defaults import default_source
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, put, put_absent
from ctrlruntime.schema.trees import Document


def persistent_volume(document: Document) -> None:
    default_source(ensure_spec(document))
    round_up(inner(document, "spec", "capacity"))
    put(document.setdefault("status", {}), "phase", "Pending")
    put(ensure_spec(document), "persistentVolumeReclaimPolicy", "Retain")
    put_absent(ensure_spec(document), "volumeMode", "Filesystem")


def persistent_volume_claim(document: Document) -> None:
    put(document.setdefault("status", {}), "phase", "Pending")
    spec = ensure_spec(document)
    put_absent(spec, "volumeMode", "Filesystem")
    for side in ("limits", "requests"):
        round_up(inner(spec, "resources", side))


def storage_class(document: Document) -> None:
    put_absent(document, "reclaimPolicy", "Delete")
    put_absent(document, "volumeBindingMode", "Immediate")


def csi_driver(document: Document) -> None:
    spec = ensure_spec(document)
    for name, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        put_absent(spec, name, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def csi_node(document: Document) -> None:
    if not ensure_spec(document).get("drivers"):
        ensure_spec(document)["drivers"] = None
