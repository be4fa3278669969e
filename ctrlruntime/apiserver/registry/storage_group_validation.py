"""Validation of the group storage.k8s.io: classes, attachments, CSI drivers and nodes (pkg/apis/storage/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.storage_validation import volume_spec_causes
from ctrlruntime.apiserver.registry.volume_sources import driver_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.quantities import canonical, parse
from ctrlruntime.schema.trees import Document, is_same
from ctrlruntime.schema.values import (
    IMMUTABLE,
    NON_NEGATIVE,
    choice_causes,
    immutable_causes,
    qualified_name_causes,
    selector_causes,
    spec_of,
    subdomain_causes,
    without,
)
from ctrlruntime.selector import utf8_length

_EXACTLY_ONE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_GROUP_POLICIES: Final = ("File", "None", "ReadWriteOnceWithFSType")
_MODES: Final = ("Persistent", "Ephemeral")
_LONGEST_NODE_ID: Final = 256
_MOST_PARAMETERS: Final = 512
_LARGEST_MAP: Final = 256 * 1024
_LONGEST_ERROR: Final = 1024
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 1 << 32
"""Seconds."""


def storage_class_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    if not document.get("provisioner"):
        yield required("provisioner")
    else:
        yield from qualified_name_causes(str(document["provisioner"]).lower(), "provisioner")
    yield from _parameter_causes(document)
    if document.get("reclaimPolicy"):
        yield from choice_causes(document["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
    mode = document.get("volumeBindingMode", "")
    yield from choice_causes(mode, "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    yield from _topology_causes(document.get("allowedTopologies") or [])
    yield from immutable_causes(document, old, "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def _parameter_causes(document: Document) -> Iterator[StatusCause]:
    """The parameters of a class: a limited number, of a limited size (validateParameters)."""
    parameters: Document = document.get("parameters") or {}
    if len(parameters) > _MOST_PARAMETERS:
        yield too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in parameters:
        yield invalid_value("parameters", "", "field can not be empty.")
    if _size(parameters) > _LARGEST_MAP:
        yield too_long("parameters", _LARGEST_MAP)


def _size(texts: Document) -> int:
    return sum(utf8_length(key) + utf8_length(value) for key, value in texts.items())


def _topology_causes(terms: list[Document]) -> Iterator[StatusCause]:
    seen: list[dict[str, set[str]]] = [{} for _ in terms]  # upstream begins with as many that are empty
    for index, term in enumerate(terms):
        path, found = f"allowedTopologies[{index}].matchLabelExpressions", dict[str, set[str]]()
        for number, expression in enumerate((term or {}).get("matchLabelExpressions") or ()):
            where, key, values = (
                f"{path}[{number}]",
                (expression or {}).get("key", ""),
                (expression or {}).get("values") or [],
            )
            if not values:
                yield required(f"{where}.values")
            for at, value in enumerate(values):
                if value in values[:at]:
                    yield duplicate(f"{where}.values[{at}]", value)
            yield from qualified_name_causes(key, f"{where}.key")
            if key in found:
                yield duplicate(f"{where}.key", key)
            found[key] = set(values)
        yield from (duplicate(path, "") for one in seen if one == found)
        seen.append(found)


def attributes_class_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    for name in ("driverName", "parameters") if old is not None else ():
        if document.get(name) != (old or {}).get(name):
            yield forbidden_field(name, f"updates to {name} are forbidden.")
    if not document.get("driverName"):
        yield required("driverName")
    else:
        yield from qualified_name_causes(str(document["driverName"]).lower(), "driverName")
    yield from _parameter_causes(document)
    if not document.get("parameters"):
        yield required("parameters", "must contain at least one key/value pair")


def capacity_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A CSIStorageCapacity: what was asked about never changes."""
    yield from selector_causes(document.get("nodeTopology"), "nodeTopology")
    yield from subdomain_causes(document.get("storageClassName", ""), "storageClassName")
    amount = document.get("capacity")
    if amount is not None and parse(amount) < 0:
        yield invalid_value("capacity", canonical(amount), NON_NEGATIVE)
    yield from immutable_causes(document, old, "nodeTopology", "storageClassName")


def attachment_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    attacher = spec.get("attacher")
    yield from driver_causes(attacher, "spec.attacher") if attacher else (required("spec.attacher"),)
    source: Document = spec.get("source") or {}
    name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if name is None and inline is None:
        yield required("spec.source", _EXACTLY_ONE)
    elif name is not None and inline is not None:
        yield forbidden_field("spec.source", _EXACTLY_ONE)
    elif name == "":
        yield required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    elif inline is not None:
        yield from volume_spec_causes(inline, "spec.source.inlineVolumeSpec", is_inline=True)
    yield from subdomain_causes(spec.get("nodeName", ""), "spec.nodeName")
    yield from _attachment_status_causes(document.get("status") or {})
    if name is not None:
        yield from subdomain_causes(name, "spec.source.persistentVolumeName")
    if old is not None and spec != spec_of(old):
        yield invalid_value("spec", internal("storage.VolumeAttachmentSpec", spec), IMMUTABLE)


