"""Validation of where the data of volumes is, with kube-apiserver's words: the sources that Pods and PersistentVolumes share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    choice_causes,
    label_causes,
    no_dots_causes,
    relative_path_causes,
    subdomain_causes,
    subdomain_problems,
)

_Rule: TypeAlias = Callable[[Any, str], Iterator[StatusCause]]
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "azureDisk": ("diskName", "diskURI"),
    "awsElasticBlockStore": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "storageos": ("volumeName",),
    "vsphereVolume": ("volumePath",),
}
"""Fields that a source of a volume must have."""
_SHOWN: Final = {"gcePersistentDisk": "persistentDisk"}
"""What messages call a source, where that is not its name."""
_INITIATOR: Final = re.compile(
    r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9-.]+)(:[^,;*&$|\s]+)|eui\.[0-9A-Fa-f]{16}|naa\.[0-9A-Fa-f]{32}", re.ASCII
)
_PARTITION: Final = "must be between 1 and 255, inclusive"
_UNIT: Final = "must be between 0 and 255, inclusive"
_HOSTS: Final = "must be a host:port pair or multiple pairs separated by commas"
_DISKS: Final = {
    True: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
    False: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
}
"""What the address of an Azure disk looks like that is managed, and that is not."""
_LONGEST_DRIVER: Final = 63


def source_causes(kind: str, source: Document, path: str) -> Iterator[StatusCause]:
    """What is wrong with a source; see validateVolumeSource in pkg/apis/core/validation/validation.go."""
    path = f"{path.removesuffix(kind)}{_SHOWN.get(kind, kind)}"
    missing = [*needs(source, path, *_NEEDED.get(kind, ()))]
    yield from missing
    if missing and kind == "hostPath":  # of nothing else is more said then
        return
    for field, rule in _FIELDS.get(kind, {}).items():
        if source.get(field) is not None and (source[field] != "" or field == "initiatorName"):  # a pointer
            yield from rule(source[field], f"{path}.{field}")
    if kind in _WHOLE:
        yield from _WHOLE[kind](source, path)


def needs(source: Document, path: str, *names: str) -> Iterator[StatusCause]:
    yield from (required(f"{path}.{name}") for name in names if not source.get(name))


# Rules of single fields


def _secret_causes(ref: Document, path: str) -> Iterator[StatusCause]:
    return needs(ref, path, "name")


def _up_to_255(text: str) -> _Rule:
    def rule(number: int, path: str) -> Iterator[StatusCause]:
        if not 0 <= number <= 255:
            yield invalid_value(path, number, text)

    return rule


def _one_of(*choices: str) -> _Rule:
    return lambda value, path: choice_causes(value, path, choices)


def _size_causes(size: str, path: str) -> Iterator[StatusCause]:
    if parse(size) < 0:
        yield forbidden_field(path, "SizeLimit field must be a valid resource quantity")


def _absolute_causes(text: str, path: str) -> Iterator[StatusCause]:
    if not text.startswith("/"):
        yield invalid_value(path, text, "must be an absolute path")


def _initiator_causes(name: str, path: str) -> Iterator[StatusCause]:
    path = path.replace("initiatorName", "initiatorname")
    if not name.startswith(("iqn", "eui", "naa")):
        yield invalid_value(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not _INITIATOR.fullmatch(name):
        yield invalid_value(path, name, "must be valid format")


def _option_causes(options: Document, path: str) -> Iterator[StatusCause]:
    for key in options:
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            yield invalid_value(f"{path}[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def driver_causes(driver: str, path: str) -> Iterator[StatusCause]:
    if len(driver) > _LONGEST_DRIVER:
        yield too_long(path, _LONGEST_DRIVER)
    yield from (invalid_value(path, driver, problem) for problem in subdomain_problems(driver.lower()))


def _no_slash_causes(name: str, path: str) -> Iterator[StatusCause]:
    if "/" in name:
        yield invalid_value(path, name, "must not contain '/'")


# Rules of fields that depend on each other


def _nfs_causes(source: Document, path: str) -> Iterator[StatusCause]:
    return _absolute_causes(source.get("path", ""), f"{path}.path")


def _iscsi_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield required(f"{path}.secretRef")


def _fibre_channel_causes(source: Document, path: str) -> Iterator[StatusCause]:
    names, where = source.get("targetWWNs"), f"{path}.targetWWNs"
    if not names and not source.get("wwids"):
        yield required(where, "must specify either targetWWNs or wwids, but not both")
    if names and source.get("wwids"):
        yield invalid_value(where, names, "targetWWNs and wwids can not be specified simultaneously")
    if names and source.get("lun") is None:
        yield required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif names:
        yield from _up_to_255(_UNIT)(source["lun"], f"{path}.lun")


def _quobyte_causes(source: Document, path: str) -> Iterator[StatusCause]:
    registry = source.get("registry", "")
    if not registry:
        yield required(f"{path}.registry", _HOSTS)
    elif len(source.get("tenant", "")) > 64:
        yield required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if not re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", pair):
                yield invalid_value(f"{path}.registry", registry, _HOSTS)
    if not source.get("volume"):
        yield required(f"{path}.volume")


def _flocker_causes(source: Document, path: str) -> Iterator[StatusCause]:
    given = [name for name in ("datasetName", "datasetUUID") if source.get(name)]
    if not given:
        yield required(path, "one of datasetName and datasetUUID is required")
    elif len(given) > 1:
        yield invalid_value(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")


def _azure_disk_causes(source: Document, path: str) -> Iterator[StatusCause]:
    is_managed, address = source.get("kind") == "Managed", source.get("diskURI", "")
    if not address.startswith("/subscriptions/" if is_managed else "https://"):
        yield not_supported(f"{path}.diskURI", address, (_DISKS[is_managed],))


def _csi_causes(source: Document, path: str) -> Iterator[StatusCause]:
    name = (source.get("nodePublishSecretRef") or {}).get("name")
    return subdomain_causes(name, f"{path}.name") if name else iter(())


_FIELDS: Final[Mapping[str, Mapping[str, _Rule]]] = {
    "awsElasticBlockStore": {"partition": _up_to_255(_PARTITION)},
    "azureDisk": {
        "cachingMode": _one_of("None", "ReadOnly", "ReadWrite"),
        "kind": _one_of("Dedicated", "Managed", "Shared"),
    },
    "cinder": {"secretRef": _secret_causes},
    "csi": {"driver": driver_causes, "nodePublishSecretRef": _secret_causes},
    "emptyDir": {"sizeLimit": _size_causes},
    "flexVolume": {"options": _option_causes},
    "flocker": {"datasetName": _no_slash_causes},
    "gcePersistentDisk": {"partition": _up_to_255(_PARTITION)},
    "gitRepo": {"directory": relative_path_causes},
    "hostPath": {"path": no_dots_causes, "type": _one_of(*_HOST_PATH_TYPES)},
    "image": {"pullPolicy": _one_of("Always", "IfNotPresent", "Never")},
    "iscsi": {"iqn": _initiator_causes, "initiatorName": _initiator_causes, "lun": _up_to_255(_UNIT)},
    "storageos": {"secretRef": _secret_causes, "volumeName": label_causes, "volumeNamespace": label_causes},
}
"""The rules of fields that are given, by source and field."""
_WHOLE: Final[Mapping[str, _Rule]] = {
    "azureDisk": _azure_disk_causes,
    "csi": _csi_causes,
    "fc": _fibre_channel_causes,
    "flocker": _flocker_causes,
    "iscsi": _iscsi_causes,
    "nfs": _nfs_causes,
    "quobyte": _quobyte_causes,
}
