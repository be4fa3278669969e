"""What may change in a PersistentVolumeClaim (ValidatePersistentVolumeClaimUpdate in pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.differences import difference
from ctrlruntime.apiserver.registry.pod_amounts import amounts_of
from ctrlruntime.apiserver.registry.storage_classes import CLASS_ANNOTATION
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value
from ctrlruntime.schema.quantity import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, spec_of, without

_ATTRIBUTES: Final = "volumeAttributesClassName"
_CLASS: Final = "storageClassName"
_SPEC_TEXT: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def claim_update_causes(document: Document, old: Document) -> Iterator[StatusCause]:
    """Yield why a claim may not change so."""
    spec, before = spec_of(document), spec_of(old)
    status: Document = old.get("status") or {}
    annotation, had = ((each["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION) for each in (document, old))
    shown, earlier = dict(spec), dict(before)
    if not before.get("volumeName") and spec.get("volumeName"):
        earlier["volumeName"] = spec["volumeName"]
    is_first = before.get(_CLASS) is None and spec.get(_CLASS) is not None and had in {None, spec.get(_CLASS)}
    if is_first:  # a class may be given late, and in place of the annotation
        del shown[_CLASS]
    if not (is_first and had is not None and annotation in {None, had}) and (annotation or "") != (had or ""):
        yield invalid_value(f"metadata.annotations.{CLASS_ANNOTATION}", annotation or "", IMMUTABLE)
    if status.get("phase") == "Bound":
        shown = {**without(shown, (_ATTRIBUTES,)), **{name: before[name] for name in (_ATTRIBUTES,) if name in before}}
        requests, size = amounts_of(spec, "requests"), amounts_of(before, "requests").get("storage")
        if requests and size is not None:
            shown["resources"] = {**spec["resources"], "requests": {**requests, "storage": size}}
    if shown != earlier:
        yield forbidden_field("spec", f"{_SPEC_TEXT}\n{difference('PersistentVolumeClaimSpec', earlier, shown)}")
    now, then = (parse(amounts_of(each, "requests").get("storage", "0")) for each in (spec, before))
    # A claim that asked for too much may ask for less, and for more than it has.
    if now < then and now <= parse((status.get("capacity") or {}).get("storage", "0")):
        yield forbidden_field("spec.resources.requests.storage", "field can not be less than status.capacity")
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    has_attributes = status.get("currentVolumeAttributesClassName") is not None
    if has_attributes and not spec.get(_ATTRIBUTES) and before.get(_ATTRIBUTES) != spec.get(_ATTRIBUTES):
        value = "nil" if spec.get(_ATTRIBUTES) is None else "empty string"
        text = f"update to {value} is forbidden when status.currentVolumeAttributesClassName is not nil"
        yield forbidden_field(f"spec.{_ATTRIBUTES}", text)


__all__ = ["claim_update_causes"]
