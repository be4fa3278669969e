"""Validation of PersistentVolumeClaims with kube-apiserver's words (pkg/apis/core/validation)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import difference, internal
from ctrlruntime.apiserver.registry.pod_warnings import claim_spec_warnings
from ctrlruntime.apiserver.registry.storage_classes import CLASS_ANNOTATION
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    choice_causes,
    label_causes,
    qualified_name_causes,
    selector_causes,
    spec_of,
    subdomain_causes,
)

_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""What `dataSource` may be that is not in `dataSourceRef`, too."""
_BOUND_TEXT: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_RESIZE_STATES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def claim_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, before = spec_of(document), spec_of(old)
    yield from claim_spec_causes(spec, "spec")
    if old is not None:
        yield from _claim_update_causes(document, spec, old, before)


def _claim_update_causes(document: Document, spec: Document, old: Document, before: Document) -> Iterator[StatusCause]:
    """What of a claim changes only once, or while it is bound (ValidatePersistentVolumeClaimUpdate)."""
    status, now, then = old.get("status") or {}, dict(spec), dict(before)
    if not then.get("volumeName"):
        then["volumeName"] = now.get("volumeName")
    annotation, earlier = (
        (tree["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION) for tree in (document, old)
    )
    given = now.get("storageClassName")
    gains_class = given is not None and then.get("storageClassName") is None
    if gains_class and earlier == given and annotation in {None, earlier}:
        now["storageClassName"] = None  # the class goes from the annotation to its field
    else:
        if (annotation or "") != (earlier or ""):
            yield invalid_value(f"metadata.annotations.{CLASS_ANNOTATION}", annotation or "", IMMUTABLE)
        if gains_class and earlier in {None, given}:
            now["storageClassName"] = None
    if status.get("phase") == "Bound":
        now["volumeAttributesClassName"] = then.get("volumeAttributesClassName")
        if (now.get("resources") or {}).get("requests"):
            amount = ((then.get("resources") or {}).get("requests") or {}).get("storage", "0")
            now["resources"] = {**now["resources"], "requests": {**now["resources"]["requests"], "storage": amount}}
    shown = [internal("core.PersistentVolumeClaimSpec", tree) for tree in (then, now)]
    if shown[0] != shown[1]:
        yield forbidden_field("spec", f"{_BOUND_TEXT}\n{difference('core.PersistentVolumeClaimSpec', then, now)}")
    sizes = [(tree.get("resources") or {}).get("requests") or {} for tree in (spec, before)]
    size, size_before = (parse(tree.get("storage", "0")) for tree in sizes)
    if size < size_before and size <= parse((status.get("capacity") or {}).get("storage", "0")):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    wanted = spec.get("volumeAttributesClassName")
    is_changed = wanted != before.get("volumeAttributesClassName")
    if is_changed and not wanted and status.get("currentVolumeAttributesClassName") is not None:
        what = "nil" if wanted is None else "empty string"
        text = f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden_field("spec.volumeAttributesClassName", text)


def claim_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    """The status of a claim (ValidatePersistentVolumeClaimStatusUpdate)."""
    status: Document = document.get("status") or {}
    for name, amount in (status.get("capacity") or {}).items():
        yield from _amount_causes(amount, f"status.capacity[{name}]")
    path = "status.allocatedResourceStatuses"
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        yield from _resource_key_causes(name, path)
        if state not in _RESIZE_STATES:
            yield not_supported(path, name, _RESIZE_STATES)
    for name, amount in (status.get("allocatedResources") or {}).items():
        wrong = list(_resource_key_causes(name, "status.allocatedResources"))
        yield from wrong or _amount_causes(amount, f"status.allocatedResources[{name}]")


def _amount_causes(amount: str, path: str) -> Iterator[StatusCause]:
    whole = math.ceil(parse(amount))
    if whole < 0:
        yield invalid_value(path, whole, "must be a valid resource quantity")


def _resource_key_causes(name: str, path: str) -> Iterator[StatusCause]:
    """A resource of a claim: its storage, or one with a domain of its own."""
    wrong = list(qualified_name_causes(name, path))
    yield from wrong
    is_native = "/" not in name or "kubernetes.io/" in name
    if not wrong and is_native and name != "storage":
        yield not_supported(path, name, ("storage",))


def claim_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """The spec of a claim, also of one in a StatefulSet."""
    modes, size = spec.get("accessModes") or (), ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_causes(spec.get("selector"), f"{path}.selector")
    yield from mode_causes(modes, f"{path}.accessModes")
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif parse(size) <= 0:
        yield invalid_value(f"{path}.resources[storage]", size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from subdomain_causes(spec["storageClassName"], f"{path}.storageClassName")
    if spec.get("volumeMode") is not None:
        yield from choice_causes(spec["volumeMode"], f"{path}.volumeMode", VOLUME_MODES)
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if spec.get("volumeAttributesClassName"):
        yield from subdomain_causes(spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName")
    yield from _data_source_causes(source, f"{path}.dataSource")
    yield from _data_source_causes(ref, f"{path}.dataSourceRef")
    if source is not None and ref is not None:
        where: Document = {}  # upstream prints a path as what it is: an object without public fields
        if ref.get("namespace"):
            yield invalid_value(path, where, "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(name) != ref.get(name) for name in ("apiGroup", "kind", "name")):
            yield invalid_value(path, where, "must match dataSourceRef")


def _data_source_causes(source: Document | None, path: str) -> Iterator[StatusCause]:
    if source is None:
        return
    group, kind = source.get("apiGroup"), source.get("kind", "")
    yield from (required(f"{path}.{name}") for name in ("name", "kind") if not source.get(name))
    if not group and kind != "PersistentVolumeClaim":
        yield invalid_value(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group:
        yield from subdomain_causes(group, f"{path}.apiGroup")
    if source.get("namespace"):
        yield from label_causes(source["namespace"], f"{path}.namespace")


def settle_data_source(spec: Document, old: Document) -> None:
    """Make both fields for the source of a claim's data say the same (pkg/api/persistentvolumeclaim/util.go)."""
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if old.get("dataSource") is None and old.get("dataSourceRef") is None:
        if ref is not None and ref.get("namespace"):
            ref = None
        if ref is None and source is not None and (source.get("apiGroup") or "", source.get("kind")) not in _SOURCES:
            source = None
    if source is None and ref is not None and not ref.get("namespace"):
        source = dict(ref)
    spec["dataSource"], spec["dataSourceRef"] = source, source if ref is None else ref
    for name in ("dataSource", "dataSourceRef"):
        if spec[name] is None:
            del spec[name]


def mode_causes(modes: Iterable[str], path: str) -> Iterator[StatusCause]:
    """Ways to access a volume, for claims and volumes."""
    modes = list(modes)
    for mode in modes:
        yield from choice_causes(mode, path, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"} & {*modes}:
        yield forbidden_field(path, "may not use ReadWriteOncePod with other access modes")


def claim_warnings(document: Document, _: Document | None) -> Iterator[str]:
    if CLASS_ANNOTATION in (document["metadata"].get("annotations") or {}):
        yield f'metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'
    yield from claim_spec_warnings(spec_of(document), "spec")


__all__ = [
    "VOLUME_MODES",
    "claim_causes",
    "claim_spec_causes",
    "claim_status_causes",
    "claim_warnings",
    "mode_causes",
    "settle_data_source",
]
