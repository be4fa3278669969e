"""Validation of configuration and storage: ConfigMaps, Secrets, claims, volumes, classes, quotas, limits and nodes,
with kube-apiserver's words.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import posixpath
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ctrlruntime.apiserver.go_json import syntax_error
from ctrlruntime.apiserver.go_values import GO_TYPES, go_name
from ctrlruntime.apiserver.registry.claim_validation import VOLUME_MODES, mode_causes
from ctrlruntime.apiserver.registry.internal_types import difference, internal
from ctrlruntime.apiserver.registry.pem import key_pair_problem
from ctrlruntime.apiserver.registry.pod_placement import node_selector_causes, toleration_causes
from ctrlruntime.apiserver.registry.pod_resources import overhead_causes
from ctrlruntime.apiserver.registry.pod_warnings import node_term_warnings, source_warnings
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.apiserver.registry.volume_sources import driver_causes, needs, source_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    choice_causes,
    config_key_causes,
    immutable_causes,
    label_causes,
    labels_causes,
    no_dots_causes,
    spec_of,
    subdomain_causes,
    without,
)

_LARGEST_DATA: Final = 1_048_576
_VOLUME_PLUGINS: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""Sources of volumes, in the order in which upstream looks."""
_REDACTED: Final = "<secret contents redacted>"


# --- ConfigMaps and Secrets


def config_map_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    yield from _sealed_causes(document, old, "data", "binaryData")
    data, binary = document.get("data") or {}, document.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        yield from config_key_causes(key, f"data[{key}]")
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value.encode())
    for key, value in binary.items():
        yield from config_key_causes(key, f"binaryData[{key}]")
        size += _decoded_size(value)
    if size > _LARGEST_DATA:
        yield too_long("[]", _LARGEST_DATA)


def secret_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    yield from immutable_causes(document, old, "type")
    yield from _sealed_causes(document, old, "data")
    data: Document = document.get("data") or {}
    for key in data:
        yield from config_key_causes(key, f"data[{key}]")
    if sum(_decoded_size(value) for value in data.values()) > _LARGEST_DATA:
        yield too_long("data", _LARGEST_DATA)
    match document.get("type"):
        case "kubernetes.io/tls":
            yield from (required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data)
        case "kubernetes.io/dockerconfigjson":
            yield from _json_causes(data, ".dockerconfigjson")
        case "kubernetes.io/dockercfg":
            yield from _json_causes(data, ".dockercfg")
        case "kubernetes.io/ssh-auth" if not data.get("ssh-privatekey"):
            yield required("data[ssh-privatekey]")
        case "kubernetes.io/basic-auth" if not {"username", "password"} & data.keys():
            yield from (required(f"data[{key}]") for key in ("username", "password"))
        case "kubernetes.io/service-account-token":
            key = "kubernetes.io/service-account.name"
            if not (document["metadata"].get("annotations") or {}).get(key):
                yield required(f"metadata.annotations[{key}]")
        case _:
            pass


def secret_warnings(document: Document, _: Document | None) -> Iterator[str]:
    if document.get("type") != "kubernetes.io/tls":
        return
    data: Document = document.get("data") or {}
    certificate, key = (base64.b64decode(data.get(name) or "") for name in ("tls.crt", "tls.key"))
    problem = key_pair_problem(certificate, key)
    if problem:
        yield problem


def _json_causes(data: Document, key: str) -> Iterator[StatusCause]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    content = base64.b64decode(data[key])
    problem = syntax_error(content)
    found = None if problem else json.loads(content)
    if not isinstance(found, dict | None):
        problem = f"json: cannot unmarshal {go_name(found)} into Go value of type {GO_TYPES[dict]}"
    if problem:
        yield invalid_value(f"data[{key}]", _REDACTED, problem)


def _decoded_size(value: str) -> int:
    try:
        return len(base64.b64decode(value)) if value else 0
    except (binascii.Error, ValueError):
        return len(value)


def _sealed_causes(document: Document, old: Document | None, *names: str) -> Iterator[StatusCause]:
    """Once `immutable` is true neither it nor the data changes."""
    if old is None or not old.get("immutable"):
        return
    text = "field is immutable when `immutable` is set"
    if not document.get("immutable"):
        yield forbidden_field("immutable", text)
    for name in names:
        if (document.get(name) or {}) != (old.get(name) or {}):
            yield forbidden_field(name, text)


# --- storage


_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
_OLD_ANNOTATIONS: Final = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    _MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}


def volume_warnings(document: Document, _: Document | None) -> Iterator[str]:
    """A PersistentVolume (pkg/api/persistentvolume/util.go)."""
    annotations: Document = document["metadata"].get("annotations") or {}
    for key, text in _OLD_ANNOTATIONS.items():
        if key in annotations:
            yield f"metadata.annotations[{key}]: {text}"
    nodes = inner(spec_of(document), "nodeAffinity", "required") or {}
    for index, term in enumerate(items(nodes, "nodeSelectorTerms")):
        path = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
        yield from node_term_warnings(term, path, checks_values=False)
    if spec_of(document).get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: {text}"
    silent = {"flocker", "quobyte"}  # upstream's list for volumes lacks them
    sources = {name: source for name, source in spec_of(document).items() if name not in silent}
    yield from source_warnings(sources, "spec")


