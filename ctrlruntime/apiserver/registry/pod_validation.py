"""Validation of pods and pod templates, with kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

from ctrlruntime.apiserver.failures import (
    duplicate,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
    shown,
)
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.quantity import parse
from ctrlruntime.errors import StatusCause

NON_NEGATIVE: Final = "must be greater than or equal to 0"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_UNCHANGEABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec: Document = document.get("spec") or {}
    yield from pod_spec_causes(spec, "spec")
    if old is not None:
        before: Document = old.get("spec") or {}
        if _fixed(spec, before) != _fixed(before, before):
            yield forbidden_field("spec", _UNCHANGEABLE)


def pod_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with a pod's or a template's spec."""
    volumes = spec.get("volumes") or ()
    yield from _names(volumes, f"{path}.volumes")
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    volume_names = {volume.get("name") for volume in volumes}
    containers = [*_indexed(spec, path, "containers"), *_indexed(spec, path, "initContainers")]
    yield from _names([container for _, container in containers], "", [where for where, _ in containers])
    for where, container in containers:
        yield from _container_causes(container, where, volume_names)
    policy = spec.get("restartPolicy")
    if policy not in {"Always", "OnFailure", "Never"}:
        yield (
            not_supported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never"))
            if policy
            else required(f"{path}.restartPolicy")
        )
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid_value(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    if spec.get("dnsPolicy") not in {None, "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}:
        supported = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
        yield not_supported(f"{path}.dnsPolicy", spec["dnsPolicy"], supported)


def label_causes(value: Any, path: str) -> Iterator[StatusCause]:
    """Yield what keeps a value from being a DNS label."""
    if len(str(value)) > 63:
        yield invalid_value(path, value, "must be no more than 63 bytes")
    if not _LABEL.fullmatch(str(value)):
        yield invalid_value(path, value, LABEL_TEXT)


def _indexed(spec: Document, path: str, name: str) -> list[tuple[str, Document]]:
    return [(f"{path}.{name}[{index}]", container) for index, container in enumerate(spec.get(name) or ())]


def _names(items: Sequence[Document], path: str, places: Sequence[str] | None = None) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, item in enumerate(items):
        where = f"{places[index] if places else f'{path}[{index}]'}.name"
        name = item.get("name") or ""
        if not name:
            yield required(where)
            continue
        yield from label_causes(name, where)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)


def _container_causes(container: Document, path: str, volumes: set[Any]) -> Iterator[StatusCause]:
    image = container.get("image") or ""
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace")
    if container.get("imagePullPolicy") not in {"Always", "IfNotPresent", "Never"}:
        yield not_supported(
            f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), ("Always", "IfNotPresent", "Never")
        )
    yield from _container_port_causes(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")
    yield from _mount_causes(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    yield from _resource_causes(container.get("resources") or {}, f"{path}.resources")


def _container_port_causes(ports: Iterable[Document], path: str) -> Iterator[StatusCause]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        where, number = f"{path}[{index}]", port.get("containerPort", 0)
        if port.get("name"):
            yield from port_name_causes(port["name"], f"{where}.name")
            if port["name"] in names:
                yield duplicate(f"{where}.name", port["name"])
            names.add(port["name"])
        if not number:
            yield required(f"{where}.containerPort")
        elif not 0 < number < 65536:
            yield invalid_value(f"{where}.containerPort", number, PORT_RANGE)
        host = port.get("hostPort", 0)
        if host and not 0 < host < 65536:
            yield invalid_value(f"{where}.hostPort", host, PORT_RANGE)
        if port.get("protocol") not in PROTOCOLS:
            yield not_supported(f"{where}.protocol", port.get("protocol", ""), PROTOCOLS)


def port_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    if len(name) > 15:
        yield invalid_value(path, name, "must be no more than 15 characters")
    if not re.fullmatch(r"[-a-z0-9]+", name):
        yield invalid_value(path, name, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        yield invalid_value(path, name, "must contain at least one letter (a-z)")
    if "--" in name:
        yield invalid_value(path, name, "must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        yield invalid_value(path, name, "must not begin or end with a hyphen")


def _mount_causes(mounts: Iterable[Document], path: str, volumes: set[Any]) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where, name, target = f"{path}[{index}]", mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{where}.name")
        if name not in volumes:
            yield StatusCause("FieldValueNotFound", f"Not found: {shown(name)}", f"{where}.name")
        if not target:
            yield required(f"{where}.mountPath")
        if target in seen:
            yield invalid_value(f"{where}.mountPath", target, "must be unique")
        seen.add(target)


def _resource_causes(resources: Document, path: str) -> Iterator[StatusCause]:
    limits = {name: parse(value) for name, value in (resources.get("limits") or {}).items()}
    for side in ("limits", "requests"):
        for name, text in (resources.get(side) or {}).items():
            amount = parse(text)
            if amount < 0:
                yield invalid_value(f"{path}.{side}[{name}]", text, NON_NEGATIVE)
            if side == "requests" and amount > limits.get(name, Decimal("Infinity")):
                limit = resources["limits"][name]
                yield invalid_value(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")


def _fixed(spec: Document, before: Document) -> Document:
    """Return the part of a spec that an update may not change; what it may change is taken from `before`."""
    free = {"activeDeadlineSeconds", "ephemeralContainers", "terminationGracePeriodSeconds"}
    fixed = {name: value for name, value in spec.items() if name not in free}
    if not before.get("nodeName"):
        fixed.pop("nodeName", None)  # the binding subresource writes it through here
    for name in ("containers", "initContainers"):
        if spec.get(name):
            fixed[name] = [{**container, "image": ""} for container in spec[name]]
    tolerations, gates = spec.get("tolerations") or [], spec.get("schedulingGates") or []
    earlier_gates = before.get("schedulingGates") or []
    fixed["tolerations"] = [item for item in before.get("tolerations") or [] if item not in tolerations]
    fixed["schedulingGates"] = [gate for gate in gates if gate not in earlier_gates]
    if earlier_gates:
        fixed.pop("nodeSelector", None)
        fixed.pop("affinity", None)
    return fixed
