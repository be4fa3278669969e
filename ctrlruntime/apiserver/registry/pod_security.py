"""Validation of the security contexts of Pods and containers, with kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_systems import windows_causes
from ctrlruntime.apiserver.registry.trees import all_containers, inner, items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, required, too_long
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import choice_causes, relative_path_causes
from ctrlruntime.selector import utf8_length

_ID_RANGE: Final = "must be between 0 and 2147483647, inclusive"
_FIELDS: Final = (
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
)
_SYSCTL: Final = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_LONGEST_SYSCTL: Final = 253
_CHOICES: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "seLinuxChangePolicy": ("Recursive",),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
}
PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_FILE: Final = 4095
_OF_HOSTS: Final = (
    ("hostNetwork", ("net.",)),
    ("hostIPC", ("kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue.")),
)
"""Settings of the kernel that a Pod shares with the node: the field that says so, and how their names begin."""
_WITHOUT_OWN_USERS: Final = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))


def pod_security_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    context, where = inner(spec, "securityContext") or {}, f"{path}.securityContext"
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from _id_causes(context.get(name), f"{where}.{name}")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from _id_causes(group, f"{where}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid_value(f"{where}.shareProcessNamespace", True, text)
    yield from _sysctl_causes(context, f"{where}.sysctls", spec)
    for name, choices in _CHOICES.items():
        if context.get(name) is not None:
            yield from choice_causes(context[name], f"{where}.{name}", choices)
    yield from profile_causes(context, where)
    yield from windows_causes(context, where)
    if spec.get("hostUsers") is False:
        for field, shown in _WITHOUT_OWN_USERS:
            if spec.get(field):
                yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")
        for place, container in all_containers(spec, path):
            if container.get("volumeDevices"):
                yield forbidden_field(f"{place}.volumeDevices", "when `hostUsers` is false")


def container_security_causes(context: Document, path: str, *, has_host_users: bool) -> Iterator[StatusCause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from _id_causes(context.get(name), f"{path}.{name}")
    mount = context.get("procMount")
    if mount is not None:
        yield from choice_causes(mount, f"{path}.procMount", ("Default", "Unmasked"))
        if has_host_users and mount == "Unmasked":
            yield invalid_value(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from profile_causes(context, path)
    yield from windows_causes(context, path)
    if context.get("allowPrivilegeEscalation") is not False:
        return
    capabilities = context.get("capabilities")
    added = (capabilities or {}).get("add") or ()
    for is_set, what in (
        (context.get("privileged"), "`privileged` to true"),
        ("CAP_SYS_ADMIN" in added, "`capabilities.Add` CAP_SYS_ADMIN"),
    ):
        if is_set:
            text = f"cannot set `allowPrivilegeEscalation` to false and {what}"
            yield invalid_value(path, internal("core.SecurityContext", context), text)


def _id_causes(number: int | None, path: str) -> Iterator[StatusCause]:
    if number is not None and not 0 <= number < 2**31:
        yield invalid_value(path, number, _ID_RANGE)


def profile_causes(context: Document, path: str) -> Iterator[StatusCause]:
    """The profiles of seccomp and of AppArmor (validateSeccompProfileField and ValidateAppArmorProfileField)."""
    for field, name in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        profile, where, is_seccomp = context.get(field), f"{path}.{field}", name == "seccomp"
        if profile is None:
            continue
        kind, local, place = profile.get("type", ""), profile.get("localhostProfile"), f"{where}.localhostProfile"
        if not kind:
            yield required(f"{where}.type", f"type is required when {field} is set")
        else:
            yield from choice_causes(kind, f"{where}.type", PROFILES)
        if kind != "Localhost":
            if local is not None and (is_seccomp or kind in PROFILES):
                shown = internal("core.SeccompProfile", profile) if is_seccomp else local
                yield invalid_value(place, shown, f"can only be set when {name} type is Localhost")
        elif local is None or (not is_seccomp and not local):
            yield required(place, f"must be set when {name} type is Localhost")
        elif is_seccomp:
            yield from relative_path_causes(local, place)
        else:
            if local != local.strip():
                yield invalid_value(place, local, "must not be padded with whitespace")
            if utf8_length(local) > _LONGEST_FILE:
                yield too_long(place, _LONGEST_FILE)


def _sysctl_causes(context: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, setting in enumerate(items(context, "sysctls")):
        where, name = f"{path}[{index}].name", setting.get("name", "")
        if not name:
            yield required(where)
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL[1:-1], name):
            yield invalid_value(
                where, name, f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            )
        elif name in seen:
            yield duplicate(where, name)
        for field, starts in _OF_HOSTS:
            if spec.get(field) and name.replace("/", ".").startswith(starts):
                yield invalid_value(where, name, f"may not be specified when '{field}' is true")
        seen.add(name)