def volume_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A PersistentVolume; an update is looked at twice (ValidateUpdate in pkg/registry/core/persistentvolume/strategy.go)."""
    spec = spec_of(document)
    yield from volume_spec_causes(spec)
    sources = {name for name in _VOLUME_PLUGINS if spec.get(name) is not None}
    if _MOUNT_OPTIONS in (document["metadata"].get("annotations") or {}) and not _MOUNTED & sources:
        text = "may not specify mount options for this volume type"
        yield forbidden_field(f"metadata.annotations.{_MOUNT_OPTIONS}", text)
    if old is not None:
        yield from volume_spec_causes(spec)
        yield from _volume_update_causes(spec, spec_of(old))


def volume_spec_causes(spec: Document, path: str = "spec", *, is_inline: bool = False) -> Iterator[StatusCause]:
    """The spec of a volume, or the one inside a VolumeAttachment (ValidatePersistentVolumeSpec)."""
    sources = [name for name in _VOLUME_PLUGINS if spec.get(name) is not None]
    modes, policy, mode = (
        spec.get("accessModes") or (),
        spec.get("persistentVolumeReclaimPolicy"),
        spec.get("volumeMode"),
    )
    if is_inline:
        for name in ("claimRef", "capacity"):
            if spec.get(name):
                yield forbidden_field(f"{path}.{name}", _NOT_INLINE)
        if spec.get("csi") is None:
            yield required(f"{path}.csi", "has to be specified in the context of inline volumes")
    if not modes:
        yield required(f"{path}.accessModes")
    yield from mode_causes(modes, f"{path}.accessModes")
    if not is_inline:
        yield from _capacity_causes(spec, f"{path}.capacity")
        yield from choice_causes(policy or "Retain", f"{path}.persistentVolumeReclaimPolicy", _POLICIES)
    elif policy not in {None, "", "Retain"}:
        text = "may only be Retain in the context of inline volumes"
        yield forbidden_field(f"{path}.persistentVolumeReclaimPolicy", text)
    if spec.get("nodeAffinity") is not None:
        yield from _affinity_causes(spec["nodeAffinity"], f"{path}.nodeAffinity", is_inline=is_inline)
    for index, name in enumerate(sources):
        if index and name != "flexVolume":  # upstream has no such check of it
            shown = "cephFS" if name == "cephfs" else name
            yield forbidden_field(f"{path}.{shown}", "may not specify more than 1 volume type")
        else:
            yield from _volume_source_causes(name, spec, path)
    if not sources:
        yield required(path, "must specify a volume type")
    if policy == "Recycle" and _is_root((spec.get("hostPath") or {}).get("path", "")):
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_field(f"{path}.persistentVolumeReclaimPolicy", text)
    if is_inline:
        if spec.get("storageClassName"):
            yield forbidden_field(f"{path}.storageClassName", _NOT_INLINE)
        if mode not in {None, "Filesystem"}:
            text = "may not specify volumeMode other than Filesystem in the context of inline volumes"
            yield forbidden_field(f"{path}.volumeMode", text)
        return
    if spec.get("storageClassName"):
        yield from subdomain_causes(spec["storageClassName"], f"{path}.storageClassName")
    if mode is not None:
        yield from choice_causes(mode, f"{path}.volumeMode", VOLUME_MODES)
    if spec.get("volumeAttributesClassName") is not None:
        yield from _attributes_class_causes(spec, path)


_NOT_INLINE: Final = "may not be specified in the context of inline volumes"
_POLICIES: Final = ("Delete", "Recycle", "Retain")


def _capacity_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    capacity: Document = spec.get("capacity") or {}
    if not capacity:
        yield required(path)
    if list(capacity) != ["storage"]:
        yield not_supported(path, spec.get("capacity"), ("storage",))
    for name, amount in capacity.items():
        where = f"{path}[{name}]"
        value = math.floor(parse(amount))
        if -(2**63) <= value < 0:  # to upstream what 64 bits do not hold is 0 (Value in quantity.go)
            yield invalid_value(where, value, "must be a valid resource quantity")
        if parse(amount) <= 0:
            yield invalid_value(where, amount, "must be greater than zero")


def _affinity_causes(affinity: Document, path: str, *, is_inline: bool) -> Iterator[StatusCause]:
    if is_inline:
        yield forbidden_field(path, _NOT_INLINE)
        return
    if affinity.get("required") is None:
        yield required(f"{path}.required", "must specify required node constraints")
    yield from node_selector_causes(affinity.get("required"), f"{path}.required")


def _attributes_class_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    name, where = spec["volumeAttributesClassName"], f"{path}.volumeAttributesClassName"
    yield from subdomain_causes(name, where) if name else (required(where, "an empty string is disallowed"),)
    if spec.get("csi") is None:
        yield required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def _is_root(path: str) -> bool:
    return bool(path) and posixpath.normpath(path) in {"/", "//"}


_MOUNTED: Final = frozenset(
    {
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "gcePersistentDisk",
        "glusterfs",
        "iscsi",
        "nfs",
        "photonPersistentDisk",
        "quobyte",
        "rbd",
        "vsphereVolume",
    }
)
"""Volumes that may have the annotation with mount options (pkg/volume/validation/pv_validation.go)."""


def _volume_update_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """What of a volume never changes (ValidatePersistentVolumeUpdate)."""
    now, then = ({name: tree[name] for name in _VOLUME_PLUGINS if name in tree} for tree in (spec, before))
    if "csi" in now and "csi" in then and then["csi"].get("controllerExpandSecretRef") is None:
        now["csi"] = without(now["csi"], ("controllerExpandSecretRef",))  # it may be set later
    if now != then:
        shown = difference("core.PersistentVolumeSource", then, now)
        text = f"spec.persistentvolumesource is immutable after creation\n{shown}"
        yield forbidden_field("spec.persistentvolumesource", text)
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), IMMUTABLE)
    affinity = before.get("nodeAffinity")
    if affinity is not None and spec.get("nodeAffinity") != affinity:
        shown = internal("*core.VolumeNodeAffinity", spec.get("nodeAffinity"))
        yield invalid_value("nodeAffinity", shown, f"{IMMUTABLE}, except for updating from beta label to GA")
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        text = "update from non-nil value to nil is forbidden"
        yield forbidden_field("spec.volumeAttributesClassName", text)


_CSI_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
"""In upstream's order; it does not look at nodeStageSecretRef."""


