"""Validation of configuration and storage: ConfigMaps, Secrets, claims, volumes, classes, quotas, limits and nodes,
with kube-apiserver's words.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from ctrlruntime.apiserver.go_json import syntax_error
from ctrlruntime.apiserver.registry.claim_updates import claim_update_causes
from ctrlruntime.apiserver.registry.differences import difference
from ctrlruntime.apiserver.registry.pod_placement import node_selector_causes, toleration_causes
from ctrlruntime.apiserver.registry.pod_resources import overhead_causes
from ctrlruntime.apiserver.registry.pod_warnings import claim_spec_warnings, source_warnings
from ctrlruntime.apiserver.registry.storage_classes import CLASS_ANNOTATION
from ctrlruntime.apiserver.registry.volume_sources import driver_causes, needs, source_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.schema.quantity import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    IMMUTABLE,
    choice_causes,
    config_key_causes,
    immutable_causes,
    label_causes,
    labels_causes,
    network_causes,
    network_of,
    network_warnings,
    no_dots_causes,
    qualified_name_causes,
    selector_causes,
    spec_of,
    subdomain_causes,
    without,
)
from ctrlruntime.selector import label_value_problems

_LARGEST_DATA: Final = 1_048_576
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
"""What `dataSource` may be that is not in `dataSourceRef`, too."""
_GROWS: Final = "controllerExpandSecretRef"
_VOLUME_PLUGINS: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
"""Sources of volumes, in the order in which upstream looks."""
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REDACTED: Final = "<secret contents redacted>"


# --- ConfigMaps and Secrets


def config_map_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
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
    yield from _sealed_causes(document, old, "data", "binaryData")


def secret_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
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
    yield from immutable_causes(document, old, "type")
    yield from _sealed_causes(document, old, "data")


def secret_warnings(document: Document) -> Iterator[str]:
    if document.get("type") != "kubernetes.io/tls":
        return
    data = document.get("data") or {}
    if "tls.crt" in data and b"-----BEGIN" not in base64.b64decode(data["tls.crt"]):
        yield "tls: failed to find any PEM data in certificate input"


def _json_causes(data: Document, key: str) -> Iterator[StatusCause]:
    if key not in data:
        yield required(f"data[{key}]")
        return
    if why := syntax_error(base64.b64decode(data[key])):
        yield invalid_value(f"data[{key}]", _REDACTED, why)


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


def claim_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    yield from claim_spec_causes(spec_of(document), "spec")
    if old is not None:
        yield from claim_update_causes(document, old)


def claim_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """The spec of a claim, also of one in a StatefulSet."""
    modes, size = spec.get("accessModes") or (), ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from selector_causes(spec.get("selector"), f"{path}.selector")
    yield from _mode_causes(modes, f"{path}.accessModes")
    if size is None:
        yield required(f"{path}.resources[storage]")
    elif parse(size) <= 0:
        yield invalid_value(f"{path}.resources[storage]", size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from subdomain_causes(spec["storageClassName"], f"{path}.storageClassName")
    if spec.get("volumeMode") is not None:
        yield from choice_causes(spec["volumeMode"], f"{path}.volumeMode", _VOLUME_MODES)
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


def _mode_causes(modes: Iterable[str], path: str) -> Iterator[StatusCause]:
    modes = list(modes)
    for mode in modes:
        yield from choice_causes(mode, path, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden_field(path, "may not use ReadWriteOncePod with other access modes")


def claim_warnings(document: Document) -> Iterator[str]:
    if CLASS_ANNOTATION in (document["metadata"].get("annotations") or {}):
        yield f'metadata.annotations[{CLASS_ANNOTATION}]: deprecated since v1.8; use "storageClassName" attribute instead'
    yield from claim_spec_warnings(spec_of(document), "spec")


def volume_warnings(document: Document) -> Iterator[str]:
    if spec_of(document).get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: {text}"
    silent = {"flocker", "quobyte"}  # upstream's list for volumes lacks them (pkg/api/persistentvolume/util.go)
    sources = {name: source for name, source in spec_of(document).items() if name not in silent}
    yield from source_warnings(sources, "spec")


def volume_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A PersistentVolume."""
    spec = spec_of(document)
    sources = [name for name in _VOLUME_PLUGINS if spec.get(name) is not None]
    modes, capacity = spec.get("accessModes") or (), spec.get("capacity") or {}
    if not modes:
        yield required("spec.accessModes")
    yield from _mode_causes(modes, "spec.accessModes")
    if not capacity:
        yield required("spec.capacity")
    if list(capacity) != ["storage"]:
        yield not_supported("spec.capacity", spec.get("capacity"), ("storage",))
    for name, amount in capacity.items():
        where = f"spec.capacity[{name}]"
        if parse(amount) < 0:
            text = f"Invalid value: {amount}: must be a valid resource quantity"
            yield StatusCause("FieldValueInvalid", text, where)
        if parse(amount) <= 0:
            yield invalid_value(where, amount, "must be greater than zero")
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    yield from choice_causes(policy, "spec.persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain"))
    for index, name in enumerate(sources):
        if index and name != "flexVolume":  # upstream has no such check of it
            shown = "cephFS" if name == "cephfs" else name
            yield forbidden_field(f"spec.{shown}", "may not specify more than 1 volume type")
        else:
            yield from _volume_source_causes(name, spec)
    if not sources:
        yield required("spec", "must specify a volume type")
    if spec.get("nodeAffinity") is not None:
        if spec["nodeAffinity"].get("required") is None:
            yield required("spec.nodeAffinity.required", "must specify required node constraints")
        yield from node_selector_causes(spec["nodeAffinity"].get("required"), "spec.nodeAffinity.required")
    if spec.get("volumeAttributesClassName") == "":
        yield required("spec.volumeAttributesClassName", "an empty string is disallowed")
    elif spec.get("volumeAttributesClassName") is not None:
        yield from subdomain_causes(spec["volumeAttributesClassName"], "spec.volumeAttributesClassName")
    if spec.get("volumeAttributesClassName") is not None and spec.get("csi") is None:
        yield required("spec.csi", "has to be specified when using volumeAttributesClassName")
    if policy == "Recycle" and (spec.get("hostPath") or {}).get("path") == "/":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield forbidden_field("spec.persistentVolumeReclaimPolicy", text)
    if spec.get("storageClassName"):
        yield from subdomain_causes(spec["storageClassName"], "spec.storageClassName")
    if spec.get("volumeMode") is not None:
        yield from choice_causes(spec["volumeMode"], "spec.volumeMode", _VOLUME_MODES)
    if old is not None:
        yield from _volume_update_causes(spec, spec_of(old))


