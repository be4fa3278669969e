"""Validation of what Pods mount: volumes, their sources, and the mounts of containers, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ctrlruntime.apiserver.registry.claim_validation import claim_spec_causes
from ctrlruntime.apiserver.registry.trees import all_containers, items
from ctrlruntime.apiserver.registry.volume_sources import needs, source_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required, shown
from ctrlruntime.quantities import canonical, parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    annotations_causes,
    choice_causes,
    config_key_causes,
    label_causes,
    labels_causes,
    no_dots_causes,
    qualified_name_causes,
    relative_path_causes,
    subdomain_causes,
    subdomain_problems,
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
_SIZES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_DIVISORS: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "cpu": (("1m", "1"), "cpu"),
    "memory": (_SIZES, "memory"),
    "ephemeral-storage": (_SIZES, "local ephemeral storage"),
    "hugepages": (_SIZES, "hugepages"),
}
"""What amounts may be divided by, and what messages call them."""
_LONGEST_TOKEN: Final = 2**32
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"


_SOURCES: Final = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi", "glusterfs",
    "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc", "flexVolume", "configMap",
    "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "storageos", "projected", "scaleIO",
    "csi", "ephemeral", "image",
)  # fmt: skip
"""The sources of a volume in the order in which upstream looks at them (validateVolumeSource)."""
_SHOWN_AS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def volumes_causes(volumes: Sequence[Document], path: str, pod_name: str) -> Iterator[StatusCause | Document]:
    """Yield what is wrong with the volumes of a Pod, and the volumes that are right: no other can be mounted.

    `pod_name` is empty for a template; with it the names of the claims that the Pod brings are known.
    """
    names: set[str] = set()
    brought = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if pod_name and "ephemeral" in volume}
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", volume.get("name") or ""
        found = [*volume_causes(volume, where)]
        if pod_name and name and _source_of(volume) == "ephemeral":
            claim = f"{pod_name}-{name}"
            found += [
                invalid_value(f"{where}.name", name, f'PVC name "{claim}": {problem}')
                for problem in subdomain_problems(claim)
            ]
        found += [*label_causes(name, f"{where}.name")] if name else [required(f"{where}.name")]
        if name in names:
            found.append(duplicate(f"{where}.name", name))
        if found:
            yield from found
        else:
            names.add(name)
            yield volume
        used = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if used in brought:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            yield invalid_value(f"{where}.persistentVolumeClaim.claimName", used, text)


def _source_of(volume: Document) -> str:
    return next((name for name in _SOURCES if isinstance(volume.get(name), dict)), "")


def volume_causes(volume: Document, path: str) -> Iterator[StatusCause]:
    """What is wrong with the source of a volume."""
    kind = _source_of(volume)
    if not kind:
        return
    yield from _source_causes(kind, volume[kind], f"{path}.{kind}")
    for name in _SOURCES[_SOURCES.index(kind) + 1 :]:
        if isinstance(volume.get(name), dict):
            shown_as = _SHOWN_AS.get(name, name)
            yield forbidden_field(f"{path}.{shown_as}", "may not specify more than 1 volume type")


def _source_causes(kind: str, source: Document, where: str) -> Iterator[StatusCause]:
    yield from source_causes(kind, source, where)
    match kind:
        case "configMap" | "secret":
            yield from _file_causes(source, where)
        case "downwardAPI":
            yield from _downward_api_causes(source, where)
        case "projected":
            yield from _projected_causes(source, where)
        case "ephemeral" if source.get("volumeClaimTemplate") is not None:
            yield from _claim_causes(source["volumeClaimTemplate"], f"{where}.volumeClaimTemplate")
        case _:
            pass


def _claim_causes(template: Document, path: str) -> Iterator[StatusCause]:
    """The claim that a Pod brings (ValidatePersistentVolumeClaimTemplate)."""
    yield from template_metadata_causes(template.get("metadata") or {}, f"{path}.metadata")
    yield from claim_spec_causes(template.get("spec") or {}, f"{path}.spec")


def template_metadata_causes(metadata: Document, path: str) -> Iterator[StatusCause]:
    """The metadata of what is created from a template: labels and annotations."""
    yield from annotations_causes(metadata.get("annotations"), f"{path}.annotations")
    yield from labels_causes(metadata.get("labels"), f"{path}.labels")
    for name, value in metadata.items():
        if name not in {"annotations", "labels"} and value:
            yield forbidden_field(f"{path}.{'uID' if name == 'uid' else name}", "cannot be set")


def _file_causes(source: Document, path: str) -> Iterator[StatusCause]:
    """Keys that become files."""
    if not 0 <= source.get("defaultMode", 420) <= 0o777:
        yield invalid_value(f"{path}.defaultMode", source["defaultMode"], _MODE)
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        yield from needs(item, where, "key", "path")
        yield from _file_path_causes(item.get("path", ""), f"{where}.path")
        if not 0 <= item.get("mode", 0) <= 0o777:
            yield invalid_value(f"{where}.mode", item["mode"], _MODE)


def _file_path_causes(text: str, path: str) -> Iterator[StatusCause]:
    """A path whose beginning is not for the kubelet (ValidateLocalNonReservedPath)."""
    yield from relative_path_causes(text, path)
    if text.startswith("..") and ".." not in text.split("/"):
        yield invalid_value(path, text, "must not start with '..'")


def _downward_api_causes(source: Document, path: str) -> Iterator[StatusCause]:
    for item in source.get("items") or ():
        yield from _downward_causes(item, path)


def _downward_causes(item: Document, path: str) -> Iterator[StatusCause]:
    yield from needs(item, path, "path")
    yield from _file_path_causes(item.get("path", ""), f"{path}.path")
    if item.get("fieldRef") is not None:
        yield from field_causes(item["fieldRef"], f"{path}.fieldRef", _FILE_FIELDS)
        if item.get("resourceFieldRef") is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid_value(path, "resource", text)
    elif item.get("resourceFieldRef") is not None:
        yield from _amount_causes(item["resourceFieldRef"], f"{path}.resourceFieldRef", is_file=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    if not 0 <= item.get("mode", 0) <= 0o777:
        yield invalid_value(f"{path}.mode", item["mode"], _MODE)


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
                yield from needs(part[name], f"{where}.{name}", "name")
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
        yield from needs(token, path, "path")
        yield from _file_path_causes(token.get("path", ""), f"{path}.path")


def mount_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """The volume mounts of a container."""
    seen: set[str] = set()
    volumes = [volume.get("name") for volume in items(spec, "volumes")]
    devices = list(items(container, "volumeDevices"))
    names, paths = {one.get("name") for one in devices}, {one.get("devicePath") for one in devices}
    path = f"{path}.volumeMounts"
    for index, mount in enumerate(items(container, "volumeMounts")):
        where, name, target = f"{path}[{index}]", str(mount.get("name") or ""), str(mount.get("mountPath") or "")
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", f"{where}.name")
        if not target:
            yield required(f"{where}.mountPath")
        if target in seen:
            yield invalid_value(f"{where}.mountPath", target, "must be unique")
        seen.add(target)
        if name in names:
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeDevices")
        if target in paths:
            yield invalid_value(f"{where}.mountPath", target, "must not already exist as a path in volumeDevices")
        if mount.get("subPath"):
            yield from relative_path_causes(str(mount["subPath"]), f"{path}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                text = "subPathExpr and subPath are mutually exclusive"
                yield invalid_value(f"{where}.subPathExpr", mount["subPathExpr"], text)
            yield from relative_path_causes(str(mount["subPathExpr"]), f"{path}.subPathExpr")
        yield from _propagation_causes(mount, container, path)


def _propagation_causes(mount: Document, container: Document, path: str) -> Iterator[StatusCause]:
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None:
        where = f"{path}.mountPropagation"
        yield from choice_causes(propagation, where, ("Bidirectional", "HostToContainer", "None"))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden_field(where, text)
    where = f"{path}.recursiveReadOnly"
    if recursive in {"Enabled", "IfPossible"}:
        if not mount.get("readOnly"):
            yield forbidden_field(where, "may only be specified when readOnly is true")
        if propagation not in {None, "None"}:
            yield forbidden_field(where, "may only be specified when mountPropagation is None or not specified")
    elif recursive is not None:
        yield from choice_causes(recursive, where, ("Disabled", "Enabled", "IfPossible"))


def device_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """The block devices of a container."""
    volumes = {volume.get("name"): volume for volume in items(spec, "volumes")}
    mounts = list(items(container, "volumeMounts"))
    names, paths = {one.get("name") for one in mounts}, {one.get("mountPath") for one in mounts}
    seen: set[tuple[str, str]] = set()
    for index, device in enumerate(items(container, "volumeDevices")):
        where, name, target = f"{path}.volumeDevices[{index}]", device.get("name") or "", device.get("devicePath") or ""
        volume = volumes.get(name)
        yield from needs(device, where, "name")
        if name and ("name", name) in seen:
            yield invalid_value(f"{where}.name", name, "must be unique")
        if volume is None:
            yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", f"{where}.name")
        elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid_value(f"{where}.name", name, text)
        yield from needs(device, where, "devicePath")
        if target and ("devicePath", target) in seen:
            yield invalid_value(f"{where}.devicePath", target, "must be unique")
        if ".." in target.split("/"):
            yield invalid_value(f"{where}.devicePath", target, "can not contain backsteps ('..')")
        else:
            seen.add(("devicePath", target))
        seen.add(("name", name))
        if name in names:
            yield invalid_value(f"{where}.name", name, "must not already exist in volumeMounts")
        if target in paths:
            yield invalid_value(f"{where}.devicePath", target, "must not already exist as a path in volumeMounts")


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
                yield from needs(source[kind], where, "name")
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
            yield from needs(source[kind], f"{path}.{kind}", "key")
            if source[kind].get("key"):
                yield from config_key_causes(source[kind]["key"], f"{path}.{kind}.key")
    if source.get("resourceFieldRef") is not None:
        yield from _amount_causes(source["resourceFieldRef"], f"{path}.resourceFieldRef", is_file=False)
    if source.get("fileKeyRef") is not None:
        yield from _file_key_causes(source["fileKeyRef"], f"{path}.fileKeyRef")
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
    base, key = field.removesuffix("']").split("['", 1) if "['" in field and field.endswith("']") else (field, None)
    why = ""
    if not field:
        yield required(f"{path}.fieldPath")
    elif ref.get("apiVersion", "v1") != "v1":
        why = f"unsupported pod version: {ref['apiVersion']}"
    elif key is not None and base in {"metadata.labels", "metadata.annotations"}:
        yield from qualified_name_causes(key if base == "metadata.labels" else key.lower(), path)
    elif key is not None:
        why = f"field label does not support subscript: {field}"
    elif field not in _KNOWN_FIELDS:
        why = f"field label not supported: {field}"
    elif field not in supported:
        yield not_supported(f"{path}.fieldPath", field, supported)
    if why:
        yield invalid_value(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")


def _file_key_causes(ref: Document, path: str) -> Iterator[StatusCause]:
    """A variable in a file of a volume (validateFileKeySelector)."""
    yield from needs(ref, path, "key")
    yield from _variable_name_causes(ref.get("key", ""), f"{path}.key")
    yield from needs(ref, path, "volumeName")
    if name := ref.get("volumeName"):
        yield from label_causes(name, f"{path}.volumeName")
    yield from needs(ref, path, "path")
    yield from no_dots_causes(ref.get("path", ""), f"{path}.path")


def file_volume_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """The volumes of such files begin empty (validateFileKeyRefVolumes)."""
    volumes = {one.get("name", ""): one for one in items(spec, "volumes")}
    for where, container in all_containers(spec, path):
        for index, variable in enumerate(items(container, "env")):
            ref = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if ref is None:
                continue
            place, name = f"{where}.env[{index}].valueFrom.fileKeyRef.volumeName", ref.get("volumeName", "")
            if name not in volumes:
                yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", place)
            elif volumes[name].get("emptyDir") is None:
                yield invalid_value(place, name, "referenced volume must be of type emptyDir")


def _amount_causes(ref: Document, path: str, *, is_file: bool) -> Iterator[StatusCause]:
    """A request or a limit of a container (validateContainerResourceFieldSelector)."""
    resource, divisor = ref.get("resource", ""), str(ref.get("divisor") or "0")
    name = resource.partition(".")[2]
    is_huge = resource.startswith(("limits.hugepages-", "requests.hugepages-"))
    if is_file and not ref.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _AMOUNTS and not is_huge:
        yield not_supported(f"{path}.resource", resource, _AMOUNTS)
    allowed, what = _DIVISORS.get("hugepages" if is_huge else name if resource in _AMOUNTS else "", ((), ""))
    if what and parse(divisor) and canonical(divisor) not in allowed:
        listed = " and ".join(allowed) if name == "cpu" else ", ".join(allowed)
        text = f"only divisor's values {listed} are supported with the {what} resource"
        yield invalid_value(f"{path}.divisor", resource, text)
