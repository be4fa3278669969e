"""Validation of what Pods mount: volumes, their sources, and the mounts of containers, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ctrlruntime.apiserver.failures import forbidden_field, invalid_value, not_supported, required, shown
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.quantity import parse
from ctrlruntime.apiserver.registry.trees import items
from ctrlruntime.apiserver.registry.values import choice_causes, subdomain_causes
from ctrlruntime.errors import StatusCause

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
_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FILE_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS: Final = frozenset(
    {*_ENV_FIELDS, *_FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_AMOUNTS: Final = tuple(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_NEEDED: Final[Mapping[str, Sequence[str]]] = {
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
    "image": ("reference",),
    "iscsi": ("targetPortal", "iqn"),
    "persistentVolumeClaim": ("claimName",),
    "portworxVolume": ("volumeID",),
    "rbd": ("monitors", "image"),
    "quobyte": ("volume",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "vsphereVolume": ("volumePath",),
}
"""Fields that a source of a volume must have."""
_SHOWN: Final = {"gcePersistentDisk": "persistentDisk"}
"""What messages call a source, where that is not its name."""
_LONGEST_TOKEN: Final = 2**32
_RELATIVE: Final = "must be a relative path"
_NO_DOTS: Final = "must not contain '..'"
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


def volume_causes(volume: Document, path: str) -> Iterator[StatusCause]:
    sources = [name for name, value in volume.items() if isinstance(value, dict)]
    for name in sources[1:]:
        yield forbidden_field(f"{path}.{name}", "may not specify more than 1 volume type")
    if not sources:
        return
    kind = sources[0]
    source, where = volume[kind], f"{path}.{_SHOWN.get(kind, kind)}"
    yield from _needs(source, where, *_NEEDED.get(kind, ()))
    match kind:
        case "emptyDir":
            if source.get("sizeLimit") is not None and parse(source["sizeLimit"]) < 0:
                yield forbidden_field(f"{where}.sizeLimit", "SizeLimit field must be a valid resource quantity")
        case "configMap" | "secret":
            yield from _file_causes(source, where)
        case "hostPath":
            yield from host_path_causes(source, where)
        case "nfs":
            yield from nfs_causes(source, where)
        case "downwardAPI":
            yield from _downward_api_causes(source, where)
        case "projected":
            yield from _projected_causes(source, where)
        case _:
            pass


def host_path_causes(source: Document, path: str) -> Iterator[StatusCause]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    if ".." in str(source["path"]).split("/"):
        yield invalid_value(f"{path}.path", source["path"], _NO_DOTS)
    if source.get("type", "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", source["type"], _HOST_PATH_TYPES)


def nfs_causes(source: Document, path: str) -> Iterator[StatusCause]:
    yield from _needs(source, path, "server", "path")
    if not str(source.get("path", "")).startswith("/"):
        yield invalid_value(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _needs(source: Document, path: str, *names: str) -> Iterator[StatusCause]:
    yield from (required(f"{path}.{name}") for name in names if not source.get(name))


def _file_causes(source: Document, path: str) -> Iterator[StatusCause]:
    """Keys that become files."""
    if not 0 <= source.get("defaultMode", 420) <= 0o777:
        yield invalid_value(f"{path}.defaultMode", source["defaultMode"], _MODE)
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        yield from _needs(item, where, "key", "path")
        if item.get("path"):
            yield from relative_path_causes(str(item["path"]), f"{where}.path")
        if not 0 <= item.get("mode", 0) <= 0o777:
            yield invalid_value(f"{where}.mode", item["mode"], _MODE)


def relative_path_causes(text: str, path: str) -> Iterator[StatusCause]:
    if text.startswith("/"):
        yield invalid_value(path, text, _RELATIVE)
    if ".." in text.split("/"):
        yield invalid_value(path, text, _NO_DOTS)


def _downward_api_causes(source: Document, path: str) -> Iterator[StatusCause]:
    for item in source.get("items") or ():
        yield from _downward_causes(item, path)


def _downward_causes(item: Document, path: str) -> Iterator[StatusCause]:
    if not item.get("path"):
        yield required(f"{path}.path")
    else:
        yield from relative_path_causes(str(item["path"]), f"{path}.path")
    if item.get("fieldRef") is not None:
        yield from field_causes(item["fieldRef"], f"{path}.fieldRef", _FILE_FIELDS)
        if item.get("resourceFieldRef") is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(path, "resource", text)
    elif item.get("resourceFieldRef") is not None:
        yield from _needs(item["resourceFieldRef"], f"{path}.resourceFieldRef", "containerName")
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")


def _projected_causes(source: Document, path: str) -> Iterator[StatusCause]:
    seen: set[str] = set()
    if not 0 <= source.get("defaultMode", 420) <= 0o777:
        yield invalid_value(f"{path}.defaultMode", source["defaultMode"], _MODE)
    for index, part in enumerate(source.get("sources") or ()):
        if len(part) > 1:
            text = "may not specify more than 1 volume type per source"
            yield forbidden_field(f"{path}.sources[{index}]", text)
        where, token = f"{path}.sources[{index}]", part.get("serviceAccountToken")
        for name in ("secret", "configMap"):
            if part.get(name) is not None:
                yield from _needs(part[name], f"{where}.{name}", "name")
                yield from _file_causes(part[name], f"{where}.{name}")
        yield from _downward_api_causes(part.get("downwardAPI") or {}, f"{where}.downwardAPI")
        for name in ("secret", "configMap", "downwardAPI"):
            for item in items(part.get(name) or {}, "items"):
                file = item.get("path")
                if file and file in seen:
                    shown_as = file if name == "downwardAPI" else part[name].get("name", "")
                    yield invalid_value(path, shown_as, "conflicting duplicate paths")
                seen.add(str(file))
        if token is None:
            continue
        if token.get("expirationSeconds", 3600) < 600:
            text = "may not specify a duration less than 10 minutes"
            yield invalid_value(f"{where}.serviceAccountToken.expirationSeconds", token["expirationSeconds"], text)
        elif token.get("expirationSeconds", 3600) > _LONGEST_TOKEN:
            text = "may not specify a duration larger than 2^32 seconds"
            yield invalid_value(f"{where}.serviceAccountToken.expirationSeconds", token["expirationSeconds"], text)
        if not token.get("path"):
            yield required(f"{path}.path")
        else:
            yield from relative_path_causes(str(token["path"]), f"{path}.path")


def mount_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """The volume mounts of a container."""
    seen: set[str] = set()
    volumes = [volume.get("name") for volume in items(spec, "volumes")]
    devices = {device.get("name") for device in items(container, "volumeDevices")}
    path = f"{path}.volumeMounts"
    for index, mount in enumerate(items(container, "volumeMounts")):
        where, name, target = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if name in devices:
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeDevices")
        yield from _propagation_causes(mount, container, path)
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", f"{where}.name")
        if not target:
            yield required(f"{where}.mountPath")
        if target in seen:
            yield invalid_value(f"{where}.mountPath", target, "must be unique")
        seen.add(target)
        if mount.get("subPath"):
            yield from relative_path_causes(str(mount["subPath"]), f"{path}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                yield invalid_value(f"{where}.subPathExpr", mount["subPathExpr"], text)
            yield from relative_path_causes(str(mount["subPathExpr"]), f"{path}.subPathExpr")


def _propagation_causes(mount: Document, container: Document, path: str) -> Iterator[StatusCause]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None:
        where = f"{path}.mountPropagation"
        yield from choice_causes(propagation, where, ("Bidirectional", "HostToContainer", "None"))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden_field(where, text)
    if recursive not in {None, "Disabled"} and not mount.get("readOnly"):
        yield forbidden_field(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")


def device_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """The block devices of a container."""
    volumes = {volume.get("name"): volume for volume in items(spec, "volumes")}
    mounts = {mount.get("name") for mount in items(container, "volumeMounts")}
    for index, device in enumerate(items(container, "volumeDevices")):
        where, name = f"{path}.volumeDevices[{index}]", device.get("name") or ""
        volume = volumes.get(name)
        if not name:
            yield required(f"{where}.name")
        if volume is None:
            yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", f"{where}.name")
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_value(f"{where}.name", name, text)
        if not device.get("devicePath"):
            yield required(f"{where}.devicePath")
        if name in mounts:
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeMounts")


def env_causes(container: Document, path: str) -> Iterator[StatusCause]:
    """The environment of a container."""
    for index, variable in enumerate(container.get("env") or ()):
        where, name = f"{path}.env[{index}]", str(variable.get("name", ""))
        if not name:
            yield required(f"{where}.name")
        yield from _variable_name_causes(name, f"{where}.name")
        if variable.get("valueFrom") is not None:
            yield from _env_source_causes(variable, f"{where}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _variable_name_causes(source.get("prefix", ""), f"{path}.envFrom[{index}].prefix")
        for kind in ("configMapRef", "secretRef"):
            if source.get(kind) is not None:
                where = f"{path}.envFrom[{index}].{kind}"
                yield from _needs(source[kind], where, "name")
                if source[kind].get("name"):
                    yield from subdomain_causes(source[kind]["name"], f"{where}.name")
        if source.get("configMapRef") is not None and source.get("secretRef") is not None:
            yield invalid_value(f"{path}.envFrom", "", "may not have more than one field specified at a time")
        elif source.get("configMapRef") is None and source.get("secretRef") is None:
            yield invalid_value(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`")


def _variable_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    if "=" in name or not all(" " <= letter <= "~" for letter in name):
        text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid_value(path, name, text)


def _env_source_causes(variable: Document, path: str) -> Iterator[StatusCause]:
    source = variable["valueFrom"]
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if source.get(kind) is not None:
            yield from subdomain_causes(source[kind].get("name", ""), f"{path}.{kind}.name")
            yield from _needs(source[kind], f"{path}.{kind}", "key")
    if source.get("resourceFieldRef") is not None:
        resource = source["resourceFieldRef"].get("resource", "")
        if not resource:
            yield required(f"{path}.resourceFieldRef.resource")
        elif resource not in _AMOUNTS and not resource.partition(".")[2].startswith("hugepages-"):
            yield not_supported(f"{path}.resourceFieldRef.resource", resource, _AMOUNTS)
    if source.get("fieldRef") is not None:
        yield from field_causes(source["fieldRef"], f"{path}.fieldRef", _ENV_FIELDS)
    if not source:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid_value(path, "", text)
    elif variable.get("value"):
        yield invalid_value(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield invalid_value(path, "", "may not have more than one field specified at a time")


def field_causes(ref: Document, path: str, supported: Sequence[str]) -> Iterator[StatusCause]:
    """A field of the Pod, by its path or by the key of a label or annotation."""
    field = str(ref.get("fieldPath", ""))
    base, bracket, _ = field.partition("['")
    if not field:
        yield required(f"{path}.fieldPath")
    elif bracket and base in {"metadata.labels", "metadata.annotations"}:
        return
    elif field not in _KNOWN_FIELDS:
        text = f"error converting fieldPath: field label not supported: {field}"
        yield invalid_value(f"{path}.fieldPath", field, text)
    elif field not in supported:
        yield not_supported(f"{path}.fieldPath", field, supported)