def _attachment_status_causes(status: Document) -> Iterator[StatusCause]:
    if _size(status.get("attachmentMetadata") or {}) > _LARGEST_MAP:
        yield too_long("status.attachmentMetadata", _LARGEST_MAP)
    for name in ("attachError", "detachError"):
        error: Document = status.get(name) or {}
        if utf8_length(error.get("message", "")) > _LONGEST_ERROR:
            yield too_long(f"status.{name}.message", _LARGEST_MAP)  # upstream names the other limit
        if error.get("errorCode", 0) < 0:
            text = f"must be between 0 and {2**31 - 1}, inclusive"
            yield invalid_value(f"status.{name}.errorCode", error["errorCode"], text)


def csi_node_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A CSINode: of a driver that stays, only what can be allocated changes (ValidateCSINodeUpdate)."""
    yield from _csi_node_causes(document)
    for before in spec_of(old).get("drivers") or ():
        for driver in spec_of(document).get("drivers") or ():
            kept, now = without(before, ("allocatable",)), without(driver, ("allocatable",))
            if kept.get("name") == now.get("name") and kept != now:
                yield invalid_value("spec.drivers", internal("storage.CSINodeDriver", now), IMMUTABLE)


def _csi_node_causes(document: Document) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, driver in enumerate(spec_of(document).get("drivers") or ()):
        path, name, node = f"spec.drivers[{index}]", (driver or {}).get("name", ""), (driver or {}).get("nodeID", "")
        yield from driver_causes(name, f"{path}.name") if name else (required(f"{path}.name"),)
        if not node:
            yield required(f"{path}.nodeID")
        elif utf8_length(node) > _LONGEST_NODE_ID:
            yield invalid_value(f"{path}.nodeID", node, f"must be {_LONGEST_NODE_ID} characters or less")
        count = ((driver or {}).get("allocatable") or {}).get("count")
        if count is not None and count < 0:
            yield invalid_value(f"{path}.allocatable.count", count, "must be greater than or equal to 0")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        keys = (driver or {}).get("topologyKeys") or []
        for at, key in enumerate(keys):
            if not key:
                yield required(path)
            if key in keys[:at]:
                yield duplicate(path, key)
            yield from qualified_name_causes(key, path)


def driver_object_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A CSIDriver."""
    yield from _driver_spec_causes(document)
    if old is None:
        return
    spec, before = spec_of(document), spec_of(old)
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(name) != before.get(name):
            yield invalid_value(f"spec.{shown}", spec.get(name), IMMUTABLE)


def _driver_spec_causes(document: Document) -> Iterator[StatusCause]:
    spec = spec_of(document)
    if spec.get("fsGroupPolicy") not in _GROUP_POLICIES:
        yield not_supported("spec.fsGroupPolicy", spec.get("fsGroupPolicy"), _GROUP_POLICIES)
    audiences: set[str] = set()
    for index, asked in enumerate(spec.get("tokenRequests") or ()):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            asked.get("audience", ""),
            asked.get("expirationSeconds"),
        )
        if audience in audiences:
            yield duplicate(f"{path}.audience", audience)
            continue
        audiences.add(audience)
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            yield invalid_value(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > _LONGEST_TOKEN:
            text = "may not specify a duration larger than 2^32 seconds"
            yield invalid_value(f"{path}.expirationSeconds", seconds, text)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _MODES:
            yield not_supported("spec.volumeLifecycleModes", mode, _MODES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        yield invalid_value("spec.nodeAllocatableUpdatePeriodSeconds", period, text)
    hides_tokens = spec.get("serviceAccountTokenInSecrets")
    if hides_tokens is not None and not spec.get("tokenRequests"):
        text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield invalid_value("spec.serviceAccountTokenInSecrets", hides_tokens, text)


def driver_warnings(document: Document, old: Document | None) -> Iterator[str]:
    """A CSIDriver; at an update only when it asks for other tokens."""
    spec = spec_of(document)
    requests: list[Document] = spec.get("tokenRequests") or []
    if old is not None and is_same(requests, spec_of(old).get("tokenRequests") or []):
        return
    if requests and spec.get("serviceAccountTokenInSecrets") is None:
        text = "is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"
        yield f"spec.serviceAccountTokenInSecrets {text}"
