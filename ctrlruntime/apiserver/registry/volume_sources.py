"""Validation of where the data of volumes is, with kube-apiserver's words: the sources that Pods and PersistentVolumes share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from ctrlruntime.apiserver.failures import forbidden_field, invalid_value, not_supported, required, too_long
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.quantity import parse
from ctrlruntime.apiserver.registry.values import (
    choice_causes,
    label_causes,
    no_dots_causes,
    relative_path_causes,
    subdomain_problems,
)
from ctrlruntime.errors import StatusCause

_Rule: TypeAlias = Callable[[Document, str], Iterator[StatusCause]]
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
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "quobyte": ("volume",),
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
    yield from needs(source, path, *_NEEDED.get(kind, ()))
    rule = _RULES.get(kind)
    if rule is not None:
        yield from rule(source, path)


def needs(source: Document, path: str, *names: str) -> Iterator[StatusCause]:
    yield from (required(f"{path}.{name}") for name in names if not source.get(name))


def _secret_causes(source: Document, path: str, field: str = "secretRef") -> Iterator[StatusCause]:
    if source.get(field) is not None:
        yield from needs(source[field], f"{path}.{field}", "name")


def _partition_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if not 0 <= source.get("partition", 0) <= 255:
        yield invalid_value(f"{path}.partition", source["partition"], "must be between 1 and 255, inclusive")


def _unit_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if not 0 <= source.get("lun", 0) <= 255:
        yield invalid_value(f"{path}.lun", source["lun"], _UNIT)


def _folder_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if source.get("sizeLimit") is not None and parse(source["sizeLimit"]) < 0:
        yield forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _repository_causes(source: Document, path: str) -> Iterator[StatusCause]:
    return relative_path_causes(source.get("directory", ""), f"{path}.directory")


def _host_path_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_dots_causes(source["path"], f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def _nfs_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if not source.get("path", "").startswith("/"):
        yield invalid_value(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _iscsi_causes(source: Document, path: str) -> Iterator[StatusCause]:
    for field, where in (("iqn", "iqn"), ("initiatorName", "initiatorname")):
        name = source.get(field)
        if name is None or (not name and field == "iqn"):
            continue
        if not name.startswith(("iqn", "eui", "naa")):
            yield invalid_value(f"{path}.{where}", name, "must be valid format starting with iqn, eui, or naa")
        elif not _INITIATOR.fullmatch(name):
            yield invalid_value(f"{path}.{where}", name, "must be valid format")
    yield from _unit_causes(source, path)
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
        yield from _unit_causes(source, path)


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


def _flocker_causes(source: Document, path: str) -> Iterator[StatusCause]:
    name, uid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uid:
        yield invalid_value(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid_value(f"{path}.datasetName", name, "must not contain '/'")


def _flex_causes(source: Document, path: str) -> Iterator[StatusCause]:
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            yield invalid_value(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _azure_disk_causes(source: Document, path: str) -> Iterator[StatusCause]:
    kind, address = source.get("kind", "Shared"), source.get("diskURI", "")
    caching = source.get("cachingMode", "ReadWrite")
    yield from choice_causes(caching, f"{path}.cachingMode", ("None", "ReadOnly", "ReadWrite"))
    yield from choice_causes(kind, f"{path}.kind", ("Dedicated", "Managed", "Shared"))
    is_managed = kind == "Managed"
    if not address.startswith("/subscriptions/" if is_managed else "https://"):
        yield not_supported(f"{path}.diskURI", address, (_DISKS[is_managed],))


def _storage_os_causes(source: Document, path: str) -> Iterator[StatusCause]:
    for field in ("volumeName", "volumeNamespace"):
        if source.get(field):
            yield from label_causes(source[field], f"{path}.{field}")
    yield from _secret_causes(source, path)


def _csi_causes(source: Document, path: str) -> Iterator[StatusCause]:
    driver, secret = source.get("driver", ""), source.get("nodePublishSecretRef") or {}
    if len(driver) > _LONGEST_DRIVER:
        yield too_long(f"{path}.driver", _LONGEST_DRIVER)
    for problem in subdomain_problems(driver.lower()) if driver else ():
        yield invalid_value(f"{path}.driver", driver, problem)
    yield from _secret_causes(source, path, "nodePublishSecretRef")
    for problem in subdomain_problems(secret["name"]) if secret.get("name") else ():
        yield invalid_value(f"{path}.name", secret["name"], problem)


def _image_causes(source: Document, path: str) -> Iterator[StatusCause]:
    return choice_causes(source.get("pullPolicy", ""), f"{path}.pullPolicy", ("Always", "IfNotPresent", "Never"))


_RULES: Final[Mapping[str, _Rule]] = {
    "awsElasticBlockStore": _partition_causes,
    "azureDisk": _azure_disk_causes,
    "cinder": _secret_causes,
    "csi": _csi_causes,
    "emptyDir": _folder_causes,
    "fc": _fibre_channel_causes,
    "flexVolume": _flex_causes,
    "flocker": _flocker_causes,
    "gcePersistentDisk": _partition_causes,
    "gitRepo": _repository_causes,
    "hostPath": _host_path_causes,
    "image": _image_causes,
    "iscsi": _iscsi_causes,
    "nfs": _nfs_causes,
    "quobyte": _quobyte_causes,
    "storageos": _storage_os_causes,
}
