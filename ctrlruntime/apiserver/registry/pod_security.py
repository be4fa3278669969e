"""Validation of the security contexts of Pods and containers, with kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.failures import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.apiserver.registry.values import choice_causes, go_struct
from ctrlruntime.apiserver.registry.volume_validation import relative_path_causes
from ctrlruntime.errors import StatusCause

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
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
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
    yield from _sysctl_causes(context, f"{where}.sysctls")
    for name, choices in _CHOICES.items():
        if context.get(name) is not None:
            yield from choice_causes(context[name], f"{where}.{name}", choices)
    yield from _app_armor_causes(context.get("appArmorProfile"), f"{where}.appArmorProfile")
    yield from _seccomp_causes(context.get("seccompProfile"), f"{where}.seccompProfile")
    if spec.get("hostUsers") is False:
        for field, shown in _WITHOUT_OWN_USERS:
            if spec.get(field):
                yield forbidden_field(f"{path}.{shown}", "when `hostUsers` is false")


def container_security_causes(context: Document, path: str, *, has_host_users: bool) -> Iterator[StatusCause]:
    for name in ("runAsUser", "runAsGroup"):
        yield from _id_causes(context.get(name), f"{path}.{name}")
    mount = context.get("procMount")
    if mount is not None:
        yield from choice_causes(mount, f"{path}.procMount", ("Default", "Unmasked"))
        if has_host_users and mount == "Unmasked":
            yield invalid_value(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp_causes(context.get("seccompProfile"), f"{path}.seccompProfile")
    yield from _app_armor_causes(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    if context.get("allowPrivilegeEscalation") is not False:
        return
    added = (context.get("capabilities") or {}).get("add") or ()
    for is_set, what in (
        (context.get("privileged"), "`privileged` to true"),
        ("CAP_SYS_ADMIN" in added, "`capabilities.Add` CAP_SYS_ADMIN"),
    ):
        if is_set:
            text = f"cannot set `allowPrivilegeEscalation` to false and {what}"
            yield invalid_value(path, go_struct(context, *_FIELDS), text)


def _id_causes(number: int | None, path: str) -> Iterator[StatusCause]:
    if number is not None and not 0 <= number < 2**31:
        yield invalid_value(path, number, _ID_RANGE)


def _seccomp_causes(profile: Document | None, path: str) -> Iterator[StatusCause]:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    if kind != "Localhost":
        if local is not None:
            text = "can only be set when seccomp type is Localhost"
            yield invalid_value(f"{path}.localhostProfile", go_struct(profile, "Type", "LocalhostProfile"), text)
    elif local is None:
        yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from relative_path_causes(local, f"{path}.localhostProfile")


def _app_armor_causes(profile: Document | None, path: str) -> Iterator[StatusCause]:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        yield from choice_causes(kind, f"{path}.type", _PROFILES)
    if kind == "Localhost" and not (local or "").strip():
        yield required(f"{path}.localhostProfile", "must be set when AppArmor type is Localhost")
    elif kind != "Localhost" and local is not None:
        text = "can only be set when AppArmor type is Localhost"
        yield invalid_value(f"{path}.localhostProfile", local, text)


def _sysctl_causes(context: Document, path: str) -> Iterator[StatusCause]:
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
        seen.add(name)