def _volume_source_causes(name: str, spec: Document, parent: str) -> Iterator[StatusCause]:
    source, path = spec[name], f"{parent}.{name}"
    match name:
        case "csi":
            yield from (
                driver_causes(source["driver"], f"{path}.driver")
                if source.get("driver")
                else needs(source, path, "driver")
            )
            yield from needs(source, path, "volumeHandle")
            for field in _CSI_SECRETS:
                if source.get(field) is not None:
                    yield from _secret_causes(source[field], f"{path}.{field}")
        case "local":
            if not source.get("path"):
                yield required(f"{path}.path")
            else:
                yield from no_dots_causes(source["path"], f"{path}.path")
            if spec.get("nodeAffinity") is None:
                yield required(f"{parent}.nodeAffinity", "Local volume requires node affinity")
        case "iscsi":  # a Pod's has a newer text, and its Secret may be without a name
            for cause in source_causes(name, source, path):
                yield replace(cause, message=cause.message.removesuffix(" starting with iqn, eui, or naa"))
            if source.get("secretRef") is not None:
                yield from needs(source["secretRef"], f"{path}.secretRef", "name")
        case "quobyte":
            yield from sorted(source_causes(name, source, path), key=lambda cause: cause.field)
        case _:
            yield from source_causes(name, source, path)
            yield from _namespace_causes(name, source, path)


def _namespace_causes(name: str, source: Document, path: str) -> Iterator[StatusCause]:
    """A volume has no namespace of its own, so what it names is in one."""
    if name in {"cinder", "storageos"} and source.get("secretRef") is not None:
        yield from needs(source["secretRef"], f"{path}.secretRef", "namespace")
    if name == "azureFile" and source.get("secretNamespace") == "":
        yield required(f"{path}.secretNamespace")
    if name == "glusterfs" and source.get("endpointsNamespace") is not None:
        where, given = f"{path}.endpointsNamespace", source["endpointsNamespace"]
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        yield from label_causes(given, where) if given else (invalid_value(where, given, text),)


def _secret_causes(reference: Document, path: str) -> Iterator[StatusCause]:
    """What is wrong with a Secret of a CSI driver (validatePVSecretReference in pkg/apis/core/validation/validation.go)."""
    for field, rule in (("name", subdomain_causes), ("namespace", label_causes)):
        value = reference.get(field)
        yield from rule(value, f"{path}.{field}") if value else needs(reference, path, field)


# --- classes, quotas, limits, nodes


def runtime_class_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    handler = document.get("handler", "")
    if not handler:
        yield required("handler")
    else:
        yield from label_causes(handler, "handler")
    yield from overhead_causes((document.get("overhead") or {}).get("podFixed"), "overhead")
    scheduling: Document = document.get("scheduling") or {}
    yield from labels_causes(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    tolerations: list[Document] = scheduling.get("tolerations") or []
    for index, toleration in enumerate(tolerations):
        yield from toleration_causes(toleration, f"scheduling.tolerations[{index}]")
    kinds = [tuple(one.get(name) or "" for name in ("key", "operator", "value", "effect")) for one in tolerations]
    for index, toleration in enumerate(tolerations):
        if kinds[index] in kinds[:index]:
            yield duplicate(f"scheduling.tolerations[{index}]", internal("core.Toleration", toleration))
    yield from immutable_causes(document, old, "handler")