def _source_of(spec: Document) -> Document:
    return {name: value for name, value in spec.items() if name in _VOLUME_PLUGINS}


def _volume_update_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    """Yield why a volume may not change so (ValidatePersistentVolumeUpdate)."""
    given, held = _source_of(spec), _source_of(before)
    if "csi" in given and "csi" in held and held["csi"].get(_GROWS) is None:  # the first one may be given
        given["csi"] = without(given["csi"], (_GROWS,))
    if given != held:
        lines = difference("PersistentVolumeSource", held, given)
        text = f"spec.persistentvolumesource is immutable after creation\n{lines}"
        yield forbidden_field("spec.persistentvolumesource", text)
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), IMMUTABLE)


_CSI_SECRETS: Final = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
"""In upstream's order; it does not look at nodeStageSecretRef."""


def _volume_source_causes(name: str, spec: Document) -> Iterator[StatusCause]:
    source, path = spec[name], f"spec.{name}"
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
                yield required("spec.nodeAffinity", "Local volume requires node affinity")
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
    for index, toleration in enumerate(scheduling.get("tolerations") or ()):
        yield from toleration_causes(toleration, f"scheduling.tolerations[{index}]")
    yield from immutable_causes(document, old, "handler")


def node_warnings(document: Document) -> Iterator[str]:
    for index, text in enumerate(spec_of(document).get("podCIDRs") or ()):
        yield from network_warnings(text, f"spec.podCIDRs[{index}]")
    if spec_of(document).get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


def node_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        where, effect = f"metadata.taints[{index}]", taint.get("effect", "")
        yield from qualified_name_causes(taint.get("key", ""), f"{where}.key")
        problems = label_value_problems(str(taint.get("value", "")))
        if problems:
            yield invalid_value(f"{where}.value", taint["value"], ";".join(problems))
        if not effect:
            yield required(f"{where}.effect")
        else:
            yield from choice_causes(effect, f"{where}.effect", _EFFECTS)
        key = (taint.get("key"), effect)
        if key in seen:
            text = "taints must be unique by key and effect pair"
            yield StatusCause("FieldValueDuplicate", f"Duplicate value: {json.dumps(taint)}: {text}", where)
        seen.add(key)
    cidrs: list[str] = spec.get("podCIDRs") or []
    for index, text in enumerate(cidrs):
        yield from network_causes(text, f"spec.podCIDRs[{index}]")
    networks = [network_of(text) for text in cidrs]
    if len(networks) == 2 and None in networks:
        text = f"invalid CIDR[{networks.index(None)}]: <nil> (invalid CIDR address: {cidrs[networks.index(None)]})"
        text = f"Internal error: invalid PodCIDRs. failed to check with dual stack with error:{text}"
        yield StatusCause("InternalError", text, "spec.podCIDRs")
    if len(networks) > 1 and (
        len(networks) > 2 or len({network and network.version for network in networks} - {None}) < 2
    ):
        yield invalid_value("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family")
    before = spec_of(old).get("podCIDRs") or [cidr for cidr in (spec_of(old).get("podCIDR"),) if cidr]
    if old is not None and before and before != cidrs:
        text = 'node updates may not change podCIDR except from "" to valid'
        yield forbidden_field("spec.podCIDRs", text)
